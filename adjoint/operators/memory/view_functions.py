"""Recreating a view on another base, under PyTorch's private names."""

from __future__ import annotations

from ...dispatch.arguments import require
from ...dispatch.decorators import public, tensors


@public(namespace=None, method=True)
def _view_func(input, new_base=None):
    """Return the same view on `new_base`.

    Return None for a tensor that is not a view, or for a base with another layout.
    """
    if new_base is None:
        raise TypeError('_view_func() missing 1 required positional arguments: "new_base"')
    require("Tensor", new_base, "_view_func", "new_base", 1)
    base = input._base
    if base is None or any(getattr(base, name)() != getattr(new_base, name)() for name in _GEOMETRY):
        return None
    size, stride, offset = input.size(), input.stride(), input.storage_offset()
    if input.is_complex() is base.is_complex():
        if input.dtype is not base.dtype:
            return None
        made = new_base.as_strided(size, stride, offset)
        return made.conj() if input.is_conj() is not base.is_conj() else made
    if not new_base.is_complex():
        return None
    made = tensors.view_as_real(new_base).as_strided(size, stride, offset)
    return tensors._neg_view(made) if input.is_neg() else made


_GEOMETRY = ("size", "stride", "storage_offset")


@public(namespace=None, method=True)
def _view_func_unsafe(input, new_base, symint_visitor_fn=None, tensor_visitor_fn=None):
    """Call `_view_func`. The visitors have no effect, because a view stores neither numbers nor tensors to change."""
    return _view_func(input, new_base)
