"""The parameters of a sharded module. They are gathered together before use, and their gradients are reduced together.

A `MixedPrecisionPolicy` sets the dtypes of computation and reduction.

See Zhao et al., "PyTorch FSDP: Experiences on scaling fully sharded data parallel" (2023).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import adjoint as torch

from ...nn import Module
from ..collectives import all_reduce
from ..progress import watch
from ..reductions import ReduceOp
from ..steps import all_gather_steps, reduce_scatter_steps, source, target
from ..tensor.dtensor import DTensor, part_of
from ..tensor.placement_types import Placement, Replicate, Shard, span
from ..work import Work


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of a sharded module. The parts, their gradients and the optimizer keep the dtypes of the parameters.

    Attributes:
        param_dtype: the dtype of the gathered parameters and of the computation. None keeps the parameters' dtypes.
        reduce_dtype: the dtype in which gradients are reduced. None uses the dtype of the computation.
        output_dtype: the dtype of floating-point outputs. None leaves them unchanged.
        cast_forward_inputs: whether to convert floating-point inputs to `param_dtype`.
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """A policy that leaves parts in their memory."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """The policy of storing parts in CPU memory, which is always the case here."""

    pin_memory: bool = True


Place = tuple["weakref.ref[Module]", str]
"""A module, and the name of its parameter. Modules refer to their groups. Groups do not refer to modules."""


class ParameterGroup:
    """The parameters of a module, each divided along its first dimension.

    Attributes:
        places: the attributes of modules that hold each parameter.
        whole: the gathered parameters, or None.
        requires_sync: whether a backward reduces gradients. Otherwise whole gradients accumulate in each process.
        factor: the divisor of sums of gradients; None for the number of processes.
        release: the function that releases the whole parameters after a backward.
    """

    def __init__(self, places: list[list[Place]], mesh: Any, policy: MixedPrecisionPolicy) -> None:
        self.places, self.mesh, self.policy = places, mesh, policy
        self.group = mesh.get_group(mesh.ndim - 1)
        self.replicas = mesh.get_group(0) if mesh.ndim == 2 else None
        self.ranks = mesh.size(mesh.ndim - 1)
        self.requires_sync = self.requires_all_reduce = self.reshard_after_backward = True
        self.factor: float | None = None
        self.whole: list[Any] | None = None
        self.unreduced: dict[int, Any] = {}
        self._gathering: tuple[Work, list[Any]] | None = None
        self._reducing: list[tuple[Work, list[int], list[Any]]] = []
        self._called_back = False
        self.release: Callable[[], None] = self.drop_whole
        placements: list[Placement] = [*[Replicate()] * (mesh.ndim - 1), Shard(0)]
        self._known: list[Any] = []
        for shared in places:
            reference, name = shared[0]
            owner = reference()
            parameter = owner and owner._parameters[name]
            assert parameter is not None
            if not parameter.dim():
                raise ValueError(
                    f"fully_shard doesn't support scalar parameters. Change {name} to a 1D tensor with numel equal to 1."
                )
            made: Any = DTensor._of(
                part_of(parameter.detach(), mesh, placements), mesh, placements, parameter.shape
            ).requires_grad_(parameter.requires_grad)
            if made.data_ptr() == parameter.data_ptr():
                made = made._like(made._local_tensor.clone()).requires_grad_(parameter.requires_grad)
            vars(made)["_is_param"] = True
            self._known.append(made)
            for owner, name in living(shared):
                owner._parameters[name] = made

    def parts(self) -> list[Any]:
        """Return the parts of this process.

        If the modules have died, return their last parts, because a graph may need them.
        """
        for number, ((reference, name), *_) in enumerate(self.places):
            owner = reference()
            if owner is not None:
                self._known[number] = owner._parameters.get(name, self._known[number])
        return list(self._known)

    # --- gathering --------------------------------------------------------------------------------------------------

    def start_gathering(self) -> None:
        """Start to gather the parameters, unless they are present or are being gathered."""
        if self.whole is not None or self._gathering is not None or not self.places:
            return
        buffers, parts, steps = [], [], []
        for part in self.parts():
            local = self._padded(part._local_tensor, part)
            if self.policy.param_dtype is not None and local.is_floating_point():
                local = local.to(self.policy.param_dtype)
            buffer = torch.empty(self.ranks * local.shape[0], *local.shape[1:], dtype=local.dtype)
            steps.append(all_gather_steps(self.group.comm, target(buffer), source(local), []))
            buffers.append(buffer)
            parts.append(local)
        work = Work(self.group, "all_gather_into_tensor_coalesced", chain.from_iterable(steps), buffers, given=parts)
        if not work.done:
            watch()
        self._gathering = work, [buffer[: part.shape[0]] for buffer, part in zip(buffers, self.parts(), strict=True)]

    def _padded(self, local: Any, part: Any) -> Any:
        """Pad a part to the number of rows of the first process."""
        rows = span(part.shape[0], self.ranks, 0)[1]
        return (
            local
            if local.shape[0] == rows
            else torch.cat([local, local.new_zeros(rows - local.shape[0], *local.shape[1:])])
        )

    def gather(self) -> list[Any]:
        """Return the whole parameters."""
        self.start_gathering()
        if self._gathering is not None:
            work, whole = self._gathering
            work.wait()
            self.whole, self._gathering = whole, None
        return self.whole or []

    def drop_whole(self) -> None:
        """Drop the whole parameters. Wait for parameters that are being gathered."""
        if self._gathering is not None:
            self._gathering[0].wait()
        self.whole = self._gathering = None

    # --- gradients --------------------------------------------------------------------------------------------------

    def take(self, grads: Sequence[Any]) -> None:
        """Start to reduce the gradients of the whole parameters, or keep them for a later backward."""
        if self.reshard_after_backward:
            self.release()
        for number, grad in enumerate(grads):
            if grad is not None:
                held = self.unreduced.get(number)
                self.unreduced[number] = grad if held is None else held + grad
        if not self.requires_sync or not self.unreduced:
            return
        self.call_back()
        numbers, outputs, inputs, steps = [], [], [], []
        op = ReduceOp.AVG if self.factor is None else ReduceOp.SUM
        parts = self.parts()
        for number, grad in sorted(self.unreduced.items()):
            grad = grad.detach().to(self.policy.reduce_dtype or grad.dtype)
            rows = span(parts[number].shape[0], self.ranks, 0)[1]
            if grad.shape[0] != rows * self.ranks:
                grad = torch.cat([grad, grad.new_zeros(rows * self.ranks - grad.shape[0], *grad.shape[1:])])
            own = torch.empty(rows, *grad.shape[1:], dtype=grad.dtype)
            steps.append(reduce_scatter_steps(self.group.comm, target(own), source(grad), op, self.ranks))
            numbers.append(number)
            outputs.append(own)
            inputs.append(grad)
        self.unreduced = {}
        work = Work(self.group, "reduce_scatter_tensor_coalesced", chain.from_iterable(steps), outputs, given=inputs)
        if not work.done:
            watch()
        self._reducing.append((work, numbers, outputs))

    def call_back(self) -> None:
        """Run `finish` at the end of the current backward."""
        if not self._called_back:
            self._called_back = True
            torch.autograd.Variable._execution_engine.queue_callback(self.finish)

    def finish(self) -> None:
        """Wait at the end of a backward, and add the reduced gradients to the gradients of the parts."""
        self._called_back = False
        reducing, self._reducing = self._reducing, []
        parts = self.parts()
        for work, numbers, outputs in reducing:
            work.wait()
            for number, output in zip(numbers, outputs, strict=True):
                self._add(parts[number], output)
        if self.reshard_after_backward:
            self.release()

    def _add(self, part: Any, reduced: Any) -> None:
        if self.replicas is not None and self.requires_all_reduce:
            all_reduce(reduced, ReduceOp.AVG if self.factor is None else ReduceOp.SUM, self.replicas)
        if self.factor is not None:
            reduced = reduced / self.factor
        local = reduced[: part._local_tensor.shape[0]].to(part.dtype)
        with torch.no_grad():
            if part.grad is None:
                part.grad = part._like(local)
            else:
                part.grad._local_tensor.add_(local)
        for hook in list((part._post_accumulate_grad_hooks or {}).values()):
            hook(part)


def living(shared: Iterable[Place]) -> Iterator[tuple[Module, str]]:
    """Yield the modules that still exist among the places of a parameter, and its name in each module."""
    for reference, name in shared:
        owner = reference()
        if owner is not None:
            yield owner, name


def places_of(modules: Iterable[Module], taken: Iterable[Module], ignored: Iterable[Any]) -> list[list[Place]]:
    """Return, for each parameter that the modules will shard, the attributes that hold the parameter.

    Args:
        modules: the modules. Parameters of their submodules are included.
        taken: submodules that are sharded separately.
        ignored: parameters to leave unchanged.
    """
    others, left_out = set(taken), {id(each) for each in ignored}
    parameter: Any
    found: dict[int, list[Place]] = {}
    for owner in dict.fromkeys(owner for module in modules for owner in module.modules()):
        if owner in others:
            continue
        for name, parameter in owner._parameters.items():
            if parameter is not None and not isinstance(parameter, DTensor) and id(parameter) not in left_out:
                found.setdefault(id(parameter), []).append((weakref.ref(owner), name))
    return list(found.values())
