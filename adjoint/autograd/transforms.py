"""Transforms of functions: gradients, vector-Jacobian and Jacobian-vector products, Jacobians; they compose to any depth.

A function is run on copies of its inputs that a graph (reverse mode) or a tangent (forward mode) of this transform's own begins
at; what is differentiated outside goes on through them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..operators.build import tensors as operators
from ..tape import modes
from ..tape.edges import edge_of
from ..tensor import LEAF, Tensor, can_require_grad
from .backward import grad as gradients
from .batching import BatchedTensor, BatchLevel, vmap
from .engine import discover
from .forward_ad import DualLevel
from .grad_mode import enable_grad
from .tree import flatten, mapped, unflatten

__all__ = ["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp", "vmap"]


# --- inputs and outputs of reverse mode -------------------------------------------------------------------------


def tracked(tensor: Tensor) -> Tensor:
    """`tensor` as the beginning of a graph of its own, which leads on to that of `tensor` if it has one."""
    if not can_require_grad(tensor._array):
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
    batch = next((level for level in reversed(modes.STATE.levels) if isinstance(level, BatchLevel)), None)
    if batch is None or batch.concerns(tensor):
        if tensor.requires_grad:
            return operators.alias(tensor)
        copy = tensor.detach() if batch is None else tensor.without_history()  # type: ignore[attr-defined]
    else:
        copy = BatchedTensor(tensor, None, batch)
    copy._edge = LEAF
    for level in modes.STATE.levels:
        if isinstance(level, DualLevel) and (tangent := level.tangent_of(tensor)) is not None:
            level.attach(copy, tangent)
    return copy


def is_tracked_outside(outputs: list[Tensor], inputs: list[Tensor]) -> bool:
    """Whether what led to `outputs` is also differentiated by somebody else than the transform that made `inputs`."""
    if any(type(output) is BatchedTensor and is_recorded(output.value) for output in outputs):
        return True
    own = {id(edge_of(tensor)) for tensor in inputs}
    _, leaves = discover([edge_of(output) for output in outputs])
    return any(id(leaf) not in own for leaf in leaves)


def is_recorded(tensor: Tensor) -> bool:
    """Whether operations on `tensor`, or on the batch it is an example of, are recorded."""
    return tensor.requires_grad or (type(tensor) is BatchedTensor and is_recorded(tensor.value))


def released(value: Any, outside: bool) -> Any:
    """A result of the function, no longer part of the transform's own graph."""
    if isinstance(value, Tensor) and not outside and value.requires_grad:
        return value.detach()
    return value


def positions(argnums: Any, count: int) -> tuple[int, ...]:
    """The positions of the arguments to differentiate, counted from the front."""
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    for number in numbers:
        if not isinstance(number, int):
            raise RuntimeError(f"argnum must be int or Tuple[int, ...], got: {type(number)}")
        if not -count <= number < count:
            raise RuntimeError(f"Got argnum={number}, but only {count} positional inputs")
    return tuple(number % count for number in numbers)


# --- reverse mode -----------------------------------------------------------------------------------------------


