"""The class `Tensor`: an array and its edge in the graph. Operators and higher layers install further methods."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy

from . import dtypes
from ._runtime.extra import NOTING, Extra, note_former
from ._runtime.late_bound import LATE
from ._runtime.tracebacks import end_at_caller, ending_at_caller, shorten, warn
from ._runtime.weak_keys import WeakClasses
from .array_attributes import require_data
from .array_attributes import wrap_dim as wrap_dim
from .interchange import Interchange
from .kernels.runtime.lazy_conj import CONJ, NEG, LazyConjNeg
from .kernels.runtime.meta_array import Meta
from .kernels.runtime.narrow_array import Narrow, kept
from .kernels.runtime.sparse_array import SparseArray

if TYPE_CHECKING:
    from .operators.tensor_methods import TensorMethods  # the methods that operators install
else:
    TensorMethods = object

ndarray = numpy.ndarray
new = object.__new__

LEAF: Any = True
"""The `_edge` of a leaf that requires grad. The gradient goes to the tensor's own `.grad`."""

PLAIN_TYPES = WeakClasses()
"""Tensor classes that operators treat as `Tensor`: all subclasses, except this package's subclasses with another meaning."""


class Tensor(Interchange, TensorMethods):
    """A multi-dimensional array that records the operations on it.

    `Tensor(2, 3)` is uninitialized memory of that shape. `Tensor([1.0, 2.0])` contains the given data in the default
    dtype. Use `adjoint.tensor` instead of this constructor.

    The slots are: `_array`, the data; `_edge`, the receiver of the gradient (`None`: nowhere, `LEAF`: `.grad`, or
    `(node, output_nr)`); `_grad`; `_base`, the tensor that this view belongs to; `_counter`, the version counter shared
    with views and detached aliases, created on first use (`None` means version 0); `_creation`, why a view must not be
    changed in place; `_view_version`, the version at which the `_edge` of a view was created; `_extra`.
    """

    __module__ = "adjoint"
    __slots__ = tuple("__dict__ __weakref__ _array _base _counter _creation _edge _extra _grad _view_version".split())

    _array: numpy.ndarray[Any, Any]
    _edge: Any
    _grad: Tensor | None
    _base: Tensor | None
    _counter: list[Any] | None
    _creation: str | None
    _view_version: int
    _extra: Extra | None

    # Set by `adjoint.tape.deep_copy`, `adjoint.tape.torch_function` and `adjoint.operators.memory.subclassing`.
    __deepcopy__: ClassVar[Any]
    __torch_function__: ClassVar[Any]
    _make_subclass: ClassVar[Any]

    __array_priority__ = 1000  # NumPy's operators defer to the reflected operators of tensors.

    @ending_at_caller
    def __new__(cls, *args: Any, device: Any = None, **others: Any) -> Tensor:
        """Create an uninitialized tensor of the given sizes, or a tensor of the given data."""
        names = others if cls is Tensor else None
        return make_subclass(cls, cls._legacy_array(args, dtypes.get_default_dtype(), device, names))

    def __init_subclass__(cls, plain: bool | None = None, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if plain is not False:
            PLAIN_TYPES.add(cls)
        if plain is None:
            cls._subclassed()

    # --- data -------------------------------------------------------------------------------------------------

    @property
    def data(self) -> Tensor:
        """A tensor on the same memory, without history and with its own version counter."""
        result: Tensor = wrap(self._array)._share_inference(self)
        if NOTING:
            LATE.note_creation(result, self)
        return result

    @data.setter
    @ending_at_caller
    def data(self, value: Tensor) -> None:
        require_data(self, value, Tensor)
        if NOTING:
            LATE.check_data_set(self)
        if self._edge is LEAF:
            note_former(self, value._array)
        self._array = value._array
        self._share_inference(value)

    @data.deleter
    def data(self) -> None:
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    def _put_array(self, seen: numpy.ndarray[Any, Any], array: numpy.ndarray[Any, Any]) -> None:
        """Replace the array of `seen` by `array`, if both still share memory."""
        if self._array is seen:
            self._array = array

    def resolve_conj(self) -> Tensor:
        """The tensor itself, or a materialized copy if conjugation is lazy."""
        return self.clone() if self.is_conj() else self

    def resolve_neg(self) -> Tensor:
        """The tensor itself, or a materialized copy if negation is lazy."""
        return self.clone() if self.is_neg() else self

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Tensor:
        if array.dtype == numpy.bool_:
            array = array.astype(numpy.uint8)
        return wrap(numpy.asarray(array))

    def __delitem__(self, key: Any) -> None:
        raise TypeError("Tensor does not support deleting items")

    def __contains__(self, element: Any) -> bool:
        if not isinstance(element, (Tensor, int, float, complex)):
            raise RuntimeError(
                f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
            )
        return bool((element == self).any())  # type: ignore[union-attr]  # the tensor answers

    def __iter__(self) -> Iterator[Tensor]:
        if self._array.ndim == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __reversed__(self) -> Tensor:
        return self if self._array.ndim == 0 else self.flip(0)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        kind = type(self)
        name = "tensor" if kind is Tensor or "_is_param" in kind.__dict__ else kind.__name__
        from . import printing

        text = printing.format_tensor(self, name, tensor_contents)
        return f"Parameter({text})" if "_is_param" in self.__dict__ else text

    def __format__(self, specification: str) -> str:
        from . import printing

        return printing.format_with(self, specification)

    # --- gradient and graph -----------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Whether operations on this tensor are recorded."""
        edge, base = self._edge, self._base
        if base is None:
            return edge is not None
        return base._edge is not None or edge is LEAF or is_recorded(edge)

    @requires_grad.setter
    @ending_at_caller
    def requires_grad(self, value: bool) -> None:
        if value is not True and value is not False:
            raise RuntimeError("requires_grad must be a bool")
        if is_recorded(self._edge):  # the edge of a view may be stale, which does not matter here
            advice = " If you want to use a computed variable in a subgraph that doesn't require differentiation use"
            advice = "" if value else f"{advice} var_no_grad = var.detach()."
            raise RuntimeError(f"you can only change requires_grad flags of leaf variables.{advice}")
        if value and not can_require_grad(self._array):
            raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
        if value and self._extra is not None and self._extra.inference:
            from .tape.modes import STATE

            if not STATE.inference:
                raise RuntimeError(
                    "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
                )
        self._edge = LEAF if value else None

    @requires_grad.deleter
    def requires_grad(self) -> None:
        raise RuntimeError("requires_grad must be a bool")

    def __dir__(self) -> Iterable[str]:
        """List the available attributes, without empty slots and attributes that warn."""
        return set(super().__dir__()) - {"_creation", "_view_version", "volatile", "__cuda_array_interface__"}

    @property
    def name(self) -> None:
        """Always None. Exporters of graphs read this attribute, but no function sets it."""
        return None

    @property
    def grad_fn(self) -> Any:
        """The node that created this tensor, or None for a leaf."""
        edge = self._edge if self._base is None else history(self)
        return edge[0] if is_recorded(edge) else None

    @property
    def output_nr(self) -> int:
        """The position of this tensor among the outputs of `grad_fn`."""
        edge = self._edge
        return edge[1] if type(edge) is tuple else 0

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation created this tensor."""
        return not is_recorded(self._edge if self._base is None else history(self))

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient of a leaf (or of a tensor that retains its gradient), or None."""
        grad = self._grad
        if grad is None and is_recorded(self._edge) and not self.retains_grad:
            warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't "
                "be populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf "
                "Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you "
                "access the leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for more information.",
                UserWarning,
            )
        return grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            try:
                self._check_new_grad(value)
            except Exception as error:
                shorten(error)
                raise
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    @property
    def _version(self) -> int:
        counter: Any = self._counter
        if self._extra is not None and self._extra.inference:
            counter = counter.counted()
        return 0 if counter is None else int(counter[0])

    def _is_view(self) -> bool:
        return self._base is not None

    def is_inference(self) -> bool:
        """Whether this tensor was created in inference mode."""
        return self._extra is not None and self._extra.inference

    def _own_extra(self) -> Extra:
        if self._extra is None:
            self._extra = Extra()
        return self._extra

    # --- pickling ---------------------------------------------------------------------------------------------

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._reduced()


