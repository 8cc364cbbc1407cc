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
    "amp": (
        "GradScaler autocast autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache get_autocast_cpu_dtype "
        "get_autocast_dtype get_autocast_gpu_dtype is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled "
        "set_autocast_cache_enabled set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled "
        "set_autocast_gpu_dtype"
    ),
    "_higher_order_ops.control_flow": "cond while_loop",
    "_checks": (
        "_assert_async _check _check_index _check_is_size _check_not_implemented _check_tensor_all _check_tensor_all_with "
        "_check_type _check_value _check_with _has_compatible_shallow_copy_type _shape_as_tensor"
    ),
    "dtypes": (
        "bits16 bits1x8 bits2x4 bits4x2 bits8 chalf complex32 float4_e2m1fn_x2 int1 int2 int3 int4 int5 int6 int7 qint32 qint8 "
        "quint2x4 quint4x2 quint8 uint1 uint2 uint3 uint4 uint5 uint6 uint7"
    ),
    "private_functions": (
        "_adaptive_avg_pool2d _adaptive_avg_pool3d _add_relu _add_relu_ _addmm_activation _aminmax "
        "_amp_foreach_non_finite_check_and_unscale_ _amp_update_scale_ _assert_tensor_metadata _cast_Byte _cast_Char "
        "_cast_Double _cast_Float _cast_Half _cast_Int _cast_Long _cast_Short _compute_linear_combination _conj _conj_copy "
        "_conj_physical _convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo _debug_has_internal_overlap "
        "_dim_arange _efficientzerotensor _euclidean_dist _fft_c2c _fft_c2r _fft_r2c _fused_sdp_choice "
        "_grid_sampler_2d_cpu_fallback _index_put_impl_ _int_mm _is_all_true _is_any_true _is_zerotensor _lazy_clone "
        "_log_softmax _logcumsumexp _lu_with_info _masked_softmax _native_multi_head_attention _neg_view_copy "
        "_nnpack_available _pack_padded_sequence _reshape_from_tensor _scaled_dot_product_attention_math _segment_reduce "
        "_softmax _sparse_csr_prod _sparse_csr_sum _stack _test_check_tensor _to_cpu _unique _unique2 _unsafe_index "
        "_unsafe_index_put _validate_sparse_compressed_tensor_args _validate_sparse_coo_tensor_args "
        "_weight_int8pack_mm _weight_norm_interface"
    ),
    "_utils": "_assert",
    "accelerator": "AcceleratorError OutOfMemoryError",
    "as_torch": "install_as_torch",
    "autograd": "enable_grad inference_mode is_grad_enabled is_inference_mode_enabled no_grad set_grad_enabled",
    "autograd.anomaly_mode": "is_anomaly_check_nan_enabled is_anomaly_enabled set_anomaly_enabled",
    "compiler": "_disable_dynamo compile",
    "foreach": " ".join(_FOREACH),
    "func": "vmap",
    "futures": "Future",
    "jit": "ScriptFunction ScriptModule fork wait",
    "kernels.runtime.parallel": "get_num_threads set_num_threads",
    "nn.functional.enumerated": (
        "conv_tbc cosine_embedding_loss hinge_embedding_loss instance_norm kl_div margin_ranking_loss native_channel_shuffle "
        "poisson_nll_loss triplet_margin_loss"
    ),
    "nn.functional.grouped": "_grouped_mm _scaled_mm _scaled_mm_v2",
    "nn.functional.recurrent": "gru gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell",
    "printing": "set_printoptions",
    "random": "Generator default_generator get_rng_state initial_seed manual_seed seed set_rng_state",
    "serialization": "load save",
    "storage": (
        "BFloat16Storage BoolStorage ByteStorage CharStorage ComplexDoubleStorage ComplexFloatStorage DoubleStorage FloatStorage "
        "HalfStorage IntStorage LongStorage ShortStorage TypedStorage UntypedStorage _storage_classes "
        "_tensor_classes"
    ),
    "testing": "FileCheck",
    "settings": (
        "are_deterministic_algorithms_enabled get_deterministic_debug_mode get_float32_matmul_precision get_num_interop_threads "
        "is_deterministic_algorithms_warn_only_enabled is_warn_always_enabled set_deterministic_debug_mode "
        "set_float32_matmul_precision set_flush_denormal set_num_interop_threads set_warn_always use_deterministic_algorithms"
    ),
}
_PLACES = {name: module for module, names in _NAMES.items() for name in names.split()}
del globals()["tensor"]  # the module: `tensor` is a function
__getattr__, __dir__ = _registry.PUBLIC["torch"].as_module(globals(), _MODULES, _PLACES)
_places.place(__import__("sys").modules[__name__])
