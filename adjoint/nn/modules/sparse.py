"""Embeddings: tables of vectors looked up by index."""

from __future__ import annotations

from typing import Any

import adjoint as torch
from adjoint import Tensor

from .. import functional as F
from .. import init
from ..parameter import Parameter
from .lookup import unusual
from .module import Module

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    """The base of tables of vectors. The vector at `padding_idx` is initially zero."""

    num_embeddings: int
    embedding_dim: int
    weight: Tensor
    _spelling = "padding_idx"  # in PyTorch's error

    def _setup(
        self,
        padding_idx: int | None,
        weight: Tensor | None,
        freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        sizes = self.num_embeddings, self.embedding_dim
        if padding_idx is not None:
            if not -sizes[0] <= padding_idx < sizes[0]:
                raise AssertionError(f"{self._spelling} must be within num_embeddings")
            padding_idx %= sizes[0]
        self.padding_idx = padding_idx
        if weight is not None and tuple(weight.shape) != sizes:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        held = torch.empty(sizes, device=device, dtype=dtype) if weight is None else weight
        self.weight = Parameter(held, requires_grad=not freeze)
        if weight is None:
            self.reset_parameters()

    def reset_parameters(self) -> None:
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with torch.no_grad():
                self.weight[self.padding_idx].fill_(0)


class Embedding(_Table):
    """A table of `num_embeddings` vectors, drawn from the standard normal distribution.

    Args:
        padding_idx: the index of a row that is initially zero and gets no gradient.
        max_norm: the largest norm of a row. Rows with a larger norm are scaled down when they are looked up.
        norm_type: the order p of the norm.
        scale_grad_by_freq: whether to divide gradients by the number of occurrences of the index in the batch.
        sparse: whether the gradient of the table is a sparse tensor.

    >>> import adjoint as torch
    >>> torch.nn.Embedding(10, 3)(torch.tensor([[1, 2], [4, 9]])).shape
    torch.Size([2, 2, 3])
    """

    _spelling = "Padding_idx"

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        self._setup(padding_idx, _weight, _freeze, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self) -> str:
        rest = unusual(self, padding_idx=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, sparse=False)
        return f"{self.num_embeddings}, {self.embedding_dim}{rest}"

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """Create an embedding from a table `(num_embeddings, embedding_dim)`. `freeze` excludes the table from training."""
        options = (padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
        rows, columns = _sizes_of_table(embeddings)
        return cls(rows, columns, *options, _weight=embeddings, _freeze=freeze)


class EmbeddingBag(_Table):
    """A table of vectors that returns the sum, mean or maximum for each bag of indices; see `functional.embedding_bag`.

    Args:
        num_embeddings: the number of vectors.
        embedding_dim: the number of elements of a vector. The elements are drawn from the standard normal distribution.
        mode: "sum", "mean" or "max".
        include_last_offset: whether the last offset is the end of the last bag.
        padding_idx: an index to ignore. The vector at this index is initially zero.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset
        self._setup(padding_idx, _weight, device=device, dtype=dtype)

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
            per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        rest = unusual(self, max_norm=None, norm_type=2, scale_grad_by_freq=False)
        mode = f"mode={self.mode!r}{unusual(self, padding_idx=None)}"
        return f"{self.num_embeddings}, {self.embedding_dim}{rest}, {mode}"

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """Create an `EmbeddingBag` from a table `(num_embeddings, embedding_dim)`. `freeze` excludes the table from training."""
        options = (max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings, include_last_offset, padding_idx)
        rows, columns = _sizes_of_table(embeddings)
        made = cls(rows, columns, *options)
        made.weight.requires_grad = not freeze
        return made


def _sizes_of_table(embeddings: Tensor) -> torch.Size:
    """Return the number of vectors and of their elements. Raise AssertionError for other than two dimensions."""
    if embeddings.dim() != 2:
        raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
    return embeddings.shape
