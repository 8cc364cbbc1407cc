"""Wavelets of pytorch-wavelets: real, complex and in one dimension."""
# kind: mathematics
# requires: pytorch-wavelets

import torch
from pytorch_wavelets import DTCWTForward, DTCWTInverse, DWT1DForward, DWTForward, DWTInverse
from shown import show

torch.manual_seed(0)
x = torch.randn(1, 2, 16, 16, requires_grad=True)
low, high = DWTForward(J=2, wave="db2", mode="symmetric")(x)
show("wavelets", low, *high, DWTInverse(wave="db2", mode="symmetric")((low, high)))
show("gradient", *torch.autograd.grad(low.square().sum() + high[0].abs().sum(), x))
low, high = DTCWTForward(J=2, biort="near_sym_b", qshift="qshift_b")(x)
show("complex", low, *high, DTCWTInverse(biort="near_sym_b", qshift="qshift_b")((low, high)))
show("line", *DWT1DForward(wave="haar", J=1)(x[0])[1])
