"""Dictionaries of tensors that behave like tensors, and modules that read and write such dictionaries, by tensordict."""
# kind: models
# requires: tensordict

import torch
from shown import show, train
from tensordict import TensorDict, tensorclass
from tensordict.nn import TensorDictModule, TensorDictSequential

torch.manual_seed(0)
data = TensorDict({"x": torch.randn(4, 3), "more": {"y": torch.arange(4)}}, batch_size=[4])
print(data)
show("parts", data[1:3]["x"], data["more", "y"], data.reshape(2, 2)["x"])
show("stacked", torch.stack([data, data * 2])["x"], torch.cat([data, data]).batch_size)
model = TensorDictSequential(
    TensorDictModule(torch.nn.Linear(3, 8), in_keys=["x"], out_keys=["hidden"]),
    TensorDictModule(lambda h: h.relu().sum(-1), in_keys=["hidden"], out_keys=["out"]),
)
train(model.parameters(), lambda: (model(data.clone())["out"] - 1).square().mean())


@tensorclass
class Pair:
    left: torch.Tensor
    right: torch.Tensor


pair = Pair(left=torch.ones(3), right=torch.zeros(3, 2), batch_size=[3])
show("pair", pair[:2].left, pair.to_tensordict()["right"])
print(
    "mapped",
    torch.vmap(lambda d: d["x"].sum() + d["more", "y"])(data).shape,
    torch.vmap(lambda d: d.clone())(data).batch_size,
)
