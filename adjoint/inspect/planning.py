"""`plans`: what operators do with the calls that a function makes, step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..dispatch.arguments import bind
from ..dispatch.declaration import Operator
from ..dispatch.plan import FUNCTION, IN_PLACE, OUT, Plan
from ..dispatch.planning import plan_of
from ..dispatch.slow_path import call_inplace
from ..tape import modes


def plans(function: Callable[..., Any], *args: Any, **keywords: Any) -> list[Plan]:
    """Call `function`, and return the plans of the operators that run: the steps that each takes for its arguments.

    A plan prints as text, a step a line. It is the definition of what an operator does; what runs are its steps, or straight-line
    code that was printed from them.

    Args:
        function: An operator, or any function.
        args: What it is called with.
        keywords: Further arguments.

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
            pack       by the saved-tensor hooks, if there are any
    """
    found = _Found()
    before = modes.switch("recorder", found)
    try:
        function(*args, **keywords)
    finally:
        modes.switch("recorder", before)
    return found.plans


class _Found:
    """The recorder of a thread that looks for the plan of each operator."""

    def __init__(self) -> None:
        self.plans: list[Plan] = []
        self.told = False

    def asks(self) -> bool:
        """Whether `operation` should run the next operator. False if `operation` has just called it."""
        self.told = not self.told
        return self.told

    def operation(
        self, name: str, run: Callable[..., Any], inputs: Any, op: Operator, args: Any, out: Any = None, **names: Any
    ) -> Any:
        """Run the operator `op`, and note its plan."""
        if run is call_inplace:
            self.plans.append(plan_of(op, bind(op, args), IN_PLACE))
            return run(op, args)
        self.plans.append(plan_of(op, bind(op, args, names), FUNCTION if out is None else OUT))
        return run(op, args, out, **names)
