"""Intended differences between the candidate and PyTorch: the case and the reason.

A case has the name of its test: `linalg.det graph` for an aspect of an operator, `saved tensors of torch.det(m)` for
the saved tensors of an expression, `graph of c.conj()`, or the name of a program. An entry permits the differences that
contain `only`, or all differences if `only` is empty. An entry that permits no existing difference must be removed.
"""

from typing import NamedTuple

import torch

from .candidate import candidate


class Difference(NamedTuple):
    """Why a case differs, and the words that its description must contain."""

    reason: str
    only: str = ""


_ALPHA = "PyTorch multiplies by alpha = 1 + 0j, which makes NaNs of infinities"

KNOWN: dict[str, Difference] = {
    "saved_tensors_hooks_bad": Difference(
        "PyTorch hides the error of a hook behind `**`, which then gives up", "line 9"
    ),
    "out_argument": Difference("PyTorch takes a number for a tensor, and finds that it is one of integers", "line 11"),
    "mistake torch.tensor()": Difference("Python counts the arguments, in words of its own", "missing 1 required"),
    "mistake torch.exp(torch.ones(2), torch.ones(2))": Difference(
        "Python counts the arguments; all have defaults, so that missing ones are told in PyTorch's words",
        "from 0 to 1",
    ),
    "mistake torch.meshgrid(torch.ones(2, 2))": Difference("PyTorch prints the tensor as C++ does", "but got"),
    "mistake torch.ones(2).to(5.5)": Difference(
        "PyTorch takes any floating-point number for the type `float`", "float"
    ),
    "__rsub__ value[complex128]": Difference(_ALPHA, "(nan+nanj)"),
    "__rsub__ value[complex64]": Difference(_ALPHA, "(nan+nanj)"),
    "rsub value[complex128]": Difference(_ALPHA, "(nan+nanj)"),
    "rsub value[complex64]": Difference(_ALPHA, "(nan+nanj)"),
    "linalg.householder_product gradgrad[complex128]": Difference(
        "PyTorch loses digits; the reflections multiplied one by one agree with these", "147315.2"
    ),
    "logcumsumexp gradgrad[float64]": Difference(
        "PyTorch makes nan of a gradient that is exactly 0", "np.float64(0.0), expected np.float64(nan)"
    ),
    **{
        f"{name} value[float64]": Difference(
            "PyTorch gives a number for nan", f"np.float64(nan), expected np.float64({number})"
        )
        for name, number in (("igamma", "0.0"), ("igammac", "1.0"))
    },
    **{
        f"linalg.norm.subgradients_at_zero gradgrad[{dtype}]": Difference(
            "The norm of order -1 of zeros: PyTorch's first derivative is 0, but its second is nan",
            f"expected np.{nan}",
        )
        for dtype, nan in (("float64", "float64(nan)"), ("complex128", "complex128(nan+nanj)"))
    },
    "masked.logaddexp gradgrad[float64]": Difference(
        "PyTorch's second derivative beside -inf is nan", "expected np.float64(nan)"
    ),
    **{
        f"kron {aspect}": Difference(
            "PyTorch multiplies views that do not notice when their memory is changed; the factors are copies here",
            "CloneBackward0",
        )
        for aspect in ("graph", "method")
    },
    **{
        f"{name} {aspect}": Difference("PyTorch gives a gradient to the triangle that is not read")
        for name in ("cholesky_inverse", "cholesky_solve")
        for aspect in ("grad[float64]", "grad[complex128]", "gradgrad[float64]", "gradgrad[complex128]")
    },
    **{
        f"{name} grad[float32]": Difference("PyTorch gives a gradient to the triangle that is not read")
        for name in ("cholesky_inverse", "cholesky_solve")
    },
    "nn.functional.one_hot view": Difference(
        "PyTorch counts the changes in place by which it makes the result", "version after writing"
    ),
    **{
        f"{name} graph": Difference("composed of other operators here, whose nodes have other names")
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
        "results are row-major also where the input's channels are last", "strides"
    ),
    "_chunk_cat graph": Difference("it has a derivative here, and none in PyTorch", "expected NotImplemented"),
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
        case: Difference("composed of other operators here, whose nodes have other names and views")
        for case in (
            "stft graph",
            "stft method",
            "istft graph",
            "istft method",
            "istft keywords",
            "as_strided_scatter view",
            "as_strided_scatter graph",
            "as_strided_scatter method",
        )
    },
    **{
        f"as_strided_scatter {aspect}": Difference("PyTorch gives overwritten elements a gradient", "elements differ")
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
        case: Difference("histograms are not recorded here; PyTorch records that they have no derivative")
        for case in ("histogram graph", "histogram method", "histogram out", "histogramdd view", "histogramdd graph")
    },
    **{
        f"{case}]": Difference(
            "PyTorch rounds weights to the half type; here they are computed in float32", "elements differ"
        )
        for case in (
            "grid_sampler_2d value[bfloat16",
            "grid_sampler_3d grad[bfloat16",
        )
    },
    **{
        f"{name} gradgrad[float64]": Difference(
            "PyTorch has no second gradient by the grid in nearest mode; here it is zero", "NoneType None"
        )
        for name in ("nn.functional.grid_sample", "grid_sampler_2d")
    },
    **{
        f"{name} {aspect}": Difference("results are row-major also where the input's channels are last", "strides")
        for name in ("nn.functional.max_unpool2d", "nn.functional.max_unpool2d.grad")
        for aspect in ("strides", "order")
        if (name, aspect) != ("nn.functional.max_unpool2d", "order")
    },
    **{
        f"nn.functional.linear_cross_entropy{case}": Difference(
            "composed of a linear layer and cross entropy here; PyTorch has a node that computes in chunks"
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
            "the gradient is 0: two numbers cancel, which are rounded in another order here", "elements differ"
        )
        for name in ("nn.functional.normalize", "nn.functional.cosine_similarity")
    },
    "nn.functional.ctc_loss grad[float32]": Difference(
        "logarithms of probabilities of some -150 have few digits after the point, which either library rounds in its own order",
        "elements differ",
    ),
    "linalg.lstsq grad[float32]": Difference(
        "the singular values of one matrix lie far apart: LAPACK libraries round them otherwise", "elements differ"
    ),
    "native_group_norm order": Difference("PyTorch refuses what is not contiguous", "is_contiguous"),
    "nn.functional.linear_cross_entropy.chunked_none grad[bfloat16]": Difference(
        "PyTorch rounds the gradients of chunks one by one", "elements differ"
    ),
    "native_group_norm graph": Difference("the statistics are composed of other operators here"),
    "nn.functional.scaled_dot_product_attention graph": Difference(
        "composed of fewer operators here; PyTorch scales either operand, and copies the result"
    ),
    "native_layer_norm gradgrad[float64]": Difference(
        "PyTorch raises where there is a bias and no weight", "Expected a proper Tensor"
    ),
}


def unexcused(case: str, differences: list[str]) -> list[str]:
    """Return the differences of a case that no entry excuses."""
    known = KNOWN.get(case)
    if known is None or candidate is torch:
        return differences
    remaining = [difference for difference in differences if known.only not in difference]
    if len(remaining) == len(differences):
        remaining.append(
            f"listed as a known difference ({known.reason}), but there is none: take {case!r} off the list"
        )
    return remaining
