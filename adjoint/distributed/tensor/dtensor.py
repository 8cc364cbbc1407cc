"""`DTensor`, a tensor whose parts are distributed over processes.

The object itself is the part, so the engine, optimizers and kernels treat it like any other tensor. Calls of a program
go through `__torch_function__`. These calls use the shape of the whole tensor. Elementwise functions run
on the parts. All other functions run on the whole tensor, which is gathered first in every process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import adjoint as torch

from ...dispatch.declaration import Operator
from ..collectives import all_gather_into_tensor, all_reduce
from ..device_mesh import DeviceMesh
from ..groups import default_group
from ..reductions import ReduceOp
from .placement_types import Partial, Placement, Replicate, Shard, span, spans
from .products import product_placements, with_summed_gradient

__all__ = ["DTensor"]

_PLAIN = torch._C.DisableTorchFunctionSubclass

OF_THE_PART = frozenset(
    """
    requires_grad is_leaf grad_fn dtype device layout _version output_nr retains_grad retain_grad is_floating_point is_complex
    element_size register_hook register_post_accumulate_grad_hook requires_grad_ is_cpu is_cuda is_sparse names name itemsize
    is_contiguous data_ptr untyped_storage backward _backward_hooks _post_accumulate_grad_hooks is_inference is_meta __hash__
    is_quantized volatile get_device is_shared share_memory_ is_conj is_neg is_signed __dlpack_device__ is_mps is_xpu
    """.split()
)
"""The attributes that concern the part itself."""

BY_ELEMENT = frozenset(
    """
    pow pow_ div div_ true_divide floor_divide remainder rsub round square silu clamp clamp_ clip clamp_max clamp_min where
    lerp lerp_ relu sigmoid tanh masked_fill masked_fill_ isnan isinf isfinite logical_not zeros_like ones_like empty_like
    full_like clone copy_ fill_ zero_ alias data detach detach_ contiguous view_as requires_grad_ positive __pos__ to type
    type_as cpu float double half bfloat16 int long bool abs_ hardtanh elu leaky_relu relu6 hardswish mish celu selu softsign
    threshold hardsigmoid tanhshrink
    """.split()
)
"""Elementwise functions that select an operator, or are not operators.

