"""Models of torchvision with random weights: some steps of training on one small batch."""
# kind: models
# requires: torchvision
# cases: resnet18 mobilenet_v3_small squeezenet1_1 densenet121 efficientnet_b0 convnext_tiny

import sys

import torch
import torchvision
from shown import show, train

name = sys.argv[1]
torch.manual_seed(0)
torch.set_default_dtype(torch.float64)  # batch normalization of four images amplifies rounding errors to visible digits
model = torchvision.models.get_model(name, weights=None, num_classes=5)
images, labels = torch.randn(4, 3, 64, 64), torch.tensor([0, 1, 2, 3])
model.eval()
with torch.no_grad():
    show("scores", model(images))
model.train()
train(model.parameters(), lambda: torch.nn.functional.cross_entropy(model(images), labels), steps=3, lr=0.0001)
