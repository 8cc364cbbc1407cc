"""The calls whose arguments differ between PyTorch's dispatcher and the declarations here, translated in both directions.

`FORMS` translates the calls of operators. `LEAVES` translates the calls of hand-written functions that are one operator
in PyTorch. `FUNCTIONS` computes PyTorch's operators without a counterpart here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import dtypes
from ..device import cpu, strided
from ..dispatch.decorators import tensors
from ..tensor import Tensor
from .schemas import REDUCTIONS

Values = dict[str, Any]
Named = tuple[str, Values]

LARGEST = 2**63 - 1
"""The end of a slice without an end, in PyTorch's form."""


# --- operators --------------------------------------------------------------------------------------------------


OWN = """
    scatter_combined scatter_number_combined
""".split()
"""Operators that compute the same as a PyTorch operator from other arguments. These operators have their own names."""


def _softmax(name: str) -> Callable[[Values], Named]:
    return lambda values: (name, {"self": values["self"], "dim": values["dim"], "half_to_float": False})


def _named(name: str, *left_out: str, **names: str) -> Callable[[Values], Named]:
    """Return the operator `name`, with arguments renamed, and without the arguments `left_out`."""
    return lambda values: (
        name,
        {names.get(each, each): value for each, value in values.items() if each not in left_out},
    )


def _losses(name: str) -> Callable[[Values], Named]:
    order = ("self", "target", "weight", "reduction", "ignore_index")
    return lambda values: (name, {each: values[each] for each in order})


def _softmax_backward(name: str) -> Callable[[Values], Named]:
    return lambda values: (name, {**values, "input_dtype": values["output"].dtype})


def _nll_backward(name: str) -> Callable[[Values], Named]:
    order = ("grad_output", "self", "target", "weight", "reduction", "ignore_index", "total_weight")

    def form(values: Values) -> Named:
        target, weight = values["target"], values["weight"]
        counted = target.ne(values["ignore_index"])
        kept = counted if weight is None else tensors.where(counted, weight[target.clamp(min=0)], 0)
        total = kept.sum().to(values["log_probs"].dtype)
        given = {**values, "grad_output": values["self"], "self": values["log_probs"], "total_weight": total}
        return name, {each: given[each] for each in order}

    return form


def _log_sigmoid_backward(values: Values) -> Named:
    return "log_sigmoid_backward", {**values, "buffer": tensors.exp(-values["self"].abs())}


def _group_norm(values: Values) -> Named:
    shape = values["input"].shape
    counts = {"N": shape[0], "C": shape[1], "HxW": math.prod(shape[2:])}
    return "native_group_norm", {**values, **counts}


def _upsampled(name: str) -> Callable[[Values], Named]:
    letters = {"1d": ("scales",), "2d": ("scales_h", "scales_w"), "3d": ("scales_d", "scales_h", "scales_w")}[
        name.removesuffix("_aa")[-2:]
    ]

    def form(values: Values) -> Named:
        given = {each: values[each] for each in ("self", "output_size")}
        if "nearest" not in name:
            given["align_corners"] = values["align_corners"]
        return name, {**given, **dict(zip(letters, values["scales"] or (), strict=False))}

    return form


def _slice(values: Values) -> Named:
    end = values["end"]
    return "slice", {**values, "end": LARGEST if end is None else end}


def _to_dtype(values: Values) -> Named:
    given = {"self": values["self"], "dtype": values["dtype"]}
    if values.get("memory_format") is not None:
        given["memory_format"] = values["memory_format"]
    return "_to_copy", given


def _index_backward(values: Values) -> Named:
    given = {"self": values["self"].new_zeros(values["shape"]), "indices": values["indices"]}
    return "index_put", {**given, "values": values["self"], "accumulate": True}


def _pinv(values: Values) -> Named:
    given = {name: values[name] for name in ("self", "hermitian")}
    if values["atol"] is not None or values["rtol"] is not None:
        for name in ("atol", "rtol"):
            value = values[name]
            if not isinstance(value, Tensor):
                value = tensors.full((), 0.0 if value is None else float(value), dtype=dtypes.float64)
            given[name] = value
    return "linalg_pinv", given


def _where(values: Values) -> Named:
    for name, other in (("self", "other"), ("other", "self")):
        if isinstance(values[other], Tensor) and not isinstance(values[name], Tensor):
            values[name] = tensors.scalar_tensor(values[name], dtype=values[other].dtype)
    return "where", values


