"""The cards of a picture: their text and their size. Cards show tensors beside their backward nodes.

The text is monospaced, so its width is known without the font. The page writes the same cards in `page/cards.js`.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from .model import Group, NodeBox, OperationBox, Saved, TensorBox
from .tree import Tree

Detail = Literal["outline", "cards", "values"]
"""The amount of detail on the cards: one line for each operation; shapes, formulas and saved tensors; or all available data."""

SIZE = 12.0
ADVANCE = 0.62
"""The width of a character in ems, which is slightly larger than in the widest common monospaced font."""
LINE, TITLE, ROW, PAD, PILL, PILL_GAP, PAIR, LABEL = 24.0, 26.0, 17.0, 9.0, 22.0, 9.0, 22.0, 16.0
NAME_LIMIT, VALUE_LIMIT, SHOWN_OUTPUTS = 26, 26, 4


@dataclass(slots=True)
class Row:
    """A line of a card, with a label, and a value on the right."""

    label: str
    value: str
    mood: Literal["", "stale", "freed", "hook", "place", "formula"] = ""


@dataclass(slots=True)
class Card:
    """A card. `x` is the distance of its left edge from the axis of the unit. Its top is at the line of the unit."""

    id: str
    kind: Literal["leaf", "constant", "intermediate", "node", "accumulate", "group"]
    title: str
    note: str = ""
    rows: list[Row] = field(default_factory=list)
    hint: str = ""
    root: bool = False
    mood: Literal["", "stale"] = ""
    x: float = 0.0
    width: float = 0.0
    height: float = 0.0

    def fit(self, detail: Detail) -> Card:
        """Set the size of the card to the size of its text."""
        wide = width_of(self.title, SIZE) + (10 + width_of(self.note, SIZE) if self.note else 0)
        wide += 16 if self.kind == "group" else 0
        for row in self.rows:
            gap = 12 if row.label and row.value else 0
            wide = max(wide, width_of(row.label, SIZE) + gap + width_of(row.value, SIZE))
        self.width = float(round(wide + 2 * PAD))
        self.height = (
            LINE if detail == "outline" and not self.rows else TITLE + (ROW * len(self.rows) + 7 if self.rows else 0)
        )
        return self

    @property
    def base(self) -> float:
        """Return the baseline of the title."""
        return (TITLE if self.rows else self.height) / 2 + 4


def width_of(text: str, size: float) -> float:
    """Return the width of `text` in a monospaced font, rounded up."""
    return size * sum(ADVANCE if character.isascii() else _advance(character) for character in text)


def _advance(character: str) -> float:
    if unicodedata.combining(character):
        return 0.0
    return 1.1 if unicodedata.east_asian_width(character) in "WFA" else 0.8


def shorten(text: str, limit: int, keep_end: bool = False) -> str:
    """Return `text` on one line, in at most `limit` characters, with a mark for omitted text."""
    text = " ".join(text.split())
    if len(text) <= limit:
        return text
    return "…" + text[1 - limit :] if keep_end else text[: limit - 1] + "…"


def size_of(shape: list[int] | None) -> str:
    """Return a shape as text."""
    return "" if shape is None else "[" + ", ".join(map(str, shape)) + "]"


def amount(count: int) -> str:
    """Return a number of bytes as text, in a suitable unit."""
    return _in_units(count, ("B", "KB", "MB", "GB", "TB"))


def count(number: int) -> str:
    """Return a number of parameters as a short text."""
    return _in_units(number, ("", "K", "M", "G"))


def _in_units(number: float, units: tuple[str, ...]) -> str:
    """Format a number with three digits in a suitable unit.

    Each unit is a thousand times the previous unit.

    >>> amount(999), amount(999_900), count(1500), amount(5 * 10**15)
    ('999 B', '1 MB', '1.5 K', '5000 TB')
    """
    place, shown = 0, float(f"{number:.3g}")
    while shown >= 1000 and place < len(units) - 1:
        number, place = number / 1000, place + 1
        shown = float(f"{number:.3g}")
    return f"{shown:.15g} {units[place]}".rstrip()


def plural(number: int, word: str) -> str:
    """Return a count with its noun, such as `3 operations` or `1 operation`."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def label_of(group: Group, limit: int) -> str:
    """Return the name of a group. If it is too long, omit the class of the module."""
    label = re.sub(r" \(\w+\)$", "", group.label) if len(group.label) > limit else group.label
    return shorten(label, limit, keep_end=True)


