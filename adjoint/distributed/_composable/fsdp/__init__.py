"""`torch.distributed._composable.fsdp`: the former name of `torch.distributed.fsdp`."""

import sys
from importlib import import_module

sys.modules[__name__] = import_module("adjoint.distributed.fsdp")
