"""Metrics of torchmetrics, for single batches and for all batches."""
# kind: training
# requires: torchmetrics

import torch
import torchmetrics
from shown import show
from torchmetrics import classification, image, regression, retrieval

torch.manual_seed(0)
classes = torchmetrics.MetricCollection(
    [
        classification.MulticlassAccuracy(5),
        classification.MulticlassF1Score(5),
        classification.MulticlassAUROC(5),
        classification.MulticlassAveragePrecision(5),
        classification.MulticlassConfusionMatrix(5),
        classification.MulticlassCalibrationError(5),
        classification.MulticlassMatthewsCorrCoef(5),
    ]
)
numbers = torchmetrics.MetricCollection(
    [regression.MeanSquaredError(), regression.R2Score(), regression.PearsonCorrCoef(), regression.SpearmanCorrCoef()]
)
images = [image.PeakSignalNoiseRatio(data_range=1.0), image.StructuralSimilarityIndexMeasure(data_range=1.0)]
ranks = retrieval.RetrievalMRR()
for _ in range(3):
    scores, labels = torch.randn(20, 5).softmax(1), torch.randint(0, 5, (20,))
    classes.update(scores, labels)
    numbers.update(scores[:, 0], scores[:, 0] + 0.1 * scores[:, 1])
    first = torch.rand(2, 3, 32, 32)
    for metric in images:
        metric.update(first, (first + 0.1 * torch.rand_like(first)).clamp(0, 1))
    ranks.update(scores[:, 0], labels == 0, indexes=torch.arange(20) % 4)
for name, value in {**classes.compute(), **numbers.compute()}.items():
    show(name, value)
show("images", *(metric.compute() for metric in images))
show("ranks", ranks.compute())
mean = torchmetrics.MeanMetric()
for value in (1.0, 2.0, 4.0):
    mean(value)
show("mean", mean.compute())
