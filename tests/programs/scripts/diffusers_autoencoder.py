"""An autoencoder and a conditioned UNet of diffusers."""
# kind: models
# requires: diffusers

import torch
from diffusers import AutoencoderKL, UNet2DConditionModel
from shown import show, train

torch.manual_seed(0)
encoder = AutoencoderKL(
    block_out_channels=(8, 8),
    down_block_types=("DownEncoderBlock2D",) * 2,
    up_block_types=("UpDecoderBlock2D",) * 2,
    latent_channels=2,
    norm_num_groups=4,
)
images = torch.randn(2, 3, 16, 16)
train(encoder.parameters(), lambda: (encoder(images).sample - images).square().mean(), steps=4)
latent = encoder.encode(images).latent_dist
show("latent", latent.mean, latent.kl())
model = UNet2DConditionModel(
    sample_size=8,
    in_channels=2,
    out_channels=2,
    block_out_channels=(8, 16),
    layers_per_block=1,
    norm_num_groups=4,
    cross_attention_dim=6,
    attention_head_dim=4,
    down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
    up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
)
out = model(latent.mean.detach(), torch.tensor([3, 7]), encoder_hidden_states=torch.randn(2, 5, 6)).sample
show("out", out)
out.square().sum().backward()
show("gradient", model.conv_in.weight.grad)
