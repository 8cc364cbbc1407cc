"""Creation of tensors that are divided among processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import adjoint as torch

from ..collectives import broadcast
from ..device_mesh import DeviceMesh
from .dtensor import DTensor, part_of, whole_mesh
from .placement_types import Partial, Placement, Replicate

__all__ = ["distribute_module", "distribute_tensor", "empty", "full", "ones", "rand", "randn", "zeros"]


def _chosen(
    mesh: DeviceMesh | None, placements: Sequence[Placement] | None
) -> tuple[DeviceMesh, tuple[Placement, ...]]:
    found = mesh if mesh is not None else whole_mesh()
    chosen = tuple(placements) if placements is not None else (Replicate(),) * found.ndim
    if len(chosen) != found.ndim:
        raise ValueError(
            f"`placements` must have the same length as `device_mesh.ndim`! Found placements length: {len(chosen)}, and "
            f"device_mesh.ndim: {found.ndim}."
        )
    return found, chosen


def distribute_tensor(
    tensor: Any,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """Divide a tensor among processes. All processes call this with a tensor of the same shape.

    Args:
        tensor: a leaf.
        device_mesh: the participating processes; all if None.
        placements: the division along each dimension of the mesh; by default the tensor is not divided.
        src_data_rank: the process whose values are used, given by its number in the mesh. With None, each process takes
            its part from its own tensor.

    Raises:
        RuntimeError: if the tensor is not a leaf.
        ValueError: if the number of placements differs from the number of dimensions of the mesh.
    """
    mesh, chosen = _chosen(device_mesh, placements)
    if not tensor.is_leaf:
        raise RuntimeError("`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf tensor!")
    if isinstance(tensor, DTensor):
        if tensor.device_mesh != mesh or tensor.placements != chosen:
            raise ValueError(
                f"Cannot distribute a DTensor with device mesh {tensor.device_mesh} and placements {tensor.placements} to "
                f"device mesh {mesh} and placements {chosen}: use redistribute()"
            )
        return tensor
    values = tensor.detach()
    if src_data_rank is not None:
        values = values.clone()
        for number in range(mesh.ndim):
            broadcast(values, group=mesh.get_group(number), group_src=src_data_rank if mesh.ndim == 1 else 0)
    made = DTensor._of(part_of(values, mesh, chosen), mesh, chosen, tensor.shape)
    made.requires_grad_(tensor.requires_grad)
    if isinstance(tensor, torch.nn.Parameter):
        vars(made)["_is_param"] = True
    return made


def distribute_module(
    module: Any,
    device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[[str, Any, DeviceMesh], None] | None = None,
    input_fn: Callable[[Any, Any, DeviceMesh], Any] | None = None,
    output_fn: Callable[[Any, Any, DeviceMesh], Any] | None = None,
) -> Any:
    """Divide the parameters and buffers of a module with `partition_fn`.

    Parameters that it does not divide exist in all processes.

    `input_fn` and `output_fn` are called with the inputs and outputs of the module.
    """
    mesh = device_mesh if device_mesh is not None else whole_mesh()
    for name, owner in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, owner, mesh)
        for held in (owner._parameters, owner._buffers):
            for key, tensor in held.items():
                if tensor is not None and not isinstance(tensor, DTensor):
                    held[key] = distribute_tensor(tensor, mesh, [Replicate()] * mesh.ndim)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda owner, inputs: input_fn(owner, inputs, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda owner, inputs, outputs: output_fn(owner, outputs, mesh))
    return module


def _maker(function: Callable[..., Any], name: str) -> Callable[..., DTensor]:
    def make(
        *size: Any,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        requires_grad: bool = False,
        **options: Any,
    ) -> DTensor:
        mesh, chosen = _chosen(device_mesh, placements)
        if any(isinstance(each, Partial) for each in chosen):
            raise NotImplementedError(f"{name}() makes no partial sums")
        whole = function(*size, **options)
        made = DTensor._of(part_of(whole, mesh, chosen), mesh, chosen, whole.shape)
        made.requires_grad_(requires_grad)
        return made

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"As `torch.{name}`, divided among processes; each process must have the same random state."
    return make


empty = _maker(torch.empty, "empty")
ones = _maker(torch.ones, "ones")
zeros = _maker(torch.zeros, "zeros")
full = _maker(torch.full, "full")
rand = _maker(torch.rand, "rand")
randn = _maker(torch.randn, "randn")