FORMS: dict[str, Callable[[Values], Named]] = {
    "softmax_of": _softmax("_softmax"),
    "log_softmax_of": _softmax("_log_softmax"),
    "nll_loss_of": _losses("nll_loss_forward"),
    "nll_loss2d_of": _losses("nll_loss2d_forward"),
    "slice": _slice,
    "to_dtype": _to_dtype,
    "reshape_alias": _named("view"),
    "fill_tensor": _named("fill"),
    **{name: _named(name) for name in OWN},
    "prelu_kernel": _named("_prelu_kernel"),
    "roll": lambda values: ("roll", values if values["self"].ndim else {**values, "dims": []}),
    "uniform": _named("uniform", low="from", high="to"),
    "random_between": _named("random", low="from", high="to"),
    "copy": _named("copy", other="src"),
    "select_where": _where,
    "matrix_power": _named("linalg_matrix_power"),
    "full_of_number": _named("fill"),
    "full_of_tensor": _named("fill"),
    "softmax_backward": _softmax_backward("_softmax_backward_data"),
    "log_softmax_backward": _softmax_backward("_log_softmax_backward_data"),
    "nll_loss_backward": _nll_backward("nll_loss_backward"),
    "nll_loss2d_backward": _nll_backward("nll_loss2d_backward"),
    "logsigmoid_backward": _log_sigmoid_backward,
    "native_group_norm": _group_norm,
    "index_backward": _index_backward,
    "linalg_eigh": _named("_linalg_eigh", self="A"),
    "linalg_svd": _named("_linalg_svd", self="A"),
    "cdist_direct": lambda values: ("_cdist_forward", {**values, "compute_mode": None}),
    "logsigmoid": _named("log_sigmoid_forward"),
    "rrelu_with_noise": lambda values: ("rrelu_with_noise", {**values, "training": True}),
    "rrelu_backward": lambda values: (
        "rrelu_with_noise_backward",
        {**values, "lower": 1 / 8, "upper": 1 / 3, "training": True, "self_is_result": False},
    ),
    "rrelu_mean": _named("leaky_relu"),
    "rrelu_mean_in_place": _named("leaky_relu"),
    "max_unpool3d_of": lambda values: ("max_unpool3d", {**values, "stride": [1] * 3, "padding": [0] * 3}),
    "linalg_pinv": _pinv,
    "linalg_lstsq": _named("linalg_lstsq", "vector"),
    **{
        f"upsample_{kind}": _upsampled(f"{'_' * kind.endswith(('aa', 'exact1d', 'exact2d', 'exact3d'))}upsample_{kind}")
        for kind in """
            nearest1d nearest2d nearest3d linear1d bilinear2d trilinear3d bicubic2d nearest_exact1d nearest_exact2d
            nearest_exact3d bilinear2d_aa bicubic2d_aa lanczos2d_aa
        """.split()
    },
}
"""PyTorch's operator and its arguments, computed from the declaration's arguments by name.

The keys are operator names.
"""


# --- functions written by hand ----------------------------------------------------------------------------------


def _size(values: Values) -> list[int]:
    """Return the size that a function was given, as one argument or as several."""
    size = values.pop("size", None)
    several = values.pop("sizes", ())
    if size is None:
        size = several[0] if len(several) == 1 and isinstance(several[0], (list, tuple)) else several
    return [size] if isinstance(size, int) else list(size)


def _made(values: Values, *order: str, own: bool = False) -> Values:
    """Return the arguments of a function that creates a tensor: the arguments in `order`, then dtype, layout and device.

    `own`: whether the device is the device of another tensor, unless a device is given.
    """
    made: Values = {name: values[name] for name in order}
    for name in ("generator", "dtype", "layout"):
        if values.get(name) is not None:
            made[name] = values[name]
    if not own or values.get("device") is not None:
        made["device"] = values.get("device") or cpu
    made["pin_memory"] = False
    if values.get("memory_format") is not None:
        made["memory_format"] = values["memory_format"]
    return made


def _sized(name: str, *others: str) -> Callable[[Values], Named]:
    return lambda values: (name, _made({**values, "size": _size(values)}, "size", *others))


def _like(name: str, *others: str) -> Callable[[Values], Named]:
    def form(values: Values) -> Named:
        values["self"] = values.pop("input")
        if "size" in others:
            values["size"] = _size(values)
        return name, _made(values, "self", *others, own=True)

    return form


