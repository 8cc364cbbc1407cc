"""A Learner of fastai with its callbacks, schedules and metrics."""
# kind: training
# requires: fastai

import fastai.callback.progress
import fastai.callback.schedule  # noqa: F401  adds methods to Learner
import torch
from fastai.data.core import DataLoaders
from fastai.data.load import DataLoader
from fastai.learner import Learner
from fastai.metrics import accuracy
from fastai.optimizer import Adam
from fastai.torch_core import set_seed
from shown import show

set_seed(0, reproducible=True)
x = torch.randn(64, 6)
y = x.argmax(1)
data = list(zip(x, y, strict=True))
loaders = DataLoaders(DataLoader(data, bs=16), DataLoader(data, bs=32))
model = torch.nn.Sequential(torch.nn.Linear(6, 32), torch.nn.ReLU(), torch.nn.Linear(32, 6))
learner = Learner(loaders, model, loss_func=torch.nn.CrossEntropyLoss(), opt_func=Adam, metrics=accuracy)
with learner.no_bar(), learner.no_logging():
    learner.fit_one_cycle(4, 0.02)
    show("recorded", *(float(value) for row in learner.recorder.values for value in row))
    loss, found = learner.validate()
    predictions, targets = learner.get_preds()
show("validated", loss, found)
show("predictions", predictions, torch.equal(targets, y))
