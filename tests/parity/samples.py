"""The compared operators, and PyTorch's sample inputs, which cover broadcasting, options and corner cases.

Each sample is built for each library from plain arrays, so both libraries start from the same values, strides and
aliasing.
"""

import functools
import itertools
import random
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy
import torch
from torch.testing._internal import common_utils
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo import core

from .candidate import candidate, lookup
from .conversion import Converter, to_array

# At each sample, PyTorch searches the whole stack for one of its test methods. The stack contains no such method here.
common_utils.extract_test_fn = core.extract_test_fn = lambda: None

NAMES = """
    add sub rsub mul div true_divide floor_divide remainder fmod pow float_power neg positive reciprocal square sqrt
    rsqrt abs sign sgn __radd__ __rsub__ __rmul__ __rdiv__ __rpow__ __rmod__ __rmatmul__ __rand__ __ror__ __rxor__
    exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh atan2 sinc hypot
    ceil floor round trunc frac erf erfc erfinv lgamma digamma sigmoid logit logaddexp logaddexp2 xlogy copysign
    heaviside nan_to_num deg2rad rad2deg angle conj conj_physical resolve_conj resolve_neg real imag polar complex
    clamp clamp_min clamp_max maximum minimum fmax fmin lerp addcmul addcdiv where nn.functional.relu
    nn.functional.relu6 nn.functional.leaky_relu nn.functional.elu nn.functional.celu nn.functional.selu
    nn.functional.gelu nn.functional.silu nn.functional.mish nn.functional.softplus nn.functional.softsign
    nn.functional.softshrink nn.functional.hardshrink nn.functional.hardtanh nn.functional.hardsigmoid
    nn.functional.hardswish nn.functional.tanhshrink nn.functional.logsigmoid nn.functional.threshold
    nn.functional.glu nn.functional.prelu eq ne lt le gt ge equal allclose isclose isnan isinf isfinite isposinf
    isneginf isreal signbit logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor
    bitwise_not bitwise_left_shift bitwise_right_shift sum mean prod max min amax amin argmax argmin std var
    std_mean var_mean norm logsumexp all any aminmax nansum nanmean cumsum cumprod cummax cummin median nanmedian
    kthvalue mode sort argsort msort topk unique unique_consecutive count_nonzero view view_as reshape reshape_as
    transpose t permute squeeze unsqueeze expand expand_as broadcast_to broadcast_tensors narrow select diagonal
    unbind split split_with_sizes chunk unfold as_strided movedim flatten unflatten ravel view_as_real
    view_as_complex T H mT mH tensor_split hsplit vsplit dsplit atleast_1d atleast_2d atleast_3d sum_to_size
    __getitem__ index_put index_select index_add index_copy index_fill masked_fill masked_select masked_scatter
    gather scatter scatter_add scatter_reduce take put take_along_dim nonzero argwhere cat stack hstack vstack
    dstack column_stack repeat tile roll flip fliplr flipud rot90 repeat_interleave tril triu diag diagflat
    diag_embed trace meshgrid tril_indices triu_indices matmul mm bmm mv dot vdot outer inner einsum tensordot addmm
    addmv addr addbmm baddbmm softmax log_softmax nn.functional.softmin nn.functional.normalize
    nn.functional.cosine_similarity nn.functional.mse_loss nn.functional.l1_loss nn.functional.smooth_l1_loss
    nn.functional.huber_loss nn.functional.nll_loss nn.functional.cross_entropy nn.functional.binary_cross_entropy
    nn.functional.binary_cross_entropy_with_logits nn.functional.kl_div nn.functional.linear nn.functional.conv1d
    nn.functional.conv2d nn.functional.max_pool1d nn.functional.max_pool2d nn.functional.avg_pool1d
    nn.functional.avg_pool2d nn.functional.batch_norm nn.functional.layer_norm nn.functional.embedding
    nn.functional.dropout nn.functional.one_hot nn.functional.pad linalg.inv linalg.solve linalg.det linalg.slogdet
    linalg.cholesky linalg.norm linalg.vector_norm linalg.matrix_norm clone contiguous item to bool byte char short
    int long half float double bfloat16 cfloat cdouble zeros ones full empty eye arange linspace logspace zeros_like
    ones_like full_like empty_like scalar_tensor new_zeros new_ones new_full new_empty fill zero_ resize_ resize_as_
    rand_like randn randn_like randint randint_like normal bernoulli multinomial uniform exponential
    cauchy geometric log_normal
""".split()

# The results of these functions are uninitialized memory.
UNINITIALISED = frozenset(
    "empty empty_like new_empty empty_strided new_empty_strided empty_permuted resize_ resize_as_".split()
)

# PyTorch does not define which of several equal elements these functions choose.
SELECTING = frozenset("sort argsort msort topk kthvalue median nanmedian mode".split())