def _listed(name: str, *order: str) -> Callable[[Values], Named]:
    return lambda values: (name, _made(values, *order))


def _arange(values: Values) -> Named:
    bounds = list(values.pop("bounds", ()))
    given = dict(zip(("end",) if len(bounds) == 1 else ("start", "end", "step"), bounds, strict=False))
    given.update({name: values[name] for name in ("start", "end", "step") if values.get(name) is not None})
    return "arange", {**given, **_made(values)}


def _randint(values: Values) -> Named:
    arguments = list(values.pop("arguments", ()))
    size = arguments.pop() if arguments and isinstance(arguments[-1], (list, tuple)) else values["size"]
    low, high = values.get("low") or 0, values.get("high")
    if arguments:
        low, high = (low, arguments[0]) if len(arguments) == 1 else arguments[:2]
    from_0 = not low and len(arguments) < 2
    return "randint", {**({} if from_0 else {"low": low}), "high": high, "size": list(size), **_made(values)}


def _eye(values: Values) -> Named:
    return "eye", _made(values, *(("n",) if values.get("m") is None else ("n", "m")))


def _first_as_self(name: str) -> Callable[[Values], Named]:
    return lambda values: (name, {"self": next(iter(values.values()))})


def _all(name: str) -> Callable[[Values], Named]:
    """Pass all arguments. PyTorch calls the first one `self`."""
    return lambda values: (name, {"self": values.pop(next(iter(values))), **values})


def _set(values: Values) -> Named:
    source, window = values["source"], values["window"]
    given: Values = {"self": values["input"]}
    if source is not None:
        given["source"] = source
    if window is not None:
        given.update(zip(("storage_offset", "size", "stride"), window, strict=True))
    return "set_", given


def _randint_like(values: Values) -> Named:
    bounds = values.pop("bounds")
    low, high = (values["low"], *bounds) if len(bounds) == 1 else bounds or (values["low"], values["high"])
    given = {**values, "self": values["input"], "high": high, **({"low": low} if low else {})}
    if given["layout"] is strided:
        del given["layout"]
    return "randint_like", _made(given, "self", *(["low"] if low else []), "high", own=True)


def _multinomial(values: Values) -> Named:
    values["self"] = values.pop("input")
    return "multinomial", {name: value for name, value in values.items() if value is not None}


def _repeat_interleave(values: Values) -> Named | None:
    if values["repeats"] is not None:
        return None
    size = values["output_size"]
    return "repeat_interleave", {"repeats": values["input"], **({} if size is None else {"output_size": size})}


def _histogram(name: str) -> Callable[[Values], Named]:
    return lambda values: (
        name,
        {
            "self": values.pop("input"),
            **{key: each for key, each in values.items() if each is not None and each is not False},
        },
    )


LEAVES: dict[str, Callable[[Values], Named | None]] = {
    **{name: _sized(name) for name in ("ones", "zeros", "empty", "rand", "randn")},
    **{name: _like(name) for name in ("ones_like", "zeros_like", "empty_like", "rand_like", "randn_like")},
    **{name: _like(name, "size") for name in ("new_zeros", "new_ones", "new_empty")},
    "full": _sized("full", "fill_value"),
    "full_like": _like("full_like", "fill_value"),
    "new_full": _like("new_full", "size", "fill_value"),
    "new_empty_strided": _like("new_empty_strided", "size", "stride"),
    "arange": _arange,
    "randint": _randint,
    "eye": _eye,
    "linspace": _listed("linspace", "start", "end", "steps"),
    "logspace": _listed("logspace", "start", "end", "steps", "base"),
    "randperm": lambda values: ("randperm", _made({**values, "dtype": None}, "n")),
    "empty_strided": _listed("empty_strided", "size", "stride"),
    "scalar_tensor": _listed("scalar_tensor", "s"),
    "detach": _first_as_self("detach"),
    "detach_": _first_as_self("detach_"),
    "item": _first_as_self("_local_scalar_dense"),
    "is_nonzero": _first_as_self("_local_scalar_dense"),
    "nonzero": lambda values: None if values["as_tuple"] else ("nonzero", {"self": values["input"]}),
    "isclose": _all("isclose"),
    "_linalg_check_errors": lambda values: ("_linalg_check_errors", values),
    "repeat_interleave": _repeat_interleave,
    "histogram": _histogram("histogram"),
    "histogramdd": _histogram("histogramdd"),
    "equal": _all("equal"),
    "allclose": _all("allclose"),
    "resize_memory": _all("resize_"),
    "resize_memory_as": _all("resize_as_"),
    "move_to_memory": _set,
    "read_as": _all("view"),
    "is_same_size": _all("is_same_size"),
    "randint_like": _randint_like,
    "multinomial": _multinomial,
}
"""PyTorch's operator and its arguments, computed from the function's arguments by name. The keys are function names.

The value is None if the function consists of other operators."""


