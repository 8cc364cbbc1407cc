"""Attributions of a small network's outputs, by captum."""
# kind: inspection
# requires: captum

import torch
from captum import attr
from shown import show

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Conv2d(1, 4, 3, padding=1),
    torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(2),
    torch.nn.Flatten(),
    torch.nn.Linear(16, 3),
)
images = torch.randn(2, 1, 6, 6, requires_grad=True)
for name in ("IntegratedGradients", "Saliency", "InputXGradient", "GuidedBackprop", "Deconvolution", "DeepLift"):
    show(name, getattr(attr, name)(model).attribute(images, target=1))
show("ShapleyValueSampling", tuple(attr.ShapleyValueSampling(model).attribute(images, target=1, n_samples=2).shape))
show("Occlusion", attr.Occlusion(model).attribute(images, target=1, sliding_window_shapes=(1, 3, 3), strides=(1, 3, 3)))
show("FeatureAblation", attr.FeatureAblation(model).attribute(images, target=1))
show("GradCam", attr.LayerGradCam(model, model[0]).attribute(images, target=1))
show("LayerIntegrated", attr.LayerIntegratedGradients(model, model[0]).attribute(images, target=1))
show("LayerActivation", attr.LayerActivation(model, model[1]).attribute(images))
show("NeuronGradient", attr.NeuronGradient(model, model[0]).attribute(images, (1, 2, 2)))
