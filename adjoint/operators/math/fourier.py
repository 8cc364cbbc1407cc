"""Discrete Fourier transforms: three operators, which are each other's derivatives, and the functions of `torch.fft`."""

from __future__ import annotations

from ... import dtypes
from ...dispatch.annotations import Array
from ...dispatch.arguments import require
from ...dispatch.decorators import internal, public, tensors
from ...dispatch.out import FOUND, stored
from ...kernels.math import fourier as kernels
from ...kernels.runtime.shapes import normalize_dim
from ...tensor import Tensor
from ..create.creation import made, result_dtype
from ..memory.conversion import converted

# --- the operators ----------------------------------------------------------------------------------------------


@internal(kernels.fft_c2c, out=False, node="FftC2CBackward0", tangent="linear", batch="expanded", aten_name="_fft_c2c")
class fft_c2c:
    """The transform of complex numbers over `dim`, or the inverse transform."""

    def forward(self: Array, dim, normalization, forward): ...

    def grad_self(grad, dim, normalization, forward, xp):
        return xp.fft_c2c(grad, dim, normalization, not forward)


@internal(kernels.fft_r2c, out=False, node="FftR2CBackward0", tangent="linear", batch="expanded", aten_name="_fft_r2c")
class fft_r2c:
    """The transform of real numbers over `dim`. `onesided` omits the half that follows from symmetry."""

    def forward(self: Array, dim, normalization, onesided): ...

    def grad_self(grad, self, dim, normalization, onesided, xp):
        if onesided:
            last = dim[-1]
            behind = (0, 0) * (grad.ndim - last - 1)
            grad = xp.constant_pad_nd(grad, (*behind, 0, self.shape[last] - grad.shape[last]), 0)
        return xp.fft_c2c(grad, dim, normalization, False).real


@internal(kernels.fft_c2r, out=False, node="FftC2RBackward0", tangent="linear", batch="expanded", aten_name="_fft_c2r")
class fft_c2r:
    """The inverse of the onesided transform over `dim`. The last dimension gets the size `last_dim_size`."""

    def forward(self: Array, dim, normalization, last_dim_size): ...

    def grad_self(grad, dim, normalization, xp):
        return xp.fft_c2r_backward(grad, dim, normalization)


@internal(kernels.fft_c2r_backward, out=False, node="FftR2CBackward0", tangent="linear", batch="expanded")
class fft_c2r_backward:
    """The adjoint of `fft_c2r`: the onesided transform, with elements doubled if they also represent a mirror image."""

    def forward(self: Array, dim, normalization): ...

    def grad_self(grad, self_shape, dim, normalization, xp):
        return xp.fft_c2r(grad, dim, normalization, self_shape[dim[-1]])


# --- arguments --------------------------------------------------------------------------------------------------


def _scale(norm, forward):
    """Convert the option `norm`, which selects the direction whose result is divided by the number of elements."""
    if norm is None or norm == "backward":
        return 0 if forward else 2
    if norm not in ("ortho", "forward"):
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    return 1 if norm == "ortho" else 2 if forward else 0


_REAL, _COMPLEX = {dtypes.float32, dtypes.float64}, {dtypes.complex64, dtypes.complex128}
"""The dtypes that are transformed without a conversion."""


def _numbers(input, as_complex):
    """Return `input` in a dtype that can be transformed."""
    kind = own = input.dtype
    if kind in (_COMPLEX if as_complex else _REAL):
        return input
    if kind in (dtypes.float16, dtypes.bfloat16):
        raise RuntimeError(f"Unsupported dtype {kind.scalar_type}")
    if not (kind.is_floating_point or kind.is_complex):
        kind = dtypes.get_default_dtype()
    wanted = kind.to_complex() if as_complex else kind
    return input if wanted is own else converted(input, wanted)


def _resized(input, dim, sizes):
    """Cut `input`, or extend it by zeros, to `sizes` in the dimensions `dim`. A size of -1 means no change."""
    shape = input._array.shape
    widths = None
    for axis, size in zip(dim, sizes, strict=True):
        if size == -1 or size == shape[axis]:
            continue
        if size < shape[axis]:
            input = input.narrow(axis, 0, size)
        else:
            widths = widths or [0] * (2 * len(shape))
            widths[2 * (len(shape) - axis) - 1] = size - shape[axis]
    return tensors.constant_pad_nd(input, tuple(widths), 0) if widths else input


def _check_sizes(sizes):
    for size in sizes:
        if size < 1:
            raise RuntimeError(f"Invalid number of data points ({size}) specified")


