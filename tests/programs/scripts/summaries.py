"""Summaries and counts of operations: torchsummary, thop, ptflops."""
# kind: inspection
# requires: torchsummary thop ptflops

import torch
from ptflops import get_model_complexity_info
from thop import profile
from torchsummary import summary

model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 10)
)
summary(model, (3, 8, 8), device="cpu")
print(profile(model, inputs=(torch.ones(1, 3, 8, 8),), verbose=False))
print(get_model_complexity_info(model, (3, 8, 8), as_strings=False, print_per_layer_stat=False, verbose=False))
