"""The time of `import`, measured in new interpreters with warm file caches."""

import os
import subprocess
import sys
from statistics import median

MODULES = ("numpy", "adjoint", "torch")

_PROGRAM = "import time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"


def import_time(module: str) -> float:
    """Return the seconds of `import module` in a new interpreter, which may store bytecode as for installed packages."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    finished = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(module)], capture_output=True, text=True, check=True, env=environment
    )
    return float(finished.stdout)


def import_times(rounds: int) -> dict[str, list[float]]:
    """Return `rounds` import times of each module, measured alternately after one import that is not measured."""
    for module in MODULES:
        import_time(module)
    times: dict[str, list[float]] = {module: [] for module in MODULES}
    for _ in range(rounds):
        for module in MODULES:
            times[module].append(import_time(module))
    return times


def ratios(times: dict[str, list[float]]) -> dict[str, float]:
    """Return the median import time of adjoint divided by the median import time of each other module."""
    return {module: median(times["adjoint"]) / median(times[module]) for module in times if module != "adjoint"}
