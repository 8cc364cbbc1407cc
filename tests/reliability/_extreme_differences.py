"""Known differences from PyTorch at extreme values: operators, dtypes, the kind of arguments, what differs, and why.

An entry covers one kind of difference of the operators that it names, for arguments of one kind (see `described` and `kinds` in
`extremes`). A difference without an entry is a failure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

FLOATS = "float16|bfloat16|float32|float64"
COMPLEX = "complex64|complex128"
INEXACT = f"{FLOATS}|{COMPLEX}"
WHOLE = "u?int8|int16|int32|int64"
EXTREME = ".*(nonfinite|ends).*"
NONFINITE = ".*nonfinite.*"
WITHOUT_ELEMENTS = ".*(empty|scalar).*"


@dataclass(frozen=True)
class Known:
    """Why results differ; names of operators; and patterns for dtype, arguments, kind of difference, and report."""

    why: str
    operators: str
    dtypes: str
    arguments: str
    differs: str
    report: str = ".*"

    def covers(self, operator: str, dtype: str, arguments: str, differs: str, report: str) -> bool:
        """Return whether this entry covers the difference."""
        patterns = (self.dtypes, dtype), (self.arguments, arguments), (self.differs, differs), (self.report, report)
        return operator in self.operators.split() and all(
            re.fullmatch(pattern, text, re.DOTALL) for pattern, text in patterns
        )


_LAPACK = (
    "LAPACK libraries choose other pivots and scale otherwise where a matrix has nan, infinities or the ends of a type"
)
_SOLVERS = (
    "cholesky_inverse cholesky_solve geqrf lu_solve ormqr triangular_solve logdet qr linalg.det linalg.qr "
    "linalg.householder_product linalg.inv linalg.inv_ex linalg.ldl_solve linalg.lu_solve linalg.slogdet linalg.solve "
    "linalg.solve_ex linalg.solve_triangular linalg.tensorsolve linalg.lstsq"
)
_FACTORS = "lu linalg.lu linalg.lu_factor linalg.lu_factor_ex"
_SINGULAR = (
    "linalg.cond linalg.lstsq linalg.lstsq.grad_oriented linalg.matrix_norm linalg.matrix_rank linalg.norm "
    "linalg.norm.subgradients_at_zero linalg.pinv "
    "linalg.pinv.singular linalg.svd linalg.svdvals norm.nuc pinverse svd"
)
_EIGEN = "linalg.eigh linalg.eigvalsh linalg.matrix_rank.hermitian linalg.pinv.hermitian"
_PRODUCTS = (
    "cross linalg.cross __rmatmul__ addbmm addmm addmm.decomposed addmv addr baddbmm bmm dot einsum inner linalg.multi_dot "
    "linalg.vecdot matmul mm "
    "mv tensordot vdot nn.functional.bilinear nn.functional.linear nn.functional.conv1d nn.functional.conv2d "
    "nn.functional.conv3d nn.functional.conv_transpose1d nn.functional.conv_transpose2d nn.functional.conv_transpose3d"
)
_MOMENTS = (
    "_batch_norm_with_update _native_batch_norm_legit corrcoef cov native_batch_norm native_group_norm native_layer_norm "
    "nn.functional.batch_norm "
    "nn.functional.group_norm nn.functional.instance_norm nn.functional.layer_norm std "
    "std.unbiased std_mean std_mean.unbiased var var.unbiased var_mean var_mean.unbiased"
)
_FOURIER = (
    "fft.fft fft.fft2 fft.fftn fft.hfft fft.hfft2 fft.hfftn fft.ifft fft.ifft2 fft.ifftn fft.ihfft fft.ihfft2 fft.ihfftn "
    "fft.irfft fft.irfft2 fft.irfftn fft.rfft fft.rfft2 fft.rfftn stft istft"
)
_AVERAGES = (
    "nn.functional.adaptive_avg_pool1d nn.functional.adaptive_avg_pool2d nn.functional.adaptive_avg_pool3d "
    "nn.functional.avg_pool1d nn.functional.avg_pool2d nn.functional.avg_pool3d nn.functional.interpolate.area"
)
_RESAMPLING = (
    "nn.functional.interpolate.bicubic nn.functional.interpolate.bilinear nn.functional.interpolate.linear "
    "nn.functional.interpolate.trilinear nn.functional.upsample_bilinear"
)

DIFFERENCES: list[Known] = [
    Known(_LAPACK, _SOLVERS, INEXACT, EXTREME, "values nonfinite"),
    Known(_LAPACK, _FACTORS, INEXACT, EXTREME, "values (nonfinite|nonfinite other|other)( rounded)?"),
    Known(_LAPACK, "linalg.ldl_factor_ex", INEXACT, NONFINITE, "values nonfinite( other)?( rounded)?( sign)?"),
    Known(
        "the sign of a determinant that is nan: PyTorch returns 0, LAPACK's pivots have one",
        "linalg.slogdet",
        FLOATS,
        NONFINITE,
        "values rounded",
        r"item 0: .*\((-?1\.0)\), expected .*\(-?0\.0\)",
    ),
    Known(
        "singular values of nan and infinities are refused, as by `linalg.svd`: NumPy's LAPACK may not end",
        _SINGULAR,
        INEXACT,
        EXTREME,  # of a product of two, which may overflow, in `linalg.pinv.singular`
        "error",
        "raised _LinAlgError: linalg.svd: The algorithm failed to converge because the input matrix contained non-finite.*",
    ),
    Known(
        "LAPACK libraries differ in whether eigenvalues of matrices with nan and infinities converge; PyTorch adds a number",
        _EIGEN,
        INEXACT,
        EXTREME,
        "error|values .*",
        r".*elements differ.*|raised (nothing|_LinAlgError: linalg\.eigh: The algorithm failed to converge).*",
    ),
    Known(
        "eigenvalues of nan and infinities are refused, as by `linalg.eig`: NumPy's LAPACK may not end",
        "linalg.eigvals",
        INEXACT,
        NONFINITE,
        "error",
        "raised RuntimeError: torch.linalg.eig: input tensor should not contain infs or NaNs.*",
    ),
    Known(
        "PyTorch's LAPACK ends the process for a matrix with nan",
        "linalg.eigvals",
        ".*",
        ".*",
        "child",
        ".*status -(11|6)",
    ),
    Known(
        "LAPACK libraries choose other pivots where a matrix has nan or infinities, and find or miss one that is zero",
        "linalg.ldl_factor linalg.tensorsolve",
        INEXACT,
        NONFINITE,
        "error",
        r"raised (RuntimeError: torch\.linalg\.ldl_factor: .*D\[\d+,\d+\] is zero|_LinAlgError: .*matrix is singular).*",
    ),
    Known(
        "PyTorch finds an error in itself",
        "linalg.lstsq linalg.lstsq.grad_oriented linalg.ldl_factor",
        INEXACT,
        EXTREME,
        "error",
        "raised .*, expected RuntimeError: false INTERNAL ASSERT FAILED.*",
    ),
    Known(
        "inverses of matrices that are singular to working precision: LAPACK libraries differ in what overflows",
        "linalg.matrix_power",
        INEXACT,
        EXTREME,
        "values .*",
    ),
    Known(
        "singular vectors of values that are rounding errors of the largest one are those of chance",
        "svd linalg.svd",
        INEXACT,
        EXTREME,
        "values .*",
    ),
    Known(
        "a pivot that is infinite or nan: LAPACK libraries differ in whether the matrix is positive-definite then",
        "cholesky linalg.cholesky linalg.cholesky_ex",
        INEXACT,
        NONFINITE,
        "error|values .*",
        ".*elements differ.*|raised (nothing|_LinAlgError).*not positive-definite.*",
    ),
    Known(
        "terms with nan, infinities or the ends of types: the order of a sum decides whether it overflows, and where",
        f"{_PRODUCTS} {_MOMENTS} {_FOURIER} {_AVERAGES} _softmax_backward_data addcmul dist sum sum_to_size cumprod "
        "nn.functional.pairwise_distance "
        "trapezoid trapz "
        "nn.functional.multi_margin_loss nn.functional.multilabel_margin_loss nn.functional.normalize "
        "nn.functional.linear_cross_entropy.chunked nn.functional.linear_cross_entropy.chunked_none",
        INEXACT,
        EXTREME,
        "values nonfinite( rounded)?",
    ),
    Known(
        "numbers of different orders of magnitude in a sum: the small ones are rounded away, which ones by its order",
        f"{_FOURIER} {_PRODUCTS} {_MOMENTS} {_AVERAGES} sum sum_to_size",
        f"{INEXACT}|{WHOLE}|bool",  # transforms of integers are in float32
        EXTREME,
        "values rounded",
    ),
    Known(
        "an integer overflows in PyTorch, and the quotient or divisor has another sign",
        "gcd lcm nn.functional.avg_pool1d nn.functional.avg_pool2d nn.functional.avg_pool3d",
        WHOLE,
        ".*ends.*",
        "values (sign|other|other sign)",
    ),
    Known(
        "PyTorch divides the least integer by -1, and the process ends",
        "lcm div.trunc_rounding",
        ".*",
        ".*",
        "child",
        ".*status -8",
    ),
    Known(
        "PyTorch reads offsets that are not there, and the process may end",
        "_segment_reduce.offsets",
        ".*",
        ".*",
        "child",
        ".*status -11",
    ),
    Known(
        "PyTorch takes 0 and -1 for two dimensions of a number, and multiplies over both",
        "masked.prod",
        ".*",
        ".*scalar.*",
        "error",
        "raised RuntimeError: dim=0 appears multiple times.*",
    ),
    Known(
        "PyTorch multiplies and adds at once, and the product does not overflow where the sum is a number",
        "index_add lerp rsub",
        FLOATS,
        ".*ends.*",
        "values nonfinite",
    ),
    Known("PyTorch's process ends for tensors without dimensions", "_chunk_cat", ".*", ".*", "child", ".*status -11"),
    Known(
        "complex products, quotients and powers with infinities: C's rules and NumPy's differ on which part is nan",
        "__rdiv__ __rpow__ addcdiv addcmul cumprod diff div.no_rounding_mode float_power gradient linalg.vander log1p logaddexp "
        "logcumsumexp masked.cumprod pow prod sgn sum true_divide",
        COMPLEX,
        EXTREME,
        "values .*",
    ),
    Known(
        "a neighbourhood with infinities of both signs or of weight 0: the order of the sums decides",
        f"{_RESAMPLING} nn.functional.grid_sample grid_sampler_2d grid_sampler_3d",
        FLOATS,
        EXTREME,
        "values nonfinite( rounded)?",
    ),
    Known(
        "weights of neighbours at places that are rounded in a half type, or among numbers of different orders of magnitude",
        f"{_RESAMPLING} nn.functional.grid_sample grid_sampler_2d grid_sampler_3d",
        FLOATS,
        EXTREME,
        "values (nonfinite )?(other )?rounded",
    ),
    Known(
        "PyTorch reads the first pixel where a place is beyond the integers of 16 bits, in a half type",
        "nn.functional.grid_sample grid_sampler_2d grid_sampler_3d",
        "float16|bfloat16",
        EXTREME,
        "values .*",
    ),
    Known(
        "mirror images of places that are so far away that neighbouring numbers are further apart than pixels",
        "nn.functional.grid_sample grid_sampler_2d grid_sampler_3d",
        "float32|float64",
        EXTREME,
        "values .*other.*",
    ),
    Known(
        "PyTorch interpolates bytes with weights of a few bits, and rounds between the dimensions",
        _RESAMPLING,
        "uint8",
        ".*",
        "values other",
    ),
    Known(
        "another argument is looked at first: the words of the error for tensors without dimensions or elements",
        "nn.functional.ctc_loss nn.functional.cross_entropy nn.functional.embedding nn.functional.grid_sample grid_sampler_2d "
        "nn.functional.unfold nn.functional.gaussian_nll_loss nn.functional.linear_cross_entropy.chunked_none "
        "grid_sampler_3d cross istft nn.functional.multi_head_attention_forward",
        ".*",
        WITHOUT_ELEMENTS,
        "error",
        "raised (?!nothing)(RuntimeError|IndexError|ValueError): .*, expected (RuntimeError|IndexError|AssertionError): .*",
    ),
    Known(
        "PyTorch's quotient overflows, or its series ends in nan, where the exact result is a number",
        "__rmod__ remainder fmod",
        FLOATS,
        EXTREME,
        "values nonfinite",
    ),
    Known(
        "PyTorch's series ends in nan, or in 0 for the smallest numbers, where the result is 0 or 1",
        "igamma igammac",
        FLOATS,
        EXTREME,
        "values .*",
        r".*: .*\((0|1)\.0\), expected .*\((nan|0\.0|1\.0)\)",
    ),
    Known(
        "PyTorch's older function looks at no shape without elements",
        "cholesky",
        ".*",
        ".*empty.*",
        "error",
        "raised RuntimeError: .*batches of square.*",
    ),
    Known(
        "the exponential of PyTorch's loss overflows where the loss is a number",
        "nn.functional.soft_margin_loss",
        FLOATS,
        ".*",
        "values nonfinite",
        ".*expected (inf|np.float.*inf.*)",
    ),
    Known(
        "each nan is an element of its own, and slices with nan have no order: PyTorch's sort leaves theirs to chance",
        "unique",
        FLOATS,
        NONFINITE,
        "values .*",
    ),
    Known(
        "PyTorch's bins overflow where the range is beyond half of the largest number",
        "histc",
        FLOATS,
        ".*ends.*",
        "values .*",
    ),
    Known(
        "of values that are equally frequent, nan among them, either may be the mode",
        "mode",
        INEXACT,
        NONFINITE,
        "values .*",
    ),
    Known(
        "PyTorch passes over nan in a maximum, by chance of its order",
        "cdist nn.functional.embedding_bag nn.functional.pdist",
        FLOATS,
        NONFINITE,
        "values nonfinite",
    ),
    Known(
        "PyTorch finds no norm of a matrix with nan, and may leave the unit matrix",
        "matrix_exp",
        INEXACT,
        NONFINITE,
        "values nonfinite",
        r".*expected np\.(complex\d+\(1\+0j\)|float\d+\(1\.0\))",
    ),
    Known(
        "the norm of one number is its magnitude; in PyTorch its square overflows",
        "norm linalg.norm linalg.vector_norm",
        INEXACT,
        ".*ends.*",
        "values nonfinite",
        r".*expected np\.float\d+\(inf\)",
    ),
    Known("PyTorch changes an argument, a number", "cov", ".*", ".*", "values .*", "the arguments afterwards.*"),
    Known(
        "MKL refuses a plan, of a transform that is defined",
        _FOURIER,
        ".*",
        ".*",
        "error",
        "raised nothing, expected .*MKL FFT.*",
    ),
    Known(
        "PyTorch refuses an empty depth only", "nn.functional.conv3d", ".*", ".*empty.*", "error", "raised nothing.*"
    ),
    Known(
        "PyTorch returns an empty image as it is",
        "nn.functional.pixel_unshuffle",
        ".*",
        ".*empty.*",
        "shape",
    ),
    Known(
        "memory that is not granted: the error is a `RuntimeError` with PyTorch's words, and a `MemoryError`",
        "bincount",
        WHOLE,
        ".*ends.*",
        "error",
        "raised AllocationError: .*, expected RuntimeError: .*can't allocate memory.*",
    ),
    Known(
        "PyTorch takes an index beyond the end for one that begins anew; here it is refused",
        "take_along_dim",
        ".*",
        ".*ends.*",
        "error",
        "raised RuntimeError: index .* is out of bounds for dimension.*",
    ),
    Known(
        "PyTorch has another word for an index out of bounds where `alpha` is given for integers",
        "index_add",
        f"{WHOLE}|bool",
        ".*",
        "error",
        "raised RuntimeError: index .* is out of bounds.*, expected IndexError: index out of range in self",
    ),
    Known(_LAPACK, "linalg.eig linalg.eigvals", INEXACT, ".*ends.*", "values .*"),
    Known(
        "PyTorch counts a mask without dimensions as an index",
        "index_put",
        ".*",
        ".*scalar.*",
        "error",
        "raised nothing, expected IndexError: too many indices for tensor of dimension 0.*",
    ),
    Known(
        "PyTorch returns the addend as it is where the matrix has no elements",
        "addmv",
        ".*",
        ".*empty.*",
        "shape",
    ),
    Known(
        "differences of integers that overflow",
        "gradient",
        WHOLE,
        ".*ends.*",
        "values .*",
    ),
    Known(_LAPACK, "linalg.cond", INEXACT, EXTREME, "values .*"),
    Known(
        _LAPACK, "linalg.tensorinv", INEXACT, NONFINITE, "error", "raised _LinAlgError: inv: The diagonal element .*"
    ),
    Known(_LAPACK, "linalg.ldl_solve", INEXACT, NONFINITE, "error", "raised RuntimeError: Singular matrix.*"),
    Known(
        "PyTorch has several ways of attention: some multiply values that a mask leaves out by 0, which is nan where these are "
        "nan or infinite, some take rows of nan for rows that attend to nothing",
        "nn.functional.scaled_dot_product_attention",
        FLOATS,
        EXTREME,
        "values (nonfinite|rounded)( other)?( rounded)?",
    ),
    Known(
        "another argument is looked at first: attention whose tensors do not fit together",
        "nn.functional.scaled_dot_product_attention",
        FLOATS,
        WITHOUT_ELEMENTS,
        "error|shape",
        "raised (?!nothing)RuntimeError.*|shape .*",
    ),
    Known(
        "without channels PyTorch's result has none either; the sum over no channels is the bias, for each channel asked for",
        "nn.functional.conv1d nn.functional.conv2d nn.functional.conv3d",
        ".*",
        ".*empty.*",
        "shape",
    ),
    Known(
        "the pivots of no matrices have a shape too, which PyTorch does not look at",
        "lu_unpack",
        INEXACT,
        ".*empty.*",
        "error",
        "raised RuntimeError: torch.lu_unpack: LU_pivots is expected .*",
    ),
    Known(
        "PyTorch reads pivots of no matrices that are not there, and the process may end",
        "lu_unpack",
        ".*",
        ".*",
        "child",
        ".*status -11",
    ),
    Known(
        "the least integer has no absolute value: PyTorch's difference overflows, and counts as close",
        "isclose",
        WHOLE,
        ".*ends.*",
        "values other",
    ),
    Known(
        "the norm of the largest numbers is a number here, and infinite in PyTorch",
        "masked.normalize",
        FLOATS,
        ".*ends.*",
        "values (rounded|other)",
    ),
    Known(
        "there are no complex numbers of two halves",
        "where",
        "float16",
        ".*",
        "dtype",
        "dtype complex64, expected complex32",
    ),
    Known(
        "matrices with nan and infinities: LAPACKs differ on which pivot is zero",
        "lu",
        INEXACT,
        NONFINITE,
        "error",
        "raised RuntimeError: torch.linalg.lu_factor_ex: .*is zero.*",
    ),
    Known(
        "PyTorch asks for the first element of nothing",
        "nn.functional.conv_transpose1d nn.functional.conv_transpose2d nn.functional.conv_transpose3d",
        INEXACT,
        ".*empty.*",
        "error",
        "raised (nothing|RuntimeError: kernel size should be .*), expected IndexError: select.*",
    ),
    Known(
        "PyTorch fails within, where a tensor has no dimensions",
        "_batch_norm_with_update _native_batch_norm_legit native_batch_norm",
        FLOATS,
        WITHOUT_ELEMENTS,
        "error",
        ".*SmallVector unable to grow.*",
    ),
]


def reason(case: str, difference: str) -> str | None:
    """Return the reason for a known difference (`case`: operator and dtype), or None."""
    operator, _, dtype = case.partition(" ")
    parts = difference.split("; ", 2)
    arguments, differs, report = parts if len(parts) == 3 else ("", "child", difference)
    return next((each.why for each in DIFFERENCES if each.covers(operator, dtype, arguments, differs, report)), None)
