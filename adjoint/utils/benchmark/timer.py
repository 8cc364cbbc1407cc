"""Measuring the time of a statement: several runs, their median and spread, and tables of measurements."""

from __future__ import annotations

import statistics
import timeit
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import adjoint as torch

_UNITS = (("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0))


def _unit(seconds: float) -> tuple[str, float]:
    return next((unit for unit in reversed(_UNITS) if seconds >= unit[1]), _UNITS[0])


@dataclass
class Measurement:
    """The times of a statement. Each of `raw_times` is the time of `number_per_run` runs, in seconds."""

    number_per_run: int
    raw_times: list[float]
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1
    stmt: str = ""
    metadata: dict[Any, Any] | None = field(default=None, repr=False)

    @property
    def times(self) -> list[float]:
        """The time of one run in each measurement, in seconds."""
        return [time / self.number_per_run for time in self.raw_times]

    @property
    def median(self) -> float:
        """The median time of one run, in seconds."""
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        """The mean time of one run, in seconds."""
        return statistics.fmean(self.times)

    @property
    def iqr(self) -> float:
        """The interquartile range, in seconds."""
        if len(self.raw_times) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.times, n=4, method="inclusive")
        return high - low

    @property
    def title(self) -> str:
        """A description of the measured statement."""
        parts = [self.label or self.stmt, self.sub_label, self.description]
        return ": ".join(part for part in parts if part)

    def __repr__(self) -> str:
        name, scale = _unit(self.median)
        kind = "Median" if len(self.raw_times) > 1 else "Measurement"
        lines = [f"<{type(self).__module__}.{type(self).__qualname__}>", self.title]
        lines.append(f"  {kind}: {self.median / scale:.2f} {name}")
        if len(self.raw_times) > 1:
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {name}")
        runs = f"{len(self.raw_times)} measurements, {self.number_per_run} runs per measurement"
        lines.append(f"  {runs}, {self.num_threads} thread{'s' if self.num_threads > 1 else ''}")
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Join measurements of the same statement."""
        joined: dict[Any, Measurement] = {}
        for each in measurements:
            key = (each.stmt, each.label, each.sub_label, each.description, each.env, each.num_threads)
            if key not in joined:
                joined[key] = Measurement(each.number_per_run, [], *key[1:], key[0], each.metadata)
            scale = joined[key].number_per_run / each.number_per_run
            joined[key].raw_times += [time * scale for time in each.raw_times]
        return list(joined.values())


class Timer:
    """Measures the time of a statement, with a given number of threads.

    Args:
        stmt: the statement, as text.
        setup: a statement that runs once before the measurement.
        timer: a function that returns the time in seconds.
        globals: the names and values that the statement uses.
        label, sub_label, description, env: the labels of the measurement in the tables of `Compare`.
        num_threads: the number of threads of operators.

    >>> Timer("x + x", globals={"x": torch.ones(3)}).timeit(100).number_per_run
    100
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timeit.default_timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Any = "py",
    ) -> None:
        if str(language).lower() not in ("py", "python", "language.python"):
            raise NotImplementedError("adjoint times statements in Python only")
        self._timer = timeit.Timer(stmt, setup, timer, {"torch": torch, **(globals or {})})
        self._about: dict[str, Any] = {
            "label": label,
            "sub_label": sub_label,
            "description": description,
            "env": env,
            "num_threads": num_threads,
            "stmt": stmt,
        }

    def _times(self, number: int, enough: Callable[[list[float]], bool]) -> Measurement:
        before = torch.get_num_threads()
        torch.set_num_threads(self._about["num_threads"])
        try:
            self._timer.timeit(max(number // 100, 2))
            times: list[float] = []
            while not times or not enough(times):
                times.append(self._timer.timeit(number))
        finally:
            torch.set_num_threads(before)
        return Measurement(number, times, **self._about)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Measure `number` runs together."""
        return self._times(number, lambda times: True)

    def repeat(self, repeat: int = -1, number: int = -1) -> list[float]:
        """Measure `number` runs `repeat` times, and return the times."""
        return self._timer.repeat(5 if repeat < 0 else repeat, 1000000 if number < 0 else number)

    def _block(self, seconds: float) -> int:
        number = 1
        while self._timer.timeit(number) < seconds / 1000 + 1e-4 and number < 10**9:
            number *= 10
        return number

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Measure blocks of runs for at least `min_run_time` seconds in total."""
        return self._times(self._block(min_run_time), lambda times: sum(times) >= min_run_time)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """Measure blocks of runs until the interquartile range is less than `threshold` times the median."""

        def enough(times: list[float]) -> bool:
            if sum(times) >= max_run_time:
                return True
            settled = len(times) > 3 and Measurement(1, times).iqr / statistics.median(times) < threshold
            return settled and sum(times) >= min_run_time

        return self._times(self._block(min_run_time), enough)


class Compare:
    """A table of measurements, with a line for each `sub_label` and a column for each `description`."""

    def __init__(self, results: Sequence[Measurement]) -> None:
        self._results = Measurement.merge(results)

    def extend_results(self, results: Sequence[Measurement]) -> None:
        """Add measurements."""
        self._results = Measurement.merge([*self._results, *results])

    def trim_significant_figures(self) -> None:
        """Accepted for compatibility. Times are shown with few digits."""

    def colorize(self, rowwise: bool = False) -> None:
        """Accepted for compatibility. Tables have no colours."""

    def print(self) -> None:
        """Print the table."""
        print(str(self))

    def __str__(self) -> str:
        if not self._results:
            return ""
        name, scale = _unit(min(each.median for each in self._results))
        columns = list(dict.fromkeys(each.description or "" for each in self._results))
        lines = list(dict.fromkeys((each.sub_label or each.stmt, each.num_threads) for each in self._results))
        cells = {
            (each.sub_label or each.stmt, each.num_threads, each.description or ""): f"{each.median / scale:.1f}"
            for each in self._results
        }
        rows = [["", *columns]]
        rows += [
            [f"{label} ({threads} threads)", *(cells.get((label, threads, c), "") for c in columns)]
            for label, threads in lines
        ]
        widths = [max(len(row[k]) for row in rows) for k in range(len(columns) + 1)]
        text = ["  |  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        return "\n".join([self._results[0].label or "", *text, f"Times are in {name}."])
