"""Intended differences between the candidate and PyTorch: the case and the reason.

A case has the name of its test: `linalg.det graph` for an aspect of an operator, `saved tensors of torch.det(m)` for
the saved tensors of an expression, `graph of c.conj()`, or the name of a program. An entry permits the differences that
contain `only`, or all differences if `only` is empty. An entry that permits no existing difference must be removed.
"""

from typing import NamedTuple

import torch

from .candidate import candidate


class Difference(NamedTuple):
    """The reason for a difference, and words in its description. `everywhere`: whether it exists on all processors."""

    reason: str
    only: str = ""
    everywhere: bool = True


_ALPHA = "PyTorch multiplies by alpha = 1 + 0j, which turns infinities into NaN"

KNOWN: dict[str, Difference] = {
    "saved_tensors_hooks_bad": Difference("PyTorch replaces the error of the hook by an error of `**`", "line 9"),
    "out_argument": Difference("PyTorch converts the number to a tensor of integers, and refuses the dtype", "line 11"),
    "mistake torch.tensor()": Difference(
        "Python itself raises the error for the number of arguments", "missing 1 required"
    ),
    "mistake torch.exp(torch.ones(2), torch.ones(2))": Difference(
        "Python itself raises the error for too many arguments; errors for missing arguments have PyTorch's words",
        "from 0 to 1",
    ),
    "mistake torch.meshgrid(torch.ones(2, 2))": Difference(
        "PyTorch's message contains the C++ text of the tensor", "but got"
    ),
    "mistake torch.ones(2).to(5.5)": Difference(
        "PyTorch treats any floating-point number as the type `float`", "float"
    ),
    "__rsub__ value[complex128]": Difference(_ALPHA, "(nan+nanj)"),
    "__rsub__ value[complex64]": Difference(_ALPHA, "(nan+nanj)"),
    "rsub value[complex128]": Difference(_ALPHA, "(nan+nanj)"),
    "rsub value[complex64]": Difference(_ALPHA, "(nan+nanj)"),
    "linalg.householder_product gradgrad[complex128]": Difference(
        "PyTorch loses digits; the product of single reflections agrees with adjoint", "147315.2"
    ),
    "logcumsumexp gradgrad[float64]": Difference(
        "PyTorch's gradient is nan, but the exact gradient is 0", "np.float64(0.0), expected np.float64(nan)"
    ),
    **{
        f"{name} value[float64]": Difference(
            "PyTorch gives a number for a nan argument", f"np.float64(nan), expected np.float64({number})"
        )
        for name, number in (("igamma", "0.0"), ("igammac", "1.0"))
    },
    **{
        f"linalg.norm.subgradients_at_zero gradgrad[{dtype}]": Difference(
            "for the norm of order -1 of zeros, PyTorch's first derivative is 0, but the second derivative is nan",
            f"expected np.{nan}",
        )
        for dtype, nan in (("float64", "float64(nan)"), ("complex128", "complex128(nan+nanj)"))
    },
    "masked.logaddexp gradgrad[float64]": Difference(
        "PyTorch's second derivative is nan next to -inf", "expected np.float64(nan)"
    ),
    **{
        f"kron {aspect}": Difference(
            "PyTorch's factors are views that miss changes of their memory; the factors are copies here",
            "CloneBackward0",
        )
        for aspect in ("graph", "method")
    },
    **{
        f"{name} {aspect}": Difference("PyTorch computes a gradient for the triangle that the function ignores")
        for name in ("cholesky_inverse", "cholesky_solve")
        for aspect in ("grad[float64]", "grad[complex128]", "gradgrad[float64]", "gradgrad[complex128]")
    },
    **{
        f"{name} grad[float32]": Difference("PyTorch computes a gradient for the triangle that the function ignores")
        for name in ("cholesky_inverse", "cholesky_solve")
    },
    "nn.functional.one_hot view": Difference(
        "PyTorch creates the result by in-place changes, which increment the version", "version after writing"
    ),
    **{
        f"{name} graph": Difference("the function consists of other operators here, whose nodes have other names")
        for name in (
            "_segment_reduce.lengths",
            "_segment_reduce.offsets",
            "_unsafe_masked_index",
            "_unsafe_masked_index_put_accumulate",
            "_native_batch_norm_legit",
            "_batch_norm_with_update",
        )
    },
    "max_pool2d_with_indices_backward strides": Difference(
        "results are row-major here, even if the input is channels-last", "strides"
    ),
    "_chunk_cat graph": Difference("the function has a derivative here, but not in PyTorch", "expected NotImplemented"),
    "_unsafe_masked_index order": Difference("the result follows the memory order of the mask here", "strides"),
    **{
        f"{name} keywords": Difference("PyTorch's dispatcher calls the first operand `self`", "aten::")
        for name in ("_upsample_bilinear2d_aa", "torch.ops.aten._safe_softmax.default")
    },
    "slice keywords": Difference("PyTorch's dispatcher calls the first operand `self`", "failed to match any schema"),
    "_batch_norm_with_update out": Difference(
        "PyTorch takes four keywords for the four results, and refuses a tuple", "unexpected keyword argument"
    ),
    **{
        case: Difference("the function consists of other operators here, whose nodes have other names and views")
        for case in (
            "stft graph",
            "stft method",
            "istft graph",
            "istft method",
            "istft keywords",
        )
    },
    **{
        f"as_strided_scatter {aspect}": Difference(
            "PyTorch gives overwritten elements a nonzero gradient", "elements differ"
        )
        for aspect in (
            "grad[complex128]",
            "grad[float64]",
            "grad[bfloat16]",
            "grad[float32]",
            "gradgrad[float64]",
            "gradgrad[complex128]",
        )
    },
    **{
        case: Difference("histograms record no node here; PyTorch records a node without derivative")
        for case in ("histogram graph", "histogram method", "histogram out", "histogramdd view", "histogramdd graph")
    },
    **{
        f"{case}]": Difference(
            "PyTorch rounds weights to the half type; the weights are float32 here", "elements differ"
        )
        for case in (
            "grid_sampler_2d value[bfloat16",
            "grid_sampler_3d grad[bfloat16",
        )
    },
    **{
        f"{name} gradgrad[float64]": Difference(
            "PyTorch has no second gradient by the grid in nearest mode; the gradient is zero here", "NoneType None"
        )
        for name in ("nn.functional.grid_sample", "grid_sampler_2d")
    },
    **{
        f"nn.functional.linear_cross_entropy{case}": Difference(
            "the function consists of a linear layer and cross entropy here; PyTorch has one node that computes in chunks"
        )
        for case in (" graph", ".chunked view", ".chunked graph", ".chunked_none view", ".chunked_none graph")
    },
    "nn.functional.linear_cross_entropy.chunked gradgrad[float64]": Difference(
        "the gradients of chunks have no graph in PyTorch", "expected NoneType None"
    ),
    "nn.functional.linear_cross_entropy.chunked_none gradgrad[float64]": Difference(
        "the gradients of chunks have no graph in PyTorch", "functions with out=... arguments"
    ),
    **{
        f"{name} grad[bfloat16]": Difference(
            "the exact gradient is 0, because two numbers cancel; the libraries round them in different orders",
            "elements differ",
        )
        for name in ("nn.functional.normalize", "nn.functional.cosine_similarity")
    },
    "nn.functional.ctc_loss grad[float32]": Difference(
        "log probabilities near -150 have few fractional digits, and the libraries round in different orders",
        "elements differ",
    ),
    **{
        f"{name} grad[float32]": Difference(
            "the singular values of one matrix differ widely, and LAPACK libraries round differently",
            "elements differ",
            everywhere=False,
        )
        for name in ("linalg.lstsq", "linalg.lstsq.grad_oriented")
    },
    "native_group_norm order": Difference("PyTorch refuses tensors that are not contiguous", "is_contiguous"),
    "nn.functional.linear_cross_entropy.chunked_none grad[bfloat16]": Difference(
        "PyTorch rounds the gradients of chunks one by one", "elements differ"
    ),
    "native_group_norm graph": Difference("other operators compute the statistics here"),
    "nn.functional.scaled_dot_product_attention graph": Difference(
        "the function consists of fewer operators here; PyTorch scales both operands, and copies the result"
    ),
    "native_layer_norm gradgrad[float64]": Difference(
        "PyTorch raises an error for a bias without a weight", "Expected a proper Tensor"
    ),
}


def unexcused(case: str, differences: list[str]) -> list[str]:
    """Return the differences of a case that no entry excuses."""
    known = KNOWN.get(case)
    if known is None or candidate is torch:
        return differences
    remaining = [difference for difference in differences if known.only not in difference]
    if len(remaining) == len(differences) and known.everywhere:
        remaining.append(
            f"listed as a known difference ({known.reason}), but there is none: take {case!r} off the list"
        )
    return remaining
