"""Automatic differentiation: `backward`, `grad`, modes, `Function`, and the graph."""

from typing import Any

from .._runtime.first_use import import_late
from ..tape.modes import is_grad_enabled
from ..tape.saved_attributes import SavedTensor as SavedTensor
from . import anomaly_mode, function, grad_mode, graph, methods
from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .backward import backward, grad
from .function import Function
from .grad_mode import (
    _force_original_view_tracking,
    _unsafe_preserve_version_counter,
    enable_grad,
    enforce_grad_layout_policy,
    inference_mode,
    is_inference_mode_enabled,
    is_multithreading_enabled,
    is_view_replay_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from .gradcheck import gradcheck, gradgradcheck
from .private_names import _engine_run_backward as _engine_run_backward
from .variable import Variable, variable

__all__ = [
    "Explanation",
    "Function",
    "NestedIOFunction",
    "Variable",
    "anomaly_mode",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "enforce_grad_layout_policy",
    "explain",
    "function",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "is_multithreading_enabled",
    "is_view_replay_enabled",
    "methods",
    "no_grad",
    "profiler",
    "profiler_util",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "variable",
]


def __getattr__(name: str) -> Any:
    """Import rarely used names on first use."""
    if name in ("_functions", "functional", "profiler", "profiler_util"):
        return import_late(f"{__name__}.{name}")
    if name == "torch":
        return import_late("adjoint")
    if name in ("Explanation", "explain"):
        return getattr(import_late("adjoint.inspect.explanation"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
