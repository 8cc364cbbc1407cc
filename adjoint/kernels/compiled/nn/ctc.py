"""Connectionist temporal classification: forward and backward log probabilities of states, sample by sample."""

from __future__ import annotations

from ....codegen.llvm.elementary_exponential import exp
from ....codegen.llvm.elementary_logarithm import log
from ....codegen.llvm.kernels import *

_WORK = 64
"""The number of bytes that can be moved while one state is computed for one time step."""


@loops
def log_of_sum(a: T, b: T, c: T) -> T:
    """Return log(exp(a) + exp(b) + exp(c)) without overflow. The result is -inf if all three numbers are -inf."""
    most = fmax(a, fmax(b, c))
    total = most + log(exp(a - most) + exp(b - most) + exp(c - most))
    return where((most == math.inf) | (most == -math.inf), most, total)


@loops(T=FLOATS, copied="log_probs")
def forward_states(
    forward: Pointer[T], rows: Pointer[T], log_probs: Pointer[T], states: Pointer[i64], skips: Pointer[u8],
    lengths: Pointer[i64], times: Int, count: Int, width: Int, classes: Int, start: Int, stop: Int,
) -> None:  # fmt: skip
    """Compute the probabilities of the states of samples, with memory for two rows of width + 2 numbers each."""
    for sample in range(start, stop):
        label = states + sample * width
        skip = skips + sample * width
        before = rows + sample * 2 * (width + 2)  # the first two belong to no state
        here = before + (width + 2)
        for s in vectorized(width + 2):
            before[s] = T(-math.inf)
            here[s] = T(-math.inf)
        here[2] = log_probs[sample * classes + label[0]]
        if (width > 1) and (lengths[sample] > 0):
            here[3] = log_probs[sample * classes + label[1]]
        for time in range(times):
            emitted = log_probs + (time * count + sample) * classes
            out = forward + (sample * times + time) * width
            if time > 0:
                for s in vectorized(width):
                    third = where(skip[s] != 0, before[s], T(-math.inf))
                    here[s + 2] = log_of_sum(before[s + 2], before[s + 1], third) + emitted[label[s]]
            for s in vectorized(width):
                out[s] = here[s + 2]
                before[s + 2] = here[s + 2]


@loops(T=FLOATS, copied="forward log_probs grad loss")
def backward_states(
    result: Pointer[T], rows: Pointer[T], forward: Pointer[T], log_probs: Pointer[T], grad: Pointer[T], loss: Pointer[T],
    states: Pointer[i64], skips: Pointer[u8], lengths: Pointer[i64], ends: Pointer[i64], times: Int, count: Int, width: Int,
    classes: Int, start: Int, stop: Int,
) -> None:  # fmt: skip
    """Compute the gradient of the log-probabilities of samples, starting from `start`."""
    for sample in range(start, stop):
        label = states + sample * width
        skip = skips + sample * width
        after = rows + sample * 2 * (width + 2)  # the last two belong to no state
        here = after + (width + 2)
        final = 2 * lengths[sample]
        for s in vectorized(width + 2):
            after[s] = T(-math.inf)
        for step in range(times):
            time = times - 1 - step
            emitted = log_probs + (time * count + sample) * classes
            out = result + (time * count + sample) * classes
            for c in vectorized(classes):
                out[c] = T(0)
            if time < ends[sample]:
                paths = forward + (sample * times + time) * width
                for s in vectorized(width):
                    ending = where((s == final) | ((s == final - 1) & (final > 0)), T(0), T(-math.inf))
                    leap = where(s + 2 < width, skip[minimum(s + 2, width - 1)] != 0, False)
                    third = where(leap, after[s + 2], T(-math.inf))
                    total = log_of_sum(after[s], after[s + 1], third)
                    total = where(time == ends[sample] - 1, ending, total)
                    here[s] = where(s <= final, total + emitted[label[s]], T(-math.inf))
                for s in vectorized(width):
                    after[s] = here[s]
                    path = here[s] + paths[s]
                    expected = exp(path + loss[sample] - emitted[label[s]])
                    here[s] = where(path == -math.inf, T(0), expected)
                for s in range(width):
                    out[label[s]] = out[label[s]] + here[s]
                for c in vectorized(classes):
                    out[c] = (exp(emitted[c]) - out[c]) * grad[sample]


def forward_of(log_probs: ndarray, states: ndarray, skips: ndarray, lengths: ndarray) -> Any:
    """Return the logarithms of the probabilities of states, with the shape `(N, T, states)`."""
    (times, count, classes), width = log_probs.shape, states.shape[1]
    out = numpy.empty((count, times, width), log_probs.dtype)
    rows = numpy.empty((count, 2, width + 2), log_probs.dtype)
    arrays = out, rows, log_probs, states, skips, lengths
    return forward_states.run(count, times * width * _WORK, *arrays, times, count, width, classes)


def gradient_of(
    log_probs: ndarray, grad: ndarray, states: ndarray, skips: ndarray, lengths: ndarray, ends: ndarray, loss: ndarray,
    forward: ndarray,
) -> Any:  # fmt: skip
    """Return the gradient of the log-probabilities where losses are finite. It is 0 after the end of a sample."""
    (times, count, classes), width = log_probs.shape, states.shape[1]
    out = numpy.empty(log_probs.shape, log_probs.dtype)
    rows = numpy.empty((count, 2, width + 2), log_probs.dtype)
    arrays = out, rows, forward, log_probs, grad, loss, states, skips, lengths, ends
    return backward_states.run(count, times * width * _WORK, *arrays, times, count, width, classes)
