"""Optimizers and learning rate schedulers; names, no logic."""

import sys

from ..first_use import late_names
from . import lr_scheduler
from .adam import Adam, Adamax, AdamW, NAdam, RAdam
from .lbfgs import LBFGS
from .optimizer import Optimizer
from .scaling import Adadelta, Adagrad, RMSprop, Rprop
from .sgd import ASGD, SGD

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
]

# PyTorch has a separate module for each.
for _each in (ASGD, SGD, Adadelta, Adagrad, Adam, AdamW, Adamax, NAdam, RAdam, RMSprop, Rprop):
    _name, _room = _each.__name__.lower(), sys.modules[_each.__module__]
    _each.__module__ = f"{__name__}.{_name}"
    sys.modules[_each.__module__] = globals()[_name] = _room

# Imported when they are first used.
__getattr__ = late_names(
    __name__, {"Adafactor": "matrices", "Muon": "matrices", "SparseAdam": "sparse_adam", "swa_utils": "swa_utils"}
)
