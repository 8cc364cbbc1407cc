"""A graph as a tree of lines, for terminals: plain, or in colour where `rich` shows it.

The tree goes from the result to the leaves. What leads on straight ahead stays at the margin, so that a chain of any length is a
column; only branches move to the right. A large graph is shown as its groups.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import NamedTuple

from .model import Group, NodeBox, Saved, Snapshot, TensorBox

LARGE = 150
"""A graph of more nodes is shown as its groups."""

MOST_LINES = 400

WIDEST = 50
"""Longer elements are left out."""


_DIVISION = re.compile(r"\d+ to \d+ of \d+$")


class Piece(NamedTuple):
    """Some characters of one style: a name that `rich` knows, or none."""

    text: str
    style: str = ""


Row = list[Piece]

STYLES = {"leaf": "bold green", "constant": "yellow", "intermediate": "blue"}


def rows(snapshot: Snapshot, full: bool = False) -> list[Row]:
    """The lines of the tree; `full`: all nodes, also of a large graph."""
    found = [_heading(snapshot)]
    lines = _tree(snapshot) if full or len(snapshot.nodes) <= LARGE else _outline(snapshot)
    for line in lines:
        if len(found) > MOST_LINES and not full:
            return [*found, [Piece("… save it as .html to see the rest", "dim")]]
        found.append(line)
    return found


def render(snapshot: Snapshot, full: bool = False) -> str:
    """The tree as plain text."""
    return "\n".join("".join(piece.text for piece in row).rstrip() for row in rows(snapshot, full))


def size(count: int) -> str:
    """A number of bytes as people read it: `1.5 KiB`."""
    if count < 1024:
        return f"{count} byte{'' if count == 1 else 's'}"
    value = float(count)
    for unit in ("KiB", "MiB", "GiB"):
        value /= 1024
        if value < 1024 or unit == "GiB":
            break
    return f"{value:.1f} {unit}"


def _heading(snapshot: Snapshot) -> Row:
    leaves = sum(tensor.kind == "leaf" for tensor in snapshot.tensors)
    operations = len(snapshot.operations)
    text = f"{operations} operation{'' if operations == 1 else 's'}, {leaves} {'leaf' if leaves == 1 else 'leaves'}"
    return [Piece(f"{snapshot.title or 'graph'}: {text}, {size(snapshot.bytes)} saved", "bold")]


# --- all nodes ----------------------------------------------------------------------------------------------------


def _tree(snapshot: Snapshot) -> Iterator[Row]:
    """Every node once, each followed by where its gradients go."""
    tensors = {tensor.id: tensor for tensor in snapshot.tensors}
    nodes = {node.id: node for node in snapshot.nodes}
    outputs = {(tensor.node, tensor.output_nr): tensor for tensor in snapshot.tensors}
    operands = {operation.node: operation.inputs for operation in snapshot.operations}
    seen: set[str] = set()
    stack: list[tuple[str | None, int, str, str]] = []
    for root in reversed(snapshot.roots):
        box = tensors[root]
        stack.append((box.node, box.output_nr, "", ""))
        if box.node is None:
            yield _constant("", box)
    while stack:
        key, number, first, rest = stack.pop()
        if key is None:
            continue
        node, tensor = nodes[key], outputs.get((key, number))
        if key in seen:
            yield _again(first, node, tensor)
            continue
        seen.add(key)
        yield _node(first, node, tensor, outputs)
        if node.line is not None and node.line.number:
            where = f"{PurePath(node.line.file).name}:{node.line.number}"
            yield [Piece(f"{rest}│ ", "dim"), Piece(f"{where}  {node.line.text}".rstrip(), "dim")]
        for saved in node.saved:
            if saved.state != "none":
                yield [Piece(f"{rest}│ ", "dim"), *_saved(saved, tensors)]
        for position, hook in enumerate(node.hooks, start=1):
            number_of = "" if hook.output_nr is None else f" of output {hook.output_nr}"
            yield [Piece(f"{rest}│ ", "dim"), Piece(f"hook {position}: {hook.when}{number_of}, {hook.text}", "magenta")]
        ahead = [(target, index) for target, index in node.next if target is not None]
        onward = next((edge for edge in reversed(ahead) if not nodes[edge[0]].accumulate and edge[0] not in seen), None)
        for operand in operands.get(node.id, ()):
            if tensors[operand].kind == "constant":
                yield _constant(f"{rest}├─ ", tensors[operand])
        if onward is not None:
            stack.append((*onward, rest, rest))
            ahead.remove(onward)
        for place, (target, index) in enumerate(reversed(ahead)):
            last = onward is None and place == 0
            stack.append((target, index, f"{rest}{'╰─ ' if last else '├─ '}", f"{rest}{'   ' if last else '│  '}"))


def _node(first: str, node: NodeBox, tensor: TensorBox | None, outputs: dict[tuple[str | None, int], TensorBox]) -> Row:
    row = [Piece(first, "dim")]
    if node.accumulate:
        return [*row, *_tensor(tensor), Piece("  AccumulateGrad", "dim"), *_grad(tensor)]
    row += [Piece(node.name, "bold"), Piece(f" {node.id}", "dim"), Piece("  → "), *_tensor(tensor)]
    if (node.id, 1) in outputs:
        row.append(Piece(f"  output {tensor.output_nr if tensor else 0}", "dim"))
    if node.module:
        row.append(Piece(f"  in {node.module}", "cyan"))
    return row


def _tensor(tensor: TensorBox | None) -> Row:
    if tensor is None:
        return []
    row = [Piece(f"{tensor.name} ", STYLES[tensor.kind])] if tensor.name else []
    row.append(Piece(f"{tensor.dtype}{tensor.shape}" if tensor.dtype else "something", STYLES[tensor.kind]))
    if tensor.data is not None and len(tensor.data) <= WIDEST:
        row.append(Piece(f" = {tensor.data}"))
    if tensor.view_of is not None:
        row.append(Piece(f"  a view of {tensor.view_of}", "dim"))
    return row


def _grad(tensor: TensorBox | None) -> Row:
    return [Piece(f"  grad {tensor.grad}", "green")] if tensor is not None and tensor.grad is not None else []


def _constant(first: str, tensor: TensorBox) -> Row:
    return [Piece(first, "dim"), *_tensor(tensor), Piece("  off the graph", "dim")]


def _again(first: str, node: NodeBox, tensor: TensorBox | None) -> Row:
    number = f" output {tensor.output_nr}" if tensor is not None and tensor.output_nr else ""
    if node.accumulate:
        return [Piece(first, "dim"), *_tensor(tensor), Piece("  AccumulateGrad, as above", "dim")]
    return [Piece(first, "dim"), Piece(f"{node.name} {node.id}{number}, as above", "dim")]


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
    """The groups and, in those, nodes in the order of the computation; of what repeats, the first."""
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
    """How many nodes there are in each group, and the sequence number of the first."""
    sequences = {node.id: node.sequence for node in snapshot.nodes if not node.accumulate}
    counts: dict[str, int] = {}
    firsts: dict[str, int] = {}
    for group in reversed(snapshot.groups):  # inner ones first
        inner = inside.get(group.id, ())
        own = [sequences[key] for key in group.nodes if key in sequences]
        counts[group.id] = len(own) + sum(counts[each.id] for each in inner)
        firsts[group.id] = min([*own, *(firsts[each.id] for each in inner)], default=0)
    return counts, firsts
