"""Checks of the shapes and dtypes of arguments, by jaxtyping and typeguard."""
# kind: inspection
# requires: jaxtyping typeguard
# ruff: noqa: F722

import torch
from jaxtyping import Bool, Float, Int, jaxtyped
from typeguard import typechecked as check


@jaxtyped(typechecker=check)
def scores(x: Float[torch.Tensor, "batch i"], w: Float[torch.Tensor, "i o"]) -> Float[torch.Tensor, "batch o"]:
    return x @ w


print(scores(torch.ones(2, 3), torch.ones(3, 4)).sum().item())
for x, w in ((torch.ones(2, 3), torch.ones(4, 4)), (torch.ones(2, 3, dtype=torch.int64), torch.ones(3, 4))):
    try:
        scores(x, w)
    except Exception as error:
        print(type(error).__name__)
print(isinstance(torch.ones(2), Float[torch.Tensor, "2"]), isinstance(torch.ones(2), Int[torch.Tensor, "2"]))
print(isinstance(torch.ones(2).bool(), Bool[torch.Tensor, "..."]), Float[torch.Tensor, "a b"].__name__)
