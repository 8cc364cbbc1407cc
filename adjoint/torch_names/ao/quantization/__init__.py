"""`torch.ao.quantization`: quantized tensors do not exist here, and the modules that mark their boundaries do nothing."""

from typing import Any

from adjoint import nn
from adjoint._runtime.absent import absent, is_of_tools
from adjoint.tensor import Tensor


class QuantStub(nn.Module):
    """A module that marks where quantized tensors would begin. It returns its input."""

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        """Return the input."""
        return x


class DeQuantStub(QuantStub):
    """A module that marks where quantized tensors would end. It returns its input."""


def __getattr__(name: str) -> Any:
    if is_of_tools(name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return absent(f"torch.ao.quantization.{name}", "there are no quantized tensors")
