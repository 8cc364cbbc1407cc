"""Networks of segmentation-models-pytorch and its Dice loss."""
# kind: models
# requires: segmentation-models-pytorch
# cases: Unet FPN Linknet PSPNet DeepLabV3Plus

import sys

import segmentation_models_pytorch as smp
import torch
from shown import show, train

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)  # batch normalization of two images amplifies rounding errors to visible digits
model = getattr(smp, sys.argv[1])("resnet18", encoder_weights=None, in_channels=1, classes=1)
images = torch.randn(2, 1, 64, 64)
masks = (images > 0).double()
loss = smp.losses.DiceLoss("binary")
with torch.no_grad():
    show("masks", model.eval()(images))
model.train()
train(model.parameters(), lambda: loss(model(images), masks), steps=4)
