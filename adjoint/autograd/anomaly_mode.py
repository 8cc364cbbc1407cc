"""Anomaly detection: backward stops at the first NaN, and names the operation that produced the NaN and the line of code."""

from __future__ import annotations

import traceback
import warnings
from typing import Any

import numpy

from .._runtime.tracebacks import ending_at_caller, warn
from .._runtime.uninterrupted import SwitchesAtOnce, uninterrupted
from ..kernels.runtime.narrow_array import widened
from ..tape import mode_switches, modes, origin
from ..tape.anomaly import Statistics, elements
from ..tape.node import Node, accumulator_of
from ..tape.stale_error import Subject
from ..tensor import Tensor

__all__ = ["detect_anomaly", "set_detect_anomaly"]


def is_anomaly_enabled() -> bool:
    """Return whether anomaly detection is on. The setting applies to all threads."""
    return modes.ANOMALY.enabled


def is_anomaly_check_nan_enabled() -> bool:
    """Return whether anomaly detection, while it is on, treats a NaN gradient as an error."""
    return modes.ANOMALY.check_nan


@ending_at_caller
def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Switch anomaly detection on or off, in all threads."""
    for position, (name, value) in enumerate((("enabled", enabled), ("check_nan", check_nan)), 1):
        if not isinstance(value, bool):
            raise TypeError(
                f"set_anomaly_enabled(): argument '{name}' (position {position}) must be bool, not {type(value).__name__}"
            )
    mode_switches.set_anomaly(enabled, check_nan)


@uninterrupted
def _restore(self: Any, *exception: object) -> None:
    mode_switches.set_anomaly(self.prev, self.prev_check_nan)


class set_detect_anomaly(SwitchesAtOnce):
    """Switch anomaly detection on or off immediately. As a context manager, restore the setting at the end of the block.

    Args:
        mode: whether to switch anomaly detection on.
        check_nan: whether a backward that returns NaN raises RuntimeError. Otherwise only errors are reported.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.prev = modes.ANOMALY.enabled
        self.prev_check_nan = modes.ANOMALY.check_nan
        self.pending = True
        set_anomaly_enabled.__wrapped__(mode, check_nan)  # type: ignore[attr-defined]  # without a place for an interrupt

    __exit__ = _restore


class detect_anomaly:
    """A context manager in which an error in backward gives a warning with the call that recorded the operation.

    With `check_nan`, a backward that returns NaN is an error too. All operations become slower.

    >>> import adjoint as torch, warnings
    >>> x = torch.tensor([0.0], requires_grad=True)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     with torch.autograd.detect_anomaly():
    ...         (x * 0 / x).sum().backward()
    Traceback (most recent call last):
    ...
    RuntimeError: Function 'DivBackward0' returned nan values in its 1th output.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.prev = modes.ANOMALY.enabled
        self.prev_check_nan = modes.ANOMALY.check_nan
        self.check_nan = check_nan
        warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            UserWarning,
        )

    def __enter__(self) -> None:
        self.prev = modes.ANOMALY.enabled
        self.prev_check_nan = modes.ANOMALY.check_nan
        mode_switches.set_anomaly(True, self.check_nan)

    __exit__ = _restore


def check_nan(node: Node, grad: Any, results: Any) -> None:
    """Raise an error if one of the `results` of `node` for `grad` contains a NaN."""
    for index, result in enumerate(results):
        if result is not None and has_nan(result):
            given = grad if isinstance(grad, list) else [grad]
            error: Any = RuntimeError(f"Function '{node.name()}' returned nan values in its {index}th output.")
            error.subject = Subject(
                node=node,
                grads=[Statistics.of(elements(each)) for each in given if each is not None],
                results=[None if each is None else Statistics.of(elements(each)) for each in results],
            )
            raise error


def has_nan(value: Any) -> bool:
    """Return whether an element is NaN."""
    array = widened(elements(value))
    return array.dtype.kind in "fcV" and bool(numpy.isnan(array).any())


def report(node: Node | Tensor) -> None:
    """Warn of an error in the backward of `node`. Show the call of the operation, and the calls that led to it."""
    if isinstance(node, Tensor):
        node = accumulator_of(node)
    told = node.metadata.get("traceback_")
    if told is None:
        _warn(
            f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly during forward "
            "pass for more information."
        )
        return
    _warn(f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{''.join(told)}")
    parent = node.metadata.get("parent_")
    while parent is not None:
        told = parent.metadata.get("traceback_")
        if told is None:
            _warn(
                f"\n\nPrevious calculation was induced by {parent.name()}. No forward pass information available. Enable "
                "detect anomaly during forward pass for more information."
            )
            return
        _warn(
            f"\n\nPrevious calculation was induced by {parent.name()}. Traceback of forward call that induced the previous "
            f"calculation:\n{''.join(told)}"
        )
        parent = parent.metadata.get("parent_")


def _warn(message: str) -> None:
    frame = origin.user_frame(1)
    try:
        warnings.warn_explicit(message, UserWarning, frame.f_code.co_filename, frame.f_lineno)
    except UserWarning as error:  # a filter makes warnings errors, but the error of the backward must not be lost
        traceback.print_exception(error)
