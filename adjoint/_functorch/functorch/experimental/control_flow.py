"""`functorch.experimental.control_flow`: control flow as functions, by an older name."""

from adjoint._higher_order_ops import cond, map

__all__ = ["cond", "map"]
