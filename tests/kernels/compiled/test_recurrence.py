"""A recurrent layer as one operator agrees with single steps. Compiled loops agree with NumPy."""

from __future__ import annotations

import numpy
import pytest

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

import adjoint as torch
from adjoint import nn
from adjoint.codegen.acceleration import LOOPS
from adjoint.codegen.llvm.amx import TILES
from adjoint.codegen.llvm.host import HOST
from adjoint.kernels.compiled.nn import recurrence as compiled
from adjoint.kernels.nn import recurrence as kernels
from adjoint.kernels.runtime import parallel
from adjoint.nn.functional import recurrent

needs_tiles = pytest.mark.skipif(not TILES.usable, reason="this processor has no tile registers")

TOLERANCE = {"f4": 3e-5, "f8": 1e-12}


@pytest.fixture
def numpy_alone(monkeypatch):
    monkeypatch.setattr(LOOPS, "_enabled", False)


def _same(mode, sizes, dtype, backwards, with_output=True):
    steps, batch, features = sizes
    rng = numpy.random.default_rng(0)

    def draw(*shape):
        return rng.standard_normal(shape).astype(dtype)

    columns = kernels.GATES[mode] * features
    hidden, cell = draw(batch, features), draw(batch, features) if mode == "LSTM" else None
    weight, bias = (
        draw(columns, features) / numpy.sqrt(features).astype(dtype),
        None if backwards else draw(columns),
    )
    projected = draw(batch, steps, columns).swapaxes(0, 1)
    arguments = (projected, hidden, cell, weight, bias, mode, backwards)
    expected = kernels.recurrent_layer(*arguments)
    found = compiled.recurrent_layer(*arguments)
    output, _, _, gates, more = expected
    for one, other in zip(compiled.recurrent_layer(*arguments, False)[:3], found[:3], strict=True):
        assert (one == other).all()
    grads = (draw(steps, batch, features) if with_output else None, draw(batch, features), cell)
    given = (gates if gates.size else output, *grads, more, output, hidden, cell, weight, mode, backwards)
    expected += kernels.through_time(*given)
    found += compiled.through_time(*given)
    for one, other in zip(found, expected, strict=True):
        if other is None:
            assert one is None
        else:
            assert one.dtype == other.dtype
            numpy.testing.assert_allclose(one, other, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.usefixtures("numpy_alone")
@pytest.mark.parametrize("mode", list(kernels.GATES))
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.long_cases
def test_compiled_layers(mode, backwards, dtype):
    for sizes in ((1, 1, 1), (3, 2, 5), (4, 7, 16), (5, 9, 33), (3, 32, 70)):
        _same(mode, sizes, dtype, backwards, with_output=sizes[0] != 4)


@needs_tiles
@pytest.mark.parametrize("mode", list(kernels.GATES))
@pytest.mark.parametrize("backwards", [False, True])
def test_compiled_layers_by_pieces(mode, backwards, monkeypatch):
    monkeypatch.setattr(LOOPS, "every_size", True)
    monkeypatch.setattr(LOOPS, "_enabled", False)
    for sizes in ((1, 1, 1), (3, 2, 5), (4, 17, 16), (5, 9, 33), (3, 32, 70), (6, 33, 100)):
        _same(mode, sizes, "f4", backwards, with_output=sizes[0] != 4)


@needs_tiles
@pytest.mark.usefixtures("numpy_alone")
@pytest.mark.parametrize("number", [1e-40, 1e-30, 1e38, numpy.inf, numpy.nan])
@pytest.mark.parametrize("place", ["hidden", "weight", "grad"])
def test_layers_of_numbers_whose_pieces_would_not_do(place, number, monkeypatch):
    rng = numpy.random.default_rng(0)
    arrays = {"projected": (4, 40, 256), "hidden": (40, 64), "cell": (40, 64), "weight": (256, 64), "grad": (4, 40, 64)}
    arrays = {name: rng.standard_normal(shape).astype("f4") / 8 for name, shape in arrays.items()}
    arrays[place][..., 1, :] = number
    projected, hidden, cell, weight, grad = arrays.values()

    def run():
        forward = compiled.recurrent_layer(projected, hidden, cell, weight, None, "LSTM", False)
        output, _, _, gates, more = forward
        given = (gates, grad, None, None, more, output, hidden, cell, weight, "LSTM", False)
        return [*forward, *compiled.through_time(*given)]

    found = run()
    monkeypatch.setattr(TILES, "usable", False)
    for one, other in zip(found, run(), strict=True):
        largest = numpy.abs(other[numpy.isfinite(other)]).max(initial=1)
        numpy.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6 * largest)


