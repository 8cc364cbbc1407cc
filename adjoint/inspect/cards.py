"""The cards of a picture: their text and their size. Cards show tensors beside their backward nodes.

A unit is an operation with its result tensors and its backward node, or a leaf with its AccumulateGrad; the layout
places units. The text is monospaced, so its width is known without the font.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Literal

from .model import NodeBox, OperationBox, Saved, Snapshot, TensorBox

Detail = Literal["full", "compact"]

SIZE = 11.0
ADVANCE = 0.62
"""The width of a character in ems: slightly more than that of the widest common monospaced font."""
TITLE, ROW, PAD, PILL, PILL_GAP, PAIR = 24.0, 16.0, 10.0, 20.0, 10.0, 24.0
BACKWARD_PORT = 56.0
"""The distance from the left edge of a node's card to its edges: equal for all cards, so that a chain is a straight line."""
NAME_LIMIT, VALUE_LIMIT, SHOWN_OUTPUTS = 22, 26, 4


@dataclass(slots=True)
class Row:
    """A line of a card: the label, and the value on the right."""

    label: str
    value: str
    mood: Literal["", "stale", "freed", "hook", "place"] = ""


@dataclass(slots=True)
class Card:
    """A card; `x` is the distance of its left edge from the axis of the unit. Its top is at the line of the unit."""

    id: str
    kind: Literal["leaf", "constant", "intermediate", "node", "accumulate", "group"]
    title: str
    note: str = ""
    rows: list[Row] = field(default_factory=list)
    hint: str = ""
    root: bool = False
    x: float = 0.0
    width: float = 0.0

    @property
    def height(self) -> float:
        """The height of the title and the rows."""
        return TITLE + (ROW * len(self.rows) + 7 if self.rows else 0)

    def fit(self) -> None:
        """Set the width that the text needs."""
        wide = width_of(self.title, SIZE) + (10 + width_of(self.note, SIZE - 1) if self.note else 0)
        for row in self.rows:
            gap = 12 if row.label and row.value else 0
            wide = max(wide, width_of(row.label, SIZE - 1) + gap + width_of(row.value, SIZE - 1))
        self.width = float(round(wide + 2 * PAD))


@dataclass(slots=True)
class Unit:
    """An operation with its tensors and its node, each of which may be missing; or a folded group of such units."""

    operation: OperationBox | None
    tensors: list[Card]
    node: Card | None
    held: int = 0
    """The bytes that the node has saved; each storage counts once."""
    members: list[Unit] = field(default_factory=list)
    group: Card | None = None

    @property
    def pill(self) -> float:
        """The width of the operation's name in its rounded label."""
        return 0.0 if self.operation is None else round(width_of(self.operation.name, SIZE) + 22)


def width_of(text: str, size: float) -> float:
    """The width of `text` in a monospaced font, rounded up."""
    return size * sum(ADVANCE if character.isascii() else _advance(character) for character in text)


def _advance(character: str) -> float:
    if unicodedata.combining(character):
        return 0.0
    return 1.1 if unicodedata.east_asian_width(character) in "WFA" else 0.8


def shorten(text: str, limit: int, keep_end: bool = False) -> str:
    """`text` on one line, in at most `limit` characters, with a mark where text is omitted."""
    text = " ".join(text.split())
    if len(text) <= limit:
        return text
    return "…" + text[1 - limit :] if keep_end else text[: limit - 1] + "…"


def size_of(shape: list[int] | None) -> str:
    """A shape as text."""
    return "" if shape is None else "[" + ", ".join(map(str, shape)) + "]"


def scalar_of(tensor: TensorBox) -> str:
    """The label of a tensor without a size; a tensor without a dtype is an operand that was not recorded."""
    return "scalar" if tensor.dtype else "a constant"


def amount(count: int) -> str:
    """A number of bytes in a suitable unit."""
    value, unit = float(count), "B"
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if value < 1000 or unit == "TB":
            break
        value /= 1000
    return f"{value:.3g} {unit}" if unit != "B" else f"{count} B"


def units(snapshot: Snapshot, detail: Detail) -> list[Unit]:
    """The units of a snapshot, before layout."""
    writer = _Writer(snapshot, detail)
    made = {tensor for operation in snapshot.operations for tensor in operation.outputs}
    tensors = {tensor.id: tensor for tensor in snapshot.tensors}
    nodes = {node.id: node for node in snapshot.nodes}
    found = []
    for operation in snapshot.operations:
        outputs = [tensors[name] for name in operation.outputs if name in tensors]
        node = operation.node or next((tensor.node for tensor in outputs if tensor.node), None)
        box = nodes.pop(node or "", None)
        found.append(Unit(operation, writer.outputs(outputs), writer.node(box), _held(box)))
    found += [
        Unit(None, [writer.tensor(tensor)], writer.node(nodes.pop(tensor.node or "", None)))
        for tensor in snapshot.tensors
        if tensor.id not in made
    ]
    found += [Unit(None, [], writer.node(node)) for node in nodes.values()]
    return found


def _held(node: NodeBox | None) -> int:
    return sum({saved.storage or str(saved.name): saved.bytes for saved in (node.saved if node else ())}.values())


def arrange(units: list[Unit]) -> None:
    """Make all tensor cards as wide as the widest, so that axes and lines form columns: tensors left, nodes right."""
    wide = max((card.width for unit in units for card in unit.tensors), default=100.0)
    for unit in units:
        for number, card in enumerate(reversed(unit.tensors)):
            card.width = wide
            card.x = -PAIR / 2 - wide - number * (wide + 10)
        if unit.node is not None:
            unit.node.x = PAIR / 2
        if unit.group is not None:
            unit.group.x = -PAIR / 2 - wide
            unit.group.width = max(unit.group.width, wide + PAIR + 2 * BACKWARD_PORT - 20)


