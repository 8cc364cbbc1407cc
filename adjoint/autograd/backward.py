"""`backward` and `grad`: checking what the caller asks for, and starting the engine."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy

from ..device import Size
from ..dispatch.lazy_stubs import begun
from ..dispatch.meta import has_meta
from ..dtypes import from_numpy
from ..kernels.runtime.floating import quiet, restore
from ..kernels.runtime.lazy_conj import resolved
from ..kernels.runtime.meta_array import Meta
from ..late_bound import LATE
from ..settings import is_warn_always_enabled
from ..tape import modes
from ..tape.edges import edge_of
from ..tape.modes import GATE, STATE
from ..tape.node import NOWHERE
from ..tensor import Tensor, as_array, history, ndarray, wrap
from .accumulate import Shown, made
from .engine import run
from .gradient_edge import GradientEdge, recorded_edge
from .graph_task import Capture


@begun
def backward(
    tensors: Tensor | Sequence[Tensor] | GradientEdge | Sequence[GradientEdge],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Accumulate the sum of gradients of `tensors` into the `.grad` of the leaves they were computed from.

    Args:
        tensors: roots. Those of more than one element need an entry in `grad_tensors`.
        grad_tensors: the vector of the vector-Jacobian product, one of the shape of each root (None for a scalar: 1).
        retain_graph: keep what nodes have saved, for another backward. Default: the value of `create_graph`.
        create_graph: record the computation of the gradients, for higher derivatives.
        inputs: accumulate only into these tensors.

    Raises:
        RuntimeError: if a root does not require grad, a gradient has the wrong shape, saved tensors have been freed or
            changed in place.

    >>> import adjoint as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> torch.autograd.backward((x * x).sum())
    >>> x.grad
    tensor([2., 4.])
    """
    if STATE.transforms:
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported, please use functorch.grad or functorch.vjp "
            "instead or call backward() outside of functorch transforms."
        )
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only use "
                "`grad_tensors`."
            )
        grad_tensors = grad_variables
    keep = create_graph if retain_graph is None else retain_graph
    if inputs is None and (plain := plain_root(tensors, grad_tensors, create_graph)) is not None:
        start([plain[0]], [plain[1]], keep, create_graph, None, True, shown_from(grad_tensors))
        if create_graph:
            warn_of_cycle()
        return
    roots = as_tuple(tensors)
    if inputs is not None and len(as_tuple(inputs)) == 0:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    grads = make_grads(roots, grad_tensors, create_graph)
    capture = None
    if inputs is not None:
        capture = Capture()
        for item in as_tuple(inputs):
            if isinstance(item, Tensor) and edge_of(item) is None:
                raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
            edge = edge_of_input(item)
            if type(edge) is tuple and isinstance(item, Tensor):
                item.retain_grad()
            capture.add(edge)
    edges = [root_edge(root) for root in roots]
    start(edges, grads, keep, create_graph, capture, True, shown_from(grad_tensors))
    if create_graph:
        warn_of_cycle()


