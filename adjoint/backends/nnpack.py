"""`torch.backends.nnpack`: a library that is not used."""

from .switches import flags_of, set_flags_of

enabled = True
flags = flags_of(__name__, enabled=False)
set_flags = set_flags_of(__name__, "enabled")
