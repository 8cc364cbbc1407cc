"""Attention to neighbouring positions, by local-attention."""
# kind: layers
# requires: local-attention

import torch
from local_attention import LocalAttention
from local_attention.transformer import LocalTransformer
from shown import show, train

torch.manual_seed(0)
q, k, v = (torch.randn(2, 2, 16, 8, requires_grad=True) for _ in range(3))
for options in ({"causal": True}, {"look_forward": 1}, {"use_xpos": True, "causal": True}):
    attention = LocalAttention(dim=8, window_size=4, look_backward=1, dropout=0.0, **options)
    out = attention(q, k, v, mask=torch.ones(2, 16, dtype=torch.bool))
    show("attention", out, *torch.autograd.grad(out.square().sum(), (q, k, v)))
tokens = torch.randint(0, 20, (2, 17))
model = LocalTransformer(num_tokens=20, dim=16, depth=2, max_seq_len=32, local_attn_window_size=4, dim_head=8, heads=2)
train(model.parameters(), lambda: model(tokens, return_loss=True), lr=0.02)
