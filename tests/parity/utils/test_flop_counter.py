"""`torch.utils.flop_counter` gives PyTorch's counts for operators and modules, and prints the same table."""

import pytest

import adjoint

torch = pytest.importorskip("torch")

from adjoint.utils.flop_counter import FlopCounterMode

flop_counter = pytest.importorskip("torch.utils.flop_counter")


def linear_model(lib):
    class Branching(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = lib.nn.Linear(4, 4)
            self.b = lib.nn.Sequential(lib.nn.Linear(4, 3))

        def forward(self, x):
            return self.b(self.a(x)) + (x @ x.mT).sum()

    return Branching()


def convolutional_model(lib):
    nn = lib.nn
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 6 * 6, 5))


def random(lib, *shape):
    return lib.randn(*shape, requires_grad=True)


PROGRAMS = {
    "mm": lambda lib, r: (r(3, 4) @ r(4, 5)).sum().backward(),
    "one gradient": lambda lib, r: (lib.randn(3, 4) @ r(4, 5)).sum().backward(),
    "vmap": lambda lib, r: lib.vmap(lambda x: (x @ lib.ones(4, 5)).sum())(r(2, 3, 4)).sum().backward(),
    "vmap of vmap": lambda lib, r: lib.vmap(lib.vmap(lambda x, y: x @ y))(r(2, 3, 4, 5), r(2, 3, 5, 2)),
    "gradients of each": lambda lib, r: lib.vmap(lib.func.grad(lambda x: (x @ x.mT).exp().sum()))(r(2, 3, 4)),
    "tangents": lambda lib, r: lib.func.jvp(lambda x, y: x @ y, (r(3, 4), r(4, 5)), (r(3, 4), r(4, 5))),
    "folded": lambda lib, r: (r(2, 3, 4) @ r(4, 5)).sum().backward(),
    "bmm": lambda lib, r: (r(2, 3, 4) @ r(2, 4, 5)).sum().backward(),
    "vectors": lambda lib, r: (r(4) @ r(4) + (r(3, 4) @ r(4)).sum()).backward(),
    "einsum": lambda lib, r: lib.einsum("bij,bjk->bik", r(2, 3, 4), r(2, 4, 5)).sum().backward(),
    "linear": lambda lib, r: lib.nn.functional.linear(r(2, 3, 4), r(5, 4), r(5)).sum().backward(),
    "baddbmm": lambda lib, r: lib.baddbmm(r(2, 3, 5), r(2, 3, 4), r(2, 4, 5)).sum().backward(),
    "conv2d": lambda lib, r: lib.nn.functional.conv2d(lib.randn(2, 4, 9, 9), r(6, 4, 3, 3)).sum().backward(),
    "conv1d": lambda lib, r: lib.nn.functional.conv1d(r(2, 4, 9), r(6, 4, 3), r(6), 2, 1).sum().backward(),
    "conv_transpose2d": lambda lib, r: (
        lib.nn.functional.conv_transpose2d(r(2, 4, 5, 5), r(4, 6, 3, 3), r(6), 2).sum().backward()
    ),
    "multi-head attention": lambda lib, r: (
        lib.nn.MultiheadAttention(4, 2)(r(5, 2, 4), r(5, 2, 4), r(5, 2, 4))[0].sum().backward()
    ),
    "second derivative": lambda lib, r: second_derivative(lib, r),
    "modules": lambda lib, r: linear_model(lib)(r(3, 4)).sum().backward(),
    "checkpoint": lambda lib, r: (
        lib.utils.checkpoint.checkpoint(linear_model(lib), r(3, 4), use_reentrant=False).sum().backward()
    ),
    "convolutional model": lambda lib, r: convolutional_model(lib)(lib.randn(2, 3, 8, 8)).sum().backward(),
}