DTYPES = (
    torch.float64,
    torch.float32,
    torch.int64,
    torch.bool,
    torch.complex128,
    torch.bfloat16,
    torch.float16,
    torch.int32,
    torch.uint8,
    torch.complex64,
    torch.complex32,
)

_LARGE = 20_000

# Operators that PyTorch's tables call with another order of arguments than the function of this name, and methods that differ
# from the function of the same name.
_CALLS: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "einsum": lambda module: lambda operands, equation: module.einsum(equation, operands),
    "where": lambda module: lambda self, condition, other, **options: module.where(condition, self, other, **options),
    "nn.functional.embedding": lambda module: (
        lambda weight, index, **options: module.nn.functional.embedding(index, weight, **options)
    ),
    "nn.functional.embedding_bag": lambda module: (
        lambda weight, index, **options: module.nn.functional.embedding_bag(index, weight, **options)
    ),
    "linalg.pinv.singular": lambda module: lambda left, right: module.linalg.pinv(left @ right.mT),
    "T": lambda module: lambda self: self.T,
    "H": lambda module: lambda self: self.H,
    "mT": lambda module: lambda self: self.mT,
    "mH": lambda module: lambda self: self.mH,
    "uniform": lambda module: lambda self, *args, **options: self.uniform_(*args, **options),
    "exponential": lambda module: lambda self, *args, **options: self.exponential_(*args, **options),
    "cauchy": lambda module: lambda self, *args, **options: self.cauchy_(*args, **options),
    "geometric": lambda module: lambda self, *args, **options: self.geometric_(*args, **options),
    "log_normal": lambda module: lambda self, *args, **options: self.log_normal_(*args, **options),
    "normal.in_place": lambda module: lambda self, *args, **options: self.normal_(*args, **options),
    "polygamma": lambda module: lambda self, n, **options: module.polygamma(n, self, **options),
    "slice": lambda module: module.ops.aten.slice,
    "max_pool2d_with_indices_backward": lambda module: functools.partial(_max_pool_backward, module),
    **{
        name: lambda module, name=name: getattr(module.ops.aten, name)
        for name in (
            "_batch_norm_with_update",
            "_softmax_backward_data",
            "_upsample_bilinear2d_aa",
            "native_dropout_backward",
        )
    },
    **{
        f"_segment_reduce.{kind}": lambda module: (
            lambda data, *args, **options: module.segment_reduce(data, *args, **options)
        )
        for kind in ("lengths", "offsets")
    },
}


def _max_pool_backward(module: Any, input: Any, *, return_indices: bool, **options: Any) -> Any:
    """Return the gradient of a pooling with these options for an output gradient of ones."""
    sizes = [options[name] for name in ("kernel_size", "stride", "padding", "dilation", "ceil_mode")]
    sizes[1] = sizes[0] if sizes[1] is None else sizes[1]
    kernel, stride, padding, dilation = ([each] * 2 if isinstance(each, int) else list(each) for each in sizes[:4])
    found, indices = module.nn.functional.max_pool2d_with_indices(input, *sizes)
    return module.ops.aten.max_pool2d_with_indices_backward(
        module.ones_like(found), input, kernel, stride, padding, dilation, sizes[4], indices
    )


def _leading(vectors: Any, count: int, dim: int) -> Any:
    return vectors.narrow(dim, 0, count).abs()


# Compare absolute values of vectors that are unique only up to signs or phases. Omit vectors that are not unique.
_UP_TO_PHASES: dict[str, Callable[..., Any]] = {
    "linalg.eigh": lambda values, vectors: (values, vectors.abs()),
    "linalg.svd": lambda u, s, vh: (_leading(u, s.shape[-1], -1), s, _leading(vh, s.shape[-1], -2)),
    "linalg.qr": lambda q, r: (_leading(q, min(q.shape[-2:]), -1) if q.ndim > 1 else q, r.abs()),
    "qr": lambda q, r: (q.abs(), r.abs()),
    "svd": lambda u, s, v: (_leading(u, s.shape[-1], -1), s, _leading(v, s.shape[-1], -1)),
    "linalg.eig": lambda values, vectors: (values, vectors.abs()),
}
METHODS = frozenset(
    """
    to contiguous item sum_to_size expand expand_as view view_as reshape_as unfold new_zeros new_ones new_full
    new_empty bool byte char short int long half float double bfloat16 cfloat cdouble repeat resize_ resize_as_
    zero_ chalf
""".split()
)


