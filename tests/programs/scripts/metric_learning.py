"""Losses, miners and accuracies of pytorch-metric-learning."""
# kind: training
# requires: pytorch-metric-learning

import torch
from pytorch_metric_learning import distances, losses, miners, reducers
from shown import show, train

torch.manual_seed(0)
x, labels = torch.randn(16, 6), torch.arange(16) % 4
for name, options in {
    "TripletMarginLoss": {"distance": distances.CosineSimilarity(), "reducer": reducers.ThresholdReducer(low=0)},
    "ContrastiveLoss": {},
    "NTXentLoss": {"temperature": 0.2},
    "MultiSimilarityLoss": {},
    "CircleLoss": {"m": 0.4, "gamma": 8},
    "SupConLoss": {},
    "ArcFaceLoss": {"num_classes": 4, "embedding_size": 5},
    "ProxyAnchorLoss": {"num_classes": 4, "embedding_size": 5},
    "LiftedStructureLoss": {},
}.items():
    torch.manual_seed(0)
    model, loss = torch.nn.Linear(6, 5), getattr(losses, name)(**options)
    show(name)
    train(model.parameters(), lambda m=model, l=loss: l(m(x), labels), steps=6)
miner = miners.MultiSimilarityMiner()
pairs = miner(model(x), labels)
show("mined", *(len(part) for part in pairs))
show("with mined", losses.TripletMarginLoss()(model(x), labels, miners.TripletMarginMiner(0.2)(model(x), labels)))
