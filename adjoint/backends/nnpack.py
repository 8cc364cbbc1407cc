"""`torch.backends.nnpack`: a library that is not used."""

from .switches import flags_of, never, set_flags_of

enabled = True
is_available = never
flags = flags_of(__name__, enabled=False)
set_flags = set_flags_of(__name__, "enabled")
