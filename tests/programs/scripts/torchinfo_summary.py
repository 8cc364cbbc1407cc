"""Summaries of models by torchinfo."""
# kind: inspection
# requires: torchinfo

import torch
from torchinfo import summary

model = torch.nn.Sequential(
    torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 10)
)
columns = ("input_size", "output_size", "num_params", "kernel_size", "mult_adds", "trainable")
print(summary(model, input_size=(2, 1, 8, 8), col_names=columns, verbose=0))
print(summary(torch.nn.LSTM(4, 8, 2, batch_first=True), input_size=(2, 5, 4), verbose=0))
encoder = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)
print(summary(encoder, input_data=torch.ones(1, 3, 8), depth=4, verbose=0))
