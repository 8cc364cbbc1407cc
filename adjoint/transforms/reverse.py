"""Function transforms: gradients, vector-Jacobian and Jacobian-vector products, which compose to any depth.

A function runs on copies of its inputs, which are leaves of the transform's graph or carry its tangents.
"""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Callable, Iterable
from math import inf
from types import MappingProxyType
from typing import Any

from .._runtime.tracebacks import ending_at_caller, shorten
from .._runtime.uninterrupted import uninterrupted
from ..aten.torch_dispatch import zeros_like
from ..autograd.backward import grad as public_grad
from ..autograd.backward import gradients
from ..autograd.engine import discover
from ..autograd.mutation import copies_of_overwritten
from ..autograd.roots import make_grads
from ..dispatch.arguments import require
from ..dispatch.decorators import tensors as operators
from ..tape import modes
from ..tape.aliases import detached
from ..tape.anomaly import leaves_of
from ..tape.edges import edge_of
from ..tape.interpreters import Transform, is_recorded, lower
from ..tape.node import NOWHERE
from ..tape.torch_function import WRAPPERS
from ..tape.versions import shared_counter
from ..tensor import LEAF, Tensor, can_require_grad, wrap
from .forward_mode import JvpInterpreter, carry_tangents, check_floating
from .tangents import recorded_grad
from .tree import TreeSpec, tree_flatten, tree_leaves, tree_map, tree_unflatten, treespec_pprint
from .vmap import vmap
from .vmap_interpreter import BatchedTensor, VmapInterpreter

__all__ = [
    "debug_unwrap", "grad", "grad_and_value", "jvp", "linearize", "vjp", "vmap",
]  # fmt: skip

# --- inputs and outputs of reverse mode -------------------------------------------------------------------------


