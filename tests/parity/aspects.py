"""The compared aspects of an operator. Each check runs one sample through both libraries and describes the differences."""

import os
import re
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy
import torch

from . import samples as source
from .candidate import candidate, seed
from .comparison import (
    Exact,
    dtype_name,
    errors_differ,
    graphs_differ,
    is_tensor,
    results_differ,
    tensors_in,
)
from .conversion import from_array, to_array
from .samples import Sample

# The time limit of a sample. A sample that takes longer counts as a difference. After several such samples, the operator is
# skipped.
SECONDS = 20
IDLE = 10
# A factor for the number of samples, which is 1 in an ordinary run.
THOROUGH = float(os.environ.get("ADJOINT_PARITY_THOROUGH", "1"))
ALL = slice(None)


@dataclass
class Outcome:
    """The result for one aspect of an operator: the number of samples that agree, and the messages of the samples that differ."""

    passed: int = 0
    failures: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.passed + len(self.failures)


@dataclass
class Call:
    """One call of an operator: its arguments, and its result or error."""

    tensors: list[Any]
    args: tuple[Any, ...]
    result: Any = None
    error: Exception | None = None


def call(module: Any, run: Callable[..., Any], sample: Sample, *, requires_grad: bool | None = None) -> Call:
    """Build the arguments for `module`, seed the generator, and call `run`."""
    args, kwargs, tensors = sample.build(module, requires_grad=requires_grad)
    made = Call(tensors, args)
    seed(module, 0)
    try:
        made.result = run(*args, **kwargs)
    except Exception as error:  # all exceptions are compared
        made.error = error
    return made


def both(op: Any, sample: Sample, *, requires_grad: bool | None = None) -> tuple[Call, Call]:
    """Call the operator in the candidate and in PyTorch."""
    run = source.function(op, candidate)
    actual = call(candidate, run or _missing(source.key(op)), sample, requires_grad=requires_grad)
    return actual, call(torch, source.function(op, torch), sample, requires_grad=requires_grad)


class Missing(Exception):
    """The error for operators that the candidate does not have."""


def _missing(name: str) -> Callable[..., Any]:
    def raise_missing(*args: Any, **kwargs: Any) -> None:
        raise Missing(f"{candidate.__name__} has no {name}")

    return raise_missing


def _outcome_differs(actual: Call, expected: Call) -> tuple[bool, str | None]:
    """Return whether a call has raised an error, and the difference of the errors. An error ends the comparison."""
    if expected.error is not None:
        if actual.error is None and _LACKS_DERIVATIVE.match(str(expected.error)):
            return True, None
        return True, errors_differ(actual.error, expected.error)
    if actual.error is not None:
        return True, f"raised {type(actual.error).__name__}: {_first_line(actual.error)}"
    return False, None


# The candidate may have a derivative that PyTorch lacks.
_LACKS_DERIVATIVE = re.compile(
    r"(the )?derivative for .* is not implemented|.* does not support automatic differentiation for"
)


def _first_line(error: BaseException) -> str:
    return str(error).split("\n", 1)[0][:300]


# Values


def value(op: Any, sample: Sample) -> str | None:
    """Compare values, dtypes, shapes and types of results, and check that no argument has changed."""
    actual, expected = both(op, sample, requires_grad=False)
    over, difference = _outcome_differs(actual, expected)
    if over:
        return difference
    known = op.name not in source.UNINITIALISED
    difference = results_differ(actual.result, expected.result, values=known)
    if difference and known and "elements differ" in difference:
        if op.name in source.SELECTING and source.has_ties(sample):
            actual.result, expected.result = (source.selected(op, sample, made.result) for made in (actual, expected))
        difference = results_differ(actual.result, expected.result, _exactly(op, sample, lambda made: made.result))
    if difference or not known:
        return difference
    changed = results_differ(actual.tensors, expected.tensors)
    if changed and "elements differ" in changed:
        changed = results_differ(actual.tensors, expected.tensors, _exactly(op, sample, lambda made: made.tensors))
    return changed and f"the arguments afterwards: {changed}"