def _dimension(input, dim):
    ndim = input._array.ndim
    if not ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return normalize_dim(dim, ndim)


def _stored(name, result, out):
    """Store `result` in `out`: a complex tensor for complex results, a floating-point tensor otherwise."""
    if isinstance(out, Tensor):
        right = out.dtype.is_complex if result.dtype.is_complex else out.dtype.is_floating_point
        if not right:
            kind = "complex" if result.dtype.is_complex else "floating point"
            raise RuntimeError(f"{name} expects a {kind} output tensor, but got {out.dtype.scalar_type}")
    is_conjugate = result.is_conj()  # PyTorch computes it directly into `out`
    return stored(f"fft_{name}", result, out, FOUND if is_conjugate else None, underived=is_conjugate)


def _several(input, dim, s):
    """Return the dimensions of a transform over several dimensions, and the number of elements that it uses in each dimension."""
    shape = input._array.shape
    ndim = len(shape)
    s = (s,) if isinstance(s, int) else s
    if dim is not None:
        dim = tuple([_dimension(input, axis) for axis in ((dim,) if isinstance(dim, int) else dim)])
        if len(set(dim)) < len(dim):
            raise RuntimeError("FFT dims must be unique")
        if s is not None and len(s) != len(dim):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
    elif s is None:
        dim = tuple(range(ndim))
    elif len(s) > ndim:
        raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {ndim} dimensions.")
    else:
        dim = tuple(range(ndim - len(s), ndim))
    if not s:
        return dim, [shape[axis] for axis in dim]
    return dim, [shape[axis] if size == -1 else size for axis, size in zip(dim, s, strict=True)]


# --- transforms over dimensions, of any kind --------------------------------------------------------------------


def _complex(name, input, dim, sizes, norm, last, forward):
    """Return the transform over `dim`, or its inverse. Over one dimension, real numbers have a transform of their own."""
    _check_sizes(sizes)
    scale = _scale(norm, forward)
    if not name.endswith("n") and not input.is_complex():
        result = tensors.fft_r2c(_resized(_numbers(input, False), dim, sizes), dim, scale, False)
        return result if forward else result.conj()
    return tensors.fft_c2c(_resized(_numbers(input, True), dim, sizes), dim, scale, forward)


def _onesided(name, input, dim, sizes, norm, last, forward):
    """Return half of the transform of real numbers, or of their inverse transform."""
    if input.is_complex():
        kind = "real-valued" if name.endswith(("n", "2")) else "real"
        raise RuntimeError(f"{name} expects a {kind} input tensor, but got {input.dtype.scalar_type}")
    if not dim:
        raise RuntimeError(f"{name} must transform at least one axis")
    _check_sizes(sizes)
    value, scale = _resized(_numbers(input, False), dim, sizes), _scale(norm, forward)
    if forward:
        return tensors.fft_r2c(value, dim, scale, True)
    result = tensors.fft_r2c(value, dim[-1:], scale, True)
    return tensors.fft_c2c(result.conj_physical(), dim[:-1], scale, False) if dim[:-1] else result.conj()


