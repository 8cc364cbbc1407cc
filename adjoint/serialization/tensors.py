"""The functions that files name to rebuild tensors, and the choice among them for saving.

Their arguments come from an untrusted file, so all arguments are checked. The parts of sparse tensors are tensors. They
are checked like the arguments of a program.
"""

from collections import OrderedDict
from collections.abc import Callable
from functools import cache
from typing import Any
from weakref import WeakValueDictionary

import numpy

from .. import dtypes
from .._runtime.extra import warn_of_hooks
from .._runtime.first_use import import_late
from ..device import LAYOUTS, layout
from ..dtypes import dtype
from ..kernels.memory import storage as storages
from ..kernels.memory.bounds import checked_bytes
from ..kernels.memory.legacy_storages import TypedStorage
from ..kernels.memory.storages import UntypedStorage
from ..kernels.runtime.lazy_conj import CONJ, NEG, lazy_bits_of, with_lazy_bits
from ..kernels.runtime.meta_array import Meta, parked, remade
from ..kernels.runtime.sparse_array import Coordinates, SparseArray
from ..tape.inference_tensors import mark_if_inference
from ..tensor import Tensor, make_subclass, wrap
from .limits import shown
from .rebuild import split_array
from .storages import UNTYPED, storage_type

__all__ = [
    "get_layout", "parameter_class", "rebuild_from_type_v2", "rebuild_meta", "rebuild_parameter", "rebuild_parameter_with_state",
    "rebuild_sparse", "rebuild_tensor", "rebuild_tensor_v2", "rebuild_tensor_v3", "reduce_sparse", "reduce_tensor",
]  # fmt: skip


@cache
def parameter_class() -> type[Tensor]:
    """Return the class of parameters. It is looked up on first use, because it is defined in a higher layer."""
    found: type[Tensor] = import_late("adjoint.nn.parameter").Parameter
    return found


def rebuild_tensor(storage: Any, storage_offset: int, size: Any, stride: Any) -> Tensor:
    """Return a view of `storage` with the storage's dtype. Its name in files is `torch._utils._rebuild_tensor`."""
    if not isinstance(storage, TypedStorage):
        raise TypeError(f"expected a typed storage, got {type(storage).__name__}")
    return _view(storage, dtypes.from_numpy(storage.element_kind), storage_offset, size, stride)


def rebuild_tensor_v2(
    storage: Any,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    metadata: Any = None,
) -> Tensor:
    """Return a view of `storage` with `requires_grad` and lazy conjugation.

    Its name in files is `torch._utils._rebuild_tensor_v2`. Hooks are not restored.
    """
    return _finish(rebuild_tensor(storage, storage_offset, size, stride), requires_grad, metadata)


