"""Automatic differentiation with the semantics and the API of `torch.autograd`, in readable Python on NumPy.

>>> import adjoint as torch
>>> x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> y = (x * x).sum()
>>> y.backward()
>>> x.grad
tensor([2., 4., 6.])
"""

from math import e, inf, nan, pi

from . import late_bound as _late_bound
from .device import (
    Size,
    channels_last,
    channels_last_3d,
    contiguous_format,
    device,
    jagged,
    layout,
    memory_format,
    preserve_format,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from .dispatch import registry as _registry
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
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
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
from .tensor import Tensor

_late_bound.LATE.wrap_public_functions = _late_bound.importing("adjoint.overrides")
_registry.stand_in_for_methods()

newaxis = None

_MODULES = tuple(
    """
    __config__ _C _dynamo _utils accelerator amp ao as_torch autograd backends compiler cpu cuda distributed distributions fft
    func futures fx hub inspect jit library linalg multiprocessing
    nn notices onnx operators ops optim overrides profiler random serialization
    signal special storage testing torch_version types utils version
    """.split()
)
_NAMES = {
    "_version": "__version__",
    "amp": (
        "GradScaler autocast autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache get_autocast_cpu_dtype "
        "get_autocast_dtype get_autocast_gpu_dtype is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled "
        "set_autocast_cache_enabled set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled "
        "set_autocast_gpu_dtype"
    ),
    "_utils": "_assert",
    "as_torch": "install_as_torch",
    "autograd": "enable_grad inference_mode is_grad_enabled is_inference_mode_enabled no_grad set_grad_enabled",
    "autograd.debug.anomaly_mode": "is_anomaly_check_nan_enabled is_anomaly_enabled set_anomaly_enabled",
    "compiler": "compile",
    "foreach": (
        "_foreach_abs _foreach_abs_ _foreach_acos _foreach_acos_ _foreach_add _foreach_add_ _foreach_addcdiv "
        "_foreach_addcdiv_ _foreach_addcmul _foreach_addcmul_ _foreach_asin _foreach_asin_ _foreach_atan "
        "_foreach_atan_ _foreach_ceil _foreach_ceil_ _foreach_clamp_max _foreach_clamp_max_ _foreach_clamp_min "
        "_foreach_clamp_min_ _foreach_copy_ _foreach_cos _foreach_cos_ _foreach_cosh _foreach_cosh_ _foreach_digamma "
        "_foreach_digamma_ _foreach_div _foreach_div_ _foreach_erf _foreach_erf_ _foreach_erfc _foreach_erfc_ "
        "_foreach_exp _foreach_exp_ _foreach_expm1 _foreach_expm1_ _foreach_floor _foreach_floor_ _foreach_frac "
        "_foreach_frac_ _foreach_lerp _foreach_lerp_ _foreach_lgamma _foreach_lgamma_ _foreach_log _foreach_log_ "
        "_foreach_log10 _foreach_log10_ _foreach_log1p _foreach_log1p_ _foreach_log2 _foreach_log2_ _foreach_max "
        "_foreach_maximum _foreach_maximum_ _foreach_minimum _foreach_minimum_ _foreach_mul _foreach_mul_ "
        "_foreach_neg _foreach_neg_ _foreach_norm _foreach_pow _foreach_pow_ _foreach_reciprocal _foreach_reciprocal_ "
        "_foreach_round _foreach_round_ _foreach_rsqrt _foreach_rsqrt_ _foreach_sigmoid _foreach_sigmoid_ "
        "_foreach_sign _foreach_sign_ _foreach_sin _foreach_sin_ _foreach_sinh _foreach_sinh_ _foreach_sqrt "
        "_foreach_sqrt_ _foreach_sub _foreach_sub_ _foreach_tan _foreach_tan_ _foreach_tanh _foreach_tanh_ "
        "_foreach_trunc _foreach_trunc_ _foreach_zero_"
    ),
    "func": "vmap",
    "jit": "ScriptFunction ScriptModule fork wait",
    "kernels.runtime.parallel": "get_num_threads set_num_threads",
    "printing": "set_printoptions",
    "random": "Generator default_generator get_rng_state initial_seed manual_seed seed set_rng_state",
    "serialization": "load save",
    "storage": "TypedStorage UntypedStorage",
    "settings": (
        "are_deterministic_algorithms_enabled get_deterministic_debug_mode get_float32_matmul_precision get_num_interop_threads "
        "is_deterministic_algorithms_warn_only_enabled is_warn_always_enabled set_deterministic_debug_mode "
        "set_float32_matmul_precision set_flush_denormal set_num_interop_threads set_warn_always use_deterministic_algorithms"
    ),
}
_PLACES = {name: module for module, names in _NAMES.items() for name in names.split()}
del globals()["tensor"]  # the module: `tensor` is a function
__getattr__, __dir__ = _registry.PUBLIC["torch"].as_module(globals(), _MODULES, _PLACES)
