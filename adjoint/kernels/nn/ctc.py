"""Connectionist temporal classification: the probability of a sequence of labels, summed over all its alignments in time.

A. Graves et al., "Connectionist temporal classification", 2006. The states of a path are the labels, with blanks
between them. Forward and backward probabilities of the states are summed as logarithms, for all samples of a batch
together.
"""

from __future__ import annotations

import numpy

from ...codegen.plans import compiled
from ..runtime.costs import PIECEWISE
from ..runtime.floating import Array, refuse


def _states(targets: Array, target_lengths: tuple[int, ...], blank: int, labels: int) -> tuple[Array, Array]:
    """Return the label of each state, `(N, states)`, and whether a path may skip the state before it."""
    count = len(target_lengths)
    states = numpy.full((count, 2 * max(target_lengths, default=0) + 1), blank, numpy.int64)
    start = 0
    for sample, length in enumerate(target_lengths):
        row = targets[start : start + length] if targets.ndim == 1 else targets[sample, :length]
        states[sample, 1 : 2 * length : 2] = row
        start += length
    if ((states < 0) | (states >= labels)).any():
        raise RuntimeError("targets must be in label range")
    skips = numpy.zeros(states.shape, bool)
    skips[:, 3::2] = states[:, 3::2] != states[:, 1:-2:2]
    return states, skips


def _shifted(values: Array, by: int) -> Array:
    """Return the values of the states `by` positions earlier (later if negative), or -inf if there is no such state."""
    result = numpy.full_like(values, -numpy.inf)
    if by > 0:
        result[:, by:] = values[:, :-by]
    else:
        result[:, :by] = values[:, -by:]
    return result


def _at_states(log_probs: Array, states: Array) -> Array:
    """Return the logarithm of the probability of each state at each time, `(T, N, states)`."""
    return numpy.take_along_axis(log_probs, numpy.broadcast_to(states, (log_probs.shape[0], *states.shape)), 2)


def _barred(values: Array, allowed: Array) -> Array:
    return numpy.where(allowed, values, -numpy.inf)


def ctc_loss(
    log_probs: Array, targets: Array, input_lengths: tuple[int, ...], target_lengths: tuple[int, ...], blank: int,
    zero_infinity: bool,
) -> tuple[Array, Array]:  # fmt: skip
    """Return the negative logarithm of the probability of each target, and the forward log-probabilities `(N, T, states)`."""
    if log_probs.dtype.kind != "f" or log_probs.dtype.itemsize < 4:
        raise refuse("ctc_loss_cpu", log_probs)
    states, skips = _states(targets, target_lengths, blank, log_probs.shape[2])
    (times, count), width = log_probs.shape[:2], states.shape[1]
    lengths = numpy.array(target_lengths, numpy.int64)
    ends = numpy.array(input_lengths, numpy.int64)
    forward = _forward(log_probs, states, skips, lengths)
    with numpy.errstate(all="ignore"):
        rows = numpy.arange(count)
        last = forward[rows, numpy.maximum(ends, 1) - 1] if times else numpy.full((count, width), -numpy.inf)
        final = last[rows, 2 * lengths]
        label = numpy.where(lengths > 0, last[rows, numpy.maximum(2 * lengths - 1, 0)], -numpy.inf)
        probability = numpy.where(ends > 0, numpy.logaddexp(final, label), numpy.where(lengths > 0, -numpy.inf, 0.0))
    return (-probability).astype(log_probs.dtype), forward


@compiled("nn.ctc.forward_of", least=PIECEWISE)
def _forward(log_probs: Array, states: Array, skips: Array, lengths: Array) -> Array:
    """Return the logarithms of the probabilities of states, with the shape `(N, T, states)`."""
    (times, count), width = log_probs.shape[:2], states.shape[1]
    emitted = _at_states(log_probs, states)
    forward = numpy.full((count, times, width), -numpy.inf, log_probs.dtype)
    if times:
        forward[:, 0, 0] = emitted[0, :, 0]
        if width > 1:
            forward[:, 0, 1] = numpy.where(lengths > 0, emitted[0, :, 1], -numpy.inf)
    with numpy.errstate(all="ignore"):
        for time in range(1, times):
            before = forward[:, time - 1]
            total = numpy.logaddexp(before, _shifted(before, 1))
            total = numpy.logaddexp(total, _barred(_shifted(before, 2), skips))
            forward[:, time] = total + emitted[time]
    return forward


def ctc_loss_backward(
    grad: Array, log_probs: Array, targets: Array, input_lengths: tuple[int, ...], target_lengths: tuple[int, ...],
    loss: Array, forward: Array, blank: int, zero_infinity: bool,
) -> Array:  # fmt: skip
    """Return PyTorch's gradient of `log_probs`, which is the gradient with respect to the inputs of the log-softmax."""
    states, skips = _states(targets, target_lengths, blank, log_probs.shape[2])
    lengths = numpy.array(target_lengths, numpy.int64)
    ends = numpy.array(input_lengths, numpy.int64)
    result = _gradient(log_probs, grad, states, skips, lengths, ends, loss, forward)
    hopeless = numpy.isposinf(loss)
    if hopeless.any():
        used = numpy.arange(len(log_probs))[:, None] < ends
        result[used & hopeless] = 0 if zero_infinity else numpy.nan
    return result


@compiled("nn.ctc.gradient_of", least=PIECEWISE)
def _gradient(
    log_probs: Array, grad: Array, states: Array, skips: Array, lengths: Array, ends: Array, loss: Array, forward: Array
) -> Array:
    """Return the gradient of `log_probs`, which is 0 after the `ends` of samples."""
    emitted = _at_states(log_probs, states)
    times, count, width = emitted.shape
    places = numpy.arange(width)
    is_final = (places == 2 * lengths[:, None]) | ((places == 2 * lengths[:, None] - 1) & (lengths[:, None] > 0))
    allowed = places <= 2 * lengths[:, None]
    leaps = numpy.zeros_like(skips)
    leaps[:, :-2] = skips[:, 2:]
    backward = numpy.full((count, width), -numpy.inf, log_probs.dtype)
    result = numpy.zeros_like(log_probs)
    rows = numpy.broadcast_to(numpy.arange(count)[:, None], states.shape)
    with numpy.errstate(all="ignore"):
        for time in reversed(range(times)):
            total = numpy.logaddexp(backward, _shifted(backward, -1))
            total = numpy.logaddexp(total, _barred(_shifted(backward, -2), leaps))
            total = numpy.where((ends == time + 1)[:, None], numpy.where(is_final, 0.0, -numpy.inf), total)
            backward = _barred(total + emitted[time], allowed & (time < ends)[:, None])
            paths = forward[:, time] + backward
            joined = numpy.full(log_probs.shape[1:], -numpy.inf, log_probs.dtype)
            numpy.logaddexp.at(joined, (rows, states), paths)
            expected = numpy.exp(joined + loss[:, None] - log_probs[time])
            result[time] = numpy.where(numpy.isneginf(joined), 0, expected)
            result[time] = (numpy.exp(log_probs[time]) - result[time]) * grad[:, None]
    result[numpy.arange(times)[:, None] >= ends] = 0
    return result
