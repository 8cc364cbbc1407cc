"""`torch.onnx`: names that libraries look at; models are not exported."""

from typing import Any

from ..absent import absent
from ..tracebacks import end_at_caller

__all__ = ["export", "is_in_onnx_export", "register_custom_op_symbolic", "unregister_custom_op_symbolic"]

export = absent("torch.onnx.export", "graphs are not exported; `torch.fx` captures them")


def is_in_onnx_export() -> bool:
    """Whether a model is being exported; never."""
    return False


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Any, opset_version: int, **options: Any) -> None:
    """Accept how an operator would be exported."""


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Do nothing: nothing is kept."""


def __getattr__(name: str) -> Any:
    if name.startswith(("symbolic_opset", "ONNX", "Operator", "Jit", "Onnx")):
        return absent(f"torch.onnx.{name}", "models are not exported")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


end_at_caller(globals(), "__getattr__")
