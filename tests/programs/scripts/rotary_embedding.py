"""Rotary embeddings of positions, by rotary-embedding-torch."""
# kind: layers
# requires: rotary-embedding-torch

import torch
from rotary_embedding_torch import RotaryEmbedding
from shown import show

torch.manual_seed(0)
q, k = (torch.randn(1, 2, 6, 8, requires_grad=True) for _ in range(2))
rotary = RotaryEmbedding(dim=8)
rotated = rotary.rotate_queries_or_keys(q)
show("rotated", rotated, rotary.rotate_queries_or_keys(k, offset=3))
show("gradient", *torch.autograd.grad(rotated.square().sum() + rotated[..., 0].sum(), q))
show("scaled", *RotaryEmbedding(dim=8, use_xpos=True).rotate_queries_and_keys(q, k))
learned = RotaryEmbedding(dim=8, learned_freq=True)
learned.rotate_queries_or_keys(q).sin().sum().backward()
show("frequencies", learned.freqs.grad)
