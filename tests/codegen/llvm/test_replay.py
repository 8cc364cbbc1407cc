"""Kernels replay their recordings in later calls, with the results, bits and errors of the calls before."""

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy
import pytest

import adjoint as torch
from adjoint._runtime.first_use import import_late
from adjoint.codegen import plans
from adjoint.codegen.acceleration import LOOPS
from adjoint.kernels.nn.softmax import logsumexp
from adjoint.nn import functional as F

pytestmark = pytest.mark.usefixtures("replayed_soon")
CALLS = 2
NUMBERS = itertools.count(2)


@pytest.fixture
def replayed_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Record after `CALLS` calls. No plan of an earlier test has this signature."""
    monkeypatch.setattr(plans, "CALLS", CALLS)
    monkeypatch.setattr(LOOPS, "_enabled", LOOPS.available and next(NUMBERS))


@pytest.fixture
def replays(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the kernels that have been recorded, with a minus sign if they are not replayed."""
    found: list[str] = []
    module = import_late("adjoint.codegen.llvm.replay")
    original = module.replay_of

    def replay_of(plain: Any, record: Any, arguments: Any) -> Any:
        run = original(plain, record, arguments)
        found.append(("-" if run is plain else "") + getattr(run, "__name__", ""))
        return run

    monkeypatch.setattr(module, "replay_of", replay_of)
    return found


def values(*shape: int, seed: int = 0, dtype: Any = numpy.float32) -> Any:
    """Return normally distributed numbers."""
    return torch.tensor(numpy.random.default_rng(seed).normal(size=shape).astype(dtype))


places = torch.tensor(numpy.random.default_rng(1).integers(0, 7, (7, 11)))
rows = torch.tensor([0, 6, 3, 3])

CASES: dict[str, Callable[..., Any]] = {
    "conv1d": lambda x, w: F.conv1d(x, w[:, :, :, 0]),
    "batch_norm": lambda x, w: F.batch_norm(x, None, None, training=True),
    "layer_norm": lambda x, w: F.layer_norm(x, (11,)),
    "group_norm": lambda x, w: F.group_norm(x[None], 7),
    "logsumexp": lambda x, w: x.logsumexp(1),
    "pad": lambda x, w: F.pad(x, (1, 2)),
    "pad by zero": lambda x, w: F.pad(x, (1, 2), value=0.0),
    "pad by minus zero": lambda x, w: F.pad(x, (1, 2), value=-0.0),
    "crop": lambda x, w: F.pad(x, (-1, -2)),
    "roll": lambda x, w: x.roll(2, 0),
    "flip": lambda x, w: x.flip(0),
    "index_add": lambda x, w: x.index_add(0, rows, x[:4]),
    "index_add of nothing": lambda x, w: x.index_add(0, rows, x[:4], alpha=-0.0),
    "scatter_add": lambda x, w: x.scatter_add(0, places, x),
    "scatter": lambda x, w: x.scatter(0, places, x),
    "scatter of a number": lambda x, w: x.scatter(0, places, 1.5),
    "scatter of zero": lambda x, w: x.scatter(0, places, 0.0),
    "scatter of minus zero": lambda x, w: x.scatter(0, places, -0.0),
    "scatter in place": lambda x, w: (x * 1).scatter_(0, places, x.detach() + 1),
    "scatter of a number in place": lambda x, w: (x * 1).scatter_(0, places, 2.5),
    "scatter at a narrow index": lambda x, w: x.scatter(0, places[:4, :5], x),
    "scatter_add at a narrow index": lambda x, w: x.scatter_add(1, places[:4, :5], x),
    "scatter_reduce": lambda x, w: x.scatter_reduce(0, places, x.detach(), "sum", include_self=False),
    "batch_norm by running statistics": lambda x, w: F.batch_norm(x, x.detach()[0], x.detach()[1].abs()),
    "gather": lambda x, w: x.gather(0, places),
    "gather at a narrow index": lambda x, w: x.gather(1, places[:4, :5]),
    "sort": lambda x, w: x.sort(1)[0],
    "sort of columns": lambda x, w: x.sort(0, descending=True)[0],
    "topk": lambda x, w: x.topk(3)[0],
    "topk of columns": lambda x, w: x.topk(2, 0, largest=False)[0],
    "index_select": lambda x, w: x.index_select(0, rows),
    "embedding": lambda x, w: F.embedding(places, x),
    "cross_entropy": lambda x, w: F.cross_entropy(x, rows[:1].expand(7)),
    "multi_margin_loss": lambda x, w: F.multi_margin_loss(x, places[0, :7]),
    "multi_margin_loss of rows": lambda x, w: F.multi_margin_loss(
        x, places[0, :7], 2, weight=values(11, seed=3).to(x.dtype), reduction="none"
    ),
    "adaptive_avg_pool1d": lambda x, w: F.adaptive_avg_pool1d(x, 3),
    "adaptive_max_pool1d": lambda x, w: F.adaptive_max_pool1d(x, 3),
}
LAYOUTS: dict[str, Callable[..., Any]] = {
    "row-major": lambda x: x,
    "transposed": lambda x: x.t().contiguous().t(),
    "sliced": lambda x: torch.cat([x, x], 1)[:, ::2],
    "expanded": lambda x: x[:1].expand(7, 11),
}


