"""Distributions that are drawn by rejection: Poisson, gamma and binomial numbers.

Each number consumes a random number of words. `kernels.create.random` cites the sources of the algorithms and runs them
in Python if there is no compiled code. Logarithms and similar functions are called from the C library.
"""

from __future__ import annotations

from ....codegen.llvm.external import c_function
from ....codegen.llvm.kernels import *
from ...create.mt19937 import Stream
from .twister import fraction

log, log1p, lgamma, sine, cosine = (c_function(name, f64, f64) for name in ("log", "log1p", "lgamma", "sin", "cos"))
exp = c_function("exp", f64, f64)
power = c_function("pow", f64, f64, f64)

THIRD = float(numpy.float32(1.0 / 3.0))


@loops
def poisson_product(state: Pointer[u32], rate: f64) -> f64:
    """Draw the number of events for a rate below 10 by products of fractions."""
    limit = exp(-rate)
    count = f64(0)
    if rate != 0:
        product = fraction(state)
        while product > limit:
            count += 1.0
            product *= fraction(state)
    return count


@loops
def poisson_rejection(state: Pointer[u32], rate: f64) -> f64:
    """Draw a number of events for a rate of 10 or more by transformed rejection."""
    root = sqrt(rate)
    log_rate = log(rate)
    b = root * 2.53 + 0.931
    a = b * 0.02483 - 0.059
    inverse_alpha = 1.1328 / (b - 3.4) + 1.1239
    v_r = 0.9277 - 3.6224 / (b - 2.0)
    k = f64(0)
    drawing = True
    while drawing:
        u = fraction(state) - 0.5
        v = fraction(state)
        us = 0.5 - fabs(u)
        k = floor((a * 2.0 / us + b) * u + rate + 0.43)
        if us >= 0.07 and v <= v_r:
            drawing = False
        elif not (k < 0 or (us < 0.013 and v > us)):
            left = log(v) + log(inverse_alpha) - log(a / (us * us) + b)
            drawing = left > k * log_rate - rate - lgamma(k + 1.0)
    return k


@loops(explicit=True, plain=True)
def poisson_kernel(state: Pointer[u32], rates: Pointer[f64], n: Int) -> None:
    """Replace each rate with a number of events."""
    for i in range(n):
        rate = rates[i]
        if rate >= 10:
            rates[i] = poisson_rejection(state, rate)
        else:
            rates[i] = poisson_product(state, rate)


def poisson(rates: ndarray, stream: Stream) -> Any:
    """Replace rates, in a float64 array, with numbers of events."""
    poisson_kernel.compiled()(stream.state_address, address(rates), rates.size)
    return rates


# -- gamma ----------------------------------------------------------------------------------------------------------------


@loops
def normal(state: Pointer[u32], waiting: Pointer[f64], has_waiting: Pointer[i32]) -> f64:
    """Return the next standard normal number. Numbers are drawn in pairs, so every second number has been stored."""
    value = waiting[0]
    if has_waiting[0] != 0:
        has_waiting[0] = 0
    else:
        turns = fraction(state) * (2.0 * math.pi)
        radius = sqrt(log1p(-fraction(state)) * -2.0)
        waiting[0] = radius * sine(turns)
        has_waiting[0] = 1
        value = radius * cosine(turns)
    return value


@loops
def rounded(x: f64, SINGLE: Static) -> f64:
    """Return `x` rounded to float32 if the parameters are float32."""
    if SINGLE:
        return f64(f32(x))
    return x


@loops
def gamma_kernel(
    state: Pointer[u32], values: Pointer[f64], waiting: Pointer[f64], has_waiting: Pointer[i32], SINGLE: Static, n: Int
) -> None:
    """Replace each concentration with a number from its distribution."""
    for i in range(n):
        concentration = values[i]
        scale = f64(1)
        if not concentration <= 0:  # NaN also consumes random numbers
            if concentration < 1:
                scale = power(1.0 - fraction(state), rounded(1.0 / concentration, SINGLE))
                concentration = rounded(concentration + 1.0, SINGLE)
            d = rounded(concentration - THIRD, SINGLE)
            c = 1.0 / sqrt(d * 9.0)
            v = f64(0)
            drawing = True
            while drawing:
                x = normal(state, waiting, has_waiting)
                y = c * x + 1.0
                if not y <= 0:
                    v = y * y * y
                    u = 1.0 - fraction(state)
                    square = x * x
                    drawing = u >= 1.0 - square * 0.0331 * square and log(u) >= square * 0.5 + d * (1.0 - v + log(v))
            values[i] = scale * d * v
        else:
            values[i] = 0.0


