"""`MaskedTensor` is a tensor with a mask of its valid elements.

Elementwise functions skip masked elements. Reductions use only valid elements. Views apply to the data and the mask.
The data and the mask may be sparse, in the same layout. Then functions are applied to the stored elements.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import adjoint as torch
from adjoint import Tensor

from . import reductions

__all__ = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]

ELEMENTWISE = frozenset(
    """
    abs absolute acos acosh add and angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2
    atanh bfloat16 bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor bool ceil
    clamp clamp_max clamp_min clip conj_physical copy cos cosh deg2rad digamma div divide double eq erf erfc erfinv
    exp exp2 expm1 fix float float_power floor floor_divide floordiv fmax fmin fmod frac ge greater greater_equal gt
    half i0 int invert isnan ldexp le less less_equal lgamma log log10 log1p log2 logaddexp logaddexp2 logical_and
    logical_or logical_xor logit long lshift lt matmul_elementwise maximum minimum mod mul multiply mvlgamma
    nan_to_num ne neg negative nextafter not_equal ones_like or polygamma positive pow rad2deg radd reciprocal relu
    remainder rmul round rpow rshift rsqrt rsub rdiv rtruediv sgn short sigmoid sign signbit sin sinc sinh sqrt square
    sub subtract tan tanh threshold to true_divide truediv trunc type xor
    """.split()
)
VIEWS = frozenset(
    """
    H T broadcast_to chunk clone contiguous detach diagonal expand expand_as flatten getitem index_select mH mT
    movedim narrow permute ravel requires_grad_ reshape reshape_as select split squeeze swapaxes swapdims t
    transpose unflatten unfold unsqueeze unsqueeze_copy view view_as
    """.split()
)
LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "to_dense": Tensor.to_dense,
    "to_sparse": Tensor.to_sparse,
    "to_sparse_coo": Tensor.to_sparse,
    "to_sparse_csr": Tensor.to_sparse_csr,
}
"""The conversions to another layout."""

JOINED = frozenset("cat stack hstack vstack dstack column_stack concat concatenate".split())
REDUCED: dict[str, Callable[..., Any]] = {
    name: getattr(reductions, name)
    for name in "sum mean amax amin argmax argmin prod norm var std logsumexp softmax log_softmax".split()
}
INSPECTED = frozenset(
    """
    _version backward data_ptr device dim dtype element_size format grad grad_fn hash is_complex is_contiguous
    is_cuda is_floating_point is_leaf is_meta is_signed is_sparse item itemsize layout len nbytes ndim nelement numel
    output_nr register_hook repr requires_grad retain_grad retains_grad shape size storage_offset str stride
    """.split()
)


_GRAD: Any = Tensor.grad


class MaskedTensor(Tensor):
    """A tensor with a mask of the same shape. The mask is True for valid elements. Use `masked_tensor` to create one.

    >>> import adjoint as torch
    >>> torch.masked.masked_tensor(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([True, False, True])).sum()
    MaskedTensor(  5.0000, True)
    """

    _masked_mask: Tensor

    @staticmethod
    def __new__(cls: type, data: Any, mask: Any, requires_grad: bool = False) -> Any:
        """Create a masked tensor from the mask and the data. It shares memory and history with the data."""
        _check(data, mask)
        if mask.layout is not torch.strided:
            data = data.sparse_mask(mask)
        result = data.as_subclass(cls)
        result._masked_mask = mask
        if requires_grad:
            with torch._C.DisableTorchFunctionSubclass():
                result.requires_grad_()
        return result

    def __init__(self, data: Any, mask: Any, requires_grad: bool = False) -> None:
        pass

    def get_data(self) -> Tensor:
        """Return the data, including masked elements, with its history."""
        return _data(self)

    def get_mask(self) -> Tensor:
        """Return the mask of valid elements."""
        return self._masked_mask

    def to_tensor(self, value: Any) -> Tensor:
        """Return a tensor with `value` in place of masked elements."""
        return _data(self).masked_fill(~self._masked_mask, value)

    def is_sparse_coo(self) -> bool:
        """Return whether the layout is `sparse_coo`."""
        return self._masked_mask.layout is torch.sparse_coo

    def is_sparse_csr(self) -> bool:  # type: ignore[override]
        """Return whether the layout is `sparse_csr`."""
        return self._masked_mask.layout is torch.sparse_csr

    @property
    def grad(self) -> Any:
        """The gradient, with the same mask."""
        with torch._C.DisableTorchFunctionSubclass():
            found = _GRAD.__get__(self)
        return None if found is None else MaskedTensor(found, self._masked_mask)

    @grad.setter
    def grad(self, value: Any) -> None:
        with torch._C.DisableTorchFunctionSubclass():
            _GRAD.__set__(self, value if value is None else _data(value))

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        formatter = "{0:8.4f}" if self.dtype.is_floating_point or self.dtype.is_complex else "{0}"
        data, mask = _data(self).detach().to_dense(), self._masked_mask.to_dense()
        if not self.dim():
            text = formatter.format(data.item()) if mask.item() else "--"
            return f"MaskedTensor({text}, {mask.item()})"
        text = _text(data.tolist(), mask.tolist(), formatter)
        return "MaskedTensor(\n" + "\n".join("  " + line for line in text.split("\n")) + "\n)"

    __str__ = __repr__

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (_data(self).detach(), self._masked_mask, self.requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> MaskedTensor:
        if not self.is_leaf:
            copy.deepcopy(_data(self))  # raises the error
        if id(self) not in memo:
            result = type(self)(*copy.deepcopy(self.__reduce_ex__(4)[1], memo))
            memo[id(self)] = result
            if self.grad is not None:
                result.grad = copy.deepcopy(self.grad, memo)
        return memo[id(self)]

    def __format__(self, specification: str) -> str:
        return repr(self)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Apply a function to data and masks."""
        kwargs = kwargs or {}
        name = _name(func)
        plain = name.removesuffix("_")
        if name in INSPECTED:
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **kwargs)
        sparse = any(each.get_mask().layout is not torch.strided for each in args if isinstance(each, MaskedTensor))
        if name in REDUCED and isinstance(args[0], MaskedTensor) and not (sparse and (args[1:] or kwargs)):
            operand = args[0]
            if sparse:  # an index is one of the dense tensor
                read: Any = Tensor.to_dense if name.startswith("arg") else _values
                operand = MaskedTensor(read(operand.get_data()), read(operand.get_mask()))
            return REDUCED[name](operand, *args[1:], **kwargs)
        if name in LAYOUTS and isinstance(args[0], MaskedTensor):
            data, mask = args[0].get_data(), LAYOUTS[name](args[0].get_mask())
            if data.layout is torch.strided and mask.layout is not torch.strided:
                return MaskedTensor(data.sparse_mask(mask), mask)
            return MaskedTensor(LAYOUTS[name](data), mask)
        if name == "all" and isinstance(args[0], MaskedTensor):
            data, mask = args[0].get_data(), args[0].get_mask()
            return MaskedTensor(func((data != 0) | ~mask, *args[1:], **kwargs), mask.any(*args[1:], **kwargs))
        if name in VIEWS:
            rest = _plain(args[1:])
            return _joined(func(_data(args[0]), *rest, **kwargs), _of_mask(func, name, args[0], rest, kwargs))
        if name in JOINED:
            parts = [each if isinstance(each, MaskedTensor) else as_masked_tensor(each, None) for each in args[0]]
            masks = func([each.get_mask() for each in parts], *args[1:], **kwargs)
            return MaskedTensor(func([each.get_data() for each in parts], *args[1:], **kwargs), masks)
        if name == "where":
            parts = [each if isinstance(each, MaskedTensor) else as_masked_tensor(each, None) for each in args[1:]]
            mask = torch.where(args[0], *[each.get_mask() for each in parts])
            return MaskedTensor(torch.where(args[0], *[each.get_data() for each in parts]), mask)
        if plain in ELEMENTWISE:
            mask = _common_mask([*args, *kwargs.values()])
            if sparse:
                found = func(*map(_values, args), **{key: _values(value) for key, value in kwargs.items()})
                return args[0] if name != plain else MaskedTensor(_with_values(mask, found), mask)
            result = func(*_plain(args), **_plain(kwargs))
            if name != plain or not isinstance(result, Tensor):  # in place, or `bool(tensor)`
                return args[0] if name != plain else result
            return MaskedTensor(result, mask)
        raise TypeError(
            f"no implementation found for '{name}' on types that implement __torch_function__: [{cls}]; masked tensors have "
            "elementwise functions, reductions and views"
        )


