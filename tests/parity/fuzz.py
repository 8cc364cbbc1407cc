"""Random programs: drawn line by line, run by both libraries, and compared in everything that can be seen of them."""

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy
import torch

from .candidate import candidate
from .comparison import errors_differ, is_tensor
from .conversion import to_array
from .fuzz_lines import CHOICES, KINDS, PRELUDE, STARTS

Choose = Callable[[Sequence[Any]], Any]

_PRELUDE = compile(PRELUDE, "<prelude>", "exec")

# Rounding differs, and a program of many lines multiplies it.
_TOLERANCES = {"f": {4: 1e-4, 8: 1e-8}, "c": {8: 1e-4, 16: 1e-8}}


class Explained(NamedTuple):
    """A difference that is meant, or of something PyTorch does not define. Where one is found, the program ends."""

    line: str
    difference: str
    reason: str


EXPLAINED = [
    Explained(
        "",
        r'raised nothing, expected NotImplementedError: "?\w+"? not implemented for',
        "PyTorch has no kernel for the dtype",
    ),
    Explained(
        "failing_pack|save_on_cpu|saved_tensors_hooks",
        "expected KeyError: 'pack'",
        "what is saved before an operation that fails is packed by PyTorch before it fails",
    ),
    Explained(
        "torch.func",
        "raised nothing.*don't yet support saved tensor hooks",
        "PyTorch refuses transforms under saved-tensor hooks",
    ),
    Explained("func", "raised nothing.*Nested forward mode AD is not supported", "levels of forward mode nest here"),
    Explained(
        "torch.func.(jvp|jacfwd)",
        "requires_grad False, expected True",
        "PyTorch takes a tangent to depend on the point wherever the point requires grad",
    ),
]


class Modes:
    """The contexts that a program has entered, to be left in reverse order."""

    def __init__(self) -> None:
        self.entered: list[Any] = []

    def enter(self, mode: Any) -> None:
        mode.__enter__()
        self.entered.append(mode)

    def leave(self) -> None:
        self.entered.pop().__exit__(None, None, None)


