"""`explain`: the origin of a NaN, the reason for a missing gradient, and the change of a tensor that backward needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._runtime.tracebacks import ending_at_caller
from ..autograd.anomaly_mode import has_nan
from ..autograd.engine import deliver, discover
from ..autograd.graph_task import Capture, GraphTask
from ..autograd.roots import first_grad
from ..kernels.runtime.floating import OFF, WARNINGS, restore
from ..tape import anomaly, modes
from ..tape.anomaly import Statistics, elements
from ..tape.edges import edge_of
from ..tape.evaluation import evaluated
from ..tape.node import Node
from ..tape.saved import RELEASED, unpack
from ..tape.stale_error import Subject
from ..tensor import Tensor, ndarray

OF_GRADIENT = "If it is a gradient, explain the tensor whose backward it comes from."
ENABLE = (
    "Run it within torch.autograd.detect_anomaly() to learn more: then every operation's place and values are noted."
)


class Explanation(str):
    """The result of `explain`, as text. `node` is the operation, and `line` is the line of the operation in the user's code."""

    __slots__ = ("line", "node")

    node: Node | None
    line: str | None

    def __new__(cls, text: str, node: Node | None = None) -> Explanation:
        """Create an explanation about `node`."""
        self = super().__new__(cls, text)
        self.node = node
        self.line = None if node is None else node.describe_origin()
        return self

    def __repr__(self) -> str:
        return str(self)


@ending_at_caller
def explain(subject: BaseException | Tensor) -> Explanation:
    """Explain the origin of an error, a NaN or a missing gradient.

    Args:
        subject: one of these objects:

            - an error of a backward. For a NaN, name the operation that produced it and its operands. For a saved
              tensor that was changed in place, name the operations that saved and changed it. For a tensor without
              history, name the place where the history was cut;
            - a tensor with NaNs: name the first operation of its history that produced a NaN;
            - a tensor whose backward produces NaNs (unless the graph has been freed): name the first operation that
              produces a NaN;
            - a leaf whose `.grad` is None: name the places where the paths from the leaf were cut (`detach`, `no_grad`,
              a conversion to integers), or report that the leaf was not used. For any other tensor without a `.grad`:
              report that it must retain its gradient;
            - a tensor that does not require grad: name the place where its history was cut.

    Cuts are known only for operations under `detect_anomaly()`, which also records values.

    >>> import adjoint as torch
    >>> x = torch.tensor([0.0, 4.0], requires_grad=True)
    >>> y = (x / x).sqrt().sum()
    >>> print(torch.autograd.explain(y).splitlines()[0])
    DivBackward0 made 1 nan of numbers.
    """
    if isinstance(subject, BaseException):
        return _of_error(subject)
    if not isinstance(subject, Tensor):
        raise TypeError(f"explain(): expected a Tensor or an exception, but got {type(subject).__name__}")
    if has_nan(subject):
        return _of_nan(subject)
    if edge_of(subject) is None:
        return _without_history(subject)
    if subject.is_leaf:
        return _of_leaf(subject)
    return _of_backward(subject)


# --- errors ---------------------------------------------------------------------------------------------------


def _of_error(error: BaseException) -> Explanation:
    subject = getattr(error, "subject", None) or Subject()
    node, results, tensor = subject.node, subject.results, subject.tensor
    if node is not None and results is not None:
        return _of_nan_gradient(node, subject.grads, results)
    lines = [f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())]
    if isinstance(tensor, Tensor):
        lines.append(_without_history(tensor) if edge_of(tensor) is None else _of_leaf(tensor))
    return Explanation("\n".join(lines), node)


def _of_nan_gradient(node: Node, grads: list[Statistics], results: list[Statistics | None]) -> Explanation:
    new = not any(each.nans for each in grads)
    lines = [
        f"The backward of {node.name()} {'made' if new else 'passed on'} a nan.",
        f"Recorded at {node.describe_origin()}",
    ]
    lines += [f"  gradient it was given: {each}" for each in grads]
    known = node.metadata.get("inputs_")
    if known is None:
        lines += [f"  saved {name}: {Statistics.of(array)}" for name, array in _saved_arrays(node)]
    else:
        lines += [f"  input {index}: {each}" for index, each in enumerate(known)]
    lines += [f"  gradient of input {index}: {each}" for index, each in enumerate(results) if each is not None]
    if not new:
        lines.append(
            "The nan was in the gradient that it was given: the backward's own root, a hook, or a sum of infinities brought it."
        )
    return Explanation("\n".join(lines), node)


def _saved_arrays(node: Node) -> Iterator[tuple[str, Any]]:
    """Return the arrays that `node` still holds, by the names of its operator's inputs and results."""
    for name in node.saved_tensor_names:
        saved = getattr(node, f"saved_{name}", None)
        if saved is None or saved is RELEASED or isinstance(saved, list):
            continue
        array = saved if type(saved) is ndarray else saved._array if type(saved) is Tensor else _unpacked(node, name)
        if array is not None:
            yield name, array


