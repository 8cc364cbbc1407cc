"""Recordable kernels in native runs: the same bits as eager, the kernel itself where a condition fails, and what is refused."""

import numpy
import pytest

import adjoint as torch
from adjoint import nn
from adjoint.codegen.acceleration import LOOPS
from adjoint.codegen.plans import empty, zeros
from adjoint.codegen.recording import Recorder, Unrecorded

F = nn.functional

pytestmark = pytest.mark.skipif(not LOOPS.enabled, reason="there are no compiled loops")


def norms(x, weight, bias):
    """Compute with a norm over the last dimension."""
    return F.layer_norm(x, (16,), weight, bias)


def images(x, weight, bias):
    """Compute with norms over batches and groups."""
    x = x.reshape(8, 16, 4, 4)
    return F.batch_norm(F.group_norm(x, 4, weight, bias), None, None, weight, bias, True)


def table(x, weight, bias):
    """Compute with rows of a table."""
    return F.embedding(ROWS, x)


def orders(x, weight, bias):
    """Compute with sorted elements and the largest elements."""
    return x.sort(1)[0][:, :4] + x.topk(4)[0] + x.sort(0, descending=True)[0][:, :4]


ROWS = torch.tensor([[1, 3, 3], [0, 9, 127]])


@pytest.mark.parametrize("function", [norms, images, table, orders])
@pytest.mark.parametrize("threads", [1, 2])
def test_native_runs_compute_what_eager_computes(function, threads):
    x, weight, bias = (torch.randn(*shape, requires_grad=True) for shape in ((128, 16), (16,), (16,)))

    def step():
        for each in (x, weight, bias):
            each.grad = None
        result = function(x * 2, weight, bias)
        result.backward(torch.arange(float(result.numel())).reshape(result.shape))
        return result.detach(), [each.grad for each in (x, weight, bias)]

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        expected, compiled = step(), torch.compile(step)
        for _ in range(3):
            found = compiled()
        (variant,) = compiled.compiled.variants
        names = [each.name for each in variant.body.steps.values() if each.kernel is not None and not each.kernel.view]
        if LOOPS.enabled:
            assert not names
        assert found[0].equal(expected[0])
        assert all(a is b if b is None else a.equal(b) for a, b in zip(found[1], expected[1], strict=True))
    finally:
        torch.set_num_threads(before)


def convolutional(channels, groups=1):
    """Return a module of convolutions and poolings, and its input."""
    layers = [
        nn.Conv2d(3, channels, 3, padding=1, bias=False), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(channels, channels, 3, groups=groups, padding=1), nn.AvgPool2d(2), nn.ConvTranspose2d(channels, 10, 2, 2),
        nn.Conv2d(10, 9, 1),
    ]  # fmt: skip
    return nn.Sequential(*layers), torch.randn(16, 3, 32, 32)


class Last(nn.Module):
    """A recurrent network whose last output is used, after a product with a bias of middling size."""

    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.GRU(20, 48), nn.Linear(48, 60)

    def forward(self, x):
        """Return numbers for each sample."""
        return self.head(self.layer(x)[0][-1]) * 2


