"""`torch.fx.experimental`: graphs of operators; nothing is traced with symbols in place of sizes."""

from . import proxy_tensor, symbolic_shapes

__all__ = ["proxy_tensor", "symbolic_shapes"]
