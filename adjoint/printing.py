"""Prints tensors as text that equals PyTorch's text, character for character.

Printing uses the array and a few attributes of a tensor, but no operator. Only items that appear in the text are
formatted.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from math import floor, inf, isfinite
from typing import Any, Protocol

import numpy

from adjoint import dtypes
from adjoint._runtime.late_bound import LATE
from adjoint._runtime.uninterrupted import PutDuring, uninterrupted
from adjoint.kernels.memory.storage import to_python
from adjoint.kernels.runtime.lazy_conj import materialize
from adjoint.kernels.runtime.meta_array import Meta
from adjoint.kernels.runtime.sparse_array import SparseArray

__all__ = ["format_tensor", "format_with", "get_printoptions", "printoptions", "set_printoptions"]


class Printable(Protocol):
    """The attributes of a tensor that printing uses."""

    _array: numpy.ndarray[Any, Any]

    @property
    def dtype(self) -> dtypes.dtype: ...
    @property
    def requires_grad(self) -> bool: ...
    @property
    def grad_fn(self) -> Any: ...


# ---------------------------------------------------------------------------------------------------------------------
# Options


@dataclass(frozen=True, slots=True)
class _Options:
    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: float = 80
    sci_mode: bool | None = None


_PROFILES = {"default": _Options(), "short": _Options(precision=2, edgeitems=2), "full": _Options(threshold=inf)}
_options = _PROFILES["default"]


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: float | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set the options for printing tensors in the whole process.

    Args:
        precision: the number of digits after the decimal point (4).
        threshold: the number of elements above which tensors are summarized (1000).
        edgeitems: the number of items at the start and the end of each summarized dimension (3).
        linewidth: the number of characters per line (80).
        profile: `'default'`, `'short'` or `'full'`. It sets the four options above before they are applied.
        sci_mode: whether to use scientific notation: always (True), never (False) or depending on the numbers (None,
            the default of each call).

    >>> import adjoint as torch
    >>> torch.set_printoptions(precision=2)
    >>> torch.tensor([1.12345])
    tensor([1.12])
    >>> torch.set_printoptions(profile='default')
    """
    global _options
    sizes = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    _options = _changed_options(profile, sci_mode, **sizes)


def _changed_options(profile: str | None = None, sci_mode: bool | None = None, **sizes: Any) -> _Options:
    base = _options if profile is None else _PROFILES.get(profile.lower(), _options)
    return replace(base, sci_mode=sci_mode, **{name: value for name, value in sizes.items() if value is not None})


def get_printoptions() -> dict[str, Any]:
    """Return the current options, by name."""
    return asdict(_options)


@uninterrupted
def _put_options(options: _Options) -> _Options:
    global _options
    before, _options = _options, options
    return before


def printoptions(**options: Any) -> AbstractContextManager[None]:
    """Set the options of `set_printoptions` within a `with` block, and restore them afterwards."""
    return PutDuring(_put_options, _changed_options(**options))


# ---------------------------------------------------------------------------------------------------------------------
# Tensors


def format_tensor(tensor: Printable, name: str = "tensor", contents: str | None = None) -> str:
    """Return the text of `repr(tensor)` with the `name` before the parenthesis, and `contents` in place of the elements."""
    if contents is None and (wrapped := LATE.text_within_transforms(tensor)) is not None:
        return wrapped
    options = _options
    array = materialize(tensor._array)
    indent = len(name) + 1
    if contents is None:
        if type(array) is Meta:
            contents = "..."
        elif type(array) is SparseArray:
            contents = _format_parts(array.parts, indent, options)
        else:
            contents = "[]" if array.size == 0 else _format_array(array, tensor.dtype, indent, options)
    parts = _attributes(tensor, options)
    text = [name, "(", contents]
    # Like PyTorch, count two more characters for the last line: the parenthesis and a comma that may follow.
    last_line = len(contents) - contents.rfind("\n") - 1
    used = last_line + 2 if "\n" in contents else indent + last_line + 2
    on_new_line = type(array) is SparseArray and array.parts.layout == "sparse_coo"
    for part in parts:
        if on_new_line or used + len(part) + 2 > options.linewidth:
            text.append(",\n" + " " * indent + part)
            used = indent + len(part)
            on_new_line = False
        else:
            text.append(", " + part)
            used += len(part) + 2
    text.append(")")
    return "".join(text)


