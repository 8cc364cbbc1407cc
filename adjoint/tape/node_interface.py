"""The public interface of nodes in addition to edges and hooks: metadata, shapes, sequence number, and calling a node."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy

from ..device import device as device_class
from ..dtypes import dtype, from_numpy
from ..tensor import Tensor, as_array, wrap
from .evaluation import evaluated, recorded
from .modes import is_grad_enabled


class InputMetadata(NamedTuple):
    """Shape, dtype and device of a gradient that a node receives."""

    shape: list[int]
    dtype: dtype
    device: device_class = device_class("cpu")
    is_nested_tensor: bool = False
    is_cpp_nested_tensor: bool = False

    def __repr__(self) -> str:
        return f"<torch._C._autograd._InputMetadata object at {hex(id(self))}>"


class NodeInterface:
    """The base class of `Node`, which defines the attributes that are declared here."""

    __slots__ = ("_metadata", "_sequence")

    _edges: tuple[Any, ...]
    _sequence: int
    _grad_shape: Any
    _grad_dtype: Any
    backward: Any
    backward_recorded: Any
    _metadata: dict[Any, Any]
    grad_count: ClassVar[int | None] = None
    """The number of gradients: one per output, without trailing outputs that have none. None means one for each output."""
    runs_undefined: ClassVar[bool] = False
    """Whether the node also runs if no gradient has arrived."""
    takes_stand_ins: ClassVar[bool] = False
    """Whether `backward` supports gradients that are not plain arrays."""
    renumbered: ClassVar[bool] = False
    """Whether any node has another sequence number than its original number."""

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for the user's data about this node."""
        try:
            return self._metadata
        except AttributeError:
            self._metadata = {}
            return self._metadata

    @property
    def _input_metadata(self) -> tuple[InputMetadata, ...]:
        """The shape and the dtype of the gradients that this node receives, with one entry for each output of the operation."""
        shapes = self._grad_shape[: self.grad_count] if type(self._grad_shape) is list else [self._grad_shape]
        dtypes = self._grad_dtype if type(self._grad_dtype) is list else [self._grad_dtype]
        return tuple(
            InputMetadata(list(shape or ()), from_numpy(kind or numpy.dtype("f4")))
            for shape, kind in zip(shapes, dtypes, strict=False)
        )

    def _sequence_nr(self) -> int:
        return self._sequence

    def _set_sequence_nr(self, number: int) -> None:
        """Set the sequence number. Backward runs the node with the highest number first."""
        if not isinstance(number, int):
            raise TypeError("an integer is required")
        if number < 0:
            raise OverflowError("can't convert negative int to unsigned")
        if number >> 64:
            raise OverflowError("int too big to convert")
        self._sequence = number
        NodeInterface.renumbered = True

    @property
    def requires_grad(self) -> bool:
        """True, because an operation has a node only if its result requires grad."""
        return True

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"cannot pickle '{type(self).__name__}' object")

    def __call__(self, *grads: Any, **names: Any) -> Any:
        """Run this node alone on tensors, like `tensor.grad_fn(grad)`."""
        self._check_call(grads, names)
        if not self.runs_undefined and all(grad is None for grad in grads):
            return None if len(self._edges) == 1 else (None,) * len(self._edges)
        if is_grad_enabled():
            grad = list(grads) if type(self._grad_shape) is list else grads[0]
            results = recorded(self, grad, True, self._edges)
        else:
            arrays = [None if grad is None else grad._array for grad in grads]
            raw = evaluated(self, arrays if type(self._grad_shape) is list else arrays[0], True, self._edges)
            results = tuple(None if array is None else wrap(as_array(array)) for array in raw)
        return results[0] if len(results) == 1 else results

    def _check_call(self, grads: tuple[Any, ...], names: dict[str, Any]) -> None:
        """Raise an error unless there is one gradient for each output."""
        if names:
            raise TypeError("keyword arguments are not supported")
        expected = len(self._grad_shape) if type(self._grad_shape) is list else 1
        if len(grads) != expected:
            raise TypeError(f"expected {expected} arguments, got {len(grads)} instead")
        for position, grad in enumerate(grads):
            if grad is not None and not isinstance(grad, Tensor):
                raise TypeError(f"argument {position} is not a Variable")
