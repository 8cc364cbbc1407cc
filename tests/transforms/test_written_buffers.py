"""Transforms of functions that write into buffers that they create, and into memory that several elements share."""

import itertools

import pytest

import adjoint as torch
import adjoint.autograd.functional as AF

F = torch.func
D = torch.float64
nan, inf = float("nan"), float("inf")


def zeros(*sizes):
    return torch.zeros(sizes, dtype=D)


def rotation(x):
    r = torch.eye(3, dtype=D)
    r[0, 0], r[0, 1], r[1, 0], r[1, 1] = x[0].cos(), -x[0].sin(), x[0].sin(), x[0].cos()
    return (r @ x).sum()


def accumulated(x):
    h = zeros()
    for each in x:
        h += each**3
    return h


def loop(x):
    o = torch.empty(3, dtype=D)
    for i in range(3):
        o[i] = x[i] ** 3 * x[0]
    return (o * x).sum()


def parts(x):
    o = zeros(2, 3)
    o[1] = x**2
    o[0].copy_(x**3)
    o.t()[0].mul_(x[1])
    return (o**2).sum()


def copies(x):
    o = torch.arange(3.0, dtype=D).clone() * 2
    o[1:] = x[1:] ** 2
    o.mul_(x)
    return (o**2).sum()


def like(x):
    o = torch.zeros_like(x)
    o += x**2
    o[torch.tensor([True, False, True])] = x[0] * 2
    p = x.new_ones(3)
    p.view(3)[1:] += x[0] * x[1:]
    return (o**3).sum() * p.prod()


def matrix(x):
    a = zeros(3, 3)
    a.diagonal().copy_(x**2 + 1)
    a[0, 1] = x[2]
    return torch.linalg.inv(a).sum() + a.det()


def steps(x):
    y, path = torch.ones(2, dtype=D), zeros(3, 2)
    for i in range(3):
        path[i] = y
        y = y + 0.1 * torch.stack([y[1] * x[0], -y[0] * x[1]])
    return (path**2).sum()


def arithmetic(x):
    o = torch.full((3,), 2.0, dtype=D)
    o.addcmul_(x, x, value=2.0).add_(x, alpha=3).clamp_(min=0.1).lerp_(x, 0.3).neg_().exp_()
    q = torch.linspace(0, 1, 3, dtype=D).mul_(x**2)
    return (o * q).sum()


def data(x):
    o = torch.tensor([1.0, 2.0, 3.0], dtype=D)
    o.data.mul_(2)
    o.mul_(x)
    return (o**2).sum()


def gradients(x):
    o = zeros(3)
    o += F.grad(lambda y: zeros().add_((y**3).sum()) * y.sum())(x)
    return (o * x).sum()


WRITING = {
    "rotation": rotation,
    "accumulated": accumulated,
    "loop": loop,
    "parts": parts,
    "copies": copies,
    "like": like,
    "matrix": matrix,
    "steps": steps,
    "arithmetic": arithmetic,
    "data": data,
    "index_add": lambda x: (zeros(2).index_add_(0, torch.tensor([0, 0, 1]), x**3) ** 2).sum(),
    "index_put": lambda x: (zeros(5).index_put_((torch.tensor([0, 2, 2]),), x**3, accumulate=True) ** 2).sum(),
    "scatter": lambda x: (zeros(5).scatter_add_(0, torch.tensor([0, 2, 2]), x**2) ** 2).sum(),
    "masked": lambda x: (zeros(3).masked_scatter_(torch.tensor([False, True, True]), x**3) * x).sum(),
    "gradients": gradients,
}