new_tensor: Callable[[], Tensor] = functools.partial(object.__new__, Tensor)
"""A function that creates a tensor without attributes. This partial call is faster than a call with the class as argument."""


def wrap(array: numpy.ndarray[Any, Any], requires_grad: bool = False) -> Tensor:
    """Create a leaf on `array` itself."""
    tensor = new_tensor()
    tensor._array = array if array.dtype.isbuiltin == 1 else kept(array)
    tensor._edge = LEAF if requires_grad else None
    tensor._grad = tensor._base = tensor._counter = tensor._extra = None
    if NOTING:
        LATE.note_creation(tensor)
    return tensor


def make_subclass(cls: type[Tensor], array: numpy.ndarray[Any, Any], requires_grad: bool = False) -> Tensor:
    """Create a leaf of type `cls` on `array` itself."""
    tensor: Tensor = new(cls)
    tensor._array = array
    tensor._edge = LEAF if requires_grad else None
    tensor._grad = tensor._base = tensor._counter = tensor._extra = None
    if NOTING:
        LATE.note_creation(tensor)
    return tensor


_KEPT = (Meta, SparseArray, LazyConjNeg, Narrow)


def as_array(value: Any) -> numpy.ndarray[Any, Any]:
    """Return `value` as an array. NumPy scalars, which reductions of arrays return, become zero-dimensional arrays."""
    if type(value) is ndarray and value.dtype.isbuiltin == 1:
        return value
    return kept(value if isinstance(value, _KEPT) else numpy.asarray(value))


def lazy_bits(tensor: Tensor) -> int:
    """Return the bits of lazy conjugation and negation of `tensor`. For a batched tensor, return the bits of its batch."""
    return CONJ * tensor.is_conj() + NEG * tensor.is_neg()


def can_require_grad(array: numpy.ndarray[Any, Any]) -> bool:
    """Return whether the dtype is a floating-point or complex dtype, and therefore differentiable."""
    kind = dtypes.from_numpy(array.dtype)
    return kind.is_floating_point or kind.is_complex


def is_recorded(edge: Any) -> bool:
    """Return whether an edge leads to the operation that created the tensor."""
    return type(edge) is tuple and not edge[0].is_nowhere


def history(view: Tensor) -> Any:
    """Return the edge of a view, for user code. Raise RuntimeError if it has become ambiguous."""
    if view._view_version != (0 if view._counter is None else view._counter[0]):
        view._regenerate(True)
    return view._edge


end_at_caller(Tensor, "__contains__", "__delitem__", "__format__", "__iter__")
