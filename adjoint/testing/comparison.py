"""Comparison of values and nested structures within tolerances, with messages about the differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

import adjoint as torch

from .. import Tensor
from ..notices import warn

_TOLERANCES = {
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float32: (1.3e-6, 1e-5),
    torch.float64: (1e-7, 1e-7),
    torch.complex64: (1.3e-6, 1e-5),
    torch.complex128: (1e-7, 1e-7),
}
"""`rtol` and `atol` by dtype; other dtypes are compared exactly."""

_OLDER_TOLERANCES = {torch.float16: (1e-3, 1e-3), torch.float32: (1e-4, 1e-5), torch.float64: (1e-5, 1e-8)}

_NUMBERS = (int, float, complex, numpy.number)
_TRUTHS = (bool, numpy.bool_)


@dataclass(frozen=True)
class _Rules:
    """The options of a comparison."""

    allow_subclasses: bool = True
    rtol: float | None = None
    atol: float | None = None
    equal_nan: bool = False
    check_device: bool = True
    check_dtype: bool = True
    check_layout: bool = True
    check_stride: bool = False

    def tolerances(self, *dtypes: torch.dtype) -> tuple[float, float]:
        """The given tolerances, or the largest tolerances of the dtypes."""
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        rtols, atols = zip(*(_TOLERANCES.get(dtype, (0.0, 0.0)) for dtype in dtypes), strict=True)
        return max(rtols), max(atols)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise unless `abs(actual - expected) <= atol + rtol * abs(expected)` for all elements.

    Tensors, objects that can be converted to tensors (of one type), numbers, and sequences and mappings of them are
    compared. The default tolerances depend on the dtype. `msg` replaces the message, or is called with it.

    >>> from adjoint.testing import assert_close
    >>> assert_close(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0 + 1e-7]))

    Raises:
        AssertionError: if values differ, or shapes, dtypes, ... that are checked.
        TypeError: if an object cannot be compared.
        ValueError: if only one of `rtol` and `atol` is given.
    """
    __tracebackhide__ = True
    if (rtol is None) != (atol is None):
        given = "rtol" if rtol is None else "atol"
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {given}.")
    rules = _Rules(allow_subclasses, rtol, atol, equal_nan, check_device, check_dtype, check_layout, check_stride)
    for first, second, where in list(_pairs(actual, expected, (), rules)):
        text = _difference(first, second, rules)
        if text is not None:
            raise AssertionError(_worded(_placed(text, where), msg))


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """An old form of `assert_close`: dtypes may differ, and other objects are converted to tensors."""
    warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. "
        "Please use `torch.testing.assert_close()` instead. You can find detailed upgrade instructions in "
        "https://github.com/pytorch/pytorch/issues/61844.",
        FutureWarning,
    )
    actual = actual if isinstance(actual, Tensor) else torch.tensor(actual)
    expected = expected if isinstance(expected, Tensor) else torch.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        pairs = [_OLDER_TOLERANCES.get(tensor.dtype, (0.0, 0.0)) for tensor in (actual, expected)]
        rtol, atol = max(pair[0] for pair in pairs), max(pair[1] for pair in pairs)
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)


def _worded(text: str, msg: str | Callable[[str], str] | None) -> str:
    if msg is None:
        return text
    return msg(text) if callable(msg) else msg


def _placed(text: str, where: tuple[Any, ...]) -> str:
    """The text with the position of the item in the structure."""
    if not where:
        return text
    return f"{text}\n\nThe failure occurred for item {''.join(f'[{key!r}]' for key in where)}"


# --- structures -----------------------------------------------------------------------------------------------------