class Recurrent(nn.Module):
    """A recurrent network that returns its outputs and its last state."""

    def __init__(self, kind, **options):
        super().__init__()
        self.layer = getattr(nn, kind)(20, 48, **options)

    def forward(self, x):
        """Return the outputs, to which the last states are added."""
        output, state = self.layer(x)
        last = state[0] + state[1] if isinstance(state, tuple) else state
        return output + torch.cat([*last[-(output.shape[-1] // 48) :]], -1)


class Attention(nn.Module):
    """A transformer's attention."""

    def __init__(self, causal):
        super().__init__()
        self.causal, self.inner = causal, nn.Linear(48, 144, bias=False)

    def forward(self, x):
        """Return the values that the positions attend to."""
        batch, length, _ = x.shape
        q, k, v = self.inner(x).view(batch, length, 3, 3, 16).permute(2, 0, 3, 1, 4).unbind(0)
        found = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return found.transpose(1, 2).reshape(batch, length, 48)


MODULES = {
    "attention": lambda: (Attention(True), torch.randn(8, 40, 48)),
    "attention of one sample": lambda: (Attention(False), torch.randn(1, 300, 48)),
    "convolutions": lambda: convolutional(12),
    "depthwise": lambda: convolutional(12, groups=12),
    "means": lambda: (
        nn.Sequential(
            nn.Conv2d(3, 12, 3, bias=False), nn.BatchNorm2d(12), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
        ),
        torch.randn(16, 3, 32, 32),
    ),
    "last": lambda: (Last(), torch.randn(12, 32, 20)),
    "LSTM": lambda: (Recurrent("LSTM", num_layers=2), torch.randn(12, 32, 20)),
    "GRU": lambda: (Recurrent("GRU", bidirectional=True), torch.randn(12, 32, 20)),
    "RNN": lambda: (Recurrent("RNN", nonlinearity="relu", bias=False), torch.randn(12, 32, 20)),
}


OUTSIDE = ("remainder_by_number", "slice", "select", "reshape", "view_as", "add_")
"""What else Python calls: the gradients that the test gives, views of results, and a count before everything else."""


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("threads", [1, 2])
def test_modules_compute_in_native_runs_what_they_compute_eagerly(name, threads):
    torch.manual_seed(0)
    model, x = MODULES[name]()

    def step(x):
        model.zero_grad()
        result = model(x)
        result.backward(torch.arange(float(result.numel())).reshape(result.shape).remainder(7))
        return result.detach(), [each.grad for each in model.parameters()]

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        expected, compiled = step(x), torch.compile(step)
        for _ in range(3):
            found = compiled(x)
        (variant,) = compiled.compiled.variants
        if LOOPS.enabled:
            called = {each.name for each in variant.body.steps.values()}
            assert not [
                each
                for each in called
                if each.startswith(("conv", "max_pool", "avg_pool", "recurrent_layer", "blocked"))
            ]
        assert found[0].equal(expected[0])
        assert [a.equal(b) for a, b in zip(found[1], expected[1], strict=True)] == [True] * len(expected[1])
    finally:
        torch.set_num_threads(before)


def test_another_number_of_threads_sums_as_eager_does():
    layer, x, before = nn.Conv2d(3, 16, 3), torch.randn(24, 3, 20, 20), torch.get_num_threads()

    def step(x):
        result = layer(x)
        return torch.autograd.grad(result, [*layer.parameters()], result)

    compiled, found = torch.compile(step), {}
    try:
        for threads in (1, 2, 4, 1, 2, 4):
            torch.set_num_threads(threads)
            found[threads] = compiled(x)
        for threads, grads in found.items():
            torch.set_num_threads(threads)
            assert all(a.equal(b) for a, b in zip(grads, step(x), strict=True))
    finally:
        torch.set_num_threads(before)
    assert not found[1][0].equal(found[4][0]) or not LOOPS.enabled


@pytest.mark.parametrize("special", [float("inf"), float("nan")])
def test_infinities_in_the_gradient_of_a_weight_reach_the_places_they_belong_to(special):
    layer, x = nn.Conv2d(3, 4, 3, padding=1), torch.randn(2, 3, 9, 8)

    def step(x):
        result = layer(x * 2)
        return torch.autograd.grad(result, [*layer.parameters()], torch.ones_like(result))

    compiled = torch.compile(step)
    for _ in range(2):
        compiled(x)
    x[1, 2, 4, 7] = special
    for found, expected in zip(compiled(x), step(x), strict=True):
        assert found.equal(expected) or (found.isnan() == expected.isnan()).all()
        assert found.nan_to_num(0, 0, 0).equal(expected.nan_to_num(0, 0, 0))


def test_part_of_one_row_is_reversed():
    compiled = torch.compile(lambda x: torch.cat([x, x * 2], 1)[:, 4:].flip(1) + x)
    for call in range(3):
        x = torch.arange(4.0)[None] + call
        assert compiled(x).equal((x * 2).flip(1) + x)


def test_a_kernel_runs_in_python_where_a_condition_fails():
    x = torch.randn(6, 8) * 1e25  # the squares overflow
    step = torch.compile(lambda x, table, i: (F.layer_norm(x * 2, (8,)) * 3 + 1, F.embedding(i, table * 2) + 1))
    table, index = torch.randn(5, 8), torch.tensor([1, 4])
    expected = step(x, table, index)
    for _ in range(3):
        found = step(x, table, index)
    assert expected[0].isfinite().all() and found[0].equal(expected[0]) and found[1].equal(expected[1])
    assert step(x / 1e25, table, index)[0].equal(F.layer_norm(x / 1e25 * 2, (8,)) * 3 + 1)


def test_an_index_out_of_bounds_stops_a_run_where_eager_stops():
    x, table = torch.zeros(4), torch.randn(5, 4)

    def step(index):
        x.add_(1)
        found = F.embedding(index, table) * 2
        x.add_(10)
        return found

    compiled = torch.compile(step)
    for _ in range(2):
        compiled(torch.tensor([0, 4]))
    before = x.clone()
    with pytest.raises(IndexError, match="index out of range in self"):
        compiled(torch.tensor([0, 5]))
    assert x.equal(before + 1)
    assert compiled(torch.tensor([3])).equal(table[3:4] * 2) and x.equal(before + 12)


def test_numpy_on_outlines_becomes_loops_with_the_same_bits():
    x, states = torch.randn(8, 16, 4, 4), [(torch.zeros(16), torch.ones(16)) for _ in range(2)]

    def step(mean, variance):
        found = (
            F.batch_norm(x * 2, mean, variance, None, None, True, 0.3) + 1
        )  # its statistics are moved by NumPy's functions
        return F.batch_norm(found * 2, mean, variance, None, None, True) + mean.sum()

    compiled = torch.compile(step)
    for _ in range(3):
        assert compiled(*states[0]).equal(step(*states[1]))
        assert all(a.equal(b) for a, b in zip(*states, strict=True))
    if LOOPS.enabled:
        assert "move" not in [each.name for each in compiled.compiled.variants[0].body.steps.values()]


def test_outlines_have_no_elements():
    recorder = Recorder()
    x = recorder.outline((3, 4), numpy.float32)
    for reading in (
        lambda: numpy.add.reduce(x), lambda: x.sum(), lambda: x.item(0), lambda: x[0, 0], lambda: x.tolist(), lambda: [*x],
        lambda: numpy.sort(x), lambda: x[[0, 1]], lambda: bool(x[:1, 0]),
        lambda: numpy.where(x, x, x), lambda: numpy.add.at(x, 0, x),
        lambda: x.copy("F"),
    ):  # fmt: skip
        with pytest.raises(Unrecorded):
            recorder.record(reading)
    assert recorder.record(lambda: x.reshape(12)[4:].shape) == (8,) and not recorder.launches


@pytest.mark.skipif(not LOOPS.enabled, reason="nothing is recorded without compiled loops")
def test_new_arrays_are_outlines_only_in_a_recording():
    recorder = Recorder()
    first, second = recorder.record(lambda: (empty((2, 3), numpy.float32), zeros(5, numpy.int64)))
    assert first.shape == (2, 3) and second.strides == (8,) and len(recorder.launches) == 1
    assert type(empty(3, numpy.float32)) is numpy.ndarray and not zeros(2, numpy.float32).any()
