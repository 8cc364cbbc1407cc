"""Random programs, which are drawn line by line. Both libraries run each line, and all visible state is compared."""

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import torch

from tests.parity.candidate import candidate, seed
from tests.parity.comparison import errors_differ, is_tensor
from tests.parity.conversion import to_array
from tests.parity.random_programs.lines import CHOICES, KINDS, PRELUDE, STARTS

Choose = Callable[[Sequence[Any]], Any]

_PRELUDE = compile(PRELUDE, "<prelude>", "exec")

# The libraries round differently, and many lines amplify the differences. Single precision anywhere in a program determines the
# tolerance, because later lines may convert results to double precision.
_DOUBLE, _SINGLE = 1e-8, 1e-4


class Explained(NamedTuple):
    """An accepted difference, which ends the program. It is intended, or PyTorch does not define the case.

    Patterns: `line` matches the text of the program, with NAME for the tensor that differs. `difference` matches the description
    of the difference. `error` matches the errors that PyTorch has raised so far.
    """

    reason: str
    line: str
    difference: str
    error: str = ""


EXPLAINED = [
    Explained(
        "PyTorch has no kernel for the dtype, or no derivative",
        "",
        r"expected NotImplementedError: .*not implemented for '|does not support automatic differentiation for outputs with",
    ),
    Explained(
        "PyTorch packs the saved tensors of an operation before the operation fails",
        "failing_pack",
        "expected KeyError: 'pack'",
    ),
    Explained(
        "PyTorch refuses transforms under saved-tensor hooks",
        "",
        "expected RuntimeError.*don't yet support saved tensor hooks",
    ),
    Explained(
        "levels of forward mode may be nested here",
        "",
        "expected RuntimeError: Nested forward mode AD is not supported",
    ),
    Explained(
        "in PyTorch, results of a transform depend on the point if the point requires grad",
        r"NAME = .*torch.func.",
        "(requires_grad False|is_leaf True), expected",
    ),
    Explained(
        "PyTorch has no tangents of losses with integer operands",
        r"dual[^Z]*(mse|smooth_l1)_loss\(",
        "^raised nothing, expected RuntimeError: result type Double can't be cast to the desired output type Long",
    ),
    Explained(
        "the gradient of a mean is one expanded number here",
        r"mean\(",
        "^raised RuntimeError: unsupported operation: more than one element of the written-to .*, expected nothing",
    ),
    Explained(
        "a transform may save inference tensors, because its graph does not outlive it",
        r"inference_mode[^Z]*torch\.func\.grad",
        "^raised nothing, expected RuntimeError: Inference tensors cannot be saved",
    ),
    Explained(
        "after the error of a hook, a node has released its saved tensors",
        "register_hook\\(failing",
        "^raised RuntimeError: Trying to backward through the graph a second time.*, expected KeyError",
    ),
    Explained(
        "integers never require grad here; PyTorch records some changes of them",
        "",
        r"\((int64|bool)\): (requires_grad False, expected True|grad_fn NoneType|is_leaf True, expected False)",
    ),
    Explained("integers never require grad here", "", "Autograd not support dtype: (Long|Bool)"),
    Explained(
        "integers never require grad here",
        r"retain_grad|grad_fn\.|autograd\.grad",
        "^raised (RuntimeError: (can't retain_grad on Tensor that has requires_grad=False|One of the differentiated Tensors does "
        r"not require grad)|AttributeError: 'NoneType' object has no attribute '\w+'), expected nothing",
    ),
    Explained(
        "PyTorch checks the dimension first when it concatenates batched numbers, which is an error",
        r"vmap.*torch\.cat\(",
        "^raised RuntimeError: zero-dimensional tensor .* cannot be concatenated, expected IndexError: Dimension out of range",
    ),
    Explained(
        "`data` changes from an inference tensor to another tensor, or the reverse",
        r"inference_mode[^Z]*NAME\.data = ",
        "is_inference",
    ),
    Explained(
        "PyTorch's derivative computes with a boolean operand",
        r"atan2|pow|\*\*",
        "^raised nothing, expected RuntimeError: (Negation|Subtraction), the `-` operator",
    ),
    Explained(
        "a missing derivative raises an error only if it is needed",
        "//[^Z]*inputs=",
        "^raised nothing, expected RuntimeError: derivative for aten::floor_divide",
    ),
    Explained("PyTorch's power of zero and a complex zero is nan", r"pow|\*\*", r"\(complex128\): .*expected .*nan"),
    Explained(
        "a node without incoming gradient does not check its saved tensors",
        r"Same\.apply",
        "^raised nothing, expected RuntimeError: (one of the variables needed|Trying to backward through)",
    ),
    Explained(
        "the softmax of one number is constant",
        r"torch\.func\..*softmax",
        "requires_grad True, expected False|is a view and is being modified inplace",
    ),
    Explained(
        "the line contains two mistakes, and the libraries report different ones",
        "",
        "^raised NotImplementedError: .*, expected RuntimeError: (The size of tensor a|output with shape)",
    ),
    Explained(
        "the line contains two mistakes, and the libraries report different ones",
        "func.*index_select",
        "^raised RuntimeError: index_select.*, expected IndexError",
    ),
    Explained(
        "a result in single precision is written to a double tensor",
        r"torch.exp\(.*out=NAME",
        r"\((float64|complex128)\): \[+.*, expected",
    ),
    Explained("a detached tensor retains no gradient here", r"NAME.detach_\(\)", "retains_grad False, expected True"),
    Explained("PyTorch detaches nothing in inference mode", "NAME.detach_", "requires_grad False, expected True"),
    Explained(
        "PyTorch detaches nothing in inference mode",
        r"inference_mode[^Z]*\.detach_\(",
        "^raised RuntimeError: Can't detach views in-place.*expected nothing",
    ),
    Explained(
        "PyTorch fills some results in place, which increments the version outside of inference mode",
        r"inference_mode[^Z]*NAME = ",
        r"_version 0, expected \d",
    ),
    Explained(
        "polar saves its operands here", "polar", "^raised RuntimeError: one of the variables needed for gradient"
    ),
    Explained(
        "PyTorch changes the tensor, and then raises",
        r"  # RuntimeError\Z",
        r"^\w+(\.grad)? \(\w+\): (shape|laid out|[-[\d])",
        "Inplace update to inference tensor|ZeroDivisionError",
    ),
    Explained(
        "PyTorch packs the saved tensors of an operation before the operation fails",
        r"  # \w+\Z",
        "^seen .*'pack'",
    ),
    Explained("the first gradient of a leaf may be copied to `grad`", r"NAME = .*\.grad$", "_version"),
    Explained(
        "the line contains two mistakes, and the libraries report different ones",
        "clamp",
        "^raised (?!nothing).*clamp is not supported for complex types(?!, expected nothing)",
    ),
    Explained(
        "a view made in inference mode has no node in PyTorch",
        "register_multi_grad_hook|edge_of",
        "expected AttributeError: 'NoneType'",
    ),
    Explained(
        "PyTorch's derivative of scatter expects index and source to have equal shapes",
        r"\.scatter\(",
        "^raised nothing, expected RuntimeError: Function ScatterBackward0 returned an invalid gradient",
    ),
    Explained(
        "PyTorch raises another error for the index",
        "index_(fill|copy)_",
        "expected RuntimeError: setStorage",
    ),
    Explained(
        "fill_diagonal_ is an operator here, but a change of a view in PyTorch",
        "fill_diagonal_",
        "grad_fn FillDiagonalBackward0, expected|^raised RuntimeError: a leaf Variable that requires grad .*, expected nothing",
    ),
    Explained(
        "in PyTorch, a leaf that is the root is not among the nodes that run",
        "register_multi_grad_hook",
        "^seen .*, expected|A leaf node was passed to _will_engine_execute_node",
    ),
    Explained(
        "the line contains two mistakes, and the libraries report different ones",
        "inference_mode",
        "^raised RuntimeError: Inplace update to inference.*, expected IndexError",
    ),
    Explained(
        "PyTorch also computes gradients that are not requested, and passes them to hooks",
        r"torch.(stack|cat|hstack|vstack)[^Z]*grad_fn\.register_hook",
        "^seen None, expected array",
    ),
    Explained(
        "PyTorch has no derivative with respect to an integer divisor",
        "addcdiv",
        "^raised nothing, expected RuntimeError: result type",
    ),
    Explained(
        "PyTorch detects the missing derivative before leaves accumulate",
        "//",
        "grad tensor.*, expected None",
        "derivative for aten::floor_divide",
    ),
    Explained(
        "PyTorch uses the given gradient without a copy, although the gradient shares memory with the leaf",
        r"\.backward\([a-dt]\d*\)",
        r"^[a-d](\.grad)? \(float\d+\): \[",
    ),
    Explained(
        "PyTorch retains the gradient in the shape that the tensor had before an in-place view",
        r"\bNAME\.retain_grad[^Z]*\bNAME\.(t|swapaxes|transpose|squeeze|unsqueeze)_\(",
        r"\.grad \(",
    ),
    Explained(
        "the derivative can be computed from other saved tensors",
        r"polar|cosine_similarity|copysign|addcdiv|logsigmoid|linalg\.(inv|det|solve)\b",
        "^seen (.*'(un)?pack'|array)",
    ),
    Explained(
        "PyTorch also saves the total weight",
        "cross_entropy",
        r"^seen .*expected \[('pack'|\('pack', array\()",
    ),
    Explained(
        "PyTorch cannot trace under anomaly detection",
        "set_detect_anomaly[^Z]*linearize",
        "^raised nothing, expected RuntimeError: It appears that you're trying to get value out of a tracing tensor",
    ),
    Explained(
        "PyTorch's transforms give zeros in inference mode",
        r"inference_mode[^Z]*NAME = .*(linearize|functional\.)",
        r"expected \[*-?0",
    ),
    Explained(
        "PyTorch converts some operands before it broadcasts operands of several dtypes",
        r"NAME = .*(addc(mul|div)|_loss)\(",
        "laid out",
    ),
    Explained(
        "nodes save no tensors in inference mode, so the context watches none",
        "inference_mode[^Z]*allow_mutation_on_saved_tensors",
        "^raised nothing, expected RuntimeError: Inference tensors do not track version counter",
    ),
    Explained(
        "`linearize` uses another derivative of the function",
        r"func\.linearize\(lambda a: \w+\.apply",
        "must override the setup_context",
    ),
    Explained("an internal assertion of PyTorch fails", "", "expected RuntimeError: .*INTERNAL ASSERT FAILED"),
    Explained(
        "PyTorch cannot search batched gradients for nan",
        "set_detect_anomaly",
        "expected RuntimeError: Batching rule not implemented for aten::item",
    ),
    Explained(
        "PyTorch creates no tangent for a tensor whose elements share memory",
        r"torch.func.(jvp|jacfwd|hessian|linearize)",
        "expected RuntimeError: unsupported operation: more than one element of the written-to tensor",
    ),
    Explained(
        "PyTorch cannot sum elements over an empty batch",
        "vmap",
        r"^raised nothing, expected IndexError: select\(\): index 0 out of range for tensor of size \[0",
    ),
    Explained(
        "PyTorch does not record operations whose operands are all inference tensors",
        r"inference_mode[^Z]*(requires_grad=True|\.data = |grad_enabled\(True|enable_grad)",
        "^raised RuntimeError: Inference tensors cannot be saved.*, expected nothing|requires_grad True, expected False|"
        "^raised nothing, expected RuntimeError: element 0 of tensors does not require grad|"
        "^raised RuntimeError: a leaf Variable that requires grad .*, expected nothing",
    ),
    Explained(
        "an internal assertion of PyTorch fails",
        "",
        r"expected RuntimeError: Expected isFloatingType\(grad.scalar_type",
    ),
    Explained("PyTorch's node has no specific class", "unpack_dual", "grad_fn Identity, expected CppFunction"),
    Explained(
        "PyTorch has no derivative of the in-place form",
        "a(sin|cos)h_",
        "^seen .*'pack'|derivative for 'inplace version of",
    ),
    Explained("PyTorch does not define the saved tensors of second derivatives", r"second\(", "^seen .*'unpack'"),
    Explained(
        "PyTorch conjugates the product of two conjugated vectors lazily",
        "@|inner|matmul",
        "is_conj False, expected True",
    ),
    Explained("PyTorch's library refuses to transform empty tensors", "fft", "expected RuntimeError: MKL FFT error"),
    Explained(
        "the changed tensor is a view of a conjugate in one library, and the conjugate of a view in the other",
        r"conj\(|H\b|adjoint|ifft|_neg_view",
        "grad_fn (Conj|NegView|AsStrided)Backward0, expected (Conj|NegView|AsStrided)Backward0",
    ),
    Explained(
        "if a base gets a history later, PyTorch treats the view as a leaf until the program reads `grad_fn`",
        r"^(t\d+) = \w+[.[][^Z]*\n(with [^\n]*: )?\1\b[^\n]*\Z",
        "^raised nothing, expected RuntimeError: a leaf Variable that requires grad is being used in an in-place operation",
    ),
    Explained(
        "if `data` changes the dtype of a leaf, PyTorch creates a new node, which earlier graphs do not contain",
        r"\.data = ",
        "^raised nothing, expected RuntimeError: The differentiated Tensor at index 0 appears to not have been used|"
        r"^raised KeyError: 't\d+', expected nothing",
    ),
    Explained(
        "PyTorch sums gradients to the shape that the leaf had at the creation of the node; here, at the use of the leaf",
        r"\bNAME\.data = ",
        r"\.grad \(\w+\): \[",
    ),
    Explained(
        "here a checkpoint computes with its arguments again; PyTorch only checks them",
        r"checkpoint\([^Z]*\.detach_\(",
        "^raised CheckpointError: .*, expected RuntimeError: Trying to use a saved tensor that has been detached in-place",
    ),
    Explained(
        "an internal assertion of PyTorch fails", "chunk_size", "expected AssertionError: arg_spec must not be None"
    ),
    Explained(
        "PyTorch forgets the outer of two nested contexts",
        "allow_mutation_on_saved_tensors[^Z]*allow_mutation_on_saved_tensors",
        "^raised nothing, expected AssertionError: Trying to backward outside of the 'allow_mutation_on_saved_tensors'",
        "contexts cannot be nested",
    ),
    Explained(
        "PyTorch saves a copy of a tensor that changes in place, and records this copy",
        r"(\w+)\.\w+_\([^Z]*NAME = \1\.grad_fn\._saved_self",
        r"grad_fn \w+, expected CloneBackward0",
    ),
    Explained(
        "PyTorch fails to repeat the view of a tensor that was detached, or changed in inference mode",
        r"\.conj\(\)[^Z]*(\.detach_\(|inference_mode)",
        "is_leaf False, expected RuntimeError$",
    ),
    Explained(
        "PyTorch checks changes of multiple views only if gradients are enabled; here, transforms check them too",
        r"(no_grad|grad_enabled\(False)[^Z]*torch\.func\.",
        r"^raised RuntimeError: Output \d of \w+ is a view and its base or another view .*, expected nothing",
    ),
    Explained(
        "the gradient has the shape that the leaf had before an in-place view",
        r"\.unsqueeze_\(",
        "^raised RuntimeError: output with shape .* doesn't match the broadcast shape .*, expected nothing",
    ),
    Explained(
        "PyTorch's checkpoint records no nodes if it runs again in inference mode",
        "checkpoint.*use_reentrant=True[^Z]*inference_mode",
        "^raised nothing, expected RuntimeError: none of output has requires_grad=True",
    ),
    Explained(
        "the line contains two mistakes, and the libraries report different ones",
        "linearize",
        "^raised ValueError: Expected primal to be floating point .*, expected RuntimeError: only Tensors of floating point",
    ),
    Explained(
        "the line contains two mistakes, and the libraries report different ones",
        r"Same\.apply",
        r"^raised IndexError: select\(\): index .*, expected RuntimeError: Output 0 of Same is a view and its base",
    ),
]


