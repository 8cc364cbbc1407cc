"""Small programs that run once with PyTorch and once with the candidate. Both runs must print the same text."""

import re
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from textwrap import dedent
from typing import Any

import numpy
import pytest
import torch

from .candidate import candidate, lookup, seed
from .comparison import arrays_differ, dtype_name, graph, is_tensor
from .conversion import to_array
from .exceptions import unexcused

# Without this setting, PyTorch shows each warning of its core only once in a process.
torch.set_warn_always(True)


@dataclass
class TensorRecord:
    """The recorded properties of a tensor."""

    dtype: str
    shape: tuple[int, ...]
    requires_grad: bool
    grad_fn: str
    values: numpy.ndarray

    def differs(self, expected: "TensorRecord") -> str | None:
        for name in ("dtype", "shape", "requires_grad", "grad_fn"):
            if getattr(self, name) != getattr(expected, name):
                return f"{name} {getattr(self, name)}, expected {getattr(expected, name)}"
        return arrays_differ(self.values, expected.values)


@dataclass
class ErrorRecord:
    """An exception: its type, and the first sentence of its message."""

    kind: str
    message: str
    whole: str

    def differs(self, expected: "ErrorRecord") -> str | None:
        if self.kind != expected.kind:
            return f"raised {self.kind}: {self.whole}\n    expected {expected.kind}: {expected.whole}"
        if " ".join(self.whole.split()).startswith(expected.message):
            return None
        return f"{self.kind} says {self.whole!r}\n    expected {expected.whole!r}"


def record(value: Any) -> Any:
    """Return the value as plain data that does not depend on the library."""
    if is_tensor(value):
        # Clone the tensor, because PyTorch does not resize a tensor whose memory an array shares.
        values = to_array(value.detach().clone())
        return TensorRecord(
            dtype_name(value.dtype), tuple(value.shape), value.requires_grad, type(value.grad_fn).__name__, values
        )
    if isinstance(value, BaseException):
        whole = str(value).replace(f"'{candidate.__name__}'", "'torch'")  # the library's own name
        return ErrorRecord(type(value).__name__, _first_sentence(whole), whole)
    if isinstance(value, dict):
        return {str(key): record(item) for key, item in value.items()}
    if type(value).__name__ == "Size":
        return ["Size", *value]
    if isinstance(value, list | tuple):
        return [record(item) for item in value]
    if isinstance(value, bool | int | float | complex | str | bytes | None):
        return value
    if isinstance(value, numpy.ndarray | numpy.generic):
        return [type(value).__name__, str(value.dtype), list(value.shape), value.tolist()]
    if isinstance(value, slice | range):
        return repr(value)
    if isinstance(value, type):
        return value.__name__
    if hasattr(value, "next_functions"):
        return type(value).__name__
    return str(value)


def _first_sentence(message: str) -> str:
    """Return the first sentence without the library's name."""
    message = re.sub(r"\b(PyTorch|adjoint) (does not|is not)", r"the library \2", message)
    return " ".join(message.strip().split("\n", 1)[0].split(". ", 1)[0].split())


def records_differ(actual: Any, expected: Any) -> str | None:
    if isinstance(expected, TensorRecord | ErrorRecord):
        if type(actual) is not type(expected):
            return f"{actual!r}, expected {expected!r}"
        return actual.differs(expected)
    if type(actual) is not type(expected):
        return f"{actual!r}, expected {expected!r}"
    if isinstance(expected, list):
        if len(actual) != len(expected):
            return f"{actual!r}, expected {expected!r}"
        pairs = zip(actual, expected, strict=True)
        return next((difference for one, two in pairs if (difference := records_differ(one, two))), None)
    if isinstance(expected, dict):
        if list(actual) != list(expected):
            return f"names {list(actual)}, expected {list(expected)}"
        return next(
            (f"{name}: {d}" for name, item in expected.items() if (d := records_differ(actual[name], item))), None
        )
    if isinstance(expected, float | complex):
        return (
            None
            if numpy.isclose(actual, expected, 1e-6, 1e-9, equal_nan=True)
            else f"{actual!r}, expected {expected!r}"
        )
    return None if actual == expected else f"{actual!r}, expected {expected!r}"


