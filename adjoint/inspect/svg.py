"""The picture of a graph as SVG, generated in Python alone: for a README, a paper, a slide.

The forward computation flows down through the tensors. Beside each tensor is its backward node, and the edges of
gradients (`next_functions`) go up from node to node. The colours follow the reader's `prefers-color-scheme`, light or
dark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from html import escape
from itertools import pairwise

from . import cards, layout
from .cards import BACKWARD_PORT, PAIR, PILL, PILL_GAP, ROW, SIZE, TITLE, Card, Detail, Unit
from .folding import fold
from .model import Snapshot
from .palette import COLOURS

MARGIN, LEGEND_ROW = 28.0, 24.0
FULL = 10
"""A graph with at most this many tensors is shown in full."""
MOST = 80
"""In a larger graph, groups are folded."""
STACK = 8.0
STRAND = 6.0

FONT = 'ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace'
SHAPES = """
text{font-size:11px}
.t{font-weight:600}
.r,.l{font-size:10px}
.e{text-anchor:end}
.m{text-anchor:middle}
.stale,.pill text,.i{font-weight:600}
.i{font-size:9px}
.freed{text-decoration:line-through;opacity:.55}
.place{font-style:italic}
.b{stroke-width:1.2}
.root .b{stroke-width:2.4}
.accumulate .b{stroke-dasharray:4 2.5}
.h{opacity:.18}
.f,.g,.n{fill:none;stroke-width:1.4}
.n{stroke-dasharray:1.5 3.5;stroke-linecap:round;stroke-width:1.7}
"""
COLOURED = """
.page{fill:$page}
text{fill:$ink}
.l,.place{fill:$soft}
.hook{fill:$hook}
.stale{fill:$stale}
.leaf .b{fill:$leaf;stroke:$leaf-line}
.constant .b{fill:$constant;stroke:$constant-line}
.intermediate .b{fill:$made;stroke:$made-line}
.node .b{fill:$node;stroke:$node-line}
.accumulate .b{fill:$page;stroke:$leaf-line}
.leaf .h{fill:$leaf-line}
.constant .h{fill:$constant-line}
.intermediate .h{fill:$made-line}
.node .h{fill:$node-line}
.group .b{fill:$page;stroke:$group-line}
.group .h{fill:$group-line}
.pill rect{fill:$pill}
.pill text{fill:$pill-ink}
.f{stroke:$line}
.g{stroke:$back}
.n{stroke:$node-line}
.hf{fill:$line}
.hg,.i{fill:$back}
"""

MARKERS = "".join(
    f'<marker id="adjoint-{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7.5" markerHeight="7.5" orient="auto" '
    f'markerUnits="userSpaceOnUse"><path class="h{name}" d="M0 .8 8 4 0 7.2z"/></marker>'
    for name in ("f", "g")
)


@dataclass(slots=True)
class Strand:
    """One line of an edge between two units: a use of a tensor, or a gradient.

    `upper` and `lower` are the units by their positions in the picture; `down` gives the direction of the line.
    """

    forward: bool
    tail: str
    head: str
    upper: int
    lower: int
    index: int = 0
    down: bool = True
    offset: float = 0.0
    lanes: list[float] = field(default_factory=list)
    start: float = 0.0
    end: float = 0.0


def render(snapshot: Snapshot, detail: Detail | None = None, most: int = MOST) -> str:
    """The snapshot as an SVG document.

    `detail="full"` writes `data`, `grad`, `grad_fn`, `is_leaf` and `requires_grad` on every tensor's card, `"compact"`
    only name, shape and dtype; by default small graphs are shown in full. If there are more than `most` units, groups
    (modules, repeated blocks) are drawn as one card each.
    """
    units = cards.units(snapshot, detail or ("full" if len(snapshot.tensors) <= FULL else "compact"))
    units = fold(snapshot, units, most)
    cards.arrange(units)
    strands = _strands(snapshot, units)
    boxes, edges = [_box(unit) for unit in units], _edges(strands)
    placed = layout.place(boxes, list(edges.values()), column_gap=26.0)
    for strand in strands:
        _follow(strand, boxes, edges[strand.upper, strand.lower])
    for box in boxes:
        box.x, box.y = box.x + MARGIN, box.y + MARGIN
    picture = _Picture(units, boxes, [(top + MARGIN, bottom + MARGIN) for top, bottom in placed.bands])
    picture.meet(strands)
    width = max(placed.width, 320.0) + 2 * MARGIN
    body = [picture.strand(strand) for strand in strands]
    body += [picture.unit(unit, box) for unit, box in zip(units, boxes, strict=True)]
    legend, height = _legend(snapshot, units, width, placed.height + 2 * MARGIN)
    return _document(snapshot, width, height, [*body, legend])


def _box(unit: Unit) -> layout.Box:
    if unit.group is not None:
        group = unit.group
        return layout.Box(-group.x, group.x + group.width + STACK, 0.0, group.height + STACK)
    below = max([card.height for card in unit.tensors] + [unit.node.height if unit.node else TITLE])
    left = max([-card.x for card in unit.tensors] + [PAIR / 2])
    right = unit.node.x + unit.node.width if unit.node else -PAIR / 2
    if unit.operation is not None:
        left, right = max(left, unit.pill / 2 - _middle(unit)), max(right, unit.pill / 2 + _middle(unit))
    return layout.Box(left, right, PILL + PILL_GAP if unit.operation else 0.0, below)


def _strands(snapshot: Snapshot, units: list[Unit]) -> list[Strand]:
    """Every use of a tensor by an operation, and every entry of `next_functions` with a node; between groups, one each way."""
    home: dict[str, int] = {}
    for number, unit in enumerate(units):
        for member in unit.members or [unit]:
            home |= dict.fromkeys((card.id for card in member.tensors), number)
            if member.operation:
                home |= dict.fromkeys((member.operation.id, *member.operation.outputs), number)
            if member.node:
                home[member.node.id] = number
    found = [
        Strand(True, tensor, operation.id, home[tensor], home[operation.id])
        for operation in snapshot.operations
        for tensor in operation.inputs
        if tensor in home
    ]
    found += [
        Strand(False, node.id, following, home[following], home[node.id], index, down=False)
        for node in snapshot.nodes
        for following, index in node.next
        if following in home
    ]
    return _bundled([strand for strand in found if strand.upper != strand.lower], units)


def _bundled(strands: list[Strand], units: list[Unit]) -> list[Strand]:
    """The strands, joined if they begin or end in the same folded group."""
    kept: dict[object, Strand] = {}
    for strand in strands:
        for number, at_tail in ((strand.upper, strand.forward), (strand.lower, not strand.forward)):
            group = units[number].group
            if group is not None and at_tail:
                strand.tail, strand.index = group.id, 0
            elif group is not None:
                strand.head, strand.index = group.id, 0
        folded = units[strand.upper].group or units[strand.lower].group
        key = (strand.forward, strand.tail, strand.head) if folded else id(strand)
        kept.setdefault(key, strand)
    return list(kept.values())


def _edges(strands: list[Strand]) -> dict[tuple[int, int], layout.Edge]:
    """The edges for the layout: the strands between two units are side by side, forward ones on the left."""
    bundles: dict[tuple[int, int], list[Strand]] = {}
    for strand in strands:
        bundles.setdefault((strand.upper, strand.lower), []).append(strand)
    for bundle in bundles.values():
        for number, strand in enumerate(sorted(bundle, key=lambda strand: not strand.forward)):
            strand.offset = (number - (len(bundle) - 1) / 2) * STRAND
    return {pair: layout.Edge(*pair, STRAND * (len(bundle) - 1), _trunk(bundle)) for pair, bundle in bundles.items()}


def _trunk(bundle: list[Strand]) -> str | None:
    """The common trunk of edges: a tensor that is used in several places."""
    tails = {strand.tail for strand in bundle if strand.forward}
    return tails.pop() if len(tails) == 1 else None


def _follow(strand: Strand, boxes: list[layout.Box], edge: layout.Edge) -> None:
    """Set the path of a strand from the lanes of an edge, which the layout may have reversed to break a cycle."""
    strand.lanes = [x + MARGIN + strand.offset for x in edge.lanes]
    if boxes[strand.upper].rank > boxes[strand.lower].rank:
        strand.upper, strand.lower, strand.down = strand.lower, strand.upper, not strand.down
        strand.lanes.reverse()


class _Picture:
    """Draws units and strands at the positions of the layout."""

    def __init__(
        self,
        units: list[Unit],
        boxes: list[layout.Box],
        bands: list[tuple[float, float]],
    ) -> None:
        self.units, self.boxes, self.bands = units, boxes, bands

    def meet(self, strands: list[Strand]) -> None:
        """Set where each strand leaves and arrives: side by side where there are several, in their order."""
        fans: dict[tuple[str, bool, bool], list[Strand]] = {}
        for strand in strands:
            fans.setdefault((strand.tail, strand.forward, True), []).append(strand)
            fans.setdefault((strand.head, strand.forward, False), []).append(strand)
        for (_, _, leaving), fan in fans.items():
            middle, room = self._port(fan[0], fan[0].down == leaving)
            fan.sort(key=partial(self._beside, leaving))
            slots = _slots([(self._beside(leaving, strand)[0], bool(strand.lanes)) for strand in fan])
            step = min(10.0, room / (slots[-1] + 1))
            for slot, strand in zip(slots, fan, strict=True):
                x = middle + (slot - slots[-1] / 2) * step
                if leaving:
                    strand.start = x
                else:
                    strand.end = x

    def _port(self, strand: Strand, at_upper: bool) -> tuple[float, float]:
        """The centre of the connection of strands to a unit, and their maximum spread."""
        number = strand.upper if at_upper else strand.lower
        unit, axis = self.units[number], self.boxes[number].x
        if not strand.forward:
            return axis + PAIR / 2 + BACKWARD_PORT, 64.0
        if unit.group is not None:
            return axis + (unit.group.x - PAIR / 2) / 2, -unit.group.x / 2
        if not at_upper or not unit.tensors:
            return axis + _middle(unit), max(unit.pill - 20, 4.0)
        card = next((card for card in unit.tensors if card.id == strand.tail), unit.tensors[0])
        return axis + card.x + card.width / 2, card.width / 2

    def _beside(self, leaving: bool, strand: Strand) -> tuple[float, float]:
        """The position of the other end of a strand."""
        at_upper = strand.down == leaving
        if strand.lanes:
            return strand.lanes[0 if at_upper else -1], strand.offset
        return self._port(strand, not at_upper)[0], strand.offset

    def strand(self, strand: Strand) -> str:
        """Draw a strand down (a tensor) or up (a gradient) through the ranks: straight within ranks, curved between them."""
        upper, lower = self.boxes[strand.upper], self.boxes[strand.lower]
        top = upper.y + self._foot(strand)
        bottom = (
            lower.y if not strand.forward else lower.y - (PILL + PILL_GAP if self.units[strand.lower].operation else 0)
        )
        first, last = (strand.start, strand.end) if strand.down else (strand.end, strand.start)
        stops = [(first, top, self.bands[upper.rank][1])]
        stops += [(x, *self.bands[upper.rank + number]) for number, x in enumerate(strand.lanes, start=1)]
        stops.append((last, self.bands[lower.rank][0], bottom))
        css = "f" if strand.forward else "g"
        data = path(stops if strand.down else [(x, end, start) for x, start, end in reversed(stops)])
        ends = f'data-from="{strand.tail}" data-to="{strand.head}"'
        line = f'<path class="{css}" d="{data}" marker-end="url(#adjoint-{css})" {ends}/>'
        if not strand.forward and strand.index:
            line += f'<text class="i" x="{number_text(first + 4)}" y="{number_text(top + 13)}">{strand.index}</text>'
        return line

    def _foot(self, strand: Strand) -> float:
        unit = self.units[strand.upper]
        if unit.group is not None:
            return unit.group.height + STACK
        if not strand.forward or not unit.tensors:
            return unit.node.height if unit.node else 0.0
        return next((card for card in unit.tensors if card.id == strand.tail), unit.tensors[0]).height

    def unit(self, unit: Unit, box: layout.Box) -> str:
        """The label of the operation, the cards, and the dotted line for `grad_fn`."""
        if unit.group is not None:
            return _card(unit.group, box.x + unit.group.x, box.y)
        parts = []
        if unit.operation is not None:
            parts.append(_pill(unit, box))
        if unit.node is not None and unit.tensors:
            start, y = box.x + unit.tensors[-1].x + unit.tensors[-1].width, box.y + TITLE / 2
            parts.append(f'<path class="n" d="M{number_text(start + 4)} {number_text(y)}h{number_text(PAIR - 7)}"/>')
        parts += [_card(card, box.x + card.x, box.y) for card in [*unit.tensors, *([unit.node] if unit.node else [])]]
        return "".join(parts)


def _slots(comes_from: list[tuple[float, bool]]) -> list[int]:
    """Positions side by side; branches of one trunk, which come from the same lane, share a position."""
    slots = [0]
    for before, here in pairwise(comes_from):
        slots.append(slots[-1] + (before != here or not here[1]))
    return slots


def path(stops: list[tuple[float, float, float]]) -> str:
    """A line through vertical segments `(x, from y, to y)`, joined by curves with vertical tangents at the ends."""
    x, y, end = stops[0]
    parts = [f"M{number_text(x)} {number_text(y)}"]
    if abs(end - y) > 0.5:
        parts.append(f"V{number_text(end)}")
    for next_x, top, bottom in stops[1:]:
        half = (top - end) / 2
        if abs(next_x - x) < 0.5:
            parts.append(f"L{number_text(next_x)} {number_text(top)}")
        else:
            points = ((x, end + half), (next_x, top - half), (next_x, top))
            parts.append("C" + " ".join(f"{number_text(px)} {number_text(py)}" for px, py in points))
        if abs(bottom - top) > 0.5:
            parts.append(f"V{number_text(bottom)}")
        x, end = next_x, bottom
    return "".join(parts)


def number_text(value: float) -> str:
    """A coordinate with one decimal."""
    return f"{value:.1f}".rstrip("0").rstrip(".") if value % 1 else str(int(value))


def _middle(unit: Unit) -> float:
    """The centre of a unit's tensors relative to its axis: the position of its label."""
    if not unit.tensors:
        return -unit.pill / 2 - PAIR / 2
    return (unit.tensors[0].x + unit.tensors[-1].x + unit.tensors[-1].width) / 2