def _real(name, input, dim, sizes, norm, last, forward):
    """Return real numbers from half of their transform (if `forward`, of the inverse). `last`: the size of the last dimension."""
    if not dim:
        raise RuntimeError(f"{name} must transform at least one axis")
    size = 2 * (sizes[-1] - 1) if last is None else last
    _check_sizes((*(sizes if name.endswith("n") else ()), size))
    scale = _scale(norm, forward)
    value = _resized(_numbers(input, True), dim, (*sizes[:-1], size // 2 + 1))
    if forward:
        if dim[:-1]:
            value = tensors.fft_c2c(value, dim[:-1], scale, True)
        return tensors.fft_c2r(value.conj(), dim[-1:], scale, size)
    return tensors.fft_c2r(value, dim, scale, size)


def _last(s):
    """Return the size of the last dimension, if it is given."""
    if s is None:
        return None
    last = s if isinstance(s, int) else s[-1] if len(s) else None
    return None if last == -1 else last


# --- the functions ----------------------------------------------------------------------------------------------


def _transforms(name, doc, transform, forward):
    """Declare the functions that compute a transform over one dimension, over several, and over two."""
    several = f"{name}n"
    shown = "fftn" if name == "ifft" else several  # as in PyTorch's errors

    def over_one(input, n=None, dim=-1, norm=None, *, out=None):
        axis = _dimension(input, dim)
        sizes = (input._array.shape[axis] if n is None else n,)
        result = transform(name, input, (axis,), sizes, norm, n, forward)
        return result if out is None else _stored(name, result, out)

    def over_several(input, s=None, dim=None, norm=None, *, out=None):
        dim, sizes = _several(input, dim, s)
        last = _last(s) if transform is _real else None
        result = transform(several, input, dim, sizes, norm, last, forward)
        return result if out is None else _stored(shown, result, out)

    def over_two(input, s=None, dim=(-2, -1), norm=None, *, out=None):
        return over_several(input, s, dim, norm, out=out)

    over_one.__doc__ = doc
    over_several.__doc__ = (
        f"`{name}` over the dimensions `dim`. The default is all dimensions, or the last `len(s)` dimensions."
    )
    over_two.__doc__ = f"`{name}` over two dimensions."
    for function, suffix in ((over_one, ""), (over_several, "n"), (over_two, "2")):
        public(namespace="fft", name=f"{name}{suffix}", numpy_names=True)(function)
    return over_one


fft = _transforms(
    "fft",
    """The discrete Fourier transform along `dim`. The input is cut or zero-padded to `n` elements.

    The result is always complex.

    `norm` selects the direction whose result is divided by the number of elements: "backward" (the default) or
    "forward". "ortho" divides both directions by the root of this number.

    >>> import adjoint as torch
    >>> torch.fft.fft(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j])
    """,
    _complex,
    forward=True,
)
ifft = _transforms("ifft", "The inverse of `fft`.", _complex, forward=False)
rfft = _transforms(
    "rfft",
    """The first half of the transform of real numbers along `dim`. The second half would be the mirrored conjugate.

    >>> import adjoint as torch
    >>> torch.fft.rfft(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j])
    """,
    _onesided,
    forward=True,
)
irfft = _transforms(
    "irfft",
    "The inverse of `rfft`. The result has `n` real numbers, by default `2 * (m - 1)` for `m` elements.",
    _real,
    forward=False,
)
_transforms(
    "hfft",
    "The real transform of a signal with Hermitian symmetry. The input is the first half of the signal.",
    _real,
    forward=True,
)
_transforms(
    "ihfft",
    "The inverse of `hfft`: the first half of the inverse transform of real numbers.",
    _onesided,
    forward=False,
)


def _frequencies(name, doc, onesided):
    """Declare a function that returns the frequencies of the elements of a transform."""

    def frequencies(
        n, d=1.0, *, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
    ):  # fmt: skip
        require("Int", n, f"fft_{name}", "n", 1)
        kind = result_dtype(f"fft_{name}", dtype, out) or dtypes.get_default_dtype()
        if not (kind.is_floating_point or kind.is_complex):
            raise RuntimeError(f"{name} requires a floating point or complex dtype")
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")

        def compute(shape, dtype):
            return kernels.frequencies(n, d, dtype, onesided)

        shape = (n // 2 + 1 if onesided else n,)
        return made(f"fft_{name}", shape, kind, compute, out, requires_grad, device, pin_memory, layout)

    frequencies.__doc__ = doc
    public(namespace="fft", name=name, numpy_names=True)(frequencies)


_frequencies(
    "fftfreq",
    """The frequencies of the elements of `fft` for `n` samples with spacing `d`.

    >>> import adjoint as torch
    >>> torch.fft.fftfreq(5)
    tensor([ 0.0000,  0.2000,  0.4000, -0.4000, -0.2000])
    """,
    onesided=False,
)
_frequencies("rfftfreq", "The frequencies of the elements of `rfft` for `n` samples with spacing `d`.", onesided=True)


def _shift(input, dim, sign):
    dims = range(input.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    dims = tuple(normalize_dim(axis, input.ndim) for axis in dims)
    if not dims:
        raise RuntimeError("`shifts` required")
    shifts = tuple(input.shape[axis] // 2 if sign > 0 else (input.shape[axis] + 1) // 2 for axis in dims)
    return tensors.roll(input, shifts, dims)


@public(namespace="fft", numpy_names=True)
def fftshift(input, dim=None):
    """The input with frequency zero moved to the middle of the dimensions `dim`, or of all dimensions.

    >>> import adjoint as torch
    >>> torch.fft.fftshift(torch.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    return _shift(input, dim, 1)


@public(namespace="fft", numpy_names=True)
def ifftshift(input, dim=None):
    """The inverse of `fftshift`."""
    return _shift(input, dim, -1)
