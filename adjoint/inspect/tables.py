"""Tables that are displayed as lines in a terminal and as HTML in a notebook. Their rows are plain dicts."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from typing import Any

MOST_ROWS = 30


class Table:
    """Rows under headings. `rows` are dicts with the columns as keys. `formats` may define how values are displayed."""

    def __init__(self, title: str, columns: Sequence[str], rows: list[dict[str, Any]], formats: Any = None) -> None:
        self.title = title
        self.columns = list(columns)
        self.rows = rows
        self.formats = dict(formats or {})

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.rows[index]

    def cells(self) -> list[list[str]]:
        """Return the cells as text, row by row, without the headings."""
        return [[self._shown(column, row.get(column)) for column in self.columns] for row in self.rows[:MOST_ROWS]]

    def _shown(self, column: str, value: Any) -> str:
        if value is None:
            return "–"
        if column in self.formats:
            return str(self.formats[column](value))
        return f"{value:.3g}" if isinstance(value, float) else str(value)

    def __str__(self) -> str:
        cells = self.cells()
        widths = [max(map(len, column)) for column in zip(self.columns, *cells, strict=True)]
        right = [all(self._is_number(row.get(column)) for row in self.rows) for column in self.columns]
        lines = [self.title] if self.title else []
        for row in [self.columns, *cells]:
            parts = [
                text.rjust(width) if number else text.ljust(width)
                for text, width, number in zip(row, widths, right, strict=True)
            ]
            lines.append("  ".join(parts).rstrip())
        if len(self.rows) > MOST_ROWS:
            lines.append(f"… and {len(self.rows) - MOST_ROWS} more rows")
        return "\n".join(lines)

    __repr__ = __str__

    @staticmethod
    def _is_number(value: Any) -> bool:
        return value is None or isinstance(value, (int, float))

    def _repr_html_(self) -> str:
        def row(cells: Sequence[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        body = "".join(row(cells, "td") for cells in self.cells())
        more = f"<p>… and {len(self.rows) - MOST_ROWS} more rows</p>" if len(self.rows) > MOST_ROWS else ""
        return (
            f"<table><caption>{html.escape(self.title)}</caption><thead>{row(self.columns, 'th')}</thead>"
            f"<tbody>{body}</tbody></table>{more}"
        )
