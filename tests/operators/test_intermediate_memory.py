"""The temporary memory of operators does not grow with their operands, because large arrays are computed in parts."""

import sys
import tracemalloc

import numpy
import pytest

import adjoint as torch
from adjoint.codegen.acceleration import LOOPS
from adjoint.nn import functional

ROWS, COLUMNS = 2000, 1000
SIZE = 4 * ROWS * COLUMNS
"""The bytes of the operand."""

PEAKS = {
    "mode": (lambda x: x.mode(1), 0.5),
    "mode of columns": (lambda x: x.mode(0), 0.5),
    "norm": (lambda x: x.norm(3, 1), 0.5),
    "histc": (lambda x: x.histc(20), 0.2),
    "histogram": (lambda x: x.histogram(20), 0.3),
    "sort of columns": (lambda x: x.sort(0), 4 if LOOPS.available else 4.2),
    "normal": (lambda x: torch.normal(x, x.square()), 2.2),
    "frexp": (torch.frexp, 2.4),
    "variance over the middle": (lambda x: x.view(100, 200, 100).var(1), 0.5),
    "isposinf": (torch.isposinf, 0.3),
    "index_add of multiples": (lambda x: x.index_add(0, torch.arange(ROWS), x, alpha=2), 1.4),
    "randn": (lambda x: torch.randn(ROWS * COLUMNS - 1), 1.5),
    "randn_like": (torch.randn_like, 1.5),
    "rand_like": (torch.rand_like, 1.1),
    "randint_like": (lambda x: torch.randint_like(x, 9), 1.1),
    "bernoulli": (lambda x: (x / 9).bernoulli(), 2.1),
    "cross": (lambda x: torch.linalg.cross(x[:1998].view(-1, 3), x[:1998].view(-1, 3)), 1.4),
    "addmm of factors": (lambda x: torch.addmm(x, x[:, :9], x[:9], beta=2, alpha=3), 1.2),
    "quotient rounded to zero": (lambda x: torch.div(x[:, :1], x[0] + 1, rounding_mode="trunc"), 1.1),
    "heaviside": (lambda x: x.heaviside(x), 1.1),
    **({"poisson": (torch.poisson, 1.3)} if LOOPS.available else {}),  # NumPy's form takes half a minute
    "multinomial": (lambda x: (x + 1).multinomial(9, True), 1.6),
    "binary_cross_entropy": (lambda x: functional.binary_cross_entropy(x / 9, x / 9), 3.2),
    "product of halves": (lambda x: x.half() @ x[:100].half().T, 1.5),  # 0.55 for the half-precision operands
    "product of halves and a sum": (lambda x: torch.addmm(x[:, :100].half(), x.half(), x[:100].half().T), 1.5),
    "halves times a vector": (lambda x: x.half() @ x[0].half(), 1.1),
    "bilinear": (lambda x: functional.bilinear(x[:, :64], x[:, :64], torch.ones(32, 64, 64)), 0.3),
    "attention of halves": (  # 1.5 for the half-precision tensors
        lambda x: functional.scaled_dot_product_attention(*[x[:, :512].half().view(8, 8, 250, 64)] * 3),
        1.6,
    ),
    "product of integers": (lambda x: x.short() @ x[:100].short().T, 1.5),
    "transform of lines with a large prime factor": (lambda x: torch.fft.rfft(x[:, :997]), 1.5),
    "transform of lines of odd length": (lambda x: torch.fft.rfft(x[:, :675]), 1.2),
    "inverse transform of half lines": (
        lambda x: torch.fft.irfft(x[:, :498]),
        2.5,
    ),  # including 1 for the complex numbers
    "norm of columns": (lambda x: x.norm(3, 0), 0.5),
    "norm of all": (lambda x: x.norm(3), 0.5),
    "number of nonzeros": (lambda x: x.norm(0, 1), 0.1),
    "norm of halves": (lambda x: x.half().norm(3, 1), 0.9),  # 0.5 for the half-precision operand
    "argmax of halves": (lambda x: x.half().argmax(0), 0.9),
    "deviation of halves": (lambda x: x.half().std(1), 0.75),
    "maximum norm": (lambda x: x.norm(float("-inf"), 1), 0.5),
    "multi_margin_loss": (lambda x: functional.multi_margin_loss(x, torch.arange(ROWS) % COLUMNS), 0.5),
    "multilabel_margin_loss": (
        lambda x: functional.multilabel_margin_loss(x, torch.full(x.shape, -1).index_fill(1, torch.tensor([0]), 1)),
        8.5,  # targets (twice as large as the scores), a copy of the targets, counts, labels
    ),
    "extremes of segments": (
        lambda x: torch.segment_reduce(x, "max", lengths=torch.ones(ROWS, dtype=torch.int64)),
        1.2,
    ),
    "put": (lambda x: x.put(torch.arange(x.numel()).view_as(x), x), 4),  # including 2 for the index and its check
}


IN_LOOPS = {"normal", "attention of halves", "deviation of halves", "multi_margin_loss"}
"""The functions whose compiled loops keep to the limit. NumPy's forms hold more memory."""


