"""Random programs: drawn line by line, run by both libraries, and compared in all visible state."""

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

# Rounding differs, and a program of many lines multiplies it. What was computed in single precision may have become double
# since, so that it decides the tolerance of the whole program.
_DOUBLE, _SINGLE = 1e-8, 1e-4


class Explained(NamedTuple):
    """An accepted difference: it is intended, or PyTorch does not define the case. It ends the program.

    Patterns: `line` for the text of the program, with NAME for the tensor that differs; `difference` for the description of the
    difference; `error` for the errors that PyTorch has raised so far.
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
        "PyTorch packs what an operation saves before the operation, which fails, is tried",
        "failing_pack",
        "expected KeyError: 'pack'",
    ),
    Explained(
        "PyTorch refuses transforms under saved-tensor hooks",
        "",
        "expected RuntimeError.*don't yet support saved tensor hooks",
    ),
    Explained("levels of forward mode nest here", "", "expected RuntimeError: Nested forward mode AD is not supported"),
    Explained(
        "PyTorch takes what a transform returns to depend on the point wherever the point requires grad",
        r"NAME = .*torch.func.",
        "(requires_grad False|is_leaf True), expected",
    ),
    Explained(
        "the same, differentiated",
        r"torch\.(func|autograd\.functional)\.",
        r"(does not require grad( and does not have a grad_fn)?|'NoneType' object has no attribute '\w+'|Tensor that does not "
        r"require gradients|Expected gradient function to be set|retain_grad on Tensor that has requires_grad=False|"
        r"a tensor that doesn't require gradient|a leaf Variable that requires grad is being used in an in-place operation\.), "
        "expected nothing",
    ),
    Explained("the same, accumulated", r"torch\.(func|autograd\.functional)\.", r"grad None, expected tensor\(\[*-?0"),
    Explained(
        "the same, told to require no grad",
        r"torch\.(func|autograd\.functional)\.",
        "^raised nothing, expected RuntimeError: you can only change requires_grad flags of leaf variables",
    ),
    Explained(
        "two mistakes",
        "",
        r"^raised IndexError: index_copy_.*, expected RuntimeError: a (view of a )?leaf Variable that",
    ),
    Explained("the sign of a zero that something is divided by", "div|/", r"\): \[.*inf.*expected .*inf"),
    Explained(
        "PyTorch negates, or conjugates, in inference mode",
        r"(conj|adjoint|H\b|_neg_view|imag)[^Z]*inference_mode",
        "laid out|is (neg|conj|view) (True|False)",
    ),
    Explained(
        "PyTorch has no tangents of losses by integers",
        r"dual[^Z]*_loss\(",
        "^raised nothing, expected RuntimeError: result type",
    ),
    Explained(
        "the gradient of a mean is one number here",
        r"mean\(",
        "^raised RuntimeError: unsupported operation: more than one element of the written-to .*, expected nothing",
    ),
    Explained(
        "inference tensors may be saved within a transform, whose graph does not outlive it",
        r"inference_mode[^Z]*torch\.func",
        "^raised nothing, expected RuntimeError: Inference tensors cannot be saved",
    ),
    Explained(
        "a node whose hook has failed has let go of what it saved",
        "register_hook\\(failing",
        "^raised RuntimeError: Trying to backward through the graph a second time.*, expected KeyError",
    ),
    Explained(
        "a hook reads the gradients of a batch, of a root at which PyTorch calls none",
        "register_multi_grad_hook[^Z]*is_grads_batched",
        "^raised RuntimeError: Cannot access data pointer of Tensor that doesn't have storage, expected nothing",
    ),
    Explained(
        "PyTorch expands no examples to a size that nobody has written",
        "chunk_size",
        r"The expanded size of the tensor \(\d{6}",
    ),
    Explained(
        "PyTorch traces other results than it asks for in inference mode",
        "inference_mode[^Z]*linearize",
        r"expected ValueError: treespec.unflatten|\): shape",
    ),
    Explained(
        "rounding, and then a remainder",
        r"linalg[^Z]*NAME = .*(fmod|remainder|%|//)",
        r"^\w+ \(\w+\): \[.*, expected \[",
    ),
    Explained("which of dimensions is the faster where strides are equal", r"\[:, None[^Z]*NAME = \w+ ", "laid out"),
    Explained("functions of expanded tensors", r"(broadcast_tensors|expand)[^Z]*NAME = \w+\.\w+\(\)", "laid out"),
    Explained("a leaf of another shape, used before", r"NAME\.data = ", r"\.grad \(\w+\): \["),
    Explained(
        "PyTorch finds that a gradient does not fit before other leaves accumulate",
        r"\.data = ",
        r"^\w+\.grad \(|grad tensor.*, expected None",
        "invalid gradient at index|Mismatch in shape",
    ),
    Explained(
        "two mistakes",
        "",
        r"^raised RuntimeError: unsupported operation: some elements of the input .*, expected IndexError",
    ),
    Explained(
        "PyTorch forgets the outer of two contexts within each other",
        "allow_mutation_on_saved_tensors[^Z]*allow_mutation_on_saved_tensors",
        "expected AssertionError: Trying to backward outside of the 'allow_mutation_on_saved_tensors'",
    ),
    Explained(
        "an operand is also what is changed: saved as it was, so that its gradient is right",
        r"\b(\w+)\.\w+_\(.*\b\1\b",
        "raised nothing, expected RuntimeError: one of the variables needed for gradient computation has been modified",
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
        "a leaf has another shape than when it was used, and PyTorch refuses its gradient",
        r"\.data = |resize_|\b(t|transpose|swapaxes|squeeze)_\(",
        "expected RuntimeError: .*(invalid gradient at index|doesn't match the broadcast shape|The size of tensor a|"
        "Mismatch in shape)",
    ),
    Explained(
        "the gradient of a leaf that has another shape, or dtype, than when it was used",
        r"\bNAME\.(data = |resize_|(t|transpose|swapaxes|squeeze)_\()",
        r"\.grad \(\w+\): (dtype|shape)",
    ),
    Explained(
        "PyTorch looks for the dimension of a concatenation of batched numbers, which cannot be concatenated",
        r"vmap.*torch\.cat\(",
        "^raised RuntimeError: zero-dimensional tensor .* cannot be concatenated, expected IndexError: Dimension out of range",
    ),
    Explained(
        "`data` of an inference tensor set to one that is none, whose changes nobody counts then, or that of a view set to one",
        r"(NAME|inference_mode[^Z]*)\.data = ",
        "is_inference|^raised nothing, expected RuntimeError: Inference tensors do not track version counter",
    ),
    Explained(
        "PyTorch's derivative calculates with a boolean operand",
        "",
        "^raised (nothing|KeyError.*), expected RuntimeError: (Negation|Subtraction), the `-` operator",
    ),
    Explained(
        "PyTorch multiplies no elements without looking at their dtypes",
        "matmul|@|linear|tensordot|inner|einsum",
        "^raised RuntimeError: expected (scalar type .* but found|m1 and m2 to have the same dtype).*, expected nothing|"
        """^raised NotImplementedError: "bmm" not implemented for 'Bool', expected nothing""",
    ),
    Explained(
        "the examples of a batch lie in other ways in memory",
        r"vmap.*view\(-1\)",
        "^raised nothing, expected RuntimeError: view size is not compatible",
    ),
    Explained(
        "that there is no derivative is found where it is needed",
        "inputs=",
        "^raised nothing, expected RuntimeError: derivative for aten::",
    ),
    Explained(
        "in a mode that looks at operators PyTorch's reshape is a view, and its views in inference mode require no grad",
        "allow_mutation_on_saved_tensors",
        "grad_fn ReshapeAliasBackward0, expected ViewBackward0|requires_grad True, expected False|is view True, expected False",
    ),
    Explained("zero to the power of a complex zero", r"pow|\*\*", r"\(complex128\): .*expected .*nan"),
    Explained(
        "a node that no gradient arrives at does not look at what it has saved",
        r"Same\.apply|Sign\.apply",
        "^raised (nothing|KeyError).*, expected RuntimeError: (one of the variables needed|Trying to backward through)",
    ),
    Explained("two mistakes", "linearize", "^raised ValueError: Expected primal to be floating point"),
    Explained(
        "the softmax of one number is constant",
        r"torch\.func\..*softmax",
        "requires_grad True, expected False|is a view and is being modified inplace",
    ),
    Explained(
        "two mistakes",
        "",
        "^raised NotImplementedError: .*, expected RuntimeError: (The size of tensor a|output with shape)",
    ),
    Explained("two mistakes", "func.*index_select", "^raised RuntimeError: index_select.*, expected IndexError"),
    Explained(
        "single precision, written to double", r"torch.exp\(.*out=NAME", r"\((float64|complex128)\): \[+.*, expected"
    ),
    Explained("detached, it has nothing to retain", r"NAME.detach_\(\)", "retains_grad False, expected True"),
    Explained("PyTorch detaches nothing in inference mode", "NAME.detach_", "requires_grad False, expected True"),
    Explained("PyTorch detaches nothing in inference mode", "inference_mode", "Can't detach views in-place"),
    Explained(
        "PyTorch fills some results in place, and counts it outside of inference mode",
        r"inference_mode[^Z]*NAME = ",
        r"_version 0, expected \d",
    ),
    Explained(
        "polar saves its operands here", "polar", "^raised RuntimeError: one of the variables needed for gradient"
    ),
    Explained(
        "a view of a leaf told to require no grad",
        "requires_grad",
        "^raised RuntimeError: cannot register a hook on a ten",
    ),
    Explained("how often transforms call the backward of a function", "(vmap|vjp).*Sinh", "^seen .*'Sinh'"),
    Explained(
        "PyTorch changes the tensor, and then raises",
        r"  # RuntimeError\Z",
        r"^\w+(\.grad)? \(\w+\): \[",
        "Inplace update to inference tensor|ZeroDivisionError",
    ),
    Explained(
        "PyTorch counts the change before which it raises",
        "  # RuntimeError$",
        "_version",
        "Inplace update to inference tensor|ZeroDivisionError",
    ),
    Explained(
        "PyTorch packs what an operation saves before the operation, which fails, is tried",
        r"  # \w+\Z",
        "^seen .*'pack'",
    ),
    Explained("the first gradient of a leaf may be copied into its place", r"NAME = .*\.grad$", "_version"),
    Explained(
        "an error all the same, found later", "clamp", "clamp is not supported for complex types, expected RuntimeError"
    ),
    Explained(
        "two mistakes",
        "cross_entropy",
        "expected RuntimeError: Expected floating point type for target with class probab",
    ),
    Explained(
        "a view made in inference mode has no node in PyTorch",
        "register_multi_grad_hook|edge_of",
        "expected AttributeError: 'NoneType'",
    ),
    Explained(
        "PyTorch's derivative of scatter expects an index of the shape of the source",
        "scatter",
        "ScatterBackward0 returned an invalid gradient",
    ),
    Explained(
        "PyTorch finds out by accident that there is no such index",
        "index_(fill|copy)_",
        "expected RuntimeError: setStorage",
    ),
    Explained(
        "fill_diagonal_ is an operator of its own here, and the change of a view in PyTorch",
        "fill_diagonal_",
        "grad_fn FillDiagonalBackward0, expected|^raised RuntimeError: a leaf Variable that requires grad .*, expected nothing",
    ),
    Explained(
        "PyTorch repeats the views by which a real view of complex numbers was made; here one node is their history",
        "real|imag|complex",
        r"grad_fn (AsStrided|ViewAs\w+)Backward0, expected \w+Backward0",
    ),
    Explained(
        "PyTorch does not count a leaf among what runs when it is the root itself",
        "register_multi_grad_hook",
        "^seen .*, expected|A leaf node was passed to _will_engine_execute_node",
    ),
    Explained(
        "two mistakes", "inference_mode", "^raised RuntimeError: Inplace update to inference.*, expected IndexError"
    ),
    Explained(
        "two mistakes",
        "",
        "^raised IndexError: (index is out of bounds|index_copy_).*, expected RuntimeError: unsupported operation",
    ),
    Explained(
        "two mistakes", "", r"^raised IndexError: .*, expected RuntimeError: Output \d of (Same|Split|Unbind|Chunk)"
    ),
    Explained("two mistakes", "failing_pack", "^raised KeyError: 'pack', expected RuntimeError"),
    Explained(
        "what second derivatives save is no promise",
        r"failing_pack.*second\(|failing_pack[^Z]*second\(",
        "^raised KeyError: 'pack', expected nothing",
    ),
    Explained(
        "gradients that nobody asked for, which PyTorch finds with the others, are shown to hooks there",
        r"torch.(stack|cat|hstack|vstack)[^Z]*next_functions[^Z]*register_hook",
        "^seen None, expected array",
    ),
    Explained(
        "PyTorch has no derivative by a divisor of integers",
        "addcdiv",
        "^raised nothing, expected RuntimeError: result type",
    ),
    Explained(
        "PyTorch finds that there is no derivative before leaves accumulate",
        r"//|\.set_\(",
        r"grad tensor.*, expected None|^[a-d] \(float\d+\): \[",
        "derivative for",
    ),
    Explained(
        "what is saved for a gradient that nobody needs is not looked at",
        r"\*\*|pow\(",
        "^raised nothing, expected RuntimeError: one of the variables needed for gradient computation has been modified",
    ),
    Explained(
        "PyTorch takes the gradient it is given for its own, though its memory is that of the leaf, which it then adds to",
        r"\.backward\([a-dt]\d*\)",
        r"^[a-d](\.grad)? \(float\d+\): \[",
    ),
    Explained(
        "PyTorch keeps the gradient of a tensor as it was before it became another view of itself",
        r"retain_grad[^Z]*\.(t|swapaxes|transpose|squeeze|unsqueeze)_\(",
        r"\.grad \(",
    ),
    Explained(
        "PyTorch fails to conjugate what requires no grad any more",
        r"requires_grad( = |_\()False",
        "expected RuntimeError$",
    ),
    Explained(
        "PyTorch fails to repeat a view in inference mode",
        r"(view_as_|conj|\.m?H\b|adjoint|imag|real|_neg_view)[^Z]*inference_mode|inference_mode[^Z]*view_as_(real|complex)",
        "expected RuntimeError$",
    ),
    Explained(
        "another choice of what is saved has the same derivative",
        r"polar|cosine_similarity|copysign|addcdiv|logsigmoid|linalg\.(inv|det|solve)\b",
        "^seen (.*'(un)?pack'|array)",
    ),
    Explained(
        "PyTorch saves the total weight as well",
        "cross_entropy",
        r"^seen .*expected \[('pack'|\('pack', array\()",
    ),
    Explained(
        "PyTorch drops the gradient of what a function has changed, and then raises",
        r"Double_\.apply\(NAME\)  # RuntimeError",
        "grad tensor.*, expected None",
    ),
    Explained(
        "PyTorch cannot trace under anomaly detection",
        "linearize",
        "expected RuntimeError: It appears that you're trying to get value out of a tracing tensor",
    ),
    Explained(
        "PyTorch's transforms give zeros in inference mode",
        r"inference_mode[^Z]*NAME = .*(linearize|functional\.)",
        r"expected \[*-?0",
    ),
    Explained(
        "operands of several dtypes, broadcast: PyTorch converts some beforehand",
        r"NAME = .*(addc(mul|div)|_loss)\(",
        "laid out",
    ),
    Explained(
        "of two operands only views are looked at for the order of their dimensions", r"NAME = .*\w+, \w+", "laid out"
    ),
    Explained("a leaf that has been given another shape by `out=`", r"out=(\w+)\)[^Z]*\1", r"\.grad \(\w+\): shape"),
    Explained(
        "no elements, no one shape",
        r"\.view\(-1\)",
        "^raised nothing, expected RuntimeError: cannot reshape tensor of 0",
    ),
    Explained("no elements, no rows to take", r"jac(rev|fwd)\(", "^raised nothing, expected IndexError: select"),
    Explained(
        "nothing is saved in inference mode, so nothing is watched there",
        "inference_mode[^Z]*allow_mutation_on_saved_tensors",
        "^raised nothing, expected RuntimeError: Inference tensors do not track version counter",
    ),
    Explained(
        "linearized by another derivative", r"func\.linearize\(lambda a: \w+\.apply", "must override the setup_context"
    ),
    Explained(
        "PyTorch saves a copy whose making it has recorded",
        "NAME = .*_saved_self",
        r"grad_fn \w+, expected CloneBackward0|grad_fn CloneBackward0, expected",
    ),
    Explained("an assertion of PyTorch's own fails", "", "expected RuntimeError: .*INTERNAL ASSERT FAILED"),
    Explained(
        "an assertion of PyTorch's own fails", "chunk_size", "expected AssertionError: arg_spec must not be None"
    ),
    Explained(
        "PyTorch cannot look for nan in batched gradients",
        "set_detect_anomaly",
        "expected RuntimeError: Batching rule not implemented for aten::item",
    ),
    Explained(
        "PyTorch makes no tangent for a tensor whose elements share memory",
        r"torch.func.(jvp|jacfwd|hessian|linearize)",
        "expected RuntimeError: unsupported operation: more than one element of the written-to tensor",
    ),
    Explained(
        "PyTorch finds no sum of the elements of no examples",
        "vmap",
        r"^raised nothing, expected IndexError: select\(\): index 0 out of range for tensor of size \[0",
    ),
    Explained(
        "PyTorch records no operation on nothing but inference tensors",
        r"inference_mode[^Z]*(requires_grad=True|\.data = |grad_enabled\(True|enable_grad)",
        "^raised RuntimeError: Inference tensors cannot be saved.*, expected nothing|requires_grad True, expected False|"
        "^raised nothing, expected RuntimeError: element 0 of tensors does not require grad|"
        "^raised RuntimeError: a leaf Variable that requires grad .*, expected nothing",
    ),
    Explained(
        "PyTorch shows what an operator on inference tensors is made of",
        r"inference_mode[^Z]*NAME = .*stack",
        "is view False, expected True",
    ),
    Explained(
        "an assertion of PyTorch's own fails", "", r"expected RuntimeError: Expected isFloatingType\(grad.scalar_type"
    ),
    Explained("PyTorch's node has no class of its own", "unpack_dual", "grad_fn Identity, expected CppFunction"),
    Explained(
        "PyTorch has no derivative of it in place", "a(sin|cos)h_", "^seen .*'pack'|derivative for 'inplace version of"
    ),
    Explained("what second derivatives save is no promise", r"second\(", "^seen .*'unpack'"),
    Explained("what second derivatives save is no promise", r"saved_tensors_hooks[^Z]*second\(", "^seen array"),
    Explained(
        "a cumulative sum or product of one boolean",
        r"cum(sum|prod)_",
        "^raised RuntimeError: result type Long can't be cast to the desired output type Bool, expected nothing",
    ),
    Explained(
        "PyTorch conjugates the product of two conjugated vectors lazily",
        "@|dot|matmul",
        "is_conj False, expected True",
    ),
    Explained("PyTorch's library refuses to transform nothing", "fft", "expected RuntimeError: MKL FFT error"),
    Explained(
        "whether what has changed is a view of a conjugate, or the conjugate of a view",
        r"conj\(|H\b|adjoint|ifft|_neg_view",
        "grad_fn (Conj|NegView|AsStrided)Backward0, expected (Conj|NegView|AsStrided)Backward0",
    ),
]


class LeftOut(NamedTuple):
    """Lines that are not drawn if their tensors satisfy `condition`."""

    reason: str
    line: str
    condition: str


LEFT_OUT = [
    LeftOut("memory that others see is resized with it in PyTorch", r"out=|resize_", "any(shared(t) for t in given)"),
    LeftOut(
        "PyTorch crashes when such a tensor is then changed in place",
        r"retain_grad|inputs=",
        "any(t.output_nr > 0 for t in given)",
    ),
    LeftOut("random numbers are drawn before or after an error", "dropout", "not given[0].is_floating_point()"),
    LeftOut("booleans have no negatives", "_neg_view", "given[0].dtype == torch.bool"),
    LeftOut("memory beyond the tensor", "as_strided", "given[0].numel() < 4 or not given[0].is_contiguous()"),
    LeftOut(
        "elements are read after they have been written to",
        r"out=|scatter|index_\w+_\(|addmm_",
        "len(given) < line_names",
    ),
    LeftOut("which of equal elements is found", "kthvalue|topk", "any(has_ties(t) for t in given)"),
    LeftOut("rounding decides whether a matrix is singular", "linalg", "singular(given[0])"),
    LeftOut(
        "PyTorch's derivative of polar is that of a positive absolute value",
        "polar",
        "not given[0].is_complex() and bool((given[0] < 0).any())",
    ),
    LeftOut(
        "rounding decides which integer",
        "fill_",
        "any(t.is_floating_point() for t in given) and not all(t.is_floating_point() for t in given)",
    ),
    LeftOut("the bytes of rounded numbers", r"view\(torch", "not given[0].dtype in (torch.int64, torch.bool)"),
    LeftOut("the strides of no elements", "view_as_complex|view.torch", "not given[0].numel()"),
    LeftOut(
        "the gradient that is retained has escaped from a vmap",
        "is_grads_batched",
        "any(t.retains_grad for t in tensors)",
    ),
]


class Modes:
    """The contexts that a program has entered; they are left in reverse order."""

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
        """Leave the modes, however the program ended."""
        while self.modes.entered:
            with contextlib.suppress(Exception):
                self.modes.leave()
        self.module.set_grad_enabled(True)
        self.module.autograd.set_detect_anomaly(False)


def snapshot(value: Any) -> Any:
    """Describe a value that a function of the program received, independent of the library."""
    if is_tensor(value):
        return values_of(value)
    if isinstance(value, tuple | list):
        return tuple(snapshot(item) for item in value)
    return value


def values_of(tensor: Any) -> numpy.ndarray:
    """Return a copy of the values: PyTorch does not resize memory that an array shares."""
    return to_array(tensor.detach().clone())


# Drawing a line


class Program:
    """A growing program: both runs of it, and its text so far."""

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
        """Draw the next line; None if PyTorch does not define its effect."""
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
        """Return whether PyTorch or this comparison does not define the effect of a line."""
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
        """Return whether rounding errors stay small: not for sines of huge numbers, signs of tiny numbers, or nan."""
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
            self.tolerance = _SINGLE  # in which functions of integers are computed on the way
        code = compile(line, "<program>", "exec")
        error, expected_error = self.actual.step(code), self.expected.step(code)
        if expected_error is not None:
            difference = errors_differ(error, expected_error, words=0)
            if difference:
                return difference
            self.lines[-1] += f"  # {type(expected_error).__name__}"
            self.errors += repr(expected_error)
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
        if not two._is_view() and not name.endswith("grad") and _steps(one) != _steps(two):
            return f"laid out {_steps(one)}, expected {_steps(two)}"
        first, second = values_of(one), values_of(two)
        self.actual.values[name], self.expected.values[name] = first, second
        if second.dtype in (numpy.float32, numpy.complex64):
            self.tolerance = _SINGLE
        return values_differ(first, second, self.tolerance)

    def compare_logs(self) -> str | None:
        """Compare the calls of the program's functions while a line ran.

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
        """Compare all properties of the tensors except values. The access to `grad_fn` makes changed views compute it again."""
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
    """Return strides and offset of views; for new memory, the order of dimensions is not compared if no operand determines it."""
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
    except Exception as error:  # there is no level
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
    except Exception as error:  # compared
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
        if expected.dtype.kind == "c":  # infinite when either part is; the other part is left open (C99, annex G)
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
"""Programs that need an explanation, each another one."""