class LeftOut(NamedTuple):
    """Lines that are not drawn if the tensors in the line satisfy `condition`."""

    reason: str
    line: str
    condition: str


LEFT_OUT = [
    LeftOut(
        "in PyTorch, a resize changes memory that other tensors share", r"out=|resize_", "any(shared(t) for t in given)"
    ),
    LeftOut(
        "PyTorch crashes when such a tensor is then changed in place",
        r"retain_grad|inputs=",
        "any(t.output_nr > 0 for t in given)",
    ),
    LeftOut("random numbers are drawn before or after an error", "dropout", "not given[0].is_floating_point()"),
    LeftOut("booleans have no negative", "_neg_view", "given[0].dtype == torch.bool"),
    LeftOut(
        "the view would reach memory outside of the tensor",
        "as_strided",
        "given[0].numel() < 4 or not given[0].is_contiguous()",
    ),
    LeftOut(
        "the operation reads elements after writing them",
        r"out=|scatter|index_\w+_\(|addmm_",
        "len(given) < line_names",
    ),
    LeftOut(
        "PyTorch does not define which of equal elements is found", "kthvalue|topk", "any(has_ties(t) for t in given)"
    ),
    LeftOut("rounding decides whether a matrix is singular", "linalg", "singular(given[0])"),
    LeftOut(
        "PyTorch's derivative of polar assumes a positive absolute value",
        "polar",
        "not given[0].is_complex() and bool((given[0] < 0).any())",
    ),
    LeftOut(
        "rounding determines the integer that is written",
        "fill_",
        "any(t.is_floating_point() for t in given) and not all(t.is_floating_point() for t in given)",
    ),
    LeftOut(
        "the bytes of numbers depend on rounding", r"view\(torch", "not given[0].dtype in (torch.int64, torch.bool)"
    ),
    LeftOut("the strides of empty tensors are not defined", "view_as_complex|view.torch", "not given[0].numel()"),
    LeftOut(
        "the retained gradient would leave its vmap",
        "is_grads_batched",
        "any(t.retains_grad for t in tensors)",
    ),
]


