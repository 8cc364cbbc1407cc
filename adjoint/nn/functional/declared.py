"""The operators that functions of layers are, under PyTorch's names: gathered from where they are declared."""

from types import SimpleNamespace
from typing import Any

import adjoint as torch

_ELSEWHERE = {
    "loss": "mse_loss l1_loss smooth_l1_loss huber_loss nll_loss cross_entropy binary_cross_entropy kl_div poisson_nll_loss",
    "margin_loss": "cosine_embedding_loss hinge_embedding_loss margin_ranking_loss multi_margin_loss "
    "multilabel_margin_loss soft_margin_loss triplet_margin_loss",
    "padding": "pad",
}

operators: Any = SimpleNamespace(**{**torch.operators.PUBLIC["torch"], **torch.operators.PUBLIC["functional"]})
for family, names in _ELSEWHERE.items():
    for name in names.split():
        setattr(operators, name, getattr(getattr(torch.operators, family), name))
