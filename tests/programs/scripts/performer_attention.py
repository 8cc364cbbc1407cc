"""Linear attention of performer-pytorch."""
# kind: layers
# requires: performer-pytorch

import torch
from performer_pytorch import FastAttention, Performer, PerformerLM
from shown import show, train

torch.manual_seed(0)
model = PerformerLM(num_tokens=20, max_seq_len=16, dim=16, depth=1, heads=2, dim_head=8, nb_features=16)
tokens = torch.randint(0, 20, (2, 16))
train(model.parameters(), lambda: torch.nn.functional.cross_entropy(model(tokens).transpose(1, 2), tokens), lr=0.1)
q, k, v = (torch.randn(1, 2, 10, 8) for _ in range(3))
show("attention", FastAttention(dim_heads=8, nb_features=16)(q, k, v))
show("layer", Performer(dim=16, depth=1, heads=2, dim_head=8, nb_features=16)(torch.randn(1, 6, 16)))
