"""`backward` and `grad` check the request, run the engine and return its results."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from .._runtime.tracebacks import warn, warn_once
from ..aten.torch_dispatch import zeros_like
from ..dispatch.lazy_stubs import lazily_wrapped
from ..tape import modes
from ..tape.edges import edge_of
from ..tape.modes import FLAGS, STATE
from ..tensor import Tensor, as_array
from .engine import run
from .gradient_edge import GradientEdge
from .graph_task import Capture
from .roots import about, as_tuple, batched_grads, batched_products, edge_of_input, plain_root, roots_of
from .shown import Shown, made


@lazily_wrapped
def backward(
    tensors: Tensor | Sequence[Tensor] | GradientEdge | Sequence[GradientEdge],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Accumulate the gradients of the sum of `tensors` into the `.grad` of the leaves of their graphs.

    Args:
        tensors: roots. A tensor with more than one element needs an entry in `grad_tensors`.
        grad_tensors: the vector of the vector-Jacobian product, as one tensor of each root's shape (None for a scalar: 1).
        retain_graph: whether to keep the saved tensors of the nodes for another backward; `create_graph` by default.
        create_graph: whether to record the computation of the gradients, for higher derivatives.
        inputs: if given, gradients accumulate only into these tensors.

    Raises:
        RuntimeError: if a root does not require grad, a gradient has the wrong shape, or saved tensors have been freed
            or changed in place.

    >>> import adjoint as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> torch.autograd.backward((x * x).sum())
    >>> x.grad
    tensor([2., 4.])
    """
    if grad_variables is not None:
        warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning)
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only use "
                "`grad_tensors`."
            )
        grad_tensors = grad_variables
    backward_of(tensors, grad_tensors, retain_graph, create_graph, inputs)


def backward_of(tensors: Any, grad_tensors: Any, retain_graph: bool | None, create_graph: bool, inputs: Any) -> None:
    """Run `backward` without the check for overrides, because the method of a tensor has already checked for them."""
    if FLAGS.special and STATE.transforms:
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported, please use functorch.grad or functorch.vjp "
            "instead or call backward() outside of functorch transforms."
        )
    if retain_graph is None:
        retain_graph = create_graph
    if inputs is not None and len(as_tuple(inputs)) == 0:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    edges, grads = plain_root(tensors, grad_tensors, create_graph) or roots_of(tensors, grad_tensors, create_graph)
    capture = None if inputs is None else retaining(as_tuple(inputs))
    begin = start if create_graph or type(grads) is list else run
    begin(edges, grads, retain_graph, create_graph, capture, True, grad_tensors)
    if create_graph:
        warn_once(
            "cycles",
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient "
            "which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you "
            "have to use this function, make sure to reset the .grad fields of your parameters to None after use to break "
            "the cycle and avoid the leak.",
        )


Truth = bool
"""The type of a flag for which PyTorch accepts any object, such as 1."""


@lazily_wrapped
def grad(
    outputs: Tensor | Sequence[Tensor] | GradientEdge | Sequence[GradientEdge],
    inputs: Tensor | Sequence[Tensor] | GradientEdge | Sequence[GradientEdge],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: Truth | None = None,
    create_graph: Truth = False,
    only_inputs: Truth = True,
    allow_unused: Truth | None = None,
    is_grads_batched: Truth = False,
    materialize_grads: Truth = False,
) -> tuple[Any, ...]:
    """Return the gradients of the sum of `outputs` with respect to `inputs`, without accumulating them.

    Args:
        outputs: the roots, like `tensors` of `backward`.
        inputs: leaves, intermediate tensors or gradient edges.
        grad_outputs: the vector of the vector-Jacobian product, as one tensor for each output.
        retain_graph: whether to keep the saved tensors of the nodes. The default is the value of `create_graph`.
        create_graph: whether to record the computation of the gradients, for higher derivatives.
        only_inputs: deprecated and ignored. Only `inputs` get gradients.
        allow_unused: whether to return None, instead of raising an error, for an input that the outputs do not depend
            on. The default is the value of `materialize_grads`.
        is_grads_batched: whether `grad_outputs` have a leading dimension. Each slice gives one vector-Jacobian product.
        materialize_grads: whether to return zeros for an input that the outputs do not depend on.

    Raises:
        RuntimeError: as for `backward`, and for unused inputs.

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
        warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for other "
            "parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
        )
    targets = as_tuple(inputs)
    if not targets:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    retain_graph = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        roots = as_tuple(outputs)
        product = partial(grad, roots, targets, retain_graph=retain_graph, create_graph=create_graph, allow_unused=True)
        values = batched_products(product, batched_grads(roots, as_tuple(grad_outputs)))
    else:
        edges, grads = plain_root(outputs, grad_outputs, create_graph) or roots_of(outputs, grad_outputs, create_graph)
        values = gradients(edges, grads, [*map(edge_of_input, targets)], retain_graph, create_graph, grad_outputs)
    return checked_results(targets, values, allow_unused, materialize_grads, create_graph)


def gradients(starts: Any, grads: Any, edges: Any, retain_graph: bool, create_graph: bool, given: Any) -> list[Any]:
    """Return the gradients that arrive at `edges` if `grads`, in the tensors `given`, enter the graph at `starts`."""
    capture = Capture(edges)
    shown = start(starts, grads, retain_graph, create_graph, capture, False, given)
    if shown is None and (len(edges) > 1 or given is not None):
        shown = Shown(given)
    as_tensor, values = made if shown is None else shown.tensor, capture.values(edges)
    return [each if each is None or isinstance(each, Tensor) else as_tensor(as_array(each)) for each in values]


def retaining(inputs: tuple[Any, ...]) -> Capture:
    """Return a `Capture` of the `inputs` argument of `backward`. Inputs that are not leaves will retain their gradients."""
    edges = []
    for item in inputs:
        if isinstance(item, Tensor) and edge_of(item) is None:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        edge = edge_of_input(item)
        if type(edge) is tuple and isinstance(item, Tensor):
            item.retain_grad()
        edges.append(edge)
    return Capture(edges)


def checked_results(
    targets: tuple[Any, ...], values: Sequence[Any], allow_unused: bool, zeros: bool, create_graph: bool
) -> tuple[Any, ...]:
    """Return the gradients of `targets` as tensors. The caller handles gradients that are None."""
    results: list[Any] = []
    for item, value in zip(targets, values, strict=True):
        if value is None and zeros:
            if isinstance(item, GradientEdge):
                raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
            value = zeros_like(item, create_graph)
        elif value is None and not allow_unused:
            raise about(
                item,
                f"The differentiated Tensor at index {len(results)} appears to not have been used in the graph. Set "
                "allow_unused=True if this is the desired behavior.",
            )
        results.append(value)
    return tuple(results)


def start(
    edges: Any, grads: Any, retain_graph: bool, create_graph: bool, capture: Any, accumulating: bool, given: Any
) -> Shown | None:
    """Run the engine, on tensors if necessary. Operations are recorded only under `create_graph`."""
    if not (
        create_graph
        or (type(grads) is list and grads and isinstance(grads[0], Tensor))  # in interpreters, and on `meta`
        or (FLAGS.special and (STATE.interpreters or STATE.capture is not None))
    ):
        return run(edges, grads, retain_graph, False, capture, accumulating, given)
    was_recording = STATE.grad_enabled
    modes.set_grad(create_graph)
    try:
        return run(edges, grads, retain_graph, True, capture, accumulating, given)
    finally:
        modes.set_grad(was_recording)
