"""The roots of a backward and their gradients, checked and converted for the engine."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from .._runtime.late_bound import LATE
from ..aten.torch_dispatch import is_watched, ones_like
from ..codegen.backend import NUMPY
from ..device import Size
from ..dispatch.meta import has_meta
from ..dtypes import from_numpy
from ..kernels.runtime.lazy_conj import materialize
from ..kernels.runtime.meta_array import Meta
from ..tape import modes
from ..tape.edges import edge_of
from ..tape.modes import FLAGS
from ..tape.node import NOWHERE
from ..tape.stale_error import Subject
from ..tape.torch_dispatch import DISPATCHING
from ..tensor import Tensor, history, ndarray, wrap
from .engine import discover
from .gradient_edge import GradientEdge, recorded_edge


def on_tensors(create_graph: bool, roots: tuple[Any, ...]) -> bool:
    """Return whether gradients are tensors and not bare arrays."""
    here = modes.STATE
    return (
        create_graph or bool(here.interpreters) or here.capture is not None or has_meta(roots) or meets_classes(roots)
    )


def meets_classes(roots: tuple[Any, ...]) -> bool:
    """Return whether a class with `__torch_dispatch__` may take part in the gradients of `roots` or in adding to `.grad`."""
    if not DISPATCHING:
        return False
    nodes, _ = discover([root_edge(root) for root in roots if isinstance(root, (Tensor, GradientEdge))])
    kinds = {getattr(node, "function_class", type(node)) for node in nodes}  # of the changes of views, too
    return any(kind.takes_stand_ins and not kind.runs_undefined for kind in kinds) or any(
        type(edge) in DISPATCHING or type(getattr(edge, "_grad", None)) in DISPATCHING
        for node in nodes
        for edge in node._edges
    )


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Convert a single tensor or gradient edge to a tuple."""
    if value is None:
        return ()
    if isinstance(value, (Tensor, GradientEdge)):
        return (value,)
    return tuple(value)


def root_edge(root: Any) -> Any:
    """Return the edge at which the gradient of a root enters the graph."""
    if isinstance(root, GradientEdge):
        return recorded_edge(root)
    return edge_of(root)


def edge_of_input(item: Any) -> Any:
    """Return the edge whose gradient is requested."""
    if not isinstance(item, (Tensor, GradientEdge)):
        raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(item).__name__}")
    edge = root_edge(item)
    if edge is None:
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    return edge


_ONES = {numpy.dtype(kind): NUMPY.constant(1, kind) for kind in (numpy.float32, numpy.float64)}


def first_grad(root: Tensor, as_tensor: bool) -> Any:
    """Return the gradient 1 for a root with one element."""
    array = root._array
    if type(array) is Meta:
        return wrap(array.copy())
    one = _ONES.get(array.dtype) if array.ndim == 0 else None
    ones = numpy.ones_like(array) if one is None else one.copy()  # the user may change it in an expanded gradient
    return wrap(ones) if as_tensor else ones


def plain_root(root: Any, given: Any, as_tensor: bool) -> tuple[list[Any], dict[Any, Any]] | None:
    """Return the edge of a root and the initial gradient of its node, or None if more checks are needed."""
    if type(root) is not Tensor or FLAGS.special or DISPATCHING:
        return None
    array = root._array
    if type(array) is not ndarray:
        return None
    shape, dtype = array.shape, array.dtype
    if given is None:
        one = None if shape else _ONES.get(dtype)
        if one is None:
            return None
        seed: Any = one.copy()
        if as_tensor:
            seed = wrap(seed)
    elif type(given) is Tensor:
        seed = given._array
        if type(seed) is not ndarray or seed.dtype is not dtype or seed.shape != shape:
            return None
        if as_tensor:
            seed = given
    else:
        return None
    edge = root._edge if root._base is None else history(root)
    if type(edge) is not tuple:
        return None
    node, number = edge
    expected = node._grad_shape
    if expected == shape and node._grad_dtype is dtype:
        return [edge], {node: seed}
    if type(expected) is list and expected[number] == shape and node._grad_dtype[number] is dtype:
        several: list[Any] = [None] * len(expected)
        several[number] = seed
        return [edge], {node: several}
    return None


