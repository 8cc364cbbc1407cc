"""`python -m tests.reliability [NAME ...] [--tries N]`: list or run experiments, and print the counts of survivals."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
import time

from . import EXPERIMENTS, __path__


def main(arguments: list[str]) -> int:
    """Run the command, and return the number of experiments with failures."""
    for module in pkgutil.iter_modules(__path__):
        if not module.name.startswith("_"):
            importlib.import_module(f"{__package__}.{module.name}")
    parser = argparse.ArgumentParser(prog="python -m tests.reliability", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="experiments; `all` runs every one")
    parser.add_argument("--tries", type=int, help="instead of the number of the full form")
    options = parser.parse_args(arguments)
    names = list(EXPERIMENTS) if options.names == ["all"] else options.names
    if unknown := set(names) - set(EXPERIMENTS):
        parser.error(f"no experiment named {', '.join(sorted(unknown))}")
    if not names:
        for one in EXPERIMENTS.values():
            print(f"{one.name:24}{one.tries:>8}  {one.about}")
    failed = 0
    for one in map(EXPERIMENTS.__getitem__, names):
        start = time.perf_counter()
        outcome = one.run(one.tries if options.tries is None else options.tries)
        seconds = time.perf_counter() - start
        listed = f"  listed {outcome.known.total():>5}" if outcome.known else ""
        print(
            f"{one.name:24} tried {outcome.tried:>7}  survived {outcome.survived:>7}{listed}  ({seconds:.0f} s)",
            flush=True,
        )
        for reason, times in outcome.known.most_common():
            print(f"    {times:>5}  listed: {reason}")
        for remark in outcome.remarks:
            print(f"    {remark}")
        for failure, times in outcome.failures.most_common():
            print(f"    {times:>5}  {failure}")
        failed += bool(outcome.failures)
    return failed


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