class Modes:
    """The contexts that a program has entered, which are left in reverse order."""

    def __init__(self) -> None:
        self.entered: list[Any] = []

    def enter(self, mode: Any) -> None:
        mode.__enter__()
        self.entered.append(mode)

    def leave(self) -> None:
        self.entered.pop().__exit__(None, None, None)


class Run:
    """The run of a program with one library."""

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
        seed(module, 0)
        exec(_PRELUDE, self.names)

    def step(self, code: Any) -> Exception | None:
        try:
            exec(code, self.names)
        except Exception as error:  # all exceptions are compared
            return error
        return None

    def tensors(self) -> dict[str, Any]:
        return {
            name: value
            for name, value in self.names.items()
            if isinstance(value, self.module.Tensor) and (name in "abcd" or name[1:].isdigit())
        }

    def close(self) -> None:
        """Leave the modes, also if the program has ended with an error."""
        while self.modes.entered:
            with contextlib.suppress(Exception):
                self.modes.leave()
        self.module.set_grad_enabled(True)
        self.module.autograd.set_detect_anomaly(False)


def snapshot(value: Any) -> Any:
    """Describe a value that a function of the program has received. The description does not depend on the library."""
    if is_tensor(value):
        return values_of(value)
    if isinstance(value, tuple | list):
        return tuple(snapshot(item) for item in value)
    return value


