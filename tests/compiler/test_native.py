"""Native runs give the results of the kernels, in any layout, dtype and size. Small programs consist of native runs."""

import itertools
import os
import random
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import adjoint as torch
from adjoint import inspect
from adjoint.codegen.acceleration import LOOPS
from adjoint.codegen.llvm.host import HOST
from adjoint.codegen.llvm.values import CompilationError
from adjoint.compiler.arena import in_arena
from adjoint.compiler.native import LONGEST
from adjoint.compiler.objects import PROGRAMS, addresses, tensor_maker, words
from adjoint.kernels.runtime import parallel

from .comparison import assert_alike, assert_as_eager

F = torch.nn.functional

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(not LOOPS.enabled, reason="there are no compiled loops"),
]


def is_native(compiled):
    """Return whether the last program of a compiled function contains native runs."""
    (variant,) = compiled.compiled.variants[-1:]
    return bool(variant.body.source and variant.program.natives)


LAYOUTS = {
    "rows": lambda *shape: torch.randn(*shape),
    "columns": lambda *shape: torch.randn(*shape[::-1]).T if len(shape) == 2 else torch.randn(*shape),
    "every other": lambda *shape: torch.randn(*shape[:-1], 2 * shape[-1])[..., ::2] if shape else torch.randn(2)[1],
    "expanded": lambda *shape: torch.randn(*shape[:-1], 1).expand(*shape) if shape else torch.randn(()),
    "a part": lambda *shape: torch.randn(*[size + 2 for size in shape])[tuple(slice(1, -1) for _ in shape)],
}

FUNCTIONS = {
    "arithmetic": lambda x, y: (x * y + x / (y.abs() + 1) - y * 2.5 + 1).neg(),
    "functions": lambda x, y: x.exp() + y.tanh() * x.sin() + (x * x + 1).sqrt().log() + torch.sigmoid(y),
    "activations": lambda x, y: F.gelu(x) + F.silu(y) + F.relu(x * y) + F.leaky_relu(y, 0.1) + F.softplus(x),
    "extremes": lambda x, y: torch.maximum(x, y) + torch.minimum(x, y * 2) + x.clamp(-0.5, 0.5),
    "broadcast": lambda x, y: x * y[..., :1] + x.sum() + y.mean(),
    "sums": lambda x, y: (x * y).sum(-1) + x.mean(-1, keepdim=True).squeeze(-1) + y.sum(-1),
    "rows": lambda x, y: F.log_softmax(x, -1) + F.softmax(y * 2, -1),
    "losses": lambda x, y: F.mse_loss(x * 2, y) + (x - y).square().mean(),
    "views": lambda x, y: (x.flatten() * y.reshape(-1)).view(x.shape).sum(0) + x[0] + y.unsqueeze(0)[0, -1],
    "in place": lambda x, y: (x * 1).add_(y).mul_(2).tanh_() + y,
    "filled": lambda x, y: x * torch.zeros(3, 11, dtype=x.dtype).fill_(3) + y.clone().zero_() + torch.fill(y, 0.5),
    "copied": lambda x, y: (x * 1).copy_(y[:1]) * 2 + (y * 1).copy_(x),
    "written": lambda x, y: written(x * 1, y),
    "views of results": lambda x, y: views_of(x.exp(), y),
}


def written(x, y):
    """Write parts of an array, and then read it."""
    x.T[1:4].copy_(y.T[:3])
    x[:, 5].fill_(2)
    return x.mul_(y)


def views_of(x, y):
    """Views of results."""
    first, _ = (x * 2).split([4, 7], 1)
    spread = (x + y).unsqueeze(1).expand(3, 2, 11)
    return first.T[1:], (y * 3).reshape(-1)[3:], spread, (x - y).diagonal(), (y / 3)[1, 2]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_pointwise_functions_and_sums(name, layout, dtype):
    def inputs(number):
        return [LAYOUTS[layout](3, 11).to(dtype).detach().requires_grad_(), LAYOUTS[layout](3, 11).to(dtype)]

    torch.manual_seed(5)
    compiled = assert_as_eager(FUNCTIONS[name], inputs, twice=True)
    assert is_native(compiled)