class Run:
    """One library's side of a program."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.modes = Modes()
        self.values: dict[str, numpy.ndarray] = {}
        self.names: dict[str, Any] = {
            "torch": module,
            "modes": self.modes,
            "snapshot": snapshot,
            "ThreadPoolExecutor": ThreadPoolExecutor,
        }
        module.manual_seed(0)
        exec(_PRELUDE, self.names)

    def step(self, code: Any) -> Exception | None:
        try:
            exec(code, self.names)
        except Exception as error:  # compared
            return error
        return None

    def tensors(self) -> dict[str, Any]:
        return {
            name: value
            for name, value in self.names.items()
            if isinstance(value, self.module.Tensor) and (name in "abcd" or name[1:].isdigit())
        }

    def close(self) -> None:
        """Leaves the modes, however the program ended."""
        while self.modes.entered:
            with contextlib.suppress(Exception):
                self.modes.leave()
        self.module.set_grad_enabled(True)
        self.module.autograd.set_detect_anomaly(False)


def snapshot(value: Any) -> Any:
    """What was seen of a value when a function was called, independent of the library."""
    if is_tensor(value):
        return values_of(value)
    if isinstance(value, tuple | list):
        return tuple(snapshot(item) for item in value)
    return value


def values_of(tensor: Any) -> numpy.ndarray:
    """A copy: PyTorch does not resize memory that an array shares."""
    return to_array(tensor.detach().clone())


# Drawing a line


class Program:
    """A program as it grows: both runs of it, and its text so far."""

    def __init__(self, choose: Choose) -> None:
        self.choose = choose
        self.actual, self.expected = Run(candidate), Run(torch)
        self.lines: list[str] = []

    def text(self) -> str:
        return "\n".join(self.lines)

    def start(self) -> str | None:
        for name in "abcd":
            difference = self.run(f"{name} = {self.choose(STARTS)}")
            if difference:
                return difference
        return None

    def draw(self) -> str | None:
        """The next line; None where PyTorch does not say what it does."""
        tensors = self.expected.tensors()
        names = [name for name in tensors if self.is_tame(name)][::-1]
        if not names:
            return None
        line = self.choose(self.choose(KINDS))
        obey = self.choose(range(8))
        x, y, z = (self.choose(names) for _ in range(3))
        if obey:
            condition = _condition(line.condition)
            fitting = [
                (one, two, three)
                for one in names
                for two in (names if "y" in condition.co_names else [y])
                for three in (names if "z" in condition.co_names else [z])
                if eval(condition, _SHAPES, {"x": tensors[one], "y": tensors[two], "z": tensors[three]})
            ]
            if not fitting:
                return None
            x, y, z = self.choose(fitting)
        text = self.fill(line.text, x, y, z)
        if not text.startswith(("modes", "del", "torch.set")) and not self.choose(range(12)):
            text = self.fill("with {mode}: ", x, y, z) + text
        return text if is_defined(text, {name: tensors[name] for name in (x, y, z)}) else None

    def fill(self, text: str, x: str, y: str, z: str) -> str:
        tensor = self.expected.names[x]
        given = {"x": x, "y": y, "z": z, "r": f"t{len(self.lines)}"}
        while found := re.search(r"\{(\w+)\}", text):
            name = found[1]
            if name == "d":
                value = str(self.choose(range(-1, max(tensor.dim(), 1))))
            elif name == "i":
                value = str(self.choose([0, 1, -1]))
            else:
                value = given[name] if name in given else self.choose(CHOICES[name])
            text = text[: found.start()] + value + text[found.end() :]
        return text

    def is_tame(self, name: str) -> bool:
        """Whether rounding does not become the result: infinite parts of complex numbers, sines of huge numbers."""
        values = self.expected.values.get(name)
        return values is None or not values.size or bool(numpy.nanmax(numpy.abs(values.astype(numpy.complex128))) < 1e4)

    def run(self, line: str) -> str | None:
        """Runs a line by both libraries, and says how what can be seen of them afterwards differs."""
        self.lines.append(line)
        code = compile(line, "<program>", "exec")
        error, expected_error = self.actual.step(code), self.expected.step(code)
        if expected_error is not None:
            difference = errors_differ(error, expected_error, words=0)
            if difference:
                return difference
            self.lines[-1] += f"  # {type(expected_error).__name__}"
        elif error is not None:
            return f"raised {type(error).__name__}: {error}, expected nothing"
        return self.compare_values() or self.compare_logs()

    # What can be seen

    def compare_values(self) -> str | None:
        actual, expected = self.actual.tensors(), self.expected.tensors()
        if list(actual) != list(expected):
            return f"names {list(actual)}, expected {list(expected)}"
        for name, two in expected.items():
            one = actual[name]
            difference = self.compare_tensor(name, one, two)
            if difference:
                return f"{name}: {difference}"
            if (one.grad is None) != (two.grad is None):
                return f"{name}.grad is {one.grad}, expected {two.grad}"
            if two.grad is not None:
                difference = self.compare_tensor(f"{name}.grad", one.grad, two.grad)
                if difference:
                    return f"{name}.grad: {difference}"
        return None

    def compare_tensor(self, name: str, one: Any, two: Any) -> str | None:
        if tuple(one.shape) != tuple(two.shape):
            return f"shape {tuple(one.shape)}, expected {tuple(two.shape)}"
        if str(one.dtype) != str(two.dtype):
            return f"dtype {one.dtype}, expected {two.dtype}"
        first, second = values_of(one), values_of(two)
        self.actual.values[name], self.expected.values[name] = first, second
        return values_differ(first, second)

    def compare_logs(self) -> str | None:
        """What functions of the user's saw while a line ran. The order in which an operator saves its operands is its own."""
        logs = [
            sorted(run.names["log"], key=lambda entry: repr(entry) if entry[0] == "pack" else "")
            for run in (self.actual, self.expected)
        ]
        for run in (self.actual, self.expected):
            run.names["log"].clear()
        return records_differ(*logs)

    def compare_graphs(self) -> str | None:
        """All that is known of the tensors besides values. Asking for a `grad_fn` makes views find theirs again."""
        actual, expected = self.actual.tensors(), self.expected.tensors()
        for name in expected:
            for question in QUESTIONS:
                one, two = _ask(question, actual, name), _ask(question, expected, name)
                if one != two:
                    return f"{name}: {question} {one}, expected {two}"
        return None


def _condition(text: str) -> Any:
    if text not in _CONDITIONS:
        _CONDITIONS[text] = compile(text, "<condition>", "eval")
    return _CONDITIONS[text]


_CONDITIONS: dict[str, Any] = {}


def fits(one: Sequence[int], two: Sequence[int]) -> bool:
    """Whether shapes broadcast together."""
    return all(a == b or 1 in (a, b) for a, b in zip(one[::-1], two[::-1], strict=False))


def fits_into(one: Sequence[int], two: Sequence[int]) -> bool:
    """Whether the first shape broadcasts to the second."""
    return len(one) <= len(two) and all(a in (1, b) for a, b in zip(one[::-1], two[::-1], strict=False))


_SHAPES = {"fits": fits, "fits_into": fits_into}


# What PyTorch defines


def is_defined(line: str, tensors: dict[str, torch.Tensor]) -> bool:
    """Whether PyTorch says what a line does.

    A change of elements that share memory, or from elements that overlap those written to, depends on the order in which
    elements are visited.
    """
    if not re.search(r"_\(|\] .?=|[-+*/]=|out=|\.data|inplace=|stepping|Double_|Dirty2", line):
        return True
    places = {name: _places(tensor) for name, tensor in tensors.items() if re.search(rf"\b{name}\b", line)}
    if any(len(set(place)) < len(place) for place in places.values()):
        return False
    found = list(places.items())
    return not any(set(one) & set(two) for k, (_, one) in enumerate(found) for _, two in found[:k])


