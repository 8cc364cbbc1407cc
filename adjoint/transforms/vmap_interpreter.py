"""The interpreter of one `vmap`, and its batched tensors, which a function sees without their batch dimension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partialmethod
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy

from .._runtime.extra import NOTING
from .._runtime.late_bound import LATE
from ..autograd.function import Function, without_setup_context
from ..device import contiguous_format, device
from ..dispatch.declaration import Operator
from ..dispatch.decorators import tensors as operators
from ..dispatch.plan import IN_PLACE, IN_PLACE_VIEW, Call
from ..dispatch.slow_path import call
from ..dispatch.steps.change import record_change
from ..dispatch.steps.record import find_edges, record, recorded
from ..kernels.runtime.meta_array import Unread
from ..kernels.runtime.shapes import broadcast_shapes, elements_spanned
from ..tape import modes, views
from ..tape.interpreters import Interpreter, Transform, is_recorded, lower, mapped, tensors_in
from ..tape.torch_function import disabled_torch_function_impl
from ..tape.versions import bump, shared_counter
from ..tensor import Tensor, new, wrap_dim
from ..tensor import is_recorded as edge_is_recorded
from .batching import SAME_OF_DIFFERENT, Batch, refuse_fallback
from .forward_mode import carry_tangents
from .tree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten

LEGACY = "legacy"
"""The `randomness` of PyTorch's older `vmap`, which is not a function transform and runs the `forward` of custom functions."""


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
        """Return an array with the shape, dtype and strides of one batch element, but values that must not be read."""
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
        """Return whether each example is in row-major order. Raise an error for other orders, as in PyTorch."""
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
        """Raise an error, because setting the data would change all batch elements, unless these share the data."""
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

    def _made(self, name: str, *sizes: Any, **keywords: Any) -> BatchedTensor:
        size = keywords.pop("size", sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes)
        with lower(self.level):
            lead = () if self.bdim is None else (self.value.shape[self.bdim],)
            made = getattr(self.value, name)((*lead, *size), **keywords)
        return BatchedTensor(made, None if self.bdim is None else 0, self.level)

    new_zeros: Any = partialmethod(_made, "new_zeros")
    new_ones: Any = partialmethod(_made, "new_ones")
    new_empty: Any = partialmethod(_made, "new_empty")

    def new_full(self, size: Any, fill_value: Any, **keywords: Any) -> Tensor:
        """Return a tensor for each batch element, filled with `fill_value`."""
        return self._made("new_empty", size, **keywords).fill_(fill_value)

    def new_empty_strided(self, size: Any, stride: Any, **keywords: Any) -> Tensor:
        """Return an uninitialized tensor with the given strides for each batch element."""
        if len(size) != len(stride):
            raise RuntimeError(
                f"new_empty_strided(sizes, strides): dimensionality of sizes ({len(size)}) must match dimensionality of "
                f"strides ({len(stride)})"
            )
        with lower(self.level):
            if self.bdim is None:
                return BatchedTensor(self.value.new_empty_strided(size, stride, **keywords), None, self.level)
            lead = self.value.shape[self.bdim]
            made = self.value.new_empty_strided((lead, *size), (elements_spanned(size, stride), *stride), **keywords)
        return BatchedTensor(made, 0, self.level)


