"""`torch.__future__`: how modules that are converted or load a state change their parameters. `nn` reads it."""

__all__ = [
    "get_overwrite_module_params_on_conversion",
    "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
]

_overwrite_module_params_on_conversion = False
_swap_module_params_on_conversion = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether a module that is converted gets new parameters; else, the data of its parameters is replaced."""
    global _overwrite_module_params_on_conversion
    _overwrite_module_params_on_conversion = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether a module that is converted gets new parameters."""
    return _overwrite_module_params_on_conversion


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether a module that is converted, or loads a state, exchanges its parameters with the new ones.

    `torch.utils.swap_tensors` does this; it comes before `set_overwrite_module_params_on_conversion`. What a parameter
    becomes when it loads is said by `Tensor.module_load`, which classes of tensors may define.
    """
    global _swap_module_params_on_conversion
    _swap_module_params_on_conversion = value


def get_swap_module_params_on_conversion() -> bool:
    """Whether a module that is converted, or loads a state, exchanges its parameters with the new ones."""
    return _swap_module_params_on_conversion
