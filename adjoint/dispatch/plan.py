"""What an operator does with a call, as a value: a plan, which is a list of steps, and what the steps leave for one another.

A step has two readers. `run` does it, for every call (`slow_path`). `lines` prints it as straight-line source, for the commonest
calls (`emitter`); what these lines call is what `run` calls. `planning` says which steps a plan has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..tape import views
from ..tape.interpreters import tensors_in
from ..tensor import Tensor
from .arguments import bind
from .declaration import Operator
from .kinds import Kind, described
from .signatures import overload

FUNCTION, OUT, IN_PLACE, IN_PLACE_VIEW = "", " with out=", "_", "_, a view"
"""The ways to call an operator: its result is new, is written to `out`, to the first argument, or is what that becomes."""


class Call:
    """One call of an operator, which handlers get, and what the steps of its plan have found so far.

    `way`: how `op` is called; `in_place`: it changes its first argument. `given`: the arguments in the order of the declaration,
    checked; `args`: the same, with tensors in the place of numbers that are operands. `stepwise`: a handler wants the steps to
    be taken one by one. `cache`: the mapping that is queried for the results of the kernel, or None. `arrays`: the arguments of
    the kernel. `results`: the arrays that it returns; `several`: as a tuple or list. `outputs`: the tensors made of them.
    `edges`: one for each differentiable input; `recording`: whether the call is recorded, as `node`. `out`: what results are
    written to. `returned`: what the call returns, unless that is the outputs.
    """

    __slots__ = tuple(
        "args arrays cache edges given in_place node op out outputs recording results returned several stepwise way".split()
    )

    args: Any
    arrays: list[Any]
    cache: Any
    edges: list[Any]
    node: Any
    outputs: Sequence[Any]
    results: list[Any]
    returned: Any
    several: bool

    def __init__(self, op: Operator, way: str, args: tuple[Any, ...], out: Any = None) -> None:
        self.op, self.way, self.out = op, way, out
        self.given = args
        self.in_place = way in (IN_PLACE, IN_PLACE_VIEW)
        self.stepwise = False
        self.recording = False
        self.cache = None
        self.outputs = ()

    def tensors(self) -> list[Tensor]:
        """The tensors among the arguments, including tensors in sequences."""
        found: list[Tensor] = []  # what `tensors_in` finds, without the cost of a generator
        for value in self.given if self.out is None else (*self.given, self.out):
            if isinstance(value, Tensor):
                found.append(value)
            elif isinstance(value, (list, tuple)):
                found += tensors_in((value,))
        return found

    @property
    def name(self) -> str:
        """The name of the operator in PyTorch's dispatcher."""
        return f"{self.op.aten_name}_" if self.in_place else self.op.aten_name

    def check_inplace(self) -> None:
        """Raise if autograd forbids changing the first argument."""
        views.check_inplace(self.given[0])

    def overload(self) -> str:
        """PyTorch's name of the overload that is called in place."""
        return overload(self.op, self.given)

    def operands(self) -> list[Tensor]:
        """The tensors among the operands, including tensors in sequences."""
        return list(tensors_in([self.args[position] for position in self.op.tensor_positions]))

    def result(self) -> Any:
        """What the call returns, after the steps."""
        if self.way != FUNCTION:
            return self.returned
        if not self.several:
            return self.outputs[0]
        op = self.op
        return op.returns(*self.outputs) if op.outputs and op.returns is not tuple else tuple(self.outputs)


class Step:
    """One step of a plan. `run` does it."""

    run: Callable[[Call], None]

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.op = plan.op

    def lines(self, leave: str) -> list[str]:
        """Source that does it for plain tensors on plain arrays, and that executes `leave` for other calls."""
        raise NotImplementedError

    def __str__(self) -> str:
        raise NotImplementedError


class Plan:
    """What an operator does with calls of one kind; it prints as its steps.

    `kinds`: those of the operands, by position; none in the plan for plain tensors on plain arrays, from which straight-line code
    is printed. `arrays`: the class of arrays that computes. `target`: the dtype that operands are converted to; `rounded`: that
    which the result is rounded to. `inference`: the results are inference tensors. `caller`: how many frames the user's call is
    above straight-line code. `code`: straight-line code for calls of these kinds, if they are frequent; `runs`: how many calls
    have taken the steps. `readers`: what makes arguments of the kernel of operands, by position.
    """

    __slots__ = tuple(
        "acting arrays caller code inference kinds op readers reading rounded runs steps target way".split()
    )

    arrays: Any
    readers: dict[int, Callable[[Any], Any]]
    target: Any
    rounded: Any
    steps: tuple[Step, ...]

    def __init__(self, op: Operator, way: str, kinds: dict[int, Kind], inference: bool, caller: int) -> None:
        self.op, self.way, self.kinds, self.inference, self.caller = op, way, kinds, inference, caller
        self.code: Callable[..., Any] | None = None
        self.runs = 0

    def take(self, reading: list[Step], acting: list[Step]) -> None:
        """Use these steps: the steps that read the arguments, then the other steps."""
        self.steps = (*reading, *acting)
        self.reading, self.acting = tuple([step.run for step in reading]), tuple([step.run for step in acting])

    def act(self, call: Call) -> None:
        """Take the steps after the arguments have been read."""
        for step in self.acting:
            step(call)

    def results_of(self, args: tuple[Any, ...]) -> Any:
        """What the kernel returns for arguments."""
        call = Call(self.op, self.way, bind(self.op, args))
        call.args = list(call.given)
        for step in self.reading:
            step(call)
        return self.arrays.compute(self, call.arrays)

    def __str__(self) -> str:
        kinds = ", ".join(map(described, self.kinds.values()))
        return "\n    ".join([f"{self.op.name}{self.way}({kinds})", *map(str, self.steps)])
