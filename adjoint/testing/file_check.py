"""`FileCheck`: checks that lines stand in a text in some order, as LLVM's tool of that name makes them."""

from __future__ import annotations

import re
from typing import Any, NamedTuple, NoReturn

_LINE = re.compile(r"^[^#\n]*(#\s*CHECK(.*))$", re.MULTILINE)
_CHECK = re.compile(r"(?:-(NOT|NEXT|SAME|DAG|REGEX|SOURCE-HIGHLIGHTED|COUNT-(EXACTLY-)?(\d+)))?: (.*)")
_NOTHING = "No checks have been added to this instance ofFilecheck! Check for bad input."


class _Check(NamedTuple):
    kind: str
    text: str
    count: int = 1

    def __str__(self) -> str:
        kind = f"COUNT-{self.count}" if self.kind == "COUNT" else self.kind
        return f"{f'CHECK-{kind}' if kind else 'CHECK'}: {self.text}"


class FileCheck:
    r"""Checks that are made one after the other, each from where the last one has found something.

    >>> import adjoint as torch
    >>> torch.testing.FileCheck().check("add").check_next("mul").check_not("add").run("x = add()\ny = mul()\n")
    """

    __module__ = "torch"

    def __init__(self) -> None:
        self._checks: list[_Check] = []
        self._has_run = False

    def __del__(self) -> None:
        if not self._has_run:
            print("You have not run this instance of FileCheck!\nFileCheck checks:")
            print(*(f"\t{check}\n" for check in self._checks), sep="", end="")

    def _with(self, kind: str, text: Any, count: int = 1) -> FileCheck:
        if not isinstance(text, str):
            raise TypeError(f"a check must be of a str, not {type(text).__name__}")
        self._checks.append(_Check(kind, text, count))
        return self

    def check(self, text: str) -> FileCheck:
        """The text comes later."""
        return self._with("", text)

    def check_not(self, text: str) -> FileCheck:
        """The text does not come before what the next check finds."""
        return self._with("NOT", text)

    def check_next(self, text: str) -> FileCheck:
        """The text is in the next line."""
        return self._with("NEXT", text)

    def check_same(self, text: str) -> FileCheck:
        """The text comes later in the same line."""
        return self._with("SAME", text)

    def check_dag(self, text: str) -> FileCheck:
        """The text comes later; checks of this kind that follow each other may be met in any order."""
        return self._with("DAG", text)

    def check_regex(self, text: str) -> FileCheck:
        """A match of the regular expression comes later."""
        return self._with("REGEX", text)

    def check_source_highlighted(self, text: str) -> FileCheck:
        """The text comes later, and the line below it underlines exactly that."""
        return self._with("SOURCE-HIGHLIGHTED", text)

    def check_count(self, str: str, count: int, exactly: bool = False) -> FileCheck:
        """The text comes so many times, or more; with `exactly`, not more often before the next check."""
        if not (count or exactly):
            raise RuntimeError("Count == 0 && !exactly doesn't do anything")
        if count:
            self._with("COUNT", str, count)
        return self._with("NOT", str) if exactly else self

    def run(self, *texts: str) -> None:
        """Make the checks on a text; of two texts, the first one has further checks in comments, as in `# CHECK-NEXT: mul`.

        Raises:
            RuntimeError: if one of them fails.
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
            raise RuntimeError(_NOTHING)
        _run(self._checks, texts[-1])


def _run(checks: list[_Check], text: str) -> None:
    """Make the checks: those that nothing comes wait for the next one that finds something, which may be several in any order."""
    end = number = 0
    absent: list[_Check] = []
    while number < len(checks):
        check = checks[number]
        number += 1
        if check.kind == "NOT":
            absent.append(check)
            continue
        start = end
        first, end = _found(check, text, start)
        while check.kind == "DAG" and number < len(checks) and checks[number].kind == "DAG":
            other, last = _found(checks[number], text, start)
            first, end, number = min(first, other), max(end, last), number + 1
        _refuse(absent, text, start, first)
        absent = []
    _refuse(absent, text, end, len(text))


def _found(check: _Check, text: str, start: int) -> tuple[int, int]:
    """Where what the check looks for begins, the first time, and where it ends, the last time."""
    if check.kind == "REGEX":
        match = re.compile(check.text).search(text, start)
        if match is None:
            raise RuntimeError(
                f'Expected to find regex "{check.text}" but did not find it\nSearched string:\nFrom {check}\n'
            )
        return match.span()
    if check.kind == "NEXT":
        start = text.find("\n", start) + 1 or len(text)
    first, end = -1, start
    for _ in range(check.count):
        place = text.find(check.text, end)
        if place < 0:
            _fail(f'Expected to find "{check.text}" but did not find it\nSearched string:', text, end, None, check)
        first, end = place if first < 0 else first, place + len(check.text)
    if check.kind in ("NEXT", "SAME") and "\n" in text[start:first]:
        _fail('Expected to not find "\\n" but found it', text, start, None, check)
    if check.kind == "SOURCE-HIGHLIGHTED":
        column = first - text.rfind("\n", 0, first) - 1
        below = text[end:].partition("\n")[2].partition("\n")[0]
        if not re.match(rf" {{{column}}}~{{{len(check.text)}}}(?!~)", below):
            _fail(f'Expected to find "{check.text}"highlighted but it is not.', text, first, None, "")
    return first, end


def _refuse(absent: list[_Check], text: str, start: int, end: int) -> None:
    for check in absent:
        place = text.find(check.text, start, end)
        if place >= 0:
            _fail(f'Expected to not find "{check.text}" but found it', text, place, len(check.text), check)


def _fail(words: str, text: str, place: int, length: int | None, check: _Check | str) -> NoReturn:
    """Raise an error with the lines around the place; with a length, that many characters are underlined."""
    lines = text.splitlines()
    row = text.count("\n", 0, place)
    column = place - text.rfind("\n", 0, place) - 1
    shown = lines[max(row - 2, 0) : row + 3]
    if length is not None:
        shown.insert(min(row, 2) + 1, f"{' ' * column}{'~' * length} <--- HERE")
    raise RuntimeError("\n".join([words, *shown, f"From {check}\n" if check else ""]))
