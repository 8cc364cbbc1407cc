"""Comparison of values and nested structures within tolerances.

Each kind of value has a class of pairs with its own rules.

The classes have PyTorch's private names and methods, because PyTorch's tests derive other classes from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy

import adjoint as torch

from .. import Tensor
from .._runtime.tracebacks import warn

_TOLERANCES = {
    torch.float16: (1e-3, 1e-5),
    torch.complex32: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float32: (1.3e-6, 1e-5),
    torch.float64: (1e-7, 1e-7),
    torch.complex64: (1.3e-6, 1e-5),
    torch.complex128: (1e-7, 1e-7),
}
"""`rtol` and `atol` by dtype. All other dtypes are compared exactly."""

_OLDER_TOLERANCES = {torch.float16: (1e-3, 1e-3), torch.float32: (1e-4, 1e-5), torch.float64: (1e-5, 1e-8)}


class ErrorMeta(Exception):
    """A failure, with the position in the structure where it occurred."""

    def __init__(self, type: type[Exception], msg: str, *, id: tuple[Any, ...] = ()) -> None:
        super().__init__(type, msg)
        self.type, self.msg, self.id = type, msg, id

    def to_error(self, msg: str | Callable[[str], str] | None = None) -> Exception:
        """Return the exception to raise.

        `msg` is a string that replaces the message, or a function of the original message.
        """
        text = self.msg
        if self.id:
            text += f"\n\nThe failure occurred for item {''.join(f'[{key!r}]' for key in self.id)}"
        if callable(msg):
            text = msg(text)
        return self.type(text if msg is None or callable(msg) else msg)


class UnsupportedInputs(Exception):
    """The error of a class of pairs that does not support the values. The next class is then tried."""


# --- pairs ----------------------------------------------------------------------------------------------------------


class Pair:
    """Two values, and the rules for comparing them."""

    def __init__(self, actual: Any, expected: Any, *, id: tuple[Any, ...] = (), **unknown_parameters: Any) -> None:
        self.actual, self.expected, self.id = actual, expected, id
        self._unknown_parameters = unknown_parameters

    @staticmethod
    def _inputs_not_supported() -> NoReturn:
        raise UnsupportedInputs

    @staticmethod
    def _check_inputs_isinstance(*inputs: Any, cls: type | tuple[type, ...]) -> None:
        if not all(isinstance(value, cls) for value in inputs):
            raise UnsupportedInputs

    def _fail(self, type: type[Exception], msg: str, *, id: tuple[Any, ...] = ()) -> NoReturn:
        raise ErrorMeta(type, msg, id=id or self.id)

    def _check(self, difference: str | None) -> None:
        if difference is not None:
            self._fail(AssertionError, difference)

    def compare(self) -> None:
        """Raise ErrorMeta unless the values are equal or close."""
        raise NotImplementedError

    def extra_repr(self) -> Sequence[str | tuple[str, Any]]:
        """Return the attributes to show in addition to the values."""
        return []

    def __repr__(self) -> str:
        parts = [(part, getattr(self, part)) if isinstance(part, str) else part for part in self.extra_repr()]
        shown = [("id", self.id), ("actual", self.actual), ("expected", self.expected), *parts]
        return "\n".join([f"{type(self).__name__}(", *(f"    {name}={value!s}," for name, value in shown), ")"])


class ObjectPair(Pair):
    """Two objects that must be equal."""

    def compare(self) -> None:
        """Compare the values by `==`."""
        try:
            equal = self.actual == self.expected
        except Exception as error:
            raise ErrorMeta(
                ValueError, f"{self.actual} == {self.expected} failed with:\n{error}.", id=self.id
            ) from error
        self._check(None if equal else f"{self.actual} != {self.expected}")


class NonePair(Pair):
    """None and any object. Both must be None."""

    def __init__(self, actual: Any, expected: Any, **other_parameters: Any) -> None:
        if actual is not None and expected is not None:
            self._inputs_not_supported()
        super().__init__(actual, expected, **other_parameters)

    def compare(self) -> None:
        """Compare the values by `is`."""
        same = self.actual is self.expected
        self._check(None if same else f"None mismatch: {self.actual} is not {self.expected}")


class BooleanPair(Pair):
    """Truth values of Python or NumPy."""

    _supported_types: tuple[type, ...] = (bool, numpy.bool_)

    def __init__(self, actual: Any, expected: Any, *, id: tuple[Any, ...], **other_parameters: Any) -> None:
        actual, expected = self._process_inputs(actual, expected, id=id)
        super().__init__(actual, expected, id=id, **other_parameters)

    def _process_inputs(self, actual: Any, expected: Any, *, id: tuple[Any, ...]) -> tuple[bool, bool]:
        self._check_inputs_isinstance(actual, expected, cls=self._supported_types)
        return self._to_bool(actual, id=id), self._to_bool(expected, id=id)

    def _to_bool(self, bool_like: Any, *, id: tuple[Any, ...]) -> bool:
        return bool(bool_like)

    def compare(self) -> None:
        """Compare the values by `is`."""
        same = self.actual is self.expected
        self._check(None if same else f"Booleans mismatch: {self.actual} is not {self.expected}")


class NumberPair(Pair):
    """Numbers of Python or NumPy."""

    _TYPE_TO_DTYPE = {int: torch.int64, float: torch.float64, complex: torch.complex128}
    _NUMBER_TYPES: tuple[type, ...] = (int, float, complex)
    _supported_types: tuple[type, ...] = (*_NUMBER_TYPES, numpy.number)

    def __init__(
        self,
        actual: Any,
        expected: Any,
        *,
        id: tuple[Any, ...] = (),
        rtol: float | None = None,
        atol: float | None = None,
        equal_nan: bool = False,
        check_dtype: bool = False,
        **other_parameters: Any,
    ) -> None:
        actual, expected = self._process_inputs(actual, expected, id=id)
        super().__init__(actual, expected, id=id, **other_parameters)
        dtypes = (self._TYPE_TO_DTYPE.get(type(value), torch.bool) for value in (actual, expected))
        self.rtol, self.atol = get_tolerances(*dtypes, rtol=rtol, atol=atol, id=id)
        self.equal_nan, self.check_dtype = equal_nan, check_dtype

    def _process_inputs(self, actual: Any, expected: Any, *, id: tuple[Any, ...]) -> tuple[Any, Any]:
        self._check_inputs_isinstance(actual, expected, cls=self._supported_types)
        return self._to_number(actual, id=id), self._to_number(expected, id=id)

    def _to_number(self, number_like: Any, *, id: tuple[Any, ...]) -> Any:
        return number_like.item() if isinstance(number_like, numpy.generic) else number_like

    def compare(self) -> None:
        """Compare the values within the tolerances."""
        rules = _Rules(self.rtol, self.atol, self.equal_nan, check_dtype=self.check_dtype)
        self._check(_number_difference(self.actual, self.expected, rules))

    def extra_repr(self) -> Sequence[str]:
        """The options."""
        return ("rtol", "atol", "equal_nan", "check_dtype")


class TensorLikePair(Pair):
    """Tensors, or values of one type that can be converted to tensors."""

    def __init__(
        self,
        actual: Any,
        expected: Any,
        *,
        id: tuple[Any, ...] = (),
        allow_subclasses: bool = True,
        rtol: float | None = None,
        atol: float | None = None,
        equal_nan: bool = False,
        check_device: bool = True,
        check_dtype: bool = True,
        check_layout: bool = True,
        check_stride: bool = False,
        **other_parameters: Any,
    ) -> None:
        actual, expected = self._process_inputs(actual, expected, id=id, allow_subclasses=allow_subclasses)
        super().__init__(actual, expected, id=id, **other_parameters)
        self.rtol, self.atol = get_tolerances(actual, expected, rtol=rtol, atol=atol, id=id)
        self.equal_nan, self.check_device, self.check_dtype = equal_nan, check_device, check_dtype
        self.check_layout, self.check_stride = check_layout, check_stride

    def _process_inputs(
        self, actual: Any, expected: Any, *, id: tuple[Any, ...], allow_subclasses: bool
    ) -> tuple[Tensor, Tensor]:
        related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
        if not related or not (allow_subclasses or type(actual) is type(expected)):
            self._inputs_not_supported()
        actual, expected = self._to_tensor(actual), self._to_tensor(expected)
        for tensor in (actual, expected):
            self._check_supported(tensor, id=id)
        return actual, expected

    def _to_tensor(self, tensor_like: Any) -> Tensor:
        if isinstance(tensor_like, Tensor):
            return tensor_like
        try:
            return torch.as_tensor(tensor_like)
        except (TypeError, ValueError, RuntimeError):
            self._inputs_not_supported()

    def _check_supported(self, tensor: Tensor, *, id: tuple[Any, ...]) -> None:
        """Accept every layout."""

    def compare(self) -> None:
        """Compare the attributes, and the elements within the tolerances."""
        options = (self.equal_nan, self.check_device, self.check_dtype, self.check_layout, self.check_stride)
        self._check(_tensor_difference(self.actual, self.expected, _Rules(self.rtol, self.atol, *options)))

    def extra_repr(self) -> Sequence[str]:
        """The options."""
        return ("rtol", "atol", "equal_nan", "check_device", "check_dtype", "check_layout", "check_stride")


def default_tolerances(
    *inputs: Tensor | torch.dtype, dtype_precisions: Mapping[torch.dtype, tuple[float, float]] = _TOLERANCES
) -> tuple[float, float]:
    """Return the largest `rtol` and the largest `atol` of the dtypes."""
    dtypes = [value.dtype if isinstance(value, Tensor) else value for value in inputs]
    rtols, atols = zip(*((dtype_precisions or _TOLERANCES).get(dtype, (0.0, 0.0)) for dtype in dtypes), strict=True)
    return max(rtols), max(atols)


def get_tolerances(
    *inputs: Tensor | torch.dtype, rtol: float | None, atol: float | None, id: tuple[Any, ...] = ()
) -> tuple[float, float]:
    """Return the given tolerances, or the default tolerances of the dtypes."""
    if rtol is None and atol is None:
        return default_tolerances(*inputs)
    if rtol is None or atol is None:
        given = "rtol" if rtol is None else "atol"
        text = f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {given}."
        raise ErrorMeta(ValueError, text, id=id)
    return rtol, atol


# --- structures -----------------------------------------------------------------------------------------------------


def originate_pairs(
    actual: Any,
    expected: Any,
    *,
    pair_types: Sequence[type[Pair]],
    sequence_types: tuple[type, ...] = (Sequence,),
    mapping_types: tuple[type, ...] = (Mapping,),
    id: tuple[Any, ...] = (),
    **options: Any,
) -> list[Pair]:
    """Return the pairs of the values in two structures. Each pair has the first class that supports the two values.

    Raises:
        ErrorMeta: if the structures differ, or if no class supports two values.
    """
    keys: list[Any] | None = None
    if all(isinstance(value, sequence_types) and not isinstance(value, str) for value in (actual, expected)):
        if len(actual) != len(expected):
            text = f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
            raise ErrorMeta(AssertionError, text, id=id)
        keys = list(range(len(actual)))
    elif all(isinstance(value, mapping_types) for value in (actual, expected)):
        _check_keys(actual, expected, id)
        keys = _ordered(actual)
    if keys is not None:
        types: dict[str, Any] = {
            "pair_types": pair_types,
            "sequence_types": sequence_types,
            "mapping_types": mapping_types,
        }
        parts = [originate_pairs(actual[key], expected[key], id=(*id, key), **types, **options) for key in keys]
        return [pair for part in parts for pair in part]
    for pair_type in pair_types:
        try:
            return [pair_type(actual, expected, id=id, **options)]
        except UnsupportedInputs:
            continue
    text = f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}."
    raise ErrorMeta(TypeError, text, id=id)


def _ordered(mapping: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(mapping)
    except TypeError:  # keys of several types
        return list(mapping)


def _check_keys(actual: Any, expected: Any, id: tuple[Any, ...]) -> None:
    missing, additional = set(expected) - set(actual), set(actual) - set(expected)
    if missing or additional:
        text = (
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: {sorted(missing)}\n"
            f"Additional keys in the actual mapping: {sorted(additional)}"
        )
        raise ErrorMeta(AssertionError, text, id=id)


def not_close_error_metas(
    actual: Any, expected: Any, *, pair_types: Sequence[type[Pair]] = (ObjectPair,), **options: Any
) -> list[ErrorMeta]:
    """Return the differences between two structures, as a list of failures.

    Raises:
        Exception: if the structures differ, or if no class supports two values.
    """
    __tracebackhide__ = True
    try:
        pairs = originate_pairs(actual, expected, pair_types=pair_types, **options)
    except ErrorMeta as error:
        raise error.to_error() from None
    found = []
    for pair in pairs:
        try:
            pair.compare()
        except ErrorMeta as error:
            found.append(error.with_traceback(None))
    return found


def _unwrap_dtensor_for_comparison(actual: Any, expected: Any) -> tuple[Any, Any]:
    """Return the values unchanged, because distributed tensors are compared directly."""
    return actual, expected


# --- differences of two numbers or tensors ------------------------------------------------------------------------------


@dataclass
class _Rules:
    """The options of a comparison."""

    rtol: float
    atol: float
    equal_nan: bool = False
    check_device: bool = True
    check_dtype: bool = True
    check_layout: bool = True
    check_stride: bool = False


def _number_difference(actual: Any, expected: Any, rules: _Rules) -> str | None:
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
    rtol, atol = rules.rtol, rules.atol
    if actual.layout is not torch.strided:
        return _sparse_difference(actual.detach(), expected.detach(), rtol, atol, rules)
    return _elements_difference(actual.detach(), expected.detach(), rtol, atol, rules)


def _sparse_difference(actual: Tensor, expected: Tensor, rtol: float, atol: float, rules: _Rules) -> str | None:
    """Return the first difference of two tensors with the same sparse layout: number of elements, indices or values."""
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
    if actual.is_meta or expected.is_meta:
        return None  # there are no elements
    first, second = actual, expected
    actual, expected = _of_one_dtype(actual, expected)
    close = torch.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=rules.equal_nan)
    if close.all():
        return None
    if actual.ndim == 0 and named == "Tensor-likes":
        return _scalar_difference(first.item(), second.item(), rtol, atol, rules.equal_nan)
    return _report(actual, expected, ~close, rtol, atol, named)


def _of_one_dtype(actual: Tensor, expected: Tensor) -> tuple[Tensor, Tensor]:
    dtype = torch.promote_types(actual.dtype, expected.dtype)
    if not dtype.is_floating_point and not dtype.is_complex:
        dtype = torch.int64
    return actual.to(dtype), expected.to(dtype)


def _report(actual: Tensor, expected: Tensor, differs: Tensor, rtol: float, atol: float, named: str) -> str:
    """Return the number of elements that differ, and the position of the largest difference."""
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


# --- public ---------------------------------------------------------------------------------------------------------


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
    """Raise an error unless `abs(actual - expected) <= atol + rtol * abs(expected)` for all elements.

    The arguments may be tensors, objects of one type that can be converted to tensors, numbers, and sequences and
    mappings of these. The default tolerances depend on the dtype. `msg` is a string that replaces the message, or a
    function of the original message.

    >>> from adjoint.testing import assert_close
    >>> assert_close(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0 + 1e-7]))

    Raises:
        AssertionError: if values differ, or if shapes, dtypes or other checked attributes differ.
        TypeError: if an object cannot be compared.
        ValueError: if only one of `rtol` and `atol` is given.
    """
    __tracebackhide__ = True
    options = {
        "allow_subclasses": allow_subclasses,
        "rtol": rtol,
        "atol": atol,
        "equal_nan": equal_nan,
        "check_device": check_device,
        "check_dtype": check_dtype,
        "check_layout": check_layout,
        "check_stride": check_stride,
    }
    found = not_close_error_metas(
        actual, expected, pair_types=(NonePair, BooleanPair, NumberPair, TensorLikePair), **options
    )
    if found:
        raise found[0].to_error(msg)


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """An old form of `assert_close`. Dtypes may differ, and other objects are converted to tensors."""
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