def values_of(tensor: Any) -> numpy.ndarray:
    """Return a copy of the values, because PyTorch does not resize memory that an array shares."""
    return to_array(tensor.detach().clone())


# Drawing a line


class Program:
    """A growing program: its runs with both libraries, and its text so far."""

    def __init__(self, choose: Choose) -> None:
        self.choose = choose
        self.actual, self.expected = Run(candidate), Run(torch)
        self.lines: list[str] = []
        self.errors = ""
        self.tolerance = _DOUBLE

    def text(self) -> str:
        return "\n".join(self.lines)

    def start(self) -> str | None:
        for name in "abcd":
            difference = self.run(f"{name} = {self.choose(STARTS)}")
            if difference:
                return difference
        return None

    def draw(self) -> str | None:
        """Draw the next line, or return None if PyTorch does not define its effect."""
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
        return None if self.is_left_out(text) else text

    def is_left_out(self, line: str) -> bool:
        """Return whether PyTorch or this comparison leaves the effect of a line undefined."""
        tensors = self.expected.tensors()
        given = {name: tensors[name] for name in tensors if re.search(rf"\b{name}\b", line)}
        storages = [tensor.untyped_storage().data_ptr() for tensor in tensors.values()]
        known = {
            "given": list(given.values()),
            "tensors": list(tensors.values()),
            "torch": torch,
            "singular": is_singular,
            "has_ties": has_ties,
            "line_names": len(re.findall(rf"\b({'|'.join(given)})\b", line)),
            "shared": lambda tensor: storages.count(tensor.untyped_storage().data_ptr()) > 1,
        }
        if not is_defined(line, given):
            return True
        return any(re.search(each.line, line) and eval(each.condition, known) for each in LEFT_OUT)

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
        """Return whether rounding errors stay small.

        They are large for sines of huge numbers and signs of tiny numbers, for instance.
        """
        for run in (self.actual, self.expected):
            values = run.values.get(name)
            if values is not None and values.size:
                sizes = numpy.abs(values.astype(numpy.complex128))
                noise = 1e-10 if self.tolerance == _DOUBLE else 1e-6
                if not numpy.all((sizes == 0) | (sizes > noise)) or sizes.max() > 1e4:
                    return False
        return True

    def run(self, line: str) -> str | None:
        """Run a line with both libraries, and describe the difference of their visible states afterwards."""
        self.lines.append(line)
        if "lambda" in line and any(
            not (tensor.is_floating_point() or tensor.is_complex())
            for name, tensor in self.expected.tensors().items()
            if re.search(rf"\b{name}\b", line)
        ):
            self.tolerance = _SINGLE  # the intermediate dtype of functions of integers
        code = compile(line, "<program>", "exec")
        error, expected_error = self.actual.step(code), self.expected.step(code)
        if expected_error is not None:
            difference = errors_differ(error, expected_error)
            if difference:
                return difference
            self.lines[-1] += f"  # {type(expected_error).__name__}"
            self.errors += repr(expected_error)
        elif error is not None:
            return f"raised {type(error).__name__}: {error}, expected nothing"
        return self.compare_values() or self.compare_logs()

    # Visible state

    def compare_values(self) -> str | None:
        actual, expected = self.actual.tensors(), self.expected.tensors()
        if list(actual) != list(expected):
            return f"names {list(actual)}, expected {list(expected)}"
        for name, two in expected.items():
            one = actual[name]
            difference = self.compare_tensor(name, one, two)
            if difference:
                return f"{name} ({_dtype(two)}): {difference}"
            if (one.grad is None) != (two.grad is None):
                return f"{name} ({_dtype(two)}): grad {one.grad}, expected {two.grad}"
            if two.grad is not None:
                difference = self.compare_tensor(f"{name}.grad", one.grad, two.grad)
                if difference:
                    return f"{name}.grad ({_dtype(two.grad)}): {difference}"
        return None

    def compare_tensor(self, name: str, one: Any, two: Any) -> str | None:
        if tuple(one.shape) != tuple(two.shape):
            return f"shape {tuple(one.shape)}, expected {tuple(two.shape)}"
        if str(one.dtype) != str(two.dtype):
            return f"dtype {one.dtype}, expected {two.dtype}"
        if one.requires_grad != two.requires_grad:
            return f"requires_grad {one.requires_grad}, expected {two.requires_grad}"
        if not two._is_view() and not name.endswith("grad") and _steps(one) != _steps(two):
            return f"laid out {_steps(one)}, expected {_steps(two)}"
        first, second = values_of(one), values_of(two)
        self.actual.values[name], self.expected.values[name] = first, second
        if second.dtype in (numpy.float32, numpy.complex64):
            self.tolerance = _SINGLE
        return values_differ(first, second, self.tolerance)

    def compare_logs(self) -> str | None:
        """Compare the calls of the program's functions during a line.

        The order in which an operator saves and reads operands may differ.
        """
        logs = [
            sorted(run.names["log"], key=lambda entry: repr(entry) if entry[0] in ("pack", "unpack") else "")
            for run in (self.actual, self.expected)
        ]
        for run in (self.actual, self.expected):
            run.names["log"].clear()
        return records_differ(*logs, self.tolerance)

    def compare_graphs(self) -> str | None:
        """Compare all properties of the tensors except values.

        The comparison reads `grad_fn`, because changed views then recompute it.
        """
        actual, expected = self.actual.tensors(), self.expected.tensors()
        for name in expected:
            for question in QUESTIONS:
                one, two = _ask(question, actual, name), _ask(question, expected, name)
                if one != two:
                    return f"{name} ({_dtype(expected[name])}): {question} {one}, expected {two}"
        return None


