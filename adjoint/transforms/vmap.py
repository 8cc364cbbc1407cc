"""Batching: `vmap`, and the tensors that stand for one example of a batch while a function runs once for all of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

from ..autograd.function import Function, without_setup_context
from ..autograd.hook_calls import recording_mode
from ..dispatch import inplace, operands
from ..dispatch.declaration import Operator
from ..dispatch.decorators import tensors as operators
from ..dispatch.recording import make_view, record, record_change, wanted_edges
from ..dispatch.slow_path import applied
from ..extra import BIRTHS
from ..kernels.runtime.meta_array import Unread
from ..random import default_generator
from ..tape import modes, views
from ..tape.interpreters import Level, Transform, below, is_recorded, outside, tensors_in
from ..tape.torch_function import disabled_torch_function_impl
from ..tape.versions import bump, shared_counter
from ..tensor import Tensor, new, wrap_dim
from ..tensor import is_recorded as edge_is_recorded
from . import batching_rules, operator_rules  # noqa: F401  (the second adds rules to the first)
from .tree import TreeSpec, _broadcast_to_and_flatten, tree_flatten, tree_unflatten

__all__ = ["BatchLevel", "BatchedTensor", "vmap"]


class BatchedTensor(Tensor, plain=False):
    """One example of a batch, as the function sees it: shape and dtype are those of the example.

    `value`: the tensor with all examples; `bdim`: the dimension along which they lie (None: all examples are this one, which
    is only differentiated within); `level`: the `vmap` they belong to.
    Its history is that of the transforms within the `vmap`; what is differentiated outside, `value` has recorded.
    """

    __slots__ = ("bdim", "level", "value")
    __torch_function__ = disabled_torch_function_impl

    value: Tensor
    bdim: int | None
    level: BatchLevel

    def __new__(cls, value: Tensor, bdim: int | None, level: BatchLevel) -> BatchedTensor:  # noqa: D102
        self = new(cls)
        self.value, self.bdim, self.level = value, bdim, level
        array = value._array
        if bdim == 0 and array.shape[0]:
            example = array[0, ...]
            self._array = example if type(example) is Unread else example.view(Unread)
        else:
            self._array = self._example()
        self._edge = self._grad = self._base = self._counter = self._extra = None
        for note in BIRTHS.notes:
            note(self)
        return self

    def __init__(self, *args: Any) -> None:
        pass

    def _example(self) -> Any:
        """An array of the shape, dtype and strides of one example; not to be read, as examples differ."""
        array: Any = self.value._array
        bdim = self.bdim
        if bdim is None:
            return array
        if not array.shape[bdim]:
            return numpy.empty(array.shape[:bdim] + array.shape[bdim + 1 :], array.dtype).view(Unread)
        example = array[(*(slice(None),) * bdim, 0, ...)]
        return example if type(example) is Unread else example.view(Unread)

    def item(self) -> Any:
        """Raise, as examples differ; the number that all of them share."""
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
            "yet: the examples may go different ways; `where` chooses for each of them."
        )

    def is_conj(self) -> bool:
        """Whether conjugation of the examples is pending."""
        return self.value.is_conj()

    def is_neg(self) -> bool:
        """Whether negation of the examples is pending."""
        return self.value.is_neg()

    def _no_memory(self, *args: Any, **keywords: Any) -> Any:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    @property
    def data(self) -> Tensor:
        """Raise: what is set of it would be set of all examples."""
        raise RuntimeError("accessing `data` under vmap transform is not allowed")

    @data.setter
    def data(self, value: Tensor) -> None:
        raise RuntimeError("mutating directly with `.data` under vmap transform is not allowed.")

    def _no_storage(self, *args: Any, **keywords: Any) -> Any:
        raise NotImplementedError("Cannot access storage of BatchedTensorImpl")

    def tolist(self) -> Any:
        """Raise, as examples differ; the numbers that all of them share."""
        return self.value.tolist() if self.bdim is None else self._no_memory()

    numpy = data_ptr = __array__ = __dlpack__ = resize_ = _no_memory
    untyped_storage = storage = __reduce_ex__ = __copy__ = __deepcopy__ = _no_storage
    __int__ = __float__ = __complex__ = __index__ = item

    def detach(self) -> Tensor:
        """The same examples, without history."""
        result = BatchedTensor(self.value.detach(), self.bdim, self.level)
        result._counter = shared_counter(self)
        return result

    def without_history(self, *, copy: bool = False) -> BatchedTensor:
        """The same examples, as a node saves them; or a copy."""
        return BatchedTensor(self.value.clone() if copy else self.value, self.bdim, self.level)

    def made_like(self, make: Callable[[Tensor], Tensor]) -> BatchedTensor:
        """Examples of what `make` makes like a tensor."""
        with below(self.level):
            return BatchedTensor(make(self.value), self.bdim, self.level)

    def _made(self, name: str, sizes: tuple[Any, ...], keywords: dict[str, Any]) -> BatchedTensor:
        size = keywords.pop("size", sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes)
        with below(self.level):
            lead = () if self.bdim is None else (self.value.shape[self.bdim],)
            made = getattr(self.value, name)((*lead, *size), **keywords)
        return BatchedTensor(made, None if self.bdim is None else 0, self.level)

    def new_zeros(self, *sizes: Any, **keywords: Any) -> Tensor:
        """Zeros for each example."""
        return self._made("new_zeros", sizes, keywords)

    def new_ones(self, *sizes: Any, **keywords: Any) -> Tensor:
        """Ones for each example."""
        return self._made("new_ones", sizes, keywords)

    def new_empty(self, *sizes: Any, **keywords: Any) -> Tensor:
        """An uninitialised tensor for each example."""
        return self._made("new_empty", sizes, keywords)

    def new_full(self, size: Any, fill_value: Any, **keywords: Any) -> Tensor:
        """A tensor for each example of which every element is `fill_value`."""
        return self._made("new_empty", (size,), keywords).fill_(fill_value)

    def new_empty_strided(self, size: Any, stride: Any, **keywords: Any) -> Tensor:  # type: ignore[override]
        """An uninitialised tensor of the given strides for each example."""
        with below(self.level):
            if self.bdim is None:
                return BatchedTensor(self.value.new_empty_strided(size, stride, **keywords), None, self.level)
            span = (
                1 + sum((length - 1) * step for length, step in zip(size, stride, strict=True)) if 0 not in size else 0
            )
            lead = self.value.shape[self.bdim]
            made = self.value.new_empty_strided((lead, *size), (span, *stride), **keywords)
        return BatchedTensor(made, 0, self.level)


_NAMED_TOGETHER = frozenset(
    "mul sub div copy clamp clamp_min clamp_max masked_fill logical_and logical_or logical_xor bitwise_and bitwise_or".split()
)
_NAMED_ALONE = {"fill_number": "fill", "fill_tensor": "fill", "index_put": "index_put"}
"""How PyTorch calls operators in the error for writing examples over a tensor that has none."""


class BatchLevel(Level, Transform):
    """One `vmap`: it concerns the tensors that have a dimension of its examples."""

    asks_births = False

    def __init__(self, size: int, randomness: str = "error") -> None:
        self.size = size
        self.randomness = randomness

    def concerns(self, tensor: Tensor) -> bool:
        """Whether `tensor` has examples of this level."""
        return type(tensor) is BatchedTensor and tensor.level is self

    # --- examples -----------------------------------------------------------------------------------------------

    def has(self, tensor: Any) -> bool:
        """Whether `tensor` differs from example to example."""
        return type(tensor) is BatchedTensor and tensor.level is self and tensor.bdim is not None

    def front(self, tensor: Any) -> Any:
        """A tensor with the dimension of examples first; one without examples as it is."""
        if not (type(tensor) is BatchedTensor and tensor.level is self):
            return tensor
        return tensor.value if not tensor.bdim else tensor.value.movedim(tensor.bdim, 0)

    def full(self, tensor: Tensor) -> Tensor:
        """The same, one without examples repeated for each."""
        if self.has(tensor):
            return self.front(tensor)
        tensor = self.front(tensor)
        return tensor.expand((self.size, *tensor.shape))

    def example(self, value: Any, index: int) -> Any:
        """What one example sees of an argument; zeros if there are none."""
        if isinstance(value, Tensor):
            if type(value) is not BatchedTensor or not self.has(value):
                return self.front(value)
            if not self.size:
                return value.value.new_zeros(value.shape)
            return value.value.select(value.bdim, index)
        if type(value) is list or type(value) is tuple:
            return type(value)(self.example(item, index) for item in value)
        if hasattr(value, "tensors"):  # the indices of an index
            given = iter(value.tensors)
            return type(value).of([None if array is None else self.example(next(given)[0], index) for array in value])
        return value

    def random(self, name: str) -> str:
        """Whether examples share random numbers: `"same"` or `"different"`.

        Raises:
            RuntimeError: if neither has been said.
        """
        if self.randomness == "error":
            raise RuntimeError(
                "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
                "randomness flags on vmap or perform the randomness operation out of vmap"
            )
        return self.randomness

    def drawn(self, draw: Callable[[], Tensor]) -> Tensor:
        """Random numbers for a new tensor."""
        how = self.random("draw")
        with below(self):
            if how == "same":
                return draw()
            return BatchedTensor(operators.stack([draw() for _ in range(max(self.size, 1))])[: self.size], 0, self)

    def one_by_one(self, function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]) -> Tensor:
        """The results of `function` for each example in turn."""
        with below(self):
            results = [
                function(
                    *(self.example(arg, index) for arg in args),
                    **{name: self.example(value, index) for name, value in keywords.items()},
                )
                for index in range(max(self.size, 1))
            ]
            return BatchedTensor(operators.stack(results)[: self.size], 0, self)

    def shared(self, value: Any) -> Any:
        """An argument, tensors that all examples share taken out of their wrappers."""
        if type(value) is BatchedTensor and value.level is self and value.bdim is None:
            return value.value
        if type(value) is list or type(value) is tuple:
            return type(value)(self.shared(item) for item in value)
        return value

    def applied(self, operator: Operator, args: tuple[Any, ...]) -> tuple[list[Any], int | None, bool]:
        """The results for all examples, where their dimension of examples is, and whether there are several results."""
        batched = sharing = False
        for value in args:
            kind = type(value)
            if kind is Tensor:
                continue
            for item in (value,) if kind is BatchedTensor else tensors_in((value,)):
                if type(item) is BatchedTensor and item.level is self:
                    batched, sharing = batched or item.bdim is not None, sharing or item.bdim is None
        if sharing:
            args = tuple([self.shared(value) for value in args])
        levels = modes.STATE.levels  # as `below` does, without its cost
        if self in levels:
            modes.set_levels(levels[: levels.index(self)])
        try:
            if batched:
                results, bdim = batching_rules.batched(operator, args, self), 0
            else:
                results, bdim = applied(operator, args), None
        finally:
            modes.set_levels(levels)
        several = isinstance(results, (tuple, list))
        return list(results) if several else [results], bdim, several

    # --- operators ----------------------------------------------------------------------------------------------

    def call(self, operator: Operator, args: tuple[Any, ...], out: Any) -> Any:
        """Apply `operator` to all examples."""
        if out is not None:
            raise RuntimeError(
                f"Batching rule not implemented for aten::{operator.called}.out; the fallback path doesn't work on out= or view "
                "ops."
            )
        results, bdim, several = self.applied(operator, args)
        wrapped: list[Tensor] = [BatchedTensor(result, bdim, self) for result in results]
        self._record(operator, args, wrapped, several)
        if several:
            return operator.returns(*wrapped) if operator.outputs and operator.returns is not tuple else tuple(wrapped)
        return wrapped[0]

    def _record(self, operator: Operator, args: tuple[Any, ...], outputs: list[Tensor], several: bool) -> None:
        """The operation on the examples, for the transforms within this level."""
        edges = wanted_edges(operator, args)
        recording = modes.is_grad_enabled() and any(edge is not None for edge in edges)
        if operator.view:
            viewed = args[operator.names.index(operator.tensors[0])]
            for output in outputs:
                make_view(output, viewed, recording, views.MULTI_OUTPUT if several else None)
        if recording:
            named, _ = operands.operands(operator, args)
            record(operator, args, named, edges, outputs, several)

    def call_inplace(self, operator: Operator, args: tuple[Any, ...]) -> Tensor:
        """The same in place."""
        target = args[0]
        other = next((value for value in tensors_in(args[1:]) if self.has(value)), None)
        lost = not self.concerns(target) and any(self.concerns(v) and is_recorded(v) for v in tensors_in(args[1:]))
        if (not self.has(target) and other is not None) or lost:
            raise self._no_room(operator)
        views.check_inplace(target)
        named, _ = operands.operands(operator, args)

        def change() -> None:
            if not self.concerns(target):  # only what all examples share is written into it
                with below(self), recording_mode(False):
                    inplace.call_inplace(operator, tuple([self.shared(value) for value in args]))
                return
            before = target
            if any(is_recorded(value) for value in tensors_in(args)):  # so that what the operator saves does not change
                with below(self):
                    before = BatchedTensor(target.value.clone(), target.bdim, self)
            (result,), _, _ = self.applied(operator, (before, *args[1:]))
            with below(self):
                self.front(target).copy_(result)

        record_change(operator, args, named, wanted_edges(operator, args), change)
        return target

    def _no_room(self, operator: Operator) -> RuntimeError:
        """The error for writing examples over a tensor that has none."""
        name, where = f"aten::{operator.called}_", f"at level {self.number}"
        if operator.called in _NAMED_TOGETHER:
            name, where = "inplace arithmetic", "in a vmap"
        elif operator.called in _NAMED_ALONE:
            name, where = f"{_NAMED_ALONE[operator.called]}_", "in a vmap"
        return RuntimeError(
            f"vmap: {name}(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has more "
            "elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped over "
            f"{where}. Please try to use out-of-place operators instead of {name}. If said operator is being called inside the "
            "PyTorch framework, please file a bug report instead."
        )

    def call_inplace_view(self, operator: Operator, args: tuple[Any, ...]) -> Tensor:
        """The same where the tensor becomes another view."""
        target: Any = args[0]
        views.check_inplace(target)
        views.check_inplace(target.value)
        (viewed,), bdim, _ = self.applied(operator, args)
        edges = wanted_edges(operator, args)
        fresh = BatchedTensor(viewed, bdim, self)
        if modes.is_grad_enabled() and any(edge is not None for edge in edges):
            named, _ = operands.operands(operator, args)
            record(operator, args, named, edges, [fresh], several=False)
        with below(self):
            become(target.value, viewed, f"{operator.called}_")
        fresh.value = target.value
        become(target, fresh, f"{operator.called}_")
        return target

    def apply_function(self, function: Any, args: tuple[Any, ...]) -> Any:
        """Apply a custom `Function`: by its `vmap`, or by one made of its `forward` if it asks for that."""
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
        """The outputs of the `vmap` of a `Function`."""
        leaves, structure = tree_flatten(args)
        in_dims = tree_unflatten([leaf.bdim if self.concerns(leaf) else None for leaf in leaves], structure)
        values = tree_unflatten([leaf.value if self.concerns(leaf) else leaf for leaf in leaves], structure)
        with outside(self):
            returned = function.vmap(VmapInfo(self.size, self.randomness), in_dims, *values)
        if not isinstance(returned, tuple) or len(returned) != 2:
            found = f"{len(returned)} returns" if isinstance(returned, tuple) else f"a {type(returned)}"
            raise RuntimeError(
                "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure compatible "
                f"with the output. Got {found} instead"
            )
        output, out_dims = returned
        results, shape = tree_flatten(output)
        dims = _broadcast_to_and_flatten(out_dims, shape)
        if dims is None:
            raise RuntimeError(
                "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
                f"out_dims={out_dims} to be compatible with the structure of `output`. out_dims has structure "
                f"{tree_flatten(out_dims)[1]} but output has structure {shape}."
            )
        given = {id(leaf.value): leaf for leaf in leaves if self.concerns(leaf)}
        return tree_unflatten(
            [self._example_of(value, dim, given.get(id(value))) for value, dim in zip(results, dims, strict=True)],
            shape,
        )

    def _example_of(self, value: Any, dim: int | None, given: Any) -> Any:
        """An output of `vmap` as an example; the argument itself, if `vmap` has changed that in place and returned it."""
        if dim is None or not isinstance(value, Tensor):
            return value
        if given is not None and given.bdim == wrap_dim(dim, value.dim()):
            return given
        return BatchedTensor(value, wrap_dim(dim, value.dim()), self)

    def _generated(self, function: Any, args: tuple[Any, ...]) -> Any:
        """The outputs of the `forward` of a `Function` for all examples, differentiated outside as it says."""
        from .mapped_function import mapped

        values = [self.front(arg) if self.concerns(arg) else arg for arg in args]
        with below(self):
            has = tuple([self.has(arg) for arg in args])
            output = mapped(function, has, self.size, self.randomness).apply(*values)
        if isinstance(output, tuple):
            return tuple([BatchedTensor(each, 0, self) if isinstance(each, Tensor) else each for each in output])
        return BatchedTensor(output, 0, self) if isinstance(output, Tensor) else output


def become(tensor: Any, view: Any, name: str) -> None:
    """Make `tensor` the view of itself that is `view`, with its history."""
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
    """What a custom `Function`'s `vmap` is told: the number of examples, and how they share random numbers."""

    batch_size: int
    randomness: str


