"""`vmap` over PyTorch's own sample inputs: each operator gives the results of a loop over the batch."""

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy
import pytest

torch = pytest.importorskip("torch")

import adjoint
from adjoint.transforms.tree import tree_flatten as flatten
from adjoint.transforms.tree import tree_unflatten as unflatten
from tests.parity import samples
from tests.parity.conversion import to_array

MOST = 6
EXAMPLES = 3

# The test cannot compare: random numbers, uninitialised memory, results that are not tensors or whose size depends on values,
# offsets into the memory of all examples, functions that read values, sparse tensors, statistics without elements.
LEFT_OUT = frozenset(
    """
    allclose equal item nonzero argwhere masked_select unique unique_consecutive multinomial normal bernoulli uniform
    exponential randn_like rand_like randint_like nn.functional.dropout empty_like new_empty empty resize_ resize_as_
    tensor_split repeat_interleave normal.in_place cauchy geometric log_normal new_empty_strided empty_strided
    nn.functional.multi_head_attention_forward
    nn.functional.dropout2d nn.functional.dropout3d nn.functional.alpha_dropout nn.functional.feature_alpha_dropout
    nn.functional.rrelu nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d
    bincount histc histogram histogramdd to view_as_complex is_nonzero
    as_strided as_strided.partial_views as_strided_copy linspace nn.functional.gaussian_nll_loss
    sparse.sampled_addmm sparse.mm native_batch_norm _native_batch_norm_legit
""".split()
)


def cases() -> list[str]:
    return [
        name
        for name, op in samples.operators().items()
        if op.name not in LEFT_OUT and torch.float64 in op.supported_dtypes("cpu")
    ]


def examples_of(tensor: Any) -> Any:
    """Return a stack of `tensor` and similar tensors with other values."""
    if not tensor.is_floating_point():
        return adjoint.stack([tensor] * EXAMPLES)
    return adjoint.stack([tensor * (1 + 0.25 * index) for index in range(EXAMPLES)])


def gradients_of(run: Any, chosen: list[int]) -> Any:
    """Return a function that computes the gradients of all results of `run` with respect to the arguments `chosen`."""

    def total(*args: Any, **kwargs: Any) -> Any:
        results = [part for part in flatten(run(*args, **kwargs))[0] if part.is_floating_point()]
        return sum((part * (1 + part.detach())).sum() for part in results)

    return adjoint.func.grad(total, tuple(chosen))


def in_numbers(tensor: Any) -> Any:
    """Return the elements in a dtype that NumPy can compare. Complex halves are converted to complex64."""
    array = to_array(tensor)
    return array.astype(numpy.complex64) if tensor.dtype is adjoint.complex32 else array


def differs(op: Any, sample: samples.Sample, gradients: bool = False) -> str | None:
    run = samples.function(op, adjoint)
    args, kwargs, _ = sample.build(adjoint, requires_grad=False)
    leaves, structure = flatten(args)
    chosen = [
        index
        for index, leaf in enumerate(leaves)
        if isinstance(leaf, adjoint.Tensor) and (leaf.is_floating_point() or op.name in ("gather", "take"))
    ]
    if not chosen:
        return None
    for mapped in {tuple(chosen), tuple(chosen[:1]), tuple(chosen[-1:])}:
        batch = [examples_of(leaf) if index in mapped else leaf for index, leaf in enumerate(leaves)]

        def call(*given: Any) -> Any:
            return run(*unflatten(list(given), structure), **kwargs)

        if gradients:
            call = gradients_of(call, [index for index in chosen if leaves[index].is_floating_point()])

        try:
            expected = [
                call(*(leaf[number] if index in mapped else leaf for index, leaf in enumerate(batch)))
                for number in range(EXAMPLES)
            ]
        except Exception:
            return None  # other tests compare errors
        if not all(isinstance(leaf, adjoint.Tensor) for leaf in flatten(expected[0])[0]):
            return None
        dims = tuple(0 if index in mapped else None for index in range(len(leaves)))
        try:
            found = adjoint.vmap(call, in_dims=dims)(*batch)
        except Exception as error:
            if any(
                words in str(error) for words in ("Batch norm got a batched tensor as input", "called random operation")
            ):
                return None  # PyTorch refuses the same call
            return f"mapped over {mapped}: raised {type(error).__name__}: {str(error)[:200]}"
        columns = [flatten(each)[0] for each in expected]
        for place, result in enumerate(flatten(found)[0]):
            for number in range(EXAMPLES):
                wanted = columns[number][place]
                if to_array(result).shape[1:] != to_array(wanted).shape:
                    return (
                        f"mapped over {mapped}: shape {to_array(result).shape[1:]}, expected {to_array(wanted).shape}"
                    )
                if not numpy.allclose(in_numbers(result)[number], in_numbers(wanted), 1e-7, 1e-7, equal_nan=True):
                    return f"mapped over {mapped}: example {number} of result {place} differs"
                if result.dtype != wanted.dtype:
                    return f"mapped over {mapped}: dtype {result.dtype}, expected {wanted.dtype}"
    return None


