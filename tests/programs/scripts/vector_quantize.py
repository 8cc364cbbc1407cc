"""Codebooks of vector-quantize-pytorch, which moving averages or gradients train."""
# kind: layers
# requires: vector-quantize-pytorch

import torch
from shown import show, train
from vector_quantize_pytorch import FSQ, LFQ, ResidualVQ, VectorQuantize

x = torch.sin(torch.arange(2 * 12 * 8.0)).reshape(2, 12, 8)
for make in (
    lambda: VectorQuantize(dim=8, codebook_size=6, decay=0.8, commitment_weight=1.0),
    lambda: VectorQuantize(dim=8, codebook_size=6, codebook_dim=4, use_cosine_sim=True),
    lambda: ResidualVQ(dim=8, num_quantizers=2, codebook_size=6),
    lambda: LFQ(dim=8, codebook_size=16, entropy_loss_weight=0.1),
):
    torch.manual_seed(0)
    quantizer, encoder = make(), torch.nn.Linear(8, 8)

    def loss(quantizer=quantizer, encoder=encoder):
        found = quantizer(encoder(x))
        return (found[0] - x).square().mean() + found[2].sum()

    train(encoder.parameters(), loss, steps=10, lr=0.05)
    show("indices", quantizer.eval()(encoder(x))[1][0].flatten()[:8].tolist())
show("finite", *FSQ([8, 5, 5])(x[..., :3]))