# --- vmap -------------------------------------------------------------------------------------------------------


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """`func`, of one example, as a function of a batch of examples, computed for all of them at once.

    Args:
        func: takes and returns tensors, in tuples, lists and dicts as it likes.
        in_dims: the dimension of examples in each input (None: all examples share it): one number for all, or a structure like
            that of the inputs.
        out_dims: where that dimension goes in the outputs.
        randomness: whether random numbers are the `"same"` for all examples, `"different"`, or an `"error"`.
        chunk_size: how many examples to compute at once; None: all.

    Raises:
        ValueError: if the inputs have no, or unequal, numbers of examples.

    >>> import adjoint as torch
    >>> torch.vmap(torch.dot)(torch.ones(3, 5), torch.ones(3, 5))
    tensor([5., 5., 5.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def mapped(*args: Any, **keywords: Any) -> Any:
        leaves, structure, dims, size = _examples(func, in_dims, args)
        if chunk_size is None or size <= chunk_size:
            return _run(func, leaves, structure, dims, size, out_dims, randomness, keywords)
        results = []
        state = default_generator.get_state() if randomness == "same" else None
        for start in range(0, size, chunk_size):
            if state is not None:
                default_generator.set_state(state)
            count = min(chunk_size, size - start)
            part = [
                leaf if dim is None else leaf.narrow(dim, start, count) for leaf, dim in zip(leaves, dims, strict=True)
            ]
            results.append(_run(func, part, structure, dims, count, out_dims, randomness, keywords))
        return _joined(results, out_dims, func)

    return mapped


def _name(func: Any) -> str:
    if isinstance(func, functools.partial):
        return f"functools.partial({_name(func.func)}, ...)"
    return getattr(func, "__name__", repr(func))


def _examples(func: Any, in_dims: Any, args: tuple[Any, ...]) -> tuple[list[Any], TreeSpec, list[Any], int]:
    """The inputs one after another, their structure, the dimension of examples in each, and the number of examples."""
    name = _name(func)
    if not isinstance(in_dims, (int, tuple)) or isinstance(in_dims, bool):
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be int or a (potentially nested) tuple "
            f"matching the structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a function "
            "with no inputs. The latter is unsupported."
        )
    leaves, structure = tree_flatten(args)
    dims = _broadcast_to_and_flatten(in_dims, structure)
    if dims is None:
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): in_dims is not compatible with the structure of `inputs`. in_dims "
            f"has structure {tree_flatten(in_dims)[1]} but inputs has structure {structure}."
        )
    sizes = []
    for index, (leaf, dim) in enumerate(zip(leaves, dims, strict=True)):
        if dim is None:
            continue
        if not isinstance(dim, int):
            raise ValueError(
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for an input but in_dim must be either an "
                "integer dimension or None."
            )
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for an input but the input is of type "
                f"{type(leaf)}. We cannot vmap over non-Tensor arguments, please use None as the respective in_dim"
            )
        if not -leaf.dim() <= dim < leaf.dim():
            raise ValueError(
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for some input, but that input is a Tensor of "
                f"dimensionality {leaf.dim()} so expected in_dim to satisfy -{leaf.dim()} <= in_dim < {leaf.dim()}."
            )
        dims[index] = wrap_dim(dim, leaf.dim())
        sizes.append(leaf.shape[dim])
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(size != sizes[0] for size in sizes):
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return leaves, structure, dims, sizes[0]


def _run(
    func: Any,
    leaves: list[Any],
    structure: TreeSpec,
    dims: list[Any],
    size: int,
    out_dims: Any,
    randomness: str,
    keywords: dict[str, Any],
) -> Any:
    """Call `func` once for all examples."""
    for dim in tree_flatten(out_dims)[0]:
        if not isinstance(dim, int) and dim is not None:
            raise ValueError(
                f"vmap({_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of ints "
                "representing where in the outputs the vmapped dimension should appear."
            )
    level = BatchLevel(size, randomness)
    level.begin()
    level.enter()
    try:
        examples = [
            leaf if dim is None else BatchedTensor(leaf, dim, level) for leaf, dim in zip(leaves, dims, strict=True)
        ]
        result = func(*tree_unflatten(examples, structure), **keywords)
    finally:
        level.leave()
        level.end()
    outputs, shape = tree_flatten(result)
    places = _out_places(func, out_dims, outputs, shape)
    return tree_unflatten(
        [_output(level, output, dim, func) for output, dim in zip(outputs, places, strict=True)], shape
    )


def _out_places(func: Any, out_dims: Any, outputs: list[Any], shape: TreeSpec) -> list[Any]:
    single = shape.is_leaf() and isinstance(out_dims, tuple) and len(out_dims) == 1
    dims = _broadcast_to_and_flatten(out_dims[0] if single else out_dims, shape)
    if dims is None:
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of "
            f"`outputs`. out_dims has structure {tree_flatten(out_dims)[1]} but outputs has structure {shape}."
        )
    return dims


def _output(level: BatchLevel, output: Any, dim: int | None, func: Any) -> Any:
    """One output with the dimension of examples where it is wanted."""
    if not isinstance(output, Tensor):
        if dim is None:
            return output
        name = _name(func)
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(output)}. Did you mean to set out_dims= to "
            "None for output?"
        )
    if dim is None:
        if level.has(output):
            raise ValueError(
                f"vmap({_name(func)}, ...): `{_name(func)}` can not return a BatchedTensor when out_dim is None"
            )
        return level.front(output)
    if not level.has(output):
        return level.full(output).movedim(0, dim)
    value: Any = output
    return value.value if value.bdim == dim else value.value.movedim(value.bdim, dim)


def _joined(results: list[Any], out_dims: Any, func: Any) -> Any:
    """The results of the chunks, one after another."""
    columns = [tree_flatten(result) for result in results]
    shape = columns[0][1]
    dims = _out_places(func, out_dims, columns[0][0], shape)
    joined = [
        parts[0] if dim is None else operators.cat(list(parts), dim)
        for parts, dim in zip(zip(*(leaves for leaves, _ in columns), strict=True), dims, strict=True)
    ]
    return tree_unflatten(joined, shape)
