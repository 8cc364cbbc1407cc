"""`live_graphs`: the graphs in memory and the variables that keep them alive, to find out why memory use grows."""

from __future__ import annotations

import gc
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import PurePath
from types import CellType, FrameType, FunctionType, ModuleType
from typing import Any

from .._runtime.tracebacks import frame_of_caller, variables_in
from ..kernels.memory.storage import owner
from ..operators.memory.changed_views import CopySlices
from ..tape.node import AccumulateGrad, Node
from ..tape.origin import is_internal, line_of
from ..tape.packing import Packed
from ..tensor import Tensor
from .reading import items_of
from .snapshot import uncollected
from .tables import Table
from .text import size

DEPTH = 6
"""The maximum nesting depth of containers in the search for the variable that holds a tensor."""

MOST_HOLDERS = 4


def live_graphs() -> Table:
    """List the graphs in memory: the number of each kind, their size, their first line, and the variables that hold them.

    A graph is a connected set of nodes. Two graphs with the same parameters count as two. Columns:

    - `graphs`: the number of graphs that were created by the same lines and are held in the same way,
    - `nodes`, `bytes`: the totals of these graphs, where each storage counts once, and leaves do not count,
    - `since`: the line of the oldest operation,
    - `to`: the line of the latest operation,
    - `held by`: the variables that lead to a tensor of the graph. It is empty if only a reference cycle holds the graph.
      The garbage collector will free such a graph.

    >>> import adjoint as torch
    >>> w = torch.ones(100, requires_grad=True)
    >>> history = [(w * w).exp() for _ in range(3)]
    >>> mine = [row for row in torch.inspect.live_graphs() if "history" in row["held by"]]
    >>> mine[0]["graphs"], mine[0]["nodes"], mine[0]["bytes"]
    (3, 6, 1200)
    """
    with uncollected():
        return _found(gc.get_objects(), frame_of_caller())


def _found(objects: list[Any], frame: FrameType) -> Table:
    nodes = [each for each in objects if issubclass(type(each), Node) and not isinstance(each, AccumulateGrad)]
    inner = {id(node.function) for node in nodes if type(node) is CopySlices}
    nodes = [node for node in nodes if not node.is_nowhere and id(node) not in inner and hasattr(node, "_edges")]
    graphs = _components(nodes)
    member = {id(node): number for number, graph in enumerate(graphs) for node in graph}
    tensors = [each for each in objects if issubclass(type(each), Tensor)]
    wanted: dict[int, Any] = {}
    for tensor in tensors:
        edge = getattr(tensor, "_edge", None)
        if type(edge) is tuple and id(edge[0]) in member:
            wanted[id(tensor)] = tensor
    roots = {id(node) for node in nodes} - {
        id(edge[0]) for node in nodes for edge in node._edges if type(edge) is tuple
    }
    wanted |= {id(node): node for node in nodes if id(node) in roots}
    holders = _Search(objects, wanted, frame, ignored={id(objects), id(nodes), id(tensors), id(graphs), id(wanted)})
    held: dict[int, list[str]] = {}
    for key, each in wanted.items():
        number = member[id(each._edge[0] if isinstance(each, Tensor) else each)]
        names = held.setdefault(number, [])
        names += [name for name in holders.names(key) if name not in names]
    return _table([(graph, held.get(number, [])) for number, graph in enumerate(graphs)])


def _components(nodes: list[Node]) -> list[list[Node]]:
    """Return the connected components of the graph of `nodes`."""
    parents = {id(node): id(node) for node in nodes}

    def top(key: int) -> int:
        while parents[key] != key:
            parents[key] = parents[parents[key]]
            key = parents[key]
        return key

    for node in nodes:
        for edge in node._edges:
            if type(edge) is tuple and id(edge[0]) in parents:
                parents[top(id(node))] = top(id(edge[0]))
    graphs: dict[int, list[Node]] = {}
    for node in nodes:
        graphs.setdefault(top(id(node)), []).append(node)
    return list(graphs.values())


def _table(graphs: list[tuple[list[Node], list[str]]]) -> Table:
    """Return one row for each kind of graph, the largest first."""
    rows: dict[Any, dict[str, Any]] = {}
    storages: dict[Any, dict[int, int]] = {}
    for graph, names in graphs:
        since, to = (_line(pick(graph, key=lambda node: node._sequence)) for pick in (min, max))
        general = sorted({re.sub(r"\[\d+\]", "[…]", name) for name in names})
        row = rows.setdefault(
            (since, to, *general),
            {"graphs": 0, "nodes": 0, "bytes": 0, "since": since, "to": to, "held by": general, "exactly": names},
        )
        row["graphs"] += 1
        row["nodes"] += len(graph)
        storages.setdefault((since, to, *general), {}).update(_storages(graph))
    for key, row in rows.items():
        row["bytes"] = sum(storages[key].values())
        names = row["held by"] if row["graphs"] > 1 else row["exactly"]
        del row["exactly"]
        more = [f"{len(names) - MOST_HOLDERS} more"] if len(names) > MOST_HOLDERS else []
        row["held by"] = ", ".join([*names[:MOST_HOLDERS], *more]) or "no variable"
    ordered = sorted(rows.values(), key=lambda row: (-row["bytes"], -row["nodes"]))
    count = len(graphs)
    title = f"{count} graph{'' if count == 1 else 's'} alive"
    return Table(title, ["graphs", "nodes", "bytes", "since", "to", "held by"], ordered, {"bytes": size})