def _exactly(
    op: Any, sample: Sample, read: Callable[[Call], Any], *, requires_grad: bool = False, run: Any = None
) -> Exact:
    """Return the values that `read` finds in PyTorch's call in double precision.

    The function repeats the call several times. For each repetition, it changes the last digits of less precise arguments. `run`:
    the function to call, if it is not the function of `op`.
    """
    run = run or source.function(op, torch)
    found = [
        read(call(torch, run, Sample(widen(sample.args), widen(sample.kwargs)), requires_grad=requires_grad))
        for widen in (_Widened(), *map(_Widened, range(_NEARBY)))
    ]
    return Exact(found[0], found[1:])


# The number of repetitions with arguments changed in their last digits.
_NEARBY = 16


class _Widened:
    """Convert arguments to double precision.

    Given a seed, change every element of a less precise tensor by one unit in its last digit, up or down at random.
    """

    def __init__(self, seed: int | None = None) -> None:
        self.generator = None if seed is None else torch.Generator().manual_seed(seed)

    def __call__(self, item: Any) -> Any:
        if isinstance(item, torch.Tensor):
            return self._tensor(item)
        if isinstance(item, torch.dtype) and item.is_floating_point:
            return torch.float64
        if isinstance(item, tuple | list) and not isinstance(item, torch.Size):
            return type(item)(self(part) for part in item)
        if isinstance(item, dict):
            return {name: self(part) for name, part in item.items()}
        return item

    def _tensor(self, tensor: torch.Tensor) -> torch.Tensor:
        if not (tensor.is_floating_point() or tensor.is_complex()):
            return tensor
        wide = tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)
        if self.generator is None or wide.dtype == tensor.dtype:
            return wide
        signs = torch.randint(2, tensor.shape, generator=self.generator) * 2 - 1
        return wide * (1 + torch.finfo(tensor.dtype).eps * signs)


# Views


def view(op: Any, sample: Sample) -> str | None:
    """Compare strides, offsets, shared memory, shared versions, and the identity of results with arguments."""
    actual, expected = both(op, sample, requires_grad=False)
    over, difference = _outcome_differs(actual, expected)
    if over:
        return difference
    pairs = list(zip(tensors_in(actual.result), tensors_in(expected.result), strict=True))
    for position, (one, two) in enumerate(pairs):
        difference = _same_window(one, two, actual.tensors, expected.tensors)
        if difference:
            return f"result {position}: {difference}"
    return _same_versions(op, pairs, actual.tensors, expected.tensors)


def _same_window(one: Any, two: torch.Tensor, inputs: list[Any], expected_inputs: list[torch.Tensor]) -> str | None:
    same = [one is tensor for tensor in inputs], [two is tensor for tensor in expected_inputs]
    if same[0] != same[1]:
        return f"is its argument: {same[0]}, expected {same[1]}"
    shared = _sharing(one, inputs), _sharing(two, expected_inputs)
    if shared[0] != shared[1]:
        return f"shares memory with arguments: {shared[0]}, expected {shared[1]}"
    if one._is_view() != two._is_view():
        return f"_is_view() is {one._is_view()}, expected {two._is_view()}"
    if not any(shared[1]) or two.is_conj() or two.is_neg():
        return None
    if tuple(one.stride()) != tuple(two.stride()):
        return f"strides {tuple(one.stride())}, expected {tuple(two.stride())} for shape {tuple(two.shape)}"
    if two.numel() and one.storage_offset() != two.storage_offset():
        return f"storage offset {one.storage_offset()}, expected {two.storage_offset()}"
    return None


def _sharing(tensor: Any, others: list[Any]) -> list[bool]:
    return [numpy.may_share_memory(to_array(tensor), to_array(other)) for other in others]


