"""Transforms of volumes by torchio, and Fourier sums at positions between grid points by torchkbnufft."""
# kind: models
# requires: torchio torchkbnufft

import torch
import torchio
import torchkbnufft
from shown import show

torch.manual_seed(0)
subject = torchio.Subject(
    image=torchio.ScalarImage(tensor=torch.rand(1, 12, 12, 8)),
    labels=torchio.LabelMap(tensor=torch.rand(1, 12, 12, 8) > 0.5),
)
for change in (torchio.ZNormalization(), torchio.CropOrPad(10), torchio.Resample(2), torchio.Flip(0)):
    show(type(change).__name__, change(subject)["image"].data)
for change in (torchio.RandomNoise(), torchio.RandomAffine(), torchio.RandomBlur()):
    show(type(change).__name__, tuple(change(subject)["labels"].data.shape))
image = torch.randn(1, 1, 8, 8, dtype=torch.complex64)
places = torch.rand(2, 20) * 6 - 3
forward, back = torchkbnufft.KbNufft((8, 8)), torchkbnufft.KbNufftAdjoint((8, 8))
values = forward(image, places)
show("values", values, back(values, places))
image.requires_grad_()
forward(image, places).abs().sum().backward()
show("gradient", image.grad)
