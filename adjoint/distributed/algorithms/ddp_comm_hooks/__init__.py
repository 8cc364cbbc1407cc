"""`torch.distributed.algorithms.ddp_comm_hooks`: communication hooks of `DistributedDataParallel`, ready to register."""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import Any

from . import default_hooks, powerSGD_hook
from . import default_hooks as default
from . import powerSGD_hook as powerSGD


class DDPCommHookType(Enum):
    """The hooks by name. Each value is a function that registers its hook with a model and a state."""

    ALLREDUCE = partial(lambda model, state: model.register_comm_hook(state, default.allreduce_hook))
    FP16_COMPRESS = partial(lambda model, state: model.register_comm_hook(state, default.fp16_compress_hook))
    BF16_COMPRESS = partial(lambda model, state: model.register_comm_hook(state, default.bf16_compress_hook))
    POWER_SGD = partial(lambda model, state: model.register_comm_hook(_of_rank(state, 1), powerSGD.powerSGD_hook))
    POWER_SGD_RANK2 = partial(lambda model, state: model.register_comm_hook(_of_rank(state, 2), powerSGD.powerSGD_hook))
    BATCHED_POWER_SGD = partial(
        lambda model, state: model.register_comm_hook(_of_rank(state, 1), powerSGD.batched_powerSGD_hook)
    )


def _of_rank(state: Any, rank: int) -> Any:
    return powerSGD.PowerSGDState(state, matrix_approximation_rank=rank)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Register a hook of `DDPCommHookType` with a `DistributedDataParallel`."""
    comm_hook_type.value(model=model, state=state)
