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
LATE = {
    **{
        f"Lazy{kind}{dims}d": "lazy"
        for kind in ("BatchNorm", "Conv", "ConvTranspose", "InstanceNorm")
        for dims in (1, 2, 3)
    },
    **{f"Transformer{part}": "transformer" for part in ("", "Decoder", "DecoderLayer", "Encoder", "EncoderLayer")},
    "AdaptiveLogSoftmaxWithLoss": "adaptive",
    "LinearCrossEntropyLoss": "linear_loss",
    "LinearCrossEntropyOptions": "linear_loss",
    "LazyLinear": "lazy",
    "adaptive": "adaptive",
    "lazy": "lazy",
    "linear_loss": "linear_loss",
    "transformer": "transformer",
}
__getattr__ = late_names(__name__, LATE)