class Reverse(Transform):
    """A function that is running to be differentiated in reverse mode, with the leaves of its graph and its conditions.

    `inputs`: the arguments to differentiate, as the function sees them. `structure`: the structure of their list,
    or None for a list of tensors.
    `outside_recorded`: whether the results can be differentiated outside. It is False if the transform is called under
    `no_grad`.
    """

    records = True
    structure: TreeSpec | None = None

    def __init__(self, refuses_captured: bool = True) -> None:
        self.inputs: list[Tensor] = []
        self.arguments: list[Tensor] = []
        self.refuses_captured = refuses_captured
        self.outside_recorded = modes.STATE.grad_enabled

    def run(self, func: Callable[..., Any], args: Any, chosen: Any = None, keywords: Any = MappingProxyType({})) -> Any:
        """Call `func(*args)`, with copies that are leaves in place of the arguments at the positions `chosen` (None: all)."""
        self.begin(inference=False, grad_enabled=True)
        try:
            places = range(len(args)) if chosen is None else chosen
            leaves: Any = [args[place] for place in places]
            if not all(isinstance(leaf, Tensor) for leaf in leaves):
                leaves, self.structure = tree_flatten(leaves)
            replaced = list(args)
            for place, copy in zip(places, self.nested(map(self.track, leaves)), strict=True):
                replaced[place] = copy
            others = [value for place, value in enumerate(args) if place not in places] + [*keywords.values()]
            leaves = tree_leaves(others) if others else []
            self.arguments = self.inputs + [leaf for leaf in leaves if isinstance(leaf, Tensor)]
            return func(*replaced, **keywords)
        finally:
            self.end()

    def nested(self, values: Iterable[Any]) -> list[Any]:
        """Return one value for each input in the structure of the arguments to differentiate."""
        found: list[Any] = list(values) if self.structure is None else tree_unflatten(values, self.structure)
        return found

    def release_arguments(self) -> None:
        """Remove the history of this transform from arguments that the function has changed in place and has not returned."""
        for leaf in self.arguments:
            changed = leaf if leaf._base is None else leaf._base
            if type(changed._edge) is tuple and not self.is_tracked_outside([leaf]):
                changed._edge = leaf._edge = None

    def track(self, leaf: Any) -> Tensor:
        """Return the copy of an argument that the function sees."""
        if not isinstance(leaf, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(leaf)}")
        copy = tracked(leaf, self)
        self.inputs.append(copy)
        return copy

    def is_recorded_outside(self, outputs: list[Any]) -> bool:
        """Return whether an enclosing recording also differentiates `outputs`."""
        return self.outside_recorded and self.is_tracked_outside(outputs)

    def is_tracked_outside(self, outputs: list[Any]) -> bool:
        """Return whether an enclosing recording differentiates values that depend on `outputs`."""
        if any(type(output) is BatchedTensor and is_recorded(output.value) for output in outputs):
            return True
        return self.is_tracked_in_batch(outputs)

    def is_tracked_in_batch(self, outputs: list[Any]) -> bool:
        """Return whether the graph of `outputs` (of the examples inside a `vmap`) has leaves other than the inputs."""
        own = {id(edge_of(tensor)) for tensor in self.inputs}
        roots = [edge_of(output) for output in outputs]
        leaves = leaves_of(roots, inf)
        return any(id(leaf) not in own and not (has_ended(leaf) or self.has_created(leaf)) for leaf in leaves)

    def gradients(self, outputs: Any, vectors: Any, retain_graph: bool, create_graph: bool) -> list[Tensor]:
        """Return the vector-Jacobian products of `outputs` for the inputs, and zeros for unused inputs."""
        if modes.STATE.inference:
            with modes.switched(inference=False):
                return self.gradients(outputs, vectors, retain_graph, create_graph)
        used = [each for each in zip(outputs, vectors, map(edge_of, outputs), strict=True) if each[2] is not None]
        found: Any = (None,) * len(self.inputs)
        if used:
            roots, vectors, starts = zip(*used, strict=True)
            given = None if all(vector is None for vector in vectors) else vectors
            if WRAPPERS.open:  # a mode of functions sees the call
                found = public_grad(roots, self.inputs, given, retain_graph, create_graph, allow_unused=True)
            else:
                grads, edges = make_grads(roots, given, create_graph), [*map(edge_of, self.inputs)]
                found = gradients(starts, grads, edges, retain_graph, create_graph, given)
        return [
            zeros_like(leaf.detach()) if gradient is None else gradient
            for leaf, gradient in zip(self.inputs, found, strict=True)
        ]


def tracked(tensor: Tensor, transform: Transform) -> Tensor:
    """Return a copy of `tensor` as a leaf in the graph of `transform`, connected to the history of `tensor` if there is one."""
    if tensor._array.dtype.kind != "f" and not can_require_grad(tensor._array):
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
    levels = transform.recorded_batches if transform.serial else modes.STATE.interpreters
    batch = next((level for level in reversed(levels) if isinstance(level, VmapInterpreter)), None)
    if batch is None or (type(tensor) is BatchedTensor and tensor.level is batch):
        edge = tensor._edge
        if edge is not NOWHERE or transform.begun_recording:  # otherwise the ambiguity of a view does not matter
            edge = edge_of(tensor)
        if edge is not None and edge is not NOWHERE:
            return operators.alias(tensor)
        if batch is not None:
            copy: Tensor = tensor.without_history()  # type: ignore[attr-defined]
        else:  # a tensor created in inference mode could not be saved; this copy can
            copy = wrap(tensor._array) if tensor.is_inference() else detached(tensor, shared_counter(tensor))
    else:
        copy = batch.shared_by_all(tensor)
    copy._edge = LEAF
    copy._own_extra().transform = transform.serial  # the number and not the transform, which refers to the copy
    if tensor._extra is not None or tensor._base is not None:
        carry_tangents(tensor, copy)
    return copy


