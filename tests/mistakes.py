"""Typical mistakes, one a line, and what stands before each: `torch` is the library that is tested."""

import traceback
from typing import Any

SETUP = """
import numpy as np
nn, F, optim = torch.nn, torch.nn.functional, torch.optim
x = torch.ones(2, 3)
w = torch.ones(3, requires_grad=True)
labels = torch.tensor([0, 1])
model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(3, 4)
    def forward(self, x):
        return self.hidden(x).view(7)
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x ** 3
    @staticmethod
    def backward(ctx, grad):
        raise ValueError("no derivative")
class Unready(nn.Module):
    def __init__(self):
        self.hidden = nn.Linear(3, 4)
"""

MISTAKES = """
x.view(4)
x.reshape(4, 2)
x @ x
x + torch.ones(4)
x * torch.ones(2, 2)
x[5]
x[0, 0, 0]
x[:, 7]
x[torch.tensor([9])]
x["a"]
x.transpose(0, 2)
x.permute(0, 0)
x.squeeze(5)
x.unsqueeze(9)
x.sum(dim=4)
x.mean(dim="rows")
torch.ones(3, dtype=torch.int64).mean()
x.max(dim=3)
x.expand(5, 3)
x.expand(2)
x.chunk(0)
x.split([1, 1, 1], dim=1).foo
x.item()
x.foo
x.numpy(1)
float(x)
bool(x)
if_else = 1 if x > 0 else 2
len(torch.tensor(1.0))
list(torch.tensor(1.0))
torch.tensor([[1, 2], [3]])
torch.tensor(["a"])
torch.tensor([1, 2], requires_grad=True)
torch.zeros(-1)
torch.zeros(2, dtype="float")
torch.zeros("a")
torch.arange(5, 1)
torch.cat([x, torch.ones(2, 4)])
torch.cat([])
torch.stack([x, torch.ones(3, 3)])
torch.matmul(x, torch.ones(4, 2))
torch.mm(torch.ones(3), x)
torch.bmm(x, x)
torch.einsum("ij,jk->ik", x, x)
torch.linalg.inv(x)
torch.linalg.inv(torch.zeros(2, 2))
torch.linalg.cholesky(-torch.eye(2))
torch.add(x, "a")
torch.add(x)
torch.where(x, x, x)
torch.gather(x, 1, torch.tensor([[9]]))
torch.from_numpy([1, 2])
torch.randint(5, 1, (2,))
w.numpy()
w.add_(1)
w.backward()
x.sum().backward()
w.grad.sum()
w.register_hook(None, 1)
x.register_hook(print)
y = w.exp(); y.mul_(2); y.sum().backward()
y = (w * w).sum(); y.backward(); y.backward()
torch.autograd.grad(x.sum(), w)
torch.autograd.grad((w * 2).sum(), torch.ones(3, requires_grad=True))
Cube.apply(w).sum().backward()
Cube()(w)
x.requires_grad = 3
labels.requires_grad_()
nn.Linear(3, 4)(torch.ones(2, 5))
nn.Linear(3, 4)(np.ones((2, 3)))
nn.Linear(3, 4)(None)
nn.Linear(3, 4)([[1.0, 2.0, 3.0]])
nn.Linear(3)
nn.Linear(3, "a")
nn.Conv2d(3, 8, 3)(torch.ones(1, 4, 8, 8))
nn.Conv2d(3, 8, 3)(torch.ones(8, 8))
nn.Conv2d(3, 8, 3, groups=2)
nn.BatchNorm1d(4)(x)
nn.BatchNorm1d(3)(torch.ones(1, 3))
nn.LayerNorm(4)(x)
nn.Embedding(5, 2)(torch.tensor([7]))
nn.Embedding(5, 2)(torch.tensor([1.0]))
nn.LSTM(4, 5)(torch.ones(2, 3, 6))
nn.MultiheadAttention(5, 2)
nn.Dropout(1.5)
nn.ReLU(4, 5, 6)
model(torch.ones(2, 4))
model.foo
model[5]
model.load_state_dict({"a": x})
model.load_state_dict(nn.Linear(3, 4).state_dict())
model.get_submodule("9.x")
Net()(x)
Net(3)
Unready()
F.cross_entropy(model(x), torch.tensor([0, 5]))
F.cross_entropy(model(x), torch.tensor([0.0, 1.0]))
F.cross_entropy(np.ones((2, 3)), labels)
F.cross_entropy(model(x), labels[:1])
F.mse_loss(x, None)
F.nll_loss(x, labels.float())
F.binary_cross_entropy(x * 2, x)
F.binary_cross_entropy_with_logits(x, x.long())
F.layer_norm([1.0, 2.0], (2,))
F.softmax(x, dim=5)
F.one_hot(x)
F.conv2d(x, x)
F.max_pool2d(torch.ones(1, 1, 2, 2), 3)
F.pad(x, (1,))
F.dropout(x, p=2)
optim.SGD([], lr=0.1)
optim.SGD(model.parameters(), lr=-1)
optim.SGD(x, lr=0.1)
optim.Adam([x * w], lr=0.1)
optim.Adam(model.parameters(), betas=(2, 0))
optim.lr_scheduler.StepLR(model, 3)
torch.utils.data.DataLoader(labels, batch_size=0)
next(iter(torch.utils.data.DataLoader([x, None], batch_size=2)))
torch.utils.data.random_split(range(5), [1, 2])
torch.utils.data.TensorDataset(x, torch.ones(5))
torch.distributions.Normal(0.0, -1.0)
torch.distributions.Categorical(torch.tensor([-1.0, 2.0]))
torch.func.grad(lambda v: v * 2)(x)
torch.func.vmap(lambda v: v.item())(x)
torch.load("/nowhere/model.pt")
torch.save(model, "/nowhere/model.pt")
torch.distributed.all_reduce(torch.ones(3))
torch.distributed.get_rank()
torch.distributed.get_world_size()
torch.distributed.new_group([0])
torch.nn.parallel.DistributedDataParallel(model)
torch.distributed.broadcast(x)
torch.distributed.barrier()
torch.sparse_coo_tensor(torch.tensor([[0, 1]]), torch.ones(3), (3,))
x.to_sparse().view(3, 2)
x.to_sparse().numpy()
torch.sparse.mm(x.to_sparse(), x)
torch.sparse.softmax(x, dim=0)
x.indices()
x.to_sparse() + torch.ones(4)
torch.multiprocessing.set_sharing_strategy("nope")
torch.masked.masked_tensor(x, torch.ones(2))
torch.masked.masked_tensor(x, x)
torch.masked.sum(x, 5)
torch.masked.as_masked_tensor(3)
torch.masked.masked_tensor(x, x > 0) @ x
torch.utils.data.DataLoader([1, 2], num_workers=-1)
torch.utils.data.DataLoader([1, 2], batch_size=0)
next(iter(torch.utils.data.DataLoader([1, 2], sampler=[5])))
list(torch.utils.data.DataLoader([torch.ones(2), torch.ones(3)], batch_size=2))
torch.utils.data.DistributedSampler([1, 2])
torch.utils.data.random_split([1, 2, 3], [1, 1])
nn.utils.rnn.pack_padded_sequence(torch.ones(2, 3), [3, 9])
torch.hash_tensor("a")
torch.lobpcg(x)
torch.manual_seed("a")
torch.set_default_dtype(torch.int64)
nn.LSTM(4, 5)(torch.ones(2, 3, 4), torch.zeros(1, 3, 5))
nn.GRU(4, 5)(torch.ones(2, 3, 4), torch.zeros(1, 2, 5))
nn.LSTMCell(4, 5)(torch.ones(3, 6))
nn.RNN(4, 5, nonlinearity="gelu")
list(torch.utils.data.DataLoader([{"a": 1}, {"b": 2}], batch_size=2))
list(torch.utils.data.DataLoader([(1, 2), (3,)], batch_size=2))
torch.utils.data.DataLoader([1, 2], shuffle=True, sampler=[0, 1])
optim.SGD(model.parameters(), lr=0.1, nesterov=True)
optim.SGD([w], lr=0.1).load_state_dict(optim.Adam(model.parameters()).state_dict())
optim.SGD([w], lr=0.1).add_param_group([w])
model.load_state_dict({k: v[:1] for k, v in model.state_dict().items()})
model.load_state_dict({**model.state_dict(), "extra": x})
model[0].weight = x
nn.ModuleList([1])
nn.Sequential(nn.Linear(3, 4), torch.relu)
nn.Parameter(labels)
nn.Parameter([1.0])
nn.utils.clip_grad_norm_(model.parameters(), "a")
nn.utils.rnn.pad_sequence([1, 2])
x.to("gpu")
torch.device("cpux")
torch.device("cuda:-1")
torch.device(3.5)
torch.ones(2, device="cuda")
x.shape[5]
torch.foo
nn.Foo
torch.ops.aten.foo
torch.set_num_threads(0)
torch.compile(3)
torch.nonzero(x, as_tuple=3)
x.numpy(force="a")
torch.distributions.Normal(torch.zeros(2), torch.ones(3))
torch.distributions.kl_divergence(torch.distributions.Normal(0.0, 1.0), torch.distributions.Bernoulli(0.5))
torch.fft.fft(x, n=0)
torch.fft.rfft(torch.ones(3, dtype=torch.complex64))
torch.linalg.solve(torch.zeros(2, 2), torch.ones(2))
torch.linalg.eigh(x)
x[1.5]
x[torch.tensor([True, False, True])]
x[::-1]
x[3] = 1
x[0] = torch.ones(2)
x.scatter_(0, torch.tensor([[9]]), 1.0)
w[0] = 5.0
w *= 2
w.grad = torch.ones(4)
y = (w ** 2).sum(); g = torch.autograd.grad(y, w)[0]; g.sum().backward()
torch.autograd.grad((w * 2).sum(), [w, x])
torch.func.vmap(lambda a, b: a + b)(x, torch.ones(5))
torch.utils.checkpoint.checkpoint(lambda v: v.view(7), w, use_reentrant=False)
nn.Linear(3, 4)(x.double())
nn.Conv2d(1, 1, 1)(torch.ones(1, 1, 2, 2, dtype=torch.float64))
labels.add_(0.5)
F.cross_entropy(model(x)[0], labels)
F.gelu(x, approximate="foo")
F.grid_sample(torch.ones(1, 1, 2, 2), torch.ones(1, 2, 2, 3))
nn.MultiheadAttention(4, 2)(torch.ones(3, 2, 5), torch.ones(3, 2, 4), torch.ones(3, 2, 4))
torch.einsum("ij->k", x)
[1, 2, 3][torch.tensor(1.0)]
""".strip().splitlines()


def outcome(torch: Any, mistake: str) -> tuple[str, str]:
    """The name of the type of the exception that the mistake raises, and its traceback."""
    program = {"torch": torch, "__name__": "program"}
    exec(compile(SETUP, "setup.py", "exec"), program)
    try:
        exec(compile(mistake, "program.py", "exec"), program)
    except Exception as error:
        return type(error).__name__, "".join(traceback.format_exception(error))
    raise AssertionError(f"no error: {mistake}")
