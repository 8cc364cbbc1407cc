"""`autocast`: a context in which products use a half-precision type, and functions that need float32 use float32.

The lists of functions are PyTorch's lists for the CPU. While autocast is enabled, every call of a public function
passes through it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import adjoint as torch

from .._runtime.late_bound import LATE
from .._runtime.tracebacks import shorten, warn
from .._runtime.uninterrupted import uninterrupted
from ..device import device
from ..dtypes import bfloat16, dtype, float16, float32, float64, from_numpy
from ..kernels.runtime.meta_array import Meta
from ..operators.linalg.einsum import einsum_multiplies_matrices, tensordot_multiplies_matrices
from ..operators.memory.conversion import converted
from ..tape.modes import STATE
from ..tensor import LEAF, Tensor

LOWER = frozenset(
    """
    conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d bmm mm matmul baddbmm addmm addbmm
    linear prelu scaled_dot_product_attention vecdot multi_dot cov corrcoef affine_grid affine_grid_generator
    __matmul__ __rmatmul__
    """.split()
)
"""Functions that compute in the half-precision type."""

SINGLE = frozenset(
    """
    avg_pool3d max_pool3d adaptive_avg_pool3d adaptive_max_pool3d max_unpool1d max_unpool2d max_unpool3d
    fractional_max_pool2d fractional_max_pool3d reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d
    replication_pad3d grid_sample grid_sampler grid_sampler_2d grid_sampler_3d binary_cross_entropy
    binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy cross_entropy_loss ctc_loss hinge_embedding_loss
    huber_loss kl_div l1_loss margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss nll_loss nll_loss2d
    poisson_nll_loss smooth_l1_loss soft_margin_loss triplet_margin_loss linear_cross_entropy cdist cholesky
    cholesky_inverse cholesky_solve cholesky_ex cond eig eigh eigvals eigvalsh geqrf householder_product inv inverse
    inv_ex lstsq lu_solve matrix_rank nanquantile ormqr orgqr pinv pinverse polar prod qr quantile solve
    pca_lowrank solve_ex stft svd svd_lowrank svdvals tensorinv tensorsolve trace view_as_complex
    """.split()
)
"""Functions that compute in float32."""

WIDEST = frozenset("cat concat concatenate stack index_copy".split())
"""Functions that compute in the widest type of their arguments."""

BY_ARGUMENTS: dict[str, Callable[..., str | None]] = {
    "einsum": lambda *args: "lower" if einsum_multiplies_matrices(*args) else None,
    "tensordot": lambda *args, **options: "lower" if tensordot_multiplies_matrices(*args, **options) else None,
    "inner": lambda a, b, **_: (
        "lower" if a.ndim and b.ndim and tensordot_multiplies_matrices(a, b, ([-1], [-1])) else None
    ),
    "fake_quantize_per_tensor_affine": lambda input, scale, *_, **__: None if isinstance(scale, Tensor) else "single",
    "chain_matmul": lambda *matrices, **_: "lower" if len(matrices) > 1 else None,
    "matrix_power": lambda _, n, **__: "single" if n < 0 else "lower" if n > 1 else None,
}
"""Functions whose policy depends on their arguments."""

_HALVES = (bfloat16, float16)
_DEVICES = ("cpu", "cuda")


class _Settings(NamedTuple):
    """The settings of autocast in one thread, which are replaced as a whole. `depth`: the number of active contexts."""

    cpu: bool = False
    cuda: bool = False
    cpu_dtype: dtype = bfloat16
    cuda_dtype: dtype = float16
    keeps_casts: bool = True
    depth: int = 0


_DEFAULT = _Settings()


def _settings() -> _Settings:
    """Return the settings of autocast in this thread."""
    found: _Settings = STATE.precision or _DEFAULT
    return found


@uninterrupted
def _put(settings: _Settings) -> None:
    """Replace the settings of this thread. While autocast is active, calls of public functions pass through `_call`."""
    here = STATE.__dict__
    here["precision"] = settings
    here["autocast"] = _call if settings.cpu else None


def _change(**changes: Any) -> None:
    """Change some settings of this thread."""
    settings = _settings()._replace(**changes)
    if settings.cpu:
        LATE.wrap_public_functions()
    _put(settings)


@functools.cache
def _policy(function: Any) -> Any:
    """Return the policy for the arguments of a public function, or a function that selects it from the arguments."""
    full = torch.overrides.resolve_name(function) or ""
    name = full.rpartition(".")[2]
    if full.startswith("torch.fft.") and "shift" not in name and "freq" not in name:
        return "single"
    for policy, names in (("lower", LOWER), ("single", SINGLE), ("widest", WIDEST)):
        if name in names:
            return policy
    return BY_ARGUMENTS.get(name)


class _Kept(NamedTuple):
    """A parameter, its array and version, and its cast."""

    parameter: Tensor
    array: Any
    version: int
    cast: Tensor


def _has_been_cast(value: Tensor, kind: dtype) -> Tensor:
    """Return a tensor in another dtype. Casts of parameters are cached until the outermost autocast ends."""
    array = value._array
    keep = array.dtype is float32.numpy and value._edge is LEAF and kind in _HALVES and _settings().keeps_casts
    if not keep:
        return converted(value, kind)
    if STATE.casts is None:
        STATE.casts = {}
    key = id(value), kind, STATE.grad_enabled, STATE.inference
    found = STATE.casts.get(key)
    if found is None or found.parameter is not value or found.array is not array or found.version != value._version:
        found = STATE.casts[key] = _Kept(value, array, value._version, converted(value, kind))
    return found.cast


def _cast(value: Any, kind: dtype) -> Any:
    """Cast the tensors in `value` that have a floating-point dtype of at most 32 bits and are in memory."""
    if isinstance(value, Tensor):
        found = from_numpy(value._array.dtype)
        casts = (
            found is not kind and found.is_floating_point and found is not float64 and type(value._array) is not Meta
        )
        return _has_been_cast(value, kind) if casts else value
    if type(value) in (list, tuple):
        return type(value)(_cast(each, kind) for each in value)
    return value


def _tensors(values: Any) -> Any:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


def _call(wrapper: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the function behind a wrapper, with the arguments that autocast has cast."""
    policy = None if kwargs.get("out") is not None else _policy(wrapper.shown)
    if callable(policy):
        policy = policy(*args, **kwargs)
    if policy is None:  # the functions that it calls may have a policy
        return wrapper.function(*args, **kwargs)
    kind = _settings().cpu_dtype if policy == "lower" else float32
    if policy == "widest":
        kinds = {each.dtype for each in _tensors((*args, *kwargs.values()))}
        if kinds & {*_HALVES} - {_settings().cpu_dtype}:
            raise RuntimeError("Unexpected floating ScalarType in at::autocast::prioritize")
        if float32 not in kinds or not kinds & {*_HALVES}:
            return wrapper.function(*args, **kwargs)
    before = STATE.autocast
    STATE.autocast = None
    try:
        args = tuple([_cast(each, kind) for each in args])
        return wrapper.function(*args, **{name: _cast(each, kind) for name, each in kwargs.items()})
    finally:
        STATE.autocast = before


