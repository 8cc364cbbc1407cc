"""`fully_shard`: each rank holds a part of every parameter; a module gathers its parameters when it is called.

Gathering is an operation that is recorded: its gradient is reduced over the ranks, of which each keeps its part. A node saves the
name of a gathered parameter, which is gathered again when the node runs backward.
"""

from __future__ import annotations

import weakref
from typing import Any

import adjoint as torch

from ...nn import Module, Parameter
from ..collectives import all_gather_into_tensor, reduce_scatter_tensor
from ..groups import get_rank, get_world_size, group
from ..reductions import ReduceOp

__all__ = ["FSDPModule", "fully_shard"]


class _Sharding:
    """How one parameter is shared out: in equal parts of its elements, the last one filled up with zeros."""

    def __init__(self, process_group: Any, shape: Any, dtype: Any) -> None:
        self.group, self.shape, self.dtype = process_group, shape, dtype
        self.ranks, self.rank = get_world_size(process_group), get_rank(process_group)
        self.count = shape.numel()
        self.length = -(-self.count // self.ranks)

    def part(self, whole: Any) -> Any:
        """Of all elements, the part of this rank."""
        return self.padded(whole)[self.rank * self.length : (self.rank + 1) * self.length].clone()

    def padded(self, whole: Any) -> Any:
        """All elements in one dimension, and zeros up to a number that the ranks share equally."""
        flat = whole.detach().reshape(-1)
        return torch.cat([flat, flat.new_zeros(self.length * self.ranks - self.count)])

    def gather(self, part: Any) -> Any:
        """The whole parameter."""
        flat = torch.empty(self.length * self.ranks, dtype=part.dtype)
        all_gather_into_tensor(flat, part.detach().contiguous(), group=self.group)
        return flat[: self.count].view(self.shape)

    def reduce(self, grad: Any) -> Any:
        """Of the mean of a gradient over the ranks, the part of this rank."""
        own = torch.empty(self.length, dtype=grad.dtype)
        reduce_scatter_tensor(own, self.padded(grad), op=ReduceOp.AVG, group=self.group)
        return own


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, part: Any, sharding: _Sharding) -> Any:
        """Gather a parameter."""
        ctx.sharding = sharding
        return sharding.gather(part)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        """Reduce its gradient, and keep a part."""
        return ctx.sharding.reduce(grad), None


class _Part:
    """What is saved in the place of a view of a gathered parameter."""

    def __init__(self, owner: _Sharded, name: str, view: Any) -> None:
        self.owner, self.name = owner, name
        self.geometry = view.shape, view.stride(), view.storage_offset()

    def gathered(self) -> Any:
        """The view, of the parameter gathered once more."""
        return self.owner.again(self.name).as_strided(*self.geometry)


