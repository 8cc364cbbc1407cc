"""The picture of one backward in several processes, as SVG: gradients, buckets, collectives and waits of each rank over time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from html import escape
from itertools import pairwise
from typing import Any

from .vector import document, text_at

WIDTH, LEFT, MARGIN = 960.0, 92.0, 18.0
ROW, GAP = 24.0, 6.0
CHARACTER = 6.7
"""The width of a character of the font at 11 pixels."""

ROWS = {
    "layer": ("backward", "backward of a layer, until its last gradient has come"),
    "bucket": ("buckets", "a bucket: from its first gradient to its last, when it is full"),
    "call": ("MPI", "a collective, from its start until it is complete"),
    "wait": ("waits", "the program waits: exposed communication"),
}
"""For each kind of bar: the name of its rows, and its text in the legend."""


@dataclass(frozen=True)
class Bar:
    """A bar: the time of an event, in milliseconds from the beginning of a recording."""

    text: str
    start: float
    end: float

    @classmethod
    def of(cls, event: Any) -> Bar:
        """Return an event of a profile as a bar."""
        return cls(event.name, event.time_range.start / 1000, event.time_range.end / 1000)


@dataclass
class Rank:
    """The records of one rank.

    Attributes:
        number, began: the rank, and the start of its recording by its own clock, in nanoseconds.
        calls, parameters: the rows of tables.
        waits: the times at which the program waited, in milliseconds.
        nodes, arrivals: the times at which nodes ran in backward, and at which gradients arrived, in microseconds.
        buckets, state: the number of buckets, and the bytes of the optimizer's state.
    """

    number: int
    began: int
    calls: list[dict[str, Any]]
    waits: list[Bar]
    nodes: list[tuple[float, float]]
    arrivals: list[tuple[str, float]]
    parameters: list[dict[str, Any]]
    buckets: int
    state: int

    def plain(self) -> dict[str, Any]:
        """Return all data as plain data that other ranks can read."""
        return asdict(self)

    @classmethod
    def read(cls, data: dict[str, Any]) -> Rank:
        """Undo `plain`."""
        return cls(**{**data, "waits": [Bar(**bar) for bar in data["waits"]]})

    def last_backward(self) -> list[tuple[str, float]]:
        """Return the gradients that arrived in the last backward, in order, with their times in milliseconds."""
        found: dict[str, float] = {}
        for name, at in reversed(self.arrivals):
            if name in found:
                break
            found[name] = at / 1000
        return list(found.items())[::-1]

    def bars(self) -> dict[str, list[Bar]]:
        """Return the bars of the last backward, by kind."""
        arrived = self.last_backward()
        if not arrived:
            return {}
        before = [at / 1000 for _, at in self.arrivals[: -len(arrived)]]
        floor = before[-1] if before else 0.0
        start = min((low / 1000 for low, _ in self.nodes if low / 1000 > floor), default=floor)
        ends = dict(arrived)
        buckets: dict[int, list[str]] = {}
        sizes = {row["parameter"]: row["gradient"] for row in self.parameters}
        for row in self.parameters:
            if row["bucket"] is not None and row["parameter"] in ends:
                buckets.setdefault(row["bucket"], []).append(row["parameter"])
        return {
            "layer": list(_layers(arrived, start)),
            "bucket": [
                Bar(
                    f"{number}: {len(names)} gradients, {sum(map(sizes.__getitem__, names)) / 1e6:.1f} MB",
                    min(map(ends.__getitem__, names)),
                    max(map(ends.__getitem__, names)),
                )
                for number, names in sorted(buckets.items())
            ],
            "call": [
                Bar(f"{call['call']} {call['for']}".strip(), call["began"], call["began"] + call["took"])
                for call in self.calls
                if call["began"] >= start
            ],
            "wait": [bar for bar in self.waits if bar.start >= start],
        }


def _layers(arrived: list[tuple[str, float]], start: float) -> Iterable[Bar]:
    """Return the time at which all gradients of each module had arrived, module by module."""
    owners = [name.rpartition(".")[0] or name for name, _ in arrived]
    for number, (owner, following) in enumerate(pairwise([*owners, ""])):
        if owner != following:
            at = arrived[number][1]
            yield Bar(owner.removeprefix("module."), start, at)
            start = at


def draw(ranks: list[Rank], title: str = "") -> str:
    """Draw the last backward of all ranks.

    Raises:
        ValueError: if no gradient of the model has been recorded.
    """
    zero = min(rank.began for rank in ranks)
    rows: list[tuple[str, str, list[Bar]]] = []
    for rank in ranks:
        shift = (rank.began - zero) / 1e6
        rows.append(("", f"rank {rank.number}", []))
        for kind, bars in rank.bars().items():
            moved = [Bar(bar.text, bar.start + shift, bar.end + shift) for bar in bars]
            for number, lane in enumerate(_lanes(moved)):
                rows.append((kind, "" if number else ROWS[kind][0], lane))
    all_bars = [bar for _, _, bars in rows for bar in bars]
    if not all_bars:
        raise ValueError("there is no picture: no gradient of the model has come in the `with` block")
    start, end = min(bar.start for bar in all_bars), max(bar.end for bar in all_bars)
    scale = (WIDTH - LEFT - 2 * MARGIN) / max(end - start, 1e-6)
    parts, top = [], 26.0 if title else 0.0
    if title:
        parts.append(text_at(title, 0, 8, "t"))
    for kind, name, bars in rows:
        parts.append(text_at(name, 0, top + ROW - 8, "l" if kind else "t"))
        parts += [
            _bar(kind, bar, LEFT + (bar.start - start) * scale, top, (bar.end - bar.start) * scale) for bar in bars
        ]
        top += ROW + (0 if kind else 2)
    parts.append(_axis(end - start, scale, top + GAP))
    top += 44
    for kind, (_, words) in ROWS.items():
        if any(each == kind for each, _, _ in rows):
            parts += [
                f'<rect class="{kind}" x="0" y="{top - 9:.1f}" width="22" height="12" rx="3"/>',
                text_at(words, 30, top + 1, "l"),
            ]
            top += 19
    name = title or "One backward in several processes"
    return document("timeline", name, WIDTH, top + 2 * MARGIN, MARGIN, parts)


def _lanes(bars: list[Bar]) -> list[list[Bar]]:
    """Distribute the bars so that bars in one row do not overlap."""
    lanes: list[list[Bar]] = []
    for bar in sorted(bars, key=lambda bar: bar.start):
        lane = next((lane for lane in lanes if lane[-1].end <= bar.start), None)
        if lane is None:
            lanes.append([bar])
        else:
            lane.append(bar)
    return lanes


def _bar(kind: str, bar: Bar, x: float, top: float, width: float) -> str:
    said = f"{bar.text}: {bar.end - bar.start:.2f} ms"
    room = int((width - 8) / CHARACTER)
    shown = bar.text if len(bar.text) <= room else bar.text.split(": ")[0].rpartition("_coalesced ")[2]
    shown = shown if len(shown) <= room and kind != "wait" else ""
    words = text_at(shown, x + 4, top + ROW - 9, "i") if shown else ""
    return (
        f'<g><title>{escape(said)}</title><rect class="{kind}" x="{x:.1f}" y="{top + 2:.1f}" width="{max(width, 1):.1f}" '
        f'height="{ROW - 5:g}" rx="3"/>{words}</g>'
    )


def _axis(length: float, scale: float, top: float) -> str:
    step = next(size for size in _steps() if length / size <= 10)
    marks = [number * step for number in range(int(length / step) + 1)]
    ticks = "".join(f"M{LEFT + at * scale:.1f} {top:.1f}v5" for at in marks)
    words = "".join(text_at(f"{at:g}", LEFT + at * scale, top + 18, "l m") for at in marks)
    return f'<path class="axis" d="M{LEFT:g} {top:.1f}h{length * scale:.1f}{ticks}"/>{words}{text_at("ms", 0, top + 18, "l")}'


def _steps() -> Iterable[float]:
    size = 0.001
    while True:
        yield from (round(size, 6), round(2 * size, 6), round(5 * size, 6))
        size *= 10
