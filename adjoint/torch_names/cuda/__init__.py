"""`adjoint.cuda` on a machine without a GPU. Programs detect that no GPU is available, and use the CPU.

>>> import adjoint as torch
>>> torch.device("cuda" if torch.cuda.is_available() else "cpu")
device(type='cpu')
"""

from typing import Any, NoReturn

from adjoint._runtime.first_use import import_late
from adjoint._runtime.tracebacks import ending_at_caller

_initialized = False


def is_available() -> bool:
    """Return whether a GPU is available. The answer is always False."""
    return False


def is_initialized() -> bool:
    """Return whether a GPU is in use. The answer is always False."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return whether the GPU supports bfloat16. The answer is always False."""
    return False


def is_tf32_supported() -> bool:
    """Return whether the GPU computes in TF32. The answer is always False.

    >>> import adjoint as torch
    >>> torch.cuda.is_tf32_supported()
    False
    """
    return False


def device_count() -> int:
    """Return the number of GPUs, which is 0."""
    return 0


def memory_allocated(device: Any = None) -> int:
    """Return the number of bytes that tensors occupy on a GPU, which is 0."""
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


def empty_cache() -> None:
    """Do nothing, because there is no cached GPU memory."""


def manual_seed(seed: int) -> None:
    """Do nothing, because there is no GPU generator."""


manual_seed_all = manual_seed


def seed() -> None:
    """Do nothing, because there is no GPU generator."""


seed_all = seed


def get_rng_state_all() -> list[Any]:
    """Return the states of the generators of all GPUs, which is an empty list."""
    return []


def set_rng_state_all(new_states: list[Any]) -> None:
    """Do nothing, because there is no GPU generator."""


def ipc_collect() -> None:
    """Do nothing, because there is no GPU memory."""


reset_peak_memory_stats = reset_accumulated_memory_stats = reset_max_memory_allocated = empty_cache


@ending_at_caller
def _unavailable(*args: Any) -> NoReturn:
    """Raise AssertionError, because there is no GPU."""
    raise AssertionError("Torch not compiled with CUDA enabled")


init = synchronize = current_device = set_device = get_device_name = get_device_properties = _unavailable
get_device_capability = current_stream = default_stream = get_rng_state = initial_seed = mem_get_info = _unavailable


def __getattr__(name: str) -> Any:
    """Return the typed constructors, as in `isinstance(x, torch.cuda.FloatTensor)`. These classes have no instances."""
    if name in ("amp", "nvtx"):
        return import_late(f"adjoint.cuda.{name}")
    if name in ("AcceleratorError", "OutOfMemoryError"):
        return getattr(import_late("adjoint.accelerator"), name)
    if name.endswith("Tensor"):
        from adjoint.operators.create.legacy import ON_CUDA

        if name in ON_CUDA:
            return ON_CUDA[name]
    return import_late("adjoint.missing").stand_in(__name__, name, everything=True)