class VmapInterpreter(Interpreter, Transform, Batch):
    """The interpreter of one `vmap`. It wraps the tensors that have its batch dimension."""

    notes_creation = False
    refuses_fallback = False
    """Whether operators without a batching rule in PyTorch are refused, in all threads."""

    def __init__(self, size: int, randomness: str = "error") -> None:
        self.size = size
        self.randomness = randomness

    def wraps(self, tensor: Tensor) -> bool:
        """Return whether this interpreter wraps `tensor`."""
        return type(tensor) is BatchedTensor and tensor.level is self

    # --- the interface for rules ------------------------------------------------------------------------------------

    def at(self, value: Any, index: int) -> Any:
        """Return the argument for one batch element, or zeros if the batch is empty."""
        if isinstance(value, Tensor):
            if type(value) is not BatchedTensor or not self.has(value):
                return self.first(value)
            if not self.size:
                return value.value.new_zeros(value.shape)
            return value.value.select(cast(int, value.bdim), index)
        if type(value) is list or type(value) is tuple:
            return type(value)(self.at(item, index) for item in value)
        if hasattr(value, "tensors"):  # the indices of an index operation
            given = iter(value.tensors)
            return type(value).of([None if array is None else self.at(next(given)[0], index) for array in value])
        return value

    def random(self) -> str:
        """Return `"same"` or `"different"` random numbers for all batch elements, or raise an error."""
        if self.randomness == LEGACY:
            raise RuntimeError(
                "vmap: We do not yet support calling random operations inside of vmap. Please perform random operations outside "
                "of vmap as a workaround"
            )
        if self.randomness == "error":
            raise RuntimeError(
                "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
                "randomness flags on vmap or perform the randomness operation out of vmap"
            )
        return self.randomness

    def drawn(self, draw: Callable[[], Tensor], draw_batch: Callable[[], Tensor]) -> Tensor:
        """Draw random numbers for a new tensor: the same for all elements, or for a batch with its dimension in front."""
        how = self.random()
        with lower(self):
            return draw() if how == "same" else BatchedTensor(draw_batch(), 0, self)

    def sequential_fallback(self, function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Apply `function`, which returns a tensor or a tuple of tensors, to one batch element after another."""
        with lower(self):
            results = [
                function(
                    *(self.at(arg, index) for arg in args),
                    **{name: self.at(value, index) for name, value in keywords.items()},
                )
                for index in range(max(self.size, 1))
            ]
            if isinstance(results[0], tuple):
                return type(results[0])([self._stacked(column) for column in zip(*results, strict=True)])
            return self._stacked(results)

    def _stacked(self, results: Sequence[Tensor]) -> Tensor:
        return BatchedTensor(operators.stack(list(results))[: self.size], 0, self)

    def shared_by_all(self, tensor: Tensor) -> Tensor:
        """Return a tensor without the batch dimension in a form that may have a history inside this `vmap`."""
        copy = BatchedTensor(tensor, None, self)
        carry_tangents(tensor, copy)
        return copy

    def shared(self, value: Any) -> Any:
        """Return an argument in which tensors without batch dimension are unwrapped."""
        if type(value) is BatchedTensor and value.level is self and value.bdim is None:
            return value.value
        if type(value) is list or type(value) is tuple:
            return type(value)(self.shared(item) for item in value)
        return value

    def applied(self, operator: Operator, args: tuple[Any, ...]) -> tuple[Any, int | None] | None:
        """Return the results for the whole batch and their batch dimension, or None if the operator is not applied to it."""
        batched = sharing = False
        for value in args:
            for item in tensors_in((value,)) if isinstance(value, (tuple, list)) else (value,):
                if type(item) is BatchedTensor and item.level is self:
                    batched, sharing = batched or item.bdim is not None, sharing or item.bdim is None
        if sharing:
            args = tuple([self.shared(value) for value in args])
        if operator.random and self.randomness == "different":
            args, batched = tuple(modes.run_outside(self, mapped, self._as_batch, args)), True
        if batched:
            return modes.run_outside(self, self.batched, operator, args), 0
        return (modes.run_outside(self, operator.apply, *args), None) if sharing else None

    def _as_batch(self, tensor: Tensor) -> Tensor:
        return BatchedTensor(self.expanded(tensor), 0, self)

    # --- operators ----------------------------------------------------------------------------------------------

    def handle(self, call: Call, proceed: Callable[[], Any]) -> Any:
        """Apply the operator to the whole batch, if an argument has it or each example gets other random numbers."""
        operator, args = call.op, call.given
        if self.refuses_fallback and any(map(self.wraps, call.tensors())):
            refuse_fallback(call)
        if call.in_place:
            return self.changed(call) if any(map(self.wraps, call.tensors())) else proceed()
        found = self.applied(operator, args)
        if found is None and not self.wraps(call.out):
            return proceed()
        if call.out is not None:
            raise RuntimeError(
                f"Batching rule not implemented for aten::{operator.function_name}.out; the fallback path doesn't work "
                "on out= or view ops."
            )
        results, bdim = found  # type: ignore[misc]
        several = call.several = isinstance(results, (tuple, list))
        call.outputs = [BatchedTensor(result, bdim, self) for result in (results if several else (results,))]
        if operator.view or modes.STATE.grad_enabled:
            recorded(call)  # by transforms inside this `vmap`
        return call.result() if several else call.outputs[0]

    def process_inplace(self, operator: Operator, args: tuple[Any, ...]) -> Tensor:
        """Apply the in-place variant."""
        target = args[0]
        other = next((value for value in tensors_in(args[1:]) if self.has(value)), None)
        if operator.random and self.random() == "same" and other is not None:
            raise RuntimeError(SAME_OF_DIFFERENT)
        within = not self.wraps(target) and any(self.wraps(v) and v.requires_grad for v in tensors_in(args[1:]))
        if (not self.has(target) and other is not None) or (within and modes.is_recording()):
            raise self._lacks_batch_dimension(operator, target, other)
        if not self.wraps(target):  # all examples write the same value, so it is an ordinary change
            with lower(self):
                return call(operator, tuple([self.shared(value) for value in args]), way=IN_PLACE)
        views.check_inplace(target)
        made = Call(operator, IN_PLACE, args)
        find_edges(operator, made)

        def change() -> None:
            before = target
            if any(is_recorded(value) for value in tensors_in(args)):  # a copy, so that saved values do not change
                with lower(self):
                    before = BatchedTensor(target.value.clone(), target.bdim, self)
            result, _ = self.applied(operator, (before, *args[1:]))  # type: ignore[misc]
            with lower(self):
                self.first(target).copy_(result)

        record_change(made, change)
        return target

    def _lacks_batch_dimension(self, operator: Operator, target: Tensor, other: Tensor | None) -> RuntimeError:
        """Return the error for an in-place change that writes batched values to a tensor without the batch dimension."""
        if operator.vmap_name == "" and other is not None:
            shape = list(target._array.shape)
            together = [self.size, *broadcast_shapes(target._array.shape, other._array.shape)]
            return RuntimeError(f"output with shape {shape} doesn't match the broadcast shape {together}")
        name, where = f"aten::{operator.function_name}_", f"at level {self.number}"
        if operator.vmap_name is not None:
            name, where = operator.vmap_name, "in a vmap"
        return RuntimeError(
            f"vmap: {name}(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has more "
            "elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped over "
            f"{where}. Please try to use out-of-place operators instead of {name}. If said operator is being called inside "
            "adjoint, please file a bug report instead."
        )

    def process_inplace_view(self, operator: Operator, args: tuple[Any, ...]) -> Tensor:
        """Apply an operator that changes the tensor into another view."""
        target: Any = args[0]
        views.check_inplace(target)
        views.check_inplace(target.value)
        viewed, bdim = self.applied(operator, args)  # type: ignore[misc]
        fresh = BatchedTensor(viewed, bdim, self)
        made = Call(operator, IN_PLACE_VIEW, args)
        made.outputs, made.several = [fresh], False
        find_edges(operator, made)
        record(operator, False, made)
        with lower(self):
            become(target.value, viewed, f"{operator.function_name}_")
        fresh.value = target.value
        become(target, fresh, f"{operator.function_name}_")
        return target

    def apply_function(self, function: Any, args: tuple[Any, ...]) -> Any:
        """Apply a custom `Function` by its own `vmap`, or by a generated `vmap` if the class requests it."""
        if self.randomness == LEGACY:
            return function.applied(args)[1]
        if function.setup_context is Function.setup_context:
            raise without_setup_context()
        overridden, generated = function.vmap is not Function.vmap, getattr(function, "generate_vmap_rule", False)
        if overridden and generated:
            raise RuntimeError(
                f"You tried to vmap over {function.__name__}, but it has both generate_vmap_rule=True and an overridden vmap "
                "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid ambiguity."
            )
        if not overridden and not generated:
            raise RuntimeError(
                f"You tried to vmap over {function.__name__}, but it does not have vmap support. Please override and implement "
                "the vmap staticmethod or set generate_vmap_rule=True."
            )
        output = self._generated(function, args) if generated else self._by_rule(function, args)
        return function.applied(args, output)[1]

    def _by_rule(self, function: Any, args: tuple[Any, ...]) -> Any:
        """Return the outputs of the `vmap` method of a `Function`, or of the function if no argument is batched."""
        leaves, structure = tree_flatten(args)
        dims = [leaf.bdim if self.wraps(leaf) else None for leaf in leaves]
        values = tree_unflatten([leaf.value if self.wraps(leaf) else leaf for leaf in leaves], structure)
        if all(dim is None for dim in dims):
            returned: Any = (modes.run_outside(self, function.apply, *values), None)
        else:
            info, places = VmapInfo(self.size, self.randomness), tree_unflatten(dims, structure)
            returned = modes.run_outside(self, function.vmap, info, places, *values)
        if not isinstance(returned, tuple) or len(returned) != 2:
            found = f"{len(returned)} returns" if isinstance(returned, tuple) else f"a {type(returned)}"
            raise RuntimeError(
                "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure compatible "
                f"with the output. Got {found} instead"
            )
        output, out_dims = returned
        results, shape = tree_flatten(output)
        places = _broadcast_to_and_flatten(out_dims, shape)
        if places is None:
            raise RuntimeError(
                "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
                f"out_dims={out_dims} to be compatible with the structure of `output`. out_dims has structure "
                f"{tree_flatten(out_dims)[1]} but output has structure {shape}."
            )
        given = {id(leaf.value): leaf for leaf in leaves if self.wraps(leaf)}
        same = bool(given) and all(dim is None for dim in dims)
        return tree_unflatten(
            [self._seen(value, dim, given.get(id(value)), same) for value, dim in zip(results, places, strict=True)],
            shape,
        )

    def _seen(self, value: Any, dim: int | None, given: Any, same: bool) -> Any:
        """Return an output of the `vmap` method as the function sees it; a returned argument as the same object.

        `same`: whether the arguments, and therefore the outputs, are tensors of this `vmap` without batch dimension.
        """
        if given is not None:
            return given
        if not isinstance(value, Tensor):
            return value
        if dim is None:
            return self.shared_by_all(value) if same else value
        return BatchedTensor(value, wrap_dim(dim, value.dim()), self)

    def _generated(self, function: Any, args: tuple[Any, ...]) -> Any:
        """Return the outputs of the `forward` of a `Function`, whose `backward` runs outside, for the whole batch."""
        from .mapped_function import mapped as mapped_function

        values = [self.first(arg) if self.wraps(arg) else arg for arg in args]
        with lower(self):
            has = tuple([self.has(arg) for arg in args])
            output = mapped_function(function, has, self.size, self.randomness).apply(*values)
        if isinstance(output, tuple):
            return tuple([BatchedTensor(each, 0, self) if isinstance(each, Tensor) else each for each in output])
        return BatchedTensor(output, 0, self) if isinstance(output, Tensor) else output


def become(tensor: Any, view: Any, name: str) -> None:
    """Turn `tensor` into `view`, a view of the same memory, with the history of `view`."""
    if type(tensor) is BatchedTensor:
        if tensor.value is not view.value:
            become(tensor.value, view.value, name)
        tensor.bdim = view.bdim
    if edge_is_recorded(view._edge):
        views.point_at(tensor, view._edge)
    tensor._array = view._array
    if view._extra is not None and view._extra.tangents is not None:
        for level, tangent in list(view._extra.tangents.items()):
            level.attach(tensor, tangent)
    bump(tensor, name, depth=2)
    if tensor._base is not None:
        tensor._view_version = tensor._counter[0]


class VmapInfo(NamedTuple):
    """The argument `info` of the `vmap` method of a custom `Function`: the batch size and the randomness."""

    batch_size: int
    randomness: str
