"""`fully_shard` divides every parameter among the ranks.

A module gathers its parameters when it is called.

Nodes save a reference to gathered parameters instead of their values, and backward gathers the parameters again. While
a module computes, the parameters of the next module are gathered in the background. The order of the last step predicts
the next module.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any

import adjoint as torch

from ..._runtime.tracebacks import ending_at_caller
from ...nn import Parameter
from ..device_mesh import DeviceMesh
from ..process_group import ProcessGroup
from ..tensor.dtensor import whole_mesh
from .parameter_group import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, ParameterGroup, living, places_of

__all__ = ["FSDPModule", "UnshardHandle", "fully_shard", "register_fsdp_forward_method"]


class _Gather(torch.autograd.Function):
    """A function that returns the whole parameters. Its backward receives all gradients of the module together.

    `anchor` represents the parts. It requires a gradient, but receives none. The parts get their gradients after
    reduction.
    """

    @staticmethod
    def forward(ctx: Any, state: _State, anchor: Any) -> Any:
        ctx.set_materialize_grads(False)
        ctx.state = state
        whole = tuple(each.detach() for each in state.group.gather())
        parts = zip(whole, state.group.parts(), strict=True)
        ctx.mark_non_differentiable(*(each for each, part in parts if not part.requires_grad))
        return whole

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        ctx.state.group.take(grads)
        return None, None


class _Saved:
    """A placeholder that nodes save in place of a view of a gathered parameter."""

    def __init__(self, state: _State, number: int, view: Any) -> None:
        self.state, self.number = state, number
        self.geometry = view.shape, view.stride(), view.storage_offset()

    def gathered(self) -> Any:
        """Return the same view of the parameter after gathering it again."""
        return self.state.again()[self.number].as_strided(*self.geometry)


class _Order:
    """The order in which modules ran in the last step. It predicts the next module. All modules below a root share it."""

    def __init__(self) -> None:
        self.running: list[_State] = []
        self.now: list[weakref.ref[_State]] = []
        self.last: list[weakref.ref[_State]] = []

    def next_of(self, state: _State, step: int) -> list[_State]:
        """Return the module that ran after this module or, with -1, before it."""
        order, itself = self.last if step > 0 else self.now, weakref.ref(state)
        place = order.index(itself) + step if itself in order else -1
        return alive(order[place : place + 1]) if place >= 0 else []


def alive(states: Iterable[weakref.ref[_State]]) -> list[_State]:
    """Return the states that still exist."""
    return [state for state in (reference() for reference in states) if state is not None]


class _State:
    """The state of the sharded parameters of one module, or of several modules that are treated as one.

    Modules hold their state. The state has only weak references to modules and to other states, so no reference cycle
    keeps parameters in memory.
    """

    def __init__(
        self, group: ParameterGroup, reshard: bool | None, policy: MixedPrecisionPolicy, modules: Iterable[Any]
    ) -> None:
        self.group, self.policy, self.reshard = group, policy, reshard
        group.release = _release_of(weakref.ref(self))
        self.order = _Order()
        self.ahead: list[weakref.ref[_State]] | None = None
        self.ahead_backward: list[weakref.ref[_State]] | None = None
        self.unsharded = False
        self._members = frozenset(map(id, modules))
        self._left: set[int] = set()
        self._parts: list[Any] = []
        self._pointers: dict[int, int] = {}
        self._hooks: list[Any] = []
        self._swapped = False

    # --- in a forward ----------------------------------------------------------------------------------------------

    def before(self, module: Any, args: Any, kwargs: Any) -> Any:
        """Replace the parts by whole parameters. If several modules share them, the first module does this."""
        order = self.order
        if not order.running:
            self._begin_as_root(module)
        if id(module) in self._left:
            self._left.discard(id(module))
        else:
            self._left = set(self._members - {id(module)})
            order.running.append(self)
            if self._swapped and not self.unsharded:
                return None  # a module that calls itself
            self._gather()
        hooks = None
        if self.reshard is not False and torch.is_grad_enabled():
            hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack)
            hooks.__enter__()
        self._hooks.append(hooks)
        dtype = self.policy.param_dtype
        if dtype is None or not self.policy.cast_forward_inputs:
            return None
        return converted(args, dtype), converted(kwargs, dtype)

    def _gather(self) -> None:
        """Replace the parts by whole parameters, and start gathering the parameters of the next module."""
        order = self.order
        if self.unsharded:
            self._put_back()
        order.now.append(weakref.ref(self))
        anchor = torch.empty(0, requires_grad=any(part.requires_grad for part in self.group.parts()))
        whole = _Gather.apply(self, anchor) if self.group.places else ()
        for following in order.next_of(self, 1) if self.ahead is None else alive(self.ahead):
            following.group.start_gathering()
        self._put(whole)
        self._pointers = {tensor.untyped_storage().data_ptr(): number for number, tensor in enumerate(whole)}

    def _begin_as_root(self, root: Any) -> None:
        """Make the modules below use the order of this module."""
        order = self.order
        order.last, order.now = order.now, []
        for module in root.modules():
            if isinstance(module, FSDPModule):
                module._fsdp.order = order
        if self.reshard is None:
            self.reshard = False  # backward begins with the root's parameters

    def after(self, _: Any, args: Any, output: Any) -> Any:
        """Restore the parts. If several modules share parameters, the last module does this."""
        order = self.order
        again = order.running.count(self) > 1  # a module that calls itself
        hooks = self._hooks.pop() if self._hooks and not again else None
        if hooks is not None:
            hooks.__exit__(None, None, None)
        if self in order.running and not self._left:
            last = len(order.running) - 1 - order.running[::-1].index(self)
            for unfinished in order.running[last + 1 :]:  # only some modules of these groups were called
                unfinished._left = set()
                unfinished._end()
            del order.running[last:]
        if self in order.running:
            return output if again else self._converted(output)
        self._end()
        if not order.running:
            for state in alive(order.last):
                if state.group.whole is None:
                    state.group.drop_whole()  # the module was not called again
        return self._converted(output)

    def _converted(self, output: Any) -> Any:
        return output if self.policy.output_dtype is None else converted(output, self.policy.output_dtype)

    def _end(self) -> None:
        """Restore the parts, and release the whole parameters unless they should be kept."""
        self._put_back()
        if self.unsharded and self.reshard is False:
            self._put([Parameter(whole, whole.is_floating_point()) for whole in self.group.gather()])
        else:
            self.unsharded = False
            self.group.drop_whole()

    def _put(self, whole: Any) -> None:
        self._parts = self.group.parts()
        for tensor, shared in zip(whole, self.group.places, strict=True):
            for owner, name in living(shared):
                del owner._parameters[name]
                owner.__dict__[name] = tensor
        self._swapped = True

    def _put_back(self) -> None:
        if self._swapped:
            for part, shared in zip(self._parts, self.group.places, strict=True):
                for owner, name in living(shared):
                    if owner.__dict__.pop(name, None) is not None:
                        owner._parameters[name] = part
        self._pointers, self._swapped, self._parts = {}, False, []

    def _pack(self, saved: Any) -> Any:
        number = self._pointers.get(saved.untyped_storage().data_ptr())
        return saved if number is None else _Saved(self, number, saved)

    @staticmethod
    def _unpack(packed: Any) -> Any:
        return packed.gathered() if isinstance(packed, _Saved) else packed

    # --- in a backward ---------------------------------------------------------------------------------------------

    def again(self) -> list[Any]:
        """Return the whole parameters for backward, and start gathering the parameters of the previous module."""
        group = self.group
        if group.whole is None:
            group.gather()
            group.call_back()
            for following in (
                self.order.next_of(self, -1) if self.ahead_backward is None else alive(self.ahead_backward)
            ):
                if following.reshard is not False:
                    following.group.start_gathering()
                    following.group.call_back()
        return group.whole or []

    # --- called by the program -------------------------------------------------------------------------------------

    def unshard(self) -> None:
        """Replace the parts by whole parameters until `reshard`."""
        whole = self.group.gather()
        if not self._swapped:
            self._put([Parameter(each, each.is_floating_point()) for each in whole])
            self.unsharded = True

    def put_parts(self) -> None:
        """Restore the parts, and release the whole parameters."""
        self._put_back()
        self.unsharded = False
        self.group.drop_whole()


def _release_of(reference: weakref.ref[_State]) -> Callable[[], None]:
    def release() -> None:
        for state in alive([reference]):
            state.put_parts()

    return release


def converted(values: Any, dtype: Any) -> Any:
    """Return floating-point tensors in nested containers, converted to another dtype."""
    tree: Any = torch.utils._pytree
    return tree.tree_map(
        lambda each: each.to(dtype) if isinstance(each, torch.Tensor) and each.is_floating_point() else each, values
    )


class UnshardHandle:
    """Parameters that are being gathered; see `FSDPModule.unshard`."""

    def __init__(self, state: _State) -> None:
        self._state: _State | None = state

    def wait(self) -> None:
        """Wait until the parameters of the module are gathered."""
        if self._state is not None:
            self._state.unshard()
            self._state = None


class FSDPModule:
    """A module with sharded parameters. Its class is a subclass of this class and of the module's original class."""

    _fsdp: _State

    def _states(self, recurse: bool) -> list[_State]:
        own: Any = self
        found = [module._fsdp for module in own.modules() if isinstance(module, FSDPModule)]
        return found if recurse else [self._fsdp]

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Gather the parameters of this module, except the parameters of submodules that are sharded separately.

        Args:
            async_op: whether to return a handle immediately. Its `wait()` returns when the result is complete.
                Parameters are whole after `wait()` of the result, or after the next forward.
        """
        if async_op:
            self._fsdp.group.start_gathering()
            return UnshardHandle(self._fsdp)
        self._fsdp.unshard()
        return None

    def reshard(self) -> None:
        """Release the whole parameters of this module."""
        self._fsdp.put_parts()

    def set_modules_to_forward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Set the modules whose parameters are gathered while this module computes; by default the next module."""
        self._fsdp.ahead = [weakref.ref(module._fsdp) for module in _checked(modules)]

    def set_modules_to_backward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Set the modules whose parameters are gathered in this module's backward; by default the previous module."""
        self._fsdp.ahead_backward = [weakref.ref(module._fsdp) for module in _checked(modules)]

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Set whether backward reduces gradients.

        Otherwise gradients accumulate. The next backward that reduces gradients reduces their sum.
        """
        for state in self._states(recurse):
            state.group.requires_sync = requires_gradient_sync

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Accepted for compatibility, because each backward waits for its gradients."""

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Set whether gradients are reduced along the first dimension of a two-dimensional mesh."""
        for state in self._states(recurse):
            state.group.requires_all_reduce = requires_all_reduce

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Set whether backward gathers parameters again. Otherwise they stay whole until backward."""
        for state in self._states(recurse):
            state.reshard = reshard_after_forward

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """Set whether parameters that were gathered for backward are released after it."""
        for state in self._states(recurse):
            state.group.reshard_after_backward = reshard_after_backward

    def set_gradient_divide_factor(self, factor: float) -> None:
        """Divide the sum of gradients by this number instead of the number of processes."""
        self._fsdp.group.factor = factor

    set_reduce_scatter_divide_factor = set_gradient_divide_factor

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Set whether the parameters of this module are gathered before its backward.

        They are gathered on demand in any case.
        """

    def set_force_sum_reduction_for_comms(self, enable: bool) -> None:
        """Accepted for compatibility, because MPI adds, and sums are divided afterwards."""

    def set_allocate_memory_from_process_group_for_comm(self, enable: bool) -> None:
        """Accepted for compatibility, because MPI needs no special memory."""

    def __deepcopy__(self, memo: Any) -> Any:
        raise AssertionError("FSDP does not support deepcopy. Please use state dict for serialization.")


def _checked(modules: Iterable[Any]) -> list[Any]:
    found = list(modules)
    for module in found:
        if not isinstance(module, FSDPModule):
            raise ValueError(f"Expects FSDPModule but got {type(module)}:\n{module}")
    return found


@ending_at_caller
def fully_shard(
    module: Any,
    *,
    mesh: DeviceMesh | ProcessGroup | None = None,
    reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Any = None,
    mp_policy: MixedPrecisionPolicy | None = None,
    offload_policy: OffloadPolicy | None = None,
    ignored_params: set[Any] | None = None,
    dp_mesh_dims: Any = None,
) -> Any:
    """Shard the parameters of a module and of its submodules, except submodules that are already sharded.

    Return the module.

    Each parameter becomes a `DTensor`, whose rows are divided among the ranks. Create the optimizer afterwards. It then
    updates the parts, and its state is sharded too. All ranks must begin with the same parameters.

    Args:
        module: the module, or a list of modules that run one after another and gather their parameters together.
        mesh: the participating ranks; all by default. On a two-dimensional mesh, parameters are divided along the
            second dimension and replicated along the first.
        reshard_after_forward: whether backward gathers parameters again, instead of keeping them after forward. By
            default, all modules except the outermost gather them again.
        mp_policy: the dtypes of computation and reduction.
        offload_policy: accepted. Parts are in CPU memory in any case.
        ignored_params: parameters to leave unchanged in all processes.

    Raises:
        ValueError: if a module has no forward, such as a ModuleList, or if a parameter has no dimensions.
        AssertionError: if the module is already sharded.
        NotImplementedError: if a placement other than a division of rows is requested.
    """
    if shard_placement_fn is not None or dp_mesh_dims is not None:
        raise NotImplementedError(
            "fully_shard divides the first dimension of parameters, over a mesh of one or two dimensions"
        )
    modules = [module] if isinstance(module, torch.nn.Module) else _outermost(module)
    for each in modules:
        _check_can_be_shared_out(each)
    if not isinstance(offload_policy, (OffloadPolicy, CPUOffloadPolicy, type(None))):
        raise TypeError(f"offload_policy must be an OffloadPolicy, not {type(offload_policy).__name__}")
    if mesh is None:
        mesh = whole_mesh()
    elif isinstance(mesh, ProcessGroup):
        mesh = DeviceMesh.from_group(mesh, "cpu")
    if mesh.ndim not in (1, 2):
        raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
    policy = mp_policy or MixedPrecisionPolicy()
    below = [each for top in modules for each in top.modules() if each not in modules and isinstance(each, FSDPModule)]
    taken = {inner for each in below for inner in each.modules()}  # type: ignore[attr-defined]
    group = ParameterGroup(places_of(modules, taken, ignored_params or ()), mesh, policy)
    reshard = None if reshard_after_forward is None else bool(reshard_after_forward)
    state = _State(group, reshard, policy, modules)
    for each in modules:
        each._fsdp = state
        kind: Any = type(each)
        each.__class__ = _sharded_class(kind)
        each.register_forward_pre_hook(state.before, prepend=True, with_kwargs=True)
        each.register_forward_hook(state.after, always_call=True)
        each.register_state_dict_pre_hook(lambda *_: state.put_parts())
        each.register_load_state_dict_pre_hook(lambda *_: state.put_parts())
    return module


def _outermost(modules: Any) -> list[Any]:
    """Return the modules of a list that are not below other modules of the list."""
    given = list(modules)
    if not given:
        raise ValueError("fully_shard expects a module, or a list of at least one")
    inner = {below for each in given for below in each.modules() if below is not each}
    return [each for each in dict.fromkeys(given) if each not in inner]


def _check_can_be_shared_out(module: Any) -> None:
    if isinstance(module, FSDPModule):
        raise AssertionError(
            "Each distinct composable distributed API can only be applied to a module once. fully_shard has already been applied "
            f"to the following module:\n{module}"
        )
    if type(module) in (torch.nn.ModuleList, torch.nn.ModuleDict):
        raise ValueError(f"fully_shard does not support containers that do not implement forward: {module}")


def _sharded_class(kind: Any) -> Any:
    """Return the class of sharded modules of this kind. All such modules share this class while any exist."""
    known = (each for each in kind.__subclasses__() if each.__bases__ == (FSDPModule, kind))
    return next(known, None) or type(f"FSDP{kind.__name__}", (FSDPModule, kind), {"__module__": kind.__module__})


def register_fsdp_forward_method(module: Any, method_name: str) -> None:
    """Make a method of a module gather its parameters, like forward. Modules that are not sharded do not change."""
    if not isinstance(module, FSDPModule):
        return
    itself, own = weakref.ref(module), vars(module).get(method_name)

    def gathering(*args: Any, **kwargs: Any) -> Any:
        module: Any = itself()
        state, method = module._fsdp, own or getattr(type(module), method_name).__get__(module)
        changed = state.before(module, args, kwargs)
        given, named = changed if changed is not None else (args, kwargs)
        output = None
        try:
            output = method(*given, **named)
        finally:
            output = state.after(module, given, output)
        return output

    setattr(module, method_name, gathering)
