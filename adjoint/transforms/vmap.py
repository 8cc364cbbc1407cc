"""`vmap` turns a function of tensors into a function of batches, computed for the whole batch together.

The private functions have the names and parameters of the functions in `torch._functorch.vmap`, and are looked up at
each call. Libraries replace them with functions that batch their own containers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._runtime.tracebacks import ending_at_caller, shorten
from ..dispatch.decorators import tensors as operators
from ..random import default_generator
from ..tensor import Tensor, wrap_dim
from .tree import TreeSpec, _broadcast_to_and_flatten, tree_flatten, tree_unflatten
from .vmap_interpreter import LEGACY, BatchedTensor, VmapInterpreter

__all__ = ["vmap"]


@ending_at_caller
def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return a function that computes `func` for a whole batch at once, along one more dimension of the inputs.

    Args:
        func: a function that takes and returns tensors, which may be nested in tuples, lists and dicts.
        in_dims: the batch dimension of each input (None for an unbatched input). It is one number for all inputs, or
            has the structure of the inputs.
        out_dims: the position of the batch dimension in the outputs.
        randomness: `"same"` or `"different"` random numbers for all batch elements, or `"error"` to refuse random numbers.
        chunk_size: the number of batch elements to compute together; None computes all.

    Raises:
        ValueError: if no input has a batch dimension, or if the sizes differ.

    >>> import adjoint as torch
    >>> torch.vmap(torch.dot)(torch.ones(3, 5), torch.ones(3, 5))
    tensor([5., 5., 5.])
    """
    if randomness not in ("error", "different", "same", LEGACY):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def mapped(*args: Any, **keywords: Any) -> Any:
        try:
            size, dims, leaves, structure = _process_batched_inputs(in_dims, args, func)
            if chunk_size is None or size <= chunk_size:
                return _run(func, leaves, structure, dims, size, out_dims, randomness, keywords)
            return in_chunks(size, dims, leaves, structure, keywords)
        except Exception as error:
            shorten(error)
            raise

    def in_chunks(size: int, dims: Any, leaves: Any, structure: TreeSpec, keywords: Any) -> Any:
        results, chunk = [], chunk_size or size
        state = default_generator.get_state() if randomness == "same" else None
        for start in range(0, size, chunk):
            if state is not None:
                default_generator.set_state(state)
            count = min(chunk, size - start)
            part = [
                leaf if dim is None else leaf.narrow(dim, start, count) for leaf, dim in zip(leaves, dims, strict=True)
            ]
            results.append(_run(func, part, structure, dims, count, out_dims, randomness, keywords))
        return _joined(results, out_dims, func)

    return mapped


def _get_name(func: Any) -> str:
    if isinstance(func, functools.partial):
        return f"functools.partial({_get_name(func.func)}, ...)"
    return getattr(func, "__name__", repr(func))


def _process_batched_inputs(
    in_dims: Any, args: tuple[Any, ...], func: Any
) -> tuple[int, list[Any], list[Any], TreeSpec]:
    """Return the batch size, the batch dimension of each input, the flat list of inputs, and their structure."""
    name = _get_name(func)
    if not isinstance(in_dims, (int, tuple)) or isinstance(in_dims, bool):
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be int or a (potentially nested) tuple "
            f"matching the structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a function "
            "with no inputs. The latter is unsupported."
        )
    leaves, structure = tree_flatten(args)
    dims = [in_dims] * len(leaves) if type(in_dims) is int else _broadcast_to_and_flatten(in_dims, structure)
    if dims is None:
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): in_dims is not compatible with the structure of `inputs`. in_dims "
            f"has structure {tree_flatten(in_dims)[1]} but inputs has structure {structure}."
        )
    sizes = []
    for index, (leaf, dim) in enumerate(zip(leaves, dims, strict=True)):
        if dim is None:
            continue
        if not isinstance(dim, int):
            raise ValueError(
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for an input but in_dim must be either an "
                "integer dimension or None."
            )
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for an input but the input is of type "
                f"{type(leaf)}. We cannot vmap over non-Tensor arguments, please use None as the respective in_dim"
            )
        ndim = leaf._array.ndim
        if not -ndim <= dim < ndim:
            raise ValueError(
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for some input, but that input is a Tensor of "
                f"dimensionality {ndim} so expected in_dim to satisfy -{ndim} <= in_dim < {ndim}."
            )
        dims[index] = dim % ndim
        sizes.append(leaf._array.shape[dim])
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(size != sizes[0] for size in sizes):
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return sizes[0], dims, leaves, structure


def _run(
    func: Any,
    leaves: list[Any],
    structure: TreeSpec,
    dims: list[Any],
    size: int,
    out_dims: Any,
    randomness: str,
    keywords: dict[str, Any],
) -> Any:
    """Call `func` once for the whole batch."""
    for dim in () if type(out_dims) is int else tree_flatten(out_dims)[0]:
        if not isinstance(dim, int) and dim is not None:
            raise ValueError(
                f"vmap({_get_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of "
                "ints representing where in the outputs the vmapped dimension should appear."
            )
    level = VmapInterpreter(size, randomness)
    result = _run_within(level, func, leaves, structure, dims, keywords)
    return _unwrap_batched(result, out_dims, level, size, func)