def _places(tensor: torch.Tensor) -> list[int]:
    """Where in memory the elements are."""
    size, start = tensor.element_size(), tensor.untyped_storage().data_ptr()
    places = numpy.zeros(tensor.shape, dtype=numpy.int64) + tensor.storage_offset()
    for dim, (length, step) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        places += (numpy.arange(length) * step).reshape(-1, *[1] * (tensor.dim() - dim - 1))
    return [start + place * size + byte for place in places.flatten().tolist() for byte in range(0, size, 4 if size > 4 else 1)]


# Questions


def _sharing(tensors: dict[str, Any], name: str) -> str:
    """The first tensor with the same memory."""
    if not tensors[name].numel():
        return name
    storage = tensors[name].untyped_storage().data_ptr()
    return next(other for other, tensor in tensors.items() if tensor.untyped_storage().data_ptr() == storage)


def _base(tensors: dict[str, Any], name: str) -> str | None:
    base = tensors[name]._base
    return None if base is None else next((other for other in tensors if tensors[other] is base), "another")


def _same(tensors: dict[str, Any], name: str) -> str:
    return next(other for other in tensors if tensors[other] is tensors[name])


def _layout(tensors: dict[str, Any], name: str) -> Any:
    """Strides and offset of views; those of fresh memory are PyTorch's own business where they follow no operand."""
    tensor = tensors[name]
    if not tensor._is_view() or tensor.numel() < 2:
        return None
    return tensor.storage_offset(), [step for step, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1]


def _tangent(tensors: dict[str, Any], name: str) -> Any:
    module = torch if isinstance(tensors[name], torch.Tensor) else candidate
    try:
        tangent = module.autograd.forward_ad.unpack_dual(tensors[name]).tangent
    except Exception as error:  # there is no level
        return type(error).__name__
    return None if tangent is None else (str(tangent.dtype), Values(values_of(tangent)))


class Values:
    """Values that are equal where they are close."""

    def __init__(self, array: numpy.ndarray) -> None:
        self.array = array

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Values) and values_differ(self.array, other.array) is None

    def __repr__(self) -> str:
        return repr(self.array)


QUESTIONS: dict[str, Callable[[dict[str, Any], str], Any]] = {
    "the same object as": _same,
    "requires_grad": lambda tensors, name: tensors[name].requires_grad,
    "is_leaf": lambda tensors, name: tensors[name].is_leaf,
    "_version": lambda tensors, name: tensors[name]._version,
    "is_inference": lambda tensors, name: tensors[name].is_inference(),
    "is view": lambda tensors, name: tensors[name]._is_view(),
    "base": _base,
    "shares memory with": _sharing,
    "layout": _layout,
    "tangent": _tangent,
    "grad_fn": lambda tensors, name: type(tensors[name].grad_fn).__name__,
    "output_nr": lambda tensors, name: tensors[name].output_nr,
    "retains_grad": lambda tensors, name: tensors[name].retains_grad,
}


def _ask(question: str, tensors: dict[str, Any], name: str) -> Any:
    try:
        return QUESTIONS[question](tensors, name)
    except Exception as error:  # compared
        return type(error).__name__


# Comparing


def values_differ(actual: numpy.ndarray, expected: numpy.ndarray) -> str | None:
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return f"{actual.dtype} {actual.shape}, expected {expected.dtype} {expected.shape}"
    if numpy.array_equal(actual, expected):
        return None
    tolerance = _TOLERANCES.get(expected.dtype.kind, {}).get(expected.dtype.itemsize, 0)
    with numpy.errstate(all="ignore"):
        close = numpy.isclose(actual, expected, tolerance, tolerance, equal_nan=True)
        if expected.dtype.kind == "c":  # infinite when either part is; the other part is left open (C99, annex G)
            close |= ~numpy.isfinite(actual) & ~numpy.isfinite(expected)
    return None if close.all() else f"{actual.tolist()}, expected {expected.tolist()}"


def records_differ(actual: Any, expected: Any) -> str | None:
    if isinstance(expected, numpy.ndarray):
        if not isinstance(actual, numpy.ndarray):
            return f"seen {actual!r}, expected {expected!r}"
        return values_differ(actual, expected)
    if isinstance(expected, tuple | list):
        if not isinstance(actual, tuple | list) or len(actual) != len(expected):
            return f"seen {actual!r}, expected {expected!r}"
        pairs = zip(actual, expected, strict=True)
        return next((difference for one, two in pairs if (difference := records_differ(one, two))), None)
    return None if actual == expected else f"seen {actual!r}, expected {expected!r}"


def explanation(line: str, difference: str) -> Explained | None:
    return next((e for e in EXPLAINED if re.search(e.line, line) and re.search(e.difference, difference)), None)


def differences(choose: Choose, steps: int) -> Iterator[tuple[Program, str]]:
    """Draws a program and runs it until something differs, which is yielded; nothing if it does not."""
    program = Program(choose)
    try:
        difference = program.start()
        for _ in range(steps):
            if difference:
                break
            line = program.draw()
            if line is not None:
                difference = program.run(line)
                if not difference and choose(range(2)):
                    difference = program.compare_graphs()
        difference = difference or program.compare_graphs()
        if difference and not explanation(program.lines[-1], difference):
            yield program, difference
    finally:
        program.actual.close()
        program.expected.close()
