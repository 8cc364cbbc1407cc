"""`compare` shows two graphs side by side, before and after a change, and marks the differences."""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from html import escape
from typing import Any

from .._runtime.tracebacks import frame_of_caller
from .display import Display, filled
from .drawing import Graph, check
from .model import OperationBox, Snapshot
from .names import variables_of
from .snapshot import snapshot

LARGEST = 20_000
"""In larger graphs, only operations before the first difference and after the last difference are recognized as equal."""


def compare(before: Any, after: Any) -> Comparison:
    """Compare two graphs.

    Each argument is a tensor, or a result of `graph`.

    Operations correspond if they have the same name, module and order. The variables that hold the two models may have
    different names. A corresponding operation is *changed* if its results have another shape or dtype, or if its node
    has saved other values (such as a dimension or a stride). An operation without counterpart is *removed* if it is in
    the first graph, and *added* if it is in the second graph.

    >>> import adjoint as torch
    >>> w = torch.ones(3, requires_grad=True)
    >>> torch.inspect.compare((w * 2).exp().sum(), (w * 2).tanh().exp().sum())
    3 operations before, 4 after: 3 the same, 1 added
    + tanh        float32[3]
    """
    pictures = []
    for each in (before, after):
        if isinstance(each, Graph):
            pictures.append(copy.deepcopy(each.snapshot))
        else:
            check(each, "compare")
            pictures.append(Graph(snapshot([each], None, variables_of(frame_of_caller()))).snapshot)
    return Comparison(*pictures)


class Comparison(Display):
    """Two graphs with marks on their operations. `same` is the number of operations that correspond and are equal."""

    forms = {".html": "html", ".txt": "__str__"}

    def __init__(self, before: Snapshot, after: Snapshot) -> None:
        self.before, self.after = before, after
        self.same = _mark(before, after)

    @property
    def differences(self) -> list[tuple[str, OperationBox]]:
        """Return the marked operations: removed and added operations, and changed operations in the second graph."""
        found = [("removed", each) for each in self.before.operations if each.mark == "removed"]
        return found + [(each.mark, each) for each in self.after.operations if each.mark]

    def __str__(self) -> str:
        counts = Counter(mark for mark, _ in self.differences)
        words = [f"{counts[mark]} {mark}" for mark in ("changed", "removed", "added") if counts[mark]]
        sizes = f"{len(self.before.operations)} operations before, {len(self.after.operations)} after"
        lines = [f"{sizes}: {', '.join([f'{self.same} the same', *words])}"]
        for mark, operation in self.differences:
            picture = self.before if mark == "removed" else self.after
            tensors = {tensor.id: tensor for tensor in picture.tensors}
            results = ", ".join(f"{tensors[key].dtype}{tensors[key].shape}" for key in operation.outputs)
            module = next((node.module for node in picture.nodes if node.id == operation.node), None)
            sign = {"removed": "-", "added": "+", "changed": "~"}[mark]
            lines.append(f"{sign} {operation.name:10}  {results}{f'  in {module}' if module else ''}")
        return "\n".join(lines)

    def html(self) -> str:
        """Return a self-contained page with both graphs."""
        from . import page

        frames = ""
        for words, picture in (("before", self.before), ("after", self.after)):
            side = page.render(replace(picture, title=words, compared=True))
            frames += f'<iframe title="{words}" srcdoc="{escape(side, quote=True)}"></iframe>'
        return filled("comparison.html", summary=escape(str(self).splitlines()[0]), frames=frames)


def _mark(before: Snapshot, after: Snapshot) -> int:
    """Mark the differences, and return the number of equal operations."""
    old, new = _models(before), _models(after)
    renamed = dict(
        zip([name for name in new if name not in old], [name for name in old if name not in new], strict=False)
    )
    first, second = _keys(before, {}), _keys(after, renamed)
    first_facts, second_facts = _Facts(before), _Facts(after)
    same = 0
    for kind, start, end, other, other_end in _blocks(first, second):
        if kind == "equal":
            for one, two in zip(before.operations[start:end], after.operations[other:other_end], strict=True):
                if first_facts.of(one) == second_facts.of(two):
                    same += 1
                else:
                    one.mark = two.mark = "changed"
            continue
        for operation in before.operations[start:end]:
            operation.mark = "removed"
        for operation in after.operations[other:other_end]:
            operation.mark = "added"
    return same


def _models(picture: Snapshot) -> list[str]:
    """Return the names of the outermost modules: variables or classes."""
    return [each.label.partition(" (")[0] for each in picture.groups if each.kind == "module" and each.parent is None]


def _keys(picture: Snapshot, renamed: dict[str, str]) -> list[tuple[str, str | None]]:
    """Return the name and the module of each operation.

    The models in `renamed` get the given names.

    Numbers of modules are ignored, because a module that is inserted before other modules changes their numbers.
    """
    modules: dict[str | None, str | None] = {}
    for node in picture.nodes:
        model, dot, rest = (node.module or "").partition(".")
        path = f"{renamed[model]}{dot}{rest}" if model in renamed else node.module
        modules[node.id] = path and re.sub(r"(?<![^.])\d+(?![^.])", "#", path)
    return [(operation.name, modules.get(operation.node)) for operation in picture.operations]


def _blocks(first: list[Any], second: list[Any]) -> Sequence[tuple[str, int, int, int, int]]:
    if max(len(first), len(second)) <= LARGEST:
        return SequenceMatcher(None, first, second, autojunk=False).get_opcodes()
    shortest = min(len(first), len(second))
    head = next((at for at in range(shortest) if first[at] != second[at]), shortest)
    tail = next((at for at in range(shortest - head) if first[-1 - at] != second[-1 - at]), shortest - head)
    ends = len(first) - tail, len(second) - tail
    return [
        ("equal", 0, head, 0, head),
        ("replace", head, ends[0], head, ends[1]),
        ("equal", ends[0], len(first), ends[1], len(second)),
    ]


class _Facts:
    """The properties that two corresponding operations share if they are equal."""

    def __init__(self, picture: Snapshot) -> None:
        self.tensors = {tensor.id: tensor for tensor in picture.tensors}
        self.values = {node.id: node.values for node in picture.nodes}

    def of(self, operation: OperationBox) -> Any:
        results = [(self.tensors[key].shape, self.tensors[key].dtype) for key in operation.outputs]
        operands = [self.tensors[key].shape for key in operation.inputs]
        return results, operands, self.values.get(operation.node or "")
