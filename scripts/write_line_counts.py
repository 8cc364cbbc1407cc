"""Write the line counts of the files to read first, and their sum, into `docs/architecture.md`.

Run `python scripts/write_line_counts.py`. A test compares the page with the result of `counted`.
"""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
ROW = re.compile(r"^(\| \[`[^`]+`\]\(([^)]+\.py)\) \| )\d+( \|)", re.MULTILINE)
SUM = re.compile(r"These \d+ files (.*) [\d,]+ lines with their docstrings")


def counted(page: str) -> tuple[str, int]:
    """Return the page with the current line counts and their sum."""
    counts = {
        path: len((PAGE.parent / path).read_text(encoding="utf-8").splitlines()) for _, path, _ in ROW.findall(page)
    }
    page = ROW.sub(lambda row: f"{row[1]}{counts[row[2]]}{row[3]}", page)
    total = sum(counts.values())
    return SUM.sub(rf"These {len(counts)} files \1 {total:,} lines with their docstrings", page), total


if __name__ == "__main__":
    PAGE.write_text(counted(PAGE.read_text(encoding="utf-8"))[0], encoding="utf-8")
