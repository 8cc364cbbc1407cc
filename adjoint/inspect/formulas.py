"""Derivatives in the notation of a textbook: `grad · cos(x)`, `grad @ mat2ᵀ`, written from the sources of operators."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import cache
from math import prod
from typing import Any, NamedTuple

LONGEST = 60
SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")

SUM, PRODUCT, SIGN, POWER, ATOM = range(1, 6)


class Term(NamedTuple):
    """A piece of a formula, and the precedence of its outermost operation."""

    text: str
    binds: int = ATOM

    def within(self, binds: int) -> str:
        """Return the text, in parentheses if the enclosing operation binds more tightly."""
        return f"({self.text})" if self.binds < binds else self.text


class NotWritten(Exception):
    """The error for source that cannot be written as a formula."""


def written(source: str, names: Mapping[str, str], values: Mapping[str, Any], conjugates: bool = False) -> str | None:
    r"""Return the formula that a function of the declarations returns, or None if it is not a plain expression.

    Args:
        source: the source of the function.
        names: the displayed names of parameters that differ from their own names.
        values: the values of parameters that are not tensors. They decide conditions.
        conjugates: whether to write conjugates, as for complex numbers.

    >>> written("def grad_self(grad, other):\n    return grad * other.conj()", {"other": "x"}, {})
    'grad · x'
    >>> written("def grad_self(grad, other):\n    return grad * other.conj()", {"other": "x"}, {}, conjugates=True)
    'grad · conj(x)'
    """
    tree = _parsed(source)
    if tree is None:
        return None
    writer = _Writer(names, values, conjugates)
    try:
        text = writer.body(tree.body)
    except NotWritten:
        return None
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


@cache
def _parsed(source: str) -> ast.FunctionDef | None:
    try:
        (tree,) = ast.parse(source).body
    except (SyntaxError, ValueError):
        return None
    return tree if isinstance(tree, ast.FunctionDef) else None


class _Writer:
    """Writes one function."""

    def __init__(self, names: Mapping[str, str], values: Mapping[str, Any], conjugates: bool) -> None:
        self.conjugates = conjugates
        self.terms = {name: Term(text) for name, text in names.items()}
        self.values = dict(values)

    def body(self, statements: list[ast.stmt]) -> str:
        """Return the returned formula."""
        for statement in statements:
            if isinstance(statement, ast.Return) and statement.value is not None:
                return self.term(statement.value).text
            if isinstance(statement, ast.If):
                branch = statement.body if self.decided(statement.test) else statement.orelse
                if branch:
                    try:
                        return self.body(branch)
                    except NotWritten:
                        continue
            elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                self.terms[statement.targets[0].id] = self.term(statement.value)
            elif not isinstance(statement, ast.Expr):
                raise NotWritten
        raise NotWritten

    def decided(self, test: ast.expr) -> bool:
        """Return whether a condition on parameters other than tensors is true."""
        used = {each.id for each in ast.walk(test) if isinstance(each, ast.Name)}
        if not used <= self.values.keys() or any(isinstance(each, ast.Call) for each in ast.walk(test)):
            return False  # the usual case is written last
        try:
            return bool(eval(compile(ast.Expression(test), "<formula>", "eval"), {}, self.values))
        except Exception:  # noqa: BLE001  (a comparison of whatever the node has saved)
            return False

    def term(self, node: ast.expr) -> Term:
        """One expression."""
        if isinstance(node, ast.Name):
            return self.name(node.id)
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return Term(f"{node.value:g}" if isinstance(node.value, float) else str(node.value))
        if isinstance(node, ast.BinOp):
            return self.binary(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return Term("−" + self.term(node.operand).within(SIGN), SIGN)
        if isinstance(node, ast.IfExp):
            return self.term(node.body if self.decided(node.test) else node.orelse)
        if isinstance(node, ast.Attribute) and node.attr in ("mT", "mH", "T"):
            return transposed(self.term(node.value))
        if isinstance(node, ast.Call):
            return self.call(node)
        if isinstance(node, ast.BoolOp):
            return self.term(node.values[0])
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "grads":
            return Term("grad")
        raise NotWritten

    def argument(self, node: ast.expr) -> Term:
        """Write an argument of a function, or dots if it cannot be written."""
        try:
            return self.term(node)
        except NotWritten:
            return Term("…")

    def name(self, name: str) -> Term:
        if name in self.terms:
            return self.terms[name]
        value = self.values.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return Term(f"{value:g}", ATOM if value >= 0 else SIGN)
        if isinstance(value, (tuple, list)) and all(isinstance(each, int) for each in value):
            return Term("[" + ", ".join(map(str, value)) + "]")
        if isinstance(value, str) or (value is None and name in self.values):
            return Term(str(value))
        return Term(name)

    def binary(self, node: ast.BinOp) -> Term:
        left, right = self.term(node.left), self.term(node.right)
        if isinstance(node.op, ast.Pow):
            return power(left, right)
        signs: dict[type, tuple[str, int]] = {
            ast.Add: ("+", SUM), ast.Sub: ("−", SUM), ast.Mult: ("·", PRODUCT), ast.Div: ("/", PRODUCT),
            ast.MatMult: ("@", PRODUCT),
        }  # fmt: skip
        if type(node.op) not in signs:
            raise NotWritten
        sign, binds = signs[type(node.op)]
        tighter = sign in "−/@"  # not associative
        return Term(f"{left.within(binds)} {sign} {right.within(binds + tighter)}", binds)

    def call(self, node: ast.Call) -> Term:
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr in ("conj", "resolve_conj"):
            return self.conjugate(self.term(function.value))
        if isinstance(function, ast.Attribute) and function.attr == "reshape":
            return self.term(function.value)
        name = (
            function.attr
            if isinstance(function, ast.Attribute)
            else function.id
            if isinstance(function, ast.Name)
            else ""
        )
        given = [each for each in node.args if not (isinstance(each, ast.Name) and each.id in ("xp", "needs"))]
        if name == "conjugate":
            return self.conjugate(self.argument(given[0]))
        if name in ("_like_first", "_like_second") and self.conjugates:
            term = NOTATION[name](*map(self.argument, given[: ARITY[name]]))
            return term._replace(text=term.text.replace("ᵀ", "ᴴ"))
        if name in NOTATION and not any(isinstance(each, ast.Starred) for each in given):
            return NOTATION[name](*map(self.argument, given[: ARITY[name]]))
        if isinstance(function, ast.Call):  # a function that is found by its name
            name = "backward"
        if not name:
            raise NotWritten
        if name == "element_count":
            return self.count(given)
        terms = [self.argument(each).text for each in given if not isinstance(each, ast.Starred)]
        terms = [text for text in terms if text != "None"]
        return Term(f"{name.strip('_')}({', '.join(terms)})")

    def conjugate(self, term: Term) -> Term:
        """Write the complex conjugate."""
        return Term(f"conj({term.text})") if self.conjugates else term

    def count(self, given: list[ast.expr]) -> Term:
        """Return the number of elements that a reduction combines."""
        shape, dim = (
            self.values.get(each.id) if isinstance(each, ast.Name) else None
            for each in (*given, ast.Constant(None))[:2]
        )
        if not isinstance(shape, (tuple, list)):
            raise NotWritten
        dims = (dim or range(len(shape))) if dim is None or isinstance(dim, (tuple, list)) else (dim,)
        return Term(str(prod(shape[each] for each in dims) if shape else 1))


def negated(term: Term) -> Term:
    """Return the opposite of a condition."""
    return Term(term.text.removeprefix("not ")) if term.text.startswith("not ") else Term(f"not {term.text}")


def transposed(term: Term) -> Term:
    """The transpose."""
    return Term(term.within(POWER) + "ᵀ", POWER)


def power(base: Term, exponent: Term) -> Term:
    """Write a power, with a whole number as a superscript."""
    if exponent.text == "1":
        return base
    if exponent.text.lstrip("-").isdigit():
        return Term(base.within(ATOM) + exponent.text.translate(SUPERSCRIPTS), POWER)
    return Term(f"{base.within(ATOM)}^{exponent.within(ATOM)}", POWER)


def product(*terms: Term) -> Term:
    """Write a product, without factors of one."""
    kept = [term for term in terms if term.text != "1"] or [Term("1")]
    return kept[0] if len(kept) == 1 else Term(" · ".join(term.within(PRODUCT) for term in kept), PRODUCT)


def _slope(function: str) -> Callable[..., Term]:
    return lambda grad, at: product(grad, Term(f"{function}′({at.text})"))


def _mean(term: Term, reduction: Term) -> Term:
    """Return `term`, divided by the number of elements if the reduction is the mean."""
    return Term(f"{term.within(PRODUCT)} / n", PRODUCT) if reduction.text == "mean" else term


def _likelihood_slope(grad: Term, self: Term, target: Term, weight: Term, reduction: Term) -> Term:
    factors = (grad,) if weight.text == "None" else (grad, weight)
    wrong = Term(f"{self.within(SUM)} − {target.within(PRODUCT)}", SUM)
    return _mean(Term(f"{product(*factors, wrong).text} / ({self.text} · (1 − {self.text}))", PRODUCT), reduction)


ONE, NO_TERM = Term("1"), Term("None")


def _difference_slope(
    grad: Term, first: Term, second: Term, reduction: Term, divisor: Term = ONE, limit: Term = NO_TERM
) -> Term:
    wrong = Term(f"{first.within(SUM)} − {second.within(PRODUCT)}", SUM)
    if divisor.text != "1":
        wrong = Term(f"{wrong.within(PRODUCT)} / {divisor.within(POWER)}", PRODUCT)
    if limit.text != "None":
        wrong = Term(f"clamp({wrong.text}, −{limit.within(POWER)}, {limit.text})")
    return _mean(product(grad, wrong), reduction)


def _smooth_slope(grad: Term, first: Term, second: Term, reduction: Term, beta: Term) -> Term:
    return _difference_slope(grad, first, second, reduction, beta, ONE)


def _nll_slope(grad: Term, self: Term, target: Term, weight: Term, ignored: Term, reduction: Term) -> Term:
    """`n` is the number of targets, or the sum of their weights."""
    weighted = "" if weight.text == "None" else f" · {weight.text}"
    return _mean(Term(f"−{grad.within(SIGN)}{weighted} · onehot({target.text})", PRODUCT), reduction)


def _power_slope(grad: Term, base: Term, exponent: Term) -> Term:
    try:
        less = Term(f"{float(exponent.text) - 1:g}")
    except ValueError:
        less = Term(f"({exponent.text} − 1)")
    return product(grad, exponent, power(base, less) if less.text != "0" else Term("1"))


NOTATION: dict[str, Callable[..., Term]] = {
    "_like_first": lambda grad, other: Term(f"{grad.within(PRODUCT)} @ {transposed(other).text}", PRODUCT),
    "_like_second": lambda grad, first: Term(f"{transposed(first).text} @ {grad.within(POWER)}", PRODUCT),
    "_scaled": lambda term, factor: product(term, factor),
    "t": transposed,
    "transpose": transposed,
    "threshold_backward": lambda grad, at, bound: product(grad, Term(f"[{at.text} > {bound.text}]")),
    "tanh_backward": lambda grad, at: product(grad, Term(f"(1 − {power(at, Term('2')).text})")),
    "sigmoid_backward": lambda grad, at: product(grad, at, Term(f"(1 − {at.text})")),
    "softmax_backward": lambda grad, at: product(at, Term(f"({grad.text} − Σ {product(grad, at).text})")),
    "log_softmax_backward": lambda grad, at: Term(f"{grad.text} − exp({at.text}) · Σ {grad.within(POWER)}", SUM),
    "power_backward": _power_slope,
    "gelu_backward": _slope("gelu"),
    "silu_backward": _slope("silu"),
    "elu_backward": _slope("elu"),
    "softplus_backward": _slope("softplus"),
    "leaky_relu_backward": _slope("leaky_relu"),
    "nll_loss_backward": _nll_slope,
    "nll_loss2d_backward": _nll_slope,
    "_of_difference": _difference_slope,
    "binary_cross_entropy_backward": _likelihood_slope,
    "_smooth": _smooth_slope,
    "weigh": lambda grad, weight: grad if weight.text == "None" else product(grad, weight),
    "scaled": _mean,
    "sum": lambda grad: Term(f"Σ {grad.within(POWER)}", PRODUCT),
    "expand": lambda grad, shape: Term(f"{grad.text} to {shape.text}", SUM),
    "spread": lambda grad, shape: Term(f"({grad.text} to {shape.text})"),
    "sum_to_size": lambda grad, shape: Term(f"Σ {grad.text} to {shape.text}", SUM),
    "select_backward": lambda grad, shape, dim, index: Term(f"{grad.text} at {index.text} of dim {dim.text}, else 0", SUM),
    "zero_where": lambda grad, where: product(grad, Term(f"[{negated(where).text}]")),
    "logical_not": negated,
    "masked_fill_number": lambda grad, mask: product(grad, Term(f"[{negated(mask).text}]")),
    "bmm": lambda left, right: Term(f"{left.within(PRODUCT)} @ {right.within(POWER)}", PRODUCT),
    "embedding_backward": lambda grad, indices: Term(f"Σ {grad.within(POWER)} by {indices.text}", PRODUCT),
    "conv_input_grad": lambda grad, weight: Term(f"{grad.within(PRODUCT)} ∗ {weight.within(PRODUCT)} flipped", PRODUCT),
    "conv_weight_grad": lambda grad, input: Term(f"{input.within(PRODUCT)} ⋆ {grad.within(PRODUCT)}", PRODUCT),
}  # fmt: skip
"""The notation for functions in formulas, by name."""

ARITY = {name: write.__code__.co_argcount for name, write in NOTATION.items()}
