"""Vision transformers of vit-pytorch."""
# kind: models
# requires: vit-pytorch

import torch
from shown import show, train
from vit_pytorch import SimpleViT, ViT
from vit_pytorch.cct import CCT

images, labels = torch.linspace(-1, 1, 4 * 3 * 32 * 32).reshape(4, 3, 32, 32).sin(), torch.tensor([0, 1, 2, 3])
sizes = {"image_size": 32, "patch_size": 8, "num_classes": 4, "dim": 16, "depth": 2, "heads": 2, "mlp_dim": 32}
for make in (
    lambda: ViT(**sizes, dim_head=8, dropout=0.1, emb_dropout=0.1),
    lambda: SimpleViT(**sizes),
    lambda: CCT(img_size=32, embedding_dim=16, n_conv_layers=1, num_layers=2, num_heads=2, mlp_ratio=2, num_classes=4),
):
    torch.manual_seed(0)
    model = make()
    show(type(model).__name__, model.eval()(images))
    model.train()
    train(model.parameters(), lambda m=model: torch.nn.functional.cross_entropy(m(images), labels), steps=10)
