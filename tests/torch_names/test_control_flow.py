"""Control flow as functions: `cond`, `while_loop`, `map`, `scan`, `associative_scan`."""

import pytest

import adjoint as torch
from adjoint._higher_order_ops import associative_scan, map, scan


def test_cond_runs_one_branch_and_differentiates_it():
    x = torch.tensor([2.0], requires_grad=True)
    torch.cond(x.sum() > 1, lambda x: x * x, lambda x: x, (x,)).backward()
    assert x.grad.item() == 4.0
    with pytest.raises(RuntimeError, match="bool or single-element tensor"):
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


@pytest.mark.parametrize(
    ("dim", "shapes"), [(0, [(2, 3, 4), (2, 4), (2,)]), (1, [(2, 3, 4), (4, 3), (3,)]), (-1, [(2, 3, 4), (4, 3), (4,)])]
)
def test_outputs_of_scan_are_stacked_along_its_dimension(dim, shapes):
    x = torch.rand(2, 3, 4)
    outputs = scan(lambda s, part: (s, (part.clone(), part.sum(0), part.sum())), torch.zeros(1), x, dim=dim)[1]
    assert [output.shape for output in outputs] == shapes
    assert torch.equal(outputs[0], x)


def test_scan_of_nothing_and_wrong_arguments():
    state = torch.ones(2)
    assert scan(lambda s, x: (s, x), state, []) == (state, [])
    for words, init, xs, options in (
        ("All init leaves must be a Tensor but got 1.0", 1.0, state, {}),
        ("scan\\(\\) operator requires init leaves", [], state, {}),
        ("scan dimension > 0", state, torch.ones(0, 2), {}),
        ("Reverse must be a bool", state, state, {"reverse": 1}),
    ):
        with pytest.raises(RuntimeError, match=words):
            scan(lambda s, x: (s, x), init, xs, **options)


def test_map_checks_its_values():
    for words, xs in (
        (r"Mapped xs can only consist of tensors. Got xs \[3, tensor\(\[1.\]\)\]", (3, torch.ones(1))),
        (r"Leading dimensions of mapped xs must be consistent.*\[2\]\), .*\[3\]\)", (torch.ones(2), torch.ones(3))),
        ("Leading dimensions of mapped xs cannot be 0", torch.ones(0, 2)),
    ):
        with pytest.raises(RuntimeError, match=words):
            map(lambda x: x, xs)
    with pytest.raises(RuntimeError, match="only contains tensors or None"):
        map(lambda x: x.item(), torch.ones(3))
    assert map(lambda x: (None, x), torch.ones(3))[0] is None


def test_a_single_tensor_is_carried_alone():
    assert torch.while_loop(lambda n: n < 3, lambda n: n + 1, (torch.tensor(1),)).item() == 3


def test_cond_chooses_for_each_example():
    x = torch.tensor([1.0, -2.0], requires_grad=True)

    def chosen(x):
        return torch.cond(x > 0, lambda x: {"a": x * 3}, lambda x: {"a": x * x}, (x,))["a"]

    found = torch.vmap(chosen)(x)
    assert found.tolist() == [3.0, 4.0]
    assert torch.autograd.grad(found.sum(), x)[0].tolist() == [3.0, -4.0]
    assert torch.vmap(torch.func.grad(chosen))(x.detach()).tolist() == [3.0, -4.0]
