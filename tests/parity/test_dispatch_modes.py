"""What `TorchDispatchMode` is told of programs, compared with PyTorch: the operators, their order, and their arguments.

PyTorch also tells of aliases that it makes of what nodes save and of gradients (`detach`), and of data that becomes a tensor
(`lift_fresh`); adjoint, of copies of gradients (`clone`). These are left out.
"""

import pytest

import adjoint

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode as TheirMode

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
