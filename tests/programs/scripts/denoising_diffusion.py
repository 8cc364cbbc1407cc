"""Diffusion by denoising-diffusion-pytorch: training, and the shape of the generated images."""
# kind: models
# requires: denoising-diffusion-pytorch

import torch
from denoising_diffusion_pytorch import GaussianDiffusion, GaussianDiffusion1D, Unet, Unet1D
from shown import show, train

torch.manual_seed(0)
model = Unet(dim=8, dim_mults=(1, 2), channels=1, flash_attn=False, attn_dim_head=4, attn_heads=2)
diffusion = GaussianDiffusion(model, image_size=8, timesteps=10, sampling_timesteps=3)
images = torch.rand(4, 1, 8, 8)
train(model.parameters(), lambda: diffusion(images), steps=5)
show("made", tuple(diffusion.sample(batch_size=2).shape))
model = Unet1D(dim=8, dim_mults=(1, 2), channels=2, attn_dim_head=4, attn_heads=2)
diffusion = GaussianDiffusion1D(model, seq_length=16, timesteps=10)
train(model.parameters(), lambda: diffusion(torch.rand(4, 2, 16)), steps=5)
