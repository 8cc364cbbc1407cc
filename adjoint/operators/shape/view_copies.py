"""The views as copies: `X_copy` has the elements of the view `X` in separate, contiguous memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import dtypes
from ...dispatch.annotations import Array, Bool, Int, Ints
from ...dispatch.arguments import invalid_arguments, require
from ...dispatch.declaration import OPERATORS, Operator
from ...dispatch.decorators import internal, operator, public
from ...dispatch.out import STRICT
from ...kernels.shape import view as kernels
from ...tensor import Tensor
from ..declaring.formulas import underived
from ..memory import storage_views  # noqa: F401 - they declare the views
from . import parts, view  # noqa: F401 - they declare the views


def _batch_copied(source: Operator) -> Callable[..., Any]:
    """Return a batching rule that applies the view to the batch and copies the result."""

    def rule(op: Operator, batch: Any, *args: Any) -> Any:
        results = batch.batched(source, args[: len(source.names)])
        return tuple(part.clone() for part in results) if isinstance(results, (tuple, list)) else results.clone()

    rule.reads_memory = True  # type: ignore[attr-defined]
    return rule


def _copied(source: Operator) -> Callable[..., Any]:
    def kernel(*args: Any, implicit: bool = False) -> Any:
        result = source.kernel.general(*args)
        if isinstance(result, (list, tuple)):
            return [part.copy() for part in result]
        return result.copy()

    kernel.__name__ = kernel.__qualname__ = f"{source.name}_copy"
    return kernel


def copying(name: str, doc: str, forward: Any = None, called: str | None = None, **options: Any) -> Any:
    """Declare the copying form of the view `name`, with its parameters or those of `forward`, as `called` or `<name>_copy`."""
    source = OPERATORS[name]
    formulas = {
        member: formula for member, formula in source.declaration.__dict__.items() if member.startswith("grad_")
    }
    members = {"__doc__": doc, "__module__": __name__, "forward": forward or source.forward, **formulas}
    return operator(
        kernel=_copied(source),
        node=f"{source.node_name}_copy",
        method=False,
        same_out=STRICT,
        out="underived",
        batch=_batch_copied(source),
        narrow="converts",
        **options,
    )(type(called or f"{name}_copy", (), members))


def _expand(self: Array, size: Ints, *, implicit: Bool = False): ...


def _permute(self: Array, dims: Ints): ...


def _slice(self: Array, dim: Int = 0, start: Int = None, end: Int = None, step: Int = 1): ...


def _split(self: Array, split_size: Int, dim: Int = 0): ...


_SQUEEZE: Any = {"function_name": "squeeze_copy", "namespace": None}

alias_copy = copying("alias", "A copy.")
copying("as_strided", "A copy of the elements at the given strides and offset in memory.")
diagonal_copy = copying("diagonal", "A copy of the diagonal of dimensions `dim1` and `dim2`.")
copying("expand", "A copy expanded to `size`. -1 keeps a size.", _expand)
copying("permute", "A copy with its dimensions in another order.", _permute)
copying("select", "A copy of one slice of dimension `dim`.", sparse="shapes.select")
copying("slice", "A copy of every `step`th slice of dimension `dim` from `start` up to, but excluding, `end`.", _slice)
copying("split_size", "Copies of `split_size` slices of dimension `dim` each.", _split, "split_copy")
copying("split_with_sizes", "Copies with the given numbers of slices of dimension `dim`.")
squeeze_all_copy = copying("squeeze_all", "A copy without dimensions of size 1.", **_SQUEEZE)
squeeze_dim_copy = copying("squeeze_dim", "A copy without dimension `dim` if its size is 1.", **_SQUEEZE)
squeeze_dims_copy = copying("squeeze_dims", "A copy without the dimensions in `dim` that have size 1.", **_SQUEEZE)
copying("t", "A transposed copy of a matrix.")
copying("transpose", "A copy with two dimensions exchanged.")
copying("unbind", "Copies of the slices of dimension `dim`.")
copying(
    "unfold",
    "A copy of the windows of `size` elements along `dimension`, with distance `step`, as a new last dimension.",
)
copying("unsqueeze", "A copy with a dimension of size 1 inserted at `dim`.")
copying(
    "view_as_real", "A copy of a complex tensor as a real tensor, with real and imaginary parts in a last dimension."
)
copying("view_as_complex", "A complex copy of a real tensor whose last dimension has size 2.")


@operator(kernel=kernels.copy, method=False, node="NotImplemented", same_out=STRICT, narrow="converts")
class detach_copy:
    """A copy. PyTorch defines no derivative."""

    grad_self = underived("detach_copy")


@public(numpy_names=True)
def squeeze_copy(input, dim=None, *, out=None):
    """A copy without dimensions of size 1. With `dim`, all other dimensions remain."""
    require("Tensor", input, "squeeze_copy", "input", 1)
    if dim is None:
        return squeeze_all_copy(input, out=out)
    return (squeeze_dims_copy if isinstance(dim, (tuple, list)) else squeeze_dim_copy)(input, dim, out=out)


@internal(
    kernels.reshape_copy,
    function_name="view_copy",
    node="ViewBackward0_copy",
    same_out=STRICT,
    out="underived",
    batch=_batch_copied(OPERATORS["view_shape"]),
    narrow="converts",
)
class view_shape_copy:
    """A copy with another shape."""

    def forward(self: Array, size: Ints): ...

    def grad_self(grad, self_shape):
        return grad.reshape(self_shape)


@public(numpy_names=True)
def view_copy(input, size, *, out=None):
    """A copy with another shape, or with the bytes read as another dtype.

    >>> import adjoint as torch
    >>> torch.view_copy(torch.arange(4), (2, -1))
    tensor([[0, 1],
            [2, 3]])
    """
    if not isinstance(input, Tensor) or not isinstance(size, (list, tuple, dtypes.dtype)):
        raise invalid_arguments("view_copy", input, size)
    if isinstance(size, dtypes.dtype):
        return alias_copy(input.detach().view(size), out=out)
    return view_shape_copy(input, size, out=out)
