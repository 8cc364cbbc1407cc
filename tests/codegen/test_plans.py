"""A plan predicts the form of a kernel's results before the kernel runs, and writes the same results into given memory."""

from __future__ import annotations

import numpy
import pytest

from adjoint.codegen.acceleration import LOOPS
from adjoint.kernels.nn import convolution, loss, normalization, pooling

rng = numpy.random.default_rng(0)


def random(*shape, dtype="f4"):
    return rng.standard_normal(shape).astype(dtype)


X, LAST, HALF = random(2, 4, 8, 9), numpy.moveaxis(random(2, 8, 9, 4), -1, 1), random(2, 4, 8, 9, dtype="f2")
CHANNELS, KERNEL, GRAD = random(4), random(6, 4, 3, 3), random(2, 6, 6, 7)
MEAN, INVERSE = random(4), random(4)
CONV = ((1, 1), (0, 0), (1, 1), 1)
WINDOWS = ((2, 2), (2, 2), (0, 0))
SCORES, CLASSES = random(6, 5), numpy.array([0, 1, 2, 3, 4, 0])

CALLS = {
    "conv": (convolution.conv_forward, X, KERNEL, random(6), *CONV),
    "conv of half": (convolution.conv_forward, HALF, KERNEL.astype("f2"), None, *CONV),
    "conv of channels": (convolution.conv_forward, X, random(4, 1, 3, 3), None, *CONV[:3], 4),
    "transposed without bias": (convolution.transposed, GRAD, KERNEL, None, X.shape, *CONV),
    "conv weight": (convolution.conv_weight_grad, GRAD, X, KERNEL.shape, *CONV),
    "transposed": (convolution.transposed, GRAD, KERNEL, CHANNELS, X.shape, *CONV),
    "max": (pooling.max_pool, X, 2, *WINDOWS, (1, 1)),
    "max without indices": (pooling.max_pool, X, 2, *WINDOWS, (1, 1), False, False),
    "max of channels last": (pooling.max_pool, LAST, 2, *WINDOWS, (1, 1)),
    "average": (pooling.avg_pool, X, 2, *WINDOWS),
    "average of channels last": (pooling.avg_pool, LAST, 2, *WINDOWS),
    "average backward": (pooling.avg_pool_backward, X[..., ::2, :4].copy(), X.shape, 2, *WINDOWS),
    "adaptive max": (pooling.adaptive_max_pool, X, (3, 4)),
    "adaptive average": (pooling.adaptive_avg_pool, X, (3, 4)),
    "adaptive average of channels last": (pooling.adaptive_avg_pool, LAST, (4, 3)),
    "adaptive average backward": (pooling.adaptive_avg_pool_backward, X[..., :3, :4].copy(), X.shape, 2),
    "batch norm": (normalization._batch_norm, X, CHANNELS, CHANNELS, None, None, True, 1e-5),
    "batch norm of channels last": (normalization._batch_norm, LAST, CHANNELS, None, None, None, True, 1e-5),
    "batch norm of half": (normalization._batch_norm, HALF, None, None, None, None, True, 1e-5),
    "batch norm of columns": (normalization._batch_norm, random(50, 1000), None, None, None, None, True, 1e-5),
    "batch norm in use": (normalization._batch_norm, X, None, None, MEAN, INVERSE**2, False, 1e-5),
    "group norm": (normalization._group_norm, X, CHANNELS, None, 2, 1e-5),
    "loss": (loss.nll_loss, SCORES, CLASSES, None, -100, "mean"),
    "losses": (loss.nll_loss, SCORES, CLASSES, random(5), -100, "none"),
    "loss backward": (loss.nll_loss_backward, numpy.array(1, "f4"), SCORES, CLASSES, None, -100, "mean"),
}
for of_input in (True, False):
    CALLS[f"batch norm backward {of_input}"] = (
        normalization._batch_gradients, X, X, CHANNELS, MEAN, INVERSE, True, of_input,
    )  # fmt: skip
    CALLS[f"group norm backward {of_input}"] = (
        normalization._group_gradients, X, X, CHANNELS, MEAN.reshape(2, 2), INVERSE.reshape(2, 2), 2, of_input,
    )  # fmt: skip
for name, function in normalization.__dict__.items():
    if name in ("layer_norm_rows", "channel_norm_rows"):
        CALLS[name] = (function, (X.reshape(8, 72), None, None), 1, (1e-5,))


def strides(array):
    return [step for step, size in zip(array.strides, array.shape, strict=True) if size > 1]


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("name", CALLS)
def test_into_writes_the_result_of_run_into_given_memory(name, enabled, monkeypatch):
    monkeypatch.setattr(LOOPS, "enabled", enabled)
    kernel, *arguments = CALLS[name]
    plan = kernel.plan(*arguments)
    passed = (*arguments[0], *arguments[2]) if isinstance(arguments[0], tuple) else arguments
    defaults = getattr(kernel, "__defaults__", None) or ()
    missing = len(kernel.__wrapped__.__annotations__) - 1 - len(passed) if hasattr(kernel, "__wrapped__") else 0
    passed = [*passed, *defaults[len(defaults) - missing :]]
    found = plan.run(*passed)
    found = found if isinstance(found, tuple) else (found,)
    out = [None if memory is None else memory.empty() for memory in plan.results]
    for item in out:
        if item is not None:
            item.fill(7)
    assert plan.into(out, *passed) is None
    assert len(found) == len(out)
    for one, other in zip(found, out, strict=True):
        if other is not None:
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
            assert strides(one) == strides(other)
            numpy.testing.assert_array_equal(one, other)