def _pill(unit: Unit, box: layout.Box) -> str:
    assert unit.operation is not None
    middle, top = box.x + _middle(unit), box.y - PILL - PILL_GAP
    lines = "".join(
        f'<path class="f" d="{path([(middle, top + PILL, top + PILL), (box.x + card.x + card.width / 2, box.y, box.y)])}"/>'
        for card in unit.tensors
    )
    return (
        f'{lines}<g class="pill"><rect x="{number_text(middle - unit.pill / 2)}" y="{number_text(top)}" '
        f'width="{number_text(unit.pill)}" height="{number_text(PILL)}" rx="10"/>'
        f"{_text(unit.operation.name, middle, top + 14, 'm')}</g>"
    )


def _card(card: Card, x: float, y: float) -> str:
    width, height = card.width, card.height
    radius = {"accumulate": 12.0, "group": 9.0}.get(card.kind, 6.0)
    size = f'width="{number_text(width)}" height="{number_text(height)}" rx="{number_text(radius)}"'
    parts = [
        f'<g class="{card.kind}{" root" if card.root else ""}" data-id="{card.id}"><title>{escape(card.hint)}</title>'
    ]
    offsets = (STACK, STACK / 2, 0.0) if card.kind == "group" else (0.0,)
    parts += [f'<rect class="b" x="{number_text(x + off)}" y="{number_text(y + off)}" {size}/>' for off in offsets]
    if card.rows and card.kind != "accumulate":
        h, r = number_text(TITLE - radius), number_text(radius)
        around = f"v-{h}a{r} {r} 0 0 1 {r}-{r}h{number_text(width - 2 * radius)}a{r} {r} 0 0 1 {r} {r}v{h}z"
        parts.append(f'<path class="h" d="M{number_text(x)} {number_text(y + TITLE)}{around}"/>')
    alone = not card.note and not card.rows
    parts.append(_text(card.title, x + (width / 2 if alone else cards.PAD), y + 16, "t m" if alone else "t"))
    if card.note:
        parts.append(_text(card.note, x + width - cards.PAD, y + 16, "l e"))
    for number, row in enumerate(card.rows):
        base = y + TITLE + ROW * number + 14
        if row.label:
            parts.append(_text(row.label, x + cards.PAD, base, f"l {row.mood}".strip()))
        if row.value:
            parts.append(_text(row.value, x + width - cards.PAD, base, f"r e {row.mood}".strip()))
    return "".join(parts) + "</g>"


