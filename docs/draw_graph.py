"""Draw the picture of a graph in the README: `python docs/draw_graph.py`.

Everything in the picture is read from the objects themselves: tensors (`data`, `grad`, `grad_fn`, ...), nodes
(`next_functions`, saved tensors) and the edges between them.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import adjoint as torch

WIDTH, ROW, TITLE = 296, 19, 28
COLUMN_GAP, STACK_GAP, PAIR_GAP, MARGIN = 84, 46, 34, 24
INK, FAINT = "#24303f", "#9aa4b1"
STYLES = {"tensor": ("#fff8e6", "#d9a21b"), "node": ("#eaf2fc", "#3b78c4")}
COLOURS = {"made": FAINT, "grad_fn": "#d9a21b", "next": "#3b78c4", "variable": "#3b78c4", "saved": "#7a5bb5"}


@dataclass
class Box:
    """A rectangle with a title and rows of text; `x` and `y` are its upper left corner."""

    title: str
    kind: str
    rows: list[tuple[str, str]]
    x: float = 0.0
    y: float = 0.0

    @property
    def height(self) -> float:
        """The title and the rows, with a margin below."""
        return TITLE + ROW * len(self.rows) + 8

    def svg(self) -> str:
        """The rectangle, its title and its rows."""
        fill, line = STYLES[self.kind]
        shape = f'x="{self.x}" y="{self.y}" width="{WIDTH}" height="{self.height}" rx="7"'
        parts = [
            f'<rect {shape} fill="{fill}" stroke="{line}"/>',
            f'<text x="{self.x + 12}" y="{self.y + 19}" font-weight="bold">{escape(self.title)}</text>',
        ]
        for number, (name, value) in enumerate(self.rows):
            y = self.y + TITLE + ROW * number + 13
            parts.append(f'<text x="{self.x + 12}" y="{y}" class="row name">{escape(name)}</text>')
            parts.append(
                f'<text x="{self.x + WIDTH - 12}" y="{y}" class="row" text-anchor="end">{escape(value)}</text>'
            )
        return "\n".join(parts)


def tensor_box(name: str, tensor: Any) -> Box:
    """The five attributes every introduction to automatic differentiation shows."""
    node = tensor.grad_fn
    return Box(
        f"{name}: tensor",
        "tensor",
        [
            ("data", str(tensor.detach())),
            ("grad", str(tensor.grad) if tensor.is_leaf or tensor.retains_grad else "None"),
            ("grad_fn", "None" if node is None else _title(node)),
            ("is_leaf", str(tensor.is_leaf)),
            ("requires_grad", str(tensor.requires_grad)),
        ],
    )


def node_box(node: Any) -> Box:
    """A node's edges, in the order of the operator's inputs, and what it saved for its derivative."""
    edges = [
        (f"next_functions[{number}]", f"({'None' if following is None else _title(following)}, {index})")
        for number, (following, index) in enumerate(node.next_functions)
    ]
    return Box(_title(node), "node", edges + [(name, str(value)) for name, value in saved(node)])


def saved(node: Any) -> list[tuple[str, Any]]:
    """The names and values of the tensors a node saved; None where an input was not needed."""
    names = sorted((name for name in dir(node) if name.startswith("_saved_")), reverse=True)
    values = [(name, getattr(node, name)) for name in names]
    return [(name, value) for name, value in values if value is None or isinstance(value, torch.Tensor)]


def walk(root: Any) -> Iterator[Any]:
    """The nodes that can be reached from `root`, each once, nearest first."""
    seen, queue = {root}, [root]
    for node in queue:
        yield node
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                queue.append(following)


def depths(root: Any) -> dict[Any, int]:
    """For each node the length of the longest path to it from `root`."""
    depth = {root: 0}
    for node in walk(root):
        for following, _ in node.next_functions:
            if following is not None:
                depth[following] = max(depth.get(following, 0), depth[node] + 1)
    return depth


def draw(root: Any, tensors: dict[str, Any], made: dict[str, tuple[str, ...]]) -> str:
    """The graph behind the tensor `root` as SVG.

    `tensors` are those to show, by name; `made` says which of them each result was made from.
    """
    depth = depths(root.grad_fn)
    nodes = {node: node_box(node) for node in depth}
    boxes = {name: tensor_box(name, tensor) for name, tensor in tensors.items()}
    owner = {_node_of(tensor, depth): name for name, tensor in tensors.items() if _node_of(tensor, depth) is not None}
    column = {name: depth[node] for node, name in owner.items()}
    for result, inputs in made.items():
        for name in inputs:
            column.setdefault(name, column[result] + 1)
    _place(boxes, {name: nodes[node] for node, name in owner.items()}, column)

    arrows = []
    for result, inputs in made.items():
        arrows += [_across(boxes[name], boxes[result], "made", rightward=True) for name in inputs]
    for node, name in owner.items():
        arrows.append(_down(boxes[name], nodes[node], "variable" if _is_leaf_node(node) else "grad_fn"))
    for node, box in nodes.items():
        for number, (following, _) in enumerate(node.next_functions):
            if following is not None:
                arrows.append(_across(box, nodes[following], "next", row=number))
        for number, (_, value) in enumerate(saved(node)):
            for name, tensor in tensors.items():
                if value is tensor:
                    arrows.append(_across(box, boxes[name], "saved", row=len(node.next_functions) + number))
    return _document([*boxes.values(), *nodes.values()], arrows)


def _node_of(tensor: Any, depth: dict[Any, int]) -> Any:
    """The node a tensor's gradient arrives at: its `grad_fn`, or the leaf's AccumulateGrad."""
    if tensor.grad_fn is not None:
        return tensor.grad_fn
    return next((node for node in depth if _is_leaf_node(node) and node.variable is tensor), None)


def _is_leaf_node(node: Any) -> bool:
    return hasattr(node, "variable")


def _title(node: Any) -> str:
    return type(node).__name__


def _place(tensors: dict[str, Box], nodes: dict[str, Box], column: dict[str, int]) -> None:
    """Columns by depth, the root rightmost; in each, every tensor with its node below it."""
    deepest = max(column.values())
    for number in range(deepest + 1):
        y = MARGIN
        for name in (name for name in tensors if column[name] == number):
            for box in (tensors[name], nodes.get(name)):
                if box is not None:
                    box.x = MARGIN + (deepest - number) * (WIDTH + COLUMN_GAP)
                    box.y = y
                    y += box.height + PAIR_GAP
            y += STACK_GAP - PAIR_GAP


def _across(start: Box, end: Box, kind: str, row: int | None = None, rightward: bool = False) -> str:
    """A curve from a row of one box to the title of another beside it."""
    y1 = start.y + (TITLE / 2 if row is None else TITLE + ROW * row + 8)
    y2 = end.y + TITLE / 2 + (0 if rightward else 4)
    x1, x2 = (start.x + WIDTH, end.x) if rightward else (start.x, end.x + WIDTH)
    bend = (x2 - x1) / 2
    return _path(f"M {x1} {y1} C {x1 + bend} {y1}, {x2 - bend} {y2}, {x2} {y2}", kind)


def _down(start: Box, end: Box, kind: str) -> str:
    """A line from a tensor to its node; for a leaf the node points at the tensor."""
    x, y1, y2 = start.x + WIDTH / 2, start.y + start.height, end.y
    return _path(f"M {x} {y2} L {x} {y1}" if kind == "variable" else f"M {x} {y1} L {x} {y2}", kind)


def _path(data: str, kind: str) -> str:
    dashes = ' stroke-dasharray="4 4"' if kind == "saved" else ""
    return (
        f'<path d="{data}" fill="none" stroke="{COLOURS[kind]}" stroke-width="1.6"{dashes} marker-end="url(#{kind})"/>'
    )


def _document(boxes: list[Box], arrows: list[str]) -> str:
    width = max(box.x for box in boxes) + WIDTH + MARGIN
    bottom = max(box.y + box.height for box in boxes)
    legend = {
        "made": "made into",
        "grad_fn": "grad_fn",
        "next": "next_functions",
        "variable": "variable",
        "saved": "saved",
    }
    markers = "".join(
        f'<marker id="{kind}" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M 0 0.6 L 8 4 L 0 7.4 z" fill="{colour}"/></marker>'
        for kind, colour in COLOURS.items()
    )
    lines, x = [], float(MARGIN)
    for kind, words in legend.items():
        lines.append(_path(f"M {x} {bottom + 30} L {x + 30} {bottom + 30}", kind))
        lines.append(f'<text x="{x + 38}" y="{bottom + 34}" class="row">{words}</text>')
        x += 62 + 7.6 * len(words)
    font = "ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom + 52}" width="{width}"'
    return "\n".join(
        [
            f'{head} font-family="{font}" font-size="13" fill="{INK}">',
            "<style>.row { font-size: 12px } .name { fill: #68778a }</style>",
            f"<defs>{markers}</defs>",
            '<rect width="100%" height="100%" rx="10" fill="white"/>',
            *(box.svg() for box in boxes),
            *arrows,
            *lines,
            "</svg>\n",
        ]
    )


def readme_example() -> str:
    """The picture of the README's example, after `y.backward(retain_graph=True)`."""
    x = torch.tensor(2.0)
    w = torch.tensor(3.0, requires_grad=True)
    b = torch.tensor(1.0, requires_grad=True)
    p = w * x
    y = p + b
    y.backward(retain_graph=True)
    return draw(y, {"w": w, "x": x, "p": p, "b": b, "y": y}, {"p": ("w", "x"), "y": ("p", "b")})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Draw the README's picture of a graph.")
    parser.add_argument("file", nargs="?", type=Path, default=Path(__file__).with_name("graph.svg"))
    parser.parse_args().file.write_text(readme_example(), encoding="utf-8")
