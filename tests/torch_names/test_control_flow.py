"""Control flow as functions: `cond`, `while_loop`, `map`, `scan`, `associative_scan`."""

import pytest

import adjoint as torch
from adjoint._higher_order_ops import associative_scan, map, scan


def test_cond_runs_one_branch_and_differentiates_it():
    x = torch.tensor([2.0], requires_grad=True)
    torch.cond(x.sum() > 1, lambda x: x * x, lambda x: x, (x,)).backward()
    assert x.grad.item() == 4.0
    with pytest.raises(RuntimeError, match="single-element bool tensor"):
        torch.cond(torch.ones(2), torch.sin, torch.cos, (x,))


def test_while_loop_carries_values():
    assert torch.while_loop(lambda n: n < 10, lambda n: (n * 2,), (torch.tensor(1),))[0].item() == 16
    with pytest.raises(RuntimeError, match="boolean scalar tensor"):
        torch.while_loop(lambda n: n, lambda n: (n,), (torch.tensor(1),))


@pytest.mark.parametrize("length", range(1, 10))
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_is_the_sequence_of_partial_results(length, reverse):
    a, b = torch.rand(2, length, dtype=torch.float64), torch.rand(2, length, dtype=torch.float64, requires_grad=True)

    def affine(first, second):
        return first[0] * second[0], second[0] * first[1] + second[1]

    found = associative_scan(affine, (a, b), 1, reverse=reverse)[1]
    state, expected = torch.zeros(2, dtype=torch.float64), [None] * length
    for t in reversed(range(length)) if reverse else range(length):
        state = expected[t] = a[:, t] * state + b[:, t]
    torch.testing.assert_close(found, torch.stack(expected, 1))
    assert torch.autograd.grad(found.sum(), b)[0].shape == b.shape


def test_map_and_scan_stack_their_results():
    x = torch.arange(6.0).view(3, 2)
    assert torch.equal(map(lambda row, k: row * k, x, 2), x * 2)
    last, sums = scan(lambda state, row: (state + row, state + row), torch.zeros(2), x)
    assert torch.equal(sums, x.cumsum(0)) and torch.equal(last, sums[-1])
    assert torch.equal(
        scan(lambda s, r: (s + r, s + r), torch.zeros(2), x, reverse=True)[1], x.flip(0).cumsum(0).flip(0)
    )