def _outside_of_batch(tensor: Tensor) -> Tensor:
    """Return `tensor` with the history of the whole batch. The history of its examples is no longer needed."""
    if type(tensor) is not BatchedTensor or not tensor.requires_grad:
        return tensor
    copy = tensor.without_history()
    carry_tangents(tensor, copy)
    return copy


def has_ended(leaf: Tensor) -> bool:
    """Return whether `leaf` belongs to a transform that has ended, so that its gradient will never be requested."""
    serial = None if leaf._extra is None else leaf._extra.transform
    return serial is not None and all(transform.serial != serial for transform in modes.STATE.transforms)


def released(value: Any, outside: bool) -> Any:
    """Return the results of the function, detached from the graph of the transform."""

    def release(leaf: Any) -> Any:
        return leaf.detach() if isinstance(leaf, Tensor) and not outside and leaf.requires_grad else leaf

    return tree_map(release, value)


def positions(argnums: Any, count: int) -> tuple[int, ...]:
    """Return the positions of the arguments to differentiate, as non-negative numbers."""
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    for number in numbers:
        if not isinstance(number, int):
            raise RuntimeError(f"argnum must be int, got: {type(number)}")
        if not -count <= number < count:
            raise RuntimeError(f"Got argnum={number}, but only {count} positional inputs")
    found = tuple(number % count for number in numbers)
    if len(set(found)) != len(found):
        raise RuntimeError(f"argnums elements must be unique, got {found}")
    return found


def with_aux(output: Any, has_aux: bool, name: str) -> tuple[Any, Any]:
    """Return the output of a function and its auxiliary output: tensors if `has_aux`, otherwise None."""
    if not has_aux:
        return output, None
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True")
    for leaf in tree_flatten(output[1])[0]:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(leaf)}")
    return output


def only_tensors(output: Any, name: str) -> tuple[list[Tensor], TreeSpec]:
    """Return the tensors of an output, and its structure."""
    leaves, structure = tree_flatten(output)
    if not leaves or output is None:
        raise RuntimeError(f"{name}: Expected f to be a function that has non-empty output (got output = {leaves})")
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{name}: expected f(*primals) to return only tensors, got unsupported type {type(leaf)}"
            )
    return leaves, structure


# --- reverse mode -----------------------------------------------------------------------------------------------


def grad_and_value(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that returns the gradient of `func` with respect to the arguments `argnums`, and its value.

    >>> import adjoint as torch
    >>> torch.func.grad_and_value(lambda x: x ** 2)(torch.tensor(3.0))
    (tensor(6.), tensor(9.))
    """
    return _differentiated(func, argnums, has_aux, True)


def _differentiated(func: Callable[..., Any], argnums: Any, has_aux: bool, with_value: bool) -> Callable[..., Any]:
    @functools.wraps(func)
    def differentiated(*args: Any, **keywords: Any) -> Any:
        try:
            return of_call(args, keywords)
        except Exception as error:
            shorten(error)
            raise

    def of_call(args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        reverse = Reverse()
        output = reverse.run(func, args, positions(argnums, len(args)), keywords)
        output, aux = with_aux(output, has_aux, "grad_and_value(f)(*args)")
        _check_scalar(output)
        outside = output.requires_grad and reverse.is_recorded_outside([output])
        found = reverse.gradients([output], [None], outside, outside)
        if outside and type(output) is BatchedTensor and not reverse.is_tracked_in_batch([output]):
            found = [_outside_of_batch(gradient) for gradient in found]
        results = reverse.nested(found)
        gradient = tuple(results) if isinstance(argnums, tuple) else results[0]
        aux = released(aux, outside) if has_aux else None
        value = released(output, outside) if with_value else None
        reverse.release_arguments()
        if with_value:
            return gradient, (value, aux) if has_aux else value
        return (gradient, aux) if has_aux else gradient

    return differentiated


def grad(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that returns the gradient of `func`, which returns a scalar, with respect to the arguments `argnums`.

    >>> import adjoint as torch
    >>> torch.func.grad(torch.func.grad(lambda x: x ** 3))(torch.tensor(2.0))
    tensor(12.)
    """
    return _differentiated(func, argnums, has_aux, False)


def _check_scalar(output: Any) -> None:
    if not isinstance(output, Tensor):
        raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}")
    if output._array.ndim != 0:
        raise RuntimeError(
            f"grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with {output.dim()} dims. Maybe "
            "you wanted to use the vjp or jacrev APIs instead?"
        )


