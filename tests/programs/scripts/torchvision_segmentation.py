"""Training of a segmentation network and of a small vision transformer of torchvision."""
# kind: models
# requires: torchvision

import torch
from shown import show, train
from torchvision.models import VisionTransformer
from torchvision.models.segmentation import lraspp_mobilenet_v3_large

torch.manual_seed(0)
model = VisionTransformer(32, 8, num_layers=2, num_heads=2, hidden_dim=16, mlp_dim=32, num_classes=5)
images, labels = torch.randn(4, 3, 32, 32), torch.tensor([0, 1, 2, 3])
train(model.parameters(), lambda: torch.nn.functional.cross_entropy(model(images), labels), lr=0.1)

model = lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=3)
masks = (images[:, 0] > 0).long()
show("masks", model.eval()(images)["out"])
model.train()
train(model.parameters(), lambda: torch.nn.functional.cross_entropy(model(images)["out"], masks), steps=4)
