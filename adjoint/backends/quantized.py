"""`torch.backends.quantized`: quantized tensors, which there are none of."""

engine = "none"
supported_engines = ["none"]
