"""Joint transforms of images, boxes and masks by torchvision.transforms.v2."""
# kind: models
# requires: torchvision

import torch
from shown import show
from torchvision import tv_tensors
from torchvision.transforms import v2

torch.manual_seed(0)
image = tv_tensors.Image(torch.randint(0, 256, (3, 40, 60), dtype=torch.uint8))
boxes = tv_tensors.BoundingBoxes([[5, 5, 20, 20], [10, 0, 50, 30]], format="XYXY", canvas_size=(40, 60))
mask = tv_tensors.Mask(torch.randint(0, 3, (40, 60), dtype=torch.uint8))
changes = v2.Compose(
    [
        v2.RandomResizedCrop((32, 32), antialias=True),
        v2.RandomHorizontalFlip(p=1.0),
        v2.ColorJitter(0.2, 0.2, 0.2, 0.05),
        v2.RandomAffine(10, translate=(0.1, 0.1)),
        v2.GaussianBlur(3),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize([0.5] * 3, [0.25] * 3),
    ]
)
image, boxes, mask = changes(image, boxes, mask)
print(type(image).__name__, type(boxes).__name__, type(mask).__name__)
show("image", image)
show("boxes", boxes)
show("mask", mask)
for change in (
    v2.Pad(2),
    v2.CenterCrop(16),
    v2.RandomErasing(p=1.0),
    v2.ElasticTransform(20.0),
    v2.RandomPerspective(p=1.0),
):
    show(type(change).__name__, change(image))