def _pairs(actual: Any, expected: Any, where: tuple[Any, ...], rules: _Rules) -> Iterator[tuple[Any, Any, Any]]:
    """The values to compare, with their positions; the enclosing structures are compared at the same time."""
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            raise AssertionError(
                _placed(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", where)
            )
        for position, (first, second) in enumerate(zip(actual, expected, strict=True)):
            yield from _pairs(first, second, (*where, position), rules)
    elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
        _check_keys(actual, expected, where)
        for key in _ordered(actual):
            yield from _pairs(actual[key], expected[key], (*where, key), rules)
    else:
        _check_comparable(actual, expected, where, rules)
        yield actual, expected, where


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _ordered(mapping: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(mapping)
    except TypeError:  # keys of several types
        return list(mapping)


def _check_keys(actual: Mapping[Any, Any], expected: Mapping[Any, Any], where: tuple[Any, ...]) -> None:
    missing, additional = set(expected) - set(actual), set(actual) - set(expected)
    if missing or additional:
        raise AssertionError(
            _placed(
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {sorted(missing)}\n"
                f"Additional keys in the actual mapping: {sorted(additional)}",
                where,
            )
        )


def _check_comparable(actual: Any, expected: Any, where: tuple[Any, ...], rules: _Rules) -> None:
    if actual is None or expected is None:
        return
    if all(isinstance(value, (*_TRUTHS, *_NUMBERS)) for value in (actual, expected)):
        return
    related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
    allowed = rules.allow_subclasses or type(actual) is type(expected)
    if related and allowed and (isinstance(actual, (Tensor, numpy.ndarray)) or _becomes_tensor(actual, expected)):
        return
    raise TypeError(
        _placed(f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.", where)
    )


def _becomes_tensor(*values: Any) -> bool:
    try:
        for value in values:
            torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError):
        return False
    return True


# --- values ---------------------------------------------------------------------------------------------------------


def _difference(actual: Any, expected: Any, rules: _Rules) -> str | None:
    """How two values differ, or None."""
    if actual is None or expected is None:
        return None if actual is expected else f"None mismatch: {actual} is not {expected}"
    if isinstance(actual, _TRUTHS) and isinstance(expected, _TRUTHS):
        return None if bool(actual) is bool(expected) else f"Booleans mismatch: {actual} is not {expected}"
    if isinstance(actual, (*_TRUTHS, *_NUMBERS)):
        return _number_difference(actual, expected, rules)
    return _tensor_difference(torch.as_tensor(actual), torch.as_tensor(expected), rules)


def _number_difference(actual: Any, expected: Any, rules: _Rules) -> str | None:
    first, second = (value.item() if isinstance(value, numpy.generic) else value for value in (actual, expected))
    if rules.check_dtype and type(first) is not type(second):
        return f"The (d)types do not match: {type(first)} != {type(second)}."
    kinds = {int: torch.int64, float: torch.float64, complex: torch.complex128}
    rtol, atol = rules.tolerances(*(kinds.get(type(value), torch.bool) for value in (first, second)))
    return _scalar_difference(first, second, rtol, atol, rules.equal_nan)


def _scalar_difference(actual: Any, expected: Any, rtol: float, atol: float, equal_nan: bool) -> str | None:
    # NaN differs from itself; the difference of two infinities is NaN.
    if actual == expected or (equal_nan and actual != actual and expected != expected):
        return None
    difference = abs(actual - expected)
    if difference <= atol + rtol * abs(expected) and difference != float("inf"):
        return None
    relative = difference / abs(expected) if expected else float("inf")
    exact = not rtol and not atol
    return (
        f"Scalars are not {'equal' if exact else 'close'}!\n\nExpected {expected} but got {actual}.\n"
        f"Absolute difference: {difference}{'' if exact else f' (up to {atol} allowed)'}\n"
        f"Relative difference: {relative}{'' if exact else f' (up to {rtol} allowed)'}"
    )


def _tensor_difference(actual: Tensor, expected: Tensor, rules: _Rules) -> str | None:
    checks: list[tuple[str, Any, Any, bool]] = [("shape", actual.shape, expected.shape, True)]
    checks += [("device", actual.device, expected.device, rules.check_device)]
    checks += [("dtype", actual.dtype, expected.dtype, rules.check_dtype)]
    checks += [("layout", actual.layout, expected.layout, rules.check_layout)]
    if rules.check_stride and actual.layout is expected.layout is torch.strided:
        checks += [("stride()", actual.stride(), expected.stride(), True)]
    for name, first, second, wanted in checks:
        if wanted and first != second:
            return f"The values for attribute '{name}' do not match: {first} != {second}."
    if actual.layout is not expected.layout:
        actual, expected = (each if each.layout is torch.strided else each.to_dense() for each in (actual, expected))
    rtol, atol = rules.tolerances(actual.dtype, expected.dtype)
    if actual.layout is not torch.strided:
        return _sparse_difference(actual.detach(), expected.detach(), rtol, atol, rules)
    return _elements_difference(actual.detach(), expected.detach(), rtol, atol, rules)


def _sparse_difference(actual: Tensor, expected: Tensor, rtol: float, atol: float, rules: _Rules) -> str | None:
    """The first difference of two tensors of one sparse layout: in their number of elements, indices or values."""
    kind = str(actual.layout).removeprefix("torch.sparse_").upper()
    if kind == "COO":
        actual, expected = actual.coalesce(), expected.coalesce()
        names = ["indices"]
    else:
        names = ["crow_indices", "col_indices"] if kind.endswith("SR") else ["ccol_indices", "row_indices"]
    counts = actual._nnz(), expected._nnz()
    if counts[0] != counts[1]:
        return f"The number of specified values in sparse {kind} tensors does not match: {counts[0]} != {counts[1]}"
    for name in [*names, "values"]:
        first, second = getattr(actual, name)(), getattr(expected, name)()
        limits = (rtol, atol) if name == "values" else (0.0, 0.0)
        found = _elements_difference(first, second, *limits, rules, f"Sparse {kind} {name}")
        if found is not None:
            return found
    return None


def _elements_difference(
    actual: Tensor, expected: Tensor, rtol: float, atol: float, rules: _Rules, named: str = "Tensor-likes"
) -> str | None:
    actual, expected = _of_one_dtype(actual, expected)
    close = torch.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=rules.equal_nan)
    if close.all():
        return None
    if actual.ndim == 0 and named == "Tensor-likes":
        return _scalar_difference(actual.item(), expected.item(), rtol, atol, rules.equal_nan)
    return _report(actual, expected, ~close, rtol, atol, named)


def _of_one_dtype(actual: Tensor, expected: Tensor) -> tuple[Tensor, Tensor]:
    dtype = torch.promote_types(actual.dtype, expected.dtype)
    if not dtype.is_floating_point and not dtype.is_complex:
        dtype = torch.int64
    return actual.to(dtype), expected.to(dtype)


def _report(actual: Tensor, expected: Tensor, differs: Tensor, rtol: float, atol: float, named: str) -> str:
    """The number of elements that differ, and the position of the largest difference."""
    exact = not rtol and not atol
    count, total = int(differs.sum()), differs.numel()
    absolute = torch.where(differs, (actual - expected).abs(), 0)
    relative = torch.where(differs, absolute / expected.abs(), 0)
    lines = [
        f"{named} are not {'equal' if exact else 'close'}!\n",
        f"Mismatched elements: {count} / {total} ({count / total:.1%})",
    ]
    for name, values, limit in (("absolute", absolute, atol), ("relative", relative, rtol)):
        flat = int(values.argmax())
        place = tuple(int(index) for index in numpy.unravel_index(flat, tuple(values.shape)))
        allowed = "" if exact else f" (up to {limit} allowed)"
        lines.append(f"Greatest {name} difference: {values.flatten()[flat].item()} at index {place}{allowed}")
    return "\n".join(lines)
