"""Samples of arithmetic: operators of two or three operands, comparisons, choices between operands."""

import numpy

from .sampling import Input, both, constant, index, mask, positive, real, sample

_PAIR = (real(2, 3), real(2, 3))
_BROADCAST = (real(2, 3), real(3))
_COMPARISONS = "eq ne lt le gt ge".split()


def _integers(*shape):
    return Input(shape, lambda generator, shape: generator.randint(1, 5, shape, numpy.int64), differentiable=False)


SAMPLES = {
    "add": [both(*_PAIR), both(*_BROADCAST, alpha=1.5)],
    "sub": [both(*_PAIR), both(*_BROADCAST, alpha=1.5)],
    "rsub_tensor": [both(*_PAIR), both(*_BROADCAST, alpha=1.5)],
    "mul": [both(*_PAIR), both(*_BROADCAST)],
    "div": [both(*_PAIR), both(*_BROADCAST)],
    **{f"{name}_number": [both(real(2, 3), 1.7)] for name in "add sub mul div".split()},
    "rsub_number": [both(real(2, 3), 1.7), sample(real(2, 3), 1.7, alpha=2.5)],
    "div_rounded": [sample(*_PAIR, "floor"), sample(*_BROADCAST, "trunc")],
    "floor_divide_by_tensor": [sample(*_PAIR)],
    "floor_divide_by_number": [sample(real(2, 3), 0.7)],
    "remainder_by_tensor": [sample(*_PAIR)],
    "remainder_by_number": [sample(real(2, 3), 0.7)],
    "remainder_of_number": [sample(1.7, real(2, 3))],
    "fmod_by_tensor": [sample(*_PAIR)],
    "fmod_by_number": [sample(real(2, 3), 0.7)],
    "addcmul": [both(real(2, 3), real(3), real(2, 1)), both(real(2, 3), real(2, 3), real(2, 3), value=0.5)],
    "addcdiv": [both(real(2, 3), real(3), real(2, 1)), both(real(2, 3), real(2, 3), real(2, 3), value=0.5)],
    "lerp_by_number": [both(*_PAIR, 0.3), sample(*_BROADCAST, 0.7)],
    "lerp_by_tensor": [both(*_PAIR, real(2, 3)), sample(*_BROADCAST, real(2, 1))],
    **{name: [sample(*_PAIR), sample(*_BROADCAST)] for name in _COMPARISONS},
    **{f"{name}_by_tensor": [sample(*_PAIR), sample(*_BROADCAST)] for name in _COMPARISONS},
    **{f"{name}_by_number": [sample(real(2, 3), 0.3)] for name in _COMPARISONS},
    **{f"logical_{name}": [sample(constant(real(2, 3)), constant(real(3)))] for name in "and or xor".split()},
    "logical_not": [sample(constant(real(2, 3)))],
    **{f"bitwise_{name}": [sample(index(9, 2, 3), index(9, 3))] for name in "and or xor".split()},
    "bitwise_not": [sample(index(9, 2, 3))],
    "bitwise_left_shift": [sample(index(9, 2, 3), index(3, 3))],
    "bitwise_right_shift": [sample(index(9, 2, 3), index(3, 3))],
    "gcd": [sample(_integers(2, 3), _integers(3))],
    "lcm": [sample(_integers(2, 3), _integers(3))],
    "pow_number": [
        *[both(positive(2, 3), exponent) for exponent in (0, 1, 2, 3, 0.5, -1.5)],
        sample(real(2, 3), 3),
        sample(real(2, 3), -2),
    ],
    "pow_tensor": [both(positive(2, 3), real(2, 3)), sample(positive(2, 3), real(3))],
    "number_pow": [both(1.7, real(2, 3))],
    "atan2": [sample(*_PAIR), sample(*_BROADCAST)],
    "hypot": [sample(*_PAIR), sample(*_BROADCAST)],
    "copysign_by_tensor": [sample(*_PAIR), sample(*_BROADCAST)],
    "copysign_by_number": [sample(real(2, 3), -1.0)],
    "nextafter": [sample(*_BROADCAST)],
    "frexp": [sample(real(2, 3), after=lambda result: result[0])],
    "ldexp": [sample(real(2, 3), constant(index(4, 2, 3)))],
    "logaddexp": [sample(*_PAIR), sample(*_BROADCAST)],
    "logaddexp2": [sample(*_PAIR), sample(*_BROADCAST)],
    "xlogy_by_tensor": [sample(real(2, 3), positive(2, 3)), sample(real(2, 3), positive(3))],
    "xlogy_by_number": [sample(real(2, 3), 1.7)],
    "xlogy_of_number": [sample(1.7, positive(2, 3))],
    "xlog1py_by_tensor": [sample(real(2, 3), positive(2, 3)), sample(real(2, 3), positive(3))],
    "xlog1py_by_number": [sample(real(2, 3), 1.7)],
    "xlog1py_of_number": [sample(1.7, positive(2, 3))],
    "heaviside": [sample(*_PAIR)],
    **{name: [sample(*_PAIR), sample(*_BROADCAST)] for name in "maximum minimum fmax fmin".split()},
    "zero_where": [both(real(2, 3), mask(2, 3)), sample(real(2, 3), mask(3))],
    "select_where": [both(mask(2, 3), real(2, 3), real(2, 3)), sample(mask(2, 1), real(2, 3), real(3))],
    "clamp_to_numbers": [sample(real(2, 3), -0.5, 1.0), sample(real(2, 3), None, 0.5), sample(real(2, 3), 0.5)],
    "clamp_to_tensors": [sample(real(2, 3), real(3, low=-2.0, high=-0.5), real(2, 3, low=0.0)), sample(*_PAIR)],
    "clamp_min_to_number": [sample(real(2, 3), 0.5)],
    "clamp_min_to_tensor": [sample(*_PAIR), sample(*_BROADCAST)],
    "clamp_max_to_number": [sample(real(2, 3), 0.5)],
    "clamp_max_to_tensor": [sample(*_PAIR), sample(*_BROADCAST)],
    "complex": [sample(*_PAIR), sample(*_BROADCAST)],
    "polar": [sample(positive(2, 3), real(2, 3))],
}
