"""The third reader of plans. It runs the steps of a call, and appends their computations to a program.

The values that a step leaves in the call show what it has done. If an array is a new object, the step has computed it.
Arrays are identified by object identity. An array of unknown origin (no operator created it, and no outside tensor
holds it) is detected and ends the capture. The function then runs as ordinary Python.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from numpy import generic, ndarray

from .._runtime.first_use import unwatched
from ..autograd.accumulate import accumulate
from ..autograd.references import laid_out_like
from ..codegen.compiled_ufuncs import of_any_size
from ..codegen.plans import empty
from ..codegen.recording import recordable
from ..dispatch.array_classes import DENSE
from ..dispatch.array_functions import arrays_of, as_tensors
from ..dispatch.plan import FUNCTION, IN_PLACE, IN_PLACE_VIEW, Call, Plan
from ..dispatch.planning import plan_of
from ..dispatch.slow_path import run
from ..dispatch.steps.compute import LayOut, Round
from ..dispatch.steps.promote import prepared
from ..dtypes import from_numpy
from ..kernels.memory.copying import clone, copy_, strided_empty
from ..kernels.runtime.floating import HALVES, unwarned
from ..kernels.runtime.layout import laid_out
from ..tape import modes, origin
from ..tape.interpreters import Handler, tensors_in
from ..tensor import Tensor
from ..transforms.vmap_interpreter import BatchedTensor
from .errors import Unsupported
from .expectations import EXPECT, Expectation, draws, has_effect
from .options import STRICT
from .program import Constant, Program, Reference
from .symbols import KINDS, Number, Symbol, plain, symbol, symbols_in


class Stop(Exception):
    """The error with the reason why the program does not represent the whole function."""


class Tracer(Handler):
    """Appends the operators of this thread to `program` while it is active.

    `values`: the number of each known array, by identity. `arrays`: these arrays, by number, so that their identities
    stay unique. `fixed`: the arguments whose symbols represent only one number. `outcomes`: the results of comparisons
    of symbols. `drawing`: whether the current instruction may draw random numbers. `dims`: the
    dimensions of arguments whose sizes may change in later calls. `extents`: the symbols for sizes, by their texts.
    `windows`: the symbols that were passed to a function as plain numbers, with the range of the instructions that this
    function has appended. `differences`: why earlier programs are not the same program at other sizes. `leaves`: the tensors
    that the function has created and that require grad. `aliases`: outside tensors with the array of another tensor.
    `rehearsing`: the number of values before a user's function in a backward that runs only for the capture and must have no
    effects, or None. `failed`: the number of operators that have raised errors.
    `elements`: the roots of symbols for elements of tensors.
    """

    def __init__(self, program: Program, branches: bool = False) -> None:
        self.program, self.may_branch = program, branches
        self.dims: dict[int, frozenset[int]] = {}
        self.extents: dict[str, Symbol] = {}
        self.windows: list[tuple[int, int, list[Symbol]]] = []
        self.differences: list[str] = []
        self.values: dict[int, int] = {}
        self.arrays: dict[int, Any] = {}
        self.reason: str | None = None
        self.fixed: set[str] = set()
        self.outcomes: list[tuple[Any, list[Any], Any]] = []
        self.acting = self.drawing = self.computing = False
        self.rehearsing: int | None = None
        self.failed = 0
        self.elements: set[str] = set()
        self.leaves: dict[int, Tensor] = {}
        self.aliases: set[int] = set()

    def __enter__(self) -> Tracer:
        if self.reason is not None:
            return self
        modes.put({"capture": self, "before_change": self.before_change})
        return self

    def __exit__(self, *exception: object) -> None:
        modes.put({"capture": None, "before_change": None})

    @property
    def branches(self) -> bool:
        """Whether conditions may depend on elements."""
        return self.may_branch and not STRICT.get()

    def stop(self, reason: str) -> None:
        """Stop appending. The function continues, and the program is not used."""
        if self.reason is None:
            frame = origin.user_frame(1)
            self.reason = f"{reason} ({frame.f_code.co_filename}:{frame.f_lineno})"
            self.values.clear()
            self.arrays.clear()
            if modes.STATE.capture is self:
                self.__exit__()
            if STRICT.get():
                raise Unsupported(f"the function cannot be compiled: {self.reason}")
        if self.rehearsing is not None:
            raise Stop(self.reason)

    def before_change(self, tensor: Tensor) -> None:
        """Record an in-place change outside of plans."""
        if not (self.acting or isinstance(tensor, BatchedTensor)):  # operators change the batch of such a tensor
            self.stop("a tensor is changed outside of operators")

    def truth(self, tensor: Tensor, by_library: bool = False) -> bool | None:
        """Return the truth of a tensor, if the program may depend on it."""
        array = tensor._array
        if array.size != 1 or id(array) not in self.values:
            return None
        truth = is_true(array)
        return truth if self.expect(bool, [self.known(array)], truth, by_library) else None

    def expect(self, function: Any, operands: list[Any], result: bool, by_library: bool = False) -> bool:
        """Let later runs leave the program if a condition has another result. Return False if that is impossible.

        `by_library`: whether this package tests the condition, usually to raise an error.
        """
        if self.reason is not None or not (self.branches or by_library) or self.rehearsing is not None:
            return False
        if self.program.changes or any(map(has_effect, self.program.instructions)):
            return False
        drawn = any(map(draws, self.program.instructions))
        self.program.append(EXPECT, Expectation.of(function, result, drawn), operands, [], keeps=True)
        return True

    # --- arrays -------------------------------------------------------------------------------------------------------

    def name(self, array: Any) -> int:
        """Give a new array a number."""
        return self.register(self.program.new_value(array), array)

    def register(self, number: int, array: Any) -> int:
        """Record an array under a number."""
        self.values[id(array)] = number
        self.arrays[number] = array
        return number

    def known(self, array: Any) -> Reference:
        """Return the reference to an array that the program knows."""
        try:
            return Reference(self.values[id(array)])
        except KeyError:
            raise Stop("no operator created an operand") from None

    def mapped(self, value: Any) -> Any:
        """Return an argument with references in place of arrays."""
        if is_number(value):
            return self.as_array(value, value._array)
        if isinstance(value, Tensor):
            value = value._array
        if isinstance(value, (ndarray, generic)):
            return self.known(value)
        if isinstance(value, (tuple, list)) and any(isinstance(each, SEVERAL) for each in value):
            return type(value)([self.mapped(each) for each in value])
        return self.number(value)

    # --- numbers ------------------------------------------------------------------------------------------------------

    @property
    def asks(self) -> bool:
        """Return whether the function, and not a kernel, performs the current operations on numbers."""
        return modes.STATE.capture is self and not self.computing

    def derived(self, function: Callable[..., Any], operands: list[Any], result: Any) -> Any:
        """Return the symbol for the result of `function` on numbers, or the number if there is no symbol."""
        symbols = symbols_in(operands)
        if type(result) not in KINDS or not all(type(plain(each)) in KINDS for each in operands):
            for each in symbols:
                each.fix()
        roots = frozenset().union(*[each.roots for each in symbols])
        if not self.asks or self.reason is not None or roots <= self.fixed:
            return result
        number = self.program.new_value(None)
        self.program.append(function.__name__, function, [*map(self.number, operands)], [number])
        made = symbol(result, self, number, roots, (function, operands))
        if function in (max, min, pow, operator.pow, round):
            self.outcomes.append((type, [made], type(result)))  # the type of the result may depend on the numbers
        return made

    def size(self, tensor: Tensor, dim: int) -> Any:
        """Return the size of a dimension, or a symbol if the size may change in later calls."""
        array = tensor._array
        extent, number = array.shape[dim], self.values.get(id(array))
        given = self.program.inputs.get(number) if number is not None else None
        if number is None or not self.dims or (given is not None and dim not in self.dims.get(number, ())):
            return extent
        root = f"{f'%{number}' if given is None else given.source}.shape[{dim}]"
        if root not in self.extents:
            value = self.program.new_value(None)
            self.program.append("size", SizeOf(dim), [Reference(number)], [value])
            self.extents[root] = symbol(extent, self, value, frozenset({root}))
        return self.extents[root]

    def element(self, tensor: Tensor) -> Any:
        """Return the symbol for the only element of a tensor. The capture ends if this symbol is fixed."""
        number, result = self.values.get(id(tensor._array)), item_of(tensor._array)
        if number is None or type(result) not in KINDS:
            return None
        value, root = self.program.new_value(None), f"%{number}.item()"
        self.program.append("item", item_of, [Reference(number)], [value])
        self.elements.add(root)
        return symbol(result, self, value, frozenset({root}))

    def is_of_sizes(self, symbols: list[Symbol]) -> bool:
        """Return whether symbols depend only on sizes."""
        return bool(symbols) and all(each.roots <= self.extents.keys() for each in symbols)

    def fix_mixed(self) -> None:
        """Fix the numbers and the sizes that are compared with each other, and end the capture if elements are fixed."""
        for _, operands, _ in self.outcomes:
            roots = frozenset().union(*[each.roots for each in symbols_in(operands)])
            if roots & self.extents.keys() and not roots <= self.extents.keys():
                self.fixed.update(roots)
            if roots & self.elements:
                self.fixed.update(roots)
        if self.fixed & self.elements:
            self.stop("a condition depends on an element of a tensor, or a function takes it as a number")

    def outcome(self, function: Any, operands: list[Any], result: Any) -> None:
        """Record the result of a comparison of numbers. The program is valid for this result."""
        if not all(type(plain(each)) in KINDS for each in operands):
            for each in symbols_in(operands):
                each.fix()
        elif self.asks:
            of_elements = any(each.roots & self.elements for each in symbols_in(operands))
            if not (of_elements and self.expect(function, [*map(self.number, operands)], result)):
                self.outcomes.append((function, operands, result))

    def number(self, value: Any) -> Any:
        """Return the operand for a number, or for another value that no operator creates."""
        return Reference(value.value) if isinstance(value, Symbol) and not value.is_fixed else Constant(plain(value))

    def numbers(self, value: Any) -> Any:
        """Return the operand for a number, or for nested numbers."""
        if isinstance(value, (tuple, list)) and symbols_in([value]):
            return [*map(self.numbers, value)] if isinstance(value, list) else tuple(map(self.numbers, value))
        return self.number(value)

    def as_array(self, given: Any, array: Any) -> Any:
        """Return the operand for a number that has become an array."""
        (value,) = self.numbers_of([given])
        if not isinstance(value, Symbol) or value.is_fixed:
            return Constant(array)
        if array.dtype in HALVES or array.ndim:  # the rounding of these depends on the number
            self.fixed.update(value.roots)
            return Constant(array)
        made = self.program.new_value(array)
        self.arrays[made] = array
        self.program.append("number", Number(from_numpy(array.dtype)), [Reference(value.value)], [made])
        return Reference(made)

    # --- operators ----------------------------------------------------------------------------------------------------

    def handle(self, call: Call, proceed: Callable[[], Any]) -> Any:
        """Run the operator. No other handler follows."""
        try:
            return run(call, plan_of(call.op, call.given, call.way), self.act)
        except Exception:
            self.failed += 1
            raise

    @unwatched
    def act(self, plan: Plan, call: Call) -> None:
        """Run the steps of `plan` after the arguments have been read, and append their computations."""
        before, self.acting = self.acting, True
        drawing, self.drawing = self.drawing, plan.op.random
        asked, self.computing = self.computing, True
        try:
            if (operands := self.attempt(plan, self.operands, plan, call)) is None:
                plan.act(call)
            elif plan.way == IN_PLACE:
                self.changed(plan, call, operands)
            elif plan.way == IN_PLACE_VIEW:
                self.repointed(plan, call, operands)
            else:
                self.computed(plan, call, operands)
        finally:
            self.acting, self.drawing, self.computing = before, drawing, asked

    def attempt(self, plan: Plan, function: Callable[..., Any], *args: Any) -> Any:
        """Return `function(*args)`, which appends to the program, or None if the capture has ended."""
        if self.reason is not None:
            return None
        try:
            return function(*args)
        except Stop as error:
            self.stop(f"{plan.op.function_name}: {error}")
            return None

    def operands(self, plan: Plan, call: Call) -> list[Any]:
        """Return references and constants for the arguments of the kernel. Conversions are appended."""
        if plan.arrays is not DENSE or plan.way not in (FUNCTION, IN_PLACE, IN_PLACE_VIEW):
            raise Stop("it is not captured")
        by_elements = plan.op.shape_of_elements
        if by_elements is True or (by_elements == "masks" and any(map(is_mask, [*tensors_in(call.args)][1:]))):
            raise Stop("the shape of its result depends on elements")
        if plan.op.name not in READING_NUMBERS:
            for each in symbols_in(self.numbers_of(call.args)):
                self.fixed.update(each.roots)
        operands: list[Any] = []
        for position, value in enumerate(call.arrays):
            given = call.args[position]
            kind = plan.kinds.get(position)
            if is_number(given) or (isinstance(kind, type) and kind is not type(None)):
                operands.append(self.as_array(given, value) if isinstance(value, ndarray) else self.number(value))
            elif isinstance(kind, frozenset):
                operands.append([self.read(each._array, array) for each, array in zip(given, value, strict=True)])
            elif kind is not None and isinstance(given, Tensor):
                operands.append(self.read(given._array, value))
            else:
                operands.append(self.mapped(value))
        return operands

    def numbers_of(self, args: Any) -> list[Any]:
        """Return the numbers among arguments, including numbers that tensors represent."""
        return [each._extra.number.args[0] if is_number(each) else each for each in args]

    def read(self, given: Any, array: Any) -> Reference:
        """Return the array of an operand. Promotion may have converted the array."""
        if array is given:
            return self.known(array)
        if type(given) is not ndarray:
            raise Stop("an operand is conjugated when it is read")
        self.program.append(
            "convert", prepared, [self.known(given), Constant(from_numpy(array.dtype))], [self.name(array)]
        )
        return Reference(self.values[id(array)])

    def computed(self, plan: Plan, call: Call, operands: list[Any]) -> None:
        """Run the steps of a call whose results are new."""
        compute, *further = plan.steps[len(plan.reading) :]
        compute.run(call)
        self.attempt(plan, self.append_results, plan, call, operands)
        results = list(call.results)
        for step in further:
            step.run(call)
            self.attempt(plan, self.append_conversion, step, call, results)
            results = list(call.results)
        if self.reason is None and not all(id(output._array) in self.values for output in call.outputs):
            self.stop(f"{plan.op.function_name}: a result is of an unusual class")

    def append_results(self, plan: Plan, call: Call, operands: list[Any]) -> None:
        """Append the computation of the kernel."""
        op = plan.op
        if op.name == "conjugate" and call.results[0].dtype.kind == "c":
            raise Stop("the result is conjugated when it is read")
        numbers = [self.values.get(id(each)) for each in call.results]
        if all(number is None for number in numbers):
            new = [self.name(each) for each in call.results]
            self.program.append(op.name, op.code.computing, operands, new, several=call.several, kernel=op)
        elif None in numbers:
            raise Stop("one of several results is an operand")

    def append_conversion(self, step: Any, call: Call, results: list[Any]) -> None:
        """Append the conversion that a later step has applied to the first of the `results`."""
        array = call.results[0] if call.results else None
        if array is None or id(array) in self.values:
            return
        given = self.known(results[0])
        if isinstance(step, LayOut):
            lain = [self.mapped(call.args[each]) for each in step.positions if call.args[each] is not None]
            self.program.append("lay_out", laid_out, [given, lain], [self.name(array)])
        elif isinstance(step, Round):
            self.program.append("round", rounded, [given, Constant(array.dtype)], [self.name(array)])

    def changed(self, plan: Plan, call: Call, operands: list[Any]) -> None:
        """Run the steps of a call that changes its first argument."""
        op, target = plan.op, call.args[0]
        array = target._array
        number = self.values.get(id(array), -1)
        own = self.rehearsing is None or (target._base is None and number >= self.rehearsing)
        if not own or (self.rehearsing is not None and number in self.program.inputs):
            self.stop("a backward changes a tensor that it has not made")
        kernel = DENSE.inplace_kernel(op) if call.arrays[0] is array else None
        plan.act(call)  # may copy the tensor first
        written = self.attempt(plan, self.known, array)
        if written is None:
            return
        append = self.program.append
        if kernel is None:
            number = self.program.new_value(None)
            append(op.name, op.code.computing, operands, [number], kernel=op)
            append("copy_", copy_, [written, Reference(number)], [], changes=True)
        else:
            names = [each for each in op.names if each in op.keyword_only]
            function = Overwriting(of_any_size(kernel), len(operands) - len(names), names)
            append(f"{op.name}_", function, operands, [], changes=True, kernel=op)
        if target._array is not array:
            self.stop("the tensor gets other memory")
        base = target if target._base is None else target._base
        self.program.count_change(base)
        if (place := self.values.get(id(base._array), -1)) in self.program.inputs:
            self.program.changes.setdefault(place, 0)  # by `data`, which counts its own changes

    def repointed(self, plan: Plan, call: Call, operands: list[Any]) -> None:
        """Run the steps of a call that turns its first argument into another view of its memory."""
        if id(call.args[0]) in self.program.by_tensor:
            self.stop(f"{plan.op.function_name}_: an argument, or a tensor from outside, becomes another view")
        plan.act(call)
        self.attempt(plan, self.append_results, plan, call, operands)

    def function(self, function: Any, args: tuple[Any, ...], keeps: bool = False) -> Any:
        """Call a function of arrays, as one instruction."""
        name = getattr(function, "__name__", "function").strip("_")
        operands: list[Any] = []
        try:
            operands = [self.mapped(each) for each in args] if self.reason is None else []
        except Stop as error:
            self.stop(f"{name}: {error}")
        drawing, self.drawing = self.drawing, keeps
        asked, self.computing = self.computing, True
        try:
            with unwarned():
                result = as_tensors(function(*arrays_of(args)))
        finally:
            self.drawing, self.computing = drawing, asked
        listed = result if type(result) is tuple else (result,)
        if self.reason is None:
            numbers = [self.name(each._array) if isinstance(each, Tensor) else None for each in listed]
            self.program.append(name, Quiet(function), operands, numbers, several=type(result) is tuple, keeps=keeps)
            for each in operands if keeps and not name.startswith("drawn_") else ():
                if isinstance(each, Reference) and each.number in self.program.inputs:
                    self.program.changes.setdefault(each.number, 0)
        return result

    def constant(self, array: Any, leaf: Tensor | None = None) -> None:
        """Record a new array whose elements are computed from numbers.

        The program creates it again. `leaf`: the tensor of the array, if the tensor is a leaf.
        """
        if self.reason is None and id(array) not in self.values:
            if type(array) is not ndarray:
                self.stop("a new tensor is not dense")
            else:
                self.program.append("constant", Copied(array), [], [self.name(array)])
        if leaf is not None:
            self.leaves[id(leaf)] = leaf

    def makes_leaf(self, tensor: Tensor) -> bool:
        """Record that `requires_grad` of a tensor is set. Return False if the function has not created the tensor."""
        known = id(tensor) in self.program.by_tensor or id(tensor) in self.aliases
        if known or tensor._base is not None or id(tensor._array) not in self.values:
            return False
        self.leaves[id(tensor)] = tensor
        return True

    def draws(self, repeated: bool = False) -> None:
        """Record that random numbers are about to be drawn. `repeated`: whether the program will draw the numbers too."""
        if not (self.drawing or repeated) or self.rehearsing is not None:
            self.stop("random numbers are drawn outside of operators, or in a backward")

    # --- calls of the engine ------------------------------------------------------------------------------------------

    def seeds(self, grads: list[Any]) -> None:
        """Record the arrays of ones that are the first gradients of a backward."""
        for grad in grads:
            if isinstance(grad, Tensor) and not isinstance(grad, BatchedTensor) and id(grad._array) not in self.values:
                self.constant(grad._array)

    def accumulate(self, leaf: Tensor, grad: Any) -> None:
        """Add `grad` to `leaf.grad`."""
        held, inside = leaf._grad, id(leaf) in self.leaves
        if type(grad._array) is not ndarray or (held is not None and type(held._array) is not ndarray):
            self.stop("a gradient is not dense")  # the capture ends
            accumulate(leaf, grad if grad._edge is not None else grad._array, grad._edge is not None)
        elif held is None:
            if not inside:
                self.program.expect_no_grad(leaf)
            lies = grad._array.strides == leaf._array.strides
            new = grad.clone() if lies else self.function(laid_out_like, (grad, leaf))
            leaf._grad = new
            if self.reason is None and not inside:
                self.program.set_grad(leaf, self.known(new._array))
        else:
            if self.reason is None and id(held._array) not in self.values:
                self.register(self.program.grad_of(leaf), held._array)
            held.add_(grad)


READING_NUMBERS = frozenset(
    """
    add sub mul div rsub_number pow_number lerp_by_number addcmul addcdiv clamp_to_numbers masked_fill_number index_fill_number
    floor_divide_by_number floor_divide_by_tensor fmod_by_number remainder_by_number remainder_of_number conjugate
    eq ne lt le gt ge elu elu_backward leaky_relu leaky_relu_backward softplus softplus_backward native_batch_norm
    """.split()
)
"""The operators whose kernels and formulas take numbers only from the operands of the program."""
SEVERAL = (Tensor, ndarray, tuple, list, Symbol)
"""The marker for a sequence whose elements are separate operands."""


def is_mask(index: Tensor) -> bool:
    """Return whether a tensor of indices is a mask. The number of elements that a mask selects depends on its elements."""
    return index._array.dtype.char in "?B"


def is_number(value: Any) -> bool:
    """Return whether a tensor represents a number."""
    return isinstance(value, Tensor) and value._extra is not None and value._extra.number is not None


class Overwriting:
    """A kernel that works in place, called with the arguments in the order of the declaration."""

    def __init__(self, kernel: Any, positional: int, names: list[str]) -> None:
        self.kernel, self.positional, self.names = kernel, positional, names

    def __call__(self, *args: Any) -> None:
        """Change the first argument."""
        with unwarned():
            self.kernel(*args[: self.positional], **dict(zip(self.names, args[self.positional :], strict=True)))


class Quiet:
    """A kernel without NumPy's warnings."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def __call__(self, *args: Any) -> Any:
        """Return the result of the kernel."""
        with unwarned():
            return self.kernel(*args)