The declaration of an operator tells whether it is elementwise.
"""

REDUCED = {
    **dict.fromkeys(("sum", "nansum"), "sum"),
    **dict.fromkeys(("max", "amax", "any"), "max"),
    **dict.fromkeys(("min", "amin", "all"), "min"),
}
"""Functions that reduce all elements, and how the results of the parts are reduced."""

_OPERATIONS = {
    "sum": ReduceOp.SUM,
    "avg": ReduceOp.AVG,
    "max": ReduceOp.MAX,
    "min": ReduceOp.MIN,
    "product": ReduceOp.PRODUCT,
}


class DTensor(torch.Tensor):
    """A tensor that is divided among the processes of a mesh; see `distribute_tensor` and `from_local`.

    Its shape is the shape of the whole tensor. Elementwise functions, matrix products, sums and norms run on the parts.
    Other functions gather the whole tensor in each process.
    """

    _mesh: DeviceMesh
    _placements: tuple[Placement, ...]
    _shape: torch.Size

    # --- creation ---------------------------------------------------------------------------------------------------

    @staticmethod
    def _of(part: torch.Tensor, mesh: DeviceMesh, placements: Sequence[Placement], shape: Sequence[int]) -> DTensor:
        """Return the distributed tensor of the given shape. `part` is its part in this process.

        It shares the memory and the graph of the part.
        """
        with _PLAIN():
            made: Any = part.as_subclass(DTensor)
        vars(made).update(_mesh=mesh, _placements=tuple(placements), _shape=torch.Size(shape))
        return made

    def _like(self, part: torch.Tensor) -> DTensor:
        return DTensor._of(part, self._mesh, self._placements, self._shape)

    @staticmethod
    def from_local(
        local_tensor: torch.Tensor,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        run_check: bool = False,
        shape: Sequence[int] | None = None,
        stride: Sequence[int] | None = None,
        grad_placements: Sequence[Placement] | None = None,
    ) -> DTensor:
        """Return the tensor whose parts are the given tensors of the processes.

        Without `shape`, all parts have the same shape.
        """
        mesh = device_mesh if device_mesh is not None else whole_mesh()
        chosen = tuple(placements) if placements is not None else (Replicate(),) * mesh.ndim
        size = list(local_tensor.shape) if shape is None else list(shape)
        if shape is None:
            for number, placement in enumerate(chosen):
                if isinstance(placement, Shard):
                    size[placement.dim] *= mesh.size(number)
        return DTensor._of(local_tensor, mesh, chosen, size)

    # --- properties -------------------------------------------------------------------------------------------------

    @property
    def device_mesh(self) -> DeviceMesh:
        """The mesh of processes that hold the tensor."""
        return self._mesh

    @property
    def placements(self) -> tuple[Placement, ...]:
        """How the tensor is divided along each dimension of the mesh."""
        return self._placements

    def to_local(self, *, grad_placements: Any = None) -> Any:
        """Return the part of this process, on the same memory."""
        with _PLAIN():
            return self.as_subclass(torch.Tensor)

    @property
    def _local_tensor(self) -> Any:
        with _PLAIN():
            return self.detach().as_subclass(torch.Tensor)

    def full_tensor(self, *, grad_placements: Any = None) -> Any:
        """Return the whole tensor in every process. All processes of the mesh call this."""
        return _Whole.apply(self.to_local(), self._mesh, self._placements, self._shape)

    def redistribute(
        self,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        async_op: bool = False,
        **dtypes: Any,
    ) -> DTensor:
        """Return the same tensor, divided in another way. All processes of the mesh call this."""
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        mesh = device_mesh if device_mesh is not None else self._mesh
        chosen = tuple(placements)
        if any(isinstance(each, Partial) for each in chosen):
            raise RuntimeError("Can not redistribute to Partial, redistributing to Partial is for internal use only!")
        if chosen == self._placements and mesh == self._mesh:
            return self
        part = _Redistributed.apply(self.to_local(), self._mesh, self._placements, mesh, chosen, self._shape)
        return DTensor._of(part, mesh, chosen, self._shape)

    # --- functions --------------------------------------------------------------------------------------------------

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run a function for the whole tensor."""
        kwargs = kwargs or {}
        name = _name(func)
        answer = _ANSWERS.get(name)
        if answer is not None:
            return answer(func, *args, **kwargs)
        if name in OF_THE_PART:
            with _PLAIN():
                return func(*args, **kwargs)
        given = [each for each in _tensors((args, kwargs)) if isinstance(each, DTensor)]
        first = next((each for each in given if not _is_number(each)), given[0])
        if _is_by_element(func, name) and _fits(first, name, args, kwargs):
            return _by_element(func, name, first, args, kwargs)
        alone = len(args) == 1 and args[0] is first and not kwargs
        if alone and name in REDUCED and not _has_partial(first):
            return _reduced(func, first, REDUCED[name])
        if (name.endswith("_") and not name.endswith("__")) or name == "__setitem__":
            return _change(func, name, args, kwargs)
        return _on_whole(func, first._mesh, args, kwargs)

    def __repr__(self, **options: Any) -> str:  # type: ignore[override]
        return f"DTensor(local_tensor={self._local_tensor!r}, device_mesh={self._mesh}, placements={self._placements})"

    def __deepcopy__(self, memo: dict[int, Any]) -> DTensor:
        if id(self) not in memo:
            copied = self._like(self._local_tensor.clone())
            copied.requires_grad_(self.requires_grad)
            if getattr(self, "_is_param", False):
                vars(copied)["_is_param"] = True
            memo[id(self)] = copied
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise RuntimeError(
            "a DTensor is saved by torch.distributed.checkpoint, or as what full_tensor() and to_local() return"
        )


def _name(func: Any) -> str:
    """Return the name of a function. For the getter of a property, return the name of the property."""
    owner = getattr(func, "__self__", None)
    if isinstance(owner, property) and owner.fget is not None:
        setter = func.__name__ == "__set__"
        return f"{_PROPERTIES.get(id(owner), owner.fget.__name__)}{' =' if setter else ''}"
    return str(getattr(func, "__name__", func))


def _is_by_element(func: Any, name: str) -> bool:
    """Return whether a function is elementwise, so that it may run on the parts."""
    if name in BY_ELEMENT:
        return True
    declared = getattr(func, "operator", None)
    return (
        isinstance(declared, Operator)
        and not declared.random
        and (declared.tangent == "elementwise" or bool(declared.operands))
    )


_PROPERTIES = {id(value): name for name, value in vars(torch.Tensor).items() if isinstance(value, property)}


