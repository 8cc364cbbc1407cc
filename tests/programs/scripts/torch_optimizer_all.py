"""Optimizers of torch-optimizer on Rosenbrock's function."""
# kind: training
# requires: torch-optimizer

import warnings

import torch
import torch_optimizer
from shown import show

warnings.filterwarnings("ignore")
NAMES = """
A2GradUni AccSGD AdaBound AdaMod AdamP AggMo Apollo DiffGrad Lamb MADGRAD
NovoGrad PID QHAdam QHM RAdam SGDP SGDW Shampoo SWATS Yogi
"""
for name in NAMES.split():
    point = torch.tensor([-1.0, 1.5], requires_grad=True)
    optimizer = getattr(torch_optimizer, name)([point], lr=0.001)
    for _ in range(20):
        optimizer.zero_grad()
        ((1 - point[0]) ** 2 + 10 * (point[1] - point[0] ** 2) ** 2).backward()
        optimizer.step()
    show(name, point)
