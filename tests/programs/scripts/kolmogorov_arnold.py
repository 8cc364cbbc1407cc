"""A Kolmogorov-Arnold network of pykan, fitted by LBFGS."""
# kind: models
# requires: pykan scikit-learn

import torch
from kan import KAN, create_dataset
from shown import show

torch.manual_seed(0)
model = KAN(width=[2, 3, 1], grid=3, k=3, seed=0, auto_save=False)
data = create_dataset(lambda x: (x[:, [0]] * 3).sin() + x[:, [1]] ** 2, n_var=2, train_num=64, test_num=32)
show("before", model(data["train_input"]))
losses = model.fit(data, opt="Adam", steps=10, lr=0.02, lamb=0.001, log=100)
show("losses", *(float(loss) for loss in losses["train_loss"][::3]))
model = model.refine(5)
show("refined", model(data["test_input"]))
