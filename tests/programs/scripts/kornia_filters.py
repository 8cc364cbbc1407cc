"""Images filtered, warped and compared by kornia, with gradients."""
# kind: models
# requires: kornia

import kornia
import torch
from shown import show, train

torch.manual_seed(0)
image = torch.rand(1, 3, 24, 24)
show("blurred", kornia.filters.gaussian_blur2d(image, (5, 5), (1.5, 1.5)), kornia.filters.sobel(image))
show("colours", kornia.color.rgb_to_hsv(image), kornia.color.rgb_to_lab(image), kornia.color.rgb_to_grayscale(image))
show("edges", *kornia.filters.canny(image))
show("rotated", kornia.geometry.transform.rotate(image, torch.tensor([30.0])))
show("corners", kornia.feature.harris_response(image[:, :1]))
show("morphology", kornia.morphology.dilation(image, torch.ones(3, 3)))
augment = kornia.augmentation.AugmentationSequential(
    kornia.augmentation.RandomAffine(20.0, p=1.0),
    kornia.augmentation.ColorJitter(0.1, 0.1, 0.1, 0.1, p=1.0),
    data_keys=["input"],
)
show("augmented", tuple(augment(image).shape))
matrix = torch.eye(3)[None].requires_grad_()
target = kornia.geometry.transform.warp_perspective(
    image, torch.tensor([[[1.0, 0.1, 1.0], [0.0, 1.0, 2.0], [0.0, 0.0, 1.0]]]), (24, 24)
)
train(
    [matrix],
    lambda: (kornia.geometry.transform.warp_perspective(image, matrix, (24, 24)) - target).square().mean(),
    steps=10,
    lr=0.001,
)
show("loss", kornia.losses.ssim_loss(image, target, 5), kornia.losses.total_variation(image))
