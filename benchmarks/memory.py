"""The peak resident memory of training steps, with each library and model in a new process (Linux)."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median

STEPS = 5


@dataclass(frozen=True)
class Peak:
    """The peak memory of the process in bytes, and its growth since the import of the library."""

    process: int
    training: int


def peak(module: str, case: str) -> Peak:
    """Return the peaks of a new process that imports `module` and runs some steps of the model `case`."""
    finished = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory", module, case], capture_output=True, text=True, check=True
    )
    return Peak(**json.loads(finished.stdout))


def peaks(case: str, rounds: int) -> dict[str, Peak]:
    """Return the median of `rounds` processes for adjoint and for PyTorch."""
    found: dict[str, list[Peak]] = {"adjoint": [], "torch": []}
    for module in [*found] * rounds:
        found[module].append(peak(module, case))
    return {
        module: Peak(int(median(each.process for each in taken)), int(median(each.training for each in taken)))
        for module, taken in found.items()
    }


def resident(field: str) -> int:
    """Return a property of this process's memory, in bytes."""
    with Path("/proc/self/status").open() as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith(field))


def _measure(module: str, name: str) -> Peak:
    """Measure the peaks of this process for the function `peak`."""
    from benchmarks.__main__ import load_library
    from benchmarks.models import GROUP

    library = load_library(module)
    before = resident("VmRSS")
    case = next(case for case in GROUP.cases if case.name == name)
    library.manual_seed(0)
    step = case.prepare(library)
    for _ in range(STEPS):
        step()
    most = resident("VmHWM")
    return Peak(most, most - before)


if __name__ == "__main__":
    print(json.dumps(vars(_measure(sys.argv[1], sys.argv[2]))))
