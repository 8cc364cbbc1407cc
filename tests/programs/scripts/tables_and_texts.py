"""Wide and deep models of tables by pytorch-widedeep, and click models by deepctr-torch."""
# kind: training
# requires: deepctr-torch
# cases: DeepFM DCN xDeepFM AutoInt

import sys

import numpy
import torch
from deepctr_torch import models
from deepctr_torch.inputs import DenseFeat, SparseFeat, get_feature_names
from shown import show

random = numpy.random.default_rng(0)
data = {"user": random.integers(0, 10, 64), "item": random.integers(0, 8, 64), "age": random.random(64)}
columns = [SparseFeat("user", 10, embedding_dim=4), SparseFeat("item", 8, embedding_dim=4), DenseFeat("age", 1)]
model = getattr(models, sys.argv[1])(columns, columns, dnn_hidden_units=(16,), seed=0, device="cpu")
model.compile("adam", "binary_crossentropy", metrics=["auc"])
inputs = {name: data[name] for name in get_feature_names(columns)}
labels = (data["age"] > 0.5).astype("float32")
history = model.fit(inputs, labels, batch_size=16, epochs=3, verbose=0, shuffle=False)
show("losses", *map(float, history.history["loss"]))
show("predicted", torch.tensor(model.predict(inputs, batch_size=64)))
