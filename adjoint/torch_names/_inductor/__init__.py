"""`torch._inductor`: names that programs use to set options of PyTorch's compiler. They have no effect."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from adjoint._runtime.first_use import further_names
from adjoint.compiler.options import Settings

__all__ = ["config", "list_mode_options", "list_options"]

config = Settings(
    coordinate_descent_tuning=False,
    cpp=SimpleNamespace(threads=-1, simdlen=None, enable_kernel_profile=False),
    cpp_wrapper=False,
    debug=False,
    epilogue_fusion=True,
    fallback_random=False,
    force_disable_caches=False,
    freezing=False,
    fx_graph_cache=True,
    max_autotune=False,
    max_autotune_gemm=False,
    max_autotune_pointwise=False,
    permute_fusion=False,
    pattern_matcher=True,
    shape_padding=True,
    size_asserts=True,
    trace=SimpleNamespace(enabled=False, graph_diagram=False),
    triton=SimpleNamespace(cudagraphs=False, cudagraph_trees=True, unique_kernel_names=True),
)
"""Settings that programs may change. They have no effect."""
_MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "lite": {},
    "reduce-overhead": {"triton.cudagraphs": True},
    "max-autotune-no-cudagraphs": {"max_autotune": True, "coordinate_descent_tuning": True},
    "max-autotune": {"max_autotune": True, "triton.cudagraphs": True, "coordinate_descent_tuning": True},
}


def list_mode_options(mode: str | None = None, dynamic: bool | None = None) -> dict[str, Any]:
    """Return the options that each mode of `torch.compile`, or one mode, sets in PyTorch."""
    return _MODES[mode] if mode else {**_MODES}


def list_options() -> list[str]:
    """Return the names of the options of `torch.compile`."""
    return sorted(vars(config))


further_names(__name__, {"config": config})  # type: ignore[dict-item]