@pytest.mark.parametrize("others", [False, pytest.param(True, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("name", WRITING)
def test_buffers_are_written_within_compositions(name, others):
    """The quick tier tests a quarter of the compositions for each function. Four functions together test all compositions."""
    number = [*WRITING].index(name)
    f, x, ones = WRITING[name], torch.tensor([0.3, -0.2, 0.5], dtype=D), torch.ones(2, dtype=D)
    expected = F.jacrev(F.jacrev(f))(x)
    step = 1e-5
    slopes = [(F.grad(f)(x + v) - F.grad(f)(x - v)) / (2 * step) for v in torch.eye(3, dtype=D) * step]
    torch.testing.assert_close(expected, torch.stack(slopes), rtol=1e-6, atol=1e-7)
    for place, second in enumerate(
        (
            lambda: F.hessian(f)(x),
            lambda: F.jacfwd(F.jacfwd(f))(x),
            lambda: F.jacrev(F.jacfwd(f))(x),
            lambda: AF.hessian(f, x, vectorize=True, outer_jacobian_strategy="forward-mode"),
            lambda: AF.hessian(f, x, vectorize=True),
            lambda: F.hessian(lambda x: torch.vmap(lambda s: f(x) * s)(ones).sum() / 2)(x),
            lambda: torch.vmap(lambda s: F.hessian(f)(x) * s)(ones)[1],
        )
    ):
        if ((place + number) % 4 > 0) is others:
            torch.testing.assert_close(second(), expected)
    if (number % 4 > 0) is others:
        third = F.jacrev(F.jacrev(F.jacrev(f)))(x)
        for found in (F.jacrev(F.hessian(f))(x), F.jacfwd(F.hessian(f))(x)):
            torch.testing.assert_close(found, third)
    torch.testing.assert_close(torch.vmap(F.grad(lambda x, s: f(x) * s), (None, 0))(x, ones)[1], F.grad(f)(x))


def test_what_was_captured_is_no_buffer():
    captured, x = zeros(3), torch.tensor([0.3, -0.2, 0.5], dtype=D)
    for change in (
        lambda x: captured.add_(x).sum(),
        lambda x: captured[0].add_(x[0]).sum(),
        lambda x: captured.detach().add_(x).sum(),
    ):
        with pytest.raises(RuntimeError, match="mutate a captured Tensor"):
            F.hessian(change)(x)
    assert not captured.any()


@pytest.mark.parametrize("change", ["a[..., 0] = 1.5", "a[0] = 2.5", "a.t()[0].fill_(1.5)", "a.diagonal().zero_()"])
def test_constants_are_assigned_within_nested_forward_mode(change):
    x = torch.tensor([[0.3, -0.2, 0.5], [0.1, 0.7, -0.4]], dtype=D)
    v = torch.ones_like(x)

    def f(x):
        a = x * 1
        exec(change, {}, {"a": a})
        return a.cumprod(1).sum() + (a**3).sum()

    second = F.jvp(lambda x: F.jvp(f, (x,), (v,))[1], (x,), (v,))[1]
    torch.testing.assert_close(second, F.hessian(f)(x).sum())


# --- elements that share memory -------------------------------------------------------------------------------

OVERLAPPING = {
    "expand": (2, lambda x: x.expand(3, 2)),
    "number": (1, lambda x: x[0].expand(4)),
    "middle": (4, lambda x: x.view(2, 1, 2).expand(2, 3, 2)),
    "windows": (5, lambda x: x.unfold(0, 3, 1)),
    "sparse windows": (6, lambda x: x.unfold(0, 3, 2)),
    "complex": (4, lambda x: torch.view_as_complex(x.view(2, 2)).expand(3, 2)),
    "apart": (6, lambda x: x.view(2, 3).t()),
}
WINDOWS = [((2,), (1,)), ((3, 2), (0, 1)), ((2,), (0,)), ((1,), (1,)), ((2, 2), (1, 1))]


@pytest.mark.parametrize("others", [False, pytest.param(True, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("name", OVERLAPPING)
@pytest.mark.long_cases
def test_windows_of_elements_that_share_memory(name, others):
    """The quick tier tests a third of the windows for each case. Three cases together test all windows."""
    count, source = OVERLAPPING[name]
    tried, number = 0, [*OVERLAPPING].index(name)
    for (size, stride), offset in itertools.product(WINDOWS, (None, 0, 1)):
        reach = (offset or 0) + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
        if reach >= source(torch.zeros(count)).untyped_storage().nbytes() // 4 // (1 + (name == "complex")):
            continue

        def window(x, size=size, stride=stride, offset=offset):
            y = source(x * 1).as_strided(size, stride, offset)
            return torch.view_as_real(y) ** 3 if y.is_complex() else y**3

        tried += 1
        if ((tried + number) % 3 > 0) is not others:
            continue
        x = torch.arange(1.0, count + 1, dtype=D).sin().requires_grad_()
        assert torch.autograd.gradcheck(window, x, check_forward_ad=True, check_batched_grad=True)
        assert torch.autograd.gradgradcheck(window, x, check_fwd_over_rev=True)
    assert tried > 3


# --- tangents without effect ------------------------------------------------------------------------------

HIDING = {
    "nansum": torch.nansum,
    "nansum of rows": lambda x: x.view(2, 2).nansum(1),
    "nanmean": torch.nanmean,
    "nanmedian": torch.nanmedian,
    "nanquantile": lambda x: torch.nanquantile(x, 0.5),
    "nan_to_num": torch.nan_to_num,
    "where": lambda x: torch.where(x.isnan(), 0.0, x),
    "masked_fill": lambda x: x.masked_fill(x.isnan(), 0.0),
    "masked_fill in place": lambda x: (x * 1).masked_fill_(x.isnan(), 0.0),
    "masked_fill by it": lambda x: torch.zeros(3, dtype=D).masked_fill(torch.tensor([True, False, False]), x[0])[1:],
    "index_fill by it": lambda x: torch.zeros(3, dtype=D).index_fill(0, torch.tensor([2]), x[1])[:2],
    "fmax": lambda x: torch.fmax(x, torch.zeros_like(x)),
    "fmin": lambda x: torch.fmin(x, torch.zeros_like(x)),
    "maximum": lambda x: torch.maximum(x[3], x[2]),
    "amax": lambda x: x[2:].amax(),
    "amax of equals": lambda x: torch.stack([x[2], x[2], x[3]]).amax(0),
    "aminmax": lambda x: torch.aminmax(x[2:]).max,
    "max": lambda x: x[2:].max(),
    "clamp": lambda x: x[3].clamp(-1, 1),
    "scatter amax": lambda x: torch.zeros(1, dtype=D).scatter_reduce(0, torch.tensor([0, 0]), x[2:], "amax"),
    "masked sum": lambda x: torch.masked.sum(x, 0, mask=~x.isnan()),
    "masked mean": lambda x: torch.masked.mean(x, 0, mask=~x.isnan()),
    "masked amin": lambda x: torch.masked.amin(x, 0, mask=torch.tensor([True, False, True, False])),
    "assigned": lambda x: torch.stack([x[0], x[2], x[1]]).index_put((torch.tensor([2]),), x[0]),
}


@pytest.mark.parametrize("name", HIDING)
@pytest.mark.parametrize("hidden", [nan, inf])
def test_tangents_of_ignored_elements_are_ignored(name, hidden):
    x, v = torch.tensor([1.0, nan, 3.0, -2.0], dtype=D), torch.tensor([1.0, hidden, 2.0, hidden], dtype=D)
    if name in (
        "nansum",
        "nansum of rows",
        "nanmean",
        "nan_to_num",
        "where",
        "fmin",
        "nanquantile",
        "masked sum",
        "masked mean",
    ):
        v[3] = 1.0  # these functions read the element
    if "masked_fill" in name:
        v[3], v[0] = 1.0, hidden if name == "masked_fill by it" else 1.0
    f = HIDING[name]
    assert torch.isfinite(F.jvp(f, (x,), (v,))[1]).all()
    found = F.jvp(f, (x,), (torch.where(v.isfinite(), v, 0.0),))[1]
    torch.testing.assert_close(F.jvp(f, (x,), (v,))[1], found)


# --- third derivatives of complex functions -----------------------------------------------------------------------

COMPLEX = {
    "tanh": lambda z: z.tanh().real,
    "sigmoid": lambda z: z.sigmoid().real,
    "hfft": lambda z: torch.fft.hfft(z) ** 2,
    "irfft": lambda z: torch.fft.irfft(z) ** 3,
    "logcumsumexp": lambda z: z.logcumsumexp(0).real,
    "pairs": lambda z: torch.view_as_real(z.conj().resolve_conj()) ** 3,
    "product": lambda z: torch.view_as_complex(torch.view_as_real(z) * 1).prod().imag,
    "sqrt": lambda z: (z + 2).sqrt().imag,
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", COMPLEX)
def test_third_derivatives_of_complex_functions(name):
    a, b, u, v = torch.tensor([[0.3, -0.5, 1.1], [0.2, 0.9, -0.4], [0.3, 0.1, -0.2], [0.1, -0.3, 0.2]], dtype=D)

    def f(t):
        found = COMPLEX[name](torch.complex(a + t * u + t * t * v, b + t * v - t * t * u))
        return (found * torch.arange(1.0, 1 + found.numel(), dtype=D).reshape(found.shape)).sum()

    t = torch.tensor(0.1, dtype=D)
    found = {}
    for order in map("".join, itertools.product("FR", repeat=3)):
        g = f
        for letter in order:
            g = _along(g) if letter == "F" else F.grad(g)
        found[order] = g(t)
    y = f(s := t.clone().requires_grad_())
    for _ in range(2):
        (y,) = torch.autograd.grad(y, s, create_graph=True)
    (found["eager"],) = torch.autograd.grad(y, s, create_graph=True)
    second = F.grad(F.grad(f))
    expected = (second(t + 1e-5) - second(t - 1e-5)) / 2e-5
    for order, third in found.items():
        torch.testing.assert_close(third, expected, rtol=1e-6, atol=1e-6, msg=order)


def _along(g):
    return lambda t: F.jvp(g, (t,), (torch.ones_like(t),))[1]


def _into(y, x):
    """Write values that depend on `x` into `y`."""
    y.copy_(x * 2)
    return y * x


TRANSFORMED_BY_FIRST = {
    "grad": lambda y, x: F.grad(lambda x, y: _into(y, x).sum())(x, y),
    "grad, by keyword": lambda y, x: F.grad(lambda x, *, y: _into(y, x).sum())(x, y=y),
    "grad, in a dictionary": lambda y, x: F.grad(lambda x, d: _into(d["y"], x).sum())(x, {"y": y}),
    "grad of grad": lambda y, x: F.grad(lambda x, y: F.grad(lambda x, y: _into(y, x).sum())(x, y).sum())(x, y),
    "jacrev": lambda y, x: F.jacrev(lambda x, y: _into(y, x))(x, y),
    "jacrev by rows": lambda y, x: F.jacrev(lambda x, y: _into(y, x), chunk_size=1)(x, y),
    "jacfwd": lambda y, x: F.jacfwd(lambda x, y: _into(y, x))(x, y),
    "vmap of grad": lambda y, x: torch.vmap(F.grad(lambda x, y: _into(y, x).sum()))(x[:, None], y[:, None])[:, 0],
}


@pytest.mark.parametrize("name", TRANSFORMED_BY_FIRST)
@pytest.mark.parametrize("part", [False, True])
def test_an_argument_that_is_not_differentiated_may_be_written_into_and_keeps_no_history(name, part):
    x = torch.tensor([1.0, 2.0], dtype=D)
    whole = zeros(3)
    y = whole[1:] if part else zeros(2)
    slope = torch.full((2,), 4.0, dtype=D) if name == "grad of grad" else 4 * x
    assert torch.equal(TRANSFORMED_BY_FIRST[name](y, x), slope.diag() if "jac" in name else slope)
    assert torch.equal(y, 2 * x)
    assert not y.requires_grad
    assert not part or (whole.tolist() == [0, 2, 4] and not whole.requires_grad)
    y.mul_(2)
    assert torch.equal(y, 4 * x)


def test_an_argument_that_is_written_into_keeps_the_history_outside():
    x = torch.tensor([1.0, 2.0], dtype=D)

    def outer(x, y):
        F.grad(lambda x, y: _into(y, x).sum())(x, y)
        return y.sum()

    assert F.grad(outer)(x, zeros(2)).tolist() == [2, 2]
    w, y = x.clone().requires_grad_(), zeros(2)
    F.grad(lambda x, y: _into(y, x).sum())(w, y)
    assert torch.autograd.grad(y.sum(), w)[0].tolist() == [2, 2]


def test_jacobians_by_single_rows_are_computed_without_vmap():
    class Counting(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, grad):
            grad.nonzero()  # the shape of the result depends on the row
            return grad * 2 * ctx.saved_tensors[0]

    x = torch.tensor([1.0, 2.0], dtype=D)
    assert torch.equal(F.jacrev(Counting.apply, chunk_size=1)(x), (2 * x).diag())
    both = F.jacrev(lambda x: (x.sin(), {"a": x * 2}), chunk_size=1)(x)
    assert torch.equal(both[0], x.cos().diag()) and torch.equal(both[1]["a"], torch.eye(2, dtype=D) * 2)
    assert F.jacrev(lambda x: x[:0], chunk_size=1)(x).shape == (0, 2)
    with pytest.raises(RuntimeError, match="dynamic shape"):
        F.jacrev(Counting.apply, chunk_size=2)(torch.ones(3, dtype=D))