@pytest.mark.usefixtures("numpy_alone")
@pytest.mark.parametrize("vector_bytes", [16, 32])
def test_narrower_vectors(monkeypatch, vector_bytes):
    monkeypatch.setitem(HOST.__dict__, "vector_bytes", vector_bytes)
    _same("LSTM", (3, 5, 21), "f4", False)
    _same("GRU", (3, 5, 21), "f4", True)


@pytest.mark.usefixtures("numpy_alone")
def test_threads_share_the_rows_of_a_batch(monkeypatch):
    monkeypatch.setattr(parallel, "num_threads", 3)
    _same("LSTM", (4, 50, 64), "f8", False)


LAYERS = [
    (nn.RNN, {}),
    (nn.RNN, {"nonlinearity": "relu", "bidirectional": True}),
    (nn.GRU, {"num_layers": 2}),
    (nn.GRU, {"bias": False, "batch_first": True}),
    (nn.LSTM, {"num_layers": 2, "bidirectional": True}),
    (nn.LSTM, {"batch_first": True}),
]


@pytest.mark.parametrize(("kind", "options"), LAYERS)
@pytest.mark.parametrize("with_state", [False, True])
def test_one_operator_and_single_steps_agree_to_the_second_derivative(monkeypatch, kind, options, with_state):
    torch.manual_seed(0)
    layer = kind(3, 5, **options).double()
    input = torch.randn(4, 4, 3, dtype=torch.float64, requires_grad=True)
    state = None
    if with_state:
        count = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
        parts = [torch.randn(count, 4, 5, dtype=torch.float64, requires_grad=True) for _ in range(2)]
        state = tuple(parts) if kind is nn.LSTM else parts[0]

    def run():
        output, last = layer(input, state)
        last = last if kind is nn.LSTM else (last,)
        leaves = [input, *layer.parameters(), *([] if state is None else state if kind is nn.LSTM else [state])]
        loss = (output**3).sum() + sum((each**2).sum() for each in last)
        first = torch.autograd.grad(loss, leaves, create_graph=True)
        return [output, *last, *first, *torch.autograd.grad(sum((each**2).sum() for each in first), leaves)]

    found = run()
    monkeypatch.setattr(recurrent.operators, "runs_as_one_layer", lambda *given: False)
    for one, other in zip(found, run(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


def test_transforms_take_single_steps():
    layer = nn.LSTM(3, 5).double()
    input = torch.randn(2, 4, 1, 3, dtype=torch.float64)
    each = torch.stack([layer(part)[0] for part in input])
    torch.testing.assert_close(torch.func.vmap(lambda part: layer(part)[0])(input), each)
    _, tangent = torch.func.jvp(lambda part: layer(part)[0], (input[0],), (torch.ones_like(input[0]),))
    step = 1e-6
    moved = [layer(input[0] + sign * step)[0] for sign in (1, -1)]
    torch.testing.assert_close(tangent, (moved[0] - moved[1]) / (2 * step), rtol=1e-6, atol=1e-8)


def test_last_states_alone_have_gradients():
    layer = nn.LSTM(3, 5)
    _, (hidden, cell) = layer(torch.randn(4, 2, 3))
    (hidden.sum() + cell.sum()).backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in layer.parameters())
