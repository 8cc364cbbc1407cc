"""An EfficientNet of efficientnet-pytorch."""
# kind: models
# requires: efficientnet-pytorch

import torch
from efficientnet_pytorch import EfficientNet
from shown import show, train

torch.manual_seed(0)
model = EfficientNet.from_name("efficientnet-b0", override_params={"num_classes": 4, "image_size": 64})
images = torch.randn(4, 3, 64, 64)
show("features", model.eval().extract_features(images))
train(model.train().parameters(), lambda: torch.nn.functional.cross_entropy(model(images), torch.arange(4)), steps=3)
