"""Averaged models, their learning rates and batch statistics, and optimizers of matrices, compared with PyTorch."""

import pytest

torch = pytest.importorskip("torch")

from tests.parity.behaviour import assert_same

SETUP = """
swa = optim.swa_utils
def model(norm=False):
    torch.manual_seed(0)
    layers = [nn.Linear(3, 4)] + [nn.BatchNorm1d(4)] * norm + [nn.Tanh(), nn.Linear(4, 2)]
    return nn.Sequential(*layers).double()
def averaged(norm=False, **options):
    m = model(norm)
    a, o = swa.AveragedModel(m, **options), optim.SGD(m.parameters(), lr=0.3)
    for i in range(4):
        o.zero_grad()
        m(tensor(5, 3, seed=i)).square().sum().backward()
        o.step()
        a.update_parameters(m)
    return [dict(a.state_dict()), a(tensor(5, 3)).detach()]
def rates(swa_lr, epochs=8, **options):
    o = optim.SGD([{'params': [nn.Parameter(torch.ones(1))]}, {'params': [nn.Parameter(torch.ones(1))], 'lr': 0.5}], lr=0.1)
    s = swa.SWALR(o, swa_lr, **options)
    found = []
    for _ in range(epochs):
        o.step()
        s.step()
        found.append(list(s.get_last_lr()))
    return [found, sorted(s.state_dict().items())]
def bn(batches):
    m = model(True)
    swa.update_bn(batches, m)
    return [dict(m.state_dict()), m[1].momentum, m.training]
def steps(kind, *shapes, dtype=torch.float64, **options):
    p = [nn.Parameter(tensor(*shape, seed=i).to(dtype)) for i, shape in enumerate(shapes)]
    o = kind(p, **options)
    for i in range(5):
        o.zero_grad()
        sum((torch.sin(each * (i + 1)) + 1).square().sum() for each in p).backward()
        o.step()
    return [[each.detach() for each in p], [sorted(o.state[each].items()) for each in p], repr(o)]
P = [nn.Parameter(torch.ones(2, 3))]
"""

LINES = """
averaged()
averaged(norm=True)
averaged(norm=True, use_buffers=True)
averaged(avg_fn=lambda a, b, n: 0.25 * a + 0.75 * b)
averaged(multi_avg_fn=swa.get_ema_multi_avg_fn(0.9))
averaged(avg_fn=swa.get_ema_avg_fn(0.9))
averaged(avg_fn=swa.get_swa_avg_fn())
swa.AveragedModel(model())
swa.AveragedModel(model(), avg_fn=1, multi_avg_fn=2)
swa.get_ema_multi_avg_fn(2)
swa.get_ema_avg_fn(-1)
rates(0.05)
rates([0.05, 0.2], anneal_epochs=4)
rates(0.05, anneal_epochs=4, anneal_strategy='linear')
rates(0.05, anneal_epochs=0)
rates([0.1])
rates(0.05, anneal_strategy='x')
rates(0.05, anneal_epochs=-1)
bn([tensor(5, 3, seed=i) for i in range(3)])
bn([[tensor(5, 3, seed=i), i] for i in range(3)])
steps(optim.Adafactor, (2, 3), (4,), (2, 3, 4), ())
steps(optim.Adafactor, (2, 3), (4,), lr=0.1, weight_decay=0.1, eps=(1e-3, 1e-2), d=2.0, maximize=True)
steps(optim.Adafactor, (2, 3), lr=torch.tensor(0.1), dtype=torch.float32)
optim.Adafactor(P, lr=-1)
optim.Adafactor(P, beta2_decay=1)
optim.Adafactor(P, eps=(-1, 1))
optim.Adafactor(P, eps=(1, -1))
optim.Adafactor(P, d=0)
optim.Adafactor(P, weight_decay=-1)
optim.Adafactor(P, lr=torch.ones(2))
optim.Muon(P)
optim.Muon([nn.Parameter(torch.ones(3))])
optim.Muon(P, lr=-1)
optim.Muon(P, momentum=-1)
optim.Muon(P, weight_decay=-1)
optim.Muon(P, adjust_lr_fn='x')
optim.Muon(P, lr=torch.ones(2))
[each.abs().max() < 2 for each in steps(optim.Muon, (3, 3))[0]]
"""


@pytest.mark.parametrize("line", LINES.strip().split("\n"))
def test_as_pytorch(line):
    assert_same(SETUP + line)


@pytest.mark.parametrize("shape", [(3, 3), (5, 2), (2, 5)])
@pytest.mark.parametrize("options", [{}, {"nesterov": False, "adjust_lr_fn": "match_rms_adamw", "lr": 0.1}])
def test_muon(shape, options):
    """Products in bfloat16 are summed in another order, so the last digit may differ."""
    import adjoint

    found = []
    for library in (adjoint, torch):
        param = library.nn.Parameter(library.linspace(-1, 1, shape[0] * shape[1], dtype=library.float64).reshape(shape))
        optimizer = library.optim.Muon([param], **options)
        for i in range(4):
            optimizer.zero_grad()
            (library.sin(param * (i + 1)) + 1).square().sum().backward()
            optimizer.step()
        found.append(param.detach().numpy())
    assert abs(found[0] - found[1]).max() <= 0.01 * options.get("lr", 1e-3) * 4