def make_grads(roots: tuple[Any, ...], grads: Any, create_graph: bool) -> list[Any]:
    """Return one gradient for each root: the checked given gradient, or 1 if none is given and the root has one element."""
    given = as_tuple(grads) if grads is not None else (None,) * len(roots)
    if len(given) < len(roots):
        raise RuntimeError(f"got {len(roots)} tensors and {len(given)} gradients")
    results: list[Any] = []
    as_tensors = on_tensors(create_graph, roots) or any(type(each) in DISPATCHING for each in given)
    for index, (root, value) in enumerate(zip(roots, given, strict=False)):  # further gradients are ignored
        if not isinstance(root, (Tensor, GradientEdge)):
            raise AssertionError("Expected output to be a torch.Tensor")
        if isinstance(root, Tensor) and root._base is not None:
            history(root)  # raises an error if the edge of a view has become ambiguous
        if isinstance(root, Tensor) and ((edge := edge_of(root)) is None or edge is NOWHERE):
            raise about(root, f"element {index} of tensors does not require grad and does not have a grad_fn")
        if value is None and isinstance(root, Tensor) and root._array.size == 1 and is_watched(root):
            results.append(ones_like(root))
            continue
        shape, dtype = metadata_of(root)
        if value is None:
            if math.prod(shape) != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            if dtype.kind in "cW":
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
        results.append(value if as_tensors else materialize(value._array))
    if modes.STATE.capture is not None:
        modes.STATE.capture.seeds(results)
    return results


def roots_of(roots: Any, given: Any, create_graph: bool) -> tuple[list[Any], Any]:
    """Return the edges of any roots, and their checked gradients."""
    roots = as_tuple(roots)
    grads = make_grads(roots, given, create_graph)
    return [root_edge(root) for root in roots], grads


def metadata_of(root: Any) -> tuple[tuple[int, ...], Any]:
    """Return the shape and the (NumPy) dtype of the gradient that a root receives."""
    if isinstance(root, Tensor):
        return root._array.shape, root._array.dtype
    node, number = root.node, root.output_nr
    if type(node._grad_shape) is list:
        return node._grad_shape[number], node._grad_dtype[number]
    return node._grad_shape, node._grad_dtype


def check_grad(shape: tuple[int, ...], dtype: Any, value: Tensor, index: int) -> None:
    """Raise an error unless `value` has the shape of the root, and is complex if and only if `dtype` is complex."""
    if value._array.shape != shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{index}] has a shape of {value.shape} and output[{index}] has a shape of "
            f"{Size(shape)}."
        )
    if (value._array.dtype.kind in "cW") != (dtype.kind in "cW"):
        raise RuntimeError(
            f"For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{index}] has a dtype of {value.dtype} and output[{index}] has a dtype of {from_numpy(dtype)}."
        )


def about(tensor: Any, message: str) -> RuntimeError:
    """Return an error that stores the tensor it concerns, for `explain`."""
    error = RuntimeError(message)
    error.subject = Subject(tensor=tensor)  # type: ignore[attr-defined]
    return error


# --- `grad(..., is_grads_batched=True)` --------------------------------------------------------------------------


def batched_grads(roots: tuple[Any, ...], grads: tuple[Any, ...]) -> list[Tensor]:
    """Return the checked `grad_outputs` of a batched `grad`. `vmap` checks that all have the same leading size."""
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
    return [value for value in grads if value is not None]


def batched_products(product: Callable[..., tuple[Any, ...]], grads: list[Tensor]) -> list[Any]:
    """Return the results of `product(vector)` for each slice of `grads`, in one pass under `vmap`."""
    unused: list[bool] = []

    def used(*vector: Tensor) -> tuple[Any, ...]:
        found = product(vector)
        unused[:] = [value is None for value in found]
        return tuple(value for value in found if value is not None)

    results = iter(LATE.vmap(used)(*grads))
    return [None if nothing else next(results) for nothing in unused]