SLOW = {"grid_sampler_3d"}
"""Functions whose samples take many seconds. The quick tier tests the same functions in two dimensions."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.thorough] if name in SLOW else []) for name in cases()]
)
def test_vmap_is_a_loop(name: str) -> None:
    op = samples.operators()[name]
    failures = []
    for given in itertools.islice(op.sample_inputs("cpu", torch.float64, requires_grad=False), MOST):
        sample = samples.Sample((given.input, *given.args), given.kwargs)
        difference = differs(op, sample)
        if difference:
            failures.append(f"  {sample}: {difference}")
    assert not failures, f"{len(failures)} samples differ:\n" + "\n".join(failures[:5])


@pytest.mark.parametrize("name", cases())
@pytest.mark.thorough
def test_gradients_of_examples_are_a_loop(name: str) -> None:
    op = samples.operators()[name]
    if not op.supports_autograd:
        pytest.skip("no gradients")
    failures = []
    for given in itertools.islice(op.sample_inputs("cpu", torch.float64, requires_grad=False), MOST):
        sample = samples.Sample((given.input, *given.args), given.kwargs)
        difference = differs(op, sample, gradients=True)
        if difference:
            failures.append(f"  {sample}: {difference}")
    assert not failures, f"{len(failures)} samples differ:\n" + "\n".join(failures[:5])


ELSEWHERE = {
    "exp": lambda a: a.exp(),
    "sum": lambda a: a.sum(),
    "slice": lambda a: a[1:],
    "view": lambda a: a.view(-1),
    "t": lambda a: a.t(),
    "cumprod": lambda a: a.cumprod(0),
    "softmax": lambda a: a.softmax(0),
    "sort": lambda a: a.sort()[0],
    "clone": lambda a: a.clone(),
    "mul_": lambda a: a.mul_(2),
    "setitem": lambda a: a.__setitem__(0, 1.0),
    "matmul": lambda a: a @ a,
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_another_thread_sees_of_a_batch_is_refused(name: str) -> None:
    use = ELSEWHERE[name]
    for module in (torch, adjoint):
        with pytest.raises(RuntimeError, match="Either your tensor may have escaped"):
            module.vmap(lambda a: ThreadPoolExecutor(1).submit(use, a).result())(module.rand(2, 3, 3))
        escaped: list[Any] = []
        module.vmap(lambda a: (escaped.append(a), a)[1])(module.rand(2, 3, 3))  # noqa: B023
        with pytest.raises(RuntimeError, match="Either your tensor may have escaped"):
            use(escaped[0])


@pytest.mark.parametrize("rows", [3, 40_000])
@pytest.mark.parametrize("dim", [0, -1])
def test_dtypes_are_mixed_within_batches_of_any_size(rows: int, dim: int) -> None:
    given = numpy.random.default_rng(0).random((rows, 2, 2))
    answers = []
    for module in (torch, adjoint):
        shared = module.ones(2, dtype=module.float64, requires_grad=True)
        result = module.vmap(lambda a: (a - 1j * shared) * a.float(), dim, dim)(module.from_numpy(given))  # noqa: B023
        result.abs().sum().backward()
        answers.append((result.detach().numpy(), shared.grad.numpy()))
    for one, two in zip(*answers, strict=True):
        numpy.testing.assert_allclose(one, two, 1e-6)
