"""The growth of the peak resident memory in single operators, without operands. Each operator runs in a new process (Linux)."""

import ctypes
import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.__main__ import load_library
from benchmarks.cases import Timed
from benchmarks.memory import resident
from benchmarks.survey import DIFFERENTIABLE, OTHERS, expressions, forward, operands, with_backward

TIMES = 16
"""The factor by which the operands are larger than the operands of the survey, so that each has about 8 MB."""

TOGETHER = 30
"""The number of cases that copies of one process measure."""

RANDOM = """
torch.multinomial(p, 1) | torch.multinomial(p, 9, True) | torch.multinomial(p[:, :64], 9) | torch.bernoulli(x.sigmoid())
torch.poisson(p) | torch.normal(x, p) | torch.binomial(p.round(), b * 0.5) | torch.rand(x.shape) | torch.randn(x.shape)
torch.randint(9, x.shape) | torch.randperm(x.numel()) | x.clone().exponential_() | x.clone().cauchy_() | x.clone().log_normal_()
x.clone().geometric_(0.5) | x.clone().bernoulli_(0.5) | x.clone().uniform_(2, 3) | F.dropout(x) | F.gumbel_softmax(x)
"""
"""Expressions that draw random numbers."""

EXPANDED = """
x.gather(0, (t % 128)[:, None].expand(-1, 1024)) | x.scatter(0, (t % 128)[:, None].expand(-1, 1024), y)
x.scatter_add(0, (t % 128)[:, None].expand(-1, 1024), y) | x.scatter_reduce(0, (t % 128)[:, None].expand(-1, 1024), y, "mean")
c.gather(1, (k[:16] % 16)[:, None, None].expand(len(c), -1, 32, 32))
c.scatter_add(1, (k[:16] % 16)[:, None, None].expand(len(c), -1, 32, 32), c) | x.take_along_dim((t % 128)[:, None], 0)
x + v[:, None].expand(-1, len(x)).mT | x[:, :1].expand(-1, 1024) * x | x[:, :1].expand(-1, 1024).sum(0)
x[:1].expand(len(x), -1).softmax(1)
"""
"""Expressions with expanded operands, in which many elements share one place in memory."""


def cases() -> Iterator[tuple[str, Callable[[dict[str, Any]], Timed]]]:
    """Return the name of each case, with a function that prepares the call to measure."""
    for each in expressions(DIFFERENTIABLE + EXPANDED.lstrip()):
        yield each, partial(forward, each)
        yield f"{each}, f+b", partial(with_backward, each)
    for each in expressions(OTHERS + RANDOM.lstrip()):
        yield each, partial(forward, each)


def growths(module: str, names: list[str]) -> dict[str, int]:
    """Return the growth of the peak in bytes for each of the named cases, without the memory of the operands."""
    finished = subprocess.run(
        [sys.executable, "-m", "benchmarks.operator_memory", module],
        input=json.dumps(names),
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, int] = json.loads(finished.stdout)
    return found


def _in_a_child(work: Callable[[], int]) -> int:
    """Return the result of `work` in a forked copy of this process, or -1 if `work` fails."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writing, str(work()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return int(text or -1)


def _growth(prepare: Callable[[dict[str, Any]], Timed], names: dict[str, Any]) -> int:
    """Return the growth of this process in a second call, after the first call has compiled kernels and loaded libraries."""
    step = prepare(names)
    step()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    kept = step()
    most = resident("VmHWM")
    del kept
    return most - before


def _measure(module: str, wanted: set[str]) -> dict[str, int]:
    """Run the measurements of `growths` with one thread, because a forked process has only one thread."""
    library = load_library(module)
    library.set_num_threads(1)
    library.manual_seed(0)
    names = operands(library, TIMES)
    return {name: _in_a_child(partial(_growth, prepare, names)) for name, prepare in cases() if name in wanted}


if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1], set(json.load(sys.stdin)))))
