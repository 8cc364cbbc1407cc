"""The calls that `TorchDispatchMode` receives, compared with PyTorch: operators, their order, and their arguments.

Some calls are not compared: in PyTorch, aliases of saved values and of gradients (`detach`), and data that becomes a
tensor (`lift_fresh`); in adjoint, copies of gradients (`clone`).
"""

import pytest

import adjoint

torch = pytest.importorskip("torch")

from torch._subclasses.fake_tensor import FakeTensorMode as TheirFakes
from torch.fx.experimental import proxy_tensor as theirs_of_fx
from torch.utils._python_dispatch import TorchDispatchMode as TheirMode

from adjoint._subclasses.fake_tensor import FakeTensorMode as OurFakes
from adjoint.fx.experimental import proxy_tensor as ours_of_fx
from adjoint.utils._python_dispatch import TorchDispatchMode as OurMode

LEFT_OUT = ("detach", "lift_fresh", "_record_function")


def shown(value, library):
    if isinstance(value, library.Tensor):
        return f"{tuple(value.shape)} {value.dtype}"
    if isinstance(value, (list, tuple)):
        return [shown(item, library) for item in value]
    if isinstance(value, dict):
        return {name: shown(item, library) for name, item in value.items()}
    return str(value)


def told(library, mode, before, body):
    calls = []

    class Log(mode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if not any(name in str(func) for name in LEFT_OUT):
                calls.append((str(func), shown(args, library), shown(kwargs or {}, library)))
            return func(*args, **(kwargs or {}))

    names = {"torch": library, "F": library.nn.functional}
    library.manual_seed(0)
    exec(before, names)
    with Log():
        exec(body, names)
    return calls


X = "x = torch.arange(12.0).reshape(3, 4) / 7 + 0.1; r = x.clone().requires_grad_()"

PROGRAMS = """
2 * x; 2 - x; x / 2; 2 / x; x**2; 2**x; -x; x // 2; x % 2; x == 1; x > 0; ~(x > 0); abs(x)
x.exp(); x.log(); x.sin(); x.sqrt(); x.tanh(); x.sigmoid(); x.clamp(0, 1); x.round(); x.pow(x); torch.atan2(x, x)
x.sum(); x.sum(1); x.mean(0, keepdim=True); x.std(); x.var(1); x.max(); x.max(1); x.amax((0, 1)); x.argmax(); x.prod(); x.cumsum(0)
x.t(); x.transpose(0, 1); x.permute(1, 0); x.view(4, 3); x.reshape(-1); x.unsqueeze(0); x[None].squeeze(0); x.expand(3, 4); x.T
x[0]; x[:, 0]; x[..., None]; x[0, 1:3]; x[x > 1]; x[torch.tensor([0, 1])]; x.index_select(0, torch.tensor([0])); x.narrow(0, 0, 2)
torch.cat([x, x]); torch.stack([x, x], 1); x.split(1); x.chunk(2, 1); x.unbind(1); torch.where(x > 1, x, x); x.topk(2); x.sort(descending=True)
x.double(); x.to(torch.float64); x.to("cpu"); x.float(); x.clone(); x.contiguous(); x.type(torch.int32); x.long()
x.add_(1); x.mul_(x); x.zero_(); x.fill_(3); x.exp_(); x.clamp_(0); x.copy_(x.clone()); x.t_(); x.masked_fill_(x > 1, 0)
x[0].zero_(); torch.exp(x, out=x); torch.add(x, x, alpha=2, out=x)
torch.ones(2); torch.zeros(2, 3); torch.full((2,), 3.0); torch.rand(2); torch.randn(2); torch.arange(3); torch.empty(2); torch.eye(2)
torch.linspace(0, 1, 3); torch.randint(0, 3, (2,)); torch.randperm(3); torch.zeros_like(x); torch.arange(0, 3, 2, dtype=torch.float64)
x[0, 0].item(); bool(x[0, 0] > 0); float(x[1, 1]); x.nonzero()
(r * 2).sum(); r.exp().sum(); (r.exp() * r).mean()
F.relu(x); F.gelu(x); F.silu(x); F.softplus(x); F.leaky_relu(x); F.elu(x); F.softmax(x, -1); F.log_softmax(x, 1); F.hardtanh(x)
F.linear(x, x); F.linear(x, x, torch.ones(3)); x @ x.t(); x.mv(x[0]); torch.bmm(x[None], x.t()[None]); torch.addmm(x, x @ x.t(), x)
F.mse_loss(x, x); F.l1_loss(x, x); F.smooth_l1_loss(x, x); F.cross_entropy(x, torch.tensor([0, 1, 2])); F.huber_loss(x, x)
F.conv2d(x[None, None], torch.ones(2, 1, 2, 2)); F.conv1d(x[None], torch.ones(2, 3, 2), padding=1); F.max_pool2d(x[None], 2); F.avg_pool2d(x[None], 2)
F.layer_norm(x, (4,)); F.embedding(torch.tensor([0, 1]), x); x.gather(1, torch.tensor([[0], [1], [2]]))
torch.linalg.vector_norm(x); torch.logsumexp(x, 1); x.tril(); x.roll(1)
x.logical_and(x); x.isnan(); torch.maximum(x, x); torch.lerp(x, x, 0.5); torch.addcmul(x, x, x); x.flip(0); x.repeat(2, 1); x.norm()
""".strip().splitlines()  # noqa: E501


@pytest.mark.parametrize("body", PROGRAMS)
def test_operators_are_told_as_in_pytorch(body):
    assert told(adjoint, OurMode, X, body) == told(torch, TheirMode, X, body)


BACKWARD = """
(r * 2).sum().backward()
r.exp().sum().backward()
F.relu(r).sum().backward()
F.softmax(r, -1).sum().backward()
(r.sin() + r.cos()).sum().backward()
""".strip().splitlines()


@pytest.mark.parametrize("body", BACKWARD)
def test_operators_of_backward_are_told(body):
    ours, theirs = told(adjoint, OurMode, X, body), told(torch, TheirMode, X, body)
    assert [name for name, *_ in ours if "clone" not in name] == [name for name, *_ in theirs]


SAME_GRAPHS = [
    "lambda x: x.sin() + 1",
    "lambda x, y: (x * y).sum()",
    "lambda x: torch.func.grad(lambda y: y.exp().sum())(x)",
    "lambda x, y: torch.func.vjp(lambda z: z.sin(), x)[1](y)[0]",
    "lambda x: torch.autograd.grad(x.sin().sum(), x)[0]",
    "lambda x: x.clone().add_(1).mul_(2)",
    "lambda x: x.view(6).t()[1:3]",
    "lambda x: F.softmax(F.relu(x), 1)",
    "lambda x: (x.max(1), x)",
    "lambda d: {'a': d['x'] + 1, 'b': [d['y'], d['x']]}",
    "lambda x: x + torch.ones(3)",
    "lambda x: x + W + W",
    "lambda x: linear(x)",
    "lambda x, n: x * n",
    "lambda x: torch.cat([x, x], 1)",
    "lambda x: x.split(1)[0] + x.unbind(0)[1]",
    "lambda x: (x.exp(), x.sin())[0]",
    "lambda x, w: F.conv2d(x[None, None], w[None, None])",
    "lambda x: F.layer_norm(F.gelu(x), (3,))",
    "lambda x: x @ x.t()",
    "lambda x: x.double().to(torch.int64)",
    "lambda x: x.mean(0) + x.std(0)",
    "lambda x: torch.rand(3) + x",
    "lambda *a: a[0] + a[1]",
    "torch.vmap(lambda r: r * 2)",
    "lambda x: make_fx(lambda y: y + 1)(x)(x)",
    "lambda x: None",
    "lambda x: x * x.sum().item()",
    "lambda x: x if x.sum() > 0 else -x",
    "lambda x, y, z: x",
]


def traced(library, module, text, **options):
    names = {"torch": library, "F": library.nn.functional, "make_fx": module.make_fx}
    names |= {"W": library.ones(3), "linear": library.nn.Linear(3, 2)}
    library.manual_seed(0)
    x = library.arange(6.0).reshape(2, 3)
    given = {"lambda x": [x], "lambda d": [{"x": x, "y": x + 1}], "lambda x, n": [x, 3]}
    args = given.get(text.partition(":")[0], [x] if "vmap" in text else [x, x + 1])
    args = [arg.requires_grad_() if "autograd" in text else arg for arg in args]
    function = eval(text, names)
    try:
        graph = module.make_fx(function, **options)(*args)
    except RuntimeError as error:
        return str(error).partition("  It may")[0]
    library.manual_seed(1)
    again = graph(*args)
    library.manual_seed(1)
    leaves, expected = (library.utils._pytree.tree_leaves(each) for each in (again, function(*args)))
    for leaf, other in zip(leaves, expected, strict=True):
        assert leaf is other is None or library.equal(leaf, other)
    return graph.code, str(graph.graph)


@pytest.mark.parametrize("text", SAME_GRAPHS)
def test_graphs_of_operators(text):
    assert traced(adjoint, ours_of_fx, text) == traced(torch, theirs_of_fx, text)


OTHER_GRAPHS = [
    "lambda x: torch.func.grad(lambda y: (y ** 2).sum())(x)",
    "lambda x: F.dropout(x)",
    "lambda x: F.cross_entropy(x, torch.tensor([0, 1]))",
    "lambda x: torch.vmap(lambda r: r.sum() * r)(x)",
    "lambda x: torch.autograd.grad((x @ x.t()).relu().sum(), x)[0]",
    "lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None])",
    "lambda x: x.clone().__setitem__(0, 1.0)",
]


@pytest.mark.parametrize("text", OTHER_GRAPHS)
@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_graphs_of_operators_compute_the_same(text, mode):
    code, _ = traced(adjoint, ours_of_fx, text, tracing_mode=mode)
    assert "torch.ops.aten" in code


def _twice_gelu(library):
    return lambda x: library.nn.functional.gelu(x) * 2


def test_a_table_decomposes_operators_of_graphs():
    codes = []
    for library, module in ((adjoint, ours_of_fx), (torch, theirs_of_fx)):
        table = {library.ops.aten.gelu.default: lambda x, approximate="none", erf=library.erf: x * 0.5 * (1 + erf(x))}
        trace = module.make_fx(_twice_gelu(library), table)
        codes.append(trace(library.ones(2)).code)
    assert codes[0] == codes[1]
    assert "erf" in codes[0]


FAKES = """
x; x + 1; x @ x.t(); (x @ x.t()).stride(); x.view(3, 2).t(); x.double(); x.sum(1); x.device; x.is_meta; x.fake_device
x[:, 0].clone()
torch.rand(3, device="cpu"); torch.zeros_like(x); torch.full((2,), 3); torch.nn.Linear(3, 2)(x); torch.nn.Linear(3, 2).weight
torch.autograd.grad((w**2).sum(), w); torch.nn.functional.softmax(w, 1); x.detach().add_(1); torch.cat([x, x])
x.sum().item()
bool(x.sum() > 0)
x.nonzero()
x.numpy()
x.to("cpu"); x.to("cpu", torch.float64); x.unsqueeze(0).squeeze_(0).t_(); (x + 1).transpose_(0, 1); torch.quantile(x, 0.5)
torch.equal(x, x)
x.allclose(x)
torch.masked_select(x, x > 0)
torch.bincount(x[0].long())
torch.linalg.lstsq(x, x)
torch.linalg.vander(x)
type(x).from_tensor(real, mode); mode.shape_env
mode.from_tensor(real); mode.from_tensor(real) is mode.from_tensor(real); mode.from_tensor(torch.nn.Parameter(real))
mode.from_tensor(torch.arange(3)); mode.from_tensor(torch.ones(2, requires_grad=True)); layer(x)
""".strip().splitlines()


def fakes(library, mode, text):
    names = {"torch": library, "real": library.ones(2, 3), "mode": mode()}
    with names["mode"]:
        names |= {
            "x": library.empty(2, 3),
            "w": library.empty(2, 3, requires_grad=True),
            "layer": library.nn.Linear(3, 2),
        }
        try:
            return [repr(eval(each, names)) for each in text.split("; ")]
        except RuntimeError as error:
            return type(error).__name__, str(error)


@pytest.mark.parametrize("text", FAKES)
def test_fake_tensors(text):
    assert fakes(adjoint, OurFakes, text) == fakes(torch, TheirFakes, text)


def test_fake_tensors_outside_of_their_mode():
    for library, mode in ((adjoint, OurFakes), (torch, TheirFakes)):
        with mode() as strict:
            layer = library.nn.Linear(3, 2)
        fake = strict.from_tensor(library.ones(4, 3))
        layer(fake).sum().backward()
        assert repr(layer.weight.grad) == "FakeTensor(..., size=(2, 3))"
        with pytest.raises(AssertionError, match="Please convert all Tensors to FakeTensors first"):
            fake + library.ones(4, 3)
        lenient = mode(allow_non_fake_inputs=True).from_tensor(library.ones(4, 3))
        assert repr(lenient + library.ones(4, 3)) == "FakeTensor(..., size=(4, 3))"
