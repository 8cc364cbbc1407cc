"""Spiking neurons of snntorch, trained through surrogate gradients."""
# kind: layers
# requires: snntorch

import snntorch
import torch
from shown import show, train
from snntorch import surrogate

torch.manual_seed(0)
x, labels = torch.rand(10, 4, 6), torch.arange(4) % 3
first, second = torch.nn.Linear(6, 16), torch.nn.Linear(16, 3)
hidden, out = (snntorch.Leaky(beta=0.9, spike_grad=surrogate.fast_sigmoid(), learn_beta=True) for _ in range(2))


def scores():
    total, a, b = 0.0, hidden.init_leaky(), out.init_leaky()
    for step in x:
        spikes, a = hidden(first(step), a)
        spikes, b = out(second(spikes), b)
        total = total + spikes + b
    return total


show("scores", scores())
train(
    [*first.parameters(), *second.parameters(), hidden.beta],
    lambda: torch.nn.functional.cross_entropy(scores(), labels),
    steps=8,
    lr=0.05,
)
