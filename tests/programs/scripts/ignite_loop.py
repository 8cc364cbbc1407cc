"""Engines, metrics and handlers of pytorch-ignite."""
# kind: training
# requires: pytorch-ignite

import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import EarlyStopping
from ignite.metrics import Accuracy, ConfusionMatrix, Loss, RunningAverage
from shown import show
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(96, 6)
data = DataLoader(TensorDataset(x, x.argmax(1)), batch_size=16)
model = torch.nn.Sequential(torch.nn.Linear(6, 32), torch.nn.ReLU(), torch.nn.Linear(32, 6))
loss = torch.nn.CrossEntropyLoss()
trainer = create_supervised_trainer(model, torch.optim.Adam(model.parameters(), 0.02), loss)
RunningAverage(output_transform=lambda value: value).attach(trainer, "average")
metrics = {"accuracy": Accuracy(), "loss": Loss(loss), "confusion": ConfusionMatrix(6)}
evaluator = create_supervised_evaluator(model, metrics=metrics)
evaluator.add_event_handler(Events.COMPLETED, EarlyStopping(2, lambda engine: -engine.state.metrics["loss"], trainer))


@trainer.on(Events.EPOCH_COMPLETED)
def evaluate(engine):
    evaluator.run(data)
    show(f"epoch {engine.state.epoch}", engine.state.metrics["average"], *evaluator.state.metrics.values())


trainer.run(data, max_epochs=4)
