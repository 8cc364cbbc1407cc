"""The operators that functions of layers are, under PyTorch's names: gathered from where they are declared."""

from importlib import import_module
from typing import Any

import adjoint as torch

_ELSEWHERE = {
    "nn.loss": (
        "mse_loss l1_loss smooth_l1_loss huber_loss nll_loss cross_entropy binary_cross_entropy bce_with_logits kl_div "
        "poisson_nll_loss cosine_embedding_loss hinge_embedding_loss margin_ranking_loss multi_margin_loss "
        "multilabel_margin_loss soft_margin_loss triplet_margin_loss reduced"
    ),
    "nn.padding": "pad",
}


class _Operators:
    """Each operator as an attribute, found on first use."""

    def __getattr__(self, name: str) -> Any:
        family = next((family for family, names in _ELSEWHERE.items() if name in names.split()), None)
        public = torch.operators.PUBLIC
        if family is not None:
            found = getattr(import_module(f"adjoint.operators.{family}"), name)
        elif name in public["functional"].names():
            found = public["functional"][name]
        else:
            found = getattr(torch, name)
        setattr(self, name, found)
        return found


operators: Any = _Operators()
