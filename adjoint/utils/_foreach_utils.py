"""`torch.utils._foreach_utils`: grouping of tensor lists by device and dtype for functions of whole lists."""

from __future__ import annotations

from typing import Any, TypeAlias

import adjoint as torch
from adjoint import Tensor

Indices: TypeAlias = list[int]
TensorListList: TypeAlias = list[list[Tensor | None]]
Groups: TypeAlias = dict[tuple[torch.device, torch.dtype], tuple[TensorListList, Indices]]

_foreach_supported_types: list[type] = [Tensor]


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Return the accelerator types with kernels for whole lists. There are none."""
    return []


def _get_fused_kernels_supported_devices() -> list[str]:
    """Return the device types on which optimizers have fused forms."""
    return ["cpu"]


def _device_has_foreach_support(device: torch.device) -> bool:
    """Return whether functions on whole tensor lists work on `device`."""
    return device.type == "cpu"


def _has_foreach_support(tensors: list[Any], device: torch.device) -> bool:
    """Return whether functions on whole tensor lists work for `tensors`, which must all be on `device`."""
    return _device_has_foreach_support(device) and all(
        tensor is None or type(tensor) in _foreach_supported_types for tensor in tensors
    )


@torch.no_grad()
def _group_tensors_by_device_and_dtype(tensorlistlist: TensorListList, with_indices: bool = False) -> Groups:
    """Group the lists by the device and dtype of the tensors in the first list.

    Args:
        tensorlistlist: lists of equal length (or empty lists) whose items correspond: parameters, gradients, states.
        with_indices: whether to also return the indices of the items in each group.

    Raises:
        RuntimeError: if the lists do not match.

    >>> import adjoint as torch
    >>> from adjoint.utils._foreach_utils import _group_tensors_by_device_and_dtype
    >>> tensors = [torch.ones(2), torch.ones(3, dtype=torch.float64), torch.zeros(1)]
    >>> groups = _group_tensors_by_device_and_dtype([tensors], with_indices=True)
    >>> {dtype: indices for (_, dtype), (_, indices) in groups.items()}
    {torch.float32: [0, 2], torch.float64: [1]}
    """
    if not tensorlistlist:
        raise RuntimeError("Expected !nested_tensorlist.empty() to be true, but got false.")
    first, *others = tensorlistlist
    if not first:
        raise RuntimeError("Expected !nested_tensorlist[0].empty() to be true, but got false.")
    if any(each and len(each) != len(first) for each in others):
        raise RuntimeError(f"Expected lists of {len(first)} tensors or of none, but got {[*map(len, others)]}.")
    groups: Groups = {}
    for index, tensor in enumerate(first):
        if tensor is None:
            raise RuntimeError(
                "Tensors of the first list of nested Tensor lists are supposed to be defined but the "
                f"{index}-th Tensor is not."
            )
        group = groups.setdefault((tensor.device, tensor.dtype), ([[] for _ in tensorlistlist], []))
        for place, each in enumerate(tensorlistlist):
            if each:
                _check_like(each[index], tensor)
                group[0][place].append(each[index])
        if with_indices:
            group[1].append(index)
    return groups


def _check_like(tensor: Any, first: Tensor) -> None:
    allowed = (first.dtype, torch.float32, torch.float64, torch.bfloat16)
    if tensor is not None and (tensor.device != first.device or tensor.dtype not in allowed):
        raise RuntimeError(
            "Tensors of the same index must be on the same device and the same dtype except `step` tensors that can be CPU "
            "and float32/64, and optimizer states that can be bfloat16 for mixed-precision training"
        )
