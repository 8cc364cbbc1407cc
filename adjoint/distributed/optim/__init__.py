"""`torch.distributed.optim`: `ZeroRedundancyOptimizer`, an optimizer with a sharded state.

Each rank updates some parameters, stores only their state, and sends the parameters to the other ranks.

See Rajbhandari et al., "ZeRO: Memory optimizations toward training trillion parameter models" (2020), stage 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import adjoint as torch

from ...optim.optimizer import Optimizer
from ..algorithms.join import Join, Joinable, JoinHook
from ..collectives import broadcast
from ..groups import get_global_rank, get_rank, get_world_size, group
from ..objects import broadcast_object_list

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimizer with a sharded state.

    After a step, the parameters are equal on all ranks.

    Gradients must be equal on all ranks, as they are after `DistributedDataParallel`.

    Args:
        params: parameters, or groups of parameters.
        optimizer_class: the class of the optimizer for each rank's part.
        process_group: the participating ranks; all by default.
        parameters_as_bucket_view: accepted. Parameters are always sent together.
        defaults: the options of `optimizer_class`.
    """

    def __init__(
        self,
        params: Any,
        optimizer_class: type[Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise NotImplementedError("overlap_with_ddp is not supported: steps begin when backward has ended")
        self._group = process_group if process_group is not None else group.WORLD
        self.rank, self.world_size = get_rank(self._group), get_world_size(self._group)
        self.parameters_as_bucket_view = parameters_as_bucket_view
        self._sizes = [0] * self.world_size
        self._owners: dict[Any, int] = {}
        self.optim: Any = None
        self._gathered: list[Any] | None = None
        Joinable.__init__(self)
        Optimizer.__init__(self, params, defaults)
        self.optim = optimizer_class([self._own_part(group) for group in self.param_groups], **defaults)
        for ours, its in zip(self.param_groups, self.optim.param_groups, strict=True):
            for name, value in its.items():
                ours.setdefault(name, value)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with separate options.

        They are distributed too: the largest first, each to the rank with the fewest elements.
        """
        super().add_param_group(param_group)
        added = self.param_groups[-1]
        for param in sorted(added["params"], key=lambda param: param.numel(), reverse=True):
            owner = min(range(self.world_size), key=self._sizes.__getitem__)
            self._owners[param] = owner
            self._sizes[owner] += param.numel()
        if self.optim is not None:
            self.optim.add_param_group(self._own_part(added))
            for name, value in self.optim.param_groups[-1].items():
                added.setdefault(name, value)

    def _own_part(self, group: dict[str, Any]) -> dict[str, Any]:
        own = [param for param in group["params"] if self._owners[param] == self.rank]
        return {**group, "params": own}

    def _give_options(self) -> None:
        """Copy the options to the optimizer of this rank's part. Schedulers change the options here."""
        for ours, its in zip(self.param_groups, self.optim.param_groups, strict=True):
            its.update((name, value) for name, value in ours.items() if name != "params")

    def step(self, closure: Callable[[], Any] | None = None, **others: Any) -> Any:
        """Update this rank's parameters, and receive the parameters that other ranks have updated."""
        Join.notify_join_context(self)
        self._give_options()
        loss = self.optim.step(**others) if closure is None else self.optim.step(closure=closure, **others)
        self._exchange()
        return loss

    def _exchange(self) -> None:
        """Send each rank's parameters to the other ranks. Parameters of one dtype are sent together."""
        parts: dict[tuple[int, Any], list[Any]] = {}
        for param_group in self.param_groups:
            for param in param_group["params"]:
                parts.setdefault((self._owners[param], param.dtype), []).append(param)
        sent: list[tuple[int, list[Any], Any, Any]] = []
        with torch.no_grad():
            for (owner, dtype), params in parts.items():
                if owner == self.rank:
                    flat = torch.cat([param.detach().reshape(-1) for param in params])
                else:
                    flat = torch.empty(sum(param.numel() for param in params), dtype=dtype)
                source = get_global_rank(self._group, owner)
                sent.append((owner, params, flat, broadcast(flat, source, group=self._group, async_op=True)))
            for owner, params, flat, work in sent:
                work.wait()
                if owner != self.rank:
                    for param, part in zip(params, flat.split([param.numel() for param in params]), strict=True):
                        param.copy_(part.view(param.shape))

    # Uneven inputs

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return the hook that participates in the steps of ranks with more inputs."""
        hook = JoinHook()
        hook.main_hook = self.step  # type: ignore[method-assign]
        return hook

    @property
    def join_device(self) -> Any:
        """The CPU."""
        return torch.device("cpu")

    @property
    def join_process_group(self) -> Any:
        """Return the group of ranks over which the state is sharded."""
        return self._group

    # State

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Gather the state of all ranks on rank `to`.

        On this rank, `state_dict` then returns the whole state. All ranks call this.
        """
        self._give_options()
        gathered = []
        for rank in range(self.world_size):
            held = [self.optim.state_dict()["state"] if rank == self.rank else None]
            broadcast_object_list(held, get_global_rank(self._group, rank), group=self._group)
            gathered.append(held[0])
        self._gathered = gathered if self.rank == to else None

    def state_dict(self) -> dict[str, Any]:
        """On the rank that has gathered the state of all ranks, return it in the form of a single optimizer.

        Raises:
            RuntimeError: if `consolidate_state_dict` has not gathered the state on this rank.
        """
        if self._gathered is None:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call "
                f"`consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant to save the global state."
            )
        whole: dict[str, Any] = super().state_dict()
        counts = [0] * self.world_size
        state = {}
        for position, param in enumerate(self._all_parameters()):
            owner = self._owners[param]
            own = self._gathered[owner]
            held = own.get(counts[owner], own.get(str(counts[owner])))
            counts[owner] += 1
            if held:
                state[position] = held
        return {**whole, "state": state}

    def _all_parameters(self) -> list[Any]:
        return [param for param_group in self.param_groups for param in param_group["params"]]

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the state of this rank's parameters, and the options, from a state of all ranks."""
        options = [{**each} for each in state_dict["param_groups"]]
        super().load_state_dict({"state": {}, "param_groups": options})
        own = [position for position, param in enumerate(self._all_parameters()) if self._owners[param] == self.rank]
        state = {
            number: state_dict["state"][position]
            for number, position in enumerate(own)
            if position in state_dict["state"]
        }
        groups = [
            {**group, "params": its["params"]}
            for group, its in zip(options, self.optim.state_dict()["param_groups"], strict=True)
        ]
        self.optim.load_state_dict({"state": state, "param_groups": groups})
        self._gathered = None
