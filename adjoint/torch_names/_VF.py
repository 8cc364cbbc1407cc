"""`torch._VF`: the functions of `torch`, under the name by which modules call them."""

from typing import Any

import adjoint as torch


def __getattr__(name: str) -> Any:
    return getattr(torch, name)
