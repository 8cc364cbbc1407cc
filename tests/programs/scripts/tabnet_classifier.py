"""TabNet on a table, by pytorch-tabnet."""
# kind: training
# requires: pytorch-tabnet

import numpy
import torch
from pytorch_tabnet.tab_model import TabNetClassifier
from shown import show

numbers = numpy.random.default_rng(0).normal(size=(128, 6)).astype("float32")
labels = (numbers[:, 0] > 0).astype("int64")
model = TabNetClassifier(n_d=4, n_a=4, n_steps=2, seed=0, verbose=0, optimizer_params={"lr": 0.02}, device_name="cpu")
model.fit(
    numbers,
    labels,
    eval_set=[(numbers, labels)],
    eval_metric=["logloss"],
    max_epochs=2,
    batch_size=32,
    virtual_batch_size=16,
)
show("history", *(float(loss) for loss in model.history["loss"]))
show("probabilities", torch.tensor(model.predict_proba(numbers[:8])))
show("importances", torch.tensor(model.feature_importances_))
