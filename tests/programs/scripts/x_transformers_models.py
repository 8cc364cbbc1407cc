"""A decoder of x-transformers with rotary positions and other variants, trained to continue sequences."""
# kind: models
# requires: x-transformers

import torch
from shown import show, train
from x_transformers import AutoregressiveWrapper, Decoder, Encoder, TransformerWrapper

torch.manual_seed(0)
tokens = torch.randint(0, 32, (4, 17))
for options in (
    {"rotary_pos_emb": True},
    {"alibi_pos_bias": True, "ff_glu": True},
    {"use_rmsnorm": True, "attn_qk_norm": True},
):
    torch.manual_seed(0)
    layers = Decoder(dim=16, depth=2, heads=2, attn_dim_head=8, **options)
    model = AutoregressiveWrapper(TransformerWrapper(num_tokens=32, max_seq_len=32, attn_layers=layers))
    train(model.parameters(), lambda m=model: m(tokens), lr=0.1)
encoder = TransformerWrapper(
    num_tokens=32, max_seq_len=32, attn_layers=Encoder(dim=16, depth=1, heads=2), return_only_embed=True
)
show("encoded", encoder.eval()(tokens, mask=torch.ones(4, 17, dtype=torch.bool)))
