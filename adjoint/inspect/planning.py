"""`plans` lists the steps of the operators that a function calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..dispatch.plan import Plan
from ..dispatch.planning import plan_of
from .recording import Passing, watching


def plans(function: Callable[..., Any], *args: Any, **keywords: Any) -> list[Plan]:
    """Call `function`, and return the plans of the operators that run.

    A plan lists the steps that the operator takes for its arguments.

    A plan prints as text, with one step per line. A plan is the definition of an operator. A call runs the steps of the
    plan, or straight-line code printed from the steps.

    Args:
        function: an operator, or any function.
        args: the arguments of the function.
        keywords: keyword arguments of the function.

    Example:
        >>> import adjoint as torch
        >>> w, x = torch.ones(2, requires_grad=True), torch.ones(2, dtype=torch.float64)
        >>> print(*torch.inspect.plans(torch.mul, w, x))
        mul(float32, float64)
            promote    self to float64
            compute    multiply
            lay out    as self, other
            edges      of self, other
            wrap       the result
            record     MulBackward0, which saves other, self
    """
    found = _Found()
    with watching(found):
        function(*args, **keywords)
    return found.plans


class _Found(Passing):
    """A recorder of a thread that collects the plan of each operator."""

    def __init__(self) -> None:
        super().__init__()
        self.plans: list[Plan] = []

    def handle(self, call: Any, proceed: Callable[[], Any]) -> Any:
        """Run the operator, and record its plan."""
        self.plans.append(plan_of(call.op, call.given, call.way))
        return super().handle(call, proceed)