@pytest.mark.parametrize("name", PEAKS)
def test_peak(name):
    if name in IN_LOOPS and not LOOPS.available:
        pytest.skip("NumPy's form holds more memory")
    function, limit = PEAKS[name]
    x = torch.from_numpy(numpy.random.default_rng(0).integers(0, 9, (ROWS, COLUMNS)).astype("f"))
    function(x)
    tracemalloc.start()
    try:
        function(x)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < limit * SIZE


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize(("function", "limit"), [(functional.glu, 1.6), (torch.amin, 2.8)])
def test_peak_of_gradients(function, limit, dim):
    x = torch.randn(ROWS, COLUMNS, requires_grad=True)
    result = function(x, dim)
    direction = torch.ones_like(result)
    tracemalloc.start()
    try:
        torch.autograd.grad(result, x, direction)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < limit * SIZE


INDEX = torch.arange(ROWS * 20) % ROWS
REUSED = sys.platform in ("linux", "darwin")
"""Whether NumPy writes over temporary arrays. This requires `backtrace()`, which the C libraries of Windows and WASI lack."""
OF_ONE = {
    "norm": (lambda x: x.norm(3, 1), 3.1 if LOOPS.enabled else 3.4 if REUSED else 4.1),
    "multi_margin_loss": (lambda x: functional.multi_margin_loss(x, torch.arange(ROWS) % COLUMNS), 1.3),
    "segment_reduce": (lambda x: torch.segment_reduce(x, "sum", lengths=torch.full((ROWS // 10,), 10)), 1.3),
    "embedding_bag": (lambda x: functional.embedding_bag(INDEX.view(-1, 20), x[:, :100]), 1.6),
    "embedding_bag of halves": (lambda x: functional.embedding_bag(INDEX.view(-1, 20), x[:, :100].half()), 1.6),
    "batch norm by running statistics": (
        lambda x: functional.batch_norm(x.view(200, 100, 100), torch.zeros(100), torch.ones(100)),
        1.6,
    ),
    "as_strided": (lambda x: x.as_strided((2, 2), (1, 2)), 1.1),
    "irfft": (lambda x: torch.fft.irfft(torch.view_as_complex(x.view(ROWS, -1, 2))), 1.3),
}


@pytest.mark.parametrize("name", OF_ONE)
def test_peak_of_a_gradient(name):
    function, limit = OF_ONE[name]
    x = torch.randn(ROWS, COLUMNS, requires_grad=True)
    result = function(x)
    direction = torch.ones_like(result)
    torch.autograd.grad(result, x, direction, retain_graph=True)
    tracemalloc.start()
    try:
        torch.autograd.grad(result, x, direction)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < limit * SIZE, peak / SIZE


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int32])
@pytest.mark.parametrize(
    "sizes", [((700, 1300), (1300, 900)), ((3, 600, 700), (3, 700, 500)), ((9, 9, 3000), (9, 3000, 9))]
)
def test_products_in_blocks(sizes, dtype):
    torch.manual_seed(0)
    a, b = (torch.randint(-8, 8, size).to(dtype) for size in sizes)
    exact = a.double() @ b.double()
    assert (a @ b).double().equal(exact.to(dtype).double())
    assert (a.mT.contiguous().mT @ b.mT.contiguous().mT).equal(a @ b)
    if len(sizes[0]) == 2:
        assert torch.mv(a, b[:, 0]).equal((a @ b)[:, 0])
        ones = torch.ones(1 << 19, dtype=dtype)
        assert torch.dot(ones, ones / 1024 if dtype.is_floating_point else ones) == (
            1 << 9 if dtype.is_floating_point else 1 << 19
        )
    if dtype.is_floating_point:
        added = torch.arange(float(exact.size(-1))).to(dtype)
        add = torch.addmm if len(sizes[0]) == 2 else torch.baddbmm
        assert add(added, a, b, beta=2, alpha=3).double().equal((2 * added.double() + 3 * exact).to(dtype).double())


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss", None])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("batches", [((), ()), ((3,), (3,)), ((2, 1), (2, 3))])
def test_least_squares_of_any_rank(driver, dtype, batches):
    torch.manual_seed(0)
    a = torch.randn(*batches[0], 40, 6, dtype=dtype)
    b = torch.randn(*batches[1], 40, 2, dtype=dtype)
    for columns in (6, 4):  # half of the columns are independent
        if driver == "gels" and columns < 6:
            continue
        dependent = torch.cat([a[..., :columns], a[..., : 6 - columns] * 2], -1)
        found = torch.linalg.lstsq(dependent, b, driver=driver)
        torch.testing.assert_close(found.solution, torch.linalg.pinv(dependent, rtol=1e-12) @ b)
        if driver != "gels":
            assert (found.rank == columns).all()


@pytest.mark.parametrize("value", [2.0, torch.full((1, 1000), 2.0)], ids=["number", "tensor"])
def test_scatter_in_place_copies_no_other_elements(value):
    x, index = torch.zeros(1000, 1000), torch.arange(1000).view(1, -1)
    x.scatter_(0, index, value)
    tracemalloc.start()
    x.scatter_(0, index, value)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < x.nbytes / 10
    assert x.sum() == 2000 and x.diagonal().sum() == 2000