class _Sharded:
    """What a module knows about its parameters that are shared out."""

    def __init__(self, module: Module, process_group: Any, reshard: bool) -> None:
        self.group, self.reshard = process_group, reshard
        self.owners: list[tuple[Module, str, str]] = []
        self.shardings: dict[str, _Sharding] = {}
        self.whole: dict[str, Any] = {}
        self._pointers: dict[int, str] = {}
        self._again: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
        self.parts: dict[str, Any] = {}
        self._context: Any = None
        held: dict[Any, str] = {}
        for prefix, owner in module.named_modules():
            if owner is not module and isinstance(owner, FSDPModule):
                continue
            if any(inside for inside in _sharded_below(module) if owner in inside):
                continue
            for name, parameter in list(owner._parameters.items()):
                if parameter is None or isinstance(getattr(parameter, "_sharding", None), _Sharding):
                    continue
                key = held.setdefault(parameter, f"{prefix}.{name}".lstrip("."))
                if key not in self.shardings:
                    sharding = self.shardings[key] = _Sharding(process_group, parameter.shape, parameter.dtype)
                    part = Parameter(sharding.part(parameter), parameter.requires_grad)
                    part._sharding = sharding  # type: ignore[attr-defined]
                    self.parts[key] = part
                owner._parameters[name] = self.parts[key]
                self.owners.append((owner, name, key))

    def gather(self) -> None:
        """Put whole parameters in the places of the parts."""
        whole = {key: _Gather.apply(owner._parameters[name], self.shardings[key]) for owner, name, key in self.firsts()}
        self._pointers = {tensor.untyped_storage().data_ptr(): key for key, tensor in whole.items()}
        for owner, name, key in self.owners:
            self.parts[key] = owner._parameters.pop(name)
            owner.__dict__[name] = whole[key]
        if self.reshard:
            self._context = torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack)
            self._context.__enter__()

    def firsts(self) -> list[tuple[Module, str, str]]:
        """One place of each parameter."""
        return list({key: (owner, name, key) for owner, name, key in reversed(self.owners)}.values())[::-1]

    def let_go(self) -> None:
        """Put the parts back."""
        if self._context is not None:
            self._context.__exit__(None, None, None)
            self._context = None
        for owner, name, key in self.owners:
            if owner.__dict__.pop(name, None) is not None:
                owner._parameters[name] = self.parts[key]
        self._pointers = {}

    def _pack(self, saved: Any) -> Any:
        key = self._pointers.get(saved.untyped_storage().data_ptr())
        return saved if key is None else _Part(self, key, saved)

    @staticmethod
    def _unpack(packed: Any) -> Any:
        return packed.gathered() if isinstance(packed, _Part) else packed

    def again(self, key: str) -> Any:
        """A parameter gathered for backward; one gathering serves the nodes that need it at a time."""
        found = self._again.get(key)
        if found is None:
            owner, name, _ = next(place for place in self.owners if place[2] == key)
            found = self._again[key] = self.shardings[key].gather(owner._parameters[name])
        return found


def _sharded_below(module: Module) -> list[set[Module]]:
    """The modules within those below that share out their own parameters."""
    return [set(each.modules()) for each in module.modules() if each is not module and isinstance(each, FSDPModule)]


class FSDPModule:
    """A module whose parameters are shared out. Its class is a subclass of this one and of what it was."""

    _sharded: _Sharded

    def full_state_dict(self) -> dict[str, Any]:
        """The state of the module as one process has it; called on all ranks."""
        own: Any = self
        return {name: _whole(tensor) for name, tensor in own.state_dict(keep_vars=True).items()}

    def load_full_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over this rank's parts of a state that one process has."""
        own: Any = self
        parts = {}
        for name, tensor in own.state_dict(keep_vars=True).items():
            sharding = getattr(tensor, "_sharding", None)
            parts[name] = state_dict[name] if sharding is None else sharding.part(state_dict[name])
        own.load_state_dict(parts)


def _whole(tensor: Any) -> Any:
    sharding = getattr(tensor, "_sharding", None)
    return tensor.detach().clone() if sharding is None else sharding.gather(tensor)


def fully_shard(
    module: Any, *, mesh: Any = None, reshard_after_forward: bool | int | None = None, **others: Any
) -> Any:
    """Share out the parameters of a module and of the modules below that do not share out their own; returns the module.

    Each parameter becomes the part of its elements that this rank holds, in one dimension. Make the optimizer afterwards: it then
    updates the parts, and its state is shared out too. Ranks must begin with the same parameters.

    Args:
        module: the module.
        mesh: the group of ranks; by default all.
        reshard_after_forward: whether backward gathers parameters again; otherwise they stay whole until then.

    Raises:
        NotImplementedError: for other options.
    """
    if any(value is not None for value in others.values()):
        raise NotImplementedError(f"fully_shard does not support {', '.join(others)}")
    process_group = mesh if mesh is not None else group.WORLD
    kind = type(module)
    module._sharded = _Sharded(module, process_group, reshard_after_forward is not False)
    module.__class__ = type(f"FSDP{kind.__name__}", (FSDPModule, kind), {"__module__": kind.__module__})
    module.register_forward_pre_hook(lambda *_: module._sharded.gather())
    module.register_forward_hook(lambda *_: module._sharded.let_go(), always_call=True)
    return module
