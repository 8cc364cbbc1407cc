"""PyTorch's name for the checks of derivatives."""

from ..checks.gradcheck import (
    GradcheckError,
    _get_numerical_jacobian,
    _iter_tensors,
    get_analytical_jacobian,
    get_numerical_jacobian,
    get_numerical_jacobian_wrt_specific_input,
    gradcheck,
    gradgradcheck,
)

__all__ = [
    "GradcheckError",
    "_get_numerical_jacobian",
    "_iter_tensors",
    "get_analytical_jacobian",
    "get_numerical_jacobian",
    "get_numerical_jacobian_wrt_specific_input",
    "gradcheck",
    "gradgradcheck",
]