def _name(func: Any) -> str:
    """Return the name of a function without the underscores of Python's operators."""
    name: str = getattr(func, "__name__", "")
    if name in ("__get__", "__set__"):
        attribute = getattr(func, "__self__", None)
        name = getattr(attribute, "__name__", "") or getattr(getattr(attribute, "fget", None), "__name__", name)
    if name.startswith("__") and name.endswith("__"):
        name = name[2:-2]
        if name.startswith("i") and name[1:] in ("add", "sub", "mul", "truediv"):
            return f"{name[1:]}_"
    return name


def _data(tensor: Any) -> Any:
    """Return the data of a masked tensor as a plain tensor, and any other value unchanged."""
    if not isinstance(tensor, MaskedTensor):
        return tensor
    with torch._C.DisableTorchFunctionSubclass():
        return tensor.as_subclass(Tensor)


def _plain(values: Any) -> Any:
    if isinstance(values, dict):
        return {name: _data(value) for name, value in values.items()}
    return tuple(_data(value) for value in values)


def _values(tensor: Any) -> Any:
    """Return the stored elements of a sparse tensor, and any other value unchanged."""
    data = _data(tensor)
    if not isinstance(data, Tensor) or data.layout is torch.strided:
        return data
    return data._values() if data.layout is torch.sparse_coo else data.values()


