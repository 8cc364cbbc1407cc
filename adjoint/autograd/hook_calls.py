"""Running nodes with hooks: tensor hooks before a node, its own hooks before and after it, leaf hooks before accumulation."""

from __future__ import annotations

from typing import Any

from .._runtime.extra import OWN
from ..kernels.runtime.lazy_conj import materialize
from ..kernels.runtime.meta_array import Meta
from ..kernels.runtime.shapes import with_sizes
from ..kernels.runtime.sparse_array import SparseArray
from ..tape import modes
from ..tape.evaluation import evaluated, recorded
from ..tape.modes import FLAGS, STATE
from ..tape.node import AccumulateGrad, Node, accumulator_of, live_accumulator, own_hooks
from ..tensor import Tensor, as_array, ndarray
from .accumulate import accumulate
from .anomaly_mode import report
from .graph_task import GraphTask
from .shown import made, shown
from .validate_grad import as_taken, validate_grad


def stop_recording() -> None:
    """Do not record user hooks until the backward ends, unless the backward records gradients."""
    task = STATE.task
    if task is not None:
        task.stop_recording()


def to_tensor(grad: Any) -> Any:
    """Return a gradient as a tensor for hooks. It is writable unless its elements share memory."""
    if type(grad) is not ndarray:
        if grad is None or isinstance(grad, Tensor):
            return grad
        grad = as_array(grad)
    task = STATE.task
    if task is None or (grad.size < 2 and not grad.flags.writeable):
        return made(grad.copy())
    return shown(task, grad)


def from_tensor(grad: Any, create_graph: bool) -> Any:
    """Return a gradient in the form in which the engine passes it on."""
    if create_graph or grad is None:
        return grad
    array = grad._array
    return array if type(array) is ndarray else materialize(array)


def check_replacement(original: Tensor | None, replacement: Any, hook: Any) -> None:
    """Raise an error if a hook has returned a value that cannot replace the gradient."""
    if not isinstance(replacement, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(replacement).__name__}'")
    if original is None:
        raise RuntimeError(f"can't replace a None gradient with a non-None value in {hook!r}")
    new, old = replacement._array, original._array
    if new is not old and (new.dtype != old.dtype or _kind(new) is not _kind(old)):
        raise RuntimeError(
            f"hook '{name_of(hook)}' has changed the type of value (was {_type_name(original)} got {_type_name(replacement)})"
        )
    if replacement._array.shape != original._array.shape:
        raise RuntimeError(f"hook '{name_of(hook)}' has changed the size of value")


def _kind(array: Any) -> Any:
    """Return what must stay the same besides the dtype: whether elements exist, and the layout."""
    return type(array) if type(array) in (Meta, SparseArray) else ndarray


def _type_name(tensor: Tensor) -> str:
    """Return the name of the type of a tensor in errors about hooks."""
    scalar = tensor.dtype.scalar_type
    if tensor.is_meta or tensor.is_complex():
        return f"{'Meta' if tensor.is_meta else 'CPU'}{scalar}Type"
    return f"torch.{'sparse.' if tensor.is_sparse else ''}{scalar}Tensor"


def name_of(hook: Any) -> str:
    """Return the name of a hook for error messages."""
    return getattr(hook, "__name__", None) or repr(hook)


def apply_hooks(hooks: Any, grad: Tensor | None) -> Tensor | None:
    """Pass `grad` through the hooks of one tensor, in order."""
    for hook in list(hooks.values()):
        replacement = hook(grad)
        if replacement is not None:
            check_replacement(grad, replacement, hook)
            grad = replacement
    return grad


def run_tensor_hooks(node: Node, grad: Any, create_graph: bool) -> Any:
    """Run the hooks of the tensors that are outputs of `node`. Then fill the `.grad` of the tensors that retain it."""
    hooks: Any = node._hooks
    several = type(grad) is list
    values = [to_tensor(item) for item in grad] if several else [to_tensor(grad)]
    stop_recording()
    for number, groups in list(hooks.tensor.items()):
        for of_tensor in groups:
            values[number] = apply_hooks(of_tensor, values[number])
    if hooks.retained:
        for number, reference in list(hooks.retained.items()):
            tensor = reference()
            if tensor is not None and values[number] is not None:
                keep_grad(tensor, values[number], create_graph)
    return [from_tensor(value, create_graph) for value in values] if several else from_tensor(values[0], create_graph)


