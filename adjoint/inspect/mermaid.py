"""A graph as a Mermaid flowchart, which many sites render inside Markdown."""

from __future__ import annotations

from .model import NodeBox, Snapshot, TensorBox

CLASSES = (
    "classDef leaf fill:#c8e6c9,stroke:#2f9e44,color:#000",
    "classDef constant fill:#fff3bf,stroke:#f08c00,color:#000",
    "classDef intermediate fill:#cfe2ff,stroke:#1971c2,color:#000",
    "classDef node fill:#e9ecef,stroke:#868e96,color:#000",
    "classDef stale fill:#ffc9c9,stroke:#e03131,color:#000",
)


def render(snapshot: Snapshot) -> str:
    """Write the snapshot as a `flowchart`. Solid lines show the forward computation, and dotted lines the backward graph."""
    lines = ["flowchart TD", *(f"  {line}" for line in CLASSES)]
    lines += [f"  {tensor.id}[{_tensor(tensor)}]:::{tensor.kind}" for tensor in snapshot.tensors]
    lines += [f"  {operation.id}([{_quoted(operation.name)}])" for operation in snapshot.operations]
    for node in snapshot.nodes:
        kind = "stale" if any(each.state == "stale" for each in node.saved) else "node"
        lines.append(f"  {node.id}[[{_node(node)}]]:::{kind}")
    for operation in snapshot.operations:
        lines += [f"  {tensor} --> {operation.id}" for tensor in operation.inputs]
        lines += [f"  {operation.id} --> {tensor}" for tensor in operation.outputs]
    lines += [f"  {tensor.id} ---|grad_fn| {tensor.node}" for tensor in snapshot.tensors if tensor.node is not None]
    for node in snapshot.nodes:
        for key, number in node.next:
            if key is not None:
                lines.append(f"  {node.id} -.->{f'|{number}|' if number else ''} {key}")
    return "\n".join(lines) + "\n"


def _tensor(tensor: TensorBox) -> str:
    parts = [tensor.name or "", f"{tensor.dtype}{tensor.shape}" if tensor.dtype else "a constant"]
    parts += [f"= {tensor.data}"] if tensor.data is not None else []
    return _quoted("\n".join(part for part in parts if part))


def _node(node: NodeBox) -> str:
    saved = [f"{each.name}: {each.dtype}{each.shape}, {each.state}" for each in node.saved if each.state != "none"]
    return _quoted("\n".join([node.name, *saved]))


def _quoted(text: str) -> str:
    for character, code in (("&", "&amp;"), ('"', "&quot;"), ("<", "&lt;"), (">", "&gt;"), ("\n", "<br>")):
        text = text.replace(character, code)
    return f'"{text}"'