def run(name: str, x: Any) -> list[Any]:
    """Return a result and the gradients."""
    x = x.detach().requires_grad_()
    if name == "conv1d":
        weight = values(3, 7, 3, 1, seed=5).to(x.dtype).requires_grad_()
        result = CASES[name](x[None], weight)
    else:
        result = CASES[name](x, None)
    result.backward(torch.ones_like(result) * 0.5)
    return [each for each in (result.detach(), x.grad) if each is not None]


@pytest.mark.parametrize("dtype", [numpy.float32, numpy.float64])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", CASES)
def test_replays_give_the_bits_of_the_first_calls(name: str, layout: str, dtype: Any) -> None:
    x = LAYOUTS[layout](values(7, 11, dtype=dtype))
    others = [LAYOUTS[layout](values(7, 11, seed=seed, dtype=dtype)) for seed in range(1, 4)]
    first = run(name, x)
    for other in others * CALLS:
        run(name, other)
    for before, after in zip(first, run(name, x), strict=True):
        assert after.numpy().tobytes() == before.numpy().tobytes()
        assert (after.shape, after.dtype, after.stride()) == (before.shape, before.dtype, before.stride())


OTHERS = {"adaptive_avg_pool1d", "adaptive_max_pool1d", "scatter_reduce"} | {each for each in CASES if "narrow" in each}
"""Kernels that are one native call anyway, those whose loops compute small arrays after a thousand calls of any signature, and
calls whose index is no contiguous array."""


@pytest.mark.skipif(not LOOPS.available, reason="there is no compiled code")
@pytest.mark.parametrize("name", sorted(CASES.keys() - OTHERS))
def test_kernels_are_replayed(name: str, replays: list[str]) -> None:
    for _ in range(CALLS + 1):
        run(name, values(7, 11))
    assert any(not each.startswith("-") for each in replays), replays


def test_zeros_of_both_signs_are_told_apart() -> None:
    x = values(7, 11)
    for _ in range(CALLS + 2):
        for zero in (0.0, -0.0):
            written = x.scatter(0, places, zero).gather(0, places)
            assert torch.equal(written.signbit(), torch.full_like(places, str(zero) == "-0.0", dtype=torch.bool))


def test_running_statistics_move_by_the_same_bits() -> None:
    x, found = values(7, 11), set()
    for _ in range(CALLS + 2):
        mean, variance = torch.zeros(11), torch.ones(11)
        F.batch_norm(x, mean, variance, training=True, momentum=0.3)
        found.add(mean.numpy().tobytes() + variance.numpy().tobytes())
    assert len(found) == 1


@pytest.mark.parametrize("change", [torch.Tensor.scatter_, torch.Tensor.scatter_add_, torch.Tensor.index_add_])
def test_an_index_out_of_bounds_is_an_error_in_a_replay_that_changes_nothing(change: Any) -> None:
    x, index = values(5, 13), torch.tensor([1, 2, 3, 4, 0])
    source = values(5, 13, seed=1)
    wrong = torch.tensor([1, 2, 5, 4, 0])
    if change is not torch.Tensor.index_add_:
        index, wrong = index[:, None].expand(5, 13).clone(), wrong[:, None].expand(5, 13).clone()
    for _ in range(CALLS + 2):
        change(x.clone(), 0, index, source)
        changed = x.clone()
        with pytest.raises(RuntimeError, match="index 5 is out of bounds for dimension 0 with size 5"):
            change(changed, 0, wrong, source)
        assert torch.equal(changed, x)


def test_a_target_out_of_range_is_an_error_in_a_replay() -> None:
    x = values(7, 11)
    for _ in range(CALLS + 2):
        F.multi_margin_loss(x, places[0, :7])
        with pytest.raises(RuntimeError, match="target out of range"):
            F.multi_margin_loss(x, places[0, :7] + 5)


def test_numbers_of_numpy_and_subclasses_are_not_replayed() -> None:
    class Own(numpy.ndarray):
        pass

    x = numpy.random.default_rng(3).normal(size=(3, 19))
    found = [logsumexp(x, (1,), False) for _ in range(CALLS + 2)]
    own = logsumexp(x.view(Own), (1,), False)
    assert all((each == found[0]).all() for each in [*found, own])


def test_a_replay_serves_several_threads_at_once() -> None:
    inputs = [values(7, 23, seed=seed) for seed in range(8)]
    expected = [F.layer_norm(x, (23,)) for x in inputs]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(20):
            found = [*pool.map(lambda x: F.layer_norm(x, (23,)), inputs)]
            assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))