def _condition(text: str) -> Any:
    if text not in _CONDITIONS:
        _CONDITIONS[text] = compile(text, "<condition>", "eval")
    return _CONDITIONS[text]


_CONDITIONS: dict[str, Any] = {}


def _dtype(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def fits(one: Sequence[int], two: Sequence[int]) -> bool:
    """Return whether shapes broadcast together."""
    return all(a == b or 1 in (a, b) for a, b in zip(one[::-1], two[::-1], strict=False))


def fits_into(one: Sequence[int], two: Sequence[int]) -> bool:
    """Return whether the first shape broadcasts to the second."""
    return len(one) <= len(two) and all(a in (1, b) for a, b in zip(one[::-1], two[::-1], strict=False))


_SHAPES = {"fits": fits, "fits_into": fits_into}


# What PyTorch defines


def is_defined(line: str, tensors: dict[str, torch.Tensor]) -> bool:
    """Return whether PyTorch defines the effect of a line.

    If the written elements share memory, or overlap the elements that are read, the result depends on the order of the loop.
    """
    if not re.search(r"_\(|\] .?=|[-+*/]=|out=|\.data|inplace=|stepping|Double_|Dirty2", line):
        return True
    places = {name: _places(tensor) for name, tensor in tensors.items() if re.search(rf"\b{name}\b", line)}
    if any(len(set(place)) < len(place) for place in places.values()):
        return False
    found = list(places.items())
    return not any(set(one) & set(two) for k, (_, one) in enumerate(found) for _, two in found[:k])


def has_ties(tensor: torch.Tensor) -> bool:
    """Return whether some elements are equal."""
    values = values_of(tensor)
    return len(numpy.unique(values)) < values.size


def is_singular(matrix: torch.Tensor) -> bool:
    """Return whether a matrix is singular or almost singular."""
    values = values_of(matrix)
    if values.dtype.kind not in "fc" or values.ndim != 2 or not values.size:
        return False
    return not numpy.isfinite(values).all() or numpy.linalg.cond(values) > 1e4


def _places(tensor: torch.Tensor) -> list[int]:
    """Return the positions of the elements in memory."""
    size, start = tensor.element_size(), tensor.untyped_storage().data_ptr()
    places = numpy.zeros(tensor.shape, dtype=numpy.int64) + tensor.storage_offset()
    for dim, (length, step) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        places += (numpy.arange(length) * step).reshape(-1, *[1] * (tensor.dim() - dim - 1))
    return [
        start + place * size + byte
        for place in places.flatten().tolist()
        for byte in range(0, size, 4 if size > 4 else 1)
    ]


# Questions


def _sharing(tensors: dict[str, Any], name: str) -> str:
    """Return the first tensor with the same memory."""
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
    """Return the strides and offset of a view.

    For new memory, do not compare the order of dimensions if no operand determines the order.
    """
    tensor = tensors[name]
    if not tensor._is_view() or tensor.numel() < 2:
        return None
    return tensor.storage_offset(), _steps(tensor)


def _steps(tensor: Any) -> list[int]:
    if not tensor.numel():
        return []
    return [step for step, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1]


def _tangent(tensors: dict[str, Any], name: str) -> Any:
    module = torch if isinstance(tensors[name], torch.Tensor) else candidate
    try:
        tangent = module.autograd.forward_ad.unpack_dual(tensors[name]).tangent
    except Exception as error:  # the tensor is used outside of its level
        return type(error).__name__
    return None if tangent is None else (str(tangent.dtype), Values(values_of(tangent)))


class Values:
    """Values that count as equal if they are close."""

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
    "is_conj": lambda tensors, name: tensors[name].is_conj(),
    "is_neg": lambda tensors, name: tensors[name].is_neg(),
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
    except Exception as error:  # all exceptions are compared
        return type(error).__name__


# Comparing


def values_differ(actual: numpy.ndarray, expected: numpy.ndarray, tolerance: float = _SINGLE) -> str | None:
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return f"{actual.dtype} {actual.shape}, expected {expected.dtype} {expected.shape}"
    if numpy.array_equal(actual, expected):
        return None
    if expected.dtype.kind not in "fc":
        tolerance = 0
    with numpy.errstate(all="ignore"):
        close = numpy.isclose(actual, expected, tolerance, tolerance, equal_nan=True)
        if expected.dtype.kind == "c":  # infinite if one part is infinite; the other part is undefined (C99, annex G)
            close |= ~numpy.isfinite(actual) & ~numpy.isfinite(expected)
    return None if close.all() else f"{actual.tolist()}, expected {expected.tolist()}"


def records_differ(actual: Any, expected: Any, tolerance: float) -> str | None:
    if isinstance(expected, numpy.ndarray):
        if not isinstance(actual, numpy.ndarray):
            return f"seen {actual!r}, expected {expected!r}"
        return values_differ(actual, expected, tolerance) and f"seen {actual!r}, expected {expected!r}"
    if isinstance(expected, tuple | list):
        if not isinstance(actual, tuple | list) or len(actual) != len(expected):
            return f"seen {actual!r}, expected {expected!r}"
        pairs = zip(actual, expected, strict=True)
        return next((difference for one, two in pairs if (difference := records_differ(one, two, tolerance))), None)
    return None if type(actual) is type(expected) and actual == expected else f"seen {actual!r}, expected {expected!r}"


PROGRAMS = Path(__file__).with_name("explained_programs.txt").read_text(encoding="utf-8").strip().split("\n\n")
"""Programs that each need a different explanation."""


def explanations(program: Program, difference: str, known: Sequence[Explained] = EXPLAINED) -> list[Explained]:
    """Return the reason why a difference is accepted."""
    named = re.match(r"(\w+)(\.grad)? \(", difference)
    return [each for each in known if _explains(each, program, difference, named[1] if named else "")]


def _explains(each: Explained, program: Program, difference: str, name: str) -> bool:
    return (
        re.search(each.line.replace("NAME", name), program.text(), re.MULTILINE) is not None
        and re.search(each.difference, difference, re.DOTALL) is not None
        and re.search(each.error, program.errors) is not None
    )


def differences(choose: Choose, steps: int) -> Iterator[tuple[Program, str]]:
    """Draw a program, run it, and yield the first difference, if any."""
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
        if difference and not explanations(program, difference):
            yield program, difference
    finally:
        program.actual.close()
        program.expected.close()


def explained(text: str) -> list[Explained]:
    """Return the explanations of the difference in a program."""
    program = Program(lambda options: options[0])
    try:
        difference = next(filter(None, map(program.run, text.splitlines())), None) or program.compare_graphs()
        return explanations(program, difference) if difference else []
    finally:
        program.actual.close()
        program.expected.close()
