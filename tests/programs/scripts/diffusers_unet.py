"""A small UNet and schedulers of diffusers: training, and generation of images from noise."""
# kind: models
# requires: diffusers
# cases: DDPMScheduler DDIMScheduler DPMSolverMultistepScheduler EulerDiscreteScheduler

import sys

import diffusers
import torch
from shown import show, train

torch.manual_seed(0)
model = diffusers.UNet2DModel(
    sample_size=8,
    in_channels=1,
    out_channels=1,
    block_out_channels=(8, 16),
    layers_per_block=1,
    norm_num_groups=4,
    down_block_types=("DownBlock2D", "AttnDownBlock2D"),
    up_block_types=("AttnUpBlock2D", "UpBlock2D"),
)
scheduler = getattr(diffusers, sys.argv[1])(num_train_timesteps=50)
images = torch.linspace(-1, 1, 64).reshape(1, 1, 8, 8).expand(4, 1, 8, 8)
noise, times = torch.randn(4, 1, 8, 8), torch.tensor([0, 10, 20, 40])
noisy = scheduler.add_noise(images, noise, times)
train(model.parameters(), lambda: (model(noisy, times).sample - noise).square().mean(), steps=8, lr=0.01)
scheduler.set_timesteps(4)
sample = torch.randn(1, 1, 8, 8, generator=torch.Generator().manual_seed(0)) * scheduler.init_noise_sigma
with torch.no_grad():
    for time in scheduler.timesteps:
        guess = model(scheduler.scale_model_input(sample, time), time).sample
        sample = scheduler.step(guess, time, sample).prev_sample
show("made", tuple(sample.shape) if sys.argv[1] == "DDPMScheduler" else sample)
