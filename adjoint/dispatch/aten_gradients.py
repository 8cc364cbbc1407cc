"""The lines of a node's method that let modes and classes compute gradients by PyTorch's operators.

The attribute `aten_gradients` of a declaration is the call of PyTorch's operator for the gradients, such as
`"glu_backward(grad, self, dim)"`. It names the parameters of formulas. Modes and classes with `__torch_dispatch__` receive
this operator instead of the operators of the formulas. If each gradient has an operator, `aten_gradients` is a dictionary of
calls by the names of the inputs.
"""

from __future__ import annotations

import re

from .declaration import ARRAY, Operator


def aten_lines(op: Operator, calls: str | dict[str, str]) -> list[str]:
    """Return the gradients from PyTorch's operators, if a mode or a class receives the operators."""
    given = calls if isinstance(calls, str) else " ".join(calls.values())
    operands = [item for item in (*op.saved_inputs, *op.saved_results) if re.search(rf"\b{item}\b", given)]
    needed = [f"{item} is not None" for item in operands if op.kinds.get(item) == ARRAY]
    if op.several:
        needed.append("grad[0] is not None")
        given = "*grad"
    else:
        given = "grad"
    lines = [
        "    aten = None",
        "    if FLAGS.special or DISPATCHING:",
        f"        aten = Tensor._gradient_operators({', '.join([given, *operands])})",
        f"    if {' and '.join(['aten is not None', *needed])}:",
        "        needs = [edge is not None for edge in edges]",
    ]
    if op.several:
        lines.append("        grads = grad")
    if isinstance(calls, str):
        return [*lines, f"        return aten.{calls}"]
    terms = [f"aten.{calls[name]} if needs[{index}] else None" for index, name in enumerate(op.differentiable)]
    return [*lines, f"        return ({', '.join(terms)},)"]