MET: dict[Explained, str] = {}
"""The shortest program of this process that needed each explanation."""


def explanation(program: Program, difference: str, known: Sequence[Explained] = EXPLAINED) -> Explained | None:
    """Return why a difference is accepted, or None."""
    named = re.match(r"(\w+)(\.grad)? \(", difference)
    found = next((each for each in known if _explains(each, program, difference, named[1] if named else "")), None)
    if found is not None:
        MET[found] = min(program.text(), MET.get(found, program.text()), key=len)
    return found


def _explains(each: Explained, program: Program, difference: str, name: str) -> bool:
    return (
        re.search(each.line.replace("NAME", name), program.text(), re.MULTILINE) is not None
        and re.search(each.difference, difference, re.DOTALL) is not None
        and re.search(each.error, program.errors) is not None
    )


def differences(choose: Choose, steps: int) -> Iterator[tuple[Program, str]]:
    """Draw a program and run it; yield the first difference, if there is any."""
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
        if difference and not explanation(program, difference):
            yield program, difference
    finally:
        program.actual.close()
        program.expected.close()


def explained(text: str) -> Explained | None:
    """Return the explanation that a program needs."""
    program = Program(lambda options: options[0])
    try:
        found = (program.run(line) or program.compare_graphs() for line in text.splitlines())
        difference = next(filter(None, found), None)
        return difference and explanation(program, difference)
    finally:
        program.actual.close()
        program.expected.close()
