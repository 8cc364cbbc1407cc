"""Lines of code with PyTorch's answers, recorded in `tests/data/recorded`, so that tests do not need PyTorch.

A record looks like an interactive session. Statements and a final expression follow `>>>`. The value of the expression,
or `ExceptionType: message`, is on the next line. A line `! WarningCategory: message` before the value is a warning. The
random seed of each record is 0.
"""

import math
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy

FOLDER = Path(__file__).parent / "data" / "recorded"


@dataclass(frozen=True)
class Record:
    """A piece of code and its recorded answer."""

    statements: tuple[str, ...]
    answer: str


def read(path: Path) -> list[Record]:
    """Return the records in a file."""
    records = []
    for block in re.split(r"\n\n(?=>>> )", path.read_text(encoding="utf-8").strip()):
        lines = block.splitlines()
        count = next((i for i, line in enumerate(lines) if not line.startswith(">>> ")), len(lines))
        statements = tuple(line.removeprefix(">>> ") for line in lines[:count])
        records.append(Record(statements, "\n".join(lines[count:]).rstrip()))
    return records


def answer(library: Any, statements: tuple[str, ...]) -> str:
    """Return the result of `library` in the form of the records."""
    names = {"torch": library, "np": numpy, "inf": math.inf, "nan": math.nan}
    library.manual_seed(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            for statement in statements[:-1]:
                exec(statement, names)
            shown = re.sub(r"\badjoint\b", "torch", repr(eval(statements[-1], names)))  # ignore the modules of classes
        except Exception as error:
            shown = f"{type(error).__name__}: {error}".rstrip().replace("request to adjoint", "request to PyTorch")
    said = [f"! {warning.category.__name__}: {str(warning.message).split(' (Triggered')[0]}" for warning in caught]
    return re.sub(r"0x[0-9a-f]+", "0x", "\n".join([*said, shown])).rstrip()
