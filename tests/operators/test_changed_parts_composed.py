"""Every in-place operator on parts of a tensor agrees with its out-of-place form, within compositions of transforms."""

import itertools

import pytest

import adjoint as torch
from adjoint.operators import OPERATORS

from .test_every_operator import DIFFERENTIABLE, IN_PLACE_ONLY, apply, replaced

F = torch.func

# The first operand of these operators is not differentiable. Under `vmap`, it lacks the batch dimension of the values.
NO_BATCH = frozenset("igamma igammac".split())

FIRST = {
    case.values[0]: case.values[1]
    for case in reversed(DIFFERENTIABLE)
    if OPERATORS[case.values[0]].inplace
    and not OPERATORS[case.values[0]].view
    and not OPERATORS[case.values[0]].random
    and case.values[0] not in IN_PLACE_ONLY | NO_BATCH
}

PARTS = {
    "slice": (
        lambda part, rest: torch.cat([rest, part, rest], -1),
        lambda whole, shape: whole.narrow(-1, shape[-1], shape[-1]),
    ),
    "all": (lambda part, rest: part * 1, lambda whole, shape: whole[...]),
    "select": (lambda part, rest: torch.stack([rest, part], -1), lambda whole, shape: whole[..., 1]),
    "step of a view": (
        lambda part, rest: torch.stack([part, rest], -1),
        lambda whole, shape: whole.flatten(-2)[..., ::2],
    ),
    "transpose": (lambda part, rest: part.transpose(0, -1) * 1, lambda whole, shape: whole.transpose(0, -1)),
    "squeeze": (lambda part, rest: part.unsqueeze(0) * 1, lambda whole, shape: whole.squeeze(0)),
    "view": (lambda part, rest: part.reshape(-1) * 1, lambda whole, shape: whole.view(shape)),
    "diagonal": (
        lambda part, rest: torch.diag_embed(part) + torch.diag_embed(rest, 1)[..., :-1, :-1],
        lambda whole, shape: whole.diagonal(0, -2, -1),
    ),
    "view of a view": (
        lambda part, rest: torch.stack([torch.stack([rest, part]), torch.stack([part, rest])]),
        lambda whole, shape: whole[0][1],
    ),
}
"""Functions that build a tensor from a part and other elements, and functions that take the part from the tensor."""


def functions(name, part, complex_numbers):
    """Return the operator on a part, in place and out of place, as two scalar functions of the differentiable tensors."""
    call = FIRST[name]
    args, kwargs, tensors = call.build(complex_numbers)
    join, take = PARTS[part]

    def function(in_place):
        def total(*tensors):
            remaining = iter(tensors if call.before is None else map(call.before, tensors))
            x, *more = [replaced(value, remaining) for value in args]
            keywords = {key: replaced(value, remaining) for key, value in kwargs.items()}
            if in_place:
                whole = join(x, x * 0.5)
                taken = take(whole, x.shape)
                apply(name, call, [taken, *more], keywords, OPERATORS[name].inplace_function)
            else:
                taken = apply(name, call, [x, *more], keywords)
                if taken.dtype != x.dtype:
                    raise RuntimeError("in place it cannot be")
                whole = join(taken, x * 0.5)
                if part == "view of a view":  # the operator does not change the second occurrence of the part
                    whole = torch.stack([whole[0], torch.stack([x, x * 0.5])])
            weights = torch.linspace(0.5, 1, whole.numel(), dtype=torch.float64).reshape(whole.shape)
            return (squares(whole) * weights).sum() + (squares(taken) ** 2).sum() / 8

        return total

    return function(True), function(False), tuple(tensor.detach() for tensor in tensors)


def squares(x):
    return (x * x.conj()).real if x.is_complex() else x * x


def derivative(f, order, along):
    """Return the derivative of `f` in the direction `along`, by forward mode (F) and reverse mode (R).

    The first letter is the innermost mode.
    """
    for letter in order:
        f = forward(f, along) if letter == "F" else reverse(f, along)
    return f


def forward(f, along):
    return lambda *x: F.jvp(f, x, along)[1]


