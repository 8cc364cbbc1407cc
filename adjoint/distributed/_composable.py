"""Former names of parts of `torch.distributed` that libraries import.

For example, `_composable.fsdp` is `torch.distributed.fsdp`.
"""

from .._runtime.first_use import further_names
from . import fsdp

further_names(__name__, {"fsdp": fsdp})
