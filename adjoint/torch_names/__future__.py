"""`torch.__future__`: how modules change their parameters when they are converted or load a state.

`nn` reads these settings.
"""

_overwrite_module_params_on_conversion = False
_swap_module_params_on_conversion = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Set whether converting a module creates new parameters. Otherwise, the data of its parameters is replaced."""
    global _overwrite_module_params_on_conversion
    _overwrite_module_params_on_conversion = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Return whether converting a module creates new parameters."""
    return _overwrite_module_params_on_conversion


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Set whether a module swaps its parameters with the new parameters when it is converted or loads a state.

    `torch.utils.swap_tensors` does this. The option takes precedence over `set_overwrite_module_params_on_conversion`.
    `Tensor.module_load`, which tensor classes may override, returns the new value of a loaded parameter.
    """
    global _swap_module_params_on_conversion
    _swap_module_params_on_conversion = value


def get_swap_module_params_on_conversion() -> bool:
    """Set whether a module swaps its parameters with the new parameters when it is converted or loads a state."""
    return _swap_module_params_on_conversion