def keep_grad(tensor: Tensor, grad: Tensor, create_graph: bool) -> None:
    """Add `grad` to `tensor.grad` for `retain_grad`."""
    if tensor._grad is None:
        tensor._grad = grad.clone() if create_graph else made(grad._array.copy())
    else:
        tensor._grad = tensor._grad + grad


def run_with_hooks(node: Node, grad: Any, retain_graph: bool, create_graph: bool, edges: Any) -> tuple[Any, ...]:
    """Run `node` with its pre-hooks and post-hooks. The hooks of its outputs have already run."""
    hooks = own_hooks(node)
    several = type(grad) is list
    if hooks.pre:
        grads = tuple(to_tensor(item) for item in (grad[: node.grad_count] if several else [grad]))
        stop_recording()
        for hook in list(hooks.pre.values()):
            grads = replaced_tuple(hook, hook(grads), grads)
        plain = [from_tensor(item, create_graph) for item in grads]
        grad = [*plain, *grad[len(plain) :]] if several else plain[0]
    return run_post_hooks(node, run_node(node, grad, retain_graph, create_graph, edges), grad, create_graph, edges)


def run_node(node: Node, grad: Any, retain_graph: bool, create_graph: bool, edges: Any) -> tuple[Any, ...]:
    """Run the node itself, unless it has received no gradient."""
    undefined = all(item is None for item in grad) if type(grad) is list else grad is None
    if undefined and not node.runs_undefined:
        return (None,) * len(node._edges)
    try:
        if type(grad) is ndarray:
            return node.backward(grad, retain_graph, edges)
        return (recorded if create_graph else evaluated)(node, grad, retain_graph, edges)
    except Exception as error:
        explain(error, node)
        raise


def explain(error: Exception, node: Node) -> None:
    """Add a note with the operation whose backward failed, or raise PyTorch's error if NumPy refuses shapes."""
    shown = with_sizes(error) if hasattr(node, "operator") else error
    note = f"in the backward of {node.name()}, recorded at {node.describe_origin()}"
    if note not in getattr(shown, "__notes__", ()):
        shown.add_note(note)
    if shown is not error:
        raise shown from None