def _text(words: str, x: float, y: float, css: str) -> str:
    return f'<text class="{css}" x="{number_text(x)}" y="{number_text(y)}">{escape(words, quote=False)}</text>'


def _legend(snapshot: Snapshot, units: list[Unit], width: float, top: float) -> tuple[str, float]:
    """The legend of the colours and lines that occur in the picture; and the bottom of the picture."""
    entries = list(_entries(snapshot, units))
    parts, x, y = [], MARGIN, top
    for words, draw in entries:
        wide = 30 + cards.width_of(words, SIZE - 1)
        if x + wide > width - MARGIN and x > MARGIN:
            x, y = MARGIN, y + LEGEND_ROW
        parts += [draw(x, y), _text(words, x + 27, y + 4, "l")]
        x += wide + 18
    return "".join(parts), y + LEGEND_ROW


def _entries(snapshot: Snapshot, units: list[Unit]) -> Iterable[tuple[str, Callable[[float, float], str]]]:
    def swatch(css: str) -> Callable[[float, float], str]:
        return lambda x, y: (
            f'<g class="{css}"><rect class="b" x="{number_text(x)}" y="{number_text(y - 6)}" width="20" height="12" '
            f'rx="{6 if css == "accumulate" else 3}"/></g>'
        )

    def line(css: str, marker: str = "") -> Callable[[float, float], str]:
        end = f' marker-end="url(#adjoint-{marker})"' if marker else ""
        return lambda x, y: f'<path class="{css}" d="M{number_text(x)} {number_text(y)}h20"{end}/>'

    kinds = {tensor.kind for tensor in snapshot.tensors}
    if "leaf" in kinds:
        yield "leaf that requires grad", swatch("leaf")
    if "constant" in kinds:
        yield "leaf off the graph", swatch("constant")
    if "intermediate" in kinds:
        yield "intermediate tensor", swatch("intermediate")
    if any(not node.accumulate for node in snapshot.nodes):
        yield "backward node", swatch("node")
    if any(node.accumulate for node in snapshot.nodes):
        yield "adds to .grad", swatch("accumulate")
    if any(unit.group for unit in units):
        yield "folded group", swatch("group")
    yield "forward", line("f", "f")
    if snapshot.nodes:
        yield "grad_fn", line("n")
        yield "next_functions", line("g", "g")
    states = {saved.state for node in snapshot.nodes for saved in node.saved}
    if "stale" in states:
        yield "changed since saved", lambda x, y: _text("v1", x + 4, y + 4, "r stale")
    if "freed" in states:
        yield "freed by backward", lambda x, y: _text("[3]", x, y + 4, "r freed")