def _tensors(values: Any) -> list[Any]:
    """Return the tensors in nested containers."""
    if isinstance(values, torch.Tensor):
        return [values]
    if isinstance(values, dict):
        values = values.values()
    elif not isinstance(values, (list, tuple)):
        return []
    return [found for each in values for found in _tensors(each)]


def _mapped(values: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(values, torch.Tensor):
        return change(values)
    if isinstance(values, dict):
        return {name: _mapped(value, change) for name, value in values.items()}
    if isinstance(values, (list, tuple)):
        changed = [_mapped(each, change) for each in values]
        return type(values)(*changed) if hasattr(values, "_fields") else type(values)(changed)
    return values


def _has_partial(tensor: DTensor) -> bool:
    return any(isinstance(each, Partial) for each in tensor._placements)


def _is_number(tensor: DTensor) -> bool:
    """Return whether a value is a number that each process has."""
    return not tensor._shape and all(isinstance(each, Replicate) for each in tensor._placements)


def _fits(first: DTensor, name: str, args: Any, kwargs: Any) -> bool:
    """Return whether an elementwise function can run on the parts.

    All tensors must be divided in the same way, or be numbers.

    Raises:
        RuntimeError: if a plain tensor that is not a number is among the arguments.
    """
    if _has_partial(first):
        return name in ("clone", "detach", "zeros_like", "ones_like", "empty_like", "requires_grad_", "data")
    for each in _tensors((args, kwargs)):
        if isinstance(each, DTensor):
            same = (each._mesh, each._placements, each._shape) == (first._mesh, first._placements, first._shape)
            if not same and not _is_number(each):
                return False
        elif each.dim():
            raise RuntimeError(
                f"aten.{name}.default got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before "
                "calling distributed operators! Please see https://docs.pytorch.org/docs/main/distributed.tensor.html#mixed-"
                "tensor-and-dtensor-operations for more details."
            )
    return True


def _by_element(func: Any, name: str, first: DTensor, args: Any, kwargs: Any) -> Any:
    local_args, local_kwargs = (_mapped(each, _local) for each in (args, kwargs))
    with _PLAIN():
        result = func(*local_args, **local_kwargs)
    if isinstance(result, torch.Tensor) and isinstance(args[0], DTensor) and result is local_args[0]:
        return args[0]
    if (name.endswith("_") and not name.endswith("__")) or name.startswith("__i"):
        return args[0]
    return _mapped(result, first._like)


def _local(tensor: Any) -> Any:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def _reduced(func: Any, tensor: DTensor, how: str) -> DTensor:
    """Reduce the elements of each part, and then combine the results of all parts."""
    own = tensor.to_local()
    mesh, shape = tensor._mesh, ()
    last = [(high - low) for low, high in spans(tensor._shape, mesh, tensor._placements, [n - 1 for n in mesh.shape])]
    if 0 in last and how != "sum":  # a part without elements has no largest element; all processes decide the same
        return _on_whole(func, mesh, (tensor,), {})
    return DTensor._of(
        _Combined.apply(func(own), mesh, tensor._placements, how), mesh, (Replicate(),) * mesh.ndim, shape
    )


def _norm(func: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    """Compute the norm of a vector by adding sums of powers of the parts."""
    p = args[0] if args else kwargs.pop("ord", kwargs.pop("p", 2))
    p = 2.0 if p in (None, "fro") else float(p)
    if (
        len(args) > 1
        or any(value is not None for name, value in kwargs.items() if name != "dtype")
        or _has_partial(self)
    ):
        return _on_whole(func, self._mesh, (self, p, *args[1:]), kwargs)
    if not p > 0:
        return _on_whole(func, self._mesh, (self, p), kwargs)
    mesh, largest = self._mesh, p == float("inf")
    own = (
        torch.linalg.vector_norm(self.to_local(), p, **kwargs) if self._local_tensor.numel() else self.to_local().sum()
    )
    combined = _Combined.apply(own if largest else own.pow(p), mesh, self._placements, "max" if largest else "sum")
    return DTensor._of(combined if largest else combined.pow(1 / p), mesh, (Replicate(),) * mesh.ndim, ())


def _on_whole(func: Any, mesh: DeviceMesh, args: Any, kwargs: Any) -> Any:
    """Run a function on whole tensors, in every process."""
    whole = [
        _mapped(each, lambda tensor: tensor.full_tensor() if isinstance(tensor, DTensor) else tensor)
        for each in (args, kwargs)
    ]
    with _PLAIN():
        result = func(*whole[0], **whole[1])
    everywhere = (Replicate(),) * mesh.ndim
    return _mapped(result, lambda tensor: DTensor._of(tensor, mesh, everywhere, tensor.shape))


def _change(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Change the whole tensor in place in every process.

    Each process keeps its part.

    Random numbers therefore equal the random numbers of a single process.

    Raises:
        NotImplementedError: if the change would have to be recorded.
    """
    changed = _tensors((args, kwargs))[0]
    recorded = torch.is_grad_enabled() and any(each.requires_grad for each in _tensors((args, kwargs))[1:])
    if not isinstance(changed, DTensor) or changed.grad_fn is not None or recorded:
        raise NotImplementedError(f"{name} cannot change a DTensor in a graph")
    with torch.no_grad():
        whole = changed.full_tensor()

        def found(tensor: Any) -> Any:
            return whole if tensor is changed else tensor.full_tensor() if isinstance(tensor, DTensor) else tensor

        func(*_mapped(args, found), **_mapped(kwargs, found))
        changed.to_local().copy_(part_of(whole, changed._mesh, changed._placements))
    return changed


def _product(func: Any, left: Any, right: Any, bias: Any = None) -> Any:
    """Multiply matrices. If a rule exists, multiply parts. Otherwise every process multiplies the whole matrices."""
    transposed = _name(func) == "linear"
    operands = [each for each in (left, right, bias) if each is not None]
    mesh = next(each for each in operands if isinstance(each, DTensor))._mesh
    divided = all(isinstance(each, DTensor) and each._mesh == mesh for each in operands)
    if divided and len(left._shape) > 1 and len(right._shape) == 2:
        placements = product_placements(left._placements, len(left._shape), right._placements, transposed)
        if placements is not None and left._shape[-1] == right._shape[1 if transposed else 0]:
            parts = [
                with_summed_gradient(each.to_local(), mesh, each._placements, placements) for each in (left, right)
            ]
            shape = (*left._shape[:-1], right._shape[0 if transposed else 1])
            product = DTensor._of(func(*parts), mesh, placements, shape)
            return product if bias is None else _with_bias(product, bias)
    return _on_whole(func, mesh, (*operands,), {})


def _with_bias(product: DTensor, bias: DTensor) -> DTensor:
    """Add a bias to the columns of a product. The bias is divided like the columns."""
    mesh, last = product._mesh, len(product._shape) - 1
    if _has_partial(product):
        product = DTensor._of(product.full_tensor(), mesh, (Replicate(),) * mesh.ndim, product._shape)
    wanted = tuple(Shard(0) if each.is_shard(last) else Replicate() for each in product._placements)
    if bias._placements != wanted:
        bias = bias.redistribute(mesh, wanted)
    part = with_summed_gradient(bias.to_local(), mesh, wanted, product._placements)
    return product._like(product.to_local() + part)


def _transpose(func: Any, self: Any) -> Any:
    """Return the transpose of a matrix, computed from the part."""
    if len(self._shape) != 2:
        return _on_whole(func, self._mesh, (self,), {})
    placements = [Shard(1 - each.dim % 2) if isinstance(each, Shard) else each for each in self._placements]
    return DTensor._of(func(self.to_local()), self._mesh, placements, self._shape[::-1])


def _grad(func: Any, self: Any) -> Any:
    with _PLAIN():
        grad = func(self)
    return grad if grad is None or isinstance(grad, DTensor) else self._like(grad)


def _set(func: Any, self: Any, value: Any) -> None:
    with _PLAIN():
        func(self, value)


def _stride(func: Any, self: Any, dim: int | None = None) -> Any:
    strides = torch.empty(self._shape, device="meta").stride()
    return strides if dim is None else strides[dim]


_ANSWERS: dict[str, Callable[..., Any]] = {
    "shape": lambda func, self: self._shape,
    "size": lambda func, self, dim=None: self._shape if dim is None else self._shape[dim],
    "numel": lambda func, self: self._shape.numel(),
    "nelement": lambda func, self: self._shape.numel(),
    "ndim": lambda func, self: len(self._shape),
    "dim": lambda func, self: len(self._shape),
    "__len__": lambda func, self: self._shape[0],
    "nbytes": lambda func, self: self._shape.numel() * self.element_size(),
    "stride": _stride,
    "grad": _grad,
    "grad =": _set,
    "data =": _set,
    "requires_grad =": _set,
    **dict.fromkeys(("mm", "matmul", "__matmul__", "linear"), _product),
    **dict.fromkeys(("t", "T", "mT"), _transpose),
    "norm": _norm,
    "vector_norm": _norm,
    "linalg_vector_norm": _norm,
    "item": lambda func, self: self.full_tensor().item(),
    "tolist": lambda func, self: self.full_tensor().tolist(),
    "__format__": lambda func, self, form: format(self.full_tensor(), form) if not self._shape else repr(self),
    "__bool__": lambda func, self: bool(self.full_tensor()),
    "__float__": lambda func, self: float(self.full_tensor()),
    "__int__": lambda func, self: int(self.full_tensor()),
    "__repr__": lambda func, self, **options: repr(self),
}
"""The results that apply to the whole tensor."""


# --- between parts and the whole -----------------------------------------------------------------------------------------


def whole_mesh() -> DeviceMesh:
    """Return a one-dimensional mesh of all processes."""
    return DeviceMesh.from_group(default_group(), "cpu")


def part_of(whole: Any, mesh: DeviceMesh, placements: Sequence[Placement]) -> Any:
    """Return the part of this process. It is contiguous and in separate memory, unless it is the whole tensor."""
    place = mesh.get_coordinate() or (0,) * mesh.ndim
    part = whole
    for dim, (start, stop) in enumerate(spans(whole.shape, mesh, placements, place)):
        if (start, stop) != (0, whole.shape[dim]):
            part = part.narrow(dim, start, stop - start)
    return part if part is whole else part.contiguous() if not part.is_contiguous() else part.clone()


def gathered(part: Any, mesh: DeviceMesh, placements: Sequence[Placement], shape: Sequence[int]) -> Any:
    """Return the whole tensor of the given shape from the parts of all processes."""
    whole = part.detach()
    place = mesh.get_coordinate() or (0,) * mesh.ndim
    for number in reversed(range(mesh.ndim)):
        placement = placements[number]
        if isinstance(placement, Partial):
            whole = whole.clone()
            all_reduce(whole, _OPERATIONS[placement.reduce_op], mesh.get_group(number))
        elif isinstance(placement, Shard):
            dim = placement.dim % len(shape)
            start, stop = spans(shape, mesh, placements[:number], place)[dim]
            whole = _joined(whole, dim, stop - start, mesh.get_group(number), mesh.size(number))
    return whole if whole is not part else whole.clone()


def _joined(part: Any, dim: int, length: int, group: Any, count: int) -> Any:
    """Join parts of a dimension of a given length. All parts except the last ones have equal length."""
    size = span(length, count, 0)[1]
    moved = part.movedim(dim, 0)
    if moved.shape[0] < size:
        moved = torch.cat([moved, moved.new_zeros(size - moved.shape[0], *moved.shape[1:])])
    whole = torch.empty(size * count, *moved.shape[1:], dtype=part.dtype)
    all_gather_into_tensor(whole, moved.contiguous(), group=group)
    return whole[:length].movedim(0, dim)


class _Whole(torch.autograd.Function):
    """Gather the whole tensor. In backward, each process takes its part of the gradient."""

    @staticmethod
    def forward(ctx: Any, part: Any, mesh: Any, placements: Any, shape: Any) -> Any:
        ctx.mesh, ctx.placements = mesh, placements
        return gathered(part, mesh, placements, shape)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return part_of(grad, ctx.mesh, ctx.placements), None, None, None


class _Redistributed(torch.autograd.Function):
    """Divide a tensor in another way. In backward, divide the gradient in the original way."""

    @staticmethod
    def forward(ctx: Any, part: Any, mesh: Any, placements: Any, new_mesh: Any, chosen: Any, shape: Any) -> Any:
        ctx.before, ctx.after = (mesh, placements), (new_mesh, chosen, shape)
        return part_of(gathered(part, mesh, placements, shape), new_mesh, chosen)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return part_of(gathered(grad, *ctx.after), *ctx.before), None, None, None, None, None


class _Combined(torch.autograd.Function):
    """Reduce the results that processes have computed from their parts.

    The gradient is passed to the parts that contribute.
    """

    @staticmethod
    def forward(ctx: Any, value: Any, mesh: Any, placements: Any, how: str) -> Any:
        whole = value.detach().clone()
        for number, placement in enumerate(placements):
            if isinstance(placement, Shard):
                all_reduce(whole, _OPERATIONS[how], mesh.get_group(number))
        ctx.counts = (whole == value) if how != "sum" else None
        return whole

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad if ctx.counts is None else grad * ctx.counts, None, None, None
