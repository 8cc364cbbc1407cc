"""`backward` and `grad`: checking what the caller asks for, and starting the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from ..kernels.floating import quiet, restore
from ..tape import modes
from ..tape.edges import edge_of
from ..tensor import Tensor, wrap
from .engine import Capture, run
from .graph import GradientEdge
from .hooks import recording_mode


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
    if modes.STATE.transforms:
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported, please use functorch.grad or functorch.vjp "
            "instead or call backward() outside of functorch transforms."
        )
    if grad_variables is not None:
        grad_tensors = grad_variables
    if type(tensors) is Tensor and grad_tensors is None and inputs is None:
        edge = edge_of(tensors)
        if edge is not None and tensors._array.size == 1 and tensors._array.dtype.kind == "f":
            start(
                [edge],
                [first_grad(tensors, create_graph)],
                bool(create_graph if retain_graph is None else retain_graph),
                create_graph,
                None,
                True,
            )
            return
    roots = as_tuple(tensors)
    if inputs is not None and len(as_tuple(inputs)) == 0:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    grads = make_grads(roots, grad_tensors, create_graph)
    capture = None
    if inputs is not None:
        capture = Capture()
        for index, item in enumerate(as_tuple(inputs)):
            if isinstance(item, Tensor) and edge_of(item) is None:
                raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
            edge = edge_of_input(item, index)
            if type(edge) is tuple and isinstance(item, Tensor):
                item.retain_grad()
            capture.add(edge)
    start(
        [root_edge(root) for root in roots], grads, keep_graph(retain_graph, create_graph), create_graph, capture, True
    )


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
        only_inputs: ignored; only `inputs` get gradients.
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
    roots, targets = as_tuple(outputs), as_tuple(inputs)
    if not targets:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if is_grads_batched:
        return batched_grad(roots, targets, as_tuple(grad_outputs), create_graph, allow_unused, materialize_grads)
    grads = make_grads(roots, grad_outputs, create_graph)
    capture = Capture()
    edges = [edge_of_input(item, index) for index, item in enumerate(targets)]
    for edge in edges:
        capture.add(edge)
    start(
        [root_edge(root) for root in roots], grads, keep_graph(retain_graph, create_graph), create_graph, capture, False
    )
    results: list[Any] = []
    for item, edge in zip(targets, edges, strict=True):
        value = capture.value(edge)
        if value is None:
            if materialize_grads:
                value = numpy.zeros_like(item._array)
            elif not allow_unused:
                raise RuntimeError(
                    f"The differentiated Tensor at index {len(results)} appears to not have been used in the graph. Set "
                    "allow_unused=True if this is the desired behavior."
                )
        if value is not None and not isinstance(value, Tensor):
            value = wrap(numpy.asarray(value))
        results.append(value)
    return tuple(results)


def batched_grad(
    roots: Any, targets: Any, grads: Any, create_graph: bool, allow_unused: bool, zeros: bool
) -> tuple[Any, ...]:
    """One vector-Jacobian product for each slice of the leading dimension, stacked."""
    from ..operators import stack

    count = len(grads[0])
    slices = [
        grad(roots, targets, tuple(g[index] for g in grads), True, create_graph, True, allow_unused, False, zeros)
        for index in range(count)
    ]
    return tuple(None if column[0] is None else stack(list(column)) for column in zip(*slices, strict=True))


def start(edges: Any, grads: Any, keep: bool, create_graph: bool, capture: Any, accumulating: bool) -> None:
    """Run the engine with NumPy's warnings off, recording only under `create_graph`."""
    token = quiet()
    try:
        if on_tensors(create_graph):
            with recording_mode(create_graph):
                run(edges, grads, keep, True, capture, accumulating)
        else:
            run(edges, grads, keep, False, capture, accumulating)
    finally:
        restore(token)


def on_tensors(create_graph: bool) -> bool:
    """Whether the gradients are tensors, because they are recorded or carry something of a level, or else bare arrays."""
    return create_graph or bool(modes.STATE.levels)


def keep_graph(retain_graph: bool | None, create_graph: bool) -> bool:
    """Whether nodes keep what they have saved."""
    return create_graph if retain_graph is None else retain_graph


def as_tuple(value: Any) -> tuple[Any, ...]:
    """One tensor, or gradient edge, as a tuple of one."""
    if value is None:
        return ()
    if isinstance(value, (Tensor, GradientEdge)):
        return (value,)
    return tuple(value)


def root_edge(root: Any) -> Any:
    """Where the gradient of a root enters the graph."""
    if isinstance(root, GradientEdge):
        return engine_edge(root)
    return edge_of(root)


def engine_edge(edge: GradientEdge) -> Any:
    """A public gradient edge as the engine writes it."""
    variable = getattr(edge.node, "variable", None)
    return variable if variable is not None else (edge.node, edge.output_nr)


def edge_of_input(item: Any, index: int) -> Any:
    """The edge whose gradient is asked for."""
    edge = engine_edge(item) if isinstance(item, GradientEdge) else edge_of(item)
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
    if array.ndim == 0 and not as_tensor:
        one = _ONES.get(array.dtype)
        if one is not None:
            return one
    ones = numpy.ones_like(array)
    return wrap(ones) if as_tensor else ones


def make_grads(roots: tuple[Any, ...], grads: Any, create_graph: bool) -> list[Any]:
    """One gradient for each root: checked, or 1 where none is given and the root has one element."""
    given = as_tuple(grads) if grads is not None else (None,) * len(roots)
    if len(given) < len(roots):
        raise RuntimeError(f"got {len(roots)} tensors and {len(given)} gradients")
    results = []
    for index, (root, value) in enumerate(zip(roots, given, strict=False)):  # further gradients are ignored
        if isinstance(root, GradientEdge):
            if value is None:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            results.append(value if on_tensors(create_graph) else value._array)
            continue
        edge = edge_of(root)
        if edge is None:
            raise RuntimeError(f"element {index} of tensors does not require grad and does not have a grad_fn")
        if value is None:
            if root._array.size != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            if root._array.dtype.kind == "c":
                raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {root.dtype}")
            results.append(first_grad(root, on_tensors(create_graph)))
            continue
        if not isinstance(value, Tensor):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(value).__name__}")
        check_grad(root, value, index)
        results.append(value if on_tensors(create_graph) else value._array)
    return results


def check_grad(root: Tensor, value: Tensor, index: int) -> None:
    """Raise unless `value` has the shape of `root` and is complex just where it is."""
    if value._array.shape != root._array.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{index}] has a shape of {value.shape} and output[{index}] has a shape of "
            f"{root.shape}."
        )
    if (value._array.dtype.kind == "c") != (root._array.dtype.kind == "c"):
        raise RuntimeError(
            f"For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{index}] has a dtype of {value.dtype} and output[{index}] has a dtype of {root.dtype}."
        )