def _style() -> str:
    """The CSS rules, restricted to this picture: the document around it may have rules of its own."""
    light, dark = (_coloured(scheme) for scheme in (0, 1))
    return f"{_of_picture(SHAPES)}{_of_picture(light)}@media(prefers-color-scheme:dark){{{_of_picture(dark)}}}"


def _coloured(scheme: int) -> str:
    return re.sub(r"\$([a-z-]+)", lambda name: COLOURS[name[1]][scheme], COLOURED)


def _of_picture(rules: str) -> str:
    return re.sub(r"(^|,)(?=[.a-z][^{}]*{)", r"\1.adjoint ", rules.strip(), flags=re.MULTILINE).replace("\n", "")


def _document(snapshot: Snapshot, width: float, height: float, body: list[str]) -> str:
    title = escape(snapshot.title or "A graph of automatic differentiation")
    size = f'viewBox="0 0 {number_text(width)} {number_text(height)}" width="{number_text(width)}" height="{number_text(height)}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="adjoint" {size} role="img" aria-label="{title}"'
    return "\n".join(
        [
            f"{head} font-family='{FONT}'><title>{title}</title>",
            f"<style>{_style()}</style>",
            f"<defs>{MARKERS}</defs>",
            '<rect class="page" width="100%" height="100%" rx="10"/>',
            *body,
            "</svg>\n",
        ]
    )
