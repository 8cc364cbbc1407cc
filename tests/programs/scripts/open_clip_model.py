"""A small CLIP of open-clip-torch and its loss."""
# kind: models
# requires: open-clip-torch

import torch
from open_clip.loss import ClipLoss
from open_clip.model import CLIP
from shown import show, train

torch.manual_seed(0)
model = CLIP(
    embed_dim=16,
    vision_cfg={"image_size": 32, "patch_size": 8, "width": 32, "layers": 2, "head_width": 16},
    text_cfg={"context_length": 8, "vocab_size": 50, "width": 32, "heads": 2, "layers": 2},
)
images, tokens = torch.randn(4, 3, 32, 32), torch.randint(1, 50, (4, 8))
show("images", model.encode_image(images, normalize=True), model.encode_text(tokens, normalize=True))
loss = ClipLoss()
train(model.parameters(), lambda: loss(*model(images, tokens)), steps=8)
