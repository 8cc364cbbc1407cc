"""`torch._C._nn`: parsing of the arguments of `to`."""

from typing import Any

from adjoint.device import device as _device
from adjoint.dtypes import dtype as _dtype
from adjoint.tensor import Tensor


def _parse_to(*args: Any, **names: Any) -> tuple[_device | None, _dtype | None, bool, Any]:
    """Return the device, the dtype, whether to wait, and the memory format, from the arguments of `to`."""
    place, kind = names.get("device"), names.get("dtype")
    wait, order = names.get("non_blocking", False), names.get("memory_format")
    for each in args:
        if isinstance(each, Tensor):
            place, kind = each.device, each.dtype
        elif isinstance(each, _dtype):
            kind = each
        elif isinstance(each, bool):
            wait = each
        elif each is not None:
            place = each
    return (None if place is None else _device(place)), kind, bool(wait), order
