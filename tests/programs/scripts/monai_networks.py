"""Networks, losses, metrics and transforms of monai on volumes."""
# kind: models
# requires: monai

import torch
from monai.inferers import sliding_window_inference
from monai.losses import DiceCELoss, FocalLoss
from monai.metrics import DiceMetric
from monai.networks.nets import DenseNet121, UNet
from monai.transforms import Compose, NormalizeIntensity, RandFlip, RandGaussianNoise, Resize
from shown import show, train

torch.manual_seed(0)
volume = torch.randn(2, 1, 16, 16, 16)
labels = (volume > 0.5).float()
model = UNet(spatial_dims=3, in_channels=1, out_channels=2, channels=(4, 8), strides=(2,), num_res_units=1)
loss = DiceCELoss(to_onehot_y=True, softmax=True)
train(model.parameters(), lambda: loss(model(volume), labels), steps=8, lr=0.05)
show("focal", FocalLoss(to_onehot_y=True)(model(volume), labels))
with torch.no_grad():
    whole = sliding_window_inference(volume, (8, 8, 8), 4, model, overlap=0.25)
    show("windows", whole)
metric = DiceMetric(include_background=False)
metric(whole.argmax(1, keepdim=True), labels)
show("dice", metric.aggregate())
change = Compose([NormalizeIntensity(), Resize((8, 8, 8)), RandFlip(1.0, 0), RandGaussianNoise(1.0)]).set_random_state(
    0
)
show("changed", change(volume[0]).as_tensor())
show(
    "dense",
    DenseNet121(
        spatial_dims=2, in_channels=1, out_channels=2, init_features=8, growth_rate=4, block_config=(1, 1)
    ).eval()(volume[:, :, 0]),
)
