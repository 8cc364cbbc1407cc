"""Structural similarity as a loss, by pytorch-msssim."""
# kind: inspection
# requires: pytorch-msssim

import torch
from pytorch_msssim import MS_SSIM, SSIM, ms_ssim, ssim
from shown import show, train

torch.manual_seed(0)
target = torch.rand(1, 3, 180, 180)
show("same", ssim(target, target, data_range=1.0), ms_ssim(target, target, data_range=1.0))
for measure in (SSIM(data_range=1.0, channel=3), MS_SSIM(data_range=1.0, channel=3)):
    image = torch.rand(1, 3, 180, 180, generator=torch.Generator().manual_seed(1)).requires_grad_()
    train([image], lambda i=image, m=measure: 1 - m(i, target), steps=5, optimizer=torch.optim.Adam([image], 0.05))