def reverse(f, along):
    def directional(*x):
        found = F.grad(f, tuple(range(len(x))))(*x)
        return sum(((g * v.conj()).real if g.is_complex() else g * v).sum() for g, v in zip(found, along, strict=True))

    return directional


def is_fit(name, part, complex_numbers):
    """Return whether the operator can be applied to such a part in place."""
    in_place, out_of_place, tensors = functions(name, part, complex_numbers)
    try:
        return bool(torch.isclose(in_place(*tensors), out_of_place(*tensors)))
    except (RuntimeError, IndexError):  # `test_every_operator` tests these shapes and dtypes
        return False


def batched(in_place, out_of_place, along, order, batch):
    """Return the derivative within `vmap`, and the derivative of `vmap`."""
    expected = torch.stack([derivative(out_of_place, order, along)(*(x[i] for x in batch)) for i in range(2)])
    found = torch.vmap(derivative(in_place, order, along))(*batch)
    torch.testing.assert_close(found, expected, msg=f"{order} within vmap")
    same_along = tuple(torch.stack([v, v]) for v in along)
    found = derivative(lambda *x: torch.vmap(in_place)(*x).sum(), order, same_along)(*batch)
    torch.testing.assert_close(found, expected.sum(), msg=f"{order} of vmap")


CHECKS = [("RF", False), ("FR", False), ("FF", False), ("RRF", False), ("R", True), ("RF", True)]
"""The orders of derivatives, and whether a batch is differentiated."""


def check_change(name, part, complex_numbers, order, batch):
    in_place, out_of_place, tensors = functions(name, part, complex_numbers)
    along = tuple(torch.arange(x.numel(), dtype=torch.float64).cos().reshape(x.shape).to(x.dtype) for x in tensors)
    if batch:
        batched(in_place, out_of_place, along, order, tuple(torch.stack([x, x * 1.01]) for x in tensors))
    else:
        expected = derivative(out_of_place, order, along)(*tensors)
        torch.testing.assert_close(derivative(in_place, order, along)(*tensors), expected, msg=order)


def choices(name, complex_numbers):
    """Return pairs of a suitable part and a check.

    Each operator is tested with all parts and all checks, and each pair with many operators.
    """
    number = [*FIRST].index(name)
    parts = [*PARTS]
    turned = parts[number % len(parts) :] + parts[: number % len(parts)]
    fit = [part for part in turned if is_fit(name, part, complex_numbers)]
    for place in range(max(len(fit), len(CHECKS)) if fit else 0):
        yield fit[place % len(fit)], *CHECKS[(place + number) % len(CHECKS)]


def check(name, first, last):
    for complex_numbers in (
        [False, True] if FIRST[name].complex_numbers is True else [FIRST[name].complex_numbers == "only"]
    ):
        for choice in itertools.islice(choices(name, complex_numbers), first, last):
            check_change(name, choice[0], complex_numbers, *choice[1:])


@pytest.mark.parametrize("name", FIRST)
@pytest.mark.long_cases
def test_change_of_a_part(name):
    check(name, 0, 1)


@pytest.mark.thorough
@pytest.mark.parametrize("name", FIRST)
def test_changes_of_other_parts(name):
    check(name, 1, None)


@pytest.mark.thorough
@pytest.mark.parametrize("name", [*FIRST][::30])
def test_every_change_of_every_part(name):
    complex_numbers = bool(FIRST[name].complex_numbers)
    for part in PARTS:
        if is_fit(name, part, complex_numbers):
            for order, batch in CHECKS:
                check_change(name, part, complex_numbers, order, batch)


@pytest.mark.thorough
def test_operators_are_applied_to_parts():
    tried = {
        (part, name) for part in PARTS for name in FIRST if is_fit(name, part, FIRST[name].complex_numbers == "only")
    }
    assert {name for _, name in tried} >= {
        "exp",
        "sqrt",
        "tanh",
        "sigmoid",
        "reciprocal",
        "hypot",
        "cumprod",
        "index_add",
    }
    assert {part for part, _ in tried} == set(PARTS)
    assert len(tried) > 600
