"""`torch.backends.cuda`: options of CUDA's libraries, which are not used."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from adjoint._runtime.absent import absent

from .switches import never as is_available

is_built = is_available


class _Matmul:
    """Options of matrix products."""

    allow_tf32 = False
    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True
    allow_fp16_accumulation = False
    fp32_precision = "none"


class _PlanCache:
    """The cache of plans of Fourier transforms, which is empty."""

    size, max_size = 0, 4096

    def clear(self) -> None:
        """Do nothing, because the cache is empty."""


matmul, cufft_plan_cache = _Matmul(), _PlanCache()
_ways = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True, "fp16_bf16_reduction_math": False}


def _switch(name: str) -> Any:
    def enabled() -> bool:
        """Return whether this attention implementation may be used. The option has no effect."""
        return _ways[name]

    def enable(enabled: bool) -> None:
        """Set the option, which has no effect."""
        _ways[name] = enabled

    return enabled, enable


flash_sdp_enabled, enable_flash_sdp = _switch("flash")
mem_efficient_sdp_enabled, enable_mem_efficient_sdp = _switch("mem_efficient")
math_sdp_enabled, enable_math_sdp = _switch("math")
cudnn_sdp_enabled, enable_cudnn_sdp = _switch("cudnn")
fp16_bf16_reduction_math_sdp_allowed, allow_fp16_bf16_reduction_math_sdp = _switch("fp16_bf16_reduction_math")

SDPAParams = absent("torch.backends.cuda.SDPAParams", "there is no GPU")


def can_use_flash_attention(params: Any, debug: bool = False) -> bool:
    """Return whether CUDA's flash attention can be used. The answer is always False."""
    return False


can_use_efficient_attention = can_use_cudnn_attention = is_flash_attention_available_for = can_use_flash_attention


def is_flash_attention_available() -> bool:
    """Return whether CUDA's flash attention was built. The answer is always False."""
    return False


def preferred_linalg_library(backend: Any = None) -> str:
    """Return the linear algebra library of a GPU. No such library exists."""
    return "default"


preferred_blas_library = preferred_rocm_fa_library = preferred_linalg_library


@contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[None]:
    """A context that sets the options of attention implementations, which have no effect."""
    before = dict(_ways)
    _ways.update(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)
    try:
        yield
    finally:
        _ways.update(before)
