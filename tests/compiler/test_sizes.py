# ruff: noqa: E501
"""Programs for any size: modules at sizes that were not captured, code that depends on sizes, and reports about sizes."""

import copy
import linecache
import warnings

import pytest

import adjoint as torch
from adjoint.compiler.blocks import KNOWN_BLOCKS

from .comparison import assert_alike, detached, gradients, tensors_in
from .test_modules import MODULES, NOT_CAPTURED, made

nn, F = torch.nn, torch.nn.functional

pytestmark = pytest.mark.filterwarnings("ignore")

SIZES = [6, 3, 3, 3, 7, 7, 2, 8, 8, 5, 4, 9, 12, 1, 3, 2, 2]
"""The sizes of calls, in order. Most sizes are new and were not captured, and some sizes occur until they are planned."""

ONE_PROGRAM_EACH = {
    # These modules compute indices from sizes:
    *("Conv2d circular", "CircularPad2d", "ChannelShuffle", "Fold"),
    *("EmbeddingBag", "EmbeddingBag with padding", "EmbeddingBag of maxima with padding"),
    *("CrossMapLRN2d", "LSTM with projection"),  # these modules iterate over a dimension
    *("Upsample", "GLU"),  # these modules compute multiples and halves of sizes
    "FractionalMaxPool2d",  # the random numbers are drawn outside of operators
}
"""Modules whose programs are valid for one size only, with these dimensions."""