@begun
def grad(
    outputs: Tensor | Sequence[Tensor] | GradientEdge | Sequence[GradientEdge],
    inputs: Tensor | Sequence[Tensor] | GradientEdge | Sequence[GradientEdge],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The sum of gradients of `outputs` with respect to `inputs`, returned, not accumulated.

    Args:
        outputs: roots, as the tensors of `backward`.
        inputs: leaves, intermediate tensors or gradient edges.
        grad_outputs: the vector of the vector-Jacobian product, one for each output.
        retain_graph: keep what nodes have saved. Default: the value of `create_graph`.
        create_graph: record the computation of the gradients, for higher derivatives.
        only_inputs: deprecated and ignored; only `inputs` get gradients.
        allow_unused: give None for an input that the outputs do not depend on, instead of raising.
            Default: the value of `materialize_grads`.
        is_grads_batched: `grad_outputs` have a leading dimension: one product for each slice.
        materialize_grads: give zeros for such inputs.

    Raises:
        RuntimeError: as `backward`, and for unused inputs.

    >>> import adjoint as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> torch.autograd.grad(x ** 2, x)
    (tensor(6.),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for other "
            "parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    targets = as_tuple(inputs)
    if not targets:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    keep = create_graph if retain_graph is None else retain_graph
    plain = None if is_grads_batched else plain_root(outputs, grad_outputs, create_graph)
    if plain is not None:
        starts, grads = [plain[0]], [plain[1]]
    else:
        roots = as_tuple(outputs)
        if is_grads_batched:
            grads = batched_grads(roots, as_tuple(grad_outputs))
            columns = batched_grad(roots, targets, grads, keep, create_graph)
            return checked_results(targets, columns, allow_unused, materialize_grads, create_graph)
        grads = make_grads(roots, grad_outputs, create_graph)
        starts = [root_edge(root) for root in roots]
    capture = Capture()
    edges = [edge_of_input(item) for item in targets]
    for edge in edges:
        capture.add(edge)
    shown = shown_from(grad_outputs)
    start(starts, grads, keep, create_graph, capture, False, shown)
    values = [capture.value(edge) for edge in edges]
    if not create_graph:
        tensor_of = made if len(values) == 1 and not shown and not shown.given else shown.tensor
        values = [
            value if value is None or isinstance(value, Tensor) else tensor_of(as_array(value)) for value in values
        ]
    return checked_results(targets, values, allow_unused, materialize_grads, create_graph)


def shown_from(given: Any) -> Shown:
    """What is known outside of a backward's gradients when it begins with the tensors `given`, if any."""
    shown = Shown()
    if given is not None:
        shown.given = as_tuple(given)
    return shown


def checked_results(
    targets: tuple[Any, ...], values: Sequence[Any], allow_unused: bool, zeros: bool, create_graph: bool
) -> tuple[Any, ...]:
    """The gradients found for `targets` as tensors; what becomes of those that are None is up to the caller of `grad`."""
    for value in values:
        if value is None:
            break
    else:
        return tuple(values)
    results: list[Any] = []
    for item, value in zip(targets, values, strict=True):
        if value is None and zeros:
            if isinstance(item, GradientEdge):
                raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
            value = made(numpy.zeros_like(item._array))
            value.requires_grad = create_graph
        elif value is None and not allow_unused:
            raise about(
                item,
                f"The differentiated Tensor at index {len(results)} appears to not have been used in the graph. Set "
                "allow_unused=True if this is the desired behavior.",
            )
        results.append(value)
    return tuple(results)


def about(tensor: Any, message: str) -> RuntimeError:
    """An error that knows which tensor it is about, for `explain`."""
    error = RuntimeError(message)
    error.tensor = tensor  # type: ignore[attr-defined]
    return error


def batched_grads(roots: tuple[Any, ...], grads: tuple[Any, ...]) -> list[Tensor]:
    """The `grad_outputs` of a batched `grad`: checked, of one and the same leading size."""
    grads = grads or (None,) * len(roots)
    if len(grads) < len(roots):
        raise RuntimeError(f"got {len(roots)} tensors and {len(grads)} gradients")
    for index, (root, value) in enumerate(zip(roots, grads, strict=False)):
        shape = metadata_of(root)[0]
        if value is None and shape != () and math.prod(shape) != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if value is None:
            raise ValueError(
                "vmap(vjp, in_dims=0, ...)(<inputs>): Got in_dim=0 for some input, but that input is a Tensor of "
                "dimensionality 0 so expected in_dim to satisfy 0 <= in_dim < 0."
            )
        if value._array.ndim == 0:
            raise IndexError(
                "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
                "0-dim tensor to a number"
            )
        if value._array.shape[0] == 0:
            raise IndexError("index 0 is out of bounds for dimension 0 with size 0")
        if value._array.shape[1:] != shape:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. "
                "The sizes of the remaining dimensions are expected to match the shape of corresponding output, but a "
                f"mismatch was detected: grad_output[{index}] has a shape of {value.shape} and output[{index}] has a shape "
                f"of {Size(shape)}. If you only want some tensors in `grad_output` to be considered batched, consider "
                "using vmap."
            )
    sizes = [value._array.shape[0] for value in grads if value is not None]
    if any(size != sizes[0] for size in sizes):
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped "
            "dimension"
        )
    return [value for value in grads if value is not None]


def batched_grad(roots: Any, targets: Any, grads: list[Tensor], keep: bool, create_graph: bool) -> list[Any]:
    """One vector-Jacobian product for each slice of the leading dimension, all at once; None for what is not used."""
    unused: list[bool] = []

    def product(*vector: Tensor) -> tuple[Any, ...]:
        found = grad(roots, targets, vector, keep, create_graph, allow_unused=True)
        unused[:] = [value is None for value in found]
        return tuple(value for value in found if value is not None)

    found = iter(LATE.vmap(product)(*grads))
    return [None if nothing else next(found) for nothing in unused]


