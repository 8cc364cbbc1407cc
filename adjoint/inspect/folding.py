"""Which groups of a large graph are drawn as one card, so that the picture stays readable."""

from __future__ import annotations

from .cards import Card, Row, Unit, amount, shorten
from .model import Group, Snapshot


def fold(snapshot: Snapshot, units: list[Unit], most: int) -> list[Unit]:
    """Replace the units in folded groups by one unit for each group.

    Groups are opened level by level as long as at most `most` units are visible.
    """
    if len(units) <= most or not snapshot.groups:
        return units
    tree = _Tree(snapshot, units)
    tree.open(most)
    folded: dict[str, list[Unit]] = {}
    seen: list[Unit] = []
    for unit, group in zip(units, tree.places, strict=True):
        name = tree.folded(group)
        if name is None:
            seen.append(unit)
        elif name in folded:
            folded[name].append(unit)
        else:
            folded[name] = [unit]
            seen.append(Unit(None, [], None, members=folded[name], group=_card(tree.groups[name])))
    for unit in seen:
        if unit.group is not None:
            _describe(unit)
    return seen


class _Tree:
    """The groups: which group contains which, and which are open."""

    def __init__(self, snapshot: Snapshot, units: list[Unit]) -> None:
        self.groups = {group.id: group for group in snapshot.groups}
        self.opened: set[str] = set()
        of_node = {node: group.id for group in snapshot.groups for node in group.nodes}
        self.places = [of_node.get(unit.node.id) if unit.node else None for unit in units]
        self._place_constants(snapshot, units)
        self.children: dict[str | None, list[str]] = {}
        for group in snapshot.groups:
            self.children.setdefault(group.parent, []).append(group.id)
        self.alone: dict[str | None, int] = {}
        for place in self.places:
            self.alone[place] = self.alone.get(place, 0) + 1

    def _place_constants(self, snapshot: Snapshot, units: list[Unit]) -> None:
        """Place a unit without a node in the group that uses it, if there is only one such group."""
        uses: dict[str, set[str | None]] = {}
        place_of = {unit.operation.id: place for unit, place in zip(units, self.places, strict=True) if unit.operation}
        for operation in snapshot.operations:
            for tensor in operation.inputs:
                uses.setdefault(tensor, set()).add(place_of.get(operation.id))
        for number, unit in enumerate(units):
            if unit.node is None and unit.operation is None:
                places = uses.get(unit.tensors[0].id, {None})
                self.places[number] = next(iter(places)) if len(places) == 1 else None

    def open(self, most: int) -> None:
        """Open groups level by level, from the outermost."""
        level = self.children.get(None, [])
        seen = self.alone.get(None, 0) + len(level)
        while level:
            within = [child for group in level for child in self.children.get(group, [])]
            seen += len(within) + sum(self.alone.get(group, 0) for group in level) - len(level)
            if seen > most:
                return
            self.opened.update(level)
            level = within

    def folded(self, group: str | None) -> str | None:
        """The outermost enclosing group that is not open."""
        found = None
        while group is not None:
            if group not in self.opened:
                found = group
            group = self.groups[group].parent
        return found


def _card(group: Group) -> Card:
    times = f" ×{group.times}" if group.times > 1 else ""
    return Card(group.id, "group", shorten(group.label, 30, keep_end=True) + times)


def _describe(unit: Unit) -> None:
    """Describe the content of a group on its card."""
    card = unit.group
    assert card is not None
    operations = sum(member.operation is not None for member in unit.members)
    leaves = sum(member.operation is None and member.node is not None for member in unit.members)
    card.rows = [Row(f"{operations:,} operation{'' if operations == 1 else 's'}", "")]
    if leaves:
        card.rows.append(Row(f"{leaves:,} {'leaf' if leaves == 1 else 'leaves'}", ""))
    held = sum(member.held for member in unit.members)
    card.rows[0].value = amount(held) if held else ""
    card.hint = f"{card.title}: {', '.join(row.label for row in card.rows)}"
    card.fit()
