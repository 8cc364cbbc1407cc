"""The stored results, and the part of the documentation that is generated from them."""

from __future__ import annotations

from .catalogue import HERE, Program, programs
from .running import EQUAL

RESULTS = HERE / "results.txt"
PAGE = HERE.parents[1] / "docs" / "howto" / "run-a-pytorch-script.md"
BEGIN, END = "<!-- written by `python -m tests.programs --record` -->\n", "<!-- until here -->\n"


def read() -> dict[str, str]:
    """Return the stored verdict on each program."""
    if not RESULTS.exists():
        return {}
    pairs = (line.split(" ", 1) for line in RESULTS.read_text(encoding="utf-8").splitlines())
    return {name: verdict.strip() for name, verdict in pairs}


def write(verdicts: dict[str, str]) -> None:
    """Store verdicts, keep the verdicts on other programs, and write the generated part of the documentation."""
    names = {program.name for program in programs()}
    both = {name: verdict for name, verdict in {**read(), **verdicts}.items() if name in names}
    RESULTS.write_text("".join(f"{name} {both[name]}\n" for name in sorted(both)), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def page(text: str) -> str:
    """Return the page with a new generated part."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + "\n" + part() + "\n" + END + rest.split(END)[1]


def part() -> str:
    """Return the part of the page about the results."""
    verdicts = read()
    tried = [program for program in programs() if program.name in verdicts]
    equal = [program for program in tried if verdicts[program.name] == EQUAL]
    libraries = {library for program in tried for library in program.requires}
    same = f"{len(equal)} of them printed the same output as with PyTorch."
    lines = [
        f"{len(tried)} programs that use {len(libraries)} libraries were tried. {same}",
        "",
        "| kind | libraries (programs, where there are several) |",
        "|---|---|",
    ]
    kinds = dict.fromkeys(program.kind for program in tried)
    lines += [f"| {kind} | {', '.join(counted([p for p in equal if p.kind == kind]))} |" for kind in sorted(kinds)]
    others = [program for program in tried if program not in equal]
    if others:
        lines += ["", "| program | result | reason |", "|---|---|---|"]
        lines += [f"| `{program.name}` | {verdicts[program.name]} | {program.stops} |" for program in others]
    return "\n".join(lines) + "\n"


def counted(some: list[Program]) -> list[str]:
    """Return, for each library, the number of these programs that require it."""
    counts: dict[str, int] = {}
    for program in some:
        for library in program.requires:
            counts[library] = counts.get(library, 0) + 1
    return [
        f"{library} ({count})" if count > 1 else library
        for library, count in sorted(counts.items(), key=lambda c: c[0].lower())
    ]
