"""Networks from small packages: SIREN, equivariant graphs, Perceiver, Kolmogorov-Arnold."""
# kind: models
# requires: siren-pytorch egnn-pytorch perceiver-pytorch
# cases: siren egnn perceiver

import sys

import torch
from shown import show, train

torch.manual_seed(0)
if sys.argv[1] == "siren":
    from siren_pytorch import SirenNet, SirenWrapper

    model = SirenWrapper(SirenNet(2, 16, 3, num_layers=3), image_width=8, image_height=8)
    image = torch.rand(1, 3, 8, 8)
    train(model.parameters(), lambda: model(image), lr=0.001)
    show("image", model())
elif sys.argv[1] == "egnn":
    from egnn_pytorch import EGNN, EGNN_Network

    features, places = torch.randn(1, 8, 6), torch.randn(1, 8, 3)
    show("layer", *EGNN(dim=6, m_dim=4)(features, places))
    model = EGNN_Network(num_tokens=5, dim=8, depth=2, num_nearest_neighbors=3)
    tokens = torch.randint(0, 5, (1, 8))
    train(model.parameters(), lambda: model(tokens, places)[0].square().mean(), steps=8)
else:
    from perceiver_pytorch import Perceiver, PerceiverIO

    model = Perceiver(
        input_channels=3,
        num_freq_bands=2,
        depth=1,
        max_freq=4.0,
        num_latents=4,
        latent_dim=8,
        latent_heads=2,
        latent_dim_head=4,
        cross_dim_head=4,
        num_classes=3,
    )
    images = torch.randn(2, 8, 8, 3)
    train(model.parameters(), lambda: torch.nn.functional.cross_entropy(model(images), torch.arange(2)), steps=8)
    model = PerceiverIO(
        dim=8,
        queries_dim=6,
        logits_dim=5,
        depth=1,
        num_latents=4,
        latent_dim=8,
        latent_heads=2,
        latent_dim_head=4,
        cross_dim_head=4,
    )
    show("queried", model(torch.randn(2, 10, 8), queries=torch.randn(7, 6)))
