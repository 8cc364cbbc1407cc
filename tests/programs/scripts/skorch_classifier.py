"""A network as a classifier of scikit-learn, by skorch: training, a pipeline, and cross-validation."""
# kind: training
# requires: skorch scikit-learn

import numpy
import torch
from shown import show
from sklearn.datasets import make_classification
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier

torch.manual_seed(0)
x, y = make_classification(200, 8, random_state=0)
x, y = x.astype(numpy.float32), y.astype(numpy.int64)
network = NeuralNetClassifier(
    lambda: torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2)),
    criterion=torch.nn.CrossEntropyLoss,
    optimizer=torch.optim.Adam,
    lr=0.01,
    max_epochs=5,
    verbose=0,
)
pipeline = make_pipeline(StandardScaler(), network)
pipeline.fit(x, y)
show("accuracy", pipeline.score(x, y))
show("losses", *(float(loss) for loss in network.history[:, "train_loss"]))
show("probabilities", torch.tensor(pipeline.predict_proba(x[:4])))
show("cross-validated", *cross_val_score(pipeline, x, y, cv=3).tolist())