def _same_versions(
    op: Any, pairs: list[tuple[Any, Any]], inputs: list[Any], expected_inputs: list[torch.Tensor]
) -> str | None:
    """Write to every result in place, and compare values and versions of the arguments."""
    if any(two.is_conj() or two.is_neg() or two.numel() == 0 for _, two in pairs) or op.name in source.UNINITIALISED:
        return None
    for one, two in pairs:
        errors: list[Exception | None] = []
        for tensor in (one, two):
            try:
                tensor.zero_()
                errors.append(None)
            except Exception as error:  # all exceptions are compared
                errors.append(error)
        actual_error, expected_error = errors
        if expected_error is not None:
            return errors_differ(actual_error, expected_error, messages=True)
        if actual_error is not None:
            return f"writing to the result raised {actual_error!r}"
        if one._version != two._version:
            return f"result's version after writing to it {one._version}, expected {two._version}"
    for one, two in zip(inputs, expected_inputs, strict=True):
        if one._version != two._version:
            return f"argument's version after writing to the result {one._version}, expected {two._version}"
        difference = results_differ(one, two)
        if difference:
            return f"argument after writing to the result: {difference}"
    return None


def strides(op: Any, sample: Sample) -> str | None:
    """Compare strides of a result in new memory: PyTorch keeps the order of an argument's dimensions."""
    if any(_overlaps(tensor) for tensor in tensors_in([*sample.args, *sample.kwargs.values()])):
        return None
    actual, expected = both(op, sample, requires_grad=False)
    over, difference = _outcome_differs(actual, expected)
    if over:
        return difference
    for one, two in zip(tensors_in(actual.result), tensors_in(expected.result), strict=True):
        if two.numel() > 1 and _steps(one) != _steps(two) and not any(_sharing(two, expected.tensors)):
            return f"strides {tuple(one.stride())}, expected {tuple(two.stride())} for shape {tuple(two.shape)}"
    return None


def order(op: Any, sample: Sample) -> str | None:
    """Compare the strides of results for arguments whose dimensions lie in memory in reverse order."""
    return strides(op, Sample(_reversed(sample.args), _reversed(sample.kwargs)))


