"""Computations with hypervectors by torch-hd."""
# kind: mathematics
# requires: torch-hd

import torch
import torchhd
from shown import show

torch.manual_seed(0)
for kind in ("MAP", "HRR", "FHRR", "BSC"):
    vectors = torchhd.random(3, 64, kind)
    bound = torchhd.bind(vectors[0], vectors[1])
    found = torchhd.cosine_similarity(torchhd.bind(bound, torchhd.inverse(vectors[1])), vectors)
    show(
        kind,
        found.argmax(),
        tuple(torchhd.bundle(vectors[0], vectors[2]).shape),
        torchhd.permute(bound, shifts=2).as_subclass(torch.Tensor),
    )
show(
    "levels",
    torchhd.level(4, 32).as_subclass(torch.Tensor),
    torchhd.multiset(torchhd.random(5, 16)).as_subclass(torch.Tensor),
)
model = torchhd.models.Centroid(32, 3)
model.add(torchhd.random(6, 32), torch.arange(6) % 3)
show("centroid", model.weight)