def _format_parts(parts: Any, indent: int, options: _Options) -> str:
    """Format the arrays of a sparse tensor, each on separate lines."""
    if parts.layout == "sparse_coo":
        arrays = {"indices": parts.indices, "values": parts.values}
    else:
        starts, places = ("crow_indices", "col_indices") if parts.by_rows else ("ccol_indices", "row_indices")
        arrays = {starts: parts.starts, places: parts.places, "values": parts.values}
    texts = []
    for name, array in arrays.items():
        dtype = dtypes.from_numpy(array.dtype)
        text = "[]" if array.size == 0 else _format_array(array, dtype, indent + len(name) + 8, options)
        texts.append(f"{name}=tensor({text}{'' if array.size else f', size={tuple(array.shape)}'})")
    return (",\n" + " " * indent).join(texts)


def _attributes(tensor: Printable, options: _Options) -> list[str]:
    """Return the text after the elements: `size=`, `dtype=`, `requires_grad=` and `grad_fn=`, if they are not evident."""
    array, dtype = materialize(tensor._array), tensor.dtype
    parts = []
    if type(array) is Meta:
        parts.append("device='meta'")
    if type(array) is SparseArray:
        parts += [f"size={tuple(array.shape)}", f"nnz={array.parts.count}"]
        if not _is_implied(dtype, False):
            parts.append(f"dtype={dtype!r}")
        parts.append(f"layout=torch.{array.parts.layout}")
        return parts + _history(tensor)
    if type(array) is Meta or (options.edgeitems == 0 if array.size else array.ndim != 1):
        parts.append(f"size={tuple(array.shape)}")
    if not _is_implied(dtype, array.size == 0 or type(array) is Meta):
        parts.append(f"dtype={dtype!r}")
    return parts + _history(tensor)


def _history(tensor: Printable) -> list[str]:
    """Return the text on gradients: `requires_grad=`, `grad_fn=` and `tangent=`."""
    parts = []
    try:
        grad_fn = tensor.grad_fn
    except RuntimeError:  # an in-place change of the base has made the edge of this view ambiguous
        return ["grad_fn=<Invalid>"]
    if grad_fn is not None:
        parts.append(f"grad_fn=<{grad_fn.name().rpartition('::')[2]}>")
    elif tensor.requires_grad:
        parts.append("requires_grad=True")
    tangent = LATE.forward_tangent(tensor)
    if tangent is not None:
        parts.append(f"tangent={tangent}")
    return parts


def _is_implied(dtype: dtypes.dtype, empty: bool) -> bool:
    """Return whether the printed elements imply the dtype."""
    default = dtypes.get_default_dtype()
    evident = (dtypes.int64, dtypes.bool, dtypes.complex128 if default is dtypes.float64 else dtypes.complex64)
    return dtype is default or (not empty and dtype in evident)


def format_with(tensor: Printable, specification: str) -> str:
    """Return the text of `format(tensor, specification)`, which formats the number of a zero-dimensional tensor."""
    if tensor._array.ndim == 0 and type(tensor._array) is not Meta:
        return format(_python_values(materialize(tensor._array))[0], specification)
    return object.__format__(tensor, specification)


# ---------------------------------------------------------------------------------------------------------------------
# Arrays


def _format_array(array: numpy.ndarray[Any, Any], dtype: dtypes.dtype, indent: int, options: _Options) -> str:
    shape = array.shape
    edge = options.edgeitems
    summarised = array.size > options.threshold
    if summarised:
        if edge == 0 and shape:
            return "[...]"
        array = _edges(array, edge)
    items, width = _format_values(_python_values(array), dtype, options)
    if not shape:
        return items[0].lstrip(" ")
    per_line = max(1, floor((options.linewidth - indent - len(shape) + 1) / (width + 2)))
    cut = [summarised and length > 2 * edge for length in shape]
    rows = _join_rows(items, array.shape[-1], edge if cut[-1] else 0, per_line, indent + len(shape))
    for level in range(len(shape) - 2, -1, -1):
        separator = "," + "\n" * (len(shape) - 1 - level) + " " * (indent + level + 1)
        rows = _join_blocks(rows, array.shape[level], edge if cut[level] else 0, separator)
    return rows[0]


