"""`torch._C`: names by which programs say who takes over calls, and ask what is transformed and where a backward is."""

from ..autograd.graph import current_node as _current_autograd_node
from ..autograd.graph import current_task_id as _current_graph_task_id
from ..tape.overrides import DisableTorchFunction as DisableTorchFunction
from ..tape.overrides import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from ..tape.overrides import classes_are_asked as _is_torch_function_enabled
from ..tape.overrides import disabled_torch_function_impl as _disabled_torch_function_impl
from ..tape.overrides import has_torch_function as _has_torch_function
from ..tape.overrides import has_torch_function_unary as _has_torch_function_unary
from ..tape.overrides import has_torch_function_variadic as _has_torch_function_variadic
from ..tape.overrides import mode_is_active as _is_torch_function_mode_enabled
from ..tape.overrides import modes_entered as _len_torch_function_stack
from . import _functorch as _functorch

__all__ = [
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "_current_autograd_node",
    "_current_graph_task_id",
    "_disabled_torch_function_impl",
    "_functorch",
    "_has_torch_function",
    "_has_torch_function_unary",
    "_has_torch_function_variadic",
    "_is_torch_function_enabled",
    "_is_torch_function_mode_enabled",
    "_len_torch_function_stack",
]