class Session:
    """A run of a program's source with `torch` bound to one library, which records the values that the program shows."""

    def __init__(self, module: Any) -> None:
        self.shown: list[tuple[int, Any]] = []
        self.names = {
            "torch": module,
            "F": lookup(module, "nn.functional"),
            "numpy": numpy,
            "show": self.show,
            "raises": self.raises,
            "warns": self.warns,
            "graph": graph,
            "saved": saved_tensors,
            "saved_tensors": saved_tensors,
            "saved_arguments": saved_arguments,
        }

    def run(self, source: str) -> list[tuple[int, Any]]:
        """Return the values that the program shows, with their lines. An uncaught exception is the last item."""
        seed(self.names["torch"], 0)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(compile(source, "<program>", "exec"), self.names)  # only programs of the tests run here
        except Exception as error:  # the comparison covers errors too
            lines = [
                frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "<program>"
            ]
            self.shown.append(((lines or [0])[0] or 0, record(error)))
        return self.shown

    def show(self, *values: Any) -> None:
        self._add(record(list(values)))

    def raises(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        """Show the exception that a call raises, or "nothing" if it raises none."""
        try:
            function(*args, **kwargs)
        except Exception as error:  # the comparison covers errors too
            self._add(record(error))
        else:
            self._add("raised nothing")

    def warns(self, function: Callable[..., Any]) -> None:
        """Show category and first sentence of the warnings of a call, and its result."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = function()
        said = [
            (type(w.message).__name__, _first_sentence(str(w.message).split(" (Triggered internally")[0]))
            for w in caught
        ]
        self._add(record([said, result]))

    def _add(self, item: Any) -> None:
        line = next(f.lineno for f in reversed(traceback.extract_stack()) if f.filename == "<program>")
        self.shown.append((line or 0, item))


def saved(node: Any) -> dict[str, Any]:
    """Return the `_saved_*` attributes of a node."""
    return {name: getattr(node, name) for name in sorted(dir(node)) if name.startswith("_saved_")}


def saved_tensors(node: Any) -> dict[str, Any]:
    """Return the saved tensors of a node."""
    return {name: value for name, value in saved(node).items() if is_tensor(value) or _is_tensors(value)}


def _is_tensors(value: Any) -> bool:
    return isinstance(value, tuple | list) and any(is_tensor(item) for item in value)


# PyTorch saves these attributes of a tensor to create a gradient with the same memory layout. They can be computed from the
# tensor.
_LAYOUT = ("_sizes", "_strides", "_numel", "_layout", "_options", "_device")


def saved_arguments(node: Any) -> dict[str, Any]:
    """Return the saved values of a node that are not tensors: dimensions, numbers, flags."""
    others = {name: value for name, value in saved(node).items() if not is_tensor(value) and not _is_tensors(value)}
    return {name: _number(value) for name, value in others.items() if not name.endswith(_LAYOUT)}


def _number(value: Any) -> Any:
    """Normalize numbers: 6.0 equals 6, and PyTorch shows negative dimensions as unsigned numbers of 64 bits."""
    if isinstance(value, tuple | list):
        return [_number(item) for item in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return float(value - 2**64 if isinstance(value, int) and value >= 2**63 else value)


def compare(source: str) -> list[str]:
    """Run a program with both libraries, and describe the differences of the output."""
    source = dedent(source).strip("\n")
    lines = source.split("\n")
    actual, expected = Session(candidate).run(source), Session(torch).run(source)
    differences = []
    for (line, one), (expected_line, two) in zip(actual, expected, strict=False):
        difference = (
            records_differ(one, two)
            if line == expected_line
            else f"shown {one!r}, expected {two!r} (line {expected_line})"
        )
        if difference:
            differences.append(f"line {line}: {lines[line - 1].strip()}\n    {difference}")
        if line != expected_line:
            return differences
    if len(actual) != len(expected):
        differences.append(
            f"shows {len(actual)} things, expected {len(expected)}; the last of them: {(actual + expected)[-1]}"
        )
    return differences


def program_test(programs: dict[str, str], *thorough: str) -> Callable[[str], None]:
    """Return a test function with one case for each program. Programs in `thorough` are not in the quick tier."""
    marks = dict.fromkeys(thorough, pytest.mark.thorough)

    @pytest.mark.parametrize("name", [pytest.param(name, marks=marks.pop(name, ())) for name in programs])
    def test(name: str) -> None:
        source = dedent(programs[name]).strip("\n")
        differences = unexcused(name, compare(source))
        assert not differences, "\n".join([*differences, "", "The program:", source])

    assert not marks, f"no programs {list(marks)}"
    return test
