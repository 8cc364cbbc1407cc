"""Run one program, and judge its output."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass

from .catalogue import Program
from .comparison import difference
from .environment import Environment, outer_environment

EQUAL, OTHER, FAILED, SLOW, NOT_INSTALLED, RAN = "equal", "other output", "failed", "too slow", "not installed", "ran"

FIXED = {
    "PYTHONHASHSEED": "0",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MPLBACKEND": "Agg",
    "HF_HUB_OFFLINE": "1",
    "COLUMNS": "120",
    "PYTHONWARNINGS": "ignore",
}
"""Variables with which a program prints the same text each time and does not access other machines."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a program: a verdict, its explanation, the output, and the seconds that the program took."""

    verdict: str
    why: str = ""
    printed: str = ""
    seconds: float = 0.0


def outcome(program: Program, environment: Environment, limit: float) -> Outcome:
    """Install the requirements of a program, run it for at most `limit` seconds, and compare with PyTorch's output."""
    mistake = environment.install(program)
    if mistake is not None:
        return Outcome(NOT_INSTALLED, mistake)
    begin = time.perf_counter()
    status, printed, errors = run(program, environment.runner, limit)
    seconds = time.perf_counter() - begin
    if status is None:
        return Outcome(SLOW, f"over {limit:.0f} s", printed, seconds)
    if status != 0:
        return Outcome(FAILED, last_error(errors) or f"exit status {status}", printed, seconds)
    if environment.library == "torch":
        return Outcome(RAN, "", printed, seconds)
    if not program.expected.exists():
        return Outcome(RAN, "PyTorch's output is not known", printed, seconds)
    other = difference(program.expected.read_text(encoding="utf-8"), printed)
    return Outcome(EQUAL if other is None else OTHER, other or "", printed, seconds)


def run(program: Program, runner: list[str], limit: float) -> tuple[int | None, str, str]:
    """Run a program. Return the output and the exit status, which is None after the time limit."""
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [*runner, str(program.script), *program.arguments],
            cwd=folder,
            env={**outer_environment(), **FIXED},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            printed, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None, *process.communicate()
        return process.returncode, printed, errors


def last_error(errors: str) -> str:
    """Return the last line that names an error or, if there is none, the last line."""
    lines = [line for line in errors.splitlines() if line.strip()]
    named = [line for line in lines if line[0].isalpha() and "Error" in line.partition(":")[0]]
    return (named or lines or [""])[-1][:300]
