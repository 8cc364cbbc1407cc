"""Errors about wrong arguments name the function that the program has called, and count the positions of that call."""

import re

import pytest

import adjoint as torch

X = torch.ones(2)

LERP = """\
lerp_() received an invalid combination of arguments - got (Tensor, str), but expected one of:
 * (Tensor end, Tensor weight)
      didn't match because some of the arguments have invalid types: (Tensor, !str!)
 * (Tensor end, Number weight)
      didn't match because some of the arguments have invalid types: (Tensor, !str!)
"""

CALLS = [
    (lambda: torch.add(X, "a"), "add(): argument 'other' (position 2) must be Tensor, not str"),
    (lambda: X.add("a"), "add(): argument 'other' (position 1) must be Tensor, not str"),
    (lambda: X.add_("a"), "add_(): argument 'other' (position 1) must be Tensor, not str"),
    (lambda: torch.Tensor.add(X, "a"), "add(): argument 'other' (position 1) must be Tensor, not str"),
    (lambda: X.arctan2_("a"), "arctan2_(): argument 'other' (position 1) must be Tensor, not str"),
    (lambda: torch.special.expit(3), "special_expit(): argument 'input' (position 1) must be Tensor, not int"),
    (lambda: torch.cumsum(X, "a"), "cumsum(): argument 'dim' (position 2) must be int, not str"),
    (lambda: X.cumsum_("a"), "cumsum_(): argument 'dim' (position 1) must be int, not str"),
    (lambda: X.cumsum_(), 'cumsum_() missing 1 required positional arguments: "dim"'),
    (lambda: X.softmax("a"), "softmax(): argument 'dim' (position 1) must be int, not str"),
    (lambda: torch.softmax(X, "a"), "softmax(): argument 'dim' (position 2) must be int, not str"),
    (lambda: X.where(3, X), "where(): argument 'condition' (position 1) must be Tensor, not int"),
    (lambda: X.matmul(3), "matmul(): argument 'other' (position 1) must be Tensor, not int"),
    (lambda: torch.exp_(3), "exp_(): argument 'input' (position 1) must be Tensor, not int"),
    (
        lambda: X.add_(),
        "add_() received an invalid combination of arguments - got (), but expected (Tensor other, *, Number alpha = 1)",
    ),
    (lambda: X.lerp_(X, "a"), LERP),
]


@pytest.mark.parametrize(("call", "message"), CALLS)
def test_the_error_names_the_call(call, message):
    for _ in range(2):  # the first call of a function goes through its stub
        with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
            call()


def test_a_call_within_another_function_is_one_of_the_function():
    with pytest.raises(TypeError, match=r"mm\(\): argument 'mat2' \(position 3\)"):
        torch.addmm(X, X[None], 3)


@pytest.mark.parametrize("symbol", ["+", "-", "*", "/", "&", "<<"])
def test_an_augmented_assignment_of_an_unknown_operand(symbol):
    with pytest.raises(TypeError, match=rf"unsupported operand type\(s\) for {re.escape(symbol)}=: 'Tensor' and 'str'"):
        exec(f"x {symbol}= 'a'", {"x": torch.ones(2)})
