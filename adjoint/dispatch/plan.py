"""The definition of an operator's behaviour as a value: a plan, which is a list of steps, and the values that steps pass on.

A step has two readers. `run` performs the step for every call (`slow_path`). `lines` prints it as straight-line source for the
most common calls (`emitter`). These lines call the same functions as `run`. `planning` determines the steps of a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..tape.interpreters import tensors_in
from ..tensor import Tensor
from .declaration import Operator
from .kinds import Kind, described

FUNCTION, OUT, IN_PLACE, IN_PLACE_VIEW = "", " with out=", "_", "_, a view"
"""The kinds of calls: the result is new, is written to `out` or to the first argument, or replaces the first argument."""


class Call:
    """One call of an operator, which handlers receive, and the values that the steps of its plan have computed so far.

    `way`: how `op` is called. `in_place`: whether it changes its first argument. `given`: the checked arguments in the order of
    the declaration. `args`: the same, with tensors in place of numbers that are operands. `stepwise`: whether a handler
    requires that the steps run one by one. `cache`: the mapping that is queried for the results of the kernel, or None.
    `arrays`: the arguments of the kernel. `results`: the arrays that the kernel returns. `several`: whether the results
    are a tuple or a list. `outputs`: the tensors made from the results. `edges`: one edge for each differentiable
    input. `recording`: whether the call is recorded. `out`: the destination of the results. `returned`: the result of
    the call if it is not the outputs.
    """

    __slots__ = tuple(
        "args arrays cache edges given in_place op out outputs recording results returned several stepwise way".split()
    )

    args: Any
    arrays: list[Any]
    cache: Any
    edges: list[Any]
    outputs: Sequence[Any]
    results: list[Any]
    returned: Any
    several: bool

    def __init__(self, op: Operator, way: str, args: tuple[Any, ...], out: Any = None) -> None:
        self.op, self.way, self.out = op, way, out
        self.given = self.args = args
        self.in_place = way in (IN_PLACE, IN_PLACE_VIEW)
        self.stepwise = False
        self.recording = False
        self.cache = None
        self.outputs = ()

    def tensors(self) -> list[Tensor]:
        """The tensors among the arguments, including tensors in sequences."""
        return tensors_in(self.given if self.out is None else (*self.given, self.out))

    @property
    def name(self) -> str:
        """The name of the operator in PyTorch's dispatcher."""
        return f"{self.op.aten_name}_" if self.in_place else self.op.aten_name

    def operands(self) -> list[Tensor]:
        """The tensors among the operands, including tensors in sequences."""
        return tensors_in(map(self.args.__getitem__, self.op.tensor_positions))

    def result(self) -> Any:
        """Return the result of the call after the steps."""
        if self.way != FUNCTION:
            return self.returned
        if not self.several:
            return self.outputs[0]
        op = self.op
        return op.returns(*self.outputs) if op.outputs and op.returns is not tuple else tuple(self.outputs)


class Step:
    """One step of a plan. `run` performs it."""

    run: Callable[[Call], None]

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.op = plan.op

    def lines(self, leave: str) -> list[str]:
        """Return source that performs the step for plain tensors on plain arrays, and executes `leave` for other calls."""
        return []


class Plan:
    """The behaviour of an operator for calls of one kind. The printed plan lists its steps.

    `kinds`: the kinds of the operands, by position. The plan for plain tensors on plain arrays has none; its steps are printed
    as straight-line code. `arrays`: the class of arrays that computes. `target`: the dtype to which operands are converted.
    `rounded`: the dtype to which the result is rounded. `inference`: whether the results are inference tensors. `caller`: the
    number of frames between the user's call and straight-line code. `code`: straight-line code for frequent kinds.
    `runs`: the number of calls so far. `readers`: the functions that convert operands to arguments of the kernel, by position.
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
        """Use these steps: first the steps that read the arguments, then the other steps."""
        self.steps = (*reading, *acting)
        self.reading, self.acting = tuple([step.run for step in reading]), tuple([step.run for step in acting])

    def act(self, call: Call) -> None:
        """Run the steps after the arguments have been read."""
        for step in self.acting:
            step(call)

    def __str__(self) -> str:
        kinds = ", ".join(map(described, self.kinds.values()))
        return "\n    ".join([f"{self.op.name}{self.way}({kinds})", *map(str, self.steps)])
