"""A graph in the language of Graphviz."""

from __future__ import annotations

from .model import Group, NodeBox, Snapshot, TensorBox

COLOURS = {"leaf": "#c8e6c9", "constant": "#fff3bf", "intermediate": "#cfe2ff"}


def render(snapshot: Snapshot) -> str:
    """Write the snapshot as a `digraph`. Solid lines show the forward computation, and dashed lines the backward graph."""
    lines = [
        "digraph adjoint {",
        '  rankdir=TB; node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=10, color="#868e96"];',
        '  edge [fontname="Helvetica", fontsize=9, color="#495057"];',
    ]
    boxes = {node.id: _node(node) for node in snapshot.nodes}
    inside: dict[str | None, list[Group]] = {}
    for group in snapshot.groups:
        inside.setdefault(group.parent, []).append(group)
    grouped = {key for group in snapshot.groups for key in group.nodes}
    lines += [f"  {box}" for key, box in boxes.items() if key not in grouped]
    lines += _clusters(inside, boxes)
    lines += [f"  {_tensor(tensor)}" for tensor in snapshot.tensors]
    lines += [
        f'  {operation.id} [label={_quoted(operation.name)}, shape=ellipse, fillcolor="#f1f3f5"];'
        for operation in snapshot.operations
    ]
    for operation in snapshot.operations:
        lines += [f"  {tensor} -> {operation.id};" for tensor in operation.inputs]
        lines += [f"  {operation.id} -> {tensor};" for tensor in operation.outputs]
    for tensor in snapshot.tensors:
        if tensor.node is not None:
            lines.append(f'  {tensor.id} -> {tensor.node} [style=dotted, arrowhead=none, label="grad_fn"];')
    for node in snapshot.nodes:
        for key, number in node.next:
            if key is not None:
                label = f', label="{number}"' if number else ""
                lines.append(f'  {node.id} -> {key} [style=dashed, color="#e8590c"{label}];')
    return "\n".join([*lines, "}"]) + "\n"


def _clusters(inside: dict[str | None, list[Group]], boxes: dict[str, str]) -> list[str]:
    """Write the groups as nested subgraphs."""
    lines: list[str] = []
    stack: list[tuple[Group | None, int]] = [(group, 1) for group in reversed(inside.get(None, []))]
    while stack:
        group, depth = stack.pop()
        if group is None:
            lines.append("  " * depth + "}")
            continue
        times = f" × {group.times}" if group.kind == "repeat" else ""
        lines.append("  " * depth + f"subgraph cluster_{group.id} {{ label={_quoted(group.label + times)};")
        lines += ["  " * (depth + 1) + boxes[key] for key in group.nodes]
        stack.append((None, depth))
        stack += [(inner, depth + 1) for inner in reversed(inside.get(group.id, []))]
    return lines


def _tensor(tensor: TensorBox) -> str:
    parts = [tensor.name or "", f"{tensor.dtype}{tensor.shape}" if tensor.dtype else "a constant"]
    parts += [f"data = {tensor.data}"] if tensor.data is not None else []
    parts += [f"grad = {tensor.grad}"] if tensor.grad is not None else []
    label = "\n".join(part for part in parts if part)
    return f'{tensor.id} [label={_quoted(label)}, fillcolor="{COLOURS[tensor.kind]}"];'


def _node(node: NodeBox) -> str:
    saved = [f"{each.name}: {each.dtype}{each.shape}, {each.state}" for each in node.saved if each.state != "none"]
    stale = any(each.state == "stale" for each in node.saved)
    label = "\n".join([node.name, *saved])
    colour = "#ffc9c9" if stale else "#e9ecef"
    return f'{node.id} [label={_quoted(label)}, shape=box, style=filled, fillcolor="{colour}"];'


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
