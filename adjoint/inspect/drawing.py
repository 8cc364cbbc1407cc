"""`graph` and its result: a picture that is displayed in notebooks and terminals, and can be saved in many formats."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any

from .._runtime.tracebacks import frame_of_caller
from ..autograd.gradient_edge import GradientEdge
from ..tensor import Tensor
from . import dot, mermaid, text
from .display import Display, form_of
from .model import NodeBox, Snapshot
from .names import is_module, variables_of
from .snapshot import snapshot

SMALL = 60
"""A notebook shows a graph with at most this many nodes as a picture, and a larger graph as an interactive page."""


def graph(*tensors: Any, params: Any = None, values: bool = False) -> Graph:
    """Return a picture of the graph that computed `tensors`.

    Args:
        tensors: tensors (or gradient edges), before or after their backward.
        params: the names of parameters, as a Module, a dict of names and tensors, or an iterable of pairs. Without
            `params`, a tensor is named after the caller's variable if exactly one variable refers to it. Parameters
            have their names in the modules that ran.
        values: whether to compute missing small values again, from the current values of leaves. This requires known
            inputs. Alternatively, `recording` stores all small values.

    A notebook displays the result, `print` writes it as a tree, and `save` draws it. The picture keeps no part of the
    graph alive.

    >>> import adjoint as torch
    >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> x = torch.tensor([3.0, 4.0])
    >>> y = w * x
    >>> torch.inspect.graph(y)
    graph of y: 1 operation, 1 leaf, 8 bytes saved, 8 bytes of leaves
    MulBackward0 n2  → y float32[2] = [3, 8]
    │ ...
    │ saved other = x  float32[2]  version 0
    ├─ x float32[2] = [3, 4]  off the graph
    ╰─ w float32[2] = [1, 2]  AccumulateGrad
    """
    for tensor in tensors:
        check(tensor, "graph")
    return Graph(snapshot(tensors, params, variables_of(frame_of_caller()), values))


def check(tensor: Any, function: str) -> None:
    """Raise an error unless `tensor` can have a graph."""
    if is_module(tensor):
        name = type(tensor).__name__
        raise TypeError(
            f"{function}(): expected tensors, but got the module {name}, which has no graph before it is called: call it, "
            f"and give its result, as in inspect.{function}(model(inputs))"
        )
    if not isinstance(tensor, (Tensor, GradientEdge)):
        raise TypeError(f"{function}(): expected tensors, but got {type(tensor).__name__}")


class Graph(Display):
    """A picture of a graph. `snapshot` contains the records that it shows."""

    forms = {
        ".svg": "svg", ".html": "html", ".htm": "html", ".png": "png", ".dot": "dot", ".gv": "dot", ".json": "json",
        ".mmd": "mermaid", ".txt": "text",
    }  # fmt: skip

    def __init__(self, picture: Snapshot) -> None:
        self.snapshot = picture
        if not picture.title:
            names = {tensor.id: tensor.name for tensor in picture.tensors}
            made = {result: operation.name for operation in picture.operations for result in operation.outputs}
            unnamed = {root: f"{made[root]}(…)" if root in made else root for root in picture.roots}
            called = ", ".join(names[root] or unnamed[root] for root in picture.roots)
            picture.title = f"graph of {called}" if called else "an empty graph"

    def __getitem__(self, key: str) -> NodeBox:
        """Return the node with this id (`n3`), or the only node with this name (`MulBackward0`)."""
        found = [node for node in self.snapshot.nodes if key in (node.id, node.name)]
        if len(found) != 1:
            raise KeyError(f"{key}: there are {len(found)} such nodes")
        return found[0]

    def text(self, full: bool = True) -> str:
        """Return the graph as a tree of lines, with all nodes if `full`, otherwise with the groups of a large graph."""
        return text.render(self.snapshot, full)

    def __str__(self) -> str:
        return self.text(full=False)

    def __rich__(self) -> Any:
        """Return the tree in colour, for `rich.print`."""
        from rich.text import Text

        parts: list[Any] = []
        for row in text.rows(self.snapshot):
            parts += [(piece.text, piece.style) for piece in row]
            parts.append("\n")
        return Text.assemble(*parts[:-1], no_wrap=True)

    def _repr_html_(self) -> str:
        if len(self.snapshot.nodes) <= SMALL and not self.snapshot.steps:
            return f'<div style="overflow: auto">{self.svg()}</div>'
        return super()._repr_html_()

    def svg(self) -> str:
        """Return the picture as SVG."""
        from . import svg

        return svg.render(self.snapshot)

    def html(self) -> str:
        """Return a self-contained page with zoom, search and unfolding."""
        from . import page

        return page.render(self.snapshot)

    def json(self) -> str:
        """Return all data of the picture as JSON."""
        return json.dumps(self.snapshot.as_dict(), ensure_ascii=False)

    def dot(self) -> str:
        """Return the graph in the language of Graphviz."""
        return dot.render(self.snapshot)

    def mermaid(self) -> str:
        """Return the graph as a Mermaid flowchart."""
        return mermaid.render(self.snapshot)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the picture to a file in the format of the file name's extension, and return the path.

        Args:
            path: a name that ends in `.svg`, `.html`, `.png` (requires one of the programs below), `.dot`, `.json`,
                `.mmd` (Mermaid) or `.txt`.

        Raises:
            ValueError: if the extension is not supported.
            RuntimeError: if a `.png` is requested, but Chromium, `rsvg-convert`, Inkscape and the package `cairosvg`
                are all missing.
        """
        if form_of(path, self.forms) != "png":
            return super().save(path)
        from .png import write

        write(self.svg(), Path(path))
        return Path(path)
