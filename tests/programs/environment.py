"""A virtual environment for the programs, with or without PyTorch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from .catalogue import HERE, Program

ROOT = HERE.parents[1]
CONSTRAINTS = HERE / "constraints.txt"
PYTORCH = "torch==2.13.0"


class Environment:
    """A virtual environment in `folder`, which is created on first use.

    The libraries of a program are installed before the program runs. Without PyTorch, `adjoint run` runs pip. Then pip finds the
    distribution `torch` that other libraries require, and installs only the other distributions.
    """

    def __init__(self, folder: Path, library: str) -> None:
        self.folder, self.library = folder.resolve(), library
        self.record = self.folder / "installed.txt"

    @property
    def runner(self) -> list[str]:
        """The command that runs a script in the environment."""
        python = str(self.folder / "bin" / "python")
        return [python] if self.library == "torch" else [python, "-m", "adjoint", "run"]

    def make(self) -> None:
        """Create the environment, unless it exists.

        Raises:
            subprocess.CalledProcessError: if pip fails.
        """
        if self.record.exists():
            return
        subprocess.run([sys.executable, "-m", "venv", self.folder], check=True)
        what = [PYTORCH, "numpy"] if self.library == "torch" else ["-e", f"{ROOT}[fast,scipy]"]
        subprocess.run([self.folder / "bin" / "pip", "install", "-q", *what], check=True, env=outer_environment())
        self.record.write_text("")

    def install(self, program: Program) -> str | None:
        """Install the requirements of a program in the versions of `constraints.txt`. Return pip's message if this fails."""
        if self.has(program):
            return None
        quietly = ["install", "-q", "--no-compile", "--prefer-binary", "--disable-pip-version-check"]
        command = [*self.runner, "-m", "pip", *quietly, "-c", str(CONSTRAINTS), *program.requires]
        done = subprocess.run(command, capture_output=True, text=True, env=outer_environment())
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            return (errors or done.stderr.strip().splitlines() or ["pip failed"])[0]
        with self.record.open("a") as record:
            record.write(f"{' '.join(program.requires)}\n")
        return None

    def has(self, program: Program) -> bool:
        """Return whether the requirements of a program have been installed."""
        return " ".join(program.requires) in self.record.read_text().splitlines()


def outer_environment() -> dict[str, str]:
    """Return the variables of this process without the search path. Python may write bytecode, so that imports are fast."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")}