def start(
    edges: Any, grads: Any, keep: bool, create_graph: bool, capture: Any, accumulating: bool, shown: Shown | None = None
) -> None:
    """Run the engine with NumPy's warnings off, recording only under `create_graph`."""
    token = quiet()
    try:
        if create_graph or (GATE.special and STATE.levels) or (grads and isinstance(grads[0], Tensor)):  # on `meta`
            was_recording = STATE.grad_enabled
            modes.set_grad(create_graph)
            try:
                run(edges, grads, keep, True, capture, accumulating, shown)
            finally:
                modes.set_grad(was_recording)
        else:
            run(edges, grads, keep, False, capture, accumulating, shown)
    finally:
        restore(token)


_warned_of_cycle = False


def warn_of_cycle() -> None:
    """Warn, once in a process, of what `backward(create_graph=True)` leaves behind."""
    global _warned_of_cycle
    if is_warn_always_enabled() or not _warned_of_cycle:
        _warned_of_cycle = _warned_of_cycle or not is_warn_always_enabled()
        warnings.warn(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient "
            "which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you "
            "have to use this function, make sure to reset the .grad fields of your parameters to None after use to break "
            "the cycle and avoid the leak.",
            UserWarning,
            stacklevel=3,
        )


def on_tensors(create_graph: bool) -> bool:
    """Whether all gradients are tensors, because they are recorded or carry something of a level, or else bare arrays.

    Those of tensors on `meta` are tensors too.
    """
    return create_graph or bool(modes.STATE.levels)


def as_tuple(value: Any) -> tuple[Any, ...]:
    """One tensor, or gradient edge, as a tuple of one."""
    if value is None:
        return ()
    if isinstance(value, (Tensor, GradientEdge)):
        return (value,)
    return tuple(value)


def asked_edge(tensor: Tensor) -> Any:
    """The edge of a tensor that a backward begins at; RuntimeError for a view for which it has become ambiguous."""
    if tensor._base is not None:
        history(tensor)
    return edge_of(tensor)


def root_edge(root: Any) -> Any:
    """Where the gradient of a root enters the graph."""
    if isinstance(root, GradientEdge):
        return recorded_edge(root)
    return edge_of(root)


def edge_of_input(item: Any) -> Any:
    """The edge whose gradient is asked for."""
    if not isinstance(item, (Tensor, GradientEdge)):
        raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(item).__name__}")
    edge = recorded_edge(item) if isinstance(item, GradientEdge) else edge_of(item)
    if edge is None:
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    return edge


def _read_only_one(kind: Any) -> Any:
    one = numpy.ones((), kind)
    one.flags.writeable = False
    return one


_ONES = {numpy.dtype(kind): _read_only_one(kind) for kind in (numpy.float32, numpy.float64)}


def first_grad(root: Tensor, as_tensor: bool) -> Any:
    """The gradient 1 for a root of one element."""
    array = root._array
    if type(array) is Meta:
        return wrap(array.copy())
    one = _ONES.get(array.dtype) if array.ndim == 0 else None
    if one is not None:
        return wrap(one.copy()) if as_tensor else one
    ones = numpy.ones_like(array)
    return wrap(ones) if as_tensor else ones


def plain_root(root: Any, given: Any, as_tensor: bool) -> tuple[Any, Any] | None:
    """The edge of a root and the gradient it begins with, where nothing is in question about either; else None."""
    if type(root) is not Tensor or GATE.special:
        return None
    array = root._array
    if type(array) is not ndarray:
        return None
    if given is None:
        if array.size != 1 or array.dtype.kind != "f":
            return None
        seed = first_grad(root, as_tensor)
    elif type(given) is Tensor and type(given._array) is ndarray:
        if given._array.dtype is not array.dtype or given._array.shape != array.shape:
            return None
        seed = given if as_tensor else given._array
    else:
        return None
    edge = asked_edge(root)
    return None if edge is None or edge is NOWHERE else (edge, seed)