class _Writer:
    """Creates cards, in full or compact form."""

    def __init__(self, snapshot: Snapshot, detail: Detail) -> None:
        self.full = detail == "full"
        self.roots = set(snapshot.roots)
        self.used = self.roots.union(*(operation.inputs for operation in snapshot.operations))
        self.names = {tensor.id: tensor.name for tensor in snapshot.tensors}
        self.node_names = {node.id: node.name for node in snapshot.nodes}
        dtypes = Counter(tensor.dtype for tensor in snapshot.tensors if tensor.dtype)
        self.dtype = dtypes.most_common(1)[0][0] if dtypes else ""

    def outputs(self, tensors: list[TensorBox]) -> list[Card]:
        """Cards for the outputs of one operation; one card for all if there are too many.

        An output that only the derivative of the operation uses is not shown.
        """
        tensors = [tensor for tensor in tensors if tensor.id in self.used or tensor.name] or tensors
        if len(tensors) <= SHOWN_OUTPUTS:
            return [self.tensor(tensor) for tensor in tensors]
        card = Card(tensors[0].id, "intermediate", f"{len(tensors)} outputs")
        sizes = list(dict.fromkeys(f"{size_of(tensor.shape)} {_dtype(tensor.dtype)}" for tensor in tensors))
        card.rows = [Row("", size) for size in sizes[:3]]
        card.hint = ", ".join(sizes)
        card.fit()
        return [card]

    def tensor(self, tensor: TensorBox) -> Card:
        """The card of a tensor: name, shape, data, gradient and flags."""
        size, dtype = size_of(tensor.shape) if tensor.shape else "", _dtype(tensor.dtype)
        card = Card(tensor.id, tensor.kind, shorten(tensor.name or "", NAME_LIMIT, keep_end=True))
        card.root = tensor.id in self.roots
        card.hint = f"{tensor.name or 'tensor'}: {size} {dtype}"
        if self.full:
            card.title = card.title or "tensor"
            card.note = f"{size} {dtype}".strip() if tensor.shape or tensor.dtype != self.dtype else ""
            card.rows = self._facts(tensor)
        elif card.title:
            card.rows = [Row(size or scalar_of(tensor), dtype)]
        else:
            card.title, card.note = size or shorten(tensor.data or scalar_of(tensor), VALUE_LIMIT), dtype
        card.fit()
        return card

    def _facts(self, tensor: TensorBox) -> list[Row]:
        function = self.node_names.get(tensor.node or "", "None") if not tensor.is_leaf else "None"
        rows = [
            Row("data", shorten(tensor.data, VALUE_LIMIT) if tensor.data else "not kept"),
            Row("grad", shorten(tensor.grad or "None", VALUE_LIMIT)),
            Row("grad_fn", function),
            Row("is_leaf", str(tensor.is_leaf)),
            Row("requires_grad", str(tensor.requires_grad)),
        ]
        if tensor.view_of:
            rows.append(
                Row("view of", shorten(self.names.get(tensor.view_of) or "a tensor", NAME_LIMIT, keep_end=True))
            )
        return rows

    def node(self, node: NodeBox | None) -> Card | None:
        """The card of a backward node: its saved values, its hooks, and the line that created it."""
        if node is None:
            return None
        card = Card(node.id, "accumulate" if node.accumulate else "node", node.name)
        card.rows = [row for saved in node.saved if (row := self._saved(saved)) is not None]
        if self.full:
            card.rows += [Row(name, shorten(value, VALUE_LIMIT)) for name, value in node.values.items()]
        if node.hooks:
            card.rows.append(Row("hooks", str(len(node.hooks)), "hook"))
        hint = [node.name, *(f"d/d{name}: {formula}" for name, formula in node.formula.items())]
        if node.line is not None:
            place = f"{PurePath(node.line.file).name}:{node.line.number}"
            hint.append(f"{place}  {node.line.text.strip()}")
            if not node.accumulate:
                card.rows.append(Row(shorten(place, NAME_LIMIT, keep_end=True), "", "place"))
        hint += [_saved_hint(saved) for saved in node.saved if saved.state != "none"]
        card.hint = "\n".join(hint)
        card.fit()
        return card

    def _saved(self, saved: Saved) -> Row | None:
        label = shorten(saved.name.removeprefix("_saved_"), NAME_LIMIT)
        if saved.state == "none":
            return Row(label, "None") if self.full else None
        if saved.state in ("freed", "packed"):
            return Row(label, " ".join(filter(None, (size_of(saved.shape), saved.state))), _mood(saved))
        name = shorten((self.names.get(saved.tensor or "") or "").rpartition(".")[2], 12, keep_end=True)
        dtype = _dtype(saved.dtype or "") if saved.dtype != self.dtype else ""
        return Row(label, " ".join(filter(None, (name, size_of(saved.shape), dtype, versions(saved)))), _mood(saved))


def versions(saved: Saved) -> str:
    """The saved version, and the current version if it differs."""
    if saved.version_saved is None:
        return ""
    if saved.version_now in (None, saved.version_saved):
        return f"v{saved.version_saved}"
    return f"v{saved.version_saved} → v{saved.version_now}"


def _mood(saved: Saved) -> Literal["", "stale", "freed"]:
    return "stale" if saved.state == "stale" else "freed" if saved.state == "freed" else ""


def _saved_hint(saved: Saved) -> str:
    parts = (f"saved {saved.name}:", size_of(saved.shape), _dtype(saved.dtype or ""), versions(saved), saved.state)
    return " ".join(filter(None, parts))


def _dtype(name: str) -> str:
    return name.removeprefix("torch.")