class Copied:
    """A function that creates an array with the same elements each time."""

    table_index: int | None = None

    def __init__(self, array: Any) -> None:
        self.array = _twin(array)

    @property
    def kernel(self) -> Any:
        """The recordable kernel that creates the array, or None if its elements differ."""
        array = self.array
        if not array.size or array.tobytes() != array.flat[0].tobytes() * array.size:
            return None

        @recordable
        def filled() -> Any:
            made = empty(array.shape, array.dtype)
            made.fill(array.flat[0])
            return made

        return filled

    def __call__(self) -> Any:
        """Return a new array."""
        return _twin(self.array)


def _twin(array: Any) -> Any:
    """Return a copy of an array with the same strides, even if its elements overlap or have gaps between them."""
    made = clone(array)
    if made.strides != array.strides:
        made = strided_empty(array.shape, tuple([step // array.itemsize for step in array.strides]), array.dtype)
        made[...] = array
    return made


class SizeOf:
    """The size of a dimension of an array."""

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.__name__ = "size"

    def __call__(self, array: Any) -> Any:
        """The size."""
        return array.shape[self.dim]


def item_of(array: Any) -> Any:
    """Return the only element of an array as a number."""
    return array.item()


def is_true(array: Any) -> bool:
    """Return whether the only element of an array is true."""
    return bool(array)


def rounded(array: Any, dtype: Any) -> Any:
    """Round a result to a half-precision type."""
    return array.astype(dtype, copy=False)
