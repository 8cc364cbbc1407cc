"""`torch.distributions`: probability distributions with densities, samples, and gradients through both.

This file contains names only.

>>> import adjoint as torch
>>> from adjoint.distributions import Normal, kl_divergence
>>> mean = torch.tensor(1.0, requires_grad=True)
>>> kl_divergence(Normal(mean, 1.0), Normal(0.0, 1.0)).backward()
>>> mean.grad
tensor(1.)
"""

from . import (
    bounded,
    classes,
    composed,
    constraint_registry,
    constraints,
    counts,
    distribution,
    gammas,
    gaussian,
    kl,
    matrices,
    relaxed,
    tails,
    transforms,
    utils,
)
from .bounded import *
from .classes import *
from .composed import *
from .constraint_registry import *
from .counts import *
from .distribution import *
from .gammas import *
from .gaussian import *
from .kl import *
from .matrices import *
from .relaxed import *
from .tails import *
from .transforms import *

__all__: list[str] = []
__all__ += bounded.__all__
__all__ += classes.__all__
__all__ += composed.__all__
__all__ += constraint_registry.__all__
__all__ += counts.__all__
__all__ += distribution.__all__
__all__ += gammas.__all__
__all__ += gaussian.__all__
__all__ += kl.__all__
__all__ += matrices.__all__
__all__ += relaxed.__all__
__all__ += tails.__all__
__all__ += transforms.__all__