def resized(value, dim, old, new):
    """Resize the tensors in nested values from `old` to `new` elements along a dimension."""
    if isinstance(value, torch.Tensor):
        if value.ndim <= dim or value.shape[dim] != old:
            return value
        parts = torch.cat([value.detach()] * -(-new // old), dim).narrow(dim, 0, new).clone()
        parts = parts + 0.1 * torch.randn(parts.shape) if parts.is_floating_point() else parts
        return parts.requires_grad_(value.requires_grad)
    return type(value)([resized(each, dim, old, new) for each in value]) if isinstance(value, (list, tuple)) else value


def called(function, owner, arguments, seed):
    """Return the error of a call, or its results, gradients, buffers and the state of the generator."""
    torch.manual_seed(seed)
    try:
        result = function(*arguments)
    except (RuntimeError, ValueError, IndexError, TypeError, AssertionError) as error:
        return type(error).__name__
    state = torch.get_rng_state()
    leaves = [each for each in tensors_in(arguments) if each.requires_grad and each.is_leaf]
    leaves += [each for each in owner.parameters() if each.requires_grad]
    return result, gradients(result, leaves), [each.clone() for each in owner.buffers()], state


def compared(name, dim, sizes):
    """Compare a module with its compiled form at several sizes.

    Return the compiled module, or None if the module accepts too few sizes.
    """
    module, inputs = made(name), MODULES[name][1]
    plain, compiled, possible = copy.deepcopy(module), torch.compile(module), set()
    old = tensors_in(inputs(0))[0].shape[dim]
    for number, size in enumerate([old, *sizes]):
        torch.manual_seed(number)
        given = resized(inputs(number), dim, old, size)
        expected, found = [
            called(each, owner, detached(given), 100 + number) for each, owner in ((plain, plain), (compiled, module))
        ]
        if isinstance(expected, str):
            assert found == expected
            continue
        possible.add(size)
        for part, one, other in zip(("result", "gradient", "buffer", "random state"), found, expected, strict=True):
            assert_alike(one, other, f"size {size}, call {number}: {part}", strides=part == "result")
    return compiled if len(possible) > 3 else None


CASES = [(name, dim) for name in MODULES for dim in range(tensors_in(MODULES[name][1](0))[0].ndim)]


@pytest.mark.one_each("name")
@pytest.mark.parametrize(("name", "dim"), CASES)
@pytest.mark.long_cases
def test_modules_at_any_size(name, dim):
    compiled = compared(name, dim, SIZES)
    if compiled is None or name in NOT_CAPTURED | ONE_PROGRAM_EACH:
        return
    variants = compiled.compiled.variants
    assert len(variants) <= 3, [each.differences for each in variants]
    assert any(each.sized for each in variants), [each.differences for each in variants]


def functions(source, name="f"):
    """Return the functions in a source that the compiler can read."""
    file = f"<sizes {len(linecache.cache)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    namespace = {"torch": torch, "F": F, "nn": nn}
    exec(compile(source, file, "exec"), namespace)
    return namespace[name]


EXPRESSIONS = [
    *("x * x.shape[0]", "x / x.size(0)", "x + len(x)", "x * x.numel()", "x[: x.shape[0] // 2]", "x[-1] * x.shape[-1]"),
    *("x.view(x.shape[0] * x.shape[1]) * 1", "x.reshape(-1, x.shape[0]) + 0", "x.sum(0).expand(x.shape[0], -1) * x"),
    *("torch.zeros(x.shape) + x", "torch.ones(x.shape[0], 2).sum() + x", "torch.arange(x.shape[0])[:, None] + x"),
    *("torch.full((x.shape[0], 1), 2.0) * x", "torch.eye(len(x)) @ x", "x @ torch.ones(x.shape[1], len(x))"),
    *("x * (1 if x.shape[0] > 4 else 2)", "x * min(x.shape[0], 4)", "x[:4] * 2", "x[:4].sum() / x[:4].shape[0]"),
    *("x * (x.shape[0] % 2)", "x * (x.shape[0] // 2 * 2)", "x[::2].sum(0) * x[::2].shape[0] + x", "x * x.shape[0] ** -0.5"),
    *("x.mean()", "x.mean(0)", "x.std(0)", "x.var()", "x.sum(1, keepdim=True) / x.shape[1]", "F.normalize(x, dim=0)"),
    *("F.pad(x, (1, 1))", "x.repeat(2, 1)", "torch.cat([x, x, x[:1]])", "torch.stack([x, x])", "x.flatten() * 1"),
    *("torch.cat([x, torch.zeros(x.shape[0], 1)], 1)", "x.unfold(0, 2, 1).sum(-1)", "x.t() @ x", "x.tril() + x.triu()"),
    *("sum(row for row in x)", "x.split(2)[0] * 1", "x.chunk(2)[1] * 1", "torch.stack(list(x)) * 2", "x * list(x.shape)[0]"),
    *("x * sum(x.shape)", "x * max(x.shape)", "x * float(x.shape[0])", "x.roll(1, 0)", "x.flip(0)", "x.cumsum(0)", "x[x.shape[0] - 1] * 1"),
    *("x.masked_fill(torch.ones(x.shape[0], x.shape[0]).tril()[:, :1] == 0, 2.0)", "torch.linspace(0, 1, len(x))[:, None] * x"),
    *("x.view(*x.shape, 1).squeeze(-1) * 1", "x.view(x.shape + (1,)).sum(-1)", "x.new_zeros(x.shape[0], 1) + x", "torch.randn(x.shape) + x"),
    *("torch.rand(x.shape[0], 1) * x", "F.dropout(x, 0.5)", "torch.randperm(x.shape[0])[:, None] * x", "(x, x.shape)", "[x * 2, x.shape[0]]"),
    *("{'a': x + 1, 'n': x.shape[0] * 2}", "x * (x.shape == (3, 4))", "x * len({x.shape[0], 4})", "x * {3: 2, 5: 7}.get(x.shape[0], 1)"),
    *("x * int(str(x.shape[0]))", "x * x.stride(0)", "x * x.nbytes", "x * x.ndim", "x.sort(0)[0]", "x.topk(2, 0)[0]", "x.max(0)[0]"),
    *("F.interpolate(x[None], scale_factor=2)", "F.max_pool1d(x.t()[None], 2)", "F.conv1d(x.t()[None], torch.ones(1, x.shape[1], 2))"),
    *("x.expand(2, *x.shape) * 1", "torch.einsum('ij,kj->ik', x, x)", "torch.outer(x[:, 0], x[:, 1])", "x.softmax(0)", "x.logsumexp(0)"),
    *("torch.where(x > 0, x, x.shape[0])", "x.clamp(max=x.shape[0] / 4)", "x.index_select(0, torch.arange(len(x)))", "x[torch.arange(len(x) - 1)]"),
    *("torch.triu(torch.ones(len(x), len(x)), 1) @ x", "x.diagonal() * 1", "x.norm()", "torch.cdist(x, x)", "x.narrow(0, 1, x.shape[0] - 1) * 1"),
    *("x.select(0, x.shape[0] - 1) * 1", "F.one_hot(torch.arange(len(x))).float() @ x", "F.layer_norm(x, x.shape[1:])", "F.layer_norm(x, x.shape)"),
    *("x * (not x.shape[0] & 1)", "x * abs(3 - x.shape[0])", "x * (2 if 2 < len(x) < 6 else 3)", "x.squeeze() * 1", "x.movedim(0, 1) * 1"),
    *("x.sum() * (x[: len(x) // 2 * 2].shape[0] - len(x))", "x[: len(x) // 2 * 2] * 1", "x.reshape(2, -1) if len(x) % 2 == 0 else x * 1"),
]  # fmt: skip


ORDERS = {
    "after 3 and 5": [3, 5, 5, 4, 4, 4, 8, 2, 9, 3, 12, 1, 6],
    "after 8 and 7": [8, 7, 6, 6, 5, 4, 3, 2, 9, 10, 30, 1, 11],
    "after 12 and 4": [12, 4, 3, 3, 3, 5, 8, 16, 2, 30],
}


@pytest.mark.parametrize("square", [False, pytest.param(True, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("gradient", [True, pytest.param(False, marks=pytest.mark.thorough)])
@pytest.mark.parametrize(
    "order", ["after 3 and 5", "after 8 and 7", pytest.param("after 12 and 4", marks=pytest.mark.thorough)]
)
@pytest.mark.parametrize("source", EXPRESSIONS)
def test_code_that_depends_on_sizes(source, order, gradient, square):
    function = functions(f"def f(x):\n    return {source}\n")
    compiled = torch.compile(function)
    for number, size in enumerate(ORDERS[order]):
        outcomes = []
        for each in (function, compiled):
            torch.manual_seed(number)
            x = torch.randn(size, size if square else 4, requires_grad=gradient)
            torch.manual_seed(number)
            try:
                result = each(x)
            except (RuntimeError, ValueError, IndexError, TypeError) as error:
                outcomes.append(str(error))
                continue
            outcomes.append([result, gradients(result, [x] if gradient else []), torch.get_rng_state()])
        assert_alike(outcomes[1], outcomes[0], f"{source} at {size}, call {number}", strides=False)


def training_step():
    """Return a training step, and a function that creates the arguments for a batch size."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.BatchNorm1d(8), nn.Dropout(0.1), nn.Linear(8, 3)).double()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, lambda size: (torch.randn(size, 4, dtype=torch.float64), torch.randint(0, 3, (size,)))


def attention_step():
    """Return a step of attention that computes with the lengths of sequences."""
    torch.manual_seed(0)
    places, weight = [torch.randn(rows, 4, dtype=torch.float64, requires_grad=True) for rows in (30, 4)]
    optimizer = torch.optim.Adam([places, weight], 0.01)

    def step(x):
        optimizer.zero_grad()
        batch, length, width = x.shape
        h = x @ weight + places[:length]
        heads = h.view(batch, length, 2, width // 2).transpose(1, 2)
        scores = (heads @ heads.transpose(-1, -2)) * (1 / length)
        scores = scores.masked_fill(torch.ones(length, length).tril() == 0, -1e9).softmax(-1)
        loss = (scores @ heads).transpose(1, 2).reshape(batch, length, width).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, lambda size: (torch.randn(2, size, 4, dtype=torch.float64),)


@pytest.mark.thorough
@pytest.mark.parametrize("make", [training_step, attention_step])
def test_training_at_twenty_sizes_has_three_captures_and_compiles_nothing_new(make):
    (plain, arguments), (function, _) = make(), make()
    step, captures = torch.compile(function), []
    for number, size in enumerate([2, *range(1, 21), *range(20, 1, -1)]):
        torch.manual_seed(number)
        given = arguments(max(size, 2) if make is training_step else size)
        torch.manual_seed(number)
        expected = plain(*given)
        torch.manual_seed(number)
        assert step(*given).item() == pytest.approx(expected.item(), rel=1e-9)
        captures.append((len(step.compiled.variants), len(KNOWN_BLOCKS)))
    assert captures[-1][0] <= 2 and step.compiled.reason is None
    known = {count for _, count in captures[-19:]}
    assert len(known) == 1, "blocks are compiled for a size that is planned late"
    assert max(each.sized is not None and len(each.sized.plans) for each in step.compiled.variants) > 15


def test_which_sizes_are_dynamic():
    for dynamic, calls, count in (
        (None, [(3, 4), (5, 4), (6, 4), (6, 7), (8, 9), (2, 3)], 1),
        (True, [(3, 4), (5, 6), (6, 5), (6, 7), (8, 9), (2, 3)], 1),
        (False, [(3, 4), (5, 4), (6, 4), (7, 4)], 4),
    ):
        compiled = torch.compile(lambda x: (x * x.shape[0]).sum(1), dynamic=dynamic)
        for shape in calls:
            assert compiled(torch.ones(shape)).tolist() == [shape[0] * shape[1]] * shape[0]
        assert len(compiled.compiled.variants) == count, dynamic


def test_marks_of_dynamic_dimensions():
    for mark, count in (
        (torch._dynamo.mark_dynamic, 1),
        (torch._dynamo.maybe_mark_dynamic, 1),
        (torch._dynamo.mark_static, 4),
    ):
        compiled = torch.compile(lambda x: x.sum(1))
        for shape in ((3, 4), (5, 6), (6, 5), (2, 9)):
            x = torch.ones(shape)
            mark(x, (0, -1))
            assert compiled(x).tolist() == [shape[1]] * shape[0]
        assert len(compiled.compiled.variants) == count
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch._dynamo.mark_dynamic(torch.ones(2), 1)


def test_an_error_inside_names_the_line():
    compiled = torch.compile(lambda x, y: F.nll_loss(x, y) * 2)
    for size in (3, 4, 5, 5, 5):
        compiled(torch.randn(size, 4), torch.ones(size, dtype=torch.int64))
    with pytest.raises(IndexError, match="Target 7 is out of bounds"):
        compiled(torch.randn(5, 4), torch.full((5,), 7))


def test_a_size_that_asks_another_question_is_captured_again(capsys):
    torch._logging.set_logs(recompiles=True)
    try:
        compiled = torch.compile(functions("def f(x):\n    return x * 2 if x.shape[0] < 6 else x * 3\n"))
        for size in (3, 4, 5, 7, 8, 9):
            assert compiled(torch.ones(size, 2))[0, 0].item() == (2 if size < 6 else 3)
    finally:
        torch._logging.set_logs()
    said = capsys.readouterr().err
    assert "args[0].shape[0] == 3 (it is 4 now)" in said and "sizes" in said
    assert len(compiled.compiled.variants) <= 3


INSIDE = {
    "fftshift": lambda x: torch.fft.fftshift(x, 0) * 2,
    "rfft": lambda x: torch.fft.rfft(x, dim=0).abs().sum(0),
    "cdist": lambda x: torch.cdist(x, x + 1),
    "chunk": lambda x: torch.chunk(x, 3)[0] + 1,
    "quantile": lambda x: torch.quantile(x, 0.3, 0) * 2,
    "median": lambda x: x.median(0).values * 2,
    "diff": lambda x: x.diff(dim=0).sum(0),
    "trace": lambda x: (x @ x.t()).trace() * 2,
    "interpolate": lambda x: F.interpolate(x[None], 5, mode="linear").sum(0),
    "pad": lambda x: F.pad(x.t(), (1, 2), mode="constant").t().sum(0),
    "tensor_split": lambda x: torch.tensor_split(x, 2)[1].sum(0),
    "unfold": lambda x: x.unfold(0, 2, 3).sum((1, 2)),
    "std": lambda x: x.std(0) * 2,
    "histogram": lambda x: torch.histc(x.detach(), 4) * 2,
    "median of all": lambda x: (x - x.median()).sum(1),
    "average over windows": lambda x: F.avg_pool1d(x.t()[None], 2).sum(2),
    "adaptive windows": lambda x: F.adaptive_avg_pool1d(x.t()[None], 3).sum(1),
    "attention": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None], is_causal=True),
    "half": lambda x: x.roll(x.shape[0] // 2, 0) * 2,
}


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", INSIDE)
def test_sizes_that_are_computed_inside_give_no_other_values(name, grad, monkeypatch):
    # Without the lists of functions that compute with sizes, two captures of a function may agree by chance. The third size
    # reveals the error.
    monkeypatch.setattr("adjoint.compiler.guards.OF_ONE_SIZE", frozenset())
    monkeypatch.setattr("adjoint.compiler.guards.ALONG_ONE", {})
    function = INSIDE[name]
    compiled = torch.compile(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, size in enumerate((9, 8, 20, 20, 20, 9, 31, 31, 31, 8, 64, 64, 6, 6)):
            torch.manual_seed(number)
            x = torch.randn(size, 4, dtype=torch.float64)
            results = []
            for each in (function, compiled):
                given = x.clone().requires_grad_(grad)
                value = each(given)
                (found,) = torch.autograd.grad(value.abs().sum(), given) if value.requires_grad else (None,)
                results.append((value, found))
            assert_alike(results[1], results[0], f"{name}: call {number} of size {size}", strides=False)


def test_arguments_that_share_an_array():
    step = torch.compile(lambda x, y: x * 3 + y, dynamic=True)
    x = torch.ones(4)
    for y in (torch.ones(4), x, x.detach(), x.detach()):
        assert torch.equal(step(x, y), x * 3 + y)


def test_the_history_of_an_argument_is_not_run_through_at_new_sizes():
    weight = torch.nn.Parameter(torch.tensor([0.5, -1.0, 2.0]))
    compiled = torch.compile(lambda h: (h * h).sum() + weight.norm())
    for rows in (3, 5, 4, 4, 7, 3, 6):
        calls = []
        inner = weight * torch.ones(rows, 3)
        inner.retain_grad()
        inner.register_hook(calls.append)
        loss = compiled(2 * inner)
        assert (calls, inner.grad) == ([], None)
        loss.backward()
        assert len(calls) == 1 and torch.equal(inner.grad, 8 * inner)
    assert compiled.compiled.reason is None and sum(each.calls for each in compiled.compiled.variants) >= 4


def test_expanded_gradients_of_results_have_the_size_of_the_call():
    layer = torch.nn.Linear(4, 1)
    compiled = torch.compile(layer)
    for size in (6, 5, 5, 6, 6, 5, 7, 7, 6):
        x = torch.randn(size, 4)
        found = [torch.autograd.grad(each(x).mean(), [*layer.parameters()]) for each in (compiled, layer)]
        for one, other in zip(*found, strict=True):
            torch.testing.assert_close(one, other)


@pytest.mark.parametrize("strides", [(1, 1), (8, 1), (1, 2), (0, 1)])
def test_new_arrays_keep_overlaps_and_gaps(strides):
    f = torch.compile(lambda x: (torch.empty_strided((2, 3), strides).zero_(), x + 1))
    for _ in range(3):
        made, _ = f(torch.ones(2))
        assert made.stride() == strides and not made.any()


def test_strides_of_dimensions_of_size_one():
    """The stride of a dimension of size 1 is that of the call, too, although no element depends on it."""
    compiled = torch.compile(lambda x: (x * 2 + 1).unsqueeze(0))
    for size in [3, 5, 7, 7, 9, 9, 11, 11]:
        assert compiled(torch.ones(size, 4)).stride() == (4 * size, 4, 1)
    assert any(each.sized for each in compiled.compiled.variants)
