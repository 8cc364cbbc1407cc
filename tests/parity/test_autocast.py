"""The dtypes of results within `autocast`, compared with PyTorch, especially for functions that call other functions."""

import warnings

import numpy
import pytest

torch = pytest.importorskip("torch")

from .candidate import candidate
from .comparison import dtype_name

SHAPES = {"a": (3, 4), "b": (4, 5), "c": (3, 4), "s": (3, 3), "v": (4,), "w": (5,), "x": (2, 3, 4), "y": (2, 4, 5)}

EQUATIONS = """
ij,jk->ik:ab i,j->ij:vw i,i->i:vv ij->ji:a ij->i:a ii->i:s ij,ij->:ac ij,ij->ij:ac ij,ij->i:ac bij,bjk->bik:xy
bij,bjk,k->bi:xyw i,j,k->ijk:vwv ij,j->i:av i,i->:vv ij,k->k:aw ij,ij,ij->ij:aca ij,kj,i->k:acs ...i,ij->...j:xb
"""

EXPRESSIONS = """
torch.einsum("i,j", v, w.bfloat16()) | torch.einsum("i,j", v.bfloat16(), w.bfloat16()) | torch.einsum("ij,jk", a, b.bfloat16())
torch.einsum("ij,jk", a.double(), b.double()) | torch.einsum("ij,jk", (a, b)) | torch.einsum(a, [0, 1], b, [1, 2], [0, 2])
torch.tensordot(x, x, 0) | torch.tensordot(x, b, 1) | torch.tensordot(a, c, ([0, 1], [0, 1])) | torch.tensordot(v, w, 0)
torch.inner(v, v) | torch.inner(a, c) | torch.inner(a, v) | torch.inner(a, w[0]) | torch.outer(v, w) | torch.dot(v, v)
torch.vdot(v, v) | torch.kron(a, b) | torch.mv(a, v) | torch.addmv(v[:3], a, v) | torch.addr(a, v[:3], v) | a @ b | a.mm(b)
torch.linalg.vecdot(v, v) | torch.linalg.multi_dot([a, b, w]) | torch.chain_matmul(a, b) | torch.chain_matmul(a)
torch.linalg.matrix_power(s, 3) | torch.linalg.matrix_power(s, 1) | torch.linalg.matrix_power(s, 0)
torch.matrix_exp(s) | torch.matrix_exp(s.bfloat16()) | torch.cov(a) | torch.corrcoef(a) | torch.mm(a, b, out=torch.empty(3, 5))
F.affine_grid(x.mT[:, :2, :3], (2, 1, 3, 3), align_corners=False) | torch.affine_grid_generator(x[:, :2, :3], (2, 1, 3, 3), False)
F.bilinear(a, c, x[:, :1].mT @ x[:, :1]) | torch.cdist(a, c) | F.pdist(a) | F.cosine_similarity(a, c) | torch.trapezoid(a)
torch.linalg.norm(a, "nuc") | torch.linalg.norm(a, 2) | torch.linalg.cond(a) | torch.linalg.ldl_factor(s)[0]
torch.linalg.solve_triangular(s, c.bfloat16(), upper=True) | torch.cat([a, c.bfloat16()]) | torch.hstack([a, c.bfloat16()])
torch.where(a > 0, a, c.bfloat16()) | a.bfloat16().sum() | a.bfloat16().prod() | a.bfloat16().softmax(0) | s.bfloat16().trace()
torch.baddbmm(torch.zeros(2, 3, 5), x, y) | torch.addmm(w, a, b) | F.gumbel_softmax(a) | F.embedding(torch.tensor([0]), a)
F.gaussian_nll_loss(a, c, c.abs()) | torch.fft.rfft(a.bfloat16()) | torch.fft.fftshift(a.bfloat16()) | F.normalize(a.bfloat16())
"""


def answer(library, expression):
    """Return the dtype of the result, or the error."""
    numbers = numpy.random.default_rng(0)
    names = {name: library.from_numpy(numbers.normal(size=shape)).float() for name, shape in SHAPES.items()}
    names |= {"torch": library, "F": library.nn.functional}
    with warnings.catch_warnings(), library.autocast("cpu", dtype=library.bfloat16):
        warnings.simplefilter("ignore")
        try:
            return dtype_name(eval(expression, names).dtype)
        except Exception as error:
            return type(error).__name__


EINSUMS = [
    f'torch.einsum("{equation}", {", ".join(names)})' for equation, names in (e.split(":") for e in EQUATIONS.split())
]


@pytest.mark.parametrize(
    "expression", EINSUMS + [e for line in EXPRESSIONS.strip().split("\n") for e in line.split(" | ")]
)
def test_dtypes_of_results(expression):
    assert answer(candidate, expression) == answer(torch, expression)


@pytest.mark.parametrize("name", ["svd_lowrank", "pca_lowrank", "pinverse"])
def test_decompositions_keep_the_precision_that_pytorch_loses(name):
    """The results are float32, but PyTorch computes intermediate products in the half type."""
    with candidate.autocast("cpu"):
        result = getattr(candidate, name)(candidate.ones(3, 4))
    assert all(part.dtype is candidate.float32 for part in (result if isinstance(result, tuple) else (result,)))
