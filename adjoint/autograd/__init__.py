"""Automatic differentiation: `backward`, `grad`, modes, `Function`, and the graph they work on."""

from ..tape.modes import is_grad_enabled
from . import anomaly_mode, function, functional, grad_mode, graph, methods, profiler, profiler_util
from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .backward import backward, grad
from .explain import Explanation, explain
from .function import Function, NestedIOFunction
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
from .profiler import _profiler_enabled
from .task import is_checkpoint_valid as _is_checkpoint_valid
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
