"""Classification into very many classes, with the frequent classes first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import adjoint as torch
from adjoint import Tensor

from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _ASMoutput(NamedTuple):
    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """The log softmax of classes, which are divided into clusters by frequency.

    Rarer clusters have fewer features (Grave et al., 2017).

    Args:
        in_features: the number of features of the input.
        n_classes: the number of classes. Classes are sorted from frequent to rare.
        cutoffs: the first class of each cluster except the first cluster.
        div_value: the factor by which the number of features decreases from one cluster to the next.
        head_bias: whether the linear map to the first cluster has a bias.

    >>> import adjoint as torch
    >>> layer = torch.nn.AdaptiveLogSoftmaxWithLoss(16, 20, cutoffs=[4, 10])
    >>> layer(torch.rand(3, 16), torch.tensor([0, 5, 19])).output.shape
    torch.Size([3])
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        limits = list(cutoffs)
        if len(limits) == 0:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            limits != sorted(limits)
            or min(limits) <= 0
            or max(limits) > n_classes - 1
            or len(set(limits)) != len(limits)
            or any(int(limit) != limit for limit in limits)
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value "
                "is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*limits, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **made)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            features = int(in_features // div_value ** (i + 1))
            classes = self.cutoffs[i + 1] - self.cutoffs[i]
            first = Linear(in_features, features, bias=False, **made)
            self.tail.append(Sequential(first, Linear(features, classes, bias=False, **made)))

    def reset_parameters(self) -> None:
        self.head.reset_parameters()
        for first, second in self.tail:  # type: ignore[attr-defined]
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """Return the log-probabilities of the targets, and their negative mean.

        Args:
            input_: `(N, in_features)` or `(in_features)`.
            target_: `(N)` or `()`.
        """
        dims = target_.dim()
        if dims == 1:
            if input_.size(0) != target_.size(0):
                raise RuntimeError("Input and target should have the same size in the batch dimension.")
            if input_.dim() != 2:
                raise RuntimeError(
                    f"1D target tensor expects 2D input tensors, but found inputs with size {input_.size()}"
                )
        elif dims == 0:
            if input_.dim() != 1:
                raise RuntimeError(
                    f"0D target tensor expects 1D input tensors, but found inputs with size {input_.size()}"
                )
        else:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        input = input_ if dims else input_.unsqueeze(0)
        target = target_ if dims else target_.unsqueeze(0)
        if target.numel() and not (int(target.min()) >= 0 and int(target.max()) < self.n_classes):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range [{target.min().item()}, "
                f"{target.max().item()}] were found. "
            )
        output = input.new_zeros(target.size(0))
        in_head = target.clone()
        for i, cluster in enumerate(self.tail):
            low, high = self.cutoffs[i], self.cutoffs[i + 1]
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            logprob = F.log_softmax(cluster(input.index_select(0, rows)), dim=1)
            chosen = logprob.gather(1, (target[rows] - low).unsqueeze(1))
            output = output.index_copy(0, rows, chosen.squeeze(1))
            in_head[rows] = self.shortlist_size + i
        head = F.log_softmax(self.head(input), dim=1)
        output = output + head.gather(1, in_head.unsqueeze(1)).squeeze()
        loss = (-output).mean()
        return _ASMoutput(output if dims else output.squeeze(0), loss)

    def _get_full_log_prob(self, input: Tensor, head_output: Tensor) -> Tensor:
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            parts.append(F.log_softmax(cluster(input), dim=1) + head[:, self.shortlist_size + i].unsqueeze(1))
        return torch.cat(parts, 1)

    def log_prob(self, input: Tensor) -> Tensor:
        """Return the log-probabilities `(N, n_classes)` of all classes."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """Return the most probable class of each row. Only the clusters that can affect the result are computed."""
        head = self.head(input)
        output = torch.argmax(head, dim=1)
        outside = output >= self.shortlist_size
        if not bool(outside.any()):
            return output
        if bool(outside.all()):
            return torch.argmax(self._get_full_log_prob(input, head), dim=1)
        output[outside] = torch.argmax(self._get_full_log_prob(input[outside], head[outside]), dim=1)
        return output
