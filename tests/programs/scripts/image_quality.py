"""Measures of image quality by piqa, and the networks of lpips with random weights."""
# kind: inspection
# requires: piqa lpips

import contextlib
import io

import lpips
import piqa
import torch
from shown import show

torch.manual_seed(0)
first, second = torch.rand(2, 3, 64, 64), torch.rand(2, 3, 64, 64, requires_grad=True)
for measure in (piqa.PSNR(), piqa.SSIM(), piqa.HaarPSI(), piqa.GMSD(), piqa.TV(), piqa.MDSI()):
    value = measure(second) if isinstance(measure, piqa.TV) else measure(first, second)
    show(type(measure).__name__, value, *torch.autograd.grad(value, second))
with contextlib.redirect_stdout(io.StringIO()):
    model = lpips.LPIPS(net="squeeze", pretrained=False, pnet_rand=True)
distance = model(first, second).sum()
show("lpips", distance, *torch.autograd.grad(distance, second))
