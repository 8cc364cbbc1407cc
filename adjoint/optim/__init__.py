"""Optimizers and learning rate schedulers. This file contains names only."""

from .._runtime.first_use import late_names
from . import lr_scheduler
from .adam import Adam, Adamax, AdamW, NAdam, RAdam
from .lbfgs import LBFGS
from .optimizer import Optimizer
from .scaling import Adadelta, Adagrad, RMSprop, Rprop
from .sgd import ASGD, SGD

__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Muon", "NAdam", "Optimizer",
    "RAdam", "RMSprop", "Rprop", "SparseAdam", "lr_scheduler", "swa_utils", "swap_in_optimizer_params_and_state",
]  # fmt: skip

# Imported when they are first used.
__getattr__ = late_names(
    __name__,
    {
        "Adafactor": "matrices",
        "Muon": "matrices",
        "SparseAdam": "sparse_adam",
        "swa_utils": "swa_utils",
        "swap_in_optimizer_params_and_state": "_stateless",
    },
)
