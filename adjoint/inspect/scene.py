"""Placing units and open groups. Every open frame is laid out separately, starting with the innermost.

A frame is one box in the enclosing frame. Edges that cross the border of a frame pass through doors in the border. The
page uses the same steps in `page/scene.js`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from . import layout
from .cards import LABEL, LINE, PAIR, PILL, PILL_GAP, SIZE, Card, Detail, Writer, shorten, width_of
from .tree import Folder, Strand, Thing, Tree, Unit

HEAD_ABOVE, FRAME_HEAD, FRAME_PAD, STRAND, STACK = 11.0, 24.0, 10.0, 6.0, 8.0
BACKWARD_PORT = 56.0
"""The distance from the left edge of a node's card to its edges.

It is equal for all cards, so that a chain is a straight line.

"""
NARROWEST = 90.0
LEAF = -1000.0
"""The start value of a path that begins at a leaf. Such a path is not the main path."""


@dataclass(eq=False)
class Item:
    """An item in a frame: a unit, a folded group, an open frame, or a door of the frame.

    `x` and `y` are the positions of its axis and its line.
    """

    type: Literal["unit", "group", "frame", "door"]
    id: str
    frame: Frame
    thing: Thing | None = None
    tensors: list[Card] = field(default_factory=list)
    node: Card | None = None
    card: Card | None = None
    box: layout.Box = field(default_factory=lambda: layout.Box(0, 0, 0, 0))
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    height: float = 0.0
    pill: float = 0.0
    middle: float = 0.0
    labels: list[float] = field(default_factory=list)
    """Return the widths of the names of operands, if there are several operands."""
    order: float = 0.0
    ports: tuple[float, float] = (0.0, 0.0)
    """Return the positions of tensors and gradients at a door."""
    span: tuple[float, float] | None = None
    """Return the distance from an operation to the end of its label, towards all its operands."""
    start: float = 0.0

    @property
    def operation(self) -> str:
        """The name in the label of a unit, if it has one."""
        thing = self.thing
        return thing.operation.name if self.pill and isinstance(thing, Unit) and thing.operation else ""


@dataclass(eq=False)
class Line:
    """The part of one or more strands between two items of a frame."""

    forward: bool
    frame: Frame
    edge: Bundle
    upper_door: Item | None
    lower_door: Item | None
    alone: bool
    strands: list[Strand] = field(default_factory=list)
    offset: float = 0.0
    top: Item = field(init=False)
    bottom: Item = field(init=False)
    turned: bool = False
    top_x: float = 0.0
    bottom_x: float = 0.0
    label: str = ""
    stops: list[tuple[float, float, float]] = field(default_factory=list)
    end: tuple[float, float] = (0.0, 0.0)
    arrow: bool = False


@dataclass(eq=False)
class Bundle:
    """All lines between two items. The layout treats them as one edge."""

    one: Item
    two: Item
    lines: dict[object, Line] = field(default_factory=dict)
    edge: layout.Edge = field(default_factory=lambda: layout.Edge(0, 0))


@dataclass(eq=False)
class Frame:
    """An open group, or the whole sheet, with its contents."""

    folder: Folder
    items: dict[str, Item] = field(default_factory=dict)
    bundles: dict[tuple[str, str], Bundle] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)
    placed: layout.Layout = field(default_factory=lambda: layout.Layout(0.0, 0.0, []))
    x: float = 0.0
    y: float = 0.0


@dataclass(slots=True)
class Head:
    """The name of a frame, on its border."""

    x: float
    y: float
    width: float
    label: str
    id: str


class Scene:
    """A tree with the groups in `open` as frames. All items are placed by the constructor."""

    def __init__(self, tree: Tree, open: Collection[str], detail: Detail) -> None:
        self.tree = tree
        self.open = open
        self.detail = detail
        self.cards = Writer(tree, detail)
        self.frames: dict[str, Frame] = {}
        self.folded: dict[str, Thing | None] = {}
        self._collect()
        self._connect()
        self._shape_all()
        for frame in reversed(self.frames.values()):
            self._lay_out(frame)
        self._place_all()

    # --- contents -------------------------------------------------------------------------------------------------

    def _collect(self) -> None:
        waiting = [self.tree.root]
        for folder in waiting:
            frame = self.frames[folder.id] = Frame(folder)
            for child in folder.children:
                is_open = child.id in self.open
                kind: Literal["unit", "group", "frame"] = "frame" if is_open else "group"
                frame.items[child.id] = Item("unit" if isinstance(child, Unit) else kind, child.id, frame, child)
                if isinstance(child, Folder) and is_open:
                    waiting.append(child)

    def stand_in(self, unit: Unit) -> Thing:
        """Return the object that represents a unit in the picture: the unit itself, or the outermost folded group around it."""
        around = unit.parent
        assert around is not None
        if around.id not in self.folded:
            found, folder = None, around
            while folder.parent is not None:
                if folder.id not in self.open:
                    found = folder
                folder = folder.parent
            self.folded[around.id] = found
        return self.folded[around.id] or unit

    def _connect(self) -> None:
        """Lead every strand from frame to frame, and merge several lines between the same two objects."""
        for strand in self.tree.strands:
            start, end = self.stand_in(strand.upper), self.stand_in(strand.lower)
            if start is end:
                continue
            upper, lower = start.id, end.id
            upper_door: Item | None = None
            lower_door: Item | None = None
            above, below = start.parent, end.parent
            assert above is not None
            assert below is not None
            while above is not below:
                if above.depth >= below.depth:
                    door = self._door(above, "last", start)
                    self._line(above, (upper, upper_door), (door.id, None), strand, False)
                    upper, upper_door, above = above.id, door, above.parent
                    assert above is not None
                else:
                    door = self._door(below, "first", start)
                    self._line(below, (door.id, None), (lower, lower_door), strand, False)
                    lower, lower_door, below = below.id, door, below.parent
                    assert below is not None
            alone = start is strand.upper and end is strand.lower and upper_door is None and lower_door is None
            self._line(above, (upper, upper_door), (lower, lower_door), strand, alone)

    def _door(self, folder: Folder, pin: Literal["first", "last"], start: Thing) -> Item:
        frame, name = self.frames[folder.id], f"{folder.id} {pin} {start.id}"
        if name not in frame.items:
            leaf = isinstance(start, Unit) and start.is_leaf
            frame.items[name] = Item(
                "door", name, frame, order=-1.0 if leaf else start.order, start=LEAF if leaf else 0.0
            )
            frame.items[name].box.pin = pin
        return frame.items[name]

    def _line(
        self,
        folder: Folder,
        upper: tuple[str, Item | None],
        lower: tuple[str, Item | None],
        strand: Strand,
        alone: bool,
    ) -> None:
        frame = self.frames[folder.id]
        one, two = frame.items[upper[0]], frame.items[lower[0]]
        bundle = frame.bundles.setdefault((one.id, two.id), Bundle(one, two))
        key: object = (strand.forward, id(upper[1]), id(lower[1]))
        if alone:
            key = strand
        line = bundle.lines.get(key)
        if line is None:
            line = bundle.lines[key] = Line(strand.forward, frame, bundle, upper[1], lower[1], alone)
            frame.lines.append(line)
        line.strands.append(strand)

    # --- sizes ----------------------------------------------------------------------------------------------------

    def _shape_all(self) -> None:
        """Create the cards and compute their sizes. The cards of tensors share one width, so that axes and lines form columns."""
        self.items = [item for frame in self.frames.values() for item in frame.items.values() if item.type != "door"]
        for item in self.items:
            if isinstance(item.thing, Unit):
                item.tensors = self.cards.outputs(item.thing.tensors, item.thing.operation)
                item.node = self.cards.node(item.thing.node)
            elif item.type == "group" and isinstance(item.thing, Folder) and item.thing.group is not None:
                item.card = self.cards.group(item.thing.group)
        self.wide = max([card.width for item in self.items for card in item.tensors] + [NARROWEST])
        for item in self.items:
            if item.card is not None:
                self._shape_group(item, item.card)
            elif isinstance(item.thing, Unit):
                self._shape_unit(item, item.thing)

    def _shape_group(self, item: Item, card: Card) -> None:
        card.width = max(card.width, self.wide + PAIR + BACKWARD_PORT + 30)
        card.x = -PAIR / 2 - self.wide
        item.box = layout.Box(-card.x, card.x + card.width + STACK, 0.0, card.height + STACK)

    def _shape_unit(self, item: Item, unit: Unit) -> None:
        for number, card in enumerate(reversed(item.tensors)):
            card.width = self.wide
            card.x = -PAIR / 2 - self.wide - number * (self.wide + 10)
        if item.node is not None:
            item.node.x = PAIR / 2
        operation = None if self.detail == "outline" else unit.operation
        if operation is not None:
            if len(operation.inputs) > 1:
                item.labels = [width_of(name, SIZE) + 8 for name in operation.names]
            item.pill = float(round(max(width_of(operation.name, SIZE) + 22, sum(item.labels))))
        first, last = (item.tensors[0], item.tensors[-1]) if item.tensors else (None, None)
        item.middle = -item.pill / 2 - PAIR / 2
        if first is not None and last is not None:
            item.middle = (first.x + last.x + last.width) / 2
        item.box = layout.Box(
            -first.x if first is not None else PAIR / 2,
            item.node.x + item.node.width if item.node is not None else -PAIR / 2,
            PILL + PILL_GAP + (LABEL if item.labels else 0) if operation is not None else 0.0,
            max([LINE, item.node.height if item.node else 0.0, *(card.height for card in item.tensors)]),
            low=unit.operation is None,
            start=LEAF if unit.is_leaf else 0.0,
        )
        if operation is not None:
            item.box.left = max(item.box.left, item.pill / 2 - item.middle)
            item.box.right = max(item.box.right, item.middle + item.pill / 2)

    # --- places ---------------------------------------------------------------------------------------------------

    def _lay_out(self, frame: Frame) -> None:
        items = list(frame.items.values())
        numbers = {item.id: number for number, item in enumerate(items)}
        for pin in ("first", "last"):
            doors = [item for item in items if item.box.pin == pin]
            for door in doors:
                straight = len(doors) <= 2  # as wide as its content, so that lines are straight
                door.ports = (
                    (-PAIR / 2 - self.wide / 2, PAIR / 2 + BACKWARD_PORT) if straight else (-STRAND / 2, STRAND / 2)
                )
                door.box.left, door.box.right, door.box.start = 4 - door.ports[0], 4 + door.ports[1], door.start
        through: dict[str, int] = {}
        for bundle in frame.bundles.values():
            for end in (bundle.one, bundle.two):
                through[end.id] = through.get(end.id, 0) + 1
        for bundle in frame.bundles.values():
            edge = bundle.edge
            edge.source, edge.target = numbers[bundle.one.id], numbers[bundle.two.id]
            lines = sorted(bundle.lines.values(), key=lambda line: not line.forward)
            for number, line in enumerate(lines):
                line.offset = (number - (len(lines) - 1) / 2) * STRAND
            edge.width = STRAND * (len(lines) - 1)
            tails = {strand.tail for line in lines if line.forward for strand in line.strands}
            edge.trunk = tails.pop() if len(tails) == 1 and bundle.one.type != "group" else None
            door = bundle.one if bundle.one.type == "door" else bundle.two
            if door.type == "door" and door.ports[1] - door.ports[0] > STRAND and through[door.id] == 1:
                for line in lines:  # an object that only one door leads to is directly behind it
                    line.offset = door.ports[0 if line.forward else 1]
                edge.width = 2 * max(-door.ports[0], door.ports[1])
        gaps = (18.0, 20.0) if self.detail == "outline" else (28.0, 34.0)
        frame.placed = layout.place([item.box for item in items], [each.edge for each in frame.bundles.values()], *gaps)
        around = frame.folder.parent
        if around is None:
            return
        item = self.frames[around.id].items[frame.folder.id]
        item.width = max(frame.placed.width + 2 * FRAME_PAD, width_of(self._title(frame), SIZE) + 70)
        item.height = frame.placed.height + FRAME_HEAD + FRAME_PAD
        doors = sorted(
            (each for each in items if each.type == "door"), key=lambda each: (each.box.pin == "first", -each.order)
        )
        axis = doors[0].box.x + FRAME_PAD if doors else item.width / 2
        item.box = layout.Box(axis, item.width - axis, HEAD_ABOVE, item.height)

    def _title(self, frame: Frame) -> str:
        group = frame.folder.group
        assert group is not None
        return group.label + (f" ×{group.times}" if group.times > 1 else "")

    def _place_all(self) -> None:
        """Place everything on the whole sheet, starting with the outermost frame, and then draw the lines."""
        for frame in self.frames.values():
            for item in frame.items.values():
                item.x, item.y = frame.x + item.box.x, frame.y + item.box.y
                if item.type == "frame":
                    inner = self.frames[item.id]
                    inner.x, inner.y = item.x - item.box.left + FRAME_PAD, item.y + FRAME_HEAD
        for frame in self.frames.values():
            self._meet(frame)
            for line in frame.lines:
                self._draw(line)
        self.lines = [line for frame in self.frames.values() for line in frame.lines]
        self.heads = [self._head(item) for item in self.items if item.type == "frame"]
        sheet = self.frames["root"].placed
        self.width, self.height = sheet.width, sheet.height

    def _head(self, item: Item) -> Head:
        """Place the name of a frame where no line crosses it."""
        frame, left = self.frames[item.id], item.x - item.box.left
        right = left + item.width
        label = shorten(self._title(frame), int((item.width - 50) / width_of("m", SIZE)), keep_end=True)
        wide = width_of(label, SIZE) + 22
        ends = [end for line in frame.lines for end in ((line.top, line.top_x), (line.bottom, line.bottom_x))]
        crossing = [x for end, x in ends if end.box.pin == "first"]
        places = [left + 8, *(x + 8 for x in crossing), right - wide - 8]
        places = [x for x in places if x >= left + 4 and x + wide <= right - 4] or [left + 8]
        x = min(places, key=lambda x: sum(x - 3 < each < x + wide + 3 for each in crossing))
        return Head(x, item.y, wide, label, item.id)

    def _meet(self, frame: Frame) -> None:
        """Place the lines at one side of an object next to each other, in the order of their arrival."""
        fans: dict[tuple[str, bool, bool, str], list[Line]] = {}
        for line in frame.lines:
            one, two = line.edge.one, line.edge.two
            line.turned = one.box.rank > two.box.rank
            line.top, line.bottom = (two, one) if line.turned else (one, two)
            for at_top in (True, False):
                item = line.top if at_top else line.bottom
                card = self._tail(item, line).id if item.type == "unit" and at_top and line.forward else ""
                fans.setdefault((item.id, line.forward, at_top, card), []).append(line)
        for (_, _, at_top, _), fan in fans.items():
            self._spread(fan, at_top)

    def _spread(self, fan: list[Line], at_top: bool) -> None:
        middle, room = self._port(fan[0], at_top)
        fan.sort(key=lambda line: (self._beside(line, at_top), line.offset))
        slots = [0]  # branches of one trunk, which come from the same lane, are adjacent
        for before, here in pairwise(fan):
            lanes = bool(here.edge.edge.lanes and before.edge.edge.lanes)
            slots.append(slots[-1] + (not (lanes and self._beside(here, at_top) == self._beside(before, at_top))))
        step = min(10.0, room / (slots[-1] + 1))
        labelled = self._label(fan) if not at_top and self.detail != "outline" else 0.0
        xs, used = [], 0.0
        for line, slot in zip(fan, slots, strict=True):
            own, own_room = self._port(line, at_top)
            xs.append(middle + (slot - slots[-1] / 2) * step if own_room else own)
            if labelled:
                xs[-1] = middle - labelled / 2 + used + 4
                used += width_of(line.label, SIZE) + 8
        straight = [x for line, x in zip(fan, xs, strict=True) if abs(self._beside(line, at_top) - middle) < 0.5]
        shift = middle - straight[0] if room and straight else 0.0  # a line from directly above goes straight down
        if labelled:
            fan[0].bottom.span = min(xs) + shift - 11, max(xs) + shift + 11
        for line, x in zip(fan, xs, strict=True):
            if at_top:
                line.top_x = x + shift
            else:
                line.bottom_x = x + shift

    def _label(self, fan: list[Line]) -> float:
        """Write the names of the operands beside their lines. Return the width of all names, or 0 if there are none."""
        bottom = fan[0].bottom
        if not fan[0].forward or not bottom.labels:
            return 0.0
        for line in fan:
            line.label = ", ".join(dict.fromkeys(strand.name for strand in line.strands))
        return sum(width_of(line.label, SIZE) + 8 for line in fan)

    def _tail(self, item: Item, line: Line) -> Card:
        found = next((card for card in item.tensors if card.id == line.strands[0].tail), None)
        card = found or (item.tensors[0] if item.tensors else item.node)
        assert card is not None
        return card

    def _port(self, line: Line, at_top: bool) -> tuple[float, float]:
        """Return the position at which a line meets an object, and the range for neighbouring lines."""
        item, side = line.top if at_top else line.bottom, 0 if line.forward else 1
        if item.type == "door":
            return item.x + item.ports[side], 0.0
        if item.type == "frame":
            door = line.upper_door if item is line.edge.one else line.lower_door
            assert door is not None
            return self.frames[item.id].x + door.box.x + door.ports[side], 0.0
        if item.type == "group":
            return (
                (item.x - PAIR / 2 - self.wide / 2, self.wide / 2)
                if line.forward
                else (item.x + PAIR / 2 + BACKWARD_PORT, 64.0)
            )
        if not line.forward:
            return item.x + (item.node or item.tensors[0]).x + BACKWARD_PORT, 64.0
        if not at_top and item.pill:
            return item.x + item.middle, max(item.pill - 20, 4.0)
        card = self._tail(item, line) if at_top else item.tensors[0]
        return item.x + card.x + card.width / 2, card.width / 2

    def _beside(self, line: Line, at_top: bool) -> float:
        lanes = line.edge.edge.lanes
        if not lanes:
            return self._port(line, not at_top)[0]
        return line.frame.x + lanes[0 if at_top != line.turned else -1] + line.offset

    def _draw(self, line: Line) -> None:
        frame, top, bottom, bands = line.frame, line.top, line.bottom, line.frame.placed.bands
        lanes = [frame.x + x + line.offset for x in line.edge.edge.lanes]
        if line.turned:
            lanes.reverse()
        foot, head = top.y + top.box.below, bottom.y - bottom.box.above
        if top.type == "unit":
            foot = top.y + (self._tail(top, line) if line.forward else top.node or top.tensors[0]).height
        elif top.type == "door":
            foot = top.y - (FRAME_HEAD if top.box.pin == "first" else 0)
        if bottom.type == "unit":
            head = bottom.y - (PILL + PILL_GAP if line.forward and bottom.pill else 0)
        elif bottom.type == "frame":
            head = bottom.y
        elif bottom.type == "door":
            head = bottom.y + FRAME_PAD
        stops = [(line.top_x, foot, frame.y + bands[top.box.rank][1])]
        for number, x in enumerate(lanes, start=top.box.rank + 1):
            stops.append((x, frame.y + bands[number][0], frame.y + bands[number][1]))
        stops.append((line.bottom_x, frame.y + bands[bottom.box.rank][0], head))
        downward = line.forward != line.turned
        line.stops = stops if downward else [(x, end, start) for x, start, end in reversed(stops)]
        line.end = (line.bottom_x, head) if downward else (line.top_x, foot)
        line.arrow = (bottom if downward else top).type not in ("door", "frame")
