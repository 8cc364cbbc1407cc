"""Run cells, and print the differences that no excuse explains. The exit status is 1 if there are such differences."""

import argparse
import os
import re
import time
from collections import Counter
from datetime import UTC, datetime

from .cells import Cell, sample
from .excuses import EXCUSES, Excuse, excuse
from .processes import run


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.parity.pairs", description=__doc__)
    parser.add_argument("--all", action="store_true", help="run every cell; unused excuses are differences too")
    parser.add_argument("--seconds", type=float, default=20, help="how long to run cells, if not all")
    parser.add_argument("--seed", type=int, default=int(f"{datetime.now(UTC):%Y%m%d}"), help="other cells each day")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    for part in Cell._fields:
        parser.add_argument(f"--{part}", default="", help="run only cells where this is found in the name")
    options = parser.parse_args()
    chosen = [
        cell
        for cell in sample(options.seed)
        if all(re.search(getattr(options, part), getattr(cell, part)) for part in Cell._fields)
    ]
    end = float("inf") if options.all else time.time() + options.seconds
    judged_by: Counter[str] = Counter()
    used: Counter[Excuse] = Counter()
    found = 0
    for cell, judged, difference in run(chosen, options.processes, end):
        known = difference and excuse(cell, difference)
        if known:
            used[known] += 1
        elif difference:
            found += 1
            print(f"{cell}: {difference}", flush=True)
        else:
            judged_by[judged] += 1
    for judged, count in judged_by.most_common():
        print(f"{count} cells {judged}")
    print(f"{used.total()} differences excused, {found} not; seed {options.seed}")
    unused = [each for each in EXCUSES if each not in used] if options.all else []
    for each in unused:
        print(f"an excuse that nothing needs: {each.reason} ({each.cell}, {each.difference})")
    raise SystemExit(min(found + len(unused), 1))


if __name__ == "__main__":
    main()
