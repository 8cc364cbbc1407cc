"""Fourier transforms of short parts of a signal, and their inverse."""

from __future__ import annotations

from ..._runtime.tracebacks import warn
from ...dispatch.decorators import public, tensors
from ...tensor import Tensor
from .fourier import fft, ifft, irfft, rfft


def _described(name, input, window, **options):
    """Return the call in the form in which PyTorch's errors print calls."""
    sizes = list(input._array.shape)

    def kind(tensor):
        shown = tensor.type()
        return f"CPU{shown.removeprefix('torch.').replace('Tensor', 'Type')}" if tensor.is_complex() else shown

    shown = "None" if window is None else f"{kind(window)}{{{list(window._array.shape)}}}"
    given = {"window": shown, **options}
    order: list[str] = [key for key in ("n_fft", "hop_length", "win_length", "window") if key in given]
    order += [key for key in given if key not in order]

    def text(value):
        return str(int(value)) if isinstance(value, bool) else str(value)

    return f"{name}({kind(input)}{sizes}, " + ", ".join(f"{key}={text(given[key])}" for key in order) + ")"


def _whole_window(window, n_fft, win_length):
    """Return the window in the middle of `n_fft` zeros."""
    left = (n_fft - win_length) // 2
    return window if win_length == n_fft else tensors.pad(window, (left, n_fft - win_length - left))