def _unpacked(node: Node, name: str) -> Any:
    try:
        tensor = unpack(node, name)
    except Exception:  # noqa: BLE001  (of the user's hook, or of a hook that can be called only once)
        return None
    return None if tensor is None else tensor._array


# --- a nan in the forward -------------------------------------------------------------------------------------


def _of_nan(tensor: Tensor) -> Explanation:
    edge = edge_of(tensor)
    count = Statistics.of(tensor._array).nans
    if type(edge) is not tuple:
        maker = anomaly.NANS.get(tensor)
        origin = f"it was made by {maker}" if maker else f"the nan was put in, or computed unrecorded.\n{OF_GRADIENT}"
        return Explanation(
            f"{count} of the {tensor.numel()} elements {'is' if count == 1 else 'are'} nan, and the tensor has no history: "
            f"{origin}{_cut_before(tensor)}"
        )
    order, _ = discover([edge])
    token = WARNINGS[OFF]
    try:
        values = _Values(tensor, order)
    finally:
        restore(token)
    given: Node | None = None
    for node in reversed(order):  # in the order of recording
        outputs = values.outputs(node)
        if not any(each.nans for each in outputs):
            continue
        inputs = values.inputs(node)
        if any(each.nans for _, each in inputs):
            given = given or node
            continue
        made = sum(each.nans for each in outputs)
        sure = "inputs_" in node.metadata or len(inputs) >= len(node._edges)
        head = f"{node.name()} made {made} nan{'' if made == 1 else 's'} of numbers."
        if not sure:
            head = f"{node.name()} is the first operation known to have a nan in its result; not all of its inputs are known."
        return _of_operation(node, head, inputs, outputs, "" if sure else ENABLE)
    if given is not None:
        head = f"{given.name()} was given a nan, which no recorded operation made."
        return _of_operation(given, head, values.inputs(given), values.outputs(given), "")
    return Explanation(f"{count} elements are nan.\n{ENABLE}")


def _of_operation(
    node: Node, head: str, inputs: list[tuple[str, Statistics]], outputs: list[Statistics], advice: str
) -> Explanation:
    lines = [head, f"Recorded at {node.describe_origin()}", *(f"  {name}: {each}" for name, each in inputs)]
    lines += [f"  result: {each}" for each in outputs]
    if made := node.metadata.get("nan_"):
        lines.append(f"The nan was made by {made}")
    return Explanation("\n".join([*lines, advice] if advice else lines), node)


class _Values:
    """The known values in the history of a tensor, by (node, output_nr): arrays, and statistics of former arrays."""

    def __init__(self, tensor: Tensor, order: list[Node]) -> None:
        self.arrays: dict[Any, Any] = {edge_of(tensor): tensor._array}
        self.notes: dict[Any, Statistics] = {}
        for node in order:
            for number, each in enumerate(node.metadata.get("outputs_", ())):
                self.notes[node, number] = each
            for name in node.saved_tensor_names:
                saved = getattr(node, f"saved_{name}", None)
                if type(saved) is ndarray:
                    outputs = node.operator.outputs
                    self.arrays[node, outputs.index(name) if outputs else 0] = saved
                elif isinstance(saved, Tensor) and type(saved._edge) is tuple:
                    self.arrays[saved._edge] = saved._array
        for node in reversed(order):
            if (node, 0) not in self.arrays and (result := self._computed_again(node)) is not None:
                self.arrays[node, 0] = result

    def of(self, edge: Any) -> Statistics | None:
        """Return the statistics of the value at `edge`, if known."""
        if isinstance(edge, Tensor):
            return Statistics.of(edge._array)
        return Statistics.of(self.arrays[edge]) if edge in self.arrays else self.notes.get(edge)

    def outputs(self, node: Node) -> list[Statistics]:
        """Return the known statistics of the outputs of `node`."""
        count = len(node._grad_shape) if type(node._grad_shape) is list else 1
        return [found for number in range(count) if (found := self.of((node, number))) is not None]

    def inputs(self, node: Node) -> list[tuple[str, Statistics]]:
        """Return the known statistics of the inputs of `node`, by name."""
        noted = node.metadata.get("inputs_")
        if noted is not None:
            return [(f"input {number}", each) for number, each in enumerate(noted)]
        names = _input_names(node)
        found: dict[str, Statistics] = {}
        for number, edge in enumerate(node._edges):
            known = None if edge is None else self.of(edge)
            if known is not None:
                found[names[number] if number < len(names) else f"input {number}"] = known
        for name, array in _saved_arrays(node):
            if name in names:
                found.setdefault(name, Statistics.of(array))
        return list(found.items())

    def _computed_again(self, node: Node) -> Any:
        """Compute the result of `node` again, if all its inputs are known."""
        names = _input_names(node)
        operator: Any = getattr(node, "operator", None)
        if not names or operator.outputs or list(operator.names) != names:
            return None
        arrays = dict(_saved_arrays(node))
        for name, edge in zip(names, node._edges, strict=True):
            if isinstance(edge, Tensor):
                arrays[name] = edge._array
            elif edge in self.arrays:
                arrays[name] = self.arrays[edge]
        if any(name not in arrays for name in names):
            return None
        result = operator.kernel(*(arrays[name] for name in names))
        return result if result.shape == node._grad_shape and result.dtype == node._grad_dtype else None