def standard_gamma(concentrations: ndarray, stream: Stream, single: bool) -> Any:
    """Replace concentrations, in a float64 array, with numbers from gamma distributions."""
    waiting = numpy.array(0.0 if stream.normal is None else stream.normal)
    has_waiting = numpy.array(stream.normal is not None, numpy.int32)
    kernel = gamma_kernel.compiled(SINGLE=single)
    kernel(stream.state_address, address(concentrations), address(waiting), address(has_waiting), concentrations.size)
    stream.normal = float(waiting) if has_waiting else None
    return concentrations


# -- binomial -------------------------------------------------------------------------------------------------------------


@loops
def stirling_error(k: f64) -> f64:
    """Return log(k!) minus (k + 1/2) * log(k + 1) - (k + 1) + log(2π) / 2."""
    if k < 10:
        return lgamma(k + 1.0) - ((k + 0.5) * log(k + 1.0) - (k + 1.0) + 0.5 * math.log(2.0 * math.pi))
    square = (k + 1.0) * (k + 1.0)
    return (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / square) / square) / (k + 1.0)


@loops
def binomial_waiting(state: Pointer[u32], n: f64, p: f64) -> f64:
    """Return the number of successful trials by adding up waiting times."""
    trials = f64(0)
    successes = f64(0)
    base = log1p(-p)
    while True:
        drawn = fraction(state)
        waited = log(drawn) / base
        whole = floor(waited)
        trials += whole if whole == waited else whole + 1.0
        if trials > n:
            break
        successes += 1.0
    return successes


@loops
def binomial_rejection(state: Pointer[u32], n: f64, p: f64) -> f64:
    """Return the number of successful trials by transformed rejection."""
    deviation = sqrt(n * p * (1.0 - p))
    b = deviation * 2.53 + 1.15
    a = b * 0.0248 + -0.0873 + p * 0.01
    c = n * p + 0.5
    v_r = 0.92 - 4.2 / b
    odds = p / (1.0 - p)
    alpha = (5.1 / b + 2.83) * deviation
    m = floor((n + 1.0) * p)
    k = f64(0)
    drawing = True
    while drawing:
        u = fraction(state) - 0.5
        v = fraction(state)
        us = 0.5 - fabs(u)
        k = floor((a * 2.0 / us + b) * u + c)
        if us >= 0.07 and v <= v_r:
            drawing = False
        elif not (k < 0 or k > n):
            v = log(v * alpha / (a / (us * us) + b))
            bound = (
                (m + 0.5) * log((m + 1.0) / (odds * (n - m + 1.0)))
                + (n + 1.0) * log((n - m + 1.0) / (n - k + 1.0))
                + (k + 0.5) * log(odds * (n - k + 1.0) / (k + 1.0))
                + stirling_error(m)
                + stirling_error(n - m)
                - stirling_error(k)
                - stirling_error(n - k)
            )
            drawing = v > bound
    return k


@loops
def binomial_kernel(state: Pointer[u32], counts: Pointer[f64], probs: Pointer[f64], SINGLE: Static, n: Int) -> None:
    """Replace each number of trials with a number of successes."""
    for i in range(n):
        count = counts[i]
        p = probs[i]
        if p != p or count != count:
            counts[i] = count + p
        elif count <= 0 or p <= 0:
            counts[i] = 0.0
        elif p < 1:
            q = rounded(1.0 - p, SINGLE) if p > 0.5 else p
            successes = f64(0)
            if rounded(count * q, SINGLE) >= 10:
                successes = binomial_rejection(state, count, q)
            else:
                successes = binomial_waiting(state, count, q)
            counts[i] = count - successes if p > 0.5 else successes


def binomial(counts: ndarray, probs: ndarray, stream: Stream, single: bool) -> Any:
    """Replace numbers of trials, in a float64 array, with numbers of successes."""
    kernel = binomial_kernel.compiled(SINGLE=single)
    kernel(stream.state_address, address(counts), address(probs), counts.size)
    return counts