class autocast:
    """A context, or a decorator, in which functions choose the dtypes of their computations.

    Args:
        device_type: "cpu". Other device types give a warning, and the context has no effect.
        dtype: the half-precision type of products, bfloat16 (the default) or float16.
        enabled: whether the context has any effect.
        cache_enabled: whether half-precision casts of parameters are cached until the outermost context ends.

    >>> import adjoint as torch
    >>> with torch.autocast("cpu"):
    ...     (torch.ones(2, 2) @ torch.ones(2, 2)).dtype
    torch.bfloat16
    """

    def __init__(
        self, device_type: str, dtype: dtype | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = device_type
        if device_type not in _DEVICES:
            device(device_type)  # raises an error unless this is a device type
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self.custom_backend_name = None
        if enabled and device_type != "cpu":
            warn(f"User provided device_type of '{device_type}', but {device_type.upper()} is not available. Disabling")
            enabled = False
        if enabled and self.fast_dtype not in _HALVES:
            warn(
                "In CPU autocast, but the target dtype is not supported. Disabling autocast.\n"
                "CPU Autocast only supports dtypes of torch.bfloat16, torch.float16 currently."
            )
            enabled = False
        self._enabled = enabled
        self._cache_enabled = is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        self._before: tuple[Any, ...] = ()

    def __enter__(self) -> autocast:
        before = _settings()
        changes: dict[str, Any] = {"depth": before.depth + 1, "keeps_casts": self._cache_enabled}
        if self.device in _DEVICES:
            changes |= {self.device: self._enabled, f"{self.device}_dtype": self.fast_dtype}
        settings = before._replace(**changes)
        if settings.cpu:
            LATE.wrap_public_functions()
        self._before = before, self._before
        _put(settings)
        return self

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        before, self._before = self._before
        _put(before)
        if not before.depth:
            clear_autocast_cache()

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate `func`. Each call runs in this context."""

        @functools.wraps(func)
        def within(*args: Any, **kwargs: Any) -> Any:
            try:
                with self:
                    return func(*args, **kwargs)
            except Exception as error:
                shorten(error)
                raise

        return within


def _device(device_type: str) -> str:
    return device_type if device_type in _DEVICES else "cpu"


def is_autocast_available(device_type: str) -> bool:
    """Return whether `autocast` is available for a type of device. It is available for "cpu"."""
    return device_type == "cpu"


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Return whether autocast is on in this thread."""
    return device_type in _DEVICES and bool(getattr(_settings(), device_type))


def set_autocast_enabled(device_type: str | bool, enabled: bool | None = None) -> None:
    """Switch autocast on or off in this thread."""
    kind = device_type if isinstance(device_type, str) else "cuda"
    _change(**{_device(kind): bool(device_type if enabled is None else enabled)})


def get_autocast_dtype(device_type: str) -> dtype:
    """Return the half-precision type of products."""
    found: dtype = getattr(_settings(), f"{_device(device_type)}_dtype")
    return found


def set_autocast_dtype(device_type: str, dtype: dtype) -> None:
    """Set the half-precision type of products."""
    _change(**{f"{_device(device_type)}_dtype": dtype})


def is_autocast_cpu_enabled() -> bool:
    """Return whether autocast is on for the CPU."""
    return is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Switch autocast on or off for the CPU."""
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype() -> dtype:
    """Return the half-precision type of products on the CPU."""
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype: dtype) -> None:
    """Set the half-precision type of products on the CPU."""
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype() -> dtype:
    """Return the half-precision type of products on a GPU."""
    return get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype: dtype) -> None:
    """Set the half-precision type of products on a GPU."""
    set_autocast_dtype("cuda", dtype)


def is_autocast_cache_enabled() -> bool:
    """Return whether half-precision casts of parameters are cached."""
    return _settings().keeps_casts


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Set whether half-precision casts of parameters are cached."""
    _change(keeps_casts=enabled)


@uninterrupted
def clear_autocast_cache() -> None:
    """Remove the cached half-precision casts of parameters."""
    STATE.__dict__["casts"] = None


def autocast_increment_nesting() -> int:
    """Enter one more autocast context, and return the number of active contexts."""
    _change(depth=_settings().depth + 1)
    return _settings().depth


def autocast_decrement_nesting() -> int:
    """Leave one autocast context, and return the number of remaining contexts."""
    _change(depth=_settings().depth - 1)
    return _settings().depth


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: dtype | None = None
) -> Callable[..., Any]:
    """Decorate `forward` of a custom function for `custom_bwd`. `cast_inputs`: a dtype for `forward` without autocast."""
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    function = fwd

    @functools.wraps(function)
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        ctx._dtype = get_autocast_dtype(device_type)
        enabled = is_autocast_enabled(device_type)
        ctx._fwd_used_autocast = enabled and cast_inputs is None
        if cast_inputs is None or not enabled:
            return function(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            cast = (_cast(each, cast_inputs) for each in args)
            return function(ctx, *cast, **{name: _cast(each, cast_inputs) for name, each in kwargs.items()})

    return forward


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Callable[..., Any]:
    """Decorate `backward` of a custom function. It runs with the autocast settings of `forward`."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    function = bwd

    @functools.wraps(function)
    def backward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return function(ctx, *args, **kwargs)

    return backward