def _edges(array: numpy.ndarray[Any, Any], edge: int) -> numpy.ndarray[Any, Any]:
    """Return the first and last `edge` items along every dimension that is longer than `2 * edge`."""
    for dim, length in enumerate(array.shape):
        if length > 2 * edge:
            keep = [*range(edge), *range(length - edge, length)]
            array = array[(slice(None),) * dim + (keep,)]
    return array


def _join_rows(items: list[str], length: int, edge: int, per_line: int, indent: int) -> list[str]:
    """Join runs of `length` items into bracketed rows, and break the rows into lines."""
    line_break = ",\n" + " " * indent
    rows = []
    for start in range(0, len(items), length):
        row = items[start : start + length]
        if edge:
            row.insert(edge, " ...")
        lines = [", ".join(row[i : i + per_line]) for i in range(0, len(row), per_line)]
        rows.append("[" + line_break.join(lines) + "]")
    return rows


def _join_blocks(blocks: list[str], length: int, edge: int, separator: str) -> list[str]:
    """Join runs of `length` blocks in brackets. An ellipsis follows the first `edge` blocks, unless `edge` is 0."""
    joined = []
    for start in range(0, len(blocks), length):
        run = blocks[start : start + length]
        if edge:
            run.insert(edge, "...")
        joined.append("[" + separator.join(run) + "]")
    return joined


# ---------------------------------------------------------------------------------------------------------------------
# Numbers


def _python_values(array: numpy.ndarray[Any, Any]) -> list[Any]:
    """Return the elements in order, as Python numbers."""
    return to_python(array.ravel())


def _format_values(values: list[Any], dtype: dtypes.dtype, options: _Options) -> tuple[list[str], int]:
    """Return each value as text, padded to a common width, and the width for line breaks."""
    if dtype.is_complex:
        real, real_width = _pad(*_format_floats([value.real for value in values], options))
        imag, imag_width = _format_floats([value.imag for value in values], options)
        items = [f"{a}{b}j" if b[0] == "-" else f"{a}+{b}j" for a, b in zip(real, imag, strict=True)]
        return items, real_width + imag_width + 1
    if dtype.is_floating_point:
        return _pad(*_format_floats(values, options))
    items = list(map(str, values))
    return _pad(items, max(map(len, items)))


def _pad(items: list[str], width: int) -> tuple[list[str], int]:
    return [item.rjust(width) for item in items], width


def _format_floats(values: list[float], options: _Options) -> tuple[list[str], int]:
    """Return each value as text, and the greatest width among the finite nonzero values.

    Whole numbers print as `2.`, and other numbers print with all decimals of the precision. All numbers print in
    scientific notation if the finite nonzero magnitudes span more than three decades, exceed 1e8 or are below 1e-4.
    """
    ordinary = [abs(value) for value in values if value and isfinite(value)]
    show = _float_format(ordinary, options)
    texts = [show(value) if isfinite(value) else str(value) for value in values]
    if not ordinary:
        return texts, 1
    return texts, max(len(text) for text, value in zip(texts, values, strict=True) if value and isfinite(value))


def _float_format(magnitudes: list[float], options: _Options) -> Callable[[float], str]:
    """Choose the format of finite numbers from `magnitudes`, their nonzero magnitudes."""
    whole = all(value == floor(value) for value in magnitudes)
    scientific = options.sci_mode
    if not magnitudes:
        scientific = False
    elif scientific is None:
        smallest, greatest = min(magnitudes), max(magnitudes)
        scientific = greatest / smallest > 1000 or greatest > 1e8 or smallest < 1e-4
    if whole and not scientific:
        return lambda value: f"{value:.0f}."
    spec = f".{options.precision}{'e' if scientific else 'f'}"
    return lambda value: format(value, spec)