def _storages(graph: list[Node]) -> dict[int, int]:
    """Return the bytes that the nodes have saved, by storage."""
    found: dict[int, int] = {}
    leaves = {id(owner(edge._array)) for node in graph for edge in node._edges if isinstance(edge, Tensor)}
    for node in graph:
        for item in items_of(node):
            value = item.value.packed if type(item.value) is Packed else item.value
            if isinstance(value, Tensor) and value._extra is not None and value._extra.number is not None:
                continue  # a constant number, which the library itself keeps
            array = value._array if isinstance(value, Tensor) else value
            if hasattr(array, "nbytes") and hasattr(array, "base"):
                root = owner(array)
                if id(root) not in leaves:
                    found[id(root)] = root.nbytes
    return found


def _line(node: Node) -> str:
    code = getattr(node, "_code", None)
    if code is None:
        return "an unknown line"
    return f"{PurePath(code.co_filename).name}:{line_of(code, node._lasti)} in {code.co_name}"


# --- which variables hold them ------------------------------------------------------------------------------------


class _Search:
    """Finds the objects that refer to given objects, directly and indirectly, up to variables."""

    def __init__(self, objects: list[Any], wanted: dict[int, Any], frame: FrameType, ignored: set[int]) -> None:
        self.variables: dict[int, list[str]] = {}
        """The variables that refer to an object, by its identity."""
        self.referrers: dict[int, list[Any]] = {}
        self.modules = {
            id(vars(module)): name for name, module in list(sys.modules.items()) if type(module) is ModuleType
        }
        for name, values in _functions(frame):
            for variable, value in values.items():
                self.variables.setdefault(id(value), []).append(f"{variable} in {name}")
            ignored.add(id(values))
        frontier = set(wanted)
        known = set(wanted)
        for _ in range(DEPTH):
            found = self._refer_to(objects, frontier, ignored)
            frontier = {id(each) for each in found if self._continues_at(each)} - known
            known |= frontier
            if not frontier:
                break

    def _refer_to(self, objects: list[Any], frontier: set[int], ignored: set[int]) -> list[Any]:
        """Record the objects that refer to the objects in `frontier`, and return them."""
        found = []
        for each in objects:
            if id(each) in ignored or type(each) is FrameType:
                continue
            for referent in gc.get_referents(each):
                if id(referent) in frontier:
                    self.referrers.setdefault(id(referent), []).append(each)
                    found.append(each)
        return found

    def _continues_at(self, holder: Any) -> bool:
        """Return whether to continue the search at `holder`. Parts of graphs, and modules, end the search."""
        return not issubclass(type(holder), (Node, ModuleType, type)) and id(holder) not in self.modules

    def names(self, key: int, depth: int = 0, seen: frozenset[int] = frozenset()) -> list[str]:
        """Return expressions for the object with the identity `key`."""
        found = list(self.variables.get(key, ()))
        if depth < DEPTH and not found:
            for holder in self.referrers.get(key, ()):
                if id(holder) in seen:
                    continue
                if id(holder) in self.modules:
                    module = self.modules[id(holder)]
                    found += [f"{name} in {module}" for name, value in list(holder.items()) if id(value) == key]
                elif isinstance(holder, type):
                    found.append(f"{holder.__qualname__} in {holder.__module__}")
                elif self._continues_at(holder):
                    suffix = _suffix(holder, key, self._is_namespace(holder))
                    if suffix is not None:
                        inside = self.names(id(holder), depth + 1, seen | {key})
                        found += [_joined(each, suffix) for each in inside]
        return list(dict.fromkeys(found))

    def _is_namespace(self, holder: Any) -> bool:
        """Return whether `holder` is the `__dict__` of another object."""
        return type(holder) is dict and any(
            isinstance(each, type) or getattr(each, "__dict__", None) is holder
            for each in self.referrers.get(id(holder), ())
        )


def _joined(outer: str, suffix: str) -> str:
    """Join two parts. For example, `losses in train` and `[3]` give `losses[3] in train`."""
    expression, _, place = outer.partition(" in ")
    return f"{expression}{suffix} in {place}" if place else f"{expression}{suffix}"


def _suffix(holder: Any, key: int, namespace: bool) -> str | None:
    """Return the expression by which `holder` refers to the object, or None if `holder` has no actual reference."""
    if type(holder) is tuple and any(type(each) is CellType for each in holder):
        return ""  # the closure of a function
    if isinstance(holder, (list, tuple)):
        return next((f"[{index}]" for index, each in enumerate(holder) if id(each) == key), None)
    if isinstance(holder, dict):
        form = ".{}" if namespace else "[{!r}]"
        return next((form.format(name) for name, each in list(holder.items()) if id(each) == key), None)
    if isinstance(holder, Tensor):
        return ".grad" if id(holder._grad) == key else "._base" if id(holder._base) == key else None
    if isinstance(holder, FunctionType):
        return "()"  # a closure, or a default
    if type(holder) is CellType:
        return ""
    attributes = getattr(holder, "__dict__", None)
    if isinstance(attributes, dict):
        if id(attributes) == key:
            return ""
        return next(
            (f".{name}" for name, each in list(attributes.items()) if id(each) == key), f"<{type(holder).__name__}>"
        )
    return f"<{type(holder).__name__}>"


def _functions(frame: FrameType) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the running functions of this thread (from `frame` outwards) and of other threads, with their local variables."""
    for start in (frame, *_frames_of_other_threads()):
        each: FrameType | None = start
        while each is not None:
            if each.f_code.co_flags & 1 and not is_internal(each.f_globals.get("__package__")):
                yield each.f_code.co_name, variables_in(each)
            each = each.f_back


def _frames_of_other_threads() -> list[FrameType]:
    """Return the frames of the other threads.

    A reference to the frame of this thread would be a reference cycle, which keeps the variables of the frame alive.
    """
    here = threading.get_ident()
    return [frame for thread, frame in sys._current_frames().items() if thread != here]
