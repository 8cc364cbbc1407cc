"""Compiled kernels read and write no memory outside of their arrays. Each array begins or ends at a protected page."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import adjoint as torch
import adjoint.nn.functional as F
from adjoint.codegen.acceleration import LOOPS
from adjoint.codegen.llvm import launch
from adjoint.kernels.runtime import parallel
from tests import shared_kernels
from tests.guarded_memory import guarded_arrays

CASES: dict[str, Callable[[torch.dtype, int], Any]] = {}
"""For each family of kernels, a function of a type and a size. The size is usually not a multiple of the vector size."""
SIZES = 1, 7, 17, 70


def case(function: Callable[[torch.dtype, int], Any]) -> Callable[[torch.dtype, int], Any]:
    CASES[function.__name__] = function
    return function


def random(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(*shape, dtype=dtype).requires_grad_()


@case
def convolution(dtype: torch.dtype, n: int) -> Iterator[torch.Tensor]:
    for groups, stride, padding, kernel in ((1, 1, 0, 1), (1, 1, 1, 3), (1, 2, 1, 3), (2, 1, 2, 5), (4, 1, 1, 3)):
        x, weight = random(2, 4, 9, n + 3, dtype=dtype), random(4, 4 // groups, 3, kernel, dtype=dtype)
        if n + 3 + 2 * padding >= kernel:
            yield F.conv2d(x, weight, random(4, dtype=dtype), stride, (1, padding), groups=groups)
    yield F.conv1d(random(2, n, 12, dtype=dtype), random(n + 1, n, 3, dtype=dtype), padding=1)
    yield F.conv_transpose2d(random(1, 3, 5, n, dtype=dtype), random(3, n, 3, 3, dtype=dtype), stride=2, padding=1)


@case
def recurrence(dtype: torch.dtype, n: int) -> Iterator[torch.Tensor]:
    for mode, batch in product((torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN), (1, 5)):
        yield mode(3, n, bidirectional=True, dtype=dtype)(random(4, batch, 3, dtype=dtype))[0]
    yield torch.nn.RNN(n, n, nonlinearity="relu", dtype=dtype)(random(2, n, n, dtype=dtype))[0]


@case
def sampling(dtype: torch.dtype, n: int) -> Iterator[torch.Tensor]:
    for mode in ("bilinear", "nearest", "bicubic"):
        images, grid = random(1, 2, 3, n, dtype=dtype), random(1, n, 3, 2, dtype=dtype)
        yield F.grid_sample(images, grid, mode, "reflection", align_corners=False)


@case
def attention(dtype: torch.dtype, n: int) -> Iterator[torch.Tensor]:
    for width, keys, causal in ((n, 5, False), (16, n, False), (7, n, True)):
        q, k, v = (random(2, 2, size, width, dtype=dtype) for size in (n, keys, keys))
        yield F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        mask = torch.randn(n, keys, dtype=dtype)
        yield F.scaled_dot_product_attention(q, k, v, mask, dropout_p=0.25)


@case
def pooling(dtype: torch.dtype, n: int) -> Iterator[torch.Tensor]:
    x = random(2, 3, 7, n + 4, dtype=dtype)
    for kernel, stride, padding in ((2, 2, 0), (3, 1, 1), (3, 2, 1)):
        yield F.max_pool2d(x, kernel, stride, padding)
        yield F.avg_pool2d(x, kernel, stride, padding)
    yield F.adaptive_avg_pool2d(x, (3, 4))


@case
def padding(dtype: torch.dtype, n: int) -> Iterator[torch.Tensor]:
    x = random(2, 3, n + 3, n + 3, dtype=dtype)
    for mode in ("constant", "reflect", "replicate", "circular"):
        yield F.pad(x, (2, 1, 1, 2), mode)


@case
def reductions(dtype: torch.dtype, n: int) -> Iterator[torch.Tensor]:
    x = random(5, n, 3, dtype=dtype)
    for each in (x, x.transpose(0, 1), x[:, ::2]):
        for dim in ((0,), (1,), (2,), (0, 2), (0, 1, 2)):
            yield from (each.sum(dim), each.mean(dim), each.amax(dim), each.var(dim))
        yield from (each.max(1).values, each.prod(1), each.cumsum(1), each.logsumexp(1), each.norm())


@case
def rows(dtype: torch.dtype, n: int) -> Iterator[torch.Tensor]:
    x = random(5, n, dtype=dtype)
    yield from (F.softmax(x, 1), F.log_softmax(x, 1), F.layer_norm(x, (n,)), F.rms_norm(x, (n,)))
    yield F.cross_entropy(x, torch.arange(5) % n)
    yield F.batch_norm(x, None, None, training=True)
    yield F.embedding(torch.arange(9) % 5, x)
    yield from (F.gelu(x), F.silu(x), torch.exp(x) * x.t().contiguous().t() + x[:1], F.dropout(x, 0.5))


@case
def products(dtype: torch.dtype, n: int) -> Iterator[torch.Tensor]:
    for rows, columns in ((1, 5), (5, n), (n, 9), (n, n)):
        a, b = random(rows, n, dtype=dtype), random(n, columns, dtype=dtype)
        yield from (a @ b, F.linear(a, b.t(), random(columns, dtype=dtype)), b.t() @ a.t())
        yield torch.bmm(a.expand(3, rows, n), random(3, n, columns, dtype=dtype))


@case
def transforms(dtype: torch.dtype, n: int) -> Iterator[torch.Tensor]:
    x = random(3, n + 2, dtype=dtype)
    yield torch.fft.rfft(x).abs()
    yield from (torch.fft.fft(x, dim=0).abs(), torch.fft.irfft(torch.fft.rfft(x), n=n + 2), torch.fft.fft2(x).abs())


@case
def movement(dtype: torch.dtype, n: int) -> Iterator[torch.Tensor]:
    x = random(3, n, 5, dtype=dtype)
    yield from (x.transpose(0, 2).contiguous(), torch.cat([x, x], 1), x.flip(1), x.roll(1, 1), x.tril())
    yield from (x.sort(1).values, x.topk(1, 1).values, x.repeat(2, 1, 2), x[:, torch.arange(n - 1, -1, -1)])
    index = torch.arange(n).reshape(1, n, 1).expand(3, n, 5)
    yield from (x.gather(1, index), torch.zeros(3, n, 5, dtype=dtype).scatter_add(1, index, x), x[x > 0])
    yield from (x.index_add(1, torch.arange(n) // 2, x), x.sum() + torch.arange(5 * n) % 7)


def run_guarded() -> None:
    """Compute all cases on two threads, with new scratch memory.

    Arrays first end at a protected page, and then begin at a protected page.
    """
    for folder in sys.argv[1:]:
        shared_kernels.share(Path(folder))
    LOOPS.every_size = True
    launch.PARALLEL_BYTES = 1
    parallel.LINE = 4  # scratch arrays also begin or end at a protected page
    torch.set_num_threads(2)
    for at_end in (True, False):  # one process runs all cases, and compiles each kernel once
        with guarded_arrays(at_end=at_end):
            for (name, function), dtype, n in product(CASES.items(), (torch.float32, torch.float64), SIZES):
                print(name, dtype, n, "end" if at_end else "begin", flush=True)
                parallel._local.__dict__.clear()
                for result in function(dtype, n):
                    parallel._local.__dict__.clear()
                    result.sum().backward(retain_graph=True)
    assert not LOOPS.failures, LOOPS.failures
    sys.stdout.flush()
    os._exit(0)  # remaining arrays cannot be freed at the interpreter's end


@pytest.mark.thorough
@pytest.mark.skipif(find_spec("llvmlite") is None or sys.platform != "linux", reason="needs llvmlite and Linux")
def test_nothing_outside_of_arrays_is_read_or_written(pytestconfig: pytest.Config) -> None:
    root = str(Path(__file__).parents[3])
    folder = shared_kernels.folder_of(pytestconfig)
    run = subprocess.run(
        [sys.executable, "-X", "faulthandler", __file__, *([str(folder)] if folder else [])],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": root}, check=False,
    )  # fmt: skip
    last = run.stdout.splitlines()[-1:]
    assert run.returncode == 0, f"in {last}: {run.stderr[-4000:]}"


if __name__ == "__main__":
    run_guarded()
