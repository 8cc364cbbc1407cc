"""The steps of plans: what an operator does with a call, one thing after the other.

A step has two readers. `run` does it, for every call (`slow_path`). `lines` prints it as straight-line source, for the commonest
calls (`emitter`); what these lines call is what `run` calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..declaration import Operator

if TYPE_CHECKING:
    from ..plans import Plan


FUNCTION, OUT, IN_PLACE, IN_PLACE_VIEW = "", " with out=", "_", "_, a view"
"""The ways to call an operator: its result is new, is written to `out`, to the first argument, or is what that becomes."""


class Call:
    """One call of an operator, and what the steps of its plan have found so far.

    `given`: the arguments in the order of the declaration; `args`: the same, with tensors in the place of numbers that are
    operands. `arrays`: the arguments of the kernel. `results`: the arrays that it returns; `several`: as a tuple or list.
    `outputs`: the tensors made of them. `edges`: one for each differentiable input; `recording`: whether the call is recorded, as
    `node`. `out`: what results are written to. `returned`: what the call returns, unless that is the outputs.
    """

    __slots__ = tuple("args arrays edges given node out outputs recording results returned several".split())

    args: list[Any]
    arrays: list[Any]
    edges: list[Any]
    node: Any
    outputs: list[Any]
    results: list[Any]
    returned: Any
    several: bool

    def __init__(self, args: tuple[Any, ...], out: Any = None) -> None:
        self.given = args
        self.args = list(args)
        self.out = out
        self.recording = False

    def operands(self, op: Operator) -> list[Any]:
        """The operands among the arguments: tensors, sequences of tensors, or None."""
        return [self.args[position] for position in op.tensor_positions]


class Step:
    """One step of a plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.op = plan.op

    def run(self, call: Call) -> None:
        """Do it."""
        raise NotImplementedError

    def lines(self, leave: str) -> list[str]:
        """Source that does it for plain tensors on plain arrays, and that executes `leave` for other calls."""
        raise NotImplementedError

    def __str__(self) -> str:
        raise NotImplementedError
