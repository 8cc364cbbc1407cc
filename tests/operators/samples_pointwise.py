"""Samples of functions of each element: pointwise, activation, special functions."""

from .sampling import both, constant, fraction, index, positive, real, sample, unit

_EVERYWHERE = "exp exp2 expm1 sigmoid sin cos sinh cosh tanh asinh sinc deg2rad rad2deg neg"
_COMPLEX_EVERYWHERE = (
    "exp expm1 sigmoid sin cos tan sinh cosh tanh reciprocal conjugate _neg_view conj_physical abs neg angle"
)
_REAL_ONLY = """
    exp2 sinc deg2rad rad2deg atan asinh sign floor ceil trunc frac round_to_integer relu hardsigmoid hardswish hardtanh
    hardshrink softshrink elu leaky_relu elu_in_place leaky_relu_in_place silu mish softplus logsigmoid gelu erf erfc erfcx
    normal_distribution
    log_ndtr i0 i0e i1 i1e isposinf isneginf signbit
"""

SAMPLES = {
    **{name: [both(real(2, 3))] for name in _COMPLEX_EVERYWHERE.split()},
    **{name: [sample(real(2, 3))] for name in _REAL_ONLY.split()},
    **{name: [both(positive(2, 3))] for name in "log log2 log10 log1p sqrt rsqrt".split()},
    **{name: [both(unit(2, 3))] for name in "asin acos atan atanh asinh".split()},
    **{name: [sample(positive(2, 3))] for name in "lgamma digamma entr".split()},
    **{name: [sample(real(2, 3))] for name in "isnan isinf isfinite isreal".split()},
    "acosh": [both(real(2, 3, low=1.0, high=3.0))],
    "sgn": [both(real(2, 3))],
    "logit": [sample(fraction(2, 3)), sample(fraction(2, 3), 0.1)],
    "erfinv": [sample(unit(2, 3))],
    "ndtri": [sample(fraction(2, 3))],
    "round_to_decimals": [sample(real(2, 3), 1)],
    "nan_to_num": [sample(real(2, 3)), sample(real(2, 3), 1.0, 2.0, 3.0)],
    "threshold": [sample(real(2, 3), 0.5, 7.0)],
    "celu_of_input": [sample(real(2, 3), 1.3)],
    "celu_in_place": [sample(real(2, 3), 1.3)],
    "polygamma_of": [sample(positive(2, 3), 1), sample(positive(2, 3), 2)],
    "mvlgamma": [sample(real(2, 3, low=2.0, high=4.0), 3)],
    "igamma": [sample(constant(positive(2, 3)), positive(2, 3))],
    "igammac": [sample(constant(positive(2, 3)), positive(2, 3))],
    "zeta": [sample(constant(real(2, 3, low=2.0, high=4.0)), positive(2, 3))],
    **{
        name: [sample(real(2, 3)), sample(real())]
        for name in """
            bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0 modified_bessel_i1 modified_bessel_k0
            modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0 airy_ai
        """.split()
    },
    **{
        name: [sample(real(2, 3), index(9, 2, 3)), sample(real(), index(9))]
        for name in """
            chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w
            shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v
            shifted_chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l
            legendre_polynomial_p
        """.split()
    },
    # operators that compute derivatives from the output's gradient and the input (or the result)
    "derivative_of_sinc": [sample(real(2, 3), 1), sample(real(), 2)],
    "sigmoid_backward": [both(real(2, 3), real(2, 3))],
    "tanh_backward": [both(real(2, 3), real(2, 3))],
    "logit_backward": [sample(real(2, 3), fraction(2, 3)), sample(real(2, 3), fraction(2, 3), 0.1)],
    "threshold_backward": [sample(real(2, 3), real(2, 3), 0.5)],
    "leaky_relu_backward": [sample(real(2, 3), real(2, 3), 0.1, False)],
    "hardtanh_backward": [sample(real(2, 3), real(2, 3), -1.0, 1.0)],
    "hardsigmoid_backward": [sample(real(2, 3), real(2, 3))],
    "hardswish_backward": [sample(real(2, 3), real(2, 3))],
    "hardswish_double_backward": [sample(real(2, 3), constant(real(2, 3)))],
    "hardshrink_backward": [sample(real(2, 3), real(2, 3), 0.5)],
    "softshrink_backward": [sample(real(2, 3), real(2, 3), 0.5)],
    "elu_backward": [sample(real(2, 3), 1.1, 1, 1, False, real(2, 3)), sample(real(2, 3), 1.1, 1, 1, True, real(2, 3))],
    "elu_double_backward": [sample(real(2, 3), 1.1, 1, 1, False, real(2, 3))],
    "silu_backward": [sample(real(2, 3), real(2, 3))],
    "silu_double_backward": [sample(real(2, 3), real(2, 3))],
    "mish_backward": [sample(real(2, 3), real(2, 3))],
    "softplus_backward": [sample(real(2, 3), real(2, 3), 1.5, 20)],
    "softplus_double_backward": [sample(real(2, 3), real(2, 3), 1.5, 20)],
    "logsigmoid_backward": [sample(real(2, 3), real(2, 3))],
    "gelu_backward": [sample(real(2, 3), real(2, 3)), sample(real(2, 3), real(2, 3), approximate="tanh")],
}
SAMPLES["softplus"].append(sample(real(2, 3), 2.0, 1.0))
SAMPLES["gelu"].append(sample(real(2, 3), approximate="tanh"))
SAMPLES["leaky_relu"].append(sample(real(2, 3), 0.3))
