"""`torch._logging`: what compiled functions report."""

from adjoint.compiler.logs import set_logs

__all__ = ["set_logs"]
