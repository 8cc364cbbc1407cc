"""Anomaly detection: backward stops at the first nan and names the line of the operation that it comes from."""

from __future__ import annotations

import warnings
from typing import Any

import numpy

from ..tape.node import Node
from ..tensor import Tensor


class _Anomaly:
    """Whether backward looks for anomalies, in all threads, and whether a nan is one."""

    enabled = False
    check_nan = True


ANOMALY = _Anomaly()


def is_anomaly_enabled() -> bool:
    """Whether backward looks for anomalies."""
    return ANOMALY.enabled


def is_anomaly_check_nan_enabled() -> bool:
    """Whether a gradient that is not a number is an anomaly."""
    return ANOMALY.check_nan


class set_detect_anomaly:
    """Switch anomaly detection on or off: at once, and as a context manager until its end."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.before = (ANOMALY.enabled, ANOMALY.check_nan)
        self.mode, self.check_nan = mode, check_nan
        ANOMALY.enabled, ANOMALY.check_nan = mode, check_nan

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        ANOMALY.enabled, ANOMALY.check_nan = self.before


class detect_anomaly:
    """Context manager: backward raises RuntimeError where a gradient becomes nan, and warns with the line that recorded it.

    >>> import adjoint as torch, warnings
    >>> x = torch.tensor([0.0], requires_grad=True)
    >>> with warnings.catch_warnings(action="ignore"), torch.autograd.detect_anomaly():
    ...     try:
    ...         (x * 0 / x).sum().backward()
    ...     except RuntimeError as error:
    ...         print(error)
    Function 'DivBackward0' returned nan values in its 1th output.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            UserWarning,
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self.before = (ANOMALY.enabled, ANOMALY.check_nan)
        ANOMALY.enabled, ANOMALY.check_nan = True, self.check_nan

    def __exit__(self, *exception: object) -> None:
        ANOMALY.enabled, ANOMALY.check_nan = self.before


def check_for_nan(node: Node, results: Any) -> None:
    """Raise RuntimeError if a gradient that `node` has computed is not a number."""
    if not ANOMALY.check_nan:
        return
    for number, result in enumerate(results):
        array = result._array if isinstance(result, Tensor) else result
        if array is not None and numpy.isnan(array).any():
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {number}th output.")


def report(node: Node) -> None:
    """Warn that the backward of `node` has failed, with the line of the user's code that recorded it."""
    warnings.warn(
        f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n  {node.describe_origin()}",
        UserWarning,
        stacklevel=5,
    )
