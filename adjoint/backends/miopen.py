"""`torch.backends.miopen`: switches of MIOpen, which is not used."""

from .switches import flags_of, set_flags_of

immediate = False
flags = flags_of(__name__, immediate=False)
set_flags = set_flags_of(__name__, "immediate")
