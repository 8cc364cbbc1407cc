"""`torch.utils._python_dispatch`: what libraries ask of tensor classes with their own dispatch; there are none."""

from typing import Any

from ..absent import absent

_INSTEAD = "operators go through `__torch_function__`: use torch.overrides.TorchFunctionMode"

TorchDispatchMode = absent("torch.utils._python_dispatch.TorchDispatchMode", _INSTEAD)


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Whether a tensor wraps others and says which (`__tensor_flatten__`)."""
    return hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether the tensors of a class wrap others and say which."""
    return hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def _get_current_dispatch_mode() -> None:
    return None
