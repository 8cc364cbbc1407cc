"""`torch.fx.experimental`: graphs of operators. Sizes are never traced as symbols."""

from . import proxy_tensor, symbolic_shapes

__all__ = ["proxy_tensor", "symbolic_shapes"]
