"""Attention with a function that changes the scores, and with a mask defined by a function of positions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import adjoint as torch
from adjoint import Tensor

from ..._runtime.tracebacks import ending_at_caller

__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "FlexKernelOptions", "and_masks", "create_block_mask", "create_mask",
    "flex_attention", "noop_mask", "or_masks",
]  # fmt: skip

_Mod = Callable[..., Tensor]
FlexKernelOptions = dict
_DEFAULT_SPARSE_BLOCK_SIZE = 128


class AuxRequest(NamedTuple):
    """The additional results that `flex_attention` returns."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The results that an `AuxRequest` requested."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """A mask function that excludes no pairs."""
    return batch.new_ones((), dtype=torch.bool)


def _require_functions(mask_mods: tuple[_Mod, ...]) -> None:
    if not all(callable(each) for each in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")


def and_masks(*mask_mods: _Mod) -> _Mod:
    """Return a mask function that is true if all given functions are true."""
    _require_functions(mask_mods)

    def and_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_ones((), dtype=torch.bool)
        for each in mask_mods:
            result = result & each(b, h, q_idx, kv_idx)
        return result

    return and_mask


def or_masks(*mask_mods: _Mod) -> _Mod:
    """Return a mask function that is true if at least one of the given functions is true."""
    _require_functions(mask_mods)

    def or_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_zeros((), dtype=torch.bool)
        for each in mask_mods:
            result = result | each(b, h, q_idx, kv_idx)
        return result

    return or_mask


def _for_all_positions(function: _Mod, sizes: tuple[int, int, int, int], *scores: Tensor) -> Tensor:
    """Compute `function([score,] b, h, q_idx, kv_idx)` for each batch, head, query and key."""
    mapped: Any = function
    for position in reversed(range(4)):
        mapped = torch.vmap(mapped, in_dims=(0,) * len(scores) + tuple(0 if i == position else None for i in range(4)))
    found: Tensor = mapped(*scores, *(torch.arange(size) for size in sizes))
    return found


def create_mask(mod_fn: _Mod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None) -> Tensor:
    """Return the mask `(B, H, Q_LEN, KV_LEN)` that a mask function describes.

    >>> from adjoint.nn.attention.flex_attention import create_mask
    >>> create_mask(lambda b, h, q_idx, kv_idx: q_idx >= kv_idx, 1, 1, 2, 2)
    tensor([[[[ True, False],
              [ True,  True]]]])
    """
    return _for_all_positions(mod_fn, (B or 1, H or 1, Q_LEN, KV_LEN))


class BlockMask:
    """A mask function, and the blocks of queries and keys in which it permits at least one pair.

    `flex_attention` reads the function and the lengths. For each block of queries, `kv_num_blocks` and `kv_indices`
    list the blocks of keys with some excluded pairs. `full_kv_num_blocks` and `full_kv_indices` list the blocks of keys
    without excluded pairs.
    """

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = (_DEFAULT_SPARSE_BLOCK_SIZE, _DEFAULT_SPARSE_BLOCK_SIZE),
        mask_mod: _Mod = noop_mask,
    ) -> None:
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        self.seq_lengths = seq_lengths
        self.kv_num_blocks = kv_num_blocks
        self.kv_indices = kv_indices
        self.full_kv_num_blocks = full_kv_num_blocks
        self.full_kv_indices = full_kv_indices
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod: _Mod | None = None,
        seq_lengths: tuple[int, int] | None = None,
    ) -> BlockMask:
        """Return a mask that consists of the given blocks."""
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * size[0], kv_indices.shape[-1] * size[1])
        return cls(
            seq_lengths,
            kv_num_blocks,
            kv_indices,
            full_kv_num_blocks,
            full_kv_indices,
            size,
            noop_mask if mask_mod is None else mask_mod,
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Batch, heads, and the lengths of queries and keys."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """The number of pairs of a query and a key."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """Return the percentage of pairs outside all blocks. It is negative if blocks extend far beyond the lengths."""
        blocks = int(self.kv_num_blocks.sum())
        if self.full_kv_num_blocks is not None:
            blocks += int(self.full_kv_num_blocks.sum())
        return 100 * (1 - blocks * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to_dense(self) -> Tensor:
        """Return 1 for each block with at least one permitted pair, and 0 for all other blocks."""
        dense = _as_dense(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is not None and self.full_kv_indices is not None:
            dense = dense | _as_dense(self.full_kv_num_blocks, self.full_kv_indices)
        return dense

    def to(self, device: Any) -> BlockMask:
        """Return the mask itself, because only one device exists."""
        return self

    def __repr__(self) -> str:
        rows = ("".join("██" if each else "  " for each in row) for row in self.to_dense().flatten(0, -3)[0].tolist())
        first = (0,) * (len(self.shape) - 2)
        drawn = "\n".join(rows)
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{first}\n{drawn}\n)"


def _as_dense(counts: Tensor, indices: Tensor) -> Tensor:
    """Return a matrix with ones at the listed blocks and zeros elsewhere."""
    listed = torch.arange(indices.shape[-1]) < counts.unsqueeze(-1)
    dense = torch.zeros(indices.shape, dtype=torch.int32)
    return dense.scatter_add_(-1, indices.long(), listed.to(torch.int32)).clamp_(max=1)


def _as_listed(dense: Tensor) -> tuple[Tensor, Tensor]:
    """Return the number of blocks in each row, and the column indices, sorted so that columns with blocks come first."""
    ones = dense.to(torch.int32)
    return ones.sum(-1).to(torch.int32), torch.argsort(ones, dim=-1, descending=True, stable=True).to(torch.int32)


def create_block_mask(
    mask_mod: _Mod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
) -> BlockMask:
    """Return the block mask that a mask function describes.

    Args:
        mask_mod: `mask_mod(b, h, q_idx, kv_idx)` is True if query `q_idx` attends to key `kv_idx`.
        B: the number of samples; None if all samples share one mask.
        H: the number of heads; None if all heads share one mask.
        BLOCK_SIZE: the number of queries and the number of keys of a block, or one number for both.
        separate_full_blocks: whether to list blocks without excluded pairs separately.
    """
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    rows, columns = -Q_LEN % size[0], -KV_LEN % size[1]
    padded = torch.nn.functional.pad(mask, (0, columns, 0, rows))
    counts = padded.unflatten(-1, (-1, size[1])).unflatten(-3, (-1, size[0])).sum((-3, -1))
    full = (counts == size[0] * size[1]) if separate_full_blocks else torch.zeros_like(counts, dtype=torch.bool)
    partial = (counts > 0) & ~full
    counted, listed = _as_listed(full) if separate_full_blocks else (None, None)
    return BlockMask((Q_LEN, KV_LEN), *_as_listed(partial), counted, listed, size, mask_mod)


def _check(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool) -> None:
    if not query.dim() == key.dim() == value.dim() == 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if query.size(-1) != key.size(-1):
        raise ValueError(
            "Expect query and key/value to have the same embedding dimension but got "
            f"E={query.size(-1)} and E={key.size(-1)}."
        )
    heads, others = query.size(1), key.size(1)
    if heads != others and not enable_gqa:
        raise ValueError(
            "Expect query and key/value to have the same number of heads but got "
            f"Hq={heads} and Hkv={others}. Try setting enable_gqa=True for GQA."
        )
    if heads % others:
        raise ValueError(
            f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and Hkv={others}."
        )


@ending_at_caller
def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: _Mod | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: dict[str, Any] | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Return `softmax(score_mod(query @ key.mT * scale)) @ value` for tensors of shape `(batch, heads, length, features)`.

    All scores are computed, including the excluded scores. Gradients flow through `score_mod` too.

    Args:
        score_mod: `score_mod(score, b, h, q_idx, kv_idx)` returns the new score.
        block_mask: the keys that each query attends to; see `create_block_mask`.
        scale: the factor of the scores; `1 / sqrt(features)` if None.
        enable_gqa: whether groups of query heads share one key and value head.
        return_lse: whether to also return, for each query, the logarithm of the sum of the exponentials of its scores.
        kernel_options: has no effect.
        return_aux: the additional results to return in an `AuxOutput`.

    >>> import adjoint as torch
    >>> from adjoint.nn.attention.flex_attention import flex_attention
    >>> q = torch.rand(1, 2, 5, 4)
    >>> flex_attention(q, q, q, score_mod=lambda score, b, h, i, j: score - (i - j).abs()).shape
    torch.Size([1, 2, 5, 4])
    """
    _check(query, key, value, enable_gqa)
    if enable_gqa:
        groups = query.size(1) // key.size(1)
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    scores = query @ key.transpose(-2, -1) * (1 / math.sqrt(query.size(-1)) if scale is None else scale)
    sizes: Any = tuple(scores.shape)
    if score_mod is not None:
        scores = _for_all_positions(score_mod, sizes, scores)
    if block_mask is not None:
        lengths = (query.size(-2), key.size(-2))
        if block_mask.seq_lengths != lengths:
            raise ValueError(
                f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={lengths[0]} and "
                f"kv_len={lengths[1]}. As the block mask was created for a different length than you're using it for, you "
                "likely need to create a new block mask."
            )
        scores = scores.masked_fill(~_for_all_positions(block_mask.mask_mod, sizes), -math.inf)
    lse = scores.logsumexp(-1)
    # A query that attends to nothing gives zeros.
    weights = (scores - lse.masked_fill(lse == -math.inf, 0.0).unsqueeze(-1)).exp()
    output = weights @ value
    if return_aux is not None:
        largest = scores.amax(-1) if return_aux.max_scores else None
        return output, AuxOutput(lse if return_aux.lse else None, largest)
    return (output, lse) if return_lse else output
