"""Modules: the layers, losses and containers of neural networks, and their base class. This file contains names only."""

from ..._runtime.first_use import late_names
from . import (
    activation,
    batchnorm,
    container,
    conv,
    dropout,
    instancenorm,
    linear,
    loss,
    multihead,
    normalization,
    padding,
    parameter_container,
    parameterless,
    pooling,
    rnn,
    sparse,
)
from .activation import *
from .batchnorm import *
from .container import *
from .conv import *
from .dropout import *
from .instancenorm import *
from .linear import *
from .loss import *
from .module import Module
from .multihead import *
from .normalization import *
from .padding import *
from .parameter_container import *
from .parameterless import *
from .pooling import *
from .rnn import *
from .sparse import *

__all__ = ["Module"]
__all__ += activation.__all__
__all__ += batchnorm.__all__
__all__ += container.__all__
__all__ += conv.__all__
__all__ += dropout.__all__
__all__ += instancenorm.__all__
__all__ += linear.__all__
__all__ += loss.__all__
__all__ += multihead.__all__
__all__ += normalization.__all__
__all__ += padding.__all__
__all__ += parameter_container.__all__
__all__ += parameterless.__all__
__all__ += pooling.__all__
__all__ += rnn.__all__
__all__ += sparse.__all__

# Imported when they are first used.
_LATE_CLASSES = {
    "adaptive": "AdaptiveLogSoftmaxWithLoss",
    "lazy": "LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d "
    "LazyConvTranspose2d LazyConvTranspose3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d LazyLinear",
    "linear_loss": "LinearCrossEntropyLoss LinearCrossEntropyOptions",
    "transformer": "Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer",
}
LATE = {name: place for place, names in _LATE_CLASSES.items() for name in (place, *names.split())}
__getattr__ = late_names(__name__, LATE)


def list_late_names() -> None:
    """Add the names that are imported on first use to `__all__`, after the star import of `adjoint.nn`."""
    __all__.extend(sorted(name for name, place in LATE.items() if name != place))
