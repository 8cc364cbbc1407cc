"""`torch.backends.xnnpack`: a library that is not used."""

enabled = False
