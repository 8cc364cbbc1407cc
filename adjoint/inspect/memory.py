"""`saved_memory`: the memory that a graph holds for its backward, by line, by module and by operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._runtime.tracebacks import frame_of_caller
from .drawing import check
from .model import NodeBox
from .names import variables_of
from .snapshot import walked
from .tables import Table
from .text import size


def saved_memory(*tensors: Any, params: Any = None) -> SavedMemory:
    """Return the memory that the graph of `tensors` holds for its backward.

    Each storage counts once, for the first node that has saved it. Views of the same memory, and a tensor saved by many
    nodes, therefore count once. Leaves that require grad outlive the graph, so they are counted separately.

    Args:
        tensors: tensors (or gradient edges) before their backward. Backward releases this memory.
        params: the names of parameters, as for `graph`.

    >>> import adjoint as torch
    >>> w = torch.ones(100, requires_grad=True)
    >>> x = torch.ones(100)
    >>> found = torch.inspect.saved_memory(((w * x).exp() * x).sum())
    >>> found.total  # of `x`, once, and of the result of `exp`
    800
    >>> print(found.by_operator)
    by operator
    bytes      share  tensors  operator
    400 bytes  50.0%        1  MulBackward0
    400 bytes  50.0%        1  ExpBackward0
    """
    for tensor in tensors:
        check(tensor, "saved_memory")
    walk = walked(tensors, params, variables_of(frame_of_caller()))
    entries: list[tuple[NodeBox, int]] = []
    seen: set[str] = set(walk.leaf_bytes)
    for node in walk.picture.nodes:
        for saved in node.saved:
            if saved.storage is not None and saved.storage in walk.held and saved.storage not in seen:
                seen.add(saved.storage)
                entries.append((node, walk.held[saved.storage]))
    leaves = sum(walk.leaf_bytes.values())
    return SavedMemory(walk.picture.bytes, leaves, entries)


class SavedMemory:
    """The memory of a graph: `total` bytes for its backward, and additionally `leaves` bytes of leaves.

    `by_line`, `by_module` and `by_operator` are tables that divide these bytes in three ways.
    """

    def __init__(self, total: int, leaves: int, entries: list[tuple[NodeBox, int]]) -> None:
        self.total = total
        self.leaves = leaves
        self.by_line = self._table("line", entries, _line)
        self.by_module = self._table("module", entries, lambda node: node.module or "(no module)")
        self.by_operator = self._table("operator", entries, lambda node: node.name)

    def _table(self, what: str, entries: list[tuple[NodeBox, int]], key: Callable[[NodeBox], str]) -> Table:
        sums: dict[str, list[int]] = {}
        for node, count in entries:
            row = sums.setdefault(key(node), [0, 0])
            row[0] += count
            row[1] += 1
        rows = [
            {"bytes": count, "share": count / self.total if self.total else 0.0, "tensors": number, what: name}
            for name, (count, number) in sorted(sums.items(), key=lambda item: -item[1][0])
        ]
        return Table(f"by {what}", ["bytes", "share", "tensors", what], rows, {"bytes": size, "share": "{:.1%}".format})

    def __str__(self) -> str:
        heading = f"{size(self.total)} saved for backward, beside {size(self.leaves)} of leaves"
        modules = [self.by_module] if any(row["module"] != "(no module)" for row in self.by_module) else []
        return "\n\n".join([heading, *map(str, [self.by_line, *modules, self.by_operator])])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(table._repr_html_() for table in (self.by_line, self.by_module, self.by_operator))


def _line(node: NodeBox) -> str:
    if node.line is None:
        return "an unknown line"
    return f"{node.line.place}  {node.line.text}".rstrip()