def _input_names(node: Node) -> list[str]:
    """Return the names of the inputs at the edges of `node`, or no names if the inputs are a sequence."""
    operator = getattr(node, "operator", None)
    return list(operator.differentiable) if operator is not None and operator.sequence is None else []


# --- a nan in the backward ------------------------------------------------------------------------------------


def _of_backward(root: Tensor) -> Explanation:
    """Run a backward of `root` without side effects, and stop at the first NaN."""
    state = modes.STATE
    task, outer = GraphTask(), state.task
    task.retain_graph, task.capture = True, Capture(())
    task.order, task.uses = discover([edge_of(root)])
    token = WARNINGS[OFF]
    state.task = task
    try:
        found = _first_nan(root, task.order)
    finally:
        state.task = outer
        if task.stopped_recording:
            modes.set_grad(True)
        restore(token)
    if found.node is None and root._grad is None and not root.retains_grad:
        node = task.order[0]
        found = Explanation(
            f"{found}\nIt is no leaf, but a result of {node.name()}: it gets a .grad only if retain_grad() is called on it "
            f"before backward.\nRecorded at {node.describe_origin()}"
        )
    return found


def _first_nan(root: Tensor, order: list[Node]) -> Explanation:
    """Run the nodes in `order`, and explain the first NaN."""
    buffers: dict[Any, Any] = {}
    deliver(first_grad(root, False), edge_of(root), None, buffers)
    for node in order:
        grad = buffers.pop(node, None)
        if grad is None:
            continue
        try:
            results = evaluated(node, grad, True, node._edges)
        except Exception as error:  # noqa: BLE001  (the user's error, or that of a freed graph)
            return Explanation(f"Its backward cannot be tried: {_of_error(error)}")
        if any(result is not None and has_nan(result) for result in results):
            given = grad if isinstance(grad, list) else [grad]
            grads = [Statistics.of(elements(each)) for each in given if each is not None]
            made = [None if each is None else Statistics.of(elements(each)) for each in results]
            return _of_nan_gradient(node, grads, made)
        for edge, result in zip(node._edges, results, strict=True):
            if edge is not None and result is not None:
                deliver(result, edge, node, buffers)
                held = buffers.get(edge[0] if type(edge) is tuple else id(edge))
                held = held[edge[1]] if isinstance(held, list) else held
                if held is not None and has_nan(held):
                    return Explanation(
                        f"Gradients that arrive at one place add up to nan; the last is from the backward of {node.name()}.\n"
                        f"Recorded at {node.describe_origin()}\n"
                        f"  gradient: {Statistics.of(result)}\n  sum: {Statistics.of(held)}",
                        node,
                    )
    return Explanation("There is no nan in this tensor, and its backward, without hooks, makes none.")


# --- no gradient ----------------------------------------------------------------------------------------------


def _without_history(tensor: Tensor) -> Explanation:
    cut = _cut_before(tensor)
    if not cut:
        cut = (
            " It was made from data, or from tensors that do not require grad, or cut off from them unnoticed. Explain a leaf "
            f"that it should depend on, to see where paths from that were cut.\n{ENABLE}"
        )
    return Explanation(f"The tensor has no history and does not require grad.{cut}")


def _cut_before(tensor: Tensor) -> str:
    cut = anomaly.CUT_BEFORE.get(tensor)
    return "" if cut is None else f" Its history was cut off by {cut}"


def _of_leaf(leaf: Tensor) -> Explanation:
    if leaf._grad is not None:
        return Explanation("The tensor has a gradient.")
    cuts, uses = anomaly.CUTS_TO.get(leaf) or [], anomaly.USES.get(leaf) or []
    lines = ["No gradient has arrived at the tensor."]
    lines += [f"A path from it was cut by {cut}" for cut in cuts]
    if uses:
        lines.append("It was used, and recorded, here; no backward has come by, or the root does not depend on it:")
        lines += [f"  {use}" for use in uses]
    elif not cuts:
        lines.append(
            "No use of it has been noted: it was not used, or as mere numbers, or not within detect_anomaly()."
        )
        lines.append(ENABLE)
    return Explanation("\n".join(lines))