def grad_and_value(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradient of `func` with respect to the arguments `argnums`, and its value.

    >>> import adjoint as torch
    >>> torch.func.grad_and_value(lambda x: x ** 2)(torch.tensor(3.0))
    (tensor(6.), tensor(9.))
    """

    @functools.wraps(func)
    def differentiated(*args: Any, **keywords: Any) -> Any:
        places = positions(argnums, len(args))
        with enable_grad():
            copies = [mapped(_input, args[place]) for place in places]
            replaced = list(args)
            for place, copy in zip(places, copies, strict=True):
                replaced[place] = copy
            output = func(*replaced, **keywords)
            aux = None
            if has_aux:
                if not (isinstance(output, tuple) and len(output) == 2):
                    raise RuntimeError(
                        "grad_and_value(f)(*args): output of function f should be a tuple: (output, aux) if has_aux is True"
                    )
                output, aux = output
            _check_scalar(output)
            leaves, structure = flatten(copies)
            outside = output.requires_grad and is_tracked_outside([output], leaves)
            if output.requires_grad:
                found = gradients(output, leaves, create_graph=outside, materialize_grads=True)
            else:
                found = tuple(operators.zeros_like(leaf) for leaf in leaves)
        results = unflatten(list(found), structure)
        gradient = tuple(results) if isinstance(argnums, tuple) else results[0]
        value = released(output, outside)
        return (gradient, (value, mapped(lambda leaf: released(leaf, outside), aux))) if has_aux else (gradient, value)

    return differentiated


def grad(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradient of `func`, which returns a scalar, with respect to the arguments `argnums`.

    >>> import adjoint as torch
    >>> torch.func.grad(torch.func.grad(lambda x: x ** 3))(torch.tensor(2.0))
    tensor(12.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def differentiated(*args: Any, **keywords: Any) -> Any:
        gradient, value = both(*args, **keywords)
        return (gradient, value[1]) if has_aux else gradient

    return differentiated


def _input(leaf: Any) -> Any:
    if not isinstance(leaf, Tensor):
        raise TypeError(
            f"grad_and_value(f)(*args): expected the arguments to differentiate to be tensors, got {type(leaf)}"
        )
    return tracked(leaf)


def _check_scalar(output: Any) -> None:
    if not isinstance(output, Tensor):
        raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}")
    if output.dim() != 0:
        raise RuntimeError(
            f"grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with {output.dim()} dims. Maybe "
            "you wanted to use the vjp or jacrev APIs instead?"
        )


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of `func` at `primals`, and a function from cotangents of it to those of `primals`.

    >>> import adjoint as torch
    >>> value, pull = torch.func.vjp(torch.sin, torch.zeros(2))
    >>> pull(torch.tensor([1.0, 2.0]))
    (tensor([1., 2.]),)
    """
    with enable_grad():
        copies = mapped(_input, primals)
        output = func(*copies)
        aux = None
        if has_aux:
            if not (isinstance(output, tuple) and len(output) == 2):
                raise RuntimeError(
                    "vjp(f, *primals): output of function f should be a tuple: (output, aux) if has_aux is True"
                )
            output, aux = output
    outputs, shape = flatten(output)
    for leaf in outputs:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                "vjp(f, *primals): Expected f(*primals) to be a function that has non-empty output or a tensor or nested "
                f"structure of tensors, got {type(leaf)}"
            )
    inputs, structure = flatten(copies)
    outside = is_tracked_outside(outputs, inputs)

    def pull(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given, given_shape = flatten(cotangents)
        if given_shape != shape:
            raise RuntimeError(
                f"Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
                f"cotangents: {given_shape}, primal output: {shape}"
            )
        used = [(out, vector) for out, vector in zip(outputs, given, strict=True) if out.requires_grad]
        record = outside or any(is_recorded(vector) for vector in given)
        if create_graph is not None:
            record = create_graph
        if used:
            roots, vectors = zip(*used, strict=True)
            found = gradients(
                roots, inputs, vectors, retain_graph=retain_graph, create_graph=record, materialize_grads=True
            )
        else:
            found = tuple(operators.zeros_like(leaf) for leaf in inputs)
        return unflatten(list(found), structure)

    value = mapped(lambda leaf: released(leaf, outside), output)
    return (value, pull, mapped(lambda leaf: released(leaf, outside), aux)) if has_aux else (value, pull)


# --- forward mode -----------------------------------------------------------------------------------------------


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """The value of `func` at `primals` and its derivative in the direction of `tangents`, in forward mode.

    >>> import adjoint as torch
    >>> torch.func.jvp(torch.sin, (torch.zeros(2),), (torch.tensor([1.0, 2.0]),))
    (tensor([0., 0.]), tensor([1., 2.]))
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    points, structure = flatten(primals)
    directions, tangent_structure = flatten(tangents)
    if structure != tangent_structure:
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals and tangents to have the same python structure. For example, if primals "
            f"is a tuple of 3 tensors, tangents also must be. Got primals with structure {structure} and tangents with structure "
            f"{tangent_structure}"
        )
    level = DualLevel()
    level.enter()
    try:
        duals = [level.make_dual(point, direction) for point, direction in zip(points, directions, strict=True)]
        output = func(*unflatten(duals, structure))
        aux = None
        if has_aux:
            if not (isinstance(output, tuple) and len(output) == 2):
                raise RuntimeError(
                    "jvp(f, primals, tangents): output of function f should be a tuple: (output, aux) if has_aux is True"
                )
            output, aux = output
        outputs, shape = flatten(output)
        for leaf in outputs:
            if not isinstance(leaf, Tensor):
                raise RuntimeError(
                    f"jvp(f, primals, tangents): Expected f(*primals) to return only tensors, got unsupported type {type(leaf)}"
                )
        found = [level.tangent_of(leaf) for leaf in outputs]
        if strict and any(tangent is None for tangent in found):
            raise RuntimeError(
                "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed with "
                "strict=True."
            )
        values = [level.without_tangent(leaf) for leaf in outputs]
        aux = mapped(lambda leaf: level.without_tangent(leaf) if isinstance(leaf, Tensor) else leaf, aux)
    finally:
        level.leave()
    carried = [
        operators.zeros_like(value) if tangent is None else tangent
        for value, tangent in zip(values, found, strict=True)
    ]
    results = (unflatten(values, shape), unflatten(carried, shape))
    return (*results, aux) if has_aux else results


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The value of `func` at `primals`, and its derivative there as a function of the tangents.

    `func` runs once, however often the derivative is applied.

    >>> import adjoint as torch
    >>> value, push = torch.func.linearize(torch.sin, torch.zeros(2))
    >>> push(torch.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    points, structure = flatten(primals)
    with enable_grad():
        copies = [_input(point) for point in points]
        output = func(*unflatten(copies, structure))
        outputs, shape = flatten(output)
        roots = [leaf for leaf in outputs if leaf.requires_grad]
        vectors = [tracked(operators.zeros_like(root).detach()) for root in roots]
        products = gradients(roots, copies, vectors, create_graph=True, materialize_grads=True) if roots else ()
    outside = bool(roots) and is_tracked_outside(roots, copies)

    def push(*tangents: Any) -> Any:
        directions, tangent_structure = flatten(tangents)
        if tangent_structure != structure:
            raise RuntimeError(
                "Expected the tangents argument to have the same structure as the primals: "
                f"got {tangent_structure}, expected {structure}"
            )
        pairs = [
            (product, direction)
            for product, direction in zip(products, directions, strict=True)
            if product.requires_grad
        ]
        found: dict[int, Any] = {}
        if pairs:
            derivatives = gradients(
                [product for product, _ in pairs],
                vectors,
                [direction for _, direction in pairs],
                retain_graph=True,
                create_graph=outside,
                materialize_grads=True,
            )
            found = {id(root): value for root, value in zip(roots, derivatives, strict=True)}
        return unflatten([found.get(id(leaf), operators.zeros_like(leaf)) for leaf in outputs], shape)

    return mapped(lambda leaf: released(leaf, outside), output), push


# --- Jacobians --------------------------------------------------------------------------------------------------


def _basis(tensors: list[Tensor]) -> list[Tensor]:
    """The unit vectors of the space of all `tensors` together, for each of them its part: (total, *shape)."""
    counts = [tensor.numel() for tensor in tensors]
    total = sum(counts)
    parts, start = [], 0
    for tensor, count in zip(tensors, counts, strict=True):
        part = tensor.new_zeros((total, count))
        part.diagonal(-start).fill_(1)
        parts.append(part.view((total, *tensor.shape)))
        start += count
    return parts


def jacrev(
    func: Callable[..., Any],
    argnums: Any = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """A function that returns the Jacobian of `func`, one row for each output, by reverse mode.

    `chunk_size`: how many rows to compute at once; None: all.

    >>> import adjoint as torch
    >>> torch.func.jacrev(torch.sin)(torch.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def jacobian(*args: Any, **keywords: Any) -> Any:
        places = positions(argnums, len(args))

        def partial(*chosen: Any) -> Any:
            replaced = list(args)
            for place, value in zip(places, chosen, strict=True):
                replaced[place] = value
            return func(*replaced, **keywords)

        result = vjp(partial, *(args[place] for place in places), has_aux=has_aux)
        output, pull = result[:2]
        outputs, shape = flatten(output)
        for leaf in outputs:
            if not isinstance(leaf, Tensor):
                raise RuntimeError(f"jacrev: Expected all outputs to be Tensors, got {type(leaf)}")
        basis = unflatten(_basis(outputs), shape)
        rows = vmap(pull, chunk_size=chunk_size)(basis)
        leaves, structure = flatten(rows)
        inputs = flatten(tuple(args[place] for place in places))[0]
        counts = [leaf.numel() for leaf in outputs]
        split = [leaf.split(counts, 0) for leaf in leaves]
        jacobians = []
        for number, leaf in enumerate(outputs):
            row = [parts[number].reshape((*leaf.shape, *x.shape)) for parts, x in zip(split, inputs, strict=True)]
            nested = unflatten(row, structure)
            jacobians.append(nested if isinstance(argnums, tuple) else nested[0])
        found = unflatten(jacobians, shape)
        return (found, result[2]) if has_aux else found

    return jacobian


def jacfwd(
    func: Callable[..., Any],
    argnums: Any = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that returns the Jacobian of `func`, one column for each input, by forward mode.

    `chunk_size`: how many columns to compute at once; None: all.

    >>> import adjoint as torch
    >>> torch.func.jacfwd(torch.sin)(torch.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    @functools.wraps(func)
    def jacobian(*args: Any, **keywords: Any) -> Any:
        places = positions(argnums, len(args))
        chosen = tuple(args[place] for place in places)

        def partial(*values: Any) -> Any:
            replaced = list(args)
            for place, value in zip(places, values, strict=True):
                replaced[place] = value
            return func(*replaced, **keywords)

        def column(directions: Any) -> Any:
            results = jvp(partial, chosen, directions, has_aux=has_aux)
            return results[1:] if has_aux else results[1]

        inputs, structure = flatten(chosen)
        basis = unflatten(_basis(inputs), structure)
        out_dims: Any = (0, None) if has_aux else 0
        columns = vmap(column, out_dims=out_dims, randomness=randomness, chunk_size=chunk_size)(basis)
        aux = None
        if has_aux:
            columns, aux = columns
        leaves, shape = flatten(columns)
        counts = [leaf.numel() for leaf in inputs]
        jacobians = []
        for leaf in leaves:
            parts = leaf.movedim(0, -1).split(counts, -1)
            blocks = [part.reshape((*leaf.shape[1:], *x.shape)) for part, x in zip(parts, inputs, strict=True)]
            nested = unflatten(blocks, structure)
            jacobians.append(nested if isinstance(argnums, tuple) else nested[0])
        found = unflatten(jacobians, shape)
        return (found, aux) if has_aux else found

    return jacobian


def hessian(func: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
    """A function that returns the matrix of second derivatives of `func`: forward mode over reverse mode.

    >>> import adjoint as torch
    >>> torch.func.hessian(lambda x: (x ** 3).sum())(torch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