def _reversed(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.layout == torch.strided and value.dim() > 1:
        dims = tuple(range(value.dim()))[::-1]
        return value.detach().permute(dims).contiguous().permute(dims)
    if isinstance(value, dict):
        return {name: _reversed(item) for name, item in value.items()}
    return type(value)(_reversed(item) for item in value) if type(value) in (list, tuple) else value


def _overlaps(tensor: torch.Tensor) -> bool:
    """Return whether elements may share memory. The memory order of such dimensions is ambiguous."""
    span = 0
    for step, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1 and step <= span:
            return True
        span += step * (size - 1)
    return False


def _steps(tensor: Any) -> list[int]:
    return [step for step, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1]


# Graphs and gradients


def graph(op: Any, sample: Sample) -> str | None:
    """Compare `requires_grad`, and the names, edges and output numbers of the nodes."""
    actual, expected = both(op, sample, requires_grad=True)
    over, difference = _outcome_differs(actual, expected)
    if over:
        return difference
    if not is_tensor(expected.result) and not isinstance(expected.result, list | tuple):
        return None
    difference = results_differ(actual.result, expected.result, values=False)
    if difference:
        return difference
    for position, (one, two) in enumerate(zip(tensors_in(actual.result), tensors_in(expected.result), strict=True)):
        if one.is_leaf != two.is_leaf:
            return f"result {position}: is_leaf {one.is_leaf}, expected {two.is_leaf}"
        difference = graphs_differ(one, two)
        if difference:
            return f"result {position}: {difference}"
    return None


def grad(op: Any, sample: Sample) -> str | None:
    """Compare vector-Jacobian products with a fixed random cotangent."""
    return _gradients(op, sample, order=1)


def gradgrad(op: Any, sample: Sample) -> str | None:
    """Compare second derivatives: derivatives of the first vector-Jacobian product, by the arguments and the cotangent."""
    return _gradients(op, sample, order=2)


def _gradients(op: Any, sample: Sample, order: int) -> str | None:
    if op.name in source.SELECTING and source.has_ties(sample):
        return None
    actual, expected = both(op, sample, requires_grad=True)
    over, difference = _outcome_differs(actual, expected)
    if over:
        return difference
    first = _differentiate(op, candidate, actual, order)
    second = _differentiate(op, torch, expected, order)
    for grads in (first, second):
        if isinstance(grads, Exception):
            if isinstance(second, Exception):
                if not isinstance(first, Exception) and _LACKS_DERIVATIVE.match(str(second)):
                    return None
                return errors_differ(first if isinstance(first, Exception) else None, second)
            return f"backward raised {type(grads).__name__}: {_first_line(grads)}"
    difference = results_differ(first, second)
    if difference and "elements differ" in difference:
        exact = _exactly(op, sample, lambda made: _differentiate(op, torch, made, order), requires_grad=True)
        difference = results_differ(first, second, exact)
    return difference and f"gradients: {difference}"


def _differentiate(op: Any, module: Any, made: Call, order: int) -> Any:
    """Return gradients of the first or second order, or the error."""
    outputs = [tensor for tensor in tensors_in(made.result) if tensor.requires_grad]
    inputs = [tensor for tensor in made.tensors if tensor.requires_grad]
    if not outputs or not inputs:
        return []
    generator = numpy.random.default_rng(0)
    try:
        cotangents = [_random_like(module, output, generator) for output in outputs]
        if order == 1:
            return module.autograd.grad(outputs, inputs, cotangents, allow_unused=True)
        cotangents = [cotangent.requires_grad_() for cotangent in cotangents]
        grads = module.autograd.grad(outputs, inputs, cotangents, create_graph=True, allow_unused=True)
        again = [grad for grad in grads if grad is not None and grad.requires_grad]
        if not again:
            return [grads, None]
        seconds = [_random_like(module, grad, generator) for grad in again]
        return [grads, module.autograd.grad(again, inputs + cotangents, seconds, allow_unused=True)]
    except Exception as error:  # all exceptions are compared
        return error


def _random_like(module: Any, tensor: Any, generator: numpy.random.Generator) -> Any:
    """Return random multiples of 1/16, which every floating-point dtype represents exactly."""
    shape = tuple(tensor.shape)
    values = numpy.round(generator.standard_normal(shape) * 16) / 16
    if tensor.dtype.is_complex:
        values = values + 1j * numpy.round(generator.standard_normal(shape) * 16) / 16
    return from_array(module, numpy.asarray(values).astype(to_array(tensor).dtype))


# Variants


def method(op: Any, sample: Sample) -> str | None:
    """Compare the method of the same name: its result and its `grad_fn`."""
    return _variant(op.name, sample, lambda module: getattr(module.Tensor, op.name.rsplit(".", 1)[-1], None))


def aliases(op: Any, sample: Sample) -> str | None:
    """Compare every other name of the operator."""
    for alias in op.aliases:
        difference = _variant(alias.name, sample, lambda module, name=alias.name: source.lookup(module, name))
        if difference:
            return f"{alias.name}: {difference}"
    return None


def keywords(op: Any, sample: Sample) -> str | None:
    """Pass arguments by keyword, with every name that PyTorch accepts, including NumPy's names, and compare the results."""
    for names, renamed in _named_calls(op, sample):
        difference = _variant(op.name, renamed, lambda module: source.function(op, module))
        if difference:
            return f"called with {names}: {difference}"
    return None


_RENAMED = {"dim": "axis", "keepdim": "keepdims", "input": "x", "other": "x2"}


def _named_calls(op: Any, sample: Sample) -> Iterator[tuple[str, Sample]]:
    for first in ("input", "x") if op.name not in source.METHODS else ():
        yield (
            f"{first}=",
            Sample(sample.args[1:], {first: sample.args[0], **sample.kwargs}) if len(sample.args) == 1 else sample,
        )
    for first, second in (("input", "other"), ("x", "x2")):
        if len(sample.args) == 2:
            yield f"{first}=, {second}=", Sample((), {first: sample.args[0], second: sample.args[1], **sample.kwargs})
            yield f"{second}=", Sample(sample.args[:1], {second: sample.args[1], **sample.kwargs})
    second = sample.args[1] if len(sample.args) == 2 else None
    whole = isinstance(second, int | tuple | list) and not isinstance(second, bool)
    for name in ("dim", "size", "dims", "shape", "axis") if whole else ("index",) if is_tensor(second) else ():
        if name not in sample.kwargs:
            yield f"{name}=", Sample(sample.args[:1], {name: sample.args[1], **sample.kwargs})
    kwargs = {_RENAMED.get(name, name): item for name, item in sample.kwargs.items()}
    if kwargs != sample.kwargs:
        yield ", ".join(f"{name}=" for name in kwargs), Sample(sample.args, kwargs)


def _variant(name: str, sample: Sample, find: Callable[[Any], Any]) -> str | None:
    run = find(candidate)
    actual = call(candidate, run or _missing(name), sample, requires_grad=True)
    expected = call(torch, find(torch), sample, requires_grad=True)
    if expected.error is not None:
        return errors_differ(actual.error, expected.error)
    if actual.error is not None:
        return f"raised {type(actual.error).__name__}: {_first_line(actual.error)}"
    known = name.rsplit(".", 1)[-1] not in source.UNINITIALISED
    difference = results_differ(actual.result, expected.result, values=known)
    if difference:
        return difference
    pairs = zip(tensors_in(actual.result), tensors_in(expected.result), strict=True)
    return next((difference for one, two in pairs if (difference := graphs_differ(one, two))), None)


def inplace(op: Any, sample: Sample) -> str | None:
    """Compare the result of the in-place method, and the new value, version, history and gradient of the tensor."""
    name = _inplace_name(op)

    def run(first: Any, *rest: Any, **options: Any) -> list[Any]:
        changed = first.clone()
        returned = getattr(changed, name)(*rest, **options)
        return [changed, returned is changed, changed._version]

    actual = call(candidate, run if hasattr(candidate.Tensor, name) else _missing(name), sample, requires_grad=True)
    expected = call(torch, run, sample, requires_grad=True)
    over, difference = _outcome_differs(actual, expected)
    difference = difference or (None if over else results_differ(actual.result, expected.result))
    if difference and "elements differ" in difference:
        exact = _exactly(op, sample, lambda made: made.result, requires_grad=True, run=run)
        difference = results_differ(actual.result, expected.result, exact)
    if over or difference:
        return difference
    difference = graphs_differ(actual.result[0], expected.result[0])
    if difference:
        return difference
    grads = _differentiate(op, candidate, actual, 1), _differentiate(op, torch, expected, 1)
    if isinstance(grads[1], Exception):
        if not isinstance(grads[0], Exception) and _LACKS_DERIVATIVE.match(str(grads[1])):
            return None
        return errors_differ(grads[0] if isinstance(grads[0], Exception) else None, grads[1])
    if isinstance(grads[0], Exception):
        return f"backward raised {type(grads[0]).__name__}: {_first_line(grads[0])}"
    difference = results_differ(*grads)
    return difference and f"gradients: {difference}"


def _inplace_name(op: Any) -> str:
    return getattr(op.inplace_variant, "__name__", "")


# For these operators, PyTorch writes past the end of an `out` with other strides or another dtype.
_UNCHECKED_OUT = frozenset(["tril", "triu", "linalg.lu", "lu_unpack"])
# For these operators, PyTorch writes to wrong positions of an `out` with other strides, or refuses it.
_ROW_MAJOR_OUT = frozenset(["narrow_copy", "nn.functional.avg_pool3d", "nn.functional.linear"])


def out(op: Any, sample: Sample) -> str | None:
    """Compare `out=` for tensors that fit, must be resized or have another dtype, and for arguments that require grad."""
    plain = call(torch, source.function(op, torch), sample, requires_grad=False)
    if plain.error is not None:
        return None
    wanted = list(tensors_in(plain.result))
    if not wanted:
        return None
    cases = {
        "that fits": [torch.zeros_like(tensor) for tensor in wanted],
        "that is empty": [torch.empty(0, dtype=tensor.dtype) for tensor in wanted],
        "that is transposed": [_transposed(tensor) for tensor in wanted],
        "of the wrong shape": [torch.zeros(tensor.numel() + 1, dtype=tensor.dtype) for tensor in wanted],
        "of dtype int32": [torch.zeros(tensor.shape, dtype=torch.int32) for tensor in wanted],
        "of dtype complex128": [torch.zeros(tensor.shape, dtype=torch.complex128) for tensor in wanted],
    }
    if op.name in _UNCHECKED_OUT:
        cases = {"that fits": cases["that fits"]}
    if op.name in _ROW_MAJOR_OUT:
        del cases["that is transposed"]
    grouped = tuple if isinstance(plain.result, list | tuple) else (lambda tensors: tensors[0])
    for case, targets in cases.items():
        difference = _writes_to(
            op, Sample(sample.args, {**sample.kwargs, "out": grouped(targets)}), requires_grad=False
        )
        if difference:
            return f"out {case}: {difference}"
    with_grad = Sample(sample.args, {**sample.kwargs, "out": grouped(cases["that fits"])})
    difference = _writes_to(op, with_grad, requires_grad=True)
    return difference and f"out with arguments that require grad: {difference}"


def _transposed(tensor: torch.Tensor) -> torch.Tensor:
    order = range(tensor.dim())[::-1]
    return torch.zeros([tensor.shape[position] for position in order], dtype=tensor.dtype).permute(tuple(order))


def _writes_to(op: Any, sample: Sample, *, requires_grad: bool) -> str | None:
    actual, expected = both(op, sample, requires_grad=requires_grad)
    over, difference = _outcome_differs(actual, expected)
    if over:
        return difference
    known = op.name not in source.UNINITIALISED
    difference = results_differ(actual.result, expected.result, values=known)
    if difference or not known:
        return difference
    written = [
        [any(one is tensor for tensor in made.tensors) for one in tensors_in(made.result)]
        for made in (actual, expected)
    ]
    if written[0] != written[1]:
        return f"results are the tensors given as out: {written[0]}, expected {written[1]}"
    return None


# Errors


def errors(op: Any, sample: "ErrorSample") -> str | None:
    """Compare the types and messages of exceptions for bad arguments."""
    actual, expected = both(op, sample)
    if isinstance(actual.error, Missing):
        return str(actual.error)
    if expected.error is None:
        return None if actual.error is None else f"raised {actual.error!r}"
    return errors_differ(actual.error, expected.error, messages=True)


@dataclass(frozen=True)
class ErrorSample(Sample):
    """Arguments that PyTorch refuses."""


_NUMPY_DIMS = 64


def error_samples(op: Any) -> list[ErrorSample]:
    if op.error_inputs_func is None:
        return []
    source.seed(source.key(op))
    found = []
    for wrong in op.error_inputs("cpu"):
        sample = wrong.sample_input
        args = (sample.input, *sample.args)
        tensors = list(tensors_in([*args, *sample.kwargs.values()]))
        if all(_is_plain(tensor) and tensor.dim() <= _NUMPY_DIMS for tensor in tensors):
            found.append(ErrorSample(args, sample.kwargs))
    return found


def _is_plain(tensor: torch.Tensor) -> bool:
    return tensor.layout == torch.strided and tensor.device.type == "cpu"


# The table of aspects


def aspects(op: Any) -> dict[str, Callable[..., Outcome]]:
    """Return the checks of an operator by name. Each check has its samples: all samples, or a slice."""
    checks: dict[str, Callable[..., Outcome]] = {}
    dtypes = source.dtypes(op)
    main = dtypes[0]
    for dtype in dtypes:
        checks[f"value[{dtype_name(dtype)}]"] = _check(op, value, dtype, 60 if dtype == torch.float64 else 15)
    checks["view"] = _check(op, view, main, 20)
    checks["strides"] = _check(op, strides, main, 15)
    checks["order"] = _check(op, order, main, 15)
    if not op.name.startswith("__"):
        checks["keywords"] = _check(op, keywords, main, 5)
    differentiable = [dtype for dtype in dtypes if op.supports_autograd and dtype in op.backward_dtypes]
    leaves_grad = differentiable[0] if differentiable else main
    checks["graph"] = _check(op, graph, leaves_grad, 30)
    for dtype in differentiable:
        if dtype in (torch.float64, torch.complex128, torch.float32, torch.bfloat16):
            checks[f"grad[{dtype_name(dtype)}]"] = _check(op, grad, dtype, 40 if dtype == torch.float64 else 10)
        if dtype in (torch.float64, torch.complex128):
            checks[f"gradgrad[{dtype_name(dtype)}]"] = _check(op, gradgrad, dtype, 12)
    if op.method_variant is not None and hasattr(torch.Tensor, op.name.rsplit(".", 1)[-1]):
        checks["method"] = _check(op, method, leaves_grad, 10)
    if hasattr(torch.Tensor, _inplace_name(op)):
        checks["inplace"] = _check(op, inplace, leaves_grad, 15)
        for dtype in (torch.int64, torch.bool, torch.float32):
            if dtype in dtypes:
                checks[f"inplace[{dtype_name(dtype)}]"] = _check(op, inplace, dtype, 8)
    if op.supports_out:
        checks["out"] = _check(op, out, leaves_grad, 4)
    if op.aliases:
        checks["aliases"] = _check(op, aliases, main, 6)
    if op.error_inputs_func is not None and not op.name.startswith("__"):
        checks["errors"] = lambda part=ALL: _run(op, errors, error_samples(op)[part])
    return checks


def _check(
    op: Any, check: Callable[[Any, Sample], str | None], dtype: torch.dtype, limit: int
) -> Callable[..., Outcome]:
    needs = check in (graph, grad, gradgrad, inplace, method, out) and (dtype.is_floating_point or dtype.is_complex)
    return lambda part=ALL: _run(op, check, source.samples(op, dtype, int(limit * THOROUGH), requires_grad=needs)[part])


def _run(op: Any, check: Callable[[Any, Any], str | None], given: list[Any]) -> Outcome:
    outcome = Outcome()
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for sample in given:
            try:
                with _deadline(SECONDS):
                    difference = check(op, sample)
            except Exception as error:  # a result that cannot be compared is a difference
                difference = f"the comparison raised {type(error).__name__}: {_first_line(error)}"
            if difference is None:
                outcome.passed += 1
            else:
                outcome.failures.append(f"{sample}: {difference}")
                if sum("TimeoutError" in failure for failure in outcome.failures) == 2:
                    break
    return outcome


@contextmanager
def _deadline(seconds: int) -> Iterator[None]:
    """Raise TimeoutError when a sample takes too long.

    The limit is processor time, so that a busy machine does not matter. A sample that only waits has `IDLE` times as much time.
    While the process is stopped, time does not count.
    """
    begun, waited = time.process_time(), 0

    def look(number: int, frame: FrameType | None) -> None:
        nonlocal waited
        waited += 1  # the timer sends only one signal, even if the process was stopped for a long time
        if time.process_time() - begun > seconds or waited > IDLE * seconds:
            raise TimeoutError(f"no result after {seconds} s")

    previous = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, 1.0, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