# --- operators of PyTorch's -------------------------------------------------------------------------------------


def _copied(self: Any, *, dtype: Any = None, device: Any = None, memory_format: Any = None, **others: Any) -> Tensor:
    made = self.to(dtype=dtype or self.dtype, device=device, memory_format=memory_format)
    return made.clone() if made is self else made


def _indexed(self: Tensor, indices: Any) -> Tensor:
    if not indices:
        raise IndexError("at least one index must be provided")
    return self[tuple(slice(None) if each is None else each for each in indices)]


def _index_put(self: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    return tensors.put_at(self.clone(), indices, values, accumulate)


def _index_put_(self: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    return tensors.put_at(self, indices, values, accumulate)


def _loss(name: str) -> Callable[..., Any]:
    def function(self: Tensor, target: Tensor, weight: Any, reduction: int, ignore_index: int) -> Any:
        return getattr(tensors, name)(self, target, weight, ignore_index, REDUCTIONS[reduction])

    return function


def _loss_backward(name: str) -> Callable[..., Any]:
    def function(
        grad_output: Tensor, self: Tensor, target: Tensor, weight: Any, reduction: int, ignore_index: int, total: Tensor
    ) -> Any:
        return getattr(tensors, name)(grad_output, self, target, weight, ignore_index, REDUCTIONS[reduction])

    return function


def _number_of(self: Tensor) -> Any:
    if not self.numel():
        raise RuntimeError("_local_scalar_dense: Empty tensor not supported")
    return self.item()


def _tangent_of_base(self: Tensor, other: Tensor, *, self_num_batch_dims: int = 0) -> Tensor:
    """Return zeros with the first sizes of `self`, followed by the sizes and strides of `other` in memory of the same size."""
    sizes, count = tuple(self.shape[:self_num_batch_dims]), other.untyped_storage().nbytes() // other.element_size()
    memory = tensors.new_zeros(other.detach(), (*sizes, count))
    strides = (*memory.stride()[:-1], *other.stride())
    return memory.as_strided((*sizes, *other.shape), strides, other.storage_offset())


def _factors(A: Tensor, transposed: bool) -> tuple[Tensor, Tensor]:
    """Return the factors of elimination and the pivots that PyTorch's operators return for their derivatives."""
    LU, pivots, _ = tensors.linalg_lu_factor_ex(A.mT if transposed else A)
    return LU, pivots


def _solved(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> tuple[Tensor, ...]:
    result, info = tensors.linalg_solve_ex(A, B, left=left, check_errors=check_errors)
    return result, *_factors(A, False), info


def _unpooled(name: str) -> Callable[..., Any]:
    return lambda self, indices, output_size, *windows: getattr(tensors, name)(self, indices, tuple(output_size))


def _pooled(name: str) -> Callable[..., Any]:
    return lambda self, output_size: getattr(tensors, name)(self, output_size)


def _pooled_back(name: str) -> Callable[..., Any]:
    return lambda grad_output, self, kernel_size, output_size, indices: getattr(tensors, name)(
        grad_output, self, indices
    )


def _pseudoinverse(
    self: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Any:
    return tensors.pinv(self, rcond, hermitian, atol=atol, rtol=rtol)


def _rrelu_backward(
    grad_output: Tensor, self: Tensor, noise: Tensor, lower: float, upper: float, training: bool, self_is_result: bool
) -> Any:
    if training and upper - lower > 1e-6:
        return tensors.rrelu_backward(grad_output, self, noise)
    return tensors.leaky_relu_backward(grad_output, self, (lower + upper) / 2, self_is_result)


def _with_buffer(self: Tensor) -> tuple[Tensor, Tensor]:
    return tensors.logsigmoid(self), tensors.exp(-self.detach().abs())


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "_linalg_det": lambda A: (tensors.linalg_det(A), *_factors(A, True)),
    "_linalg_slogdet": lambda A: (*tensors.linalg_slogdet(A), *_factors(A, True)),
    "_linalg_solve_ex": _solved,
    "_linalg_svd": lambda A, full_matrices=False, compute_uv=True, *, driver=None: tensors.linalg_svd(
        A, full_matrices, compute_uv
    ),
    "_linalg_eigh": lambda A, UPLO="L", compute_v=True: tensors.linalg_eigh(A, UPLO, compute_v),
    **{f"max_unpool{dims}d": _unpooled(f"max_unpool{dims}d_of") for dims in (2, 3)},
    "log_sigmoid_forward": _with_buffer,
    "block_diag": lambda matrices: tensors.block_diagonal(list(matrices)),
    "unique_consecutive": lambda self, return_inverse=False, return_counts=False, dim=None: tensors.unique_runs(
        self, dim, return_inverse, return_counts
    ),
    "linalg_pinv": _pseudoinverse,
    "rrelu_with_noise_backward": _rrelu_backward,
    **{f"adaptive_avg_pool{dims}d": _pooled(f"adaptive_avg_pool{dims}d") for dims in (2, 3)},
    **{f"fractional_max_pool{dims}d_backward": _pooled_back(f"fractional_max_pool{dims}d_backward") for dims in (2, 3)},
    "_new_zeros_with_same_feature_meta": _tangent_of_base,
    "_softmax": lambda self, dim, half_to_float: tensors.softmax_of(self, dim),
    "_log_softmax": lambda self, dim, half_to_float: tensors.log_softmax_of(self, dim),
    "_softmax_backward_data": lambda grad_output, output, dim, input_dtype: tensors.softmax_backward(
        grad_output, output, dim
    ),
    "_log_softmax_backward_data": lambda grad_output, output, dim, input_dtype: tensors.log_softmax_backward(
        grad_output, output, dim
    ),
    "nll_loss_backward": _loss_backward("nll_loss_backward"),
    "nll_loss2d_backward": _loss_backward("nll_loss2d_backward"),
    "log_sigmoid_backward": lambda grad_output, self, buffer: tensors.logsigmoid_backward(grad_output, self),
    "native_group_norm": lambda input, weight, bias, N, C, HxW, group, eps: tensors.native_group_norm(
        input, weight, bias, group, eps
    ),
    "binary_cross_entropy_with_logits": lambda self, target, weight=None, pos_weight=None, reduction=1: (
        tensors.bce_with_logits(self, target, weight, pos_weight, REDUCTIONS[reduction])
    ),
    "_prelu_kernel": lambda self, weight: tensors.prelu_kernel(self, weight),
    "rsub": lambda self, other, alpha=1: (
        tensors.sub(other, self, alpha=alpha)
        if isinstance(other, Tensor)
        else tensors.rsub_number(self, other, alpha=alpha)
    ),
    "_adaptive_avg_pool2d_backward": lambda grad_output, self: tensors.adaptive_avg_pool2d_backward(grad_output, self),
    "_adaptive_avg_pool3d_backward": lambda grad_output, self: tensors.adaptive_avg_pool3d_backward(grad_output, self),
    "linalg_lstsq": lambda self, b, rcond=None, *, driver=None: tensors.linalg_lstsq(
        self, b, rcond, driver, b.ndim == self.ndim - 1
    ),
    "nll_loss_forward": _loss("nll_loss_of"),
    "nll_loss2d_forward": _loss("nll_loss2d_of"),
    "_to_copy": _copied,
    "index": _indexed,
    "index_put": _index_put,
    "index_put_": _index_put_,
    "lift_fresh": lambda self: self,
    "detach": lambda self: self.detach(),
    "_local_scalar_dense": _number_of,
    "slice": lambda self, dim=0, start=None, end=None, step=1: tensors.slice(
        self, dim, start, None if end == LARGEST else end, step
    ),
    "view": lambda self, size: self.view(size),
    "_unsafe_view": lambda self, size: self.reshape(size),
    "_unsafe_index": _indexed,
    "linalg_matrix_power": lambda self, n: tensors.matrix_power(self, n),
    "copy_": lambda self, src, non_blocking=False: self.copy_(src, non_blocking),
}
"""The function that computes a PyTorch operator, by the operator's name."""
