"""Distances, similarities and norms between and of vectors."""

from __future__ import annotations

import adjoint as torch


def cosine_similarity(x1: torch.Tensor, x2: torch.Tensor, dim: int = 1, eps: float = 1e-8) -> torch.Tensor:
    """`x1 · x2 / (max(‖x1‖, eps) max(‖x2‖, eps))` along `dim`; the two are broadcast together."""
    x1, x2 = torch.broadcast_tensors(x1, x2)
    first = torch.linalg.vector_norm(x1, 2, dim, keepdim=True).clone()
    second = torch.linalg.vector_norm(x2, 2, dim, keepdim=True).clone()
    with torch.no_grad():  # the bound has no part in the derivative
        first.clamp_min_(eps)
        second.clamp_min_(eps)
    return ((x1 / first) * (x2 / second)).sum(dim)


def pairwise_distance(
    x1: torch.Tensor, x2: torch.Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> torch.Tensor:
    """The p-norm of `x1 - x2 + eps` along the last dimension."""
    return torch.linalg.vector_norm(x1 - x2 + eps, p, -1, keepdim=keepdim)


def pdist(input: torch.Tensor, p: float = 2.0) -> torch.Tensor:
    """The p-norm distance between each pair of rows `i < j`, shape `(N (N - 1) / 2,)`."""
    rows, columns = torch.triu_indices(input.size(0), input.size(0), 1)
    return torch.linalg.vector_norm(input[rows] - input[columns], p, -1)


def normalize(
    input: torch.Tensor,
    p: float = 2.0,
    dim: int = 1,
    eps: float = 1e-12,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """`input` divided by its p-norm along `dim`, or by `eps` where that is larger."""
    norm = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / norm if out is None else torch.div(input, norm, out=out)


def bilinear(
    input1: torch.Tensor, input2: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """`input1ᵀ weight[k] input2 + bias[k]` for each output k.

    Shapes: `(..., I)`, `(..., J)`, `(K, I, J)`, `(K,)` to `(..., K)`.
    """
    if input1.shape[-1] != weight.shape[1]:
        raise RuntimeError(
            f"bilinear(): input1 size does not match weight size: got {input1.shape[-1]} but expected {weight.shape[1]}"
        )
    if input2.shape[-1] != weight.shape[2]:
        raise RuntimeError(
            f"bilinear(): input2 size does not match weight size: got {input2.shape[-1]} but expected {weight.shape[2]}"
        )
    left = torch.einsum("...i,kij->...kj", input1, weight)
    result = (left * input2.unsqueeze(-2)).sum(-1)
    return result if bias is None else result + bias
