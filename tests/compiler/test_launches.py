"""Recordable kernels in native runs: the same bits as eager, the kernel itself where a condition fails, and what is refused."""

import numpy
import pytest

import adjoint as torch
from adjoint.codegen.acceleration import LOOPS
from adjoint.codegen.plans import empty, zeros
from adjoint.codegen.recording import Recorder, Unrecorded

F = torch.nn.functional

pytestmark = pytest.mark.skipif(not LOOPS.available, reason="there are no compiled loops")


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


ROWS = torch.tensor([[1, 3, 3], [0, 9, 127]])


@pytest.mark.parametrize("function", [norms, images, table])
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
        lambda: numpy.sort(x), lambda: x.__setitem__(0, "a"), lambda: x[[0, 1]], lambda: bool(x[:1, 0]),
        lambda: numpy.where(x, x, x), lambda: x + 1j, lambda: x[:, :2].fill(0), lambda: numpy.add.at(x, 0, x),
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
