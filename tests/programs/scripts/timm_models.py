"""Models of timm with random weights: some steps of training on one small batch."""
# kind: models
# requires: timm torchvision
# cases: resnet18 vit_tiny_patch16_224 convnext_atto mobilenetv3_small_050 efficientnet_lite0 mixer_s32_224
# cases: swin_tiny_patch4_window7_224 deit_tiny_patch16_224 regnetx_002 densenet121 cait_xxs24_224 levit_128s

import sys

import timm
import torch
from shown import show, train

name = sys.argv[1]
fixed = {
    "convnext_atto": {},
    "resnet18": {},
    "regnetx_002": {},
    "densenet121": {},
    "mobilenetv3_small_050": {},
    "efficientnet_lite0": {},
}
sizes = {"swin_tiny_patch4_window7_224": {"img_size": 56, "depths": (1, 1, 1, 1)}, "mixer_s32_224": {"img_size": 64}}
sizes |= {"cait_xxs24_224": {"img_size": 32, "depth": 2}, "levit_128s": {"img_size": 224}}
options = fixed.get(name, sizes.get(name, {"img_size": 32, "depth": 3}))

if name in (
    "efficientnet_lite0",
    "densenet121",
):  # the training of these models amplifies rounding errors to visible digits
    torch.set_default_dtype(torch.float64)
torch.manual_seed(0)
model = timm.create_model(name, num_classes=5, **options)
size = 224 if name == "levit_128s" else options.get("img_size", 64)
images, labels = torch.randn(4, 3, size, size), torch.tensor([0, 1, 2, 3])
show("parameters", sum(p.numel() for p in model.parameters()))
model.eval()
with torch.no_grad():
    show("scores", model(images))
model.train()
train(model.parameters(), lambda: torch.nn.functional.cross_entropy(model(images), labels), steps=5)