@pytest.mark.parametrize("shape", [(), (1,), (5, 1), (1, 7), (2, 3, 4), (0, 3)], ids=str)
@pytest.mark.parametrize("name", ["arithmetic", "functions", "activations"])
def test_shapes(name, shape):
    assert_as_eager(FUNCTIONS[name], lambda number: [torch.randn(shape, requires_grad=True), torch.randn(shape)])


PRODUCTS = {
    "x @ y": (lambda x, y: x @ y, (4, 7), (7, 9)),
    "x @ y.T": (lambda x, y: x @ y.T, (3, 20), (5, 20)),
    "x.T @ y": (lambda x, y: x.T @ y, (6, 3), (6, 17)),
    "linear": (lambda x, y: F.linear(x, y, y[:, 0]), (4, 9), (16, 9)),
    "linear with few inputs": (lambda x, y: F.linear(x, y, y[:, 0]) + x @ y.T, (33, 5), (21, 5)),
    "addmm": (lambda x, y: torch.addmm(x[:, :1], x, y) + torch.addmm(y, x[:7].T @ x[:7], y, beta=0.5), (7, 7), (7, 10)),
    "vector": (lambda x, y: x @ y, (4, 5), (5,)),
    "columns and a vector": (lambda x, y: (x.T * 2).mv(y + 1).tanh(), (4, 5), (4,)),
    "batch": (lambda x, y: x @ y, (2, 3, 4), (2, 4, 5)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name):
    function, first, second = PRODUCTS[name]
    assert_as_eager(
        function,
        lambda number: [torch.randn(first, requires_grad=True), torch.randn(second, requires_grad=True)],
        twice=True,
    )


@pytest.mark.parametrize(("reduction", "ignored"), list(itertools.product(("mean", "sum"), (-100, 1))))
def test_losses_of_classes(reduction, ignored):
    def loss(x, target):
        return F.cross_entropy(x, target, reduction=reduction, ignore_index=ignored)

    compiled = assert_as_eager(loss, lambda number: [torch.randn(6, 4, requires_grad=True), torch.randint(0, 4, (6,))])
    assert is_native(compiled) or not LOOPS.enabled
    with pytest.raises(IndexError, match=r"Target 7 is out of bounds\."):
        compiled(torch.randn(6, 4, requires_grad=True), torch.tensor([0, 1, 2, 3, 7, 0]))


@pytest.mark.parametrize("join", [torch.cat, torch.stack], ids=["cat", "stack"])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_arrays_one_after_another(join, dim):
    def function(x, y, z):
        return join([x, y * 2, z.tanh()], dim) * 2

    assert_as_eager(function, lambda number: [torch.randn(3, 4, requires_grad=True) for _ in range(3)])


@pytest.mark.parametrize("value", [0.0, 1.0, 2.5, -1.5, float("inf")])
@pytest.mark.parametrize("shape", [(), (1, 1), (3,), (2, 5)], ids=str)
def test_constants(value, shape):
    def function(x):
        return x * torch.full(shape, value) + torch.zeros(shape), torch.zeros_like(x) + x

    assert_as_eager(function, lambda number: [torch.rand(shape, requires_grad=True) + 1])


@pytest.mark.filterwarnings("ignore")
def test_a_hessian_is_computed_in_native_runs():
    mixed, x = torch.randn(6, 6), torch.randn(6)
    function = torch.func.hessian(lambda x: (mixed @ x).tanh().pow(2).sum())
    compiled = torch.compile(function)
    for _ in range(3):
        torch.testing.assert_close(compiled(x), function(x))
    (variant,) = compiled.compiled.variants
    kernels = {"constant", "empty", "native", "view_shape", "reshape_alias"}
    assert {each.name for each in variant.body.steps.values()} <= kernels


def test_means_of_nothing():
    assert_as_eager(lambda x: x.mean() + x.mean(0).sum(), lambda number: [torch.rand(0, 3, requires_grad=True)])


def test_programs_that_repeat_themselves_compile_each_block_once():
    from adjoint.compiler.blocks import KNOWN_BLOCKS

    def repeated(x, times):
        for _ in range(times):
            x = (x * 1.0625).tanh() + x.sum(0)
        return x

    def blocks_after(times):
        compiled = torch.compile(repeated)
        for _ in range(2):
            compiled(x, times)
        return len(KNOWN_BLOCKS)

    x, before = torch.randn(13, 3), len(KNOWN_BLOCKS)
    assert before < blocks_after(2) == blocks_after(40)


@pytest.mark.skipif(not words(), reason="there are no native runs")
@pytest.mark.parametrize("refused", ["all_fit", "block_0"])
def test_the_first_call_compiles_nothing_and_a_refused_block_leaves_programs_to_kernels(refused, monkeypatch):
    compiled_names = []

    def refusing(name, text, **options):
        compiled_names.append(name)
        if name == refused:
            raise CompilationError("no such instruction")
        return compile_text(name, text, **options)

    compile_text = HOST.compile
    addresses.cache_clear()
    for sizes in ([3, 3, 3, 3], [3, 5, 6, 7, 3]):
        f = torch.compile(lambda x: (x * 3.25 + 1).exp().sum(0).mul(x).tanh())
        with monkeypatch.context() as patched:
            patched.setattr(LOOPS, "failures", {})
            patched.setattr("adjoint.compiler.runner.HOST.compile", refusing)
            patched.setattr("adjoint.compiler.blocks.KNOWN_BLOCKS", {})
            for position, size in enumerate(sizes):
                x = torch.randn(size, 4, requires_grad=True)
                found, expected = f(x), f._torchdynamo_orig_callable(x)
                assert torch.equal(found, expected)
                assert torch.equal(*[torch.autograd.grad(each.sum(), x)[0] for each in (found, expected)])
                assert position or not compiled_names
            assert compiled_names
            assert LOOPS.failures == {PROGRAMS: "no such instruction"}
        compiled_names.clear()
        tensor_maker.cache_clear()


def test_threads_may_run_a_new_program_at_once():
    functions = [torch.compile(lambda x, k=k: (x * (k + 1.75) + 1).exp().sum(0).mul(x).tanh()) for k in range(20)]
    x = torch.randn(3, 4)
    expected = [f(x) for f in functions]
    start = threading.Barrier(4)

    def run():
        start.wait()
        return [f(x) for f in functions]

    with ThreadPoolExecutor(4) as pool:
        for results in [each.result() for each in [pool.submit(run) for _ in range(4)]]:
            for found, each in zip(results, expected, strict=True):
                torch.testing.assert_close(found, each)


def test_dimensions_of_size_1_keep_their_strides():
    assert_as_eager(lambda x: (x.t().unsqueeze(1) * 1.5 + 1).sin(), lambda number: [torch.randn(3, 4)])


PLANNED = {
    "products": lambda x, y: (x @ y).T @ x,
    "stacks": lambda x, y: (x.view(2, 150, 300) @ y.view(2, 300, 150)).transpose(1, 2).relu(),
    "a thin product": lambda x, y: (x[:, :4] @ y[:4, :150]) * 2,
    "linear": lambda x, y: F.linear(x, y, y[0]),
    "functions": lambda x, y: F.gelu(x, approximate="tanh") * y.T + F.silu(y) * 3,
    "several results": lambda x, y: [(x * y).tanh() * 2, (x * y).tanh() + 1],
    "in place": lambda x, y: (x * 1).add_(y).mul_(2).tanh_(),
    "sums": lambda x, y: [(x * y).sum(0), x.sum(1), (x.T * 2).sum(0), y.sum()],
    "copies": lambda x, y: [torch.cat([x, y.T]), torch.stack([x, y], 1), x.T.contiguous() + 1],
    "rows": lambda x, y: F.log_softmax(x, 1) * y + F.softmax(y * 2, -1) * x,
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", PLANNED)
def test_planned_kernels_give_the_same_bits_on_any_number_of_threads(name, dtype, monkeypatch):
    function = PLANNED[name]
    monkeypatch.setattr(parallel, "num_threads", 2)
    inputs = [torch.randn(300, 300, dtype=dtype, requires_grad=True) for _ in range(2)]

    def step():
        """The results and the gradients."""
        found = function(*inputs)
        results = found if type(found) is list else [found]
        return [*results, *torch.autograd.grad([each.sum() for each in results], inputs)]

    compiled = torch.compile(step)
    for threads in (2, 2, 1, 2):
        parallel.num_threads = threads
        for found, expected in zip(compiled(), step(), strict=True):
            assert torch.equal(found, expected)
    (variant,) = compiled.compiled.variants
    texts = "".join(text for native in variant.program.natives for text in native.llvm)
    assert ("a planned kernel" in texts) is LOOPS.enabled


def planned(x, y):
    return F.softmax(x @ y, -1).sum(0) * 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_planned_kernels_run_on_the_threads_of_a_forked_process(monkeypatch):
    monkeypatch.setattr(parallel, "num_threads", 2)
    x, y = torch.randn(400, 300), torch.randn(300, 300)
    compiled = torch.compile(planned)
    expected = [compiled(x, y) for _ in range(3)][-1]
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # stop the child if it waits for the threads of its parent
        os._exit(0 if torch.equal(compiled(x, y), expected) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert torch.equal(compiled(x, y), expected)


def test_planned_kernels_of_a_loaded_program_run_on_any_number_of_threads(tmp_path, monkeypatch):
    model, x = torch.nn.Sequential(torch.nn.Linear(300, 300), torch.nn.GELU()), torch.randn(300, 300)
    torch.compiler.save(torch.compiler.export(model, (x,)), tmp_path / "program.pt")
    loaded = torch.compiler.load(tmp_path / "program.pt")
    for threads in (2, 1, 2):
        monkeypatch.setattr(parallel, "num_threads", threads)
        with torch.no_grad():
            assert torch.equal(loaded(x), model(x))


def test_programs_for_other_sizes_give_the_bits_of_planned_kernels():
    compiled, y = torch.compile(planned), torch.randn(300, 300)
    for rows in (400, 400, 200, 300, 400, 1):
        x = torch.randn(rows, 300)
        assert torch.equal(compiled(x, y), planned(x, y))


def test_native_runs_end_after_long_work():
    def long(x):
        for _ in range(12):
            x = (x @ x.T).tanh() * 0.1
        return x

    compiled, x = torch.compile(long), torch.randn(400, 400)
    for _ in range(2):
        assert torch.equal(compiled(x), long(x))
    runs = compiled.compiled.variants[0].program.natives
    works = [[launch.work for _, launch in run.writer.launches] for run in runs]
    assert all(sum(work[:-1]) < LONGEST for work in works)
    assert (len(runs) > 1) is LOOPS.enabled


def test_a_step_that_accumulates_gradients_is_one_native_run():
    layer, x = torch.nn.Linear(4, 3), torch.randn(4, 5, 4)

    def step(given):
        layer.zero_grad()
        for part in given:
            layer(part).square().mean().backward()
        return [each.grad.clone() for each in layer.parameters()]

    compiled = torch.compile(step)
    for _ in range(3):
        assert_alike(compiled(x), step(x), strides=False)
    assert len(compiled.compiled.variants[0].program.natives) == 1


def test_values_share_the_memory_of_the_arena():
    compiled = torch.compile(chain)
    for _ in range(2):
        assert torch.allclose(compiled(torch.full((64,), 0.3)), chain(torch.full((64,), 0.3)))
    (run,) = compiled.compiled.variants[0].program.natives
    assert run.values == 19 and run.apart == 19 * 256 and run.arena <= 2 * 256 + 64
    assert "native run of 20 blocks; 19 values in" in inspect.compiled(compiled)


def chain(x):
    for _ in range(20):
        x = torch.tanh(x)
    return x


@pytest.mark.parametrize("seed", range(20))
def test_no_two_values_in_use_share_memory(seed):
    choose = random.Random(seed)
    sizes = {number: 64 * choose.randint(1, 5) for number in range(choose.randint(1, 12))}
    uses = [{choose.choice([*sizes, -1]) for _ in range(3)} for _ in range(15)]
    found, whole = in_arena(sizes, uses)
    places = {number: (span.size, span.offset) for number, span in found.items()}
    spans = {number: [at for at, each in enumerate(uses) if number in each] or [0, len(uses)] for number in sizes}
    for one, (_, begin) in places.items():
        assert begin % 64 == 0 and begin + sizes[one] <= whole
        for other, (_, start) in places.items():
            apart = begin + sizes[one] <= start or start + sizes[other] <= begin
            later = spans[one][-1] < spans[other][0] or spans[other][-1] < spans[one][0]
            assert one == other or apart or later


ROWS = {
    "softmax": lambda x: F.softmax(x, -1) * 2,
    "log_softmax": lambda x: F.log_softmax(x, -1) * 2,
    "logsumexp": lambda x: torch.logsumexp(x, -1) * 2,
    "softmin": lambda x: F.softmin(x, -1) * 2,
}


@pytest.mark.long_cases
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("length", [1, 3, 4, 7, 8, 9, 16, 33])
@pytest.mark.parametrize("name", ROWS)
def test_rows_of_any_length_with_special_values_in_any_place(name, length, dtype):
    """Rows are reduced in vectors, and then in single elements.

    A NaN in any position makes the result of its row NaN, but not the results of other rows.
    """
    torch.manual_seed(length)
    rows = 4 * length + 1
    x = torch.randn(rows, length, dtype=dtype)
    for place in range(length):
        for number, value in enumerate((float("nan"), float("inf"), float("-inf"), -0.0)):
            x[number * length + place, place] = value
    x[-1] = float("-inf")
    upstream = torch.randn_like(ROWS[name](x))

    def run(x):
        y = ROWS[name](x)
        return [y, *torch.autograd.grad(y, x, upstream)]

    compiled = torch.compile(run)
    given = x.requires_grad_()
    expected = run(given)
    for _ in range(2):
        for one, other in zip(compiled(given), expected, strict=True):
            assert one.dtype is dtype and one.stride() == other.stride()
            assert torch.equal(one.isnan(), other.isnan()) and torch.equal(one.isinf(), other.isinf())
            finite = other.isfinite()
            assert (one[finite] - other[finite]).abs().max() <= 8 * torch.finfo(dtype).eps * (
                1 + other[finite].abs().max()
            )


SUMMED = {
    "all": lambda x, y: (x * 2).sum() * 1,
    "rows": lambda x, y: (x * 2).sum(-1) * 1,
    "columns": lambda x, y: (x * 2).sum(0) * 1,
    "columns kept": lambda x, y: (x * 2).sum(0, keepdim=True) + y,
    "matrices": lambda x, y: (x * 2).sum((0, 1)) * 1,
    "outer and rows": lambda x, y: (x * 2).sum((0, 2)) * 1,
    "middle": lambda x, y: (x * 2).mean(1) * 1,
    "turned": lambda x, y: (x * 2).transpose(1, 2).sum(0) * 1,
    "broadcast": lambda x, y: (x * y[0, 0]).square(),
    "squares": lambda x, y: F.mse_loss(x * 2, y) * 1,
}


@pytest.mark.long_cases
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("length", [1, 3, 4, 8, 9, 21])
@pytest.mark.parametrize("name", SUMMED)
def test_sums_over_any_dimensions_with_special_values(name, length, dtype):
    """Sums are computed in vectors along or across the last dimension, and then in single elements."""
    torch.manual_seed(length)
    x, y = torch.randn(3, 5, length, dtype=dtype), torch.randn(3, 5, length, dtype=dtype)
    x[0, 1, -1], x[1, 2, 0], x[2, 3, length // 2] = float("nan"), float("inf"), float("-inf")

    def run(x, y):
        z = SUMMED[name](x, y)
        return [z, *torch.autograd.grad((z * z).sum(), (x, y), allow_unused=True)]

    for given in (x, torch.randn(3, 5, length, dtype=dtype)):
        compiled = torch.compile(run)
        leaves = given.requires_grad_(), y.requires_grad_()
        expected = run(*leaves)
        for _ in range(2):
            assert_alike(
                [each for each in compiled(*leaves) if each is not None],
                [each for each in expected if each is not None],
            )
        assert is_native(compiled)


@pytest.mark.parametrize("name", ["all", "rows", "columns", "middle", "squares"])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_sums_of_sizes_that_vary(name, dim):
    def inputs(number):
        size = [6, 7, 5]
        size[dim] = [5, 9, 33, 33, 33, 4, 4, 4, 17, 17, 17, 8, 8, 8][number]
        torch.manual_seed(number)
        return [torch.randn(size, requires_grad=True), torch.randn(size)]

    assert_as_eager(SUMMED[name], inputs, times=14, captured=None)