def second_derivative(lib, r):
    weight = r(4, 5)
    (grad,) = lib.autograd.grad((r(3, 4).tanh() @ weight).pow(2).sum(), weight, create_graph=True)
    lib.autograd.grad(grad.sum(), weight)


def counted(mode, lib, program):
    with mode(display=False) as counter:
        program(lib, lambda *shape: random(lib, *shape))
    counts = {path: {str(key): n for key, n in of.items()} for path, of in counter.get_flop_counts().items() if of}
    return counter, counts


@pytest.mark.parametrize("name", PROGRAMS)
def test_counts_are_pytorchs(name):
    theirs, expected = counted(flop_counter.FlopCounterMode, torch, PROGRAMS[name])
    ours, found = counted(FlopCounterMode, adjoint, PROGRAMS[name])
    assert found == expected
    assert ours.get_total_flops() == theirs.get_total_flops()


def test_the_table_is_pytorchs():
    pytest.importorskip("tabulate")
    for model in (linear_model, convolutional_model):
        shape = (3, 4) if model is linear_model else (2, 3, 8, 8)
        tables = []
        for mode, lib in ((flop_counter.FlopCounterMode, torch), (FlopCounterMode, adjoint)):
            with mode(display=False) as counter:
                model(lib)(lib.ones(*shape)).sum().backward()
            tables.append([counter.get_table(), counter.get_table(1), counter.get_table(3)])
        assert tables[0] == tables[1]


def test_formulas_of_users():
    seen = []
    for mode, lib in ((flop_counter.FlopCounterMode, torch), (FlopCounterMode, adjoint)):
        asked = []

        def of_mul(*shapes, out_shape=None, asked=asked, **kwargs):
            asked.append((*map(tuple, shapes), tuple(out_shape), kwargs))
            return 7

        with mode(display=False, custom_mapping={lib.ops.aten.mul: of_mul}) as counter:
            lib.ones(3) * lib.ones(2, 3)
        seen.append((asked, counter.get_total_flops()))
    assert seen[0] == seen[1]


def test_groups_count_their_own_operations():
    """PyTorch counts too many operations for the gradient of the weight, by a factor of the number of groups."""
    with FlopCounterMode(display=False) as counter:
        adjoint.nn.functional.conv1d(
            random(adjoint, 2, 4, 9), random(adjoint, 6, 2, 3), None, 2, 1, 1, 2
        ).sum().backward()
    counts = counter.get_flop_counts()["Global"]
    assert counts == {adjoint.ops.aten.convolution: 720, adjoint.ops.aten.convolution_backward: 1440}


def test_recurrent_layers_and_attention_count():
    """PyTorch has no formulas for these operators on a CPU."""
    with FlopCounterMode(display=False) as counter:
        adjoint.nn.LSTM(3, 64)(adjoint.ones(5, 2, 3))[0].sum().backward()
    projections, states = 2 * 10 * 3 * 256, 2 * 10 * 64 * 256
    assert counter.get_total_flops() == 2 * projections + 3 * states  # backward skips the gradient of the input
    with FlopCounterMode(display=False) as counter:
        q, k, v = (random(adjoint, 2, 3, 300, 8) for _ in range(3))
        adjoint.nn.functional.scaled_dot_product_attention(q, k, v).sum().backward()
    scores = 2 * 2 * 3 * 300 * 300 * 8
    assert counter.get_total_flops() in (
        6 * scores,
        7 * scores,
    )  # attention in blocks computes the scores a second time


def test_a_mode_can_be_entered_again_but_not_in_a_profile():
    counter = FlopCounterMode(display=False)
    for _ in range(2):
        with counter:
            adjoint.ones(2, 2) @ adjoint.ones(2, 2)
        assert counter.get_total_flops() == 16
    with adjoint.autograd.profiler.profile(), pytest.raises(RuntimeError, match="already enabled"), counter:
        pass
    adjoint.ones(2, 2) @ adjoint.ones(2, 2)
    assert counter.get_total_flops() == 0