@public(method=True)
def stft(
    input: Tensor,
    n_fft,
    hop_length=None,
    win_length=None,
    window: Tensor | None = None,
    center=True,
    pad_mode="reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window=None,
):
    """The Fourier transforms of overlapping parts of a signal, with shape `(frequencies, frames)`.

    Args:
        input: `(length)` or `(batch, length)`.
        n_fft: the size of a transform.
        hop_length: the distance between frames; `n_fft // 4` if None.
        win_length: the length of the window; `n_fft` if None.
        window: the factors for the elements of a frame; ones if None.
        center: whether to pad the signal by `pad_mode`, so that each frame is centred at its time.
        normalized: whether to divide by the square root of `n_fft`.
        onesided: whether to compute only nonnegative frequencies; the default for real numbers.
        return_complex: False returns real and imaginary parts in a last dimension (deprecated).
        align_to_window: whether frames start where the window starts, without `center`.

    >>> import adjoint as torch
    >>> torch.stft(torch.rand(16), 8, window=torch.hann_window(8), return_complex=True).shape
    torch.Size([5, 9])
    """
    if center:
        if align_to_window is not None:
            raise RuntimeError("stft align_to_window should only be set when center = false")
        dims = input._array.ndim
        padded = tensors.pad(input.view((1,) * (3 - dims) + tuple(input.shape)), (n_fft // 2,) * 2, mode=pad_mode)
        input = padded.view(padded.shape[-dims:])
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    if window is None:
        warn(
            "A window was not provided. A rectangular window will be applied,which is known to cause spectral leakage. Other "
            "windows such as torch.hann_window or torch.hamming_window are recommended to reduce spectral leakage.To suppress "
            "this warning and use a rectangular window, explicitly set `window=torch.ones(n_fft, device=<device>)`.",
        )
    complex_given = input.is_complex() or (window is not None and window.is_complex())
    if return_complex is None:
        if not complex_given:
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will further require that "
                "return_complex=True in a future PyTorch release."
            )
        return_complex = True
    if not return_complex:
        warn(
            "stft with return_complex=False is deprecated. In a future pytorch release, stft will return complex tensors for "
            "all inputs, and return_complex=False will raise an error.\nNote: you can still call torch.view_as_real on the "
            "complex output to recover the old return format.",
        )

    def refuse(words):
        call = _described(
            "stft", input, window, n_fft=n_fft, hop_length=hop, win_length=length, normalized=bool(normalized),
            onesided=onesided, return_complex=return_complex, align_to_window=align_to_window,
        )  # fmt: skip
        raise RuntimeError(f"{call} : {words}")

    if not (input.is_floating_point() or input.is_complex()):
        refuse("expected a tensor of floating point or complex values")
    if input._array.ndim not in (1, 2):
        refuse("expected a 1D or 2D tensor")
    batched = input._array.ndim == 2
    signal = input if batched else input.unsqueeze(0)
    if not center and align_to_window:
        around = (n_fft - length) // 2
        signal = tensors.pad(signal, (around, around), mode=pad_mode)
    size = signal._array.shape[-1]
    if n_fft <= 0 or n_fft > size:
        refuse(f"expected 0 < n_fft < {size}, but got n_fft={n_fft}")
    if hop <= 0:
        refuse(f"expected hop_length > 0, but got hop_length={hop}")
    if length <= 0 or length > n_fft:
        refuse(f"expected 0 < win_length <= n_fft, but got win_length={length}")
    if window is not None and window._array.shape != (length,):
        refuse(
            f"expected a 1D window tensor of size equal to win_length={length}, but got window with size "
            f"{list(window._array.shape)}"
        )
    frames = signal.unfold(-1, n_fft, hop)
    if window is not None:
        frames = frames * _whole_window(window, n_fft, length)
    elif length < n_fft:
        frames = frames * _whole_window(tensors.ones_like(signal[0, :length]), n_fft, length)
    if onesided and complex_given:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    norm = "ortho" if normalized else "backward"
    one_side = not complex_given if onesided is None else onesided
    found = (rfft if one_side else fft)(frames, norm=norm).transpose_(1, 2)
    if not batched:
        found.squeeze_(0)
    return found if return_complex else tensors.view_as_real(found)


def _added(frames, hop, size):
    """Return signals of the given size, which are the sums of the overlapping frames `(batch, frames, n)`."""
    count, n = frames._array.shape[1:]
    places = tensors.arange(count).unsqueeze(1) * hop + tensors.arange(n)
    signal = frames.new_zeros((frames._array.shape[0], size))
    return signal.index_add(1, places.flatten(), frames.flatten(1))


@public(method=True)
def istft(
    input: Tensor,
    n_fft,
    hop_length=None,
    win_length=None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length=None,
    return_complex: bool = False,
):
    """The signal whose `stft` is nearest to the given transforms in the least-squares sense (Griffin and Lim, 1984).

    Args:
        input: `(frequencies, frames)` or `(batch, frequencies, frames)`, complex.
        length: the length of the signal.
        return_complex: whether the signal is complex.

    Raises:
        RuntimeError: if the windows do not cover the whole signal.
    """
    hop = n_fft // 4 if hop_length is None else hop_length
    window_length = n_fft if win_length is None else win_length
    if window is None:
        warn(
            "A window was not provided. A rectangular window will be applied.Please provide the same window used by stft to "
            "make the inversion lossless.To suppress this warning and use a rectangular window, explicitly set "
            "`window=torch.ones(n_fft, device=<device>)`.",
        )
    if not input.is_complex():
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )

    def refuse(words, join=" : "):
        call = _described(
            "istft", input, window, n_fft=n_fft, hop_length=hop, win_length=window_length, center=bool(center),
            normalized=bool(normalized), onesided=onesided, length=length, return_complex=bool(return_complex),
        )  # fmt: skip
        raise RuntimeError(f"{call}{join}{words}")

    if input._array.size == 0:
        refuse("input tensor cannot be empty.")
    dims = input._array.ndim
    if dims not in (2, 3):
        refuse(f"expected a tensor with 3 or 4 dimensions, but got {dims + 1}")
    spectrum = input if dims == 3 else input.unsqueeze(0)
    bins, count = spectrum._array.shape[1:]
    one_side = bins != n_fft if onesided is None else onesided
    wanted = n_fft // 2 + 1 if one_side else n_fft
    if bins != wanted:
        size = "n_fft / 2 + 1 when onesided=True" if one_side else "n_fft when onesided=False"
        refuse(
            f"expected the frequency dimension (3rd to the last) of the input tensor to match {size}, but got {bins}"
        )
    if not 0 < hop <= window_length:
        refuse("expected 0 < hop_length <= win_length")
    if not 0 < window_length <= n_fft:
        refuse("expected 0 < win_length <= n_fft")
    if window is not None and window._array.shape != (window_length,):
        refuse("Invalid window shape. window has to be 1D and length of `win_length`")
    complex_window = window is not None and window.is_complex()
    if one_side and (return_complex or complex_window):
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    if complex_window and not return_complex:
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    if window is None:
        window = input.real.new_ones(window_length)
    window = _whole_window(window, n_fft, window_length)
    norm = "ortho" if normalized else "backward"
    spectrum = spectrum.transpose(1, 2)
    if return_complex:
        frames = ifft(spectrum, norm=norm)
    else:
        frames = irfft(spectrum if one_side else spectrum[..., : n_fft // 2 + 1], n_fft, norm=norm)
    whole = n_fft + hop * (count - 1)
    signal = _added(frames * window, hop, whole)
    weight = _added((window * window).expand(1, count, n_fft), hop, whole)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else whole - start
    signal, weight = signal[:, start:end], weight[:, start:end]
    if bool(weight.abs().min() < 1e-11):
        refuse("window overlap add min: 1\n[ CPUBoolType{} ]", " ")
    signal = signal / weight
    signal = signal if dims == 3 else signal.squeeze(0)
    if end > whole:
        warn(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. Please "
            "check your center and hop_length settings.",
        )
        signal = tensors.pad(signal, (0, end - whole))
    return signal
