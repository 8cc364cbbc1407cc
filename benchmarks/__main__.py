"""`python -m benchmarks`: time adjoint and PyTorch alternately in one run.

python -m benchmarks                                  every group
python -m benchmarks --groups overhead,startup        some groups
python -m benchmarks --quick                          fast, with noisier figures
python -m benchmarks --groups kernels --only softmax  cases whose names match a regular expression
python -m benchmarks --groups shapes                  calls on many shapes: lists those above 1.5 of PyTorch's time
python -m benchmarks --json results.json              the figures also as data
"""

import argparse
import json
import os
import platform
import re
import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median, quantiles
from types import ModuleType
from typing import Any

THREADS = 2
GROUPS = (
    "startup",
    "overhead",
    "everyday",
    "kernels",
    "models",
    "compiled",
    "optimizers",
    "random_numbers",
    "survey",
    "shapes",
    "loading",
    "memory",
    "operator_memory",
    "distributed",
)
WIDTH = 62


def load_libraries() -> tuple[ModuleType, ModuleType]:
    """Load both libraries. The function loads adjoint first, because adjoint may set environment variables for NumPy's BLAS."""
    return load_library("adjoint"), load_library("torch")


def load_library(name: str) -> ModuleType:
    """Import `adjoint` or `torch`, and let the library use two threads.

    BLAS reads the environment only once, so the function sets variables before it imports NumPy. It removes variables
    that select OpenBLAS's kernels for another processor, because the ratios would otherwise differ from the ratios on users'
    machines.
    """
    for variable in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        os.environ.pop(variable, None)
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(THREADS)
    module = import_module(name)
    module.set_num_threads(THREADS)
    return module


def machine() -> dict[str, str]:
    """Return a description of the machine that runs the measurements."""
    import numpy
    import torch

    import adjoint
    from adjoint.inspect.installation import core_type

    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "threads": str(THREADS),
        "load": f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown",
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "BLAS core": core_type() or "unknown",
        "compiled kernels": adjoint.backends.llvm.describe(),
        "adjoint": adjoint.__version__,
        "torch": torch.__version__,
    }


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def run_startup(quick: bool, only: re.Pattern[str]) -> list[dict[str, Any]]:
    """Print and return import times."""
    from benchmarks import startup

    times = startup.import_times(rounds=5 if quick else 15)
    print(f"\n{'startup':<{WIDTH}}{'median':>10}  quartiles")
    for module, values in times.items():
        low, _, high = quantiles(values, n=4)
        print(f"{'import ' + module:<{WIDTH}}{median(values) * 1e3:>7.0f} ms  {low * 1e3:.0f} to {high * 1e3:.0f} ms")
    ratios = startup.ratios(times)
    for module, ratio in ratios.items():
        print(f"{f'import adjoint / import {module}':<{WIDTH}}{ratio:>10.2f}")
    return [
        {"group": "startup", "case": f"import {module}", "seconds": median(values)} for module, values in times.items()
    ]


def run_memory(quick: bool, only: re.Pattern[str]) -> list[dict[str, Any]]:
    """Print and return the peak memory of training steps of the models whose names match `only`."""
    from benchmarks import memory
    from benchmarks.models import GROUP
    from benchmarks.runner import geometric_mean

    heading = "memory: peak of the process"
    print(f"\n{heading:<{WIDTH}}{'adjoint':>11}{'torch':>11}{'ratio':>7}  above the imported library")
    results = []
    for case in GROUP.cases:
        if not only.search(case.name):
            continue
        found = memory.peaks(case.name, rounds=1 if quick else 3)
        ours, theirs = found["adjoint"], found["torch"]
        ratio = ours.process / theirs.process
        results.append(
            {"group": "memory", "case": case.name, "adjoint": vars(ours), "torch": vars(theirs), "ratio": ratio}
        )
        print(
            f"{case.name:<{WIDTH}}{ours.process / 1e6:>8.0f} MB{theirs.process / 1e6:>8.0f} MB{ratio:>7.2f}"
            f"  {ours.training / 1e6:.0f} MB, {theirs.training / 1e6:.0f} MB",
            flush=True,
        )
    if results:
        mean = geometric_mean([result["ratio"] for result in results])
        print(f"{f'geometric mean of {len(results)}':<{WIDTH + 22}}{mean:>7.2f}")
    return results


def run_operator_memory(quick: bool, only: re.Pattern[str]) -> list[dict[str, Any]]:
    """Print and return the growth of peak memory in single operators whose names match `only`."""
    from benchmarks import operator_memory

    names = [name for name, _ in operator_memory.cases() if only.search(name)]
    heading = "operator memory: growth of the peak"
    print(f"\n{heading:<{WIDTH}}{'adjoint':>11}{'torch':>11}")
    results = []
    for start in range(0, len(names), operator_memory.TOGETHER):
        part = names[start : start + operator_memory.TOGETHER]
        ours, theirs = (operator_memory.growths(module, part) for module in ("adjoint", "torch"))
        for name in part:
            results.append({"group": "operator_memory", "case": name, "adjoint": ours[name], "torch": theirs[name]})
            print(f"{name[:WIDTH]:<{WIDTH}}{ours[name] / 1e6:>8.1f} MB{theirs[name] / 1e6:>8.1f} MB", flush=True)
    return results


