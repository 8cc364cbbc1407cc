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
from ..declaring.underived import underived
from ..memory import storage_views  # noqa: F401 - they declare the views
from . import parts, view  # noqa: F401 - they declare the views


def _batch_copied(source: Operator) -> Callable[..., Any]:
    """Return a batching rule that applies the view to the batch and copies the result."""

    def rule(op: Operator, batch: Any, *args: Any) -> Any:
        results = batch.batched(source, args[: len(source.names)])
        return tuple(part.clone() for part in results) if isinstance(results, (tuple, list)) else results.clone()

    return rule


def copying(name: str, node: str, **options: Any) -> Callable[[type], Any]:
    """Declare the copying form of the view `name`. The class defines only the parameters."""
    source = OPERATORS[name]

    def declare(declaration: type) -> Any:
        for member, formula in source.declaration.__dict__.items():
            if member.startswith("grad_") or member == "shown":
                setattr(declaration, member, formula)
        options.update(kernel=_copied(source), node=node, same_out=STRICT, out="underived", batch=_batch_copied(source))
        return operator(method=False, narrow="converts", **options)(declaration)

    return declare


def _copied(source: Operator) -> Callable[..., Any]:
    def kernel(*args: Any, implicit: bool = False) -> Any:
        result = source.kernel.general(*args)
        if isinstance(result, (list, tuple)):
            return [part.copy() for part in result]
        return result.copy()

    kernel.__name__ = kernel.__qualname__ = f"{source.name}_copy"
    return kernel


@copying("alias", "AliasBackward0_copy")
class alias_copy:
    """A copy."""

    def forward(self: Array): ...


@copying("as_strided", "AsStridedBackward0_copy")
class as_strided_copy:
    """A copy of the elements at the given strides and offset in memory."""

    def forward(self: Array, size: Ints, stride: Ints, storage_offset: Int = None): ...


@copying("diagonal", "DiagonalBackward0_copy")
class diagonal_copy:
    """A copy of the diagonal of dimensions `dim1` and `dim2`."""

    def forward(self: Array, offset: Int = 0, dim1: Int = 0, dim2: Int = 1): ...


@operator(kernel=kernels.copy, method=False, node="NotImplemented", same_out=STRICT, narrow="converts")
class detach_copy:
    """A copy. PyTorch defines no derivative."""

    def forward(self: Array): ...

    grad_self = underived("detach_copy")


@copying("expand", "ExpandBackward0_copy")
class expand_copy:
    """A copy expanded to `size`. -1 keeps a size."""

    def forward(self: Array, size: Ints, *, implicit: Bool = False): ...


@copying("permute", "PermuteBackward0_copy")
class permute_copy:
    """A copy with its dimensions in another order."""

    def forward(self: Array, dims: Ints): ...


@copying("select", "SelectBackward0_copy", sparse="shapes.select")
class select_copy:
    """A copy of one slice of dimension `dim`."""

    def forward(self: Array, dim: Int, index: Int): ...


@copying("slice", "SliceBackward0_copy")
class slice_copy:
    """A copy of every `step`th slice of dimension `dim` from `start` up to, but excluding, `end`."""

    def forward(self: Array, dim: Int = 0, start: Int = None, end: Int = None, step: Int = 1): ...


@copying("split_size", "SplitBackward0_copy")
class split_copy:
    """Copies of `split_size` slices of dimension `dim` each."""

    def forward(self: Array, split_size: Int, dim: Int = 0): ...


@copying("split_with_sizes", "SplitWithSizesBackward0_copy")
class split_with_sizes_copy:
    """Copies with the given numbers of slices of dimension `dim`."""

    def forward(self: Array, split_sizes: Ints, dim: Int = 0): ...


@copying("squeeze_all", "SqueezeBackward0_copy", function_name="squeeze_copy", namespace=None)
class squeeze_all_copy:
    """A copy without dimensions of size 1."""

    def forward(self: Array): ...


@copying("squeeze_dim", "SqueezeBackward1_copy", function_name="squeeze_copy", namespace=None)
class squeeze_dim_copy:
    """A copy without dimension `dim` if its size is 1."""

    def forward(self: Array, dim: Int): ...


@copying("squeeze_dims", "SqueezeBackward2_copy", function_name="squeeze_copy", namespace=None)
class squeeze_dims_copy:
    """A copy without the dimensions in `dim` that have size 1."""

    def forward(self: Array, dim: Ints): ...


@public(numpy_names=True)
def squeeze_copy(input, dim=None, *, out=None):
    """A copy without dimensions of size 1. With `dim`, all other dimensions remain."""
    require("Tensor", input, "squeeze_copy", "input", 1)
    if dim is None:
        return squeeze_all_copy(input, out=out)
    return (squeeze_dims_copy if isinstance(dim, (tuple, list)) else squeeze_dim_copy)(input, dim, out=out)


@copying("t", "TBackward0_copy")
class t_copy:
    """A transposed copy of a matrix."""

    def forward(self: Array): ...


@copying("transpose", "TransposeBackward0_copy")
class transpose_copy:
    """A copy with two dimensions exchanged."""

    def forward(self: Array, dim0: Int, dim1: Int): ...


@copying("unbind", "UnbindBackward0_copy")
class unbind_copy:
    """Copies of the slices of dimension `dim`."""

    def forward(self: Array, dim: Int = 0): ...


@copying("unfold", "UnfoldBackward0_copy")
class unfold_copy:
    """A copy of the windows of `size` elements along `dimension`, with distance `step`, as a new last dimension."""

    def forward(self: Array, dimension: Int, size: Int, step: Int): ...


@copying("unsqueeze", "UnsqueezeBackward0_copy")
class unsqueeze_copy:
    """A copy with a dimension of size 1 inserted at `dim`."""

    def forward(self: Array, dim: Int): ...


@copying("view_as_real", "ViewAsRealBackward0_copy")
class view_as_real_copy:
    """A copy of a complex tensor as a real tensor, with real and imaginary parts in a last dimension."""

    def forward(self: Array): ...


@copying("view_as_complex", "ViewAsComplexBackward0_copy")
class view_as_complex_copy:
    """A complex copy of a real tensor whose last dimension has size 2."""

    def forward(self: Array): ...


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
