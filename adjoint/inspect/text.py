"""A graph as a tree of lines for terminals, either plain or in colour with `rich`.

The tree goes from the result to the leaves. A chain keeps its indentation, so a chain of any length is a column. Only
branches are indented further. A large graph is shown as its groups.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from .cards import amount
from .model import Group, NodeBox, Saved, Snapshot, TensorBox

LARGE = 150
"""A graph with more nodes is shown as its groups."""

MOST_LINES = 400

WIDEST = 50
"""Longer texts of elements are omitted."""


_DIVISION = re.compile(r"\d+ to \d+ of \d+$")


class Piece(NamedTuple):
    """Characters with one style. The style is the name of a style of `rich`, or empty."""

    text: str
    style: str = ""


Row = list[Piece]

STYLES = {"leaf": "bold green", "constant": "yellow", "intermediate": "blue"}


def rows(snapshot: Snapshot, full: bool = False) -> list[Row]:
    """Return the lines of the tree. `full` includes all nodes, even of a large graph."""
    found = [_heading(snapshot)]
    lines = _tree(snapshot) if full or len(snapshot.nodes) <= LARGE else _outline(snapshot)
    for line in lines:
        if len(found) > MOST_LINES and not full:
            return [*found, [Piece("… save it as .html to see the rest", "dim")]]
        found.append(line)
    return found


def render(snapshot: Snapshot, full: bool = False) -> str:
    """Return the tree as plain text."""
    return "\n".join("".join(piece.text for piece in row).rstrip() for row in rows(snapshot, full))


def size(count: int) -> str:
    """Return a number of bytes in a suitable unit, such as `1.5 KB`."""
    return f"{count} byte{'' if count == 1 else 's'}" if count < 1000 else amount(count)


def _heading(snapshot: Snapshot) -> Row:
    leaves = sum(tensor.kind == "leaf" for tensor in snapshot.tensors)
    operations = len(snapshot.operations)
    text = f"{operations} operation{'' if operations == 1 else 's'}, {leaves} {'leaf' if leaves == 1 else 'leaves'}"
    parameters = f", {size(snapshot.leaf_bytes)} of leaves" if snapshot.leaf_bytes else ""
    return [Piece(f"{snapshot.title or 'graph'}: {text}, {size(snapshot.bytes)} saved{parameters}", "bold")]


# --- all nodes ----------------------------------------------------------------------------------------------------


def _tree(snapshot: Snapshot) -> Iterator[Row]:
    """Write every node once, below all nodes that use it and above the receivers of its gradients."""
    tensors = {tensor.id: tensor for tensor in snapshot.tensors}
    nodes = {node.id: node for node in snapshot.nodes}
    outputs = {(tensor.node, tensor.output_nr): tensor for tensor in snapshot.tensors}
    operands = {operation.node: operation.inputs for operation in snapshot.operations}
    users = Counter(target for node in snapshot.nodes for target, _ in node.next)
    seen: set[str] = set()
    stack: list[tuple[NodeBox, int, str, str]] = []
    starts = [tensors[root] for root in snapshot.roots]
    for box in reversed(starts):
        if box.node is None:
            yield _constant("", box)
        elif not users[box.node]:
            stack.append((nodes[box.node], box.output_nr, "", ""))
            users[box.node] = -1  # a root that was requested twice
    while stack:
        node, number, first, rest = stack.pop()
        tensor = outputs.get((node.id, number))
        if node.id in seen:  # only leaves occur several times in `stack`
            yield [Piece(first, "dim"), *_tensor(tensor), Piece("  AccumulateGrad, as above", "dim")]
            continue
        seen.add(node.id)
        yield _node(first, node, tensor, outputs)
        for line in _detail_rows(node, tensors):
            yield [Piece(f"{rest}│ ", "dim"), *line]
        branches: list[tuple[NodeBox, int]] = []
        for target, index in node.next:
            if target is not None:
                users[target] -= 1
                if nodes[target].accumulate or not users[target]:
                    branches.append((nodes[target], index))
                else:
                    output = f" output {index}" if index else ""
                    yield [Piece(f"{rest}├─ {nodes[target].name} {target}{output}, below", "dim")]
        for operand in operands.get(node.id, ()):
            if tensors[operand].kind == "constant":
                yield _constant(f"{rest}├─ ", tensors[operand])
        straight = [branch for branch in branches if not branch[0].accumulate][-1:]
        for branch in straight:
            stack.append((*branch, rest, rest))
            branches.remove(branch)
        for place, branch in enumerate(reversed(branches)):
            last = not straight and place == 0
            stack.append((*branch, f"{rest}{'╰─ ' if last else '├─ '}", f"{rest}{'   ' if last else '│  '}"))


def _detail_rows(node: NodeBox, tensors: dict[str, TensorBox]) -> Iterator[Row]:
    """Return the line that created a node, its saved values, and its hooks."""
    if node.line is not None and node.line.number:
        yield [Piece(f"{node.line.place}  {node.line.text}".rstrip(), "dim")]
    for saved in node.saved:
        if saved.state != "none":
            yield _saved(saved, tensors)
    for position, hook in enumerate(node.hooks, start=1):
        output = "" if hook.output_nr is None else f" of output {hook.output_nr}"
        yield [Piece(f"hook {position}: {hook.when}{output}, {hook.text}", "magenta")]


def _node(first: str, node: NodeBox, tensor: TensorBox | None, outputs: dict[tuple[str | None, int], TensorBox]) -> Row:
    row = [Piece(first, "dim")]
    if node.accumulate:
        return [*row, *_tensor(tensor), Piece("  AccumulateGrad", "dim"), *_grad(tensor)]
    row += [Piece(node.name, "bold"), Piece(f" {node.id}", "dim"), Piece("  → "), *_tensor(tensor)]
    if (node.id, 1) in outputs:
        row.append(Piece(f"  output {tensor.output_nr if tensor else 0}", "dim"))
    if node.module:
        row.append(Piece(f"  in {node.module}", "cyan"))
    return [*row, *_grad(tensor)]


def _tensor(tensor: TensorBox | None) -> Row:
    if tensor is None:
        return []
    row = [Piece(f"{tensor.name} ", STYLES[tensor.kind])] if tensor.name else []
    row.append(Piece(f"{tensor.dtype}{tensor.shape}" if tensor.dtype else "a constant", STYLES[tensor.kind]))
    if tensor.data is not None and len(tensor.data) <= WIDEST:
        row.append(Piece(f" = {tensor.data}"))
    if tensor.view_of is not None:
        row.append(Piece(f"  a view of {tensor.view_of}", "dim"))
    return row


def _grad(tensor: TensorBox | None) -> Row:
    return [Piece(f"  grad {tensor.grad}", "green")] if tensor is not None and tensor.grad is not None else []


def _constant(first: str, tensor: TensorBox) -> Row:
    return [Piece(first, "dim"), *_tensor(tensor), Piece("  off the graph", "dim")]


def _saved(saved: Saved, tensors: dict[str, TensorBox]) -> Row:
    what = tensors[saved.tensor].name if saved.tensor in tensors else None
    text = f"saved {saved.name}" + (f" = {what}" if what else "")
    if saved.shape is not None:
        text += f"  {saved.dtype}{saved.shape}"
    if saved.state == "stale":
        return [Piece(f"{text}  version {saved.version_saved}, now {saved.version_now}: stale", "bold red")]
    if saved.state == "ok":
        return [Piece(f"{text}  version {saved.version_saved}")]
    return [Piece(f"{text}  {saved.state}", "dim strike" if saved.state == "freed" else "")]


# --- groups -------------------------------------------------------------------------------------------------------


def _outline(snapshot: Snapshot) -> Iterator[Row]:
    """Write the groups and their nodes in the order of the computation. Only the first part of a repetition is written."""
    nodes = {node.id: node for node in snapshot.nodes}
    outputs = {(tensor.node, tensor.output_nr): tensor for tensor in snapshot.tensors if tensor.node is not None}
    inside: dict[str | None, list[Group]] = {}
    for group in snapshot.groups:
        inside.setdefault(group.parent, []).append(group)
    grouped = {key for group in snapshot.groups for key in group.nodes}
    counts, firsts = _sizes(snapshot, inside)
    once: set[str] = set()
    alone = [node.id for node in snapshot.nodes if node.id not in grouped]

    def items(group: Group | None) -> list[Group | NodeBox]:
        own = alone if group is None else group.nodes
        held: list[Group | NodeBox] = [*inside.get(None if group is None else group.id, ())]
        held += [nodes[key] for key in own if not nodes[key].accumulate]
        held.sort(key=lambda item: firsts[item.id] if isinstance(item, Group) else item.sequence)
        if group is not None and (group.kind == "repeat" or (group.parent in once and _DIVISION.match(group.label))):
            once.add(group.id)
            return held[:1]
        return held

    stack: list[tuple[Group | NodeBox, str, bool]] = []

    def push(group: Group | None, rest: str) -> None:
        held = items(group)
        stack.extend((item, rest, place == 0) for place, item in enumerate(reversed(held)))

    push(None, "")
    while stack:
        item, rest, last = stack.pop()
        first = f"{rest}{'╰─ ' if last else '├─ '}"
        if isinstance(item, Group):
            times = f" × {item.times}" if item.kind == "repeat" else ""
            yield [
                Piece(first, "dim"),
                Piece(f"{item.label}{times}", "bold cyan"),
                Piece(f"  {counts[item.id]} nodes", "dim"),
            ]
            push(item, rest + ("   " if last else "│  "))
        else:
            tensor = outputs.get((item.id, 0))
            made = f"  → {tensor.dtype}{tensor.shape}" if tensor is not None else ""
            yield [Piece(first, "dim"), Piece(item.name, "bold"), Piece(f" {item.id}", "dim"), Piece(made, "blue")]


def _sizes(snapshot: Snapshot, inside: dict[str | None, list[Group]]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the number of nodes in each group, and the sequence number of its first node."""
    sequences = {node.id: node.sequence for node in snapshot.nodes if not node.accumulate}
    counts: dict[str, int] = {}
    firsts: dict[str, int] = {}
    for group in reversed(snapshot.groups):  # inner ones first
        inner = inside.get(group.id, ())
        own = [sequences[key] for key in group.nodes if key in sequences]
        counts[group.id] = len(own) + sum(counts[each.id] for each in inner)
        firsts[group.id] = min([*own, *(firsts[each.id] for each in inner)], default=0)
    return counts, firsts