def run_compiled(quick: bool, only: re.Pattern[str]) -> list[dict[str, Any]]:
    """Print and return the times of compiled functions and of the same functions without compilation.

    Also measure JAX if it is installed, and `torch.compile` of PyTorch if `ADJOINT_BENCH_INDUCTOR` is set.
    """
    load_libraries()
    from benchmarks import compiled

    return compiled.run(quick, only, WIDTH, _duration, "ADJOINT_BENCH_INDUCTOR" in os.environ)


def run_shapes(quick: bool, only: re.Pattern[str]) -> list[dict[str, Any]]:
    """Print the slow calls on arrays of many shapes. Return the least times of all calls."""
    load_libraries()
    from benchmarks import shapes

    return shapes.run(quick, only, WIDTH, _duration)


def run_distributed(quick: bool, only: re.Pattern[str]) -> list[dict[str, Any]]:
    """Print and return the times of collectives and data-parallel steps in two processes. Without mpi4py, return nothing."""
    from importlib.util import find_spec

    if find_spec("mpi4py") is None:
        print("\ndistributed: left out, mpi4py is not installed")
        return []
    from benchmarks import distributed

    results = distributed.run(1 if quick else 5, only)
    print(f"\n{'distributed, 2 processes':<{WIDTH}}{'adjoint':>11}{'gloo':>11}{'ratio':>7}  quartiles")
    for result in results:
        line = f"{result['case']:<{WIDTH}}{_duration(result['adjoint']):>11}"
        if "torch" in result:
            line += (
                f"{_duration(result['torch']):>11}{result['ratio']:>7.2f}  {result['low']:.2f} to {result['high']:.2f}"
            )
        print(line)
    return results


def run_group(name: str, quick: bool, only: re.Pattern[str]) -> list[dict[str, Any]]:
    """Time the cases of one group whose names match `only`. Print and return the results."""
    adjoint, torch = load_libraries()
    from benchmarks.runner import QUICK, Settings, geometric_mean, measure

    settings = QUICK if quick else Settings()
    group = import_module(f"benchmarks.{name}").GROUP
    for library in (adjoint, torch):
        library.set_num_threads(group.threads)
    print(f"\n{name:<{WIDTH}}{'adjoint':>11}{'torch':>11}{'ratio':>7}  quartiles")
    results = []
    for case in group.cases:
        if not only.search(case.name):
            continue
        result = measure(name, case, adjoint, torch, settings)
        results.append(result)
        note = "" if result.agrees else "  DIFFERENT RESULTS"
        print(
            f"{case.name:<{WIDTH}}{_duration(result.adjoint):>11}{_duration(result.torch):>11}{result.ratio:>7.2f}"
            f"  {result.ratio_low:.2f} to {result.ratio_high:.2f}{note}",
            flush=True,
        )
    if not results:
        return []
    worst = max(results, key=lambda result: result.ratio)
    mean = geometric_mean([result.ratio for result in results])
    print(f"{f'geometric mean of {len(results)}':<{WIDTH + 22}}{mean:>7.2f}")
    print(f"{f'largest: {worst.case}':<{WIDTH + 22}}{worst.ratio:>7.2f}")
    return [result.as_dict() for result in results]


RUNNERS = {
    "startup": run_startup,
    "memory": run_memory,
    "operator_memory": run_operator_memory,
    "distributed": run_distributed,
    "compiled": run_compiled,
    "shapes": run_shapes,
}
"""The groups that are not timed case by case in one process."""


def _duration(seconds: float) -> str:
    for unit, factor in (("s ", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1.0:
            return f"{seconds * factor:.2f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the selected groups. Return 1 if the results of the two libraries differ."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="adjoint beside PyTorch.")
    parser.add_argument("--groups", default=",".join(GROUPS), help=f"comma-separated, of {', '.join(GROUPS)}")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument(
        "--only", type=re.compile, default=re.compile(""), metavar="REGEX", help="cases with such names"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures as JSON")
    options = parser.parse_args(arguments)
    groups = options.groups.split(",")
    if unknown := set(groups) - set(GROUPS):
        parser.error(f"unknown group: {', '.join(sorted(unknown))}")

    load_libraries()
    about = machine()
    print(", ".join(f"{key} {value}" for key, value in about.items()))
    results: list[dict[str, Any]] = []
    for name in groups:
        results += RUNNERS.get(name, partial(run_group, name))(options.quick, options.only)
    if options.json:
        options.json.write_text(json.dumps({"machine": about, "results": results}, indent=2) + "\n")
    return 0 if all(result.get("agrees", True) for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
