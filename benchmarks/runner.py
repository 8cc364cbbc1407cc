"""Fair timing of two libraries: alternate rounds in one process, medians, and the spread of the ratios of paired rounds."""

import gc
from dataclasses import asdict, dataclass
from math import exp, log
from statistics import median, quantiles
from time import perf_counter, sleep
from types import ModuleType
from typing import Any

from benchmarks.cases import Case, Timed

SEED = 0


@dataclass(frozen=True)
class Settings:
    """The measuring time for each case: `rounds` rounds of about `round_seconds` for each library."""

    rounds: int = 15
    round_seconds: float = 0.02


QUICK = Settings(rounds=5, round_seconds=0.005)


@dataclass(frozen=True)
class Result:
    """The seconds of a call (the median of rounds), and the quartiles of the ratio adjoint/PyTorch over paired rounds."""

    group: str
    case: str
    adjoint: float
    torch: float
    ratio: float
    ratio_low: float
    ratio_high: float
    agrees: bool

    def as_dict(self) -> dict[str, Any]:
        """Return the result as plain data, for JSON."""
        return asdict(self)


def measure(group: str, case: Case, adjoint: ModuleType, torch: ModuleType, settings: Settings) -> Result:
    """Time one case with both libraries in alternate rounds. The library that runs first changes in every round."""
    ours, theirs = _prepare(case, adjoint), _prepare(case, torch)
    agrees = _agree(ours(), theirs())
    loops = {timed: calibrated(timed, settings.round_seconds) for timed in (ours, theirs)}
    times: dict[Timed, list[float]] = {ours: [], theirs: []}
    gc.collect()
    gc.freeze()  # objects allocated at import must not cost time during the rounds
    for number in range(settings.rounds):
        for timed in (ours, theirs) if number % 2 == 0 else (theirs, ours):
            times[timed].append(timed_round(timed, loops[timed]))
    gc.unfreeze()
    low, _, high = quantiles([a / b for a, b in zip(times[ours], times[theirs], strict=True)], n=4)
    seconds = median(times[ours]), median(times[theirs])
    return Result(group, case.name, *seconds, seconds[0] / seconds[1], low, high, agrees)


def geometric_mean(values: list[float]) -> float:
    """Return the n-th root of the product of n positive numbers."""
    return exp(sum(map(log, values)) / len(values))


def _prepare(case: Case, module: ModuleType) -> Timed:
    module.manual_seed(SEED)
    return case.prepare(module)


def _agree(ours: Any, theirs: Any) -> bool:
    """Return whether the results of both libraries agree, so that the work is comparable."""
    if isinstance(theirs, float):
        return abs(ours - theirs) <= 1e-3 * abs(theirs)
    expected, ours = theirs.detach(), ours.detach()
    if not expected.is_complex():  # booleans, integers and half types need float64
        expected, ours = expected.double(), ours.double()
    found = expected.new_tensor(ours.numpy())
    scale = float(expected.abs().max()) or 1.0
    error = 1e-3 if theirs.element_size() > 2 else 1e-2
    return found.shape == expected.shape and float((found - expected).abs().max()) <= error * scale


_ASLEEP = 0.02
"""The number of seconds after which no thread of the other library polls for work. PyTorch's threads poll for about 8 ms."""


def timed_round(timed: Timed, loops: int) -> float:
    sleep(_ASLEEP)
    timed()  # before this call, the caches contain the data of the other library
    start = perf_counter()
    for _ in range(loops):
        timed()
    return (perf_counter() - start) / loops


def calibrated(timed: Timed, seconds: float) -> int:
    """Warm up, and return the number of calls that fill a round. A compiled step is complete after its third call."""
    for _ in range(3):
        timed()
    loops = 1
    while (taken := timed_round(timed, loops) * loops) < seconds:
        loops = max(loops + 1, min(10 * loops, int(loops * 1.2 * seconds / taken)))
    return loops
