"""Removal of channels from a network of torchvision, by torch-pruning."""
# kind: inspection
# requires: torch-pruning torchvision

import torch
import torch_pruning
from shown import show, train
from torchvision.models import resnet18

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
model, images = resnet18(num_classes=4).eval(), torch.randn(2, 3, 32, 32)
show("before", *torch_pruning.utils.count_ops_and_params(model, images))
pruner = torch_pruning.pruner.MagnitudePruner(
    model,
    images,
    importance=torch_pruning.importance.MagnitudeImportance(p=2),
    pruning_ratio=0.5,
    ignored_layers=[model.fc],
)
pruner.step()
show("after", *torch_pruning.utils.count_ops_and_params(model, images))
show("out", model(images), model.conv1)
train(model.train().parameters(), lambda: torch.nn.functional.cross_entropy(model(images), torch.arange(2)), steps=3)