def passing(group: Group) -> str:
    """Return the shapes that enter and leave a group."""
    takes, gives = (
        ", ".join(size_of(shape) if shape else "scalar" for shape in side) for side in (group.takes, group.gives)
    )
    return f"{takes} → {gives}" if takes and gives else f"{takes} →" if takes else f"→ {gives}" if gives else ""


class Writer:
    """Creates the cards of a picture."""

    def __init__(self, tree: Tree, detail: Detail) -> None:
        self.tree = tree
        self.detail = detail
        snapshot = tree.snapshot
        self.roots = set(snapshot.roots)
        self.used = self.roots.union(*(operation.inputs for operation in snapshot.operations))
        dtypes = Counter(tensor.dtype for tensor in snapshot.tensors if tensor.dtype)
        self.dtype = dtypes.most_common(1)[0][0] if dtypes else ""

    def rare(self, dtype: str | None) -> str:
        """Return a dtype if most tensors have another dtype."""
        return "" if dtype == self.dtype else _dtype(dtype or "")

    def outputs(self, tensors: list[TensorBox], operation: OperationBox | None) -> list[Card]:
        """Create cards for the outputs of one operation.

        If there are too many, create one card for all.

        An output that only the derivative of the operation uses is not shown.
        """
        tensors = [tensor for tensor in tensors if tensor.id in self.used or tensor.name] or tensors
        if self.detail == "outline" and operation is not None:
            return [self.line(tensors, operation)]
        if len(tensors) <= SHOWN_OUTPUTS:
            return [self.tensor(tensor) for tensor in tensors]
        card = Card(tensors[0].id, "intermediate", f"{len(tensors)} outputs")
        sizes = list(dict.fromkeys(f"{size_of(tensor.shape)} {_dtype(tensor.dtype)}" for tensor in tensors))
        card.rows = [Row("", size) for size in sizes[:3]]
        card.hint = ", ".join(sizes)
        return [card.fit(self.detail)]

    def line(self, tensors: list[TensorBox], operation: OperationBox) -> Card:
        """Create one line with an operation and its result."""
        size = f"{len(tensors)} outputs" if len(tensors) > 1 else ""
        if len(tensors) == 1:
            (tensor,) = tensors
            shape = size_of(tensor.shape) if tensor.shape else tensor.data or "scalar"
            size = _joined(shorten(tensor.name or "", 14, keep_end=True), shape, self.rare(tensor.dtype))
        card = Card(
            tensors[0].id if tensors else operation.id, "intermediate", shorten(operation.name, NAME_LIMIT), size
        )
        card.root = any(tensor.id in self.roots for tensor in tensors)
        card.hint = f"{operation.name}: {size}"
        return card.fit(self.detail)

    def tensor(self, tensor: TensorBox) -> Card:
        """Create the card of a tensor: name, shape, data, gradient and flags."""
        size, dtype = size_of(tensor.shape) if tensor.shape else "", self.rare(tensor.dtype)
        card = Card(tensor.id, tensor.kind, shorten(tensor.name or "", NAME_LIMIT, keep_end=True))
        card.root = tensor.id in self.roots
        card.hint = f"{tensor.name or 'tensor'}: {size} {_dtype(tensor.dtype)}"
        scalar = "scalar" if tensor.dtype else "a constant"  # an operand that was not recorded has no dtype
        value = "" if tensor.shape else shorten(tensor.data or scalar, VALUE_LIMIT)
        if self.detail == "values":
            card.title = card.title or "tensor"
            card.note = _joined(size, dtype)
            card.rows = self._facts(tensor)
        elif card.title:
            card.note = _joined(size or value, dtype)
        else:
            card.title, card.note = size or value, dtype
        return card.fit(self.detail)

    def _facts(self, tensor: TensorBox) -> list[Row]:
        node = None if tensor.is_leaf else self.tree.nodes.get(tensor.node or "")
        rows = [
            Row("data", shorten(tensor.data, VALUE_LIMIT) if tensor.data else "not kept"),
            Row("grad", shorten(tensor.grad or "None", VALUE_LIMIT)),
            Row("grad_fn", "None" if node is None else node.name),
            Row("is_leaf", str(tensor.is_leaf)),
            Row("requires_grad", str(tensor.requires_grad)),
        ]
        if tensor.view_of:
            base = self.tree.tensors[tensor.view_of].name or "a tensor"
            rows.append(Row("view of", shorten(base, NAME_LIMIT, keep_end=True)))
        return rows

    def node(self, node: NodeBox | None) -> Card | None:
        """Create the card of a backward node: its derivative, its saved values, its hooks, and the line that created it."""
        if node is None:
            return None
        card = Card(node.id, "accumulate" if node.accumulate else "node", node.name)
        hint = [node.name, *(f"d/d{name}: {formula}" for name, formula in node.formula.items())]
        place = "" if node.line is None else node.line.place
        if node.line is not None:
            hint.append(f"{place}  {node.line.text.strip()}")
        for saved in node.saved:
            if saved.state != "none":
                of = size_of(saved.shape), _dtype(saved.dtype or ""), versions(saved), saved.state
                hint.append(_joined(f"saved {saved.name}:", *of))
        card.hint = "\n".join(hint)
        if self.detail == "outline":
            if any(saved.state == "stale" for saved in node.saved):
                card.note, card.mood = "changed", "stale"
            return card.fit(self.detail)
        for name, formula in node.derivative.items():
            card.rows.append(Row(f"∂ {shorten(self._operand(node, name), 16)}", shorten(formula, 34), "formula"))
        card.rows += [row for saved in node.saved if (row := self._saved(saved)) is not None]
        if self.detail == "values":
            card.rows += [Row(name, shorten(value, VALUE_LIMIT)) for name, value in node.values.items()]
        if node.hooks:
            card.rows.append(Row("hooks", str(len(node.hooks)), "hook"))
        if place and not node.accumulate:
            card.rows.append(Row(shorten(place, NAME_LIMIT, keep_end=True), "", "place"))
        return card.fit(self.detail)

    def _operand(self, node: NodeBox, name: str) -> str:
        """Return the variable of differentiation: the tensor's name if it is short, otherwise the parameter's name."""
        operation = self.tree.unit_of[node.id].operation
        if operation is None or name not in operation.names:
            return name
        called = self.tree.tensors[operation.inputs[operation.names.index(name)]].name or ""
        return called if called.isidentifier() and len(called) <= 8 else name

    def _saved(self, saved: Saved) -> Row | None:
        if saved.state == "none":
            return None
        label = f"saved {shorten(saved.name.removeprefix('_saved_'), NAME_LIMIT)}"
        if saved.state in ("freed", "packed"):
            return Row(label, _joined(size_of(saved.shape), saved.state), "freed" if saved.state == "freed" else "")
        tensor = self.tree.tensors.get(saved.tensor or "")
        size = size_of(saved.shape) if saved.shape else saved.data or "scalar"
        called = shorten(tensor.name or "", NAME_LIMIT, keep_end=True) if tensor is not None else ""
        what = called or _joined(size, self.rare(saved.dtype))
        if saved.state == "stale":
            return Row(label, _joined(what, versions(saved)), "stale")
        return Row(label, what)

    def group(self, group: Group) -> Card:
        """Create the card of a folded group: shapes, operations, parameters, saved bytes."""
        title = label_of(group, 36) + (f" ×{group.times}" if group.times > 1 else "")
        shapes, parameters = passing(group), plural(group.parameters, "parameter") if group.parameters else ""
        saved = f"{amount(group.bytes)} saved" if group.bytes else ""
        card = Card(group.id, "group", title)
        card.hint = "\n".join(filter(None, (title, shapes, plural(group.operations, "operation"), parameters, saved)))
        if self.detail == "outline":
            card.note = _joined(shorten(shapes, 44), f"· {count(group.parameters)} params" if group.parameters else "")
            return card.fit(self.detail)
        card.rows = [Row(shorten(shapes, 40), "")] if shapes else []
        card.rows.append(Row(plural(group.operations, "operation"), saved))
        card.rows += [Row(parameters, "")] if parameters else []
        return card.fit(self.detail)


def _joined(*parts: str) -> str:
    return " ".join(filter(None, parts))


def versions(saved: Saved) -> str:
    """Return the saved version, and the current version if it differs."""
    if saved.version_saved is None:
        return ""
    if saved.version_now in (None, saved.version_saved):
        return f"v{saved.version_saved}"
    return f"v{saved.version_saved} → v{saved.version_now}"


def _dtype(name: str) -> str:
    return name.removeprefix("torch.")
