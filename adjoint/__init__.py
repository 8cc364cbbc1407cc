"""Automatic differentiation with the semantics and the API of `torch.autograd`, in readable Python on NumPy.

>>> import adjoint as torch
>>> x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> y = (x * x).sum()
>>> y.backward()
>>> x.grad
tensor([2., 4., 6.])
"""

from math import e, inf, nan, pi

from ._runtime import places as _places  # first, because it finds all other modules
from ._runtime.sequence import note_calls_if_graphs_may_be_drawn as _note_calls_if_graphs_may_be_drawn
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

_note_calls_if_graphs_may_be_drawn()
_registry.stand_in_for_methods()

newaxis = None

_MODULES = tuple(
    """
    __config__ __future__ _C _dynamo _functorch _inductor _logging _tensor_str _utils _vmap_internals accelerator amp ao
    array_api as_torch autograd backends compiler cpu cuda distributed distributions export fft func functional futures fx hub
    inspect jit library linalg masked mps mtia multiprocessing nn onnx operators ops optim overrides profiler quasirandom
    random return_types serialization signal sparse special storage testing torch_version types utils version xpu
    """.split()
)
_FOREACH = tuple(
    f"_foreach_{name}{ending}"
    for name in (
        "abs acos add addcdiv addcmul asin atan ceil clamp_max clamp_min copy cos cosh digamma div erf erfc exp expm1 floor frac "
        "clone lerp lgamma log log10 log1p log2 max maximum minimum mm mul neg norm pow powsum reciprocal round rsqrt "
        "sigmoid sign sin sinh sqrt sub tan tanh trunc zero"
    ).split()
    for ending in ("", "_")
    if f"{name}{ending}" not in ("copy", "zero", "clone_", "max_", "mm_", "norm_", "powsum_")
)
_NAMES = {
    "version": "__version__",
    "amp": "GradScaler autocast",
    "_higher_order_ops.control_flow": "while_loop",
    "dtypes": (
        "bits16 bits1x8 bits2x4 bits4x2 bits8 chalf complex32 float4_e2m1fn_x2 int1 int2 int3 int4 int5 int6 int7 qint32 qint8 "
        "quint2x4 quint4x2 quint8 uint1 uint2 uint3 uint4 uint5 uint6 uint7"
    ),
    "private_functions": (
        "_adaptive_avg_pool2d _adaptive_avg_pool3d _conj _conj_physical _grid_sampler_2d_cpu_fallback _logcumsumexp "
        "_segment_reduce _stack"
    ),
    "as_torch": "install_as_torch",
    "autograd": "enable_grad inference_mode no_grad set_grad_enabled",
    "compiler": "_disable_dynamo compile",
    "foreach": " ".join(_FOREACH),
    "func": "vmap",
    "futures": "Future",
    "jit": "ScriptFunction ScriptModule fork wait",
    "nn.functional.enumerated": "conv_tbc native_channel_shuffle",
    "nn.functional.grouped": "_grouped_mm",
    "printing": "set_printoptions",
    "random": "Generator default_generator get_rng_state initial_seed manual_seed seed set_rng_state",
    "serialization": "load save",
    "storage": (
        "BFloat16Storage BoolStorage ByteStorage CharStorage ComplexDoubleStorage ComplexFloatStorage DoubleStorage FloatStorage "
        "HalfStorage IntStorage LongStorage ShortStorage TypedStorage UntypedStorage _storage_classes "
        "_tensor_classes"
    ),
}
"""The names, by module, of which `torch` is not the home in the table of places."""

_PLACES = {name: module for name, module in _places.at_home().items() if name not in globals()}
_PLACES |= {name: module for module, names in _NAMES.items() for name in names.split()}
del globals()["tensor"]  # the module: `tensor` is a function
__getattr__, __dir__ = _registry.PUBLIC["torch"].as_module(globals(), _MODULES, _PLACES)
_places.place(__import__("sys").modules[__name__])
