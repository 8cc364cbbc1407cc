"""The parts of a snapshot that are drawn: units, the strands between them, and the tree of groups around them.

A unit is an operation with its result tensors and its backward node, or a leaf with its `AccumulateGrad`. The page
builds the same parts in `page/model.js`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from .model import Group, NodeBox, OperationBox, Snapshot, TensorBox


@dataclass(eq=False)
class Thing:
    """A unit or a group inside another group. `order`: its position in the order of the computation."""

    id: str
    order: float
    parent: Folder | None = None


@dataclass(eq=False)
class Unit(Thing):
    """An operation with its tensors and its node. Each of these may be missing."""

    operation: OperationBox | None = None
    tensors: list[TensorBox] = field(default_factory=list)
    node: NodeBox | None = None

    @property
    def is_leaf(self) -> bool:
        """Whether the unit is a leaf that requires grad."""
        return self.operation is None and bool(self.tensors) and self.tensors[0].kind == "leaf"


@dataclass(eq=False)
class Folder(Thing):
    """A group with its contents. The outermost folder has no record."""

    group: Group | None = None
    depth: int = 0
    children: list[Thing] = field(default_factory=list)


@dataclass(eq=False)
class Strand:
    """A use of a tensor by an operation, or an entry of `next_functions` that is a node."""

    forward: bool
    tail: str
    head: str
    upper: Unit
    lower: Unit
    index: int = 0
    name: str = ""


class Tree:
    """The units, strands and groups of a snapshot. `root` is the outermost folder."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.tensors = {tensor.id: tensor for tensor in snapshot.tensors}
        self.nodes = {node.id: node for node in snapshot.nodes}
        self.unit_of: dict[str, Unit] = {}
        self.units = list(self._units())
        self.strands = list(self._strands())
        first: dict[str, float] = {}
        for strand in self.strands:
            if strand.upper.operation is None:
                key = strand.upper.id
                first[key] = min(first.get(key, strand.lower.order), strand.lower.order)
        for unit in self.units:
            unit.order = first.get(unit.id, unit.order + 0.5) - 0.5
        self.units.sort(key=lambda unit: unit.order)
        self.root = Folder("root", 0.0)
        self._nest()

    def _units(self) -> Iterator[Unit]:
        made = {key for operation in self.snapshot.operations for key in operation.outputs}
        placed: set[str] = set()
        drafts: list[tuple[OperationBox | None, list[TensorBox]]] = [
            (operation, [self.tensors[key] for key in operation.outputs if key in self.tensors])
            for operation in self.snapshot.operations
        ]
        drafts += [(None, [tensor]) for tensor in self.snapshot.tensors if tensor.id not in made]
        count = 0
        for operation, tensors in drafts:
            key = (operation.node if operation else None) or next((each.node for each in tensors if each.node), None)
            node = self.nodes.get(key or "")
            if node is not None and node.id in placed:
                node = None
            yield self._known(Unit(f"u{count}", count, None, operation, tensors, node), placed)
            count += 1
        for node in self.snapshot.nodes:
            if node.id not in placed:
                yield self._known(Unit(f"u{count}", count, None, None, [], node), placed)
                count += 1

    def _known(self, unit: Unit, placed: set[str]) -> Unit:
        for record in (unit.operation, unit.node, *unit.tensors):
            if record is not None:
                self.unit_of[record.id] = unit
        if unit.node is not None:
            placed.add(unit.node.id)
        return unit

    def _strands(self) -> Iterator[Strand]:
        for operation in self.snapshot.operations:
            lower = self.unit_of[operation.id]
            for number, tensor in enumerate(operation.inputs):
                upper = self.unit_of.get(tensor)
                if upper is not None and upper is not lower:
                    name = operation.names[number] if number < len(operation.names) else ""
                    yield Strand(True, tensor, operation.id, upper, lower, 0, name)
        for node in self.snapshot.nodes:
            lower = self.unit_of[node.id]
            for target, index in node.next:
                upper = self.unit_of.get(target or "")
                if target is not None and upper is not None and upper is not lower:
                    yield Strand(False, node.id, target, upper, lower, index)

    def _nest(self) -> None:
        """Put units and groups into folders. A group that contains only another group is omitted, unless it is a module."""
        folders: dict[str, Folder] = {}
        for group in self.snapshot.groups:
            folders[group.id] = Folder(group.id, float("inf"), folders.get(group.parent or "", self.root), group)
        home = {key: folders[group.id] for group in self.snapshot.groups for key in group.nodes}
        for unit in self.units:
            key = unit.node.id if unit.node is not None else ""
            alone = unit.tensors[0].group if unit.tensors and unit.operation is None else None
            unit.parent = home.get(key) or folders.get(alone or "", self.root)
            unit.parent.children.append(unit)
            around: Folder | None = unit.parent
            while around is not None:
                around.order = min(around.order, unit.order)
                around = around.parent
        for folder in reversed(folders.values()):
            assert folder.parent is not None
            only = folder.children[0] if len(folder.children) == 1 else None
            if folder.group is not None and folder.group.kind != "module" and isinstance(only, Folder):
                only.parent = folder.parent
                folder.parent.children.append(only)
            elif folder.children:
                folder.parent.children.append(folder)
        waiting = [self.root]
        for folder in waiting:
            folder.children.sort(key=lambda child: child.order)
            for child in folder.children:
                if isinstance(child, Folder):
                    child.depth = folder.depth + 1
                    waiting.append(child)


def opened(tree: Tree, most: int) -> set[str]:
    """Return the ids of the groups to draw open. Groups are opened level by level, while at most `most` items are visible."""
    found: set[str] = set()
    level = [child for child in tree.root.children if isinstance(child, Folder)]
    seen = len(tree.root.children)
    while level:
        seen += sum(len(folder.children) for folder in level)
        if seen > most:
            break
        found.update(folder.id for folder in level)
        level = [child for folder in level for child in folder.children if isinstance(child, Folder)]
    return found