@dataclass(frozen=True)
class Sample:
    """Arguments of one call, as PyTorch tensors."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def build(
        self, module: Any, *, requires_grad: bool | None = None
    ) -> tuple[tuple[Any, ...], dict[str, Any], list[Any]]:
        """Return the arguments for `module`, and every tensor among them."""
        convert = Converter(module, requires_grad=requires_grad)
        return convert(self.args), convert(self.kwargs), convert.tensors

    def __str__(self) -> str:
        parts = [_describe(value) for value in self.args] + [
            f"{key}={_describe(value)}" for key, value in self.kwargs.items()
        ]
        return f"({', '.join(parts)})"


def key(op: Any) -> str:
    """Return `name`, or `name.variant` for operators that PyTorch lists more than once."""
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


@cache
def operators() -> dict[str, Any]:
    """Return the operators to compare: the operators named above, and all others that PyTorch lists and the candidate has."""
    named = frozenset(NAMES)
    skipped = (
        "polygamma",  # PyTorch takes minutes for large negative arguments
        "nn.functional.triplet_margin_with_distance_loss",  # the samples contain modules of PyTorch
        "jiterator",
        "to_sparse",  # tested in tests/parity/operators/test_sparse.py
        "special.",  # the samples of PyTorch's polynomials take minutes
        "signal.",
    )
    chosen = {}
    for op in op_db:
        extra = candidate is not torch and not op.name.startswith(skipped) and function(op, candidate) is not None
        if (op.name in named or extra) and dtypes(op):
            chosen[key(op)] = op
    return chosen


def dtypes(op: Any) -> list[torch.dtype]:
    """Return the dtypes that an operator accepts. The most informative dtypes are first."""
    return [dtype for dtype in DTYPES if dtype in op.dtypes]


def function(op: Any, module: Any) -> Callable[..., Any] | None:
    """Return the function of `module` that `op` names, or None."""
    adapt = _CALLS.get(key(op)) or _CALLS.get(op.name)
    if adapt is not None:
        return adapt(module)
    if op.name in METHODS:
        return getattr(module.Tensor, op.name, None)
    found = lookup(module, op.name)
    determined = _UP_TO_PHASES.get(op.name)
    if found is None or determined is None:
        return found
    return lambda *args, **options: determined(*found(*args, **options))


def samples(op: Any, dtype: torch.dtype, limit: int, *, requires_grad: bool = False) -> list[Sample]:
    """Return at most `limit` of PyTorch's sample inputs of an operator, evenly distributed, and the same in each call."""
    return _spread(_all_samples(key(op), dtype, requires_grad), limit)


def _spread(items: list[Sample], limit: int) -> list[Sample]:
    if len(items) <= limit:
        return items
    return [items[position] for position in numpy.linspace(0, len(items) - 1, limit).astype(int)]


@lru_cache(maxsize=32)
def _all_samples(name: str, dtype: torch.dtype, requires_grad: bool) -> list[Sample]:
    op = operators()[name]
    seed(f"{name} {dtype}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = op.sample_inputs_func(op, "cpu", dtype, requires_grad)
        # Elementwise and reduction operators also have a longer list with special values, broadcasting and strides.
        more = () if requires_grad else op.reference_inputs("cpu", dtype) if op.reference_inputs_func else ()
        return list(_plain(itertools.chain(own, itertools.islice(more, 400))))


def _plain(inputs: Iterator[Any]) -> Iterator[Sample]:
    for sample in inputs:
        tensors = [
            leaf for leaf in _leaves((sample.input, sample.args, sample.kwargs)) if isinstance(leaf, torch.Tensor)
        ]
        if sum(tensor.numel() for tensor in tensors) > _LARGE or any(
            tensor.layout != torch.strided for tensor in tensors
        ):
            continue
        yield Sample((sample.input, *sample.args), sample.kwargs)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, dict):
        yield from _leaves(list(value.values()))
    else:
        yield value


def seed(text: str) -> None:
    """Seed every generator that sample functions draw from."""
    number = zlib.crc32(text.encode())
    random.seed(number)
    numpy.random.seed(number)
    torch.manual_seed(number)


def has_ties(sample: Sample) -> bool:
    """Return whether the first argument contains a number twice."""
    return len(torch.unique(sample.args[0])) < sample.args[0].numel()


def selected(op: Any, sample: Sample, result: Any) -> Any:
    """Return the result with indices replaced by the elements that they select."""
    if isinstance(result, tuple | list) and len(result) == 2:
        return [result[0], _taken(op, sample, result[1])]
    return _taken(op, sample, result) if op.name == "argsort" else result


def _taken(op: Any, sample: Sample, indices: Any) -> torch.Tensor:
    positional = sample.args[2:] if op.name in ("topk", "kthvalue") else sample.args[1:]
    dim = sample.kwargs.get("dim", positional[0] if positional else -1)
    taken, values = torch.from_numpy(to_array(indices)), sample.args[0].detach()
    if values.dim() == 0:
        return values + 0 * taken
    reduced = taken.dim() < values.dim()
    found = values.take_along_dim(taken.unsqueeze(dim) if reduced else taken, dim)
    return found.squeeze(dim) if reduced else found


def _describe(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        layout = "" if value.is_contiguous() else f", strides {value.stride()}"
        content = f" = {value.tolist()}" if value.numel() <= 4 and not value.is_conj() else ""
        return f"<{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}{layout}{content}>"
    if isinstance(value, list | tuple) and not isinstance(value, torch.Size):
        inside = ", ".join(_describe(item) for item in value)
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    return repr(value)
