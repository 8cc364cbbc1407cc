"""`torch._logging`: reports of compiled functions."""

from adjoint.compiler.logs import set_logs

__all__ = ["set_logs"]
