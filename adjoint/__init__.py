"""Automatic differentiation with the semantics and the API of `torch.autograd`, in readable Python on NumPy.

>>> import adjoint as torch
>>> x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> y = (x * x).sum()
>>> y.backward()
>>> x.grad
tensor([2., 4., 6.])
"""

from math import e, inf, nan, pi

from . import _C, autograd, backends, cuda, fft, linalg, operators, ops, special
from . import late_bound as _late_bound
from ._version import __version__
from .autograd import enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad, set_grad_enabled
from .autograd.debug.anomaly_mode import is_anomaly_check_nan_enabled, is_anomaly_enabled, set_anomaly_enabled
from .device import (
    Size,
    channels_last,
    channels_last_3d,
    contiguous_format,
    device,
    layout,
    memory_format,
    preserve_format,
    strided,
)
from .dtypes import (
    bfloat16,
    bool,
    can_cast,
    cdouble,
    cfloat,
    complex64,
    complex128,
    double,
    dtype,
    finfo,
    float,
    float16,
    float32,
    float64,
    get_default_dtype,
    half,
    iinfo,
    int,
    int8,
    int16,
    int32,
    int64,
    long,
    promote_types,
    set_default_dtype,
    short,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .kernels.runtime.parallel import get_num_threads, set_num_threads
from .printing import set_printoptions
from .random import Generator, default_generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from .settings import (
    are_deterministic_algorithms_enabled,
    get_deterministic_debug_mode,
    get_float32_matmul_precision,
    get_num_interop_threads,
    is_deterministic_algorithms_warn_only_enabled,
    is_warn_always_enabled,
    set_deterministic_debug_mode,
    set_float32_matmul_precision,
    set_flush_denormal,
    set_num_interop_threads,
    set_warn_always,
    use_deterministic_algorithms,
)
from .tensor import Tensor

_late_bound.LATE.reduce_array = _late_bound.on_first_use("adjoint.serialization.rebuild", "reduce_array")
_late_bound.LATE.wrap_public_functions = _late_bound.importing("adjoint.overrides")

newaxis = None

_LATER = (
    "distributions",
    "func",
    "inspect",
    "nn",
    "optim",
    "overrides",
    "profiler",
    "serialization",
    "testing",
    "types",
    "utils",
    "version",
)
_LATER_NAMES = {"load": "serialization", "save": "serialization", "vmap": "func"}
del globals()["tensor"]  # the module: `tensor` is a function
_operator, __dir__ = operators.PUBLIC["torch"].as_module(globals(), *_LATER, *_LATER_NAMES)


def __getattr__(name: str) -> object:
    """What is loaded when it is first asked for: operators, and the parts that stand on the names above."""
    from importlib import import_module

    if name in _LATER:
        return import_module(f"{__name__}.{name}")
    if name in _LATER_NAMES:
        value = globals()[name] = getattr(import_module(f"{__name__}.{_LATER_NAMES[name]}"), name)
        return value
    return _operator(name)
