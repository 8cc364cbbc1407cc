"""How two numbers or two tensors differ, in words, or None where they are close enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy

import adjoint as torch

from .. import Tensor

TOLERANCES = {
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float32: (1.3e-6, 1e-5),
    torch.float64: (1e-7, 1e-7),
    torch.complex64: (1.3e-6, 1e-5),
    torch.complex128: (1e-7, 1e-7),
}
"""`rtol` and `atol` by dtype; other dtypes are compared exactly."""


@dataclass
class Rules:
    """The options of a comparison."""

    rtol: float
    atol: float
    equal_nan: bool = False
    check_device: bool = True
    check_dtype: bool = True
    check_layout: bool = True
    check_stride: bool = False


def number_difference(actual: Any, expected: Any, rules: Rules) -> str | None:
    """How two numbers differ, or None."""
    first, second = (value.item() if isinstance(value, numpy.generic) else value for value in (actual, expected))
    if rules.check_dtype and type(first) is not type(second):
        return f"The (d)types do not match: {type(first)} != {type(second)}."
    return _scalar_difference(first, second, rules.rtol, rules.atol, rules.equal_nan)


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


def tensor_difference(actual: Tensor, expected: Tensor, rules: Rules) -> str | None:
    """How two tensors differ, or None."""
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
    rtol, atol = rules.rtol, rules.atol
    if actual.layout is not torch.strided:
        return _sparse_difference(actual.detach(), expected.detach(), rtol, atol, rules)
    return _elements_difference(actual.detach(), expected.detach(), rtol, atol, rules)


def _sparse_difference(actual: Tensor, expected: Tensor, rtol: float, atol: float, rules: Rules) -> str | None:
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
    actual: Tensor, expected: Tensor, rtol: float, atol: float, rules: Rules, named: str = "Tensor-likes"
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