def rebuild_tensor_v3(
    storage: Any,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Tensor:
    """Return a view of untyped bytes as elements of `dtype`. Its name in files is `torch._utils._rebuild_tensor_v3`."""
    if not isinstance(storage, UntypedStorage) or type(dtype) is not dtypes.dtype:
        raise TypeError(f"expected a storage and a dtype, got {type(storage).__name__} and {type(dtype).__name__}")
    return _finish(_view(storage, dtype, storage_offset, size, stride), requires_grad, metadata)


def _view(storage: UntypedStorage, kind: dtype, offset: int, size: Any, stride: Any) -> Tensor:
    if not isinstance(size, tuple) or not isinstance(stride, tuple):
        raise TypeError(f"sizes and strides must be tuples, got {type(size).__name__} and {type(stride).__name__}")
    array = storages.strided(storage._root, size, stride, offset, kind.numpy)
    return wrap(parked(array) if storage.device.type == "meta" else array)


def _finish(tensor: Tensor, requires_grad: bool, metadata: Any) -> Tensor:
    if isinstance(metadata, dict):
        if metadata.get("conj"):
            tensor = wrap(with_lazy_bits(tensor._array, CONJ))
        if metadata.get("neg"):
            tensor = wrap(with_lazy_bits(tensor._array, NEG))
    if requires_grad is True:
        tensor.requires_grad = True
    mark_if_inference(tensor)
    return tensor


def rebuild_meta(dtype: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
    """Return a tensor on `meta`, without elements. Its name in files is `torch._utils._rebuild_meta_tensor_no_storage`."""
    if type(dtype) is not dtypes.dtype or not isinstance(size, tuple) or not isinstance(stride, tuple):
        raise TypeError(f"expected a dtype and lengths, got {shown(dtype)}, {shown(size)} and {shown(stride)}")
    checked_bytes(size, stride, 0, dtype.itemsize)
    try:
        array = remade(size, dtype.numpy, stride)
    except MemoryError:
        raise RuntimeError(f"a tensor of size {shown(size)} is larger than the address space") from None
    return _finish(wrap(array), requires_grad, None)


def rebuild_parameter(data: Any, requires_grad: bool, backward_hooks: Any) -> Tensor:
    """Return a `Parameter` on the memory of `data`. Its name in files is `torch._utils._rebuild_parameter`."""
    return rebuild_parameter_with_state(data, requires_grad, backward_hooks, {})


def rebuild_parameter_with_state(data: Any, requires_grad: bool, backward_hooks: Any, state: Any) -> Tensor:
    """Return a `Parameter` with attributes. Its name in files is `torch._utils._rebuild_parameter_with_state`."""
    if not isinstance(data, Tensor):
        raise TypeError(f"expected a tensor, got {type(data).__name__}")
    parameter = make_subclass(parameter_class(), data._array)
    parameter.requires_grad = requires_grad is True
    return _with_attributes(parameter, state)


def rebuild_from_type_v2(build: Any, kind: Any, args: Any, state: Any) -> Tensor:
    """Return a tensor of a subclass, or a tensor with attributes. Its name in files is `torch._tensor._rebuild_from_type_v2`."""
    if build not in (
        rebuild_tensor_v2,
        rebuild_tensor_v3,
        rebuild_parameter,
        rebuild_meta,
        rebuild_sparse,
    ) or not isinstance(args, tuple):
        raise TypeError(f"{shown(build)} cannot rebuild a tensor")
    if not isinstance(kind, type) or not issubclass(kind, Tensor):
        raise TypeError(f"{shown(kind)} is not a type of tensors")
    tensor: Tensor = build(*args)
    if type(tensor) is not kind:
        tensor = make_subclass(kind, tensor._array, tensor.requires_grad)
    own = getattr(kind, "__setstate__", None)
    if own is not None and own is not getattr(Tensor, "__setstate__", None):  # a class that the user has allowed
        own(tensor, state)
        return tensor
    return _with_attributes(tensor, state)


def _with_attributes(tensor: Tensor, state: Any) -> Tensor:
    """Set attributes in the instance's dictionary, which does not contain the slots of a tensor."""
    if state:
        if not isinstance(state, dict) or not all(type(name) is str for name in state):
            raise TypeError("the attributes of a tensor must be a dict with string keys")
        tensor.__dict__.update(state)
    return tensor


def get_layout(name: str) -> layout:
    """Return the layout with the text `name`. Its name in files is `torch.serialization._get_layout`."""
    found = LAYOUTS.get(str(name).removeprefix("torch."))
    if found is None:
        raise RuntimeError(f"layout {shown(name)} is not supported")
    return found


def reduce_tensor(tensor: Tensor) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return the function and the arguments that represent `tensor` in a file or a pickle."""
    attributes = dict(tensor.__dict__)
    warn_of_hooks(tensor._extra)
    if type(tensor) is parameter_class():
        data = wrap(tensor._array)
        if attributes:
            return rebuild_parameter_with_state, (data, tensor.requires_grad, OrderedDict(), attributes)
        return rebuild_parameter, (data, tensor.requires_grad, OrderedDict())
    build, args = _reduce_plain(tensor)
    if type(tensor) is Tensor and not attributes:
        return build, args
    state = getattr(type(tensor), "__getstate__", None)
    if state is not None and state not in (
        getattr(object, "__getstate__", None),
        getattr(Tensor, "__getstate__", None),
    ):
        return rebuild_from_type_v2, (build, type(tensor), args, state(tensor))
    return rebuild_from_type_v2, (build, type(tensor), args, attributes or None)


def _reduce_plain(tensor: Tensor) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    if type(tensor._array) is SparseArray:
        return reduce_sparse(tensor)
    if type(tensor._array) is Meta:
        return rebuild_meta, (tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.requires_grad)
    root, offset, size, stride = split_array(tensor._array)
    kind = tensor.dtype
    rest: tuple[Any, ...] = (offset, tuple(size), stride, tensor.requires_grad, OrderedDict())
    if storage_type(kind) is UNTYPED:
        return rebuild_tensor_v3, (_storage(root, None), *rest, kind)
    bits = lazy_bits_of(tensor._array)
    lazy = {name: True for bit, name in ((CONJ, "conj"), (NEG, "neg")) if bits & bit}
    return rebuild_tensor_v2, (_storage(root, kind.numpy), *rest, *([lazy] if lazy else []))


def _storage(root: numpy.ndarray[Any, Any], kind: Any) -> UntypedStorage:
    """Return the storage on the memory that `root` owns.

    A pickle uses one storage for the same memory, so tensors that share memory share it again.
    """
    key = id(root), kind
    storage = _storages.get(key)
    if storage is None or storage._root is not root:  # it may have moved to shared memory
        storage = _storages[key] = UntypedStorage.over(root) if kind is None else TypedStorage.of(root, kind)
    return storage


_storages: WeakValueDictionary[tuple[int, Any], UntypedStorage] = WeakValueDictionary()


def reduce_sparse(tensor: Tensor) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return the function and the arguments that represent a sparse tensor in a file."""
    array: Any = tensor._array
    parts = array.parts
    values = wrap(parts.values)
    if isinstance(parts, Coordinates):
        return rebuild_sparse, (tensor.layout, (wrap(parts.indices), values, tensor.shape, parts.coalesced))
    return rebuild_sparse, (tensor.layout, (wrap(parts.starts), wrap(parts.places), values, tensor.shape))


def rebuild_sparse(kind: Any, data: Any) -> Tensor:
    """Return the sparse tensor with the given parts. Its name in files is `torch._utils._rebuild_sparse_tensor`."""
    if not isinstance(kind, layout) or not isinstance(data, tuple) or not 3 <= len(data) <= 4:
        raise TypeError(f"expected a layout and the parts of a tensor, got {shown(kind)} and {shown(data)}")
    made = import_late("adjoint.operators.sparse.creation")
    if repr(kind) == "torch.sparse_coo":
        indices, values, size = _tensors(data[:2]) + (data[2],)
        result: Tensor = made.sparse_coo_tensor(indices, values, size)
        rows: Any = result._array
        rows.parts.coalesced = len(data) == 4 and data[3] is True and _is_sorted(rows.parts.indices)
        return result
    if repr(kind) == "torch.strided" or len(data) != 4:
        raise TypeError(f"expected a sparse layout and its parts, got {shown(kind)}")
    rebuilt: Tensor = made.sparse_compressed_tensor(*_tensors(data[:3]), data[3], layout=kind)
    return rebuilt


def _tensors(parts: Any) -> Any:
    for part in parts:
        if not isinstance(part, Tensor):
            raise TypeError(f"expected a tensor, got {shown(part)}")
    return tuple(parts)


def _is_sorted(indices: Any) -> bool:
    """Return whether the columns are in order and unique."""
    order = numpy.lexsort(indices[::-1]) if len(indices) else numpy.arange(indices.shape[1])
    ordered = indices[:, order]
    return bool((order == numpy.arange(len(order))).all() and (ordered[:, 1:] != ordered[:, :-1]).any(0).all())


Tensor._reduced = reduce_tensor
