"""Each expression is traced once. The graph prints as text. The error for unsupported code names the line."""

from __future__ import annotations

import numpy
import pytest

from adjoint.codegen.expression import Choice, Expression, Refusal, leaves
from adjoint.codegen.tracing import TracingError, trace, xp

Array = numpy.ndarray


def test_a_graph_prints_as_text():
    def sigmoid(self: Array):
        return xp.reciprocal(1 + xp.exp(-self))

    assert str(trace(sigmoid)).splitlines() == [
        "%0: number = negative(self)",
        "%1: number = exp(%0)",
        "%2: number = add(1, %1)",
        "%3: number = reciprocal(%2)",
        "return %3",
    ]


def test_common_subexpressions_are_one_node():
    def function(self: Array):
        return xp.exp(self * 2) + xp.exp(self * 2)

    root = trace(function).outputs[0]
    assert root.operands[0] is root.operands[1]
    assert [node.operation for node in trace(function).nodes()] == ["input", "constant", "multiply", "exp", "add"]


def test_zeros_of_both_signs_are_two_constants():
    def function(self: Array):
        return self * 0.0, self * -0.0

    first, second = trace(function).outputs
    assert first is not second


def test_nodes_do_not_change():
    def function(self: Array):
        return -self

    with pytest.raises(AttributeError, match="cannot assign"):
        trace(function).outputs[0].kind = "bool"


def test_conditions_on_parameters_are_asked_both_ways():
    def elu(self: Array, alpha: float, scale: float = 1):
        result = xp.expm1(self)
        if alpha != 1:
            result = result * alpha
        return result if scale == 1 else result * scale

    tree = trace(elu)
    assert isinstance(tree, Choice)
    assert len(list(leaves(tree))) == 4
    assert "if (alpha != 1):" in str(tree)


def test_the_same_condition_is_asked_once():
    def function(self: Array, alpha: float):
        first = self if alpha > 0 else -self
        return first * 2 if alpha > 0 else first

    assert len(list(leaves(trace(function)))) == 2


def test_a_parameter_may_be_absent_or_a_word():
    def function(self: Array, eps: float | None = None, *, approximate: str = "none"):
        if eps is not None:
            self = xp.maximum(self, eps)
        if approximate == "none":
            return self * 2
        if approximate != "tanh":
            raise RuntimeError("approximate argument must be either none or tanh.")
        return xp.tanh(self)

    tree = trace(function)
    assert str(tree).startswith("if (eps is None):\n    if (approximate == 'none'):")
    assert isinstance(tree.if_true.if_false.if_true, Refusal)
    assert len(list(leaves(tree))) == 4


def test_control_flow_on_elements_is_refused():
    def function(self: Array):
        return self if self > 0 else -self

    with pytest.raises(TracingError, match=r"use xp\.where"):
        trace(function)


@pytest.mark.parametrize(
    "function",
    [
        lambda self: self[0],
        lambda self: self.sum(),
        lambda self: self & (self > 0),
        lambda self: xp.where(self, 1, 2),
        lambda self: xp.exp(self, self),
        lambda self: [*self],
    ],
)
def test_functions_that_are_not_elementwise_are_refused(function):
    function.__annotations__["self"] = "Array"
    with pytest.raises(TracingError):
        trace(function)


def test_unknown_names_are_refused():
    def function(self: Array):
        return xp.median(self)

    with pytest.raises(AttributeError, match=r"xp\.median"):
        trace(function)


def test_gradient_formulas_are_expressions():
    def grad_self(grad: Array, result: Array):
        return grad * (1 - result).conj() * result

    assert isinstance(trace(grad_self), Expression)
    assert "conjugate" in str(trace(grad_self))


def test_a_function_of_no_arrays_is_refused():
    def function(self: float):
        return self + 1

    with pytest.raises(TracingError, match="no parameter annotated 'Array'"):
        trace(function)