@ending_at_caller
def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Return the value of `func` at `primals`, and a function that maps cotangents of the value to cotangents of `primals`.

    >>> import adjoint as torch
    >>> value, pull = torch.func.vjp(torch.sin, torch.zeros(2))
    >>> pull(torch.tensor([1.0, 2.0]))
    (tensor([1., 2.]),)
    """
    return pulled(Reverse(), func, primals, has_aux=has_aux)


def pulled(
    reverse: Reverse,
    func: Callable[..., Any],
    args: Any,
    chosen: Any = None,
    keywords: Any = MappingProxyType({}),
    has_aux: bool = False,
) -> Any:
    """Compute `vjp` for the arguments at the positions `chosen`. The function may change the others in place."""
    output = reverse.run(func, args, chosen, keywords)
    output, aux = with_aux(output, has_aux, "vjp(f, *primals)")
    outputs, shape = only_tensors(output, "vjp(f, *primals)")
    for leaf in outputs:
        if not can_require_grad(leaf._array):
            raise RuntimeError(
                f"vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype {leaf.dtype}"
            )
    outside = reverse.is_tracked_outside(outputs)

    @ending_at_caller
    def pull(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given, given_shape = tree_flatten(cotangents)
        if given_shape != shape:
            raise RuntimeError(
                f"Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
                f"cotangents: {treespec_pprint(given_shape)}, primal output: {treespec_pprint(shape)}"
            )
        for vector in given:
            if not isinstance(vector, Tensor) and vector is not None:
                raise TypeError(f"gradients can be either Tensors or None, but got {type(vector).__name__}")
        record = modes.is_grad_enabled() and (
            outside or any(is_recorded(vector) for vector in given if vector is not None)
        )
        if create_graph is not None:
            record = create_graph
        return tuple(reverse.nested(reverse.gradients(outputs, given, retain_graph, record)))

    outside_value = outside and reverse.outside_recorded
    value = released(output, outside_value)
    return (value, pull, released(aux, outside_value)) if has_aux else (value, pull)


# --- forward mode -----------------------------------------------------------------------------------------------


class Forward(JvpInterpreter, Transform):
    """The forward-mode level of one `jvp`."""

    in_inference = True
    refuses_captured = True

    @uninterrupted
    def end(self) -> None:
        """End the `jvp`, and remove its tangents."""
        modes.put(self.before)  # `super()` is a call after which an interrupt may arrive
        self.remove_tangents()


@ending_at_caller
def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """Return the value of `func` at `primals` and its derivative in the direction of `tangents`, in forward mode.

    >>> import adjoint as torch
    >>> torch.func.jvp(torch.sin, (torch.zeros(2),), (torch.tensor([1.0, 2.0]),))
    (tensor([0., 0.]), tensor([1., 2.]))
    """
    return pushed(func, primals, tangents, (), strict, has_aux)


def pushed(
    func: Callable[..., Any], primals: Any, tangents: Any, given: Any, strict: bool = False, has_aux: bool = False
) -> Any:
    """Compute `jvp` of a function that may also change the tensors in `given` in place."""
    if not isinstance(primals, tuple):
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    points, structure = tree_flatten(primals)
    directions, tangent_structure = tree_flatten(tangents)
    if structure != tangent_structure:
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals and tangents to have the same python structure. For example, if primals "
            f"is a tuple of 3 tensors, tangents also must be. Got primals with structure {structure} and tangents with structure "
            f"{tangent_structure}"
        )
    _check_tensors(points, "primals")
    _check_tensors(directions, "tangents")
    points, directions = ([wrap(t._array) if t.is_inference() else t for t in each] for each in (points, directions))
    level = Forward()
    level.begin(inference=False, forward_enabled=True)
    try:
        for point, direction in zip(points, directions, strict=True):
            check_floating(point, direction)
        duals = [level.make_dual(point, direction) for point, direction in zip(points, directions, strict=True)]
        level.arguments = [*duals, *(leaf for leaf in tree_flatten(given)[0] if isinstance(leaf, Tensor))]
        result = func(*tree_unflatten(duals, structure))
        output, aux = with_aux(result, has_aux, "jvp(f, primals, tangents)")
        outputs, shape = only_tensors(output, "jvp(f, primals, tangents)")
        found = [level.tangent_of(leaf) for leaf in outputs]
        if strict and any(tangent is None for tangent in found):
            raise RuntimeError(
                "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed "
                "with strict=True."
            )
        values = [level.without_tangent(leaf) for leaf in outputs]
        if has_aux:
            aux = tree_map(level.without_tangent, aux)
    finally:
        level.end()
    carried = [zeros_like(value) if tangent is None else tangent for value, tangent in zip(values, found, strict=True)]
    results = (tree_unflatten(values, shape), tree_unflatten(carried, shape))
    return (*results, aux) if has_aux else results


def _check_tensors(values: list[Any], name: str) -> None:
    if not values:
        raise RuntimeError(f"jvp(f, primals, tangents): Expected {name} to contain at least one Tensor.")
    for value in values:
        if not isinstance(value, Tensor):
            raise RuntimeError(f"jvp(f, primals, tangents): Expected {name} to only contain Tensors, got {type(value)}")


@ending_at_caller
def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Return the value of `func` at `primals`, and its derivative there as a function of the tangents.

    `func` runs once, no matter how often the derivative is applied.

    >>> import adjoint as torch
    >>> value, push = torch.func.linearize(torch.sin, torch.zeros(2))
    >>> push(torch.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    points, structure = tree_flatten(primals)
    for point in points:
        check_floating(point)
    reverse = Reverse(refuses_captured=False)
    with copies_of_overwritten():
        output = reverse.run(lambda *copies: func(*tree_map(_changeable, copies)), primals)
        outputs, shape = tree_flatten(output)
        roots = [leaf for leaf in outputs if isinstance(leaf, Tensor) and leaf.requires_grad]
        outside = bool(roots) and reverse.is_recorded_outside(roots)
        with modes.switched(inference=False, grad_enabled=True):
            vectors = [tracked(zeros_like(root.detach()), reverse) for root in roots]
            products = reverse.gradients(roots, vectors, True, True)

    def push(*tangents: Any) -> Any:
        directions, tangent_structure = tree_flatten(tangents)
        if tangent_structure != structure:
            raise RuntimeError(
                f"Expected the tangents {tangent_structure} to have the same argspec as the primals {structure}"
            )
        for number, (direction, point) in enumerate(zip(directions, points, strict=True)):
            for what in ("shape", "dtype"):
                if getattr(direction, what) != getattr(point, what):
                    raise RuntimeError(
                        f"tangent:{number} with {what} {getattr(direction, what)} in flattened pytree doesn't match the {what} "
                        f"{getattr(point, what)} of the corresponding primal."
                    )
        moving = [each for each, product in zip(directions, products, strict=True) if product.requires_grad]
        record = modes.is_grad_enabled() and (outside or any(map(is_recorded, moving)))
        derivatives = recorded_grad(products, vectors, directions, record, True)
        found = {id(root): value for root, value in zip(roots, derivatives, strict=True) if value is not None}
        zeros = (zeros_like(leaf.detach()) if isinstance(leaf, Tensor) else leaf for leaf in outputs)
        return tree_unflatten([found.get(id(leaf), zero) for leaf, zero in zip(outputs, zeros, strict=True)], shape)

    return released(output, outside), push


def _changeable(leaf: Tensor) -> Tensor:
    """Return a leaf as a result that may be changed in place. The result is not a view of the leaf, but shares its memory."""
    result = detached(leaf, shared_counter(leaf))
    result._edge = edge_of(operators.alias(leaf))
    carry_tangents(leaf, result)
    return result


# --- functionalization ------------------------------------------------------------------------------------------


class Functional(Transform):
    """The transform `functionalize` while its function runs. `batches`: the enclosing `vmap` interpreters, innermost last."""

    def __enter__(self) -> Functional:
        self.batches = [level for level in modes.STATE.interpreters if isinstance(level, VmapInterpreter)]
        self.begin()
        return self

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        self.end()

    def spread(self, value: Any) -> Any:
        """Expand, along the batch, an unbatched tensor that the function has created. Return other values unchanged."""
        given = value
        while type(value) is BatchedTensor and value.bdim is None and not value.requires_grad:
            value = value.value  # a differentiated function has created it
        if type(value) is not Tensor or not self.has_created(value):
            return given
        for level in self.batches:
            with lower(level):
                value = BatchedTensor(value.expand((level.size, *value.shape)).clone(), 0, level)
        return value


# --- tensors within transforms, as text and unwrapped ----------------------------------------------------------
#
# Only batching wraps tensors. Reverse and forward mode are displayed as wrappers of the tensors that they differentiate.


def tracking(tensor: Tensor) -> list[Transform]:
    """Return the running transforms that differentiate `tensor` itself (not the batch that it represents), innermost first."""
    edge = edge_of(tensor)
    nodes, leaves = ((), ()) if edge is None else discover([edge])
    found = []
    for transform in reversed(modes.STATE.transforms):
        beginnings = [edge_of(each) for each in getattr(transform, "inputs", ())]
        if any(
            id(each) in leaves if isinstance(each, Tensor) else each[0] in nodes
            for each in beginnings
            if each is not None
        ) or (hasattr(transform, "tangent_of") and transform.tangent_of(tensor) is not None):
            found.append(transform)
    return found


def text(tensor: Tensor) -> str | None:
    """Return the text of a tensor that belongs to running transforms, or None for any other tensor."""
    if not (modes.STATE.transforms or type(tensor) is BatchedTensor):
        return None
    wrapped = tracking(tensor)
    if type(tensor) is BatchedTensor:
        value = repr(tensor.value)
        inner = value if tensor.bdim is None else _wrapped("BatchedTensor", tensor.level.number, value, tensor.bdim)
    elif wrapped:
        inner = repr(tensor.detach())
    else:
        return None
    for transform in reversed(wrapped):
        inner = _wrapped("GradTrackingTensor", transform.number, inner)
    return inner


def _wrapped(kind: str, number: int, inner: str, bdim: int | None = None) -> str:
    dim = "" if bdim is None else f"bdim={bdim}, "
    return f"{kind}(lvl={number}, {dim}value=\n{textwrap.indent(inner, '    ')}\n)"


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """Unwrap a tensor that a transformed function sees: return the whole batch, without the history of the transform.

    Use it for printing in a debugger. `recurse`: whether to unwrap all transforms, and not only the innermost transform.

    Raises:
        TypeError: if `tensor` is not a tensor.
    """
    require("Tensor", tensor, "debug_unwrap", "tensor", 1)
    if tracking(tensor):
        inner: Tensor = tensor.without_history() if type(tensor) is BatchedTensor else tensor.detach()
        if not recurse:
            return inner
        tensor = inner
    if type(tensor) is not BatchedTensor:
        return tensor
    return debug_unwrap(tensor.value) if recurse else tensor.value