def _run_within(
    level: VmapInterpreter, func: Any, leaves: list[Any], structure: TreeSpec, dims: list[Any], keywords: dict[str, Any]
) -> Any:
    """Run `func` for the whole batch, and return its result. The tensors with a batch dimension belong to `level`."""
    begin, end = (level.enter, level.leave) if level.randomness == LEGACY else (level.begin, level.end)
    begin()
    try:
        return func(*_create_batched_inputs(dims, leaves, level, structure), **keywords)
    finally:
        end()


def _create_batched_inputs(dims: list[Any], leaves: list[Any], level: VmapInterpreter, structure: TreeSpec) -> Any:
    """Return the inputs as `func` sees them."""
    seen = [leaf if dim is None else _add_batch_dim(leaf, dim, level) for leaf, dim in zip(leaves, dims, strict=True)]
    return tree_unflatten(seen, structure)


def _add_batch_dim(value: Tensor, dim: int, level: VmapInterpreter) -> Tensor:
    """Return a tensor without the batch dimension `dim`, as `func` sees it in the `vmap` of `level`."""
    return BatchedTensor(value, dim if dim >= 0 else wrap_dim(dim, value._array.ndim), level)


def restore_vmap(func: Callable[..., Any], in_dims: Any, batch_size: int, randomness: str) -> Callable[..., Any]:
    """Return a function that calls `func` on batches like `vmap`, and returns its outputs and their batch dimensions.

    The outputs keep the position of the batch dimension. The batch dimension is None for an unbatched output.
    `in_dims`: the batch dimensions of the inputs, in the same structure.

    >>> import adjoint as torch
    >>> outputs, out_dims = restore_vmap(lambda x: x.sum(), (1,), 2, "error")(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    >>> outputs, out_dims
    (tensor([4., 6.]), 0)
    """

    def restored(*args: Any, **keywords: Any) -> tuple[Any, Any]:
        leaves, structure = tree_flatten(args)
        dims = _broadcast_to_and_flatten(in_dims, structure)
        if dims is None:
            raise AssertionError("flat_bdims must not be None")
        level = VmapInterpreter(batch_size, randomness)
        result = _run_within(level, func, leaves, structure, dims, keywords)
        outputs, shape = tree_flatten(result)
        found = [output.bdim if level.has(output) else None for output in outputs]
        plain = [output.value if level.has(output) else output for output in outputs]
        return tree_unflatten(plain, shape), tree_unflatten(found, shape)

    return restored


def _unwrap_batched(result: Any, out_dims: Any, level: VmapInterpreter, size: int, func: Any) -> Any:
    """Return the outputs, with the batch dimension at the positions `out_dims`."""
    name = _get_name(func)
    if isinstance(result, Tensor) and type(out_dims) is int:
        return _maybe_remove_batch_dim(name, result, level, size, out_dims)
    outputs, shape = tree_flatten(result)
    places = _out_places(func, out_dims, outputs, shape)
    return tree_unflatten(
        [_maybe_remove_batch_dim(name, output, level, size, dim) for output, dim in zip(outputs, places, strict=True)],
        shape,
    )


def _out_places(func: Any, out_dims: Any, outputs: list[Any], shape: TreeSpec) -> list[Any]:
    single = shape.is_leaf() and isinstance(out_dims, tuple) and len(out_dims) == 1
    dims = _broadcast_to_and_flatten(out_dims[0] if single else out_dims, shape)
    if dims is None:
        raise ValueError(
            f"vmap({_get_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of "
            f"`outputs`. out_dims has structure {tree_flatten(out_dims)[1]} but outputs has structure {shape}."
        )
    return dims


def _maybe_remove_batch_dim(name: str, output: Any, level: VmapInterpreter, size: int, dim: int | None) -> Any:
    """Return one output of the function `name`, with the batch dimension at position `dim`."""
    if not isinstance(output, Tensor):
        if dim is None:
            return output
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(output)}. Did you mean to set out_dims= to "
            "None for output?"
        )
    if dim is None:
        if level.has(output):
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        return level.first(output)
    return _remove_batch_dim(output, level, size, dim)


def _remove_batch_dim(output: Any, level: VmapInterpreter, size: int, dim: int) -> Tensor:
    """Return the tensor of the whole batch, with the batch dimension at position `dim`."""
    if not level.has(output):
        return level.expanded(output).movedim(0, dim)
    return output.value if output.bdim == dim else output.value.movedim(output.bdim, dim)


def _joined(results: list[Any], out_dims: Any, func: Any) -> Any:
    """Concatenate the results of the chunks."""
    columns = [tree_flatten(result) for result in results]
    shape = columns[0][1]
    dims = _out_places(func, out_dims, columns[0][0], shape)
    joined = [
        parts[0] if dim is None else operators.cat(list(parts), dim)
        for parts, dim in zip(zip(*(leaves for leaves, _ in columns), strict=True), dims, strict=True)
    ]
    return tree_unflatten(joined, shape)
