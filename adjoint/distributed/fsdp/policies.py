"""What `fully_shard` is told: in which dtypes to compute and to reduce."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["CPUOffloadPolicy", "MixedPrecisionPolicy", "OffloadPolicy"]


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of a module that is shared out; its parts, their gradients and the optimizer keep the parameters' own.

    Attributes:
        param_dtype: of the gathered parameters, and so of the computation; None: the parameters' own.
        reduce_dtype: in which gradients are reduced; None: that of the computation.
        output_dtype: to which outputs with a point are converted; None: as they are.
        cast_forward_inputs: whether inputs with a point are converted to `param_dtype`.
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Parts stay where they are."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parts are in the memory of the CPU, where they are in any case."""

    pin_memory: bool = True
