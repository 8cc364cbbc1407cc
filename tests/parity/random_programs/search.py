"""Run random programs for a given time, with different programs each day.

`python -m tests.parity.random_programs.search [--seconds 60] [--seed 20260131]` runs the search. The programs are drawn as in
`test_random_programs.py`. For each difference, the search prints the smallest program that shows it, and its seed. A seed gives
the same programs as long as `lines.py` does not change. The exit status is 1 if the search finds a difference.
"""

import argparse
import faulthandler
import time
import warnings
from datetime import UTC, datetime

import hypothesis
import torch
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky

from tests.parity.random_programs.comparison import differences

MOST_STEPS = 20


class TimeIsUp(BaseException):
    """An error that ends a search at any point.

    It does not derive from `Exception`, because Hypothesis would report it as a failure. If the error ends a repetition
    of an earlier run, Hypothesis reports a flaky run.
    """


class Difference(Exception):
    """The error for libraries that do not agree."""


def smallest_difference(seed: int, end: float) -> tuple[str | None, int]:
    """Return the smallest program until `end` on which the libraries disagree, or None, and the number of programs that ran."""
    found: list[str] = []
    count = 0

    @hypothesis.seed(seed)
    @settings(
        max_examples=10**9,
        database=None,
        deadline=None,
        derandomize=False,
        phases=(Phase.generate, Phase.shrink),
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(st.data())
    def agree(data: st.DataObject) -> None:
        nonlocal count
        if time.monotonic() > end:
            raise TimeIsUp
        count += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            steps = data.draw(st.integers(1, MOST_STEPS))
            for program, difference in differences(lambda options: data.draw(st.sampled_from(options)), steps):
                found.append(f"{program.text()}\n{difference}")
                raise Difference

    try:
        agree()
    except (TimeIsUp, Difference, Flaky):
        if not found and time.monotonic() < end:
            raise
    return min(found, key=_size, default=None), count


def _size(program: str) -> tuple[int, int]:
    return program.count("\n"), len(program)


def search(seed: int, seconds: float) -> int:
    """Search for `seconds`, print each difference immediately, and return the number of differences."""
    end = time.monotonic() + seconds
    found = programs = 0
    number = seed
    while time.monotonic() < end:
        program, count = smallest_difference(number, end)
        programs += count
        if program is not None:
            found += 1
            print(f"\nseed {number}:\n{program}\n", flush=True)
        number += 1
    print(f"{programs} programs from seed {seed} on: {found} differences", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to search")
    parser.add_argument(
        "--seed", type=int, default=int(f"{datetime.now(UTC):%Y%m%d}"), help="other programs each day by default"
    )
    options = parser.parse_args()
    print(f"random programs for {options.seconds:g} s, seed {options.seed}", flush=True)
    faulthandler.enable()
    torch.set_num_threads(1)
    found = search(options.seed, options.seconds)
    raise SystemExit(min(found, 1))


if __name__ == "__main__":
    main()