def _with_values(like: Tensor, values: Tensor) -> Tensor:
    """Return a sparse tensor with the layout and coordinates of `like` that stores `values`."""
    if like.layout is torch.sparse_coo:
        return torch.sparse_coo_tensor(like._indices(), values, like.shape, is_coalesced=like.is_coalesced())
    return torch.sparse_csr_tensor(like.crow_indices(), like.col_indices(), values, like.shape)


def _of_mask(func: Any, name: str, tensor: Any, args: Any, kwargs: Any) -> Any:
    """Return the corresponding view of the mask."""
    mask = tensor.get_mask()
    return mask if name in ("requires_grad_", "detach", "contiguous") else func(mask, *args, **kwargs)


def _joined(data: Any, mask: Any) -> Any:
    if isinstance(data, (tuple, list)):
        return tuple(MaskedTensor(one, valid) for one, valid in zip(data, mask, strict=True))
    return MaskedTensor(data, mask)


def _common_mask(values: Any) -> Tensor:
    """Return the common mask of all masked operands."""
    masks = [value.get_mask() for value in values if isinstance(value, MaskedTensor)]
    for other in masks[1:]:
        if other.shape != masks[0].shape or not torch.equal(masks[0].to_dense(), other.to_dense()):
            raise ValueError("Input masks must match. If you need support for this, please open an issue on Github.")
    return masks[0]


def _tensors_match(a: Any, b: Any, exact: bool = True, rtol: float = 1e-05, atol: float = 1e-08) -> bool:
    """Return whether two unmasked tensors of one layout are equal, or close unless `exact`. The first's dtype counts."""
    if is_masked_tensor(a) or is_masked_tensor(b):
        raise ValueError("Neither `a` nor `b` can be a MaskedTensor.")
    if a.layout != b.layout:
        raise ValueError(f"`a` and `b` must have the same layout. Got {a.layout} and {b.layout}")
    first, second = (each.to_dense() for each in (a, b.to(a.dtype)))
    if exact:
        return first.dim() == second.dim() and bool((first == second).all())
    return first.dim() == second.dim() and torch.allclose(first, second, rtol=rtol, atol=atol)


def _masks_match(a: Any, b: Any) -> bool:
    """Return whether two masked tensors have the same mask. Other values have none that could differ."""
    if not (is_masked_tensor(a) and is_masked_tensor(b)):
        return True
    return _tensors_match(a.get_mask(), b.get_mask())


def _text(data: Any, mask: Any, formatter: str) -> str:
    """Return nested lists as PyTorch prints them, with `--` for masked elements."""
    if not isinstance(mask[0] if mask else True, list):
        shown = [formatter.format(value) if valid else "--".rjust(8) for value, valid in zip(data, mask, strict=True)]
        return "[" + ", ".join(shown) + "]"
    inner = [_text(one, valid, formatter) for one, valid in zip(data, mask, strict=True)]
    body = ",\n".join("\n".join("  " + line for line in text.split("\n")) for text in inner)
    return f"[\n{body}\n]"


def _check(data: Any, mask: Any) -> None:
    for name, value in (("data", data), ("mask", mask)):
        if not isinstance(value, Tensor) or isinstance(value, MaskedTensor):
            raise TypeError(f"{name} must be a Tensor")
    if data.layout is not mask.layout:
        raise TypeError("data and mask must have the same layout.")
    if data.layout not in (torch.strided, torch.sparse_coo, torch.sparse_csr):
        raise TypeError(f"data layout of {data.layout} is not supported.")
    if mask.dtype is not torch.bool:
        raise TypeError("mask must have dtype bool.")
    if data.dim() != mask.dim():
        raise ValueError("data.dim() must equal mask.dim()")
    if data.shape != mask.shape:
        raise ValueError("data.size() must equal mask.size()")


def masked_tensor(data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
    """A new leaf: a masked tensor with a copy of the data.

    Args:
        data: the elements.
        mask: a bool tensor of the same shape. It is True for valid elements.
        requires_grad: whether operations on it are recorded.

    Raises:
        TypeError, ValueError: if the mask is not a bool tensor with the shape of the data.

    >>> import adjoint as torch
    >>> torch.masked.masked_tensor(torch.arange(3), torch.tensor([True, False, True]))
    MaskedTensor(
      [0,       --, 2]
    )
    """
    _check(data, mask)
    return MaskedTensor(data.detach().clone(), mask.clone(), requires_grad)


def as_masked_tensor(data: Tensor, mask: Tensor | None) -> MaskedTensor:
    """Return a masked tensor on the data itself. Gradients pass through it. Without a mask every element is valid."""
    return MaskedTensor(data, torch.ones_like(data, dtype=torch.bool) if mask is None else mask)


def is_masked_tensor(obj: Any, /) -> bool:
    """Whether `obj` is a masked tensor."""
    return isinstance(obj, MaskedTensor)
