"""Writing the picture of a graph as SVG, in pure Python, for a README, a paper or a slide.

Forward tensors are arranged from top to bottom. Each tensor has its backward node beside it, and the edges of gradients
(`next_functions`) lead upward from node to node. Modules are frames. The colours follow the reader's
`prefers-color-scheme`, light or dark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from html import escape

from . import cards
from .cards import PAIR, PILL, PILL_GAP, ROW, SIZE, TITLE, Card, Detail
from .model import Snapshot
from .scene import STACK, Head, Item, Line, Scene
from .tree import Tree, opened
from .vector import document, number_text, text_at

MARGIN, LEGEND_ROW = 24.0, 24.0
FULL = 10
"""A graph with at most this number of tensors is shown with all values."""
MOST_CARDS = 16
"""A graph with more visible units is shown in outline."""
MOST = 60
"""In a graph with more objects, groups are folded."""

MARKERS = "".join(
    f'<marker id="adjoint-{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7.5" markerHeight="7.5" orient="auto" '
    f'markerUnits="userSpaceOnUse"><path class="h{name}" d="M0 .8 8 4 0 7.2z"/></marker>'
    for name in ("f", "g")
)


def render(snapshot: Snapshot, detail: Detail | None = None, most: int = MOST) -> str:
    """Return the snapshot as an SVG document.

    `detail="values"` writes `data`, `grad`, `grad_fn`, `is_leaf` and `requires_grad` on the card of every tensor.
    `"cards"` writes shapes, formulas and saved tensors. `"outline"` writes one line per operation. By default smaller
    graphs have more detail. Groups (modules, functions, repeated blocks) are drawn as frames. If more than `most`
    objects would be visible, each group is drawn as one card.
    """
    tree = Tree(snapshot)
    open = opened(tree, most)
    scene = Scene(tree, open, detail or _detail(snapshot, tree, open))
    width = max(scene.width, 320.0) + 2 * MARGIN
    body = [_frame(item) for item in scene.items if item.type == "frame"]
    body += map(_line, scene.lines)
    body += [_item(item) for item in scene.items if item.type != "frame"]
    body += map(_head, scene.heads)
    legend, height = _legend(snapshot, scene, width - MARGIN, scene.height + MARGIN)
    title = snapshot.title or "A graph of automatic differentiation"
    return document("drawing", title, width, height + MARGIN, MARGIN, [f"<defs>{MARKERS}</defs>", *body, legend])


def _detail(snapshot: Snapshot, tree: Tree, open: Collection[str]) -> Detail:
    if len(snapshot.tensors) <= FULL:
        return "values"
    visible = [unit for unit in tree.units if unit.parent is tree.root or (unit.parent and unit.parent.id in open)]
    return "cards" if len(visible) <= MOST_CARDS else "outline"


def _frame(item: Item) -> str:
    x, y = number_text(item.x - item.box.left), number_text(item.y)
    size = f'width="{number_text(item.width)}" height="{number_text(item.height)}"'
    return f'<g class="frame" data-id="{item.id}"><rect class="b" x="{x}" y="{y}" {size} rx="12"/></g>'


def _head(head: Head) -> str:
    size = f'width="{number_text(head.width)}" height="22" rx="11"'
    rect = f'<rect class="b" x="{number_text(head.x)}" y="{number_text(head.y - 11)}" {size}/>'
    return f'<g class="head">{rect}{text_at(head.label, head.x + 11, head.y + 4, "t")}</g>'


def _line(line: Line) -> str:
    css = "f" if line.forward else "g"
    data = path(line.stops)
    if not line.arrow:
        return f'<path class="{css}" d="{data}"/>'
    ends = Counter(f"{strand.tail}:{strand.head}" for strand in line.strands)
    edges = " ".join(f"{between}:{number}" for between, number in ends.items())
    drawn = f'<path class="{css}" d="{data}" marker-end="url(#adjoint-{css})" data-edges="{edges}"/>'
    x, y = line.end
    index = line.strands[0].index
    if not line.forward and line.alone and index:
        drawn += text_at(str(index), x + 4, y + 14, "i")
    if line.label:
        drawn += text_at(line.label, x + 4, y - 6, "o")
    return drawn


def path(stops: list[tuple[float, float, float]]) -> str:
    """Return a line through vertical segments `(x, from y, to y)`, joined by curves with vertical tangents at the ends."""
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


def _item(item: Item) -> str:
    """Draw a folded group, or a unit with the label of its operation, its cards, and the dotted line for `grad_fn`."""
    if item.card is not None:
        return _card(item.card, item.x + item.card.x, item.y)
    parts = []
    if item.operation:
        parts.append(_pill(item))
    if item.node is not None and item.tensors:
        y = item.y + (TITLE if item.node.rows else item.node.height) / 2
        parts.append(
            f'<path class="n" d="M{number_text(item.x - PAIR / 2 + 4)} {number_text(y)}h{number_text(PAIR - 7)}"/>'
        )
    parts += [_card(card, item.x + card.x, item.y) for card in [*item.tensors, *([item.node] if item.node else [])]]
    return "".join(parts)


def _pill(item: Item) -> str:
    middle, top = item.x + item.middle, item.y - PILL - PILL_GAP
    half = cards.width_of(item.operation, SIZE) / 2 + 11
    first, last = item.span or (middle, middle)
    left, right = min(middle - half, first), max(middle + half, last)
    lines = "".join(
        f'<path class="f" d="{path([(middle, top + PILL, top + PILL), (item.x + card.x + card.width / 2, item.y, item.y)])}"/>'
        for card in item.tensors
    )
    return (
        f'{lines}<g class="pill"><rect x="{number_text(left)}" y="{number_text(top)}" '
        f'width="{number_text(right - left)}" height="{number_text(PILL)}" rx="11"/>'
        f"{text_at(item.operation, (left + right) / 2, top + 15, 'm')}</g>"
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
    parts.append(text_at(card.title, x + (width / 2 if alone else cards.PAD), y + card.base, "t m" if alone else "t"))
    if card.note:
        parts.append(text_at(card.note, x + width - cards.PAD, y + card.base, f"l e {card.mood}".strip()))
    for number, row in enumerate(card.rows):
        base = y + TITLE + ROW * number + 14
        if row.label:
            parts.append(text_at(row.label, x + cards.PAD, base, f"l {row.mood}".strip()))
        if row.value:
            parts.append(text_at(row.value, x + width - cards.PAD, base, f"r e {row.mood}".strip()))
    return "".join(parts) + "</g>"


def _legend(snapshot: Snapshot, scene: Scene, width: float, top: float) -> tuple[str, float]:
    """Draw the legend of the colours and lines in the picture, and return the bottom of the picture."""
    entries = list(_entries(snapshot, scene))
    parts, x, y = [], 0.0, top
    for words, draw in entries:
        wide = 30 + cards.width_of(words, SIZE)
        if x + wide > width - MARGIN and x > 0:
            x, y = 0.0, y + LEGEND_ROW
        parts += [draw(x, y), text_at(words, x + 27, y + 4, "l")]
        x += wide + 18
    return "".join(parts), y + LEGEND_ROW


def _entries(snapshot: Snapshot, scene: Scene) -> Iterable[tuple[str, Callable[[float, float], str]]]:
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
    if any(item.card for item in scene.items):
        yield "folded group", swatch("group")
    yield "forward", line("f", "f")
    if snapshot.nodes:
        yield "grad_fn", line("n")
        yield "next_functions", line("g", "g")
    states = {saved.state for node in snapshot.nodes for saved in node.saved}
    if "stale" in states:
        yield "changed since saved", lambda x, y: text_at("v1", x + 4, y + 4, "r stale")
    if "freed" in states:
        yield "freed by backward", lambda x, y: text_at("[3]", x, y + 4, "r freed")