def make_grads(roots: tuple[Any, ...], grads: Any, create_graph: bool) -> list[Any]:
    """One gradient for each root: checked, or 1 where none is given and the root has one element."""
    given = as_tuple(grads) if grads is not None else (None,) * len(roots)
    if len(given) < len(roots):
        raise RuntimeError(f"got {len(roots)} tensors and {len(given)} gradients")
    results: list[Any] = []
    as_tensors = on_tensors(create_graph) or has_meta(roots)
    for index, (root, value) in enumerate(zip(roots, given, strict=False)):  # further gradients are ignored
        if not isinstance(root, (Tensor, GradientEdge)):
            raise AssertionError("Expected output to be a torch.Tensor")
        if isinstance(root, Tensor) and ((edge := asked_edge(root)) is None or edge is NOWHERE):
            raise about(root, f"element {index} of tensors does not require grad and does not have a grad_fn")
        if value is None and type(root) is Tensor and root._array.ndim == 0 and root._array.dtype.kind == "f":
            results.append(first_grad(root, as_tensors))
            continue
        shape, dtype = metadata_of(root)
        if value is None:
            if math.prod(shape) != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            if dtype.kind == "c":
                raise RuntimeError(
                    f"grad can be implicitly created only for real scalar outputs but got {from_numpy(dtype)}"
                )
            if isinstance(root, Tensor):
                results.append(first_grad(root, as_tensors))
            else:
                ones = numpy.ones(shape, dtype)
                results.append(wrap(ones) if as_tensors else ones)
            continue
        if not isinstance(value, Tensor):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(value).__name__}")
        check_grad(shape, dtype, value, index)
        results.append(value if as_tensors else resolved(value._array))
    return results


def metadata_of(root: Any) -> tuple[tuple[int, ...], Any]:
    """Shape and dtype (NumPy's) of the gradient that a root takes."""
    if isinstance(root, Tensor):
        return root._array.shape, root._array.dtype
    node, number = root.node, root.output_nr
    if type(node.shape) is list:
        return node.shape[number], node.dtype[number]
    return node.shape, node.dtype


def check_grad(shape: tuple[int, ...], dtype: Any, value: Tensor, index: int) -> None:
    """Raise unless `value` has the shape of a root and is complex just where its `dtype` is."""
    if value._array.shape != shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{index}] has a shape of {value.shape} and output[{index}] has a shape of "
            f"{Size(shape)}."
        )
    if (value._array.dtype.kind == "c") != (dtype.kind == "c"):
        raise RuntimeError(
            f"For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{index}] has a dtype of {value.dtype} and output[{index}] has a dtype of {from_numpy(dtype)}."
        )


def _make_grads(outputs: Sequence[Any], grads: Sequence[Tensor | None], is_grads_batched: bool) -> tuple[Any, ...]:
    """The gradients that a backward from `outputs` starts with: `grads`, checked, and 1 for None."""
    if is_grads_batched:
        return tuple(batched_grads(as_tuple(outputs), tuple(grads)))
    return tuple(
        grad if isinstance(grad, Tensor) or grad is None else wrap(numpy.asarray(grad))
        for grad in make_grads(as_tuple(outputs), tuple(grads), False)
    )


def _calculate_shape(output: Tensor | GradientEdge, grad: Tensor, is_grads_batched: bool) -> tuple[Any, Any]:
    """The shape of an output, and that of a gradient for it, of one of a batch."""
    shape = grad._array.shape[1:] if is_grads_batched else grad._array.shape
    return Size(metadata_of(output)[0]), Size(shape)


def _tensor_or_tensors_to_tuple(tensors: Any, length: int) -> tuple[Any, ...]:
    """One tensor, several or none as a tuple of `length`."""
    return (None,) * length if tensors is None else as_tuple(tensors)


def _engine_run_backward(
    t_outputs: Sequence[Any],
    grad_tensors: Sequence[Tensor | None],
    keep_graph: bool,
    create_graph: bool,
    inputs: Sequence[Any] = (),
    allow_unreachable: bool = False,
    accumulate_grad: bool = False,
) -> tuple[Any, ...]:
    """`backward` with `accumulate_grad`, otherwise `grad`, by the arguments that PyTorch's engine takes."""
    if accumulate_grad:
        backward(t_outputs, grad_tensors, keep_graph, create_graph, inputs=inputs or None)
        return ()
    return grad(t_outputs, inputs, grad_tensors, keep_graph, create_graph, allow_unused=allow_unreachable)
