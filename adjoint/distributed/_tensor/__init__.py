"""`torch.distributed._tensor`: the former name of `torch.distributed.tensor`."""

import sys
from importlib import import_module

for name in ("", ".experimental"):
    sys.modules[f"{__name__}{name}"] = import_module(f"adjoint.distributed.tensor{name}")
