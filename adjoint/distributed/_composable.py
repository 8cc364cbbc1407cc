"""Former names of modules of `torch.distributed`, for libraries that import them.

For example, `_composable.fsdp` is `torch.distributed.fsdp`.
"""

from .._runtime.first_use import further_names
from . import fsdp

further_names(__name__, {"fsdp": fsdp})
