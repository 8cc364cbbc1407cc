"""The programs in `scripts/`, with the descriptions in their comments."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
SCRIPTS = HERE / "scripts"
SHARED = "shown"
"""Files that programs import, and that are not programs."""


@dataclass(frozen=True)
class Program:
    """A program with one argument, or without arguments."""

    script: Path
    case: str
    about: str
    kind: str
    requires: tuple[str, ...]
    stops: str = field(compare=False)

    @property
    def name(self) -> str:
        """The name for the command line, `script` or `script:case`."""
        return f"{self.script.stem}:{self.case}" if self.case else self.script.stem

    @property
    def arguments(self) -> list[str]:
        """The arguments of the program."""
        return [self.case] if self.case else []

    @property
    def expected(self) -> Path:
        """The file with the output under PyTorch."""
        return self.script.with_name(f"{self.name.replace(':', '.')}.txt")


@cache
def programs() -> tuple[Program, ...]:
    """Return all programs, by name."""
    scripts = sorted(path for path in SCRIPTS.glob("*.py") if path.stem != SHARED)
    return tuple(program for script in scripts for program in programs_of(script))


def programs_of(script: Path) -> list[Program]:
    """Return the programs of one script, one for each case.

    Raises:
        ValueError: if the script does not state its kind or its requirements.
    """
    text = script.read_text(encoding="utf-8")
    said: dict[str, list[str]] = {}
    for key, value in re.findall(r"^# (kind|requires|cases|stops): (.+)$", text, re.MULTILINE):
        said.setdefault(key, []).append(value)
    if "kind" not in said or "requires" not in said:
        raise ValueError(f"{script.name} must say `# kind:` and `# requires:`")
    about = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
    cases = " ".join(said.get("cases", [])).split()
    stops = (
        dict(line.split(" ", 1) for line in said.get("stops", [])) if cases else {"": " ".join(said.get("stops", []))}
    )
    requires = tuple(" ".join(said["requires"]).split())
    return [Program(script, case, about, said["kind"][0], requires, stops.get(case, "")) for case in cases or [""]]


def chosen(names: list[str]) -> list[Program]:
    """Return the programs with these names. The name of a script selects all its cases. Without names, return all programs.

    Raises:
        ValueError: if a name belongs to no program.

    """
    for name in names:
        if not any(name in (program.name, program.script.stem) for program in programs()):
            raise ValueError(f"there is no program {name!r} in {SCRIPTS.relative_to(HERE.parents[1])}")
    return [program for program in programs() if not names or {program.name, program.script.stem} & set(names)]
