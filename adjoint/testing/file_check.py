"""`FileCheck` checks that lines occur in a text in a given order, like LLVM's tool of the same name."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import Any, NamedTuple, NoReturn

_LINE = re.compile(r"^[^#\n]*(#\s*CHECK(.*))$", re.MULTILINE)
_CHECK = re.compile(r"(?:-(NOT|NEXT|SAME|DAG|REGEX|COUNT-(EXACTLY-)?(\d+)))?: (.*)")


class _Check(NamedTuple):
    kind: str
    text: str
    times: int = 1

    def __str__(self) -> str:
        kind = f"COUNT-{self.times}" if self.kind == "COUNT" else self.kind
        return f"{f'CHECK-{kind}' if kind else 'CHECK'}: {self.text}"


class FileCheck:
    r"""A sequence of checks. Each check starts at the end of the previous match.

    >>> import adjoint as torch
    >>> torch.testing.FileCheck().check("add").check_next("mul").check_not("add").run("x = add()\ny = mul()\n")
    """

    def __init__(self) -> None:
        self._checks: list[_Check] = []
        self._has_run = False

    def __del__(self) -> None:
        if not self._has_run:
            print("You have not run this instance of FileCheck!\nFileCheck checks:")
            print(*(f"\t{check}\n" for check in self._checks), sep="", end="")

    def _with(self, kind: str, text: Any, count: int = 1) -> FileCheck:
        self._checks.append(_Check(kind, text, count))
        return self

    def check(self, text: str) -> FileCheck:
        """Check that the text occurs later."""
        return self._with("", text)

    def check_not(self, text: str) -> FileCheck:
        """Check that the text does not occur before the match of the next check."""
        return self._with("NOT", text)

    def check_next(self, text: str) -> FileCheck:
        """Check that the text is in the next line."""
        return self._with("NEXT", text)

    def check_same(self, text: str) -> FileCheck:
        """Check that the text occurs later in the same line."""
        return self._with("SAME", text)

    def check_dag(self, text: str) -> FileCheck:
        """Check that the text occurs later. Consecutive checks of this kind may match in any order."""
        return self._with("DAG", text)

    def check_regex(self, text: str) -> FileCheck:
        """Check that a match of the regular expression occurs later."""
        return self._with("REGEX", text)

    def check_count(self, str: str, count: int, exactly: bool = False) -> FileCheck:
        """Check that the text occurs at least this number of times.

        With `exactly`, it must not occur more often before the next check.
        """
        if not (count or exactly):
            raise RuntimeError("Count == 0 && !exactly doesn't do anything")
        if count:
            self._with("COUNT", str, count)
        return self._with("NOT", str) if exactly else self

    def run(self, *texts: str) -> None:
        """Run the checks on a text.

        If two texts are given, the first contains additional checks in comments, such as `# CHECK-NEXT: mul`.

        Raises:
            RuntimeError: if a check fails.
        """
        for line, rest in _LINE.findall(texts[0]) if len(texts) == 2 else ():
            read = _CHECK.fullmatch(rest)
            if read is None:
                raise RuntimeError(f"Could not parse check at:\n{line}\nCheck for bad input.")
            kind, exactly, count, pattern = read.groups("")
            if count:
                self.check_count(pattern, int(count), bool(exactly))
            else:
                self._with(kind, pattern)
        self._has_run = True
        if not self._checks:
            raise RuntimeError("No checks have been added to this instance ofFilecheck! Check for bad input.")
        _run(self._checks, texts[-1])


def _run(checks: list[_Check], text: str) -> None:
    """Run the checks. Checks for absent text are postponed until the next match."""
    end = 0
    absent: list[_Check] = []
    for number, check in enumerate(checks):
        if check.kind == "NOT":
            absent.append(check)
        elif check.kind == "DAG" == checks[number - 1].kind and number:
            continue
        else:
            group = [check, *takewhile(lambda each: each.kind == check.kind == "DAG", checks[number + 1 :])]  # noqa: B023
            found = [_found(each, text, end) for each in group]
            _refuse(absent, text, end, min(first for first, _ in found))
            end, absent = max(last for _, last in found), []
    _refuse(absent, text, end, len(text))


def _found(check: _Check, text: str, start: int) -> tuple[int, int]:
    """Return the start of the first match of the check, and the end of its last match."""
    if check.kind == "REGEX":
        match = re.compile(check.text).search(text, start)
        if match is None:
            _fail(f'Expected to find regex "{check.text}" but did not find it\nSearched string:', text, start, check)
        return match.span()
    if check.kind == "NEXT":
        start = text.find("\n", start) + 1 or len(text)
    first, end = -1, start
    for _ in range(check.times):
        place = text.find(check.text, end)
        if place < 0:
            _fail(f'Expected to find "{check.text}" but did not find it\nSearched string:', text, end, check)
        first, end = place if first < 0 else first, place + len(check.text)
    if check.kind in ("NEXT", "SAME") and "\n" in text[start:first]:
        _fail('Expected to not find "\\n" but found it', text, start, check)
    return first, end


def _refuse(absent: list[_Check], text: str, start: int, end: int) -> None:
    for check in absent:
        place = text.find(check.text, start, end)
        if place >= 0:
            _fail(f'Expected to not find "{check.text}" but found it', text, place, check)


def _fail(words: str, text: str, place: int, check: _Check) -> NoReturn:
    """Raise an error that shows the lines around the position."""
    row = text.count("\n", 0, place)
    shown = text.splitlines()[max(row - 2, 0) : row + 3]
    if check.kind == "NOT":
        column = place - text.rfind("\n", 0, place) - 1
        shown.insert(min(row, 2) + 1, f"{' ' * column}{'~' * len(check.text)} <--- HERE")
    raise RuntimeError("\n".join([words, *shown, f"From {check}\n"]))
