"""Print a table of operators by aspect: `python -m tests.parity.report [--json FILE] [--only PATTERN] [--aspect PATTERN]`."""

import argparse
import fnmatch
import json
import multiprocessing
import sys
import time
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from . import samples
from .aspects import aspects
from .exceptions import unexcused

Results = dict[str, dict[str, Any]]


def measure(pattern: str, aspect_pattern: str, workers: int) -> dict[str, Results]:
    """Return passes and failures of every operator and aspect whose names match."""
    names = [name for name in samples.operators() if fnmatch.fnmatchcase(name, pattern)]
    with ThreadPoolExecutor(workers) as threads:
        found = threads.map(lambda name: _apart(name, aspect_pattern), names)
        return dict(zip(names, found, strict=True))


def _apart(name: str, aspect_pattern: str) -> Results:
    """Measure one operator in a separate process, because the operator may crash."""
    started = time.perf_counter()
    worker: Executor
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as worker:
        try:
            results = worker.submit(_operator, name, aspect_pattern).result()
        except BrokenProcessPool:
            results = {"all": {"passed": 0, "failed": 1, "failures": ["the process died"]}}
    failed = sum(result["failed"] for result in results.values())
    print(f"{name}: {failed} failed, {time.perf_counter() - started:.1f} s", file=sys.stderr, flush=True)
    return results


def _operator(name: str, aspect_pattern: str) -> Results:
    results = {}
    for aspect, check in aspects(samples.operators()[name]).items():
        if fnmatch.fnmatchcase(aspect.split("[")[0], aspect_pattern):
            outcome = check()
            failures = unexcused(f"{name} {aspect}", outcome.failures)
            agreed = outcome.total - len(failures)
            results[aspect] = {"passed": agreed, "failed": len(failures), "failures": failures[:5]}
    return results


def table(found: dict[str, Results]) -> str:
    """Return one line for each operator: the aspects that agree, and the counts "failed/all" for other aspects."""
    lines = []
    for name, results in found.items():
        wrong = [f"{aspect} {r['failed']}/{r['failed'] + r['passed']}" for aspect, r in results.items() if r["failed"]]
        lines.append(f"{name:45} {', '.join(wrong) or 'ok'}")
    return "\n".join(lines)


def summary(found: dict[str, Results]) -> str:
    """Return the numbers of cases that agree and of all cases, for each aspect and in total."""
    counts: dict[str, list[int]] = {}
    for results in found.values():
        for aspect, result in results.items():
            for column in (aspect.split("[")[0], "all"):
                count = counts.setdefault(column, [0, 0])
                count[0] += not result["failed"]
                count[1] += 1
    clean = sum(all(not result["failed"] for result in results.values()) for results in found.values())
    lines = [f"{aspect:12} {agree:5} of {total:5}" for aspect, (agree, total) in counts.items()]
    return "\n".join([*lines, f"operators that agree in everything: {clean} of {len(found)}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write every result to this file")
    parser.add_argument("--only", default="*", help="operators whose name matches this pattern")
    parser.add_argument("--aspect", default="*", help="aspects whose name (without the dtype) matches this pattern")
    parser.add_argument("--workers", type=int, default=1, help="how many operators are measured at a time")
    options = parser.parse_args()
    found = measure(options.only, options.aspect, options.workers)
    print(table(found), summary(found), sep="\n\n")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
