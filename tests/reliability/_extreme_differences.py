"""Known differences from PyTorch at extreme values: operators, dtypes, kinds of arguments, kinds of differences, and reasons.

An entry covers one kind of difference, for the named operators and one kind of arguments (see `described` and `kinds` in
`extremes`). A difference without an entry is a failure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

HALVES = "float16|bfloat16"
REAL = "float32|float64"
FLOATS = f"{HALVES}|{REAL}"
COMPLEX = "complex64|complex128"
INEXACT = f"{FLOATS}|{COMPLEX}"
WHOLE = "u?int8|int16|int32|int64"
EXTREME = ".*(nonfinite|ends).*"
NONFINITE = ".*nonfinite.*"
WITHOUT_ELEMENTS = ".*(empty|scalar).*"


@dataclass(frozen=True)
class Known:
    """A known difference: its reason, names of operators, and patterns for dtype, arguments, kind of difference, and report."""

    why: str
    operators: str
    dtypes: str
    arguments: str
    differs: str
    example: str
    report: str = ".*"

    def covers(self, operator: str, dtype: str, arguments: str, differs: str, report: str) -> bool:
        """Return whether this entry covers the difference."""
        patterns = (self.dtypes, dtype), (self.arguments, arguments), (self.differs, differs), (self.report, report)
        return operator in self.operators.split() and all(
            re.fullmatch(pattern, text, re.DOTALL) for pattern, text in patterns
        )


_LAPACK = (
    "for a matrix with nan, infinities or the limits of a type, LAPACK libraries choose different pivots and scales"
)

DIFFERENCES: list[Known] = [
    Known(
        _LAPACK,
        "cholesky_inverse cholesky_solve geqrf lu_solve ormqr triangular_solve qr linalg.det linalg.qr "
        "linalg.householder_product linalg.inv linalg.inv_ex linalg.ldl_solve linalg.solve linalg.solve_triangular",
        f"{REAL}|{COMPLEX}",
        EXTREME,
        "values nonfinite",
        "0 cholesky_inverse 0",
    ),
    Known(
        _LAPACK,
        "lu linalg.lu linalg.lu_factor linalg.lu_factor_ex",
        f"{REAL}|{COMPLEX}",
        NONFINITE,
        "values nonfinite|values nonfinite other|values nonfinite other rounded|values nonfinite rounded",
        "0 lu 0",
    ),
    Known(
        _LAPACK,
        "linalg.ldl_factor_ex",
        f"{REAL}|{COMPLEX}",
        NONFINITE,
        "values (nonfinite )?other( sign)?",
        "A linalg.ldl_factor_ex 2",
    ),
    Known(
        "for a determinant that is nan, PyTorch returns the sign 0, but LAPACK's pivots determine a sign",
        "linalg.slogdet",
        REAL,
        NONFINITE,
        "values rounded",
        "A linalg.slogdet 32",
        r"item 0: .*\((-?1\.0)\), expected .*\(-?0\.0\)",
    ),
    Known(
        "like `linalg.svd`, the function refuses nan and infinities, because NumPy's LAPACK may not terminate",
        "linalg.cond linalg.lstsq linalg.lstsq.grad_oriented linalg.matrix_norm linalg.norm linalg.pinv linalg.svd "
        "linalg.svdvals norm.nuc pinverse svd",
        f"{REAL}|{COMPLEX}",
        NONFINITE,
        "error",
        "A svd 23",
        r"raised _LinAlgError: linalg.svd: The algorithm failed to converge because the input matrix contained non-finite.*",
    ),
    Known(
        "only in some LAPACK libraries, eigenvalues of nan and infinities converge; PyTorch's error contains a number",
        "linalg.eigh linalg.eigvalsh linalg.pinv.hermitian",
        f"{REAL}|{COMPLEX}",
        EXTREME,
        "error",
        "A linalg.eigh 1",
        r".*elements differ.*|raised (nothing|_LinAlgError: linalg\.eigh: The algorithm failed to converge).*",
    ),
    Known(
        "like `linalg.eig`, the function refuses nan and infinities, because NumPy's LAPACK may not terminate",
        "linalg.eigvals",
        f"{REAL}|{COMPLEX}",
        NONFINITE,
        "error",
        "A linalg.eigvals 0",
        r"raised RuntimeError: torch.linalg.eig: input tensor should not contain infs or NaNs.*",
    ),
    Known(
        "PyTorch's LAPACK ends the process for a matrix with nan",
        "linalg.eigvals",
        ".*",
        ".*",
        "child",
        "A linalg.eigvals 14",
        r".*status -(11|6)",
    ),
    Known(
        "for a matrix with nan or infinities, LAPACK libraries choose different pivots, some of which are zero",
        "linalg.ldl_factor",
        REAL,
        NONFINITE,
        "error",
        "A linalg.ldl_factor 21",
        r"raised (RuntimeError: torch\.linalg\.ldl_factor: .*D\[\d+,\d+\] is zero|_LinAlgError: .*matrix is singular).*",
    ),
    Known(
        "an internal assertion of PyTorch fails",
        "linalg.lstsq linalg.lstsq.grad_oriented linalg.ldl_factor",
        f"{REAL}|{COMPLEX}",
        NONFINITE,
        "error",
        "A linalg.ldl_factor 10",
        r"raised .*, expected RuntimeError: false INTERNAL ASSERT FAILED.*",
    ),
    Known(
        "LAPACK libraries differ in overflows in the inverse of a matrix that is singular to working precision",
        "linalg.matrix_power",
        REAL,
        NONFINITE,
        "values nonfinite",
        "A linalg.matrix_power 13",
    ),
    Known(
        "LAPACK libraries differ in whether a matrix with an infinite or nan pivot is positive-definite",
        "linalg.cholesky_ex",
        COMPLEX,
        NONFINITE,
        "values nonfinite",
        "A linalg.cholesky_ex 34",
        r".*elements differ.*|raised (nothing|_LinAlgError).*not positive-definite.*",
    ),
    Known(
        "the order of a sum of terms with nan, infinities or the limits of types determines its overflows",
        "cross __rmatmul__ addbmm addmm addmm.decomposed addr baddbmm bmm einsum matmul mm nn.functional.bilinear "
        "nn.functional.linear nn.functional.conv2d nn.functional.conv3d nn.functional.conv_transpose1d "
        "nn.functional.conv_transpose2d nn.functional.conv_transpose3d _batch_norm_with_update "
        "_native_batch_norm_legit native_batch_norm native_group_norm native_layer_norm nn.functional.group_norm "
        "nn.functional.instance_norm std_mean std_mean.unbiased var var_mean var_mean.unbiased fft.fft fft.fft2 "
        "fft.fftn fft.hfft fft.hfft2 fft.hfftn fft.ifft fft.ifft2 fft.ifftn fft.ihfft fft.ihfft2 fft.ihfftn fft.irfft "
        "fft.irfft2 fft.irfftn fft.rfft2 fft.rfftn stft istft nn.functional.adaptive_avg_pool1d "
        "nn.functional.adaptive_avg_pool2d nn.functional.avg_pool2d _softmax_backward_data addcmul dist cumprod "
        "nn.functional.pairwise_distance nn.functional.multi_margin_loss "
        "nn.functional.linear_cross_entropy.chunked_none",
        INEXACT,
        EXTREME,
        "values nonfinite|values nonfinite rounded",
        "0 addbmm 8",
    ),
    Known(
        "in a sum of numbers of different magnitudes, the order of the sum determines which small numbers are lost by rounding",
        "nn.functional.group_norm nn.functional.instance_norm",
        REAL,
        ".*ends.*",
        "values rounded",
        "A nn.functional.group_norm 12",
    ),
    Known(
        "an integer overflows in PyTorch, and the quotient or divisor has another sign",
        "gcd nn.functional.avg_pool1d nn.functional.avg_pool2d nn.functional.avg_pool3d",
        WHOLE,
        ".*ends.*",
        "values sign",
        "A gcd 0",
    ),
    Known(
        "PyTorch divides the least integer by -1, and the process ends",
        "lcm div.trunc_rounding",
        ".*",
        ".*",
        "child",
        "0 lcm 7",
        r".*status -8",
    ),
    Known(
        "PyTorch reads offsets outside of memory, and the process may end",
        "_segment_reduce.offsets",
        ".*",
        ".*",
        "child",
        "A _segment_reduce.offsets 36",
        r".*status -11",
    ),
    Known(
        "PyTorch treats 0 and -1 as two dimensions of a number, and multiplies along both",
        "masked.prod",
        "bool",
        ".*scalar.*",
        "error",
        "A masked.prod 13",
        r"raised RuntimeError: dim=0 appears multiple times.*",
    ),
    Known(
        "PyTorch's process ends for tensors without dimensions",
        "_chunk_cat",
        ".*",
        ".*",
        "child",
        "A _chunk_cat 3",
        r".*status -11",
    ),
    Known(
        "for complex products, quotients and powers with infinities, C and NumPy differ in the part that is nan",
        "__rdiv__ __rpow__ addcdiv diff gradient logaddexp masked.cumprod pow prod sgn",
        COMPLEX,
        NONFINITE,
        "values nonfinite|values nonfinite rounded",
        "0 addcdiv 5",
    ),
    Known(
        "the order of the sums determines the result for a neighbourhood with infinities of both signs or of weight 0",
        "nn.functional.interpolate.bicubic nn.functional.grid_sample grid_sampler_2d",
        FLOATS,
        ".*ends.*",
        "values nonfinite rounded",
        "A nn.functional.interpolate.bicubic 7",
    ),
    Known(
        "the libraries check arguments in different orders, so errors for tensors without dimensions or elements differ",
        "nn.functional.ctc_loss nn.functional.cross_entropy nn.functional.grid_sample grid_sampler_2d "
        "nn.functional.unfold grid_sampler_3d istft nn.functional.multi_head_attention_forward",
        INEXACT,
        WITHOUT_ELEMENTS,
        "error",
        "0 istft 3",
        r"raised (?!nothing)(RuntimeError|IndexError|ValueError): .*, expected (RuntimeError|IndexError|AssertionError): .*",
    ),
    Known(
        "PyTorch's quotient overflows, or its series gives nan, although the exact result is finite",
        "__rmod__ remainder fmod",
        REAL,
        NONFINITE,
        "values nonfinite",
        "A fmod 21",
    ),
    Known(
        "PyTorch's series gives nan, or 0 for the smallest numbers, although the exact result is 0 or 1",
        "igamma igammac",
        REAL,
        NONFINITE,
        "values nonfinite|values nonfinite rounded|values other",
        "A igamma 20",
        r".*: .*\((0|1)\.0\), expected .*\((nan|0\.0|1\.0)\)",
    ),
    Known(
        "an exponential in PyTorch's loss overflows, although the loss is finite",
        "nn.functional.soft_margin_loss",
        HALVES,
        ".*ends.*",
        "values nonfinite",
        "A nn.functional.soft_margin_loss 34",
        r".*expected (inf|np.float.*inf.*)",
    ),
    Known(
        "if several values, including nan, are equally frequent, each of them may be the mode",
        "mode",
        FLOATS,
        NONFINITE,
        "values nonfinite other|values other rounded",
        "A mode 8",
    ),
    Known(
        "the order of comparisons determines whether PyTorch's maximum ignores nan",
        "nn.functional.embedding_bag",
        FLOATS,
        NONFINITE,
        "values nonfinite",
        "A nn.functional.embedding_bag 22",
    ),
    Known(
        "PyTorch finds no norm of a matrix with nan, and may return the unit matrix",
        "matrix_exp",
        f"{REAL}|{COMPLEX}",
        NONFINITE,
        "values nonfinite",
        "0 matrix_exp 8",
        r".*expected np\.(complex\d+\(1\+0j\)|float\d+\(1\.0\))",
    ),
    Known(
        "the norm of one number is the magnitude of the number; in PyTorch, the square overflows",
        "norm linalg.vector_norm",
        f"{REAL}|{COMPLEX}",
        ".*ends.*",
        "values nonfinite",
        "A norm 7",
        r".*expected np\.float\d+\(inf\)",
    ),
    Known(
        "PyTorch changes an argument that is a number",
        "cov",
        f"{HALVES}|{WHOLE}",
        ".*scalar.*",
        "values other|values rounded",
        "0 cov 2",
        r"the arguments afterwards.*",
    ),
    Known(
        "MKL refuses the plan of a valid transform",
        "fft.fft fft.fftn fft.hfft fft.hfft2 fft.hfftn fft.ifft fft.ifft2 fft.ifftn fft.ihfft fft.ihfft2 fft.ihfftn "
        "fft.irfft fft.irfftn fft.rfft fft.rfftn stft",
        f"{REAL}|{COMPLEX}|{WHOLE}|bool",
        ".*empty.*",
        "error",
        "0 stft 8",
        r"raised nothing, expected .*MKL FFT.*",
    ),
    Known(
        "PyTorch returns an empty image unchanged",
        "nn.functional.pixel_unshuffle",
        f"{HALVES}|{WHOLE}",
        ".*empty.*",
        "shape",
        "A nn.functional.pixel_unshuffle 8",
    ),
    Known(
        "if memory cannot be allocated, the error has PyTorch's words, but is a `MemoryError` as well as a `RuntimeError`",
        "bincount",
        WHOLE,
        ".*ends.*",
        "error",
        "A bincount 22",
        r"raised AllocationError: .*, expected RuntimeError: .*can't allocate memory.*",
    ),
    Known(
        "PyTorch wraps an index beyond the end; here the index is refused",
        "take_along_dim",
        WHOLE,
        ".*ends.*",
        "error",
        "A take_along_dim 2",
        r"raised RuntimeError: index .* is out of bounds for dimension.*",
    ),
    Known(
        "for integers with `alpha`, PyTorch's error for an index out of bounds has another word",
        "index_add",
        WHOLE,
        ".*ends.*",
        "error",
        "A index_add 13",
        r"raised RuntimeError: index .* is out of bounds.*, expected IndexError: index out of range in self",
    ),
    Known(
        "PyTorch treats a mask without dimensions as an index",
        "index_put",
        f"{HALVES}|{WHOLE}",
        ".*scalar.*",
        "error",
        "A index_put 19",
        r"raised nothing, expected IndexError: too many indices for tensor of dimension 0.*",
    ),
    Known(
        "PyTorch returns the addend unchanged if the matrix has no elements",
        "addmv",
        COMPLEX,
        ".*empty.*",
        "shape",
        "A addmv 21",
    ),
    Known(
        "some forms of PyTorch's attention multiply masked nan and infinities by 0, or return nan for fully masked rows",
        "nn.functional.scaled_dot_product_attention",
        FLOATS,
        NONFINITE,
        "values nonfinite|values nonfinite rounded",
        "A nn.functional.scaled_dot_product_attention 0",
    ),
    Known(
        "the libraries check the arguments of attention in different orders, so errors for inconsistent shapes differ",
        "nn.functional.scaled_dot_product_attention",
        FLOATS,
        ".*empty.*",
        "error",
        "A nn.functional.scaled_dot_product_attention 15",
        r"raised (?!nothing)RuntimeError.*|shape .*",
    ),
    Known(
        "for an empty batch, PyTorch reads pivots outside of memory, and the process may end",
        "lu_unpack",
        ".*",
        ".*",
        "child",
        "A lu_unpack 23",
        r".*status -11",
    ),
    Known(
        "the norm of the largest numbers is finite here, but infinite in PyTorch",
        "masked.normalize",
        REAL,
        ".*ends.*",
        "values rounded",
        "A masked.normalize 12",
    ),
    Known(
        "PyTorch raises an internal error for a tensor without dimensions",
        "_batch_norm_with_update",
        REAL,
        ".*scalar.*",
        "error",
        "A _batch_norm_with_update 1",
        r".*SmallVector unable to grow.*",
    ),
    Known(
        _LAPACK,
        "linalg.lstsq linalg.slogdet linalg.tensorsolve",
        f"{REAL}|{COMPLEX}",
        EXTREME,
        "values (nonfinite )?(other )?rounded|values other",
        "A linalg.lstsq 9",
    ),
    Known(
        "in a power of a matrix that overflows, infinities of both signs may meet in a sum",
        "matrix_exp",
        HALVES,
        ".*ends.*",
        "values nonfinite",
        "A matrix_exp 34",
        r".*\(inf\), expected .*\(nan\)",
    ),
    Known(
        "the norm of the largest numbers is finite here, but infinite in PyTorch",
        "nn.functional.normalize nn.functional.embedding nn.functional.embedding_bag",
        REAL,
        ".*ends.*",
        "values rounded",
        "A nn.functional.normalize 6",
        r".*, expected np\.float\d+\(-?0\.0\)",
    ),
    Known(
        "if one argument is nan and the other is 0 or infinity, PyTorch checks the other argument first",
        "igamma igammac",
        FLOATS,
        NONFINITE,
        "values nonfinite( rounded)?",
        "A igammac 0",
        r".*: (nan|np\.float\d+\(nan\)), expected .*\b[01].*",
    ),
    Known(
        "PyTorch reads the first element of an empty tensor before it checks the padding",
        "nn.functional.conv3d",
        HALVES,
        ".*empty.*",
        "error",
        "A nn.functional.conv3d 25",
        "raised RuntimeError: negative padding is not supported, expected IndexError: select.*",
    ),
]


def reason(case: str, difference: str) -> str | None:
    """Return the reason for a known difference (`case`: operator and dtype), or None."""
    operator, _, dtype = case.partition(" ")
    parts = difference.split("; ", 2)
    arguments, differs, report = parts if len(parts) == 3 else ("", "child", difference)
    return next((each.why for each in DIFFERENCES if each.covers(operator, dtype, arguments, differs, report)), None)