def replaced_tuple(hook: Any, result: Any, grads: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the gradients after a hook of a node. A result of the hook replaces all gradients."""
    if result is None:
        return grads
    if not isinstance(result, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(result).__name__}'")
    if len(result) != len(grads):
        raise RuntimeError(
            f"hook '{name_of(hook)}' has returned an incorrect number of values (got {len(result)}, but "
            f"expected {len(grads)})"
        )
    for old, new in zip(grads, result, strict=True):
        if new is not None and old is not None:
            check_replacement(old, new, hook)
        elif new is not None:
            raise RuntimeError("can't replace a None gradient with a non-None value")
    return result


def run_post_hooks(node: Node, results: Any, grad: Any, create_graph: bool, edges: Any) -> tuple[Any, ...]:
    """Run the post-hooks of the node on the requested gradients at `edges` and the gradients that it received."""
    post = [hook for group in own_hooks(node).post for hook in list(group.values())]
    if not post:
        return results
    outputs = tuple(to_tensor(item) for item in (grad[: node.grad_count] if type(grad) is list else [grad]))
    given = node._edges if node.runs_undefined else edges  # a custom function computes all gradients, needed or not
    inputs = tuple(
        None
        if result is None or (edge is None and not node.runs_undefined)
        else to_tensor(result if edge is None else as_taken(result, edge, node))
        for edge, result in zip(given, results, strict=True)
    )
    stop_recording()
    for hook in post:
        inputs = replaced_tuple(hook, hook(inputs, outputs), inputs)
    return tuple(from_tensor(item, create_graph) for item in inputs)


def run_accumulator(node: AccumulateGrad, grad: Any, create_graph: bool) -> None:
    """Accumulate through an `AccumulateGrad` that has hooks."""
    hooks = own_hooks(node)
    grads: tuple[Any, ...] = (to_tensor(grad),)
    stop_recording()
    for hook in list((hooks.pre or {}).values()):
        grads = replaced_tuple(hook, hook(grads), grads)
    leaf, is_first = node.variable, node.variable._grad is None
    if grads[0] is not None:
        accumulate(leaf, from_tensor(grads[0], create_graph), create_graph)
        if is_first and leaf._grad is not None and not create_graph:
            grads = (made(leaf._grad._array),)  # post-hooks see changes of `.grad`, which has taken the gradient over
    run_post_accumulate_hooks(leaf)
    for group in hooks.post:
        for hook in list(group.values()):
            hook((), grads)


def run_alone(node: AccumulateGrad, *grads: Any, **names: Any) -> tuple[()]:
    """Accumulate a gradient: the call `accumulate_grad(grad)`."""
    node._check_call(grads, names)
    leaf = node.variable
    if grads[0] is not None:
        recorded = modes.is_grad_enabled()
        grad = from_tensor(grads[0], recorded)  # a reference that prevents adoption of the caller's buffer
        accumulate(leaf, grad, recorded)
    with modes.switched(grad_enabled=False):
        run_post_accumulate_hooks(leaf)
    return ()


def run_post_accumulate_hooks(leaf: Tensor) -> None:
    """Run the hooks after accumulation into the `.grad` of `leaf`."""
    extra = leaf._extra
    if extra is not None and extra.post_hooks:
        stop_recording()
        value, replaced = leaf, False
        for hook in list(extra.post_hooks.values()):
            result = hook(value)
            if result is not None:
                check_replacement(value, result, hook)
                replaced = replaced or result is not value
                value = result
        if replaced:
            raise RuntimeError("Tensor post accumulate grad hooks should return None.")


# --- leaves that have hooks, or whose gradient is requested or recorded ------------------------------------------


def finish_leaf(leaf: Tensor, buffers: dict[Any, Any], task: GraphTask) -> None:
    """Finish `leaf`, whose gradients are complete: run its hooks, then accumulate or capture."""
    extra, place = leaf._extra, id(leaf)
    if extra is not None and not extra.hooks and extra.grad_dtype is OWN and not FLAGS.special and place in buffers:
        node = live_accumulator(leaf)
        if (node is None or node._hooks is None) and task.accumulates(leaf):
            accumulate(leaf, buffers.pop(place), task.create_graph)
            run_post_accumulate_hooks(leaf)
            return
    try:
        take_to_leaf(leaf, buffers.pop(place, None), task)
    except Exception:
        if modes.ANOMALY.enabled:
            report(leaf)
        raise


def take_to_leaf(leaf: Tensor, grad: Any, task: GraphTask) -> None:
    """Run the hooks of `leaf` and accumulate, or capture. `grad` is None if all gradients were None."""
    capture = task.capture
    if capture is not None and id(leaf) not in capture.leaves and leaf is not task.root:
        return
    extra = leaf._extra
    if extra is not None and extra.grad_dtype is not OWN and grad is not None:
        grad = validate_grad(grad, grad.shape, leaf._array.dtype, None, leaf)
    if extra is not None and extra.hooks:
        task.stop_recording()
        grad = from_tensor(apply_hooks(extra.hooks, to_tensor(grad)), task.create_graph)
    if capture is not None and (id(leaf) not in capture.leaves or not task.accumulating):
        if id(leaf) in capture.leaves:
            capture.leaves[id(leaf)] = grad
        return
    if FLAGS.special and STATE.recorder is not None:
        STATE.recorder.backward(accumulator_of(leaf), lambda node, grad: add_to_leaf(leaf, grad, task), grad)
    else:
        add_to_leaf(leaf, grad, task)


def add_to_leaf(leaf: Tensor, grad: Any, task: GraphTask) -> None:
    """Add `grad` to the `.grad` of a leaf in an unusual case."""
    node = live_accumulator(leaf)
    if node is not None and node._hooks is not None:
        run_accumulator(node, grad, task.create_graph)
    else:
        if grad is not None:
            accumulate(leaf, grad, task.create_graph)
        run_post_accumulate_hooks(leaf)
