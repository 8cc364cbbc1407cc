"""`torch._dynamo.eval_frame`: names that libraries compare with."""

from .. import nn


class OptimizedModule(nn.Module):
    """The class of compiled modules in PyTorch. `torch.compile` returns modules themselves, so it has no instances here."""


def is_dynamo_supported() -> bool:
    """Whether graphs can be captured from bytecode; never."""
    return False
