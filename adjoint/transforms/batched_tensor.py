"""Batched tensors: the tensors that a function sees within `vmap`, without their batch dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy

from .._runtime.extra import NOTING
from .._runtime.late_bound import LATE
from ..device import contiguous_format, device
from ..kernels.runtime.meta_array import Unread
from ..kernels.runtime.shapes import elements_spanned
from ..tape.interpreters import lower
from ..tape.torch_function import disabled_torch_function_impl
from ..tape.versions import shared_counter
from ..tensor import Tensor, new


class BatchedTensor(Tensor, plain=False):
    """A tensor without its batch dimension, as the function sees it.

    It has the shape and the dtype of one element of the batch.

    `value`: the tensor of the whole batch. `bdim`: its batch dimension. None means that the tensor has no batch
    dimension, and is differentiated only inside the `vmap`. `level`: the `vmap` to which the batch dimension belongs.
    The history of a batched tensor belongs to the transforms inside the `vmap`. `value` has the history for the
    transforms outside.
    """

    __slots__ = ("bdim", "level", "value")
    __torch_function__ = disabled_torch_function_impl

    value: Tensor
    bdim: int | None
    level: Any

    def __new__(cls, value: Tensor, bdim: int | None, level: Any) -> BatchedTensor:  # noqa: D102
        self = new(cls)
        self.value, self.bdim, self.level = value, bdim, level
        array = value._array
        if bdim == 0 and array.shape[0]:
            example = array[0, ...]
            self._array = example if type(example) is Unread else example.view(Unread)
        else:
            self._array = self._element_array()
        self._edge = self._grad = self._base = self._counter = self._extra = None
        if NOTING:
            LATE.note_creation(self)
        return self

    if TYPE_CHECKING:  # at run time, this call would cost as much as making the tensor

        def __init__(self, *args: Any) -> None: ...

    else:
        __init__ = object.__init__

    def _element_array(self) -> Any:
        """Return an array with the shape, dtype and strides of one batch element.

        Its values must not be read, because they differ along the batch.
        """
        array: Any = self.value._array
        bdim = self.bdim
        if bdim is None:
            return array
        if not array.shape[bdim]:
            return numpy.empty(array.shape[:bdim] + array.shape[bdim + 1 :], array.dtype).view(Unread)
        element = array[(*(slice(None),) * bdim, 0, ...)]
        return element if type(element) is Unread else element.view(Unread)

    @property
    def device(self) -> device:
        """Return the device of the batch."""
        return self.value.device

    @property
    def is_meta(self) -> bool:
        """Whether the batch has no elements."""
        return self.value.is_meta

    def item(self) -> Any:
        """Raise an error, because batch elements differ. If all batch elements share one number, return it."""
        if self.bdim is None:
            return self.value.item()
        raise RuntimeError(
            "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, "
            "please try to rewrite what you're doing with other operations."
        )

    def __bool__(self) -> bool:
        if self.bdim is None:
            return bool(self.value)
        raise RuntimeError(
            "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that "
            "yet: the elements of the batch may go different ways; `where` chooses for each of them."
        )

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Return whether the elements of each example have row-major order in memory.

        Raises:
            RuntimeError: if another order is requested, as in PyTorch.
        """
        if memory_format not in (None, contiguous_format):
            raise RuntimeError(
                "NYI: querying is_contiguous inside of vmap for memory_format other than torch.contiguous_format"
            )
        return super().is_contiguous()

    def is_conj(self) -> bool:
        """Return whether conjugation is lazy, so that it has not been materialized yet."""
        return self.value.is_conj()

    def is_neg(self) -> bool:
        """Return whether negation is lazy, so that it has not been materialized yet."""
        return self.value.is_neg()

    def _no_memory(self, *args: Any, **keywords: Any) -> Any:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    @property
    def data(self) -> Tensor:
        """Raise an error, because setting the data would change all batch elements.

        If all batch elements share the data, return them.
        """
        if self.bdim is None:
            return BatchedTensor(self.value.data, None, self.level)
        raise RuntimeError("accessing `data` under vmap transform is not allowed")

    @data.setter
    def data(self, value: Tensor) -> None:
        raise RuntimeError("mutating directly with `.data` under vmap transform is not allowed.")

    def _no_storage(self, *args: Any, **keywords: Any) -> Any:
        raise NotImplementedError("Cannot access storage of BatchedTensorImpl")

    def tolist(self) -> Any:
        """Raise an error, because batch elements differ. If all batch elements share the numbers, return them."""
        return self.value.tolist() if self.bdim is None else self._no_memory()

    numpy = data_ptr = __array__ = __dlpack__ = resize_ = _no_memory
    untyped_storage = storage = __reduce_ex__ = __copy__ = __deepcopy__ = _no_storage
    __int__ = __float__ = __complex__ = __index__ = item

    def detach(self) -> Tensor:
        """Return the same batched values without history."""
        result = BatchedTensor(self.value.detach(), self.bdim, self.level)
        result._counter = shared_counter(self)
        return result

    def without_history(self, *, copy: bool = False) -> BatchedTensor:
        """Return the same batched values, or a copy, for a node to save."""
        return BatchedTensor(self.value.clone() if copy else self.value, self.bdim, self.level)

    def made_like(self, make: Callable[[Tensor], Tensor]) -> BatchedTensor:
        """Return a batched tensor with the result of `make`, which creates one tensor from another."""
        with lower(self.level):
            return BatchedTensor(make(self.value), self.bdim, self.level)

    def _made(self, name: str, sizes: tuple[Any, ...], keywords: dict[str, Any]) -> BatchedTensor:
        size = keywords.pop("size", sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes)
        with lower(self.level):
            lead = () if self.bdim is None else (self.value.shape[self.bdim],)
            made = getattr(self.value, name)((*lead, *size), **keywords)
        return BatchedTensor(made, None if self.bdim is None else 0, self.level)

    def new_zeros(self, *sizes: Any, **keywords: Any) -> Tensor:
        """Return zeros for each batch element."""
        return self._made("new_zeros", sizes, keywords)

    def new_ones(self, *sizes: Any, **keywords: Any) -> Tensor:
        """Return ones for each batch element."""
        return self._made("new_ones", sizes, keywords)

    def new_empty(self, *sizes: Any, **keywords: Any) -> Tensor:
        """Return an uninitialized tensor for each batch element."""
        return self._made("new_empty", sizes, keywords)

    def new_full(self, size: Any, fill_value: Any, **keywords: Any) -> Tensor:
        """Return a tensor for each batch element, filled with `fill_value`."""
        return self._made("new_empty", (size,), keywords).fill_(fill_value)

    def new_empty_strided(self, size: Any, stride: Any, **keywords: Any) -> Tensor:
        """Return an uninitialized tensor with the given strides for each batch element."""
        with lower(self.level):
            if self.bdim is None:
                return BatchedTensor(self.value.new_empty_strided(size, stride, **keywords), None, self.level)
            lead = self.value.shape[self.bdim]
            made = self.value.new_empty_strided((lead, *size), (elements_spanned(size, stride), *stride), **keywords)
        return BatchedTensor(made, 0, self.level)
