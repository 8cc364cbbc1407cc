"""Known differences from PyTorch at extreme values, by their reason: operators, and what is reported of them.

An entry covers only differences of its kind: "infinite" reports name nan, an infinity, or a number at the end of a type.
"""

from __future__ import annotations

import re

INFINITE = r".*elements differ.*(nan|inf|e\+30[5-8]|e\+3[78])"
DIFFERS = r".*elements differ"
RAISES = r".*raised (?!nothing|.*TimeoutError)"

DIFFERENCES: list[tuple[str, str, str]] = [
    (
        (
            "LAPACK libraries choose other pivots, scale otherwise and go on or stop where a matrix has nan, infinities or the "
            "ends of a type, and name another failure"
        ),
        (
            r"linalg\.(cond|eigh?|eigvalsh?|eigvals|householder_product|ldl_\w+|lstsq|lu\w*|inv\w*|matrix_rank|norm|pinv|slogdet|"
            r"solve\w*|svd\w*|tensorsolve|tensorinv|det|qr|matrix_norm)(\.\w+)*|lu\w*|geqrf|ormqr|cholesky_\w+|triangular_solve|"
            r"pinverse|matrix_exp|logdet|svd|qr|norm\.nuc"
        ),
        f"{DIFFERS}|.*(LinAlgError|did not converge|INTERNAL ASSERT)",
    ),
    (
        (
            "sums and products of nan, infinities and the ends of types depend on the order in which terms are added, and "
            "where intermediate results overflow"
        ),
        (
            r"\w*(addbmm|baddbmm|bmm|matmul__|addmm|addmv|addr|matmul|mv|dot|einsum)\w*|sum|sum_to_size|cov|corrcoef|std\w*(\.\w+)?|"
            r"var\w*(\.\w+)?|cumprod|stft|istft|trapz|trapezoid|nn\.functional\.(conv\w*|bilinear|linear|instance_norm|batch_norm|"
            r"layer_norm|group_norm|multi_margin_loss|multilabel_margin_loss|normalize|embedding_bag|scaled_dot\w*)|native_\w+_norm|"
            r"fft\.\w+|_batch_norm\w*"
        ),
        INFINITE,
    ),
    (
        (
            "in sums of numbers of different orders of magnitude the small ones are rounded away, which ones by the order of "
            "summation: errors relative to the largest"
        ),
        r"sum|sum_to_size|fft\.\w+|nn\.functional\.\w*avg_pool\dd|stft|istft",
        DIFFERS,
    ),
    (
        "an integer that overflows in PyTorch's sum, or its magnitude does, has another sign",
        r"gcd|lcm|nn\.functional\.avg_pool\dd",
        DIFFERS,
    ),
    ("PyTorch divides the least integer by -1, and the process ends", r"lcm", r".*status -8"),
    ("PyTorch's LAPACK ends the process where a matrix has nan", r"linalg\.eigvals", r".*status -11"),
    (
        "complex products, quotients and powers with infinities: C's rules and NumPy's differ on which part is nan",
        r"addcdiv|addcmul|diff|sgn|logaddexp|float_power|__rpow__|pow|cumprod|logcumsumexp|sum|true_divide|div\w*",
        r".*complex",
    ),
    (
        "a neighbour whose weight is 0 is left out of a sum in one library, and times an infinity nan in the other",
        r"nn\.functional\.(interpolate\.\w+|upsample_bilinear|grid_sample)|grid_sampler_\dd",
        INFINITE + "|.*float16",
    ),
    (
        "PyTorch interpolates bytes with weights of a few bits, and rounds between the dimensions",
        r"nn\.functional\.(interpolate\.\w+|upsample_bilinear)",
        r".*uint8: .*elements differ",
    ),
    (
        "the words, or the type, of the error for tensors without dimensions or elements",
        (
            r"nn\.functional\.(ctc_loss|nll_loss|cross_entropy|pad\.\w+|interpolate\.\S+|embedding(_bag)?|grid_sample|"
            r"multi_head_attention_forward)|grid_sampler_\dd|baddbmm|mv|(linalg\.)?cross|istft|slice_scatter|index_reduce\.\w+|"
            r"fft\.ifftshift|linalg\.multi_dot"
        ),
        RAISES,
    ),
    (
        "PyTorch's quotient overflows, or its series ends in nan, where the exact result is a number",
        r"__rmod__|remainder|fmod|igammac?|special\.zeta",
        INFINITE,
    ),
    ("of values that are equally frequent, nan among them, either may be the mode", r"mode", DIFFERS),
    ("nan in boundaries, which are not sorted then", r"bucketize|searchsorted", DIFFERS),
    ("PyTorch passes over nan in a maximum", r"nn\.functional\.(embedding_bag|pdist)", r".*nan"),
    ("PyTorch changes an argument, a number", r"cov", r".*the arguments afterwards"),
    (
        "MKL refuses a plan, of a transform that is defined",
        r"fft\.\w+|stft|istft",
        r".*raised nothing, expected .*MKL FFT",
    ),
    ("PyTorch refuses an empty depth only", r"nn\.functional\.conv3d", r".*raised nothing"),
    ("shapes and dtypes of what has no elements", r"nn\.functional\.pixel_unshuffle|trapz", r".*(shape|dtype)"),
]


def reason(case: str, difference: str) -> str | None:
    """Why a difference (`case`: operator and dtype) is known, or None."""
    name = case.split()[0].removesuffix(":")
    report = f"{case}: {difference}"
    for why, operators, kinds in DIFFERENCES:
        if re.fullmatch(operators, name) and re.match(kinds, report, re.DOTALL):
            return why
    return None
