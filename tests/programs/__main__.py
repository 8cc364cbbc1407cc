"""`python -m tests.programs [NAME...]`: run programs with `adjoint run`, without PyTorch, and print the results.

`--library torch` runs the programs with PyTorch in a separate environment, and stores the output as the expected output.
`--record` writes the results to results.txt and to the table of docs/howto/run-a-pytorch-script.md.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import results
from .catalogue import Program, chosen
from .environment import Environment
from .running import EQUAL, RAN, Outcome, outcome


def main(arguments: list[str] | None = None) -> int:
    """Run the command, and return 0 if every program has printed the expected output."""
    parser = argparse.ArgumentParser(prog="python -m tests.programs", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="programs (SCRIPT or SCRIPT:CASE); without, all of them"
    )
    parser.add_argument("--library", choices=("adjoint", "torch"), default="adjoint")
    parser.add_argument(
        "--environment",
        type=Path,
        metavar="DIR",
        help="the virtual environment; default: ~/.cache/adjoint-programs/LIBRARY",
    )
    parser.add_argument("--limit", type=float, default=300, metavar="SECONDS", help="for one program (300)")
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="programs that run side by side (1)")
    parser.add_argument("--record", action="store_true", help="write the results, and the table of the documentation")
    parser.add_argument("--list", action="store_true", help="list the programs, and run none")
    wanted = parser.parse_args(arguments)
    try:
        programs = chosen(wanted.names)
    except ValueError as error:
        parser.error(str(error))
    if wanted.list:
        for program in programs:
            print(f"{program.name:40} {' '.join(program.requires):40} {program.about}")
        return 0
    folder = wanted.environment or Path.home() / ".cache" / "adjoint-programs" / wanted.library
    environment = Environment(folder, wanted.library)
    environment.make()
    found = run_all(programs, environment, wanted.limit, wanted.processes)
    if wanted.record and wanted.library == "adjoint":
        results.write({program.name: outcome.verdict for program, outcome in found.items()})
    return 0 if all(outcome.verdict in (EQUAL, RAN) or program.stops for program, outcome in found.items()) else 1


def run_all(programs: list[Program], environment: Environment, limit: float, processes: int) -> dict[Program, Outcome]:
    """Install all libraries first, because only one pip may run at a time.

    Then run the programs, and print each verdict immediately.
    """
    for program in programs:
        environment.install(program)
    found = {}
    with ThreadPoolExecutor(processes) as pool:
        outcomes = pool.map(lambda program: outcome(program, environment, limit), programs)
        for program, came in zip(programs, outcomes, strict=True):
            found[program] = came
            print(f"{program.name:40} {came.verdict:14} {came.seconds:6.1f} s  {came.why}", flush=True)
            if environment.library == "torch" and came.verdict == RAN:
                program.expected.write_text(came.printed, encoding="utf-8")
    counts = Counter(came.verdict for came in found.values())
    print(f"{len(found)} programs:", ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()))
    return found


if __name__ == "__main__":
    sys.exit(main())
