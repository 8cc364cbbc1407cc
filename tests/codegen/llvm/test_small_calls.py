"""Small calls give the same bits in NumPy and in the compiled loops that take over after many calls."""

import pytest

import adjoint as torch

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

from adjoint.codegen.acceleration import LOOPS

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.int64]
ENDS = [(0, 1), (-3, 7.5), (2.5, 2.5), (1e-30, 1e10), (0.1, -1000), (-1e-3, 1e-3), (5, 1)]


def ranges(dtype):
    for start, end in ENDS:
        for steps in (1, 2, 3, 10, 50, 333):
            yield torch.linspace(start, end, steps, dtype=dtype)
            if abs(end) < 100:
                yield torch.logspace(start, end, steps, dtype=dtype)
        if abs(end) < 100 and int(end - start):
            for step in (1, 1.25) if dtype is torch.int64 else (0.1, 0.5, 1, 3):
                yield torch.arange(start, end, step if end > start else -step, dtype=dtype)


def drawn(dtype):
    torch.manual_seed(0)
    for size in (1, 2, 3, 10, 15, 16, 17, 40):
        if dtype is torch.int64:
            yield torch.randint(-5, 100, (size,))
            yield torch.randperm(size)
        else:
            yield torch.randn(size, dtype=dtype)
            yield torch.empty(size, dtype=dtype).normal_(2.0, 3.0)
            yield torch.empty(size, dtype=dtype).exponential_(0.7)
            yield torch.rand(size, dtype=dtype)


def selected(dtype):
    generator = torch.Generator().manual_seed(1)
    for shape in ((7,), (3, 5), (16, 32), (4, 100), (2, 500), (900,)):
        x = (torch.randn(shape, generator=generator) * 3).round().to(dtype)
        if dtype is not torch.int64:
            x.view(-1)[::5] = -0.0
            x.view(-1)[::7] = torch.nan
        yield from (*x.topk(2), *x.topk(1, largest=False), *x.sort(0), *x.sort(descending=True))
        yield from (*x.median(0), *x.median(-1), *x.kthvalue(2), x.median(), x.unique())


def placed(dtype):
    x, index = torch.arange(12).view(3, 4).to(dtype), torch.tensor([[0, 2, 1], [2, 2, 0]])
    for dim in (0, 1, -1):
        yield x.gather(dim, index)
        yield x.scatter(dim, index, 7)
        yield x.scatter(dim, index, x[:2, :3] * 2)
        yield x.scatter_add(dim, index, x * 3)
        yield x.t().scatter_add(dim, index.t(), x.t())
        yield x.index_add(dim, index[0], x[:, :3] if dim else x)
        yield x.take_along_dim(torch.tensor([[1, 0, -1, 2]] if dim == 0 else [[1], [0], [-1]]), dim)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("calls", [ranges, drawn, selected, placed])
def test_bits(calls, dtype, monkeypatch):
    found = []
    for every_size in (False, True):
        monkeypatch.setattr(LOOPS, "every_size", every_size)
        found.append(
            [tensor.view(torch.uint8).numpy().tobytes() if tensor.dim() else tensor.tolist() for tensor in calls(dtype)]
        )
    assert len(found[0]) > 5
    for position, (one, other) in enumerate(zip(*found, strict=True)):
        assert one == other or (one != one and other != other), position
    assert not LOOPS.failures
