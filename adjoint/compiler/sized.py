"""Programs for any size. The first run at new sizes is a test on copies. The second run creates a plan."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy

import adjoint as torch

from ..dispatch.source import compile_source
from ..dtypes import from_numpy
from ..kernels.runtime.addresses import address
from ..tensor import Tensor
from .backward import ending_at, tensors_of
from .blocks import Foreign, order_of
from .body import Body
from .dims import Numbers, at
from .expectations import MISSED, Expectation, Left, States, draws, missed
from .extents import Differs, Extent, Folded, General, is_contiguous
from .known import Changing, Method, is_of_host
from .objects import compile_deferred
from .program import Constant, Instruction, Program, Reference, Source, name_of
from .views import Tail

MOST_PLANS = 512
"""The maximum number of plans of one program. At more sizes, the function runs without a program."""


class Sized:
    """The functions that run a program for any size.

    `plans`: the function for the sizes of each key. `shared`: the plans for several
    sizes. `tried`: the forms of values, for keys that have occurred once.
    `head`, `tail`: the lines before and after the instructions. `function`: the function that the program replaces.
    `outputs`: the numbers of the tensors in its result, in order, and of their bases. `targets`: the tensors that have gradients.
    """

    def __init__(
        self,
        general: General,
        program: Program,
        source: Source,
        wanted: set[int],
        saved: list[int],
        gradients: list[int],
        around: tuple[list[str], Tail],
        function: Any,
        outputs: list[tuple[int | None, int | None]],
        targets: list[Tensor],
    ) -> None:
        self.general, self.program, self.source = general, program, source
        self.head, self.tail = around
        self.function, self.outputs, self.targets = function, outputs, targets
        self.wanted, self.saved, self.gradients = wanted, saved, gradients
        self.inputs = [*program.numbers, *program.inputs]
        self.plans: dict[Any, Any] = {}
        self.shared: list[Shared] = []
        self.tried: dict[Any, Folded] = {}
        self.origins: dict[Any, dict[int, tuple[str, int]]] = {}
        self.natives: list[Any] = []
        self.loops: list[Instruction] = []
        self.states = States(program.instructions) if any(map(draws, program.instructions)) else None
        self.differs = False

    def __str__(self) -> str:
        dims = [
            f"{given.source}.shape[{dim}]"
            for number, given in self.program.inputs.items()
            for dim, size in enumerate(self.general.forms[number].dims)
            if size < 0
        ]
        return f"{', '.join(dims)}; {len(self.plans)} planned"

    def __call__(self, key: Any, args: Any, kwargs: Any, *values: Any) -> Any:
        """Run the program for sizes without a plan. The first call also runs the function, and compares both."""
        folded = self.tried.get(key)
        if folded is None:
            try:
                found = None if self.differs else self.at(dict(zip(self.inputs, values, strict=True)))
            except Left:
                return MISSED
            if found is None:
                self.plans[key] = missed
                return missed()
            self.tried[key], trial = found
            result = self.function(*args, **kwargs)
            if not self.agree(trial, result, {"args": args, "kwargs": kwargs}):
                self.differs = True
                self.plans[key] = missed
            return result
        if len(self.plans) < MOST_PLANS:
            del self.tried[key]
            plan = self.plans[key] = self.planned(folded)
            return plan(args, kwargs, *values)
        return self.function(*args, **kwargs)

    # --- a run on copies ------------------------------------------------------------------------------------------------

    def at(self, given: dict[int, Any]) -> tuple[Folded, Trial] | None:
        """Return the forms of values for these inputs, and the run that has determined the forms.

        Return None if the program does not fit the sizes.

        Raises:
            Left: if the run does not meet a condition on elements.
        """
        program = self.program
        values = {number: value.copy("K") if number in program.changes else value for number, value in given.items()}
        shapes, memory = [None] * len(program.shapes), [None] * len(program.shapes)
        sizes: dict[int, int] = {}
        run = Trial(self.general, values, shapes, memory, sizes)
        before: Any = None if self.states is None else self.states()
        try:
            for number in given:
                run.see(number, values[number])
            for position, instruction in enumerate(program.instructions):
                if position == program.boundary:
                    run.begin_backward(program)
                run.take(instruction)
            if program.boundary == len(program.instructions):
                run.begin_backward(program)
            folded = Folded(program, shapes, memory, sizes, {*self.wanted, *self.saved}, planned=True)
            for function, operands, result in self.general.conditions:
                if not self.general.holds(function, operands, result, folded.known | run.numbers):
                    return None
        except Left:
            raise
        except Exception:  # noqa: BLE001  (whatever a kernel raises)
            return None  # eager code raises the error again
        finally:
            if self.states is not None:
                self.states.restored(before)
        return folded, run

    def now(self, tensor: Any, given: dict[str, Any]) -> Any:
        """Return a tensor of the capture. If it was an argument, return the argument of this call."""
        place = self.program.place_of(tensor)
        return tensor if place is None else eval(place, given)

    def agree(self, trial: Trial, result: Any, given: dict[str, Any]) -> bool:
        """Return whether the function has returned, changed and stored the same values as the program, up to rounding."""
        program, tensors = self.program, tensors_of(result)
        if len(tensors) != len(self.outputs):
            return False
        made: dict[Any, Any] = {}
        for (number, base), tensor in zip(self.outputs, tensors, strict=True):
            made |= {base: tensor._base, number: tensor}
        made.pop(None, None)
        pairs = [(trial.values[number], tensor._array) for number, tensor in made.items()]
        for number, count in program.changes.items():
            if count and program.inputs[number].kind != "grad":
                pairs.append((trial.values[number], self.now(program.inputs[number].tensor, given)._array))
        instructions = program.instructions
        if not any(isinstance(each.function, (Method, Changing)) for each in instructions):
            stored = [each.operands for each in instructions if each.name == "set_grad"]
            leaves = [(self.now(leaf.value, given), value) for leaf, value in stored]
            pairs += [
                (trial.values[value.number], leaf._grad._array) for leaf, value in leaves if leaf._grad is not None
            ]
        if program.seeds and not self.targets:
            return False  # a graph without leaves
        if program.seeds:
            roots = [made[number] for number in program.roots]
            targets = [self.now(target, given) for target in self.targets]
            seeds = [torch.ones_like(root) for root in roots]
            with ending_at(targets, roots) as ends, torch.enable_grad(), torch.autocast("cpu", enabled=False):
                found = torch.autograd.grad(roots, ends, seeds, retain_graph=True, allow_unused=True)
            if any(grad is None for grad in found):
                return False
            pairs += [(trial.values[number], grad._array) for number, grad in zip(self.gradients, found, strict=True)]
        return all(itertools.starmap(is_close, pairs))

    # --- source -----------------------------------------------------------------------------------------------------------

    def planned(self, folded: Folded) -> Callable[..., Any]:
        """Return the function for some sizes. It is written only if it differs from the functions for all earlier sizes."""
        for shared in self.shared:
            if (plan := shared.at(folded)) is not None:
                return plan
        count = len(self.program.shapes)
        kept = {*self.wanted, *self.saved}
        given = folded.shapes[:count], folded.memory[:count], folded.sizes, kept
        program = self.general.for_any_size(self.program, *given)
        self.shared.append(Shared(self.written(program), program, {*self.source.namespace}))
        return self.shared[-1].at(folded) or self.body(folded.program_of(self.program))

    def body(self, program: Program) -> Callable[..., Any]:
        """Return the function that runs the instructions of a program on loaded inputs, and creates the results."""
        namespace = self.written(program)
        made: Callable[..., Any] = namespace["run"]
        return made if compile_deferred(namespace) else self.body(program)

    def written(self, program: Program) -> dict[str, Any]:
        """Return the namespace with this function, in which native functions are not compiled yet."""
        source, values = self.source.copy(), "".join(f", v{number}" for number in self.inputs)
        first = [f"def run(args, kwargs{values}):"]
        body = Body.of(program, source, self.wanted, self.saved, first, self.head, self.tail)
        self.origins[body.run.__code__] = body.origins
        self.natives, self.loops = program.natives or self.natives, program.loops or self.loops
        return source.namespace


class Shared:
    """A plan for several sizes: a function in a namespace, and the table of the numbers that vary."""

    def __init__(self, namespace: dict[str, Any], program: Program, fixed: set[str]) -> None:
        """`fixed`: names of objects that do not depend on sizes."""
        self.namespace, self.program = namespace, program
        self.numbers = compile_source(program.table.function(), "<adjoint sizes>", {})["numbers"]
        self.varying = [name for name in namespace if name not in fixed]

    def at(self, folded: Folded) -> Callable[..., Any] | None:
        """Return the function for some sizes, or None if they need another plan."""
        found = self.numbers(folded.sizes, folded.memory, folded.constants)
        if found is None:
            return None
        numbers = Numbers(found, folded.program_of(self.program))
        try:
            new = {name: at(self.namespace[name], numbers) for name in self.varying}
        except Foreign:
            return None
        self.varying = [name for name, value in new.items() if value is not self.namespace[name]]
        namespace = {**self.namespace, **new}
        code = namespace["run"].__code__
        return FunctionType(code, namespace) if compile_deferred(namespace) else None


def is_close(one: Any, other: Any) -> bool:
    """Return whether two arrays have the same elements, up to rounding."""
    one, other = numpy.asarray(one), numpy.asarray(other)
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if (one == other).all():
        return True
    kind = from_numpy(one.dtype)
    if not (kind.is_floating_point or kind.is_complex):
        return bool(numpy.array_equal(one, other))
    wide = numpy.complex128 if kind.is_complex else numpy.float64
    one, other = one.astype(wide), other.astype(wide)
    tolerance = torch.finfo(kind).eps ** 0.5
    scale = numpy.abs(other[numpy.isfinite(other)]).max(initial=0)
    return bool(numpy.allclose(one, other, rtol=tolerance, atol=tolerance * scale, equal_nan=True))


class Trial:
    """A run of a program on copies. All values that it creates must have the forms in the program."""

    def __init__(
        self, general: General, values: dict[int, Any], shapes: Any, memory: Any, sizes: dict[int, int]
    ) -> None:
        self.general, self.values, self.shapes, self.memory, self.sizes = general, values, shapes, memory, sizes
        self.numbers: dict[int, Any] = {}

    def see(self, number: int, value: Any) -> None:
        """Record a value."""
        self.values[number] = value
        form = self.general.forms.get(number)
        if form is None:
            self.numbers[number] = value
            return
        shape, strides = value.shape, value.strides
        if len(shape) != len(form.dims) or name_of(value.dtype) != form.dtype:
            raise Differs("a value has another form")
        for size, expected in zip(shape, form.dims, strict=True):
            if size != expected and (expected >= 0 or size < 2 or size != self.sizes.setdefault(~expected, size)):
                raise Differs("a value has another size")
        if is_contiguous(shape, strides, value.itemsize) != form.contiguous:
            raise Differs("a value has another memory layout")
        self.shapes[number], self.memory[number] = (shape, form.dtype), (strides, address(value))

    def begin_backward(self, program: Program) -> None:
        """Create the gradients of the results, which are arrays of ones."""
        for root, seed in zip(program.roots, program.seeds, strict=False):  # no roots if the graph has been freed
            shape, dtype = self.shapes[root]
            order = order_of(program.shapes[seed][0], program.memory[seed][0])  # type: ignore[index]
            ones = numpy.ones([shape[dim] for dim in order], getattr(torch, dtype).numpy)
            self.see(seed, ones.transpose([*map(order.index, range(len(order)))]))

    def take(self, instruction: Instruction) -> None:
        """Run an instruction, unless it changes an outside object."""
        if is_of_host(instruction):
            if instruction.name == "set_grad":
                leaf, value = instruction.operands
                if self.values[value.number].strides != leaf.value._array.strides:
                    raise Differs("a gradient has another memory layout than its leaf")
            for number in instruction.results:
                form = self.general.forms.get(number)  # type: ignore[arg-type]
                value = None if form is None else numpy.zeros(form.dims, getattr(torch, form.dtype).numpy)
                self.see(number, value)  # type: ignore[arg-type]
            return
        if isinstance(instruction.function, Expectation):
            if (
                bool(instruction.function.condition(*map(self.operand, instruction.operands)))
                is not instruction.function.result
            ):
                raise Left
            return
        result = instruction.function(*map(self.operand, instruction.operands))
        results = list(result) if instruction.several else [result] * bool(instruction.results)
        for number, value in zip(instruction.results, results, strict=True):
            if number is not None:
                self.see(number, numpy.asarray(value) if number in self.general.forms else value)

    def operand(self, operand: Any) -> Any:
        """Return the value of an operand."""
        if isinstance(operand, Reference):
            return self.values[operand.number]
        if isinstance(operand, Constant):
            return operand.value
        return operand(self.sizes) if isinstance(operand, Extent) else type(operand)(map(self.operand, operand))
