"""Automatic differentiation: `backward`, `grad`, modes, `Function`, and the graph they work on."""

import importlib
from typing import Any

from ..tape.modes import is_grad_enabled
from ..tensor import Tensor as Variable
from . import anomaly_mode, function, grad_mode, graph, methods
from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .backward import backward, grad
from .function import Function
from .grad_mode import (
    enable_grad,
    inference_mode,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from .gradcheck import gradcheck, gradgradcheck

__all__ = [
    "Function",
    "Variable",
    "anomaly_mode",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "function",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "methods",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


def __getattr__(name: str) -> Any:
    """`forward_ad` and `transforms`, imported when first used."""
    if name in ("forward_ad", "transforms"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
