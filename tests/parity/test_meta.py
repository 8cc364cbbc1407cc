"""The device `meta` and default devices, compared with PyTorch: text and errors."""

import copy
import io
import pickle
import warnings

import numpy
import pytest

torch = pytest.importorskip("torch")

import adjoint

LIBRARIES = (torch, adjoint)


def meta(m, *shape, **names):
    return m.empty(*shape, device="meta", **names)


def mask(m, *shape):
    return meta(m, *shape, dtype=m.bool)


PROGRAMS = [
    lambda m: m.ones(2, 3).to("meta"),
    lambda m: m.ones(2, 3).to("meta", m.float64),
    lambda m: (m.ones(2, 3).t().to("meta").stride(), m.ones(2).to(meta(m, 1))),
    lambda m: m.ones(2, requires_grad=True).to("meta"),
    lambda m: (meta(m, 2, 3) * meta(m, 3), meta(m, 2, 3) @ meta(m, 3, 4), meta(m, 2) + m.tensor(2.0)),
    lambda m: (meta(m, 2).add_(1).mul_(meta(m, 2)).fill_(3).zero_(), meta(m, 2).uniform_(0, 1).normal_()),
    lambda m: m.nn.init.kaiming_uniform_(meta(m, 3, 4)),
    lambda m: meta(m, 2, 3).view(3, 2).t()[0].unsqueeze(0).expand(4, 2),
    lambda m: (meta(m, 5, 3)[m.tensor([0, 1])], meta(m, 5, 3).__setitem__(0, 1.0)),
    lambda m: (meta(m, 2, 3).sum(), meta(m, 2, 3).max(1), meta(m, 2, 3).argmax(0), meta(m, 2) > 0),
    lambda m: (m.cat([meta(m, 2, 3), meta(m, 1, 3)]), m.stack([meta(m, 2)] * 2), m.einsum("ij,jk", meta(m, 2, 3), meta(m, 3, 4))),
    lambda m: (m.zeros_like(meta(m, 2)), m.rand_like(meta(m, 2)), m.empty_like(meta(m, 2), device="cpu").device),
    lambda m: (meta(m, 2).new_ones(3), m.full_like(meta(m, 2), 3.0), meta(m, 2).new_tensor([1])),
    lambda m: meta(m, 2).copy_(m.ones(2)),
    lambda m: m.nn.Linear(3, 4, device="meta")(meta(m, 5, 3)),
    lambda m: m.nn.Conv2d(3, 4, 3, device="meta")(meta(m, 1, 3, 8, 8)),
    lambda m: m.nn.LSTM(3, 4, device="meta").requires_grad_(False)(meta(m, 2, 1, 3)),
    lambda m: m.nn.MultiheadAttention(4, 2, device="meta")(*[meta(m, 3, 1, 4)] * 3),
    lambda m: (m.nn.BatchNorm1d(4, device="meta")(meta(m, 3, 4)), m.nn.functional.dropout(meta(m, 3))),
    lambda m: m.nn.functional.cross_entropy(meta(m, 3, 4), meta(m, 3, dtype=m.long)),
    lambda m: m.nn.Embedding(5, 3, device="meta")(meta(m, 2, dtype=m.long)),
    lambda m: (m.linalg.inv(meta(m, 3, 3)), m.linalg.cholesky(meta(m, 2, 3, 3)), m.linalg.svd(meta(m, 3, 4))),
    lambda m: (meta(m, 2, requires_grad=True).detach(), meta(m, 2).data, meta(m, 2).clone(), m.nn.Parameter(meta(m, 2))),
    lambda m: (meta(m, 2, 3).numel(), meta(m, 2).nbytes, meta(m, 2).is_cpu, meta(m, 2).is_meta, meta(m, 2).data_ptr()),
    lambda m: [meta(m, 2, 3)[i] for i in range(2)] + list(meta(m, 2, 3)),
    lambda m: (m.add(meta(m, 2), meta(m, 2), out=meta(m, 2)), m.add(meta(m, 2), meta(m, 2), out=meta(m, 0))),
    lambda m: (m.tensor([1.0], device="meta"), m.arange(3, device="meta"), meta(m, 0), meta(m, ()), meta(m, 2, dtype=m.bool)),
    lambda m: (meta(m, 2).double(), meta(m, 2).half(), meta(m, 2).to(m.int32), meta(m, 2).to("meta")),
    lambda m: (m.manual_seed(0) and None, m.randn(3, device="meta"), m.randint(5, (2,), device="meta"), m.rand(1)),
    lambda m: m.vmap(lambda x: x * 2)(meta(m, 3, 2)),
    lambda m: m.func.grad(lambda x: (x * x).sum())(meta(m, 3)),
    lambda m: m.nn.Linear(2, 3, device="meta").to_empty(device="cpu").weight.device,
    lambda m: copy.deepcopy(m.nn.Linear(2, 3, device="meta")).weight,
    lambda m: pickle.loads(pickle.dumps(meta(m, 2, 3).t())).stride(),
    lambda m: meta(m, 2) == meta(m, 2),
    lambda m: [f(meta(m, 2, 2, dtype=d)) for f in (m.acos, m.exp, m.erf, m.sigmoid) for d in (m.int64, m.bool, m.uint8)],
    lambda m: (meta(m, 2, dtype=m.int64) / meta(m, 2, dtype=m.int64), meta(m, 2, dtype=m.int32).double()),
    lambda m: [f(meta(m, 2, 3, dtype=m.int64), meta(m, 3, dtype=m.int64)) for f in (m.remainder, m.fmod, m.floor_divide)],
    lambda m: (m.isclose(meta(m, 2, 3), meta(m, 3)), m.quantile(meta(m, 2, 3), 0.5), m.quantile(meta(m, 2, 3), 0.5, dim=1)),
    lambda m: m.index_put(meta(m, 2, 3), (meta(m, 2, dtype=m.int64),), meta(m, 3)),
    lambda m: m.take_along_dim(meta(m, 2, 3), meta(m, 1, 3, dtype=m.int64), 0),
    lambda m: m.linalg.lu_solve(meta(m, 3, 3), meta(m, 3, dtype=m.int32), meta(m, 3, 2)).shape,
    lambda m: m.linalg.solve(meta(m, 3, 3), meta(m, 4, 2)),
    lambda m: (m.empty_strided((2, 3), (1, 4), device="meta").stride(), meta(m, 2).new_empty_strided((2, 3), (4, 8)).stride()),
    lambda m: (m.unsafe_chunk(meta(m, 2, 3, 4), 2, 2)[0].stride(), m.mode(meta(m, 2, 3, 4), 0).values.stride()),
    lambda m: [meta(m, 3, 4).__setitem__(key, 0.5) for key in (mask(m, 3, 4), mask(m, 3), (0, mask(m, 4)), (mask(m, 3), 1))],
    lambda m: meta(m, 3, 4, requires_grad=True).clone().index_put_((mask(m, 3, 4),), meta(m, 1)),
    lambda m: [meta(m, 3, 4).index_put((mask(m, 3),), meta(m, *sizes)) for sizes in ((2, 4), (4,), (1,))],
    lambda m: m.autograd.grad(m.ones(2, requires_grad=True).sum(), meta(m, 3, requires_grad=True), materialize_grads=True),
    # functions that need elements
    lambda m: meta(m, 2) + m.ones(2),
    lambda m: m.ones(2) * meta(m, 2),
    lambda m: m.ones(2) * meta(m, ()),
    lambda m: meta(m, 2).item(),
    lambda m: meta(m, 1).item(),
    lambda m: float(meta(m, ())),
    lambda m: bool(meta(m, ())),
    lambda m: meta(m, 2).tolist(),
    lambda m: meta(m, 2).numpy(),
    lambda m: meta(m, 2).cpu(),
    lambda m: meta(m, 2).to("cpu"),
    lambda m: m.ones(2).copy_(meta(m, 2)),
    lambda m: m.nn.Linear(2, 3, device="meta").to("cpu"),
]  # fmt: skip


def outcome(program, library):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = repr(program(library))
        except Exception as error:
            result = f"{type(error).__name__}: {error}"
    return result, [str(warning.message) for warning in caught]


@pytest.mark.parametrize("index", range(len(PROGRAMS)))
def test_tensors_on_meta(index):
    assert outcome(PROGRAMS[index], adjoint) == outcome(PROGRAMS[index], torch)


def gradients(m):
    layer, w = m.nn.Linear(3, 4, device="meta"), meta(m, 3, requires_grad=True)
    for _ in range(2):
        layer(meta(m, 5, 3)).sum().backward()
    (grad,) = m.autograd.grad((w * w).exp().sum(), w, create_graph=True)
    return layer.weight.grad, layer.bias.grad, grad.shape, m.autograd.grad(grad.sum(), w)


def unread_model(m):
    net = m.nn.Sequential(m.nn.Linear(2, 3), m.nn.ReLU(), m.nn.Linear(3, 1))
    base = copy.deepcopy(net).to("meta")
    result = m.func.functional_call(base, dict(net.named_parameters()), (m.ones(1, 2),))
    return [p.device for p in base.parameters()], base[0].weight.requires_grad, result.shape


def ensemble(m):
    nets = [m.nn.Linear(2, 3) for _ in range(4)]
    params, buffers = m.func.stack_module_state(nets)
    base = copy.deepcopy(nets[0]).to("meta")
    results = m.vmap(lambda p, b, x: m.func.functional_call(base, (p, b), (x,)), (0, 0, None))(
        params, buffers, m.ones(5, 2)
    )
    return [m.allclose(result, net(m.ones(5, 2))) for result, net in zip(results, nets, strict=True)]


def state_dicts(m):
    layer, full = m.nn.Linear(3, 4, device="meta"), m.nn.Linear(3, 4)
    kept = layer.load_state_dict(full.state_dict()), layer.weight.device
    return kept, layer.load_state_dict(full.state_dict(), assign=True), layer.weight.device


@pytest.mark.parametrize("program", [gradients, unread_model, ensemble, state_dicts])
def test_programs(program):
    assert outcome(program, adjoint) == outcome(program, torch)


@pytest.mark.parametrize("wrote", LIBRARIES)
@pytest.mark.parametrize("read", LIBRARIES)
def test_files(wrote, read):
    file = io.BytesIO()
    wrote.save({"a": meta(wrote, 2, 3).t(), "p": wrote.nn.Parameter(meta(wrote, 2))}, file)
    loaded = read.load(io.BytesIO(file.getvalue()))
    assert (loaded["a"].is_meta, loaded["a"].stride(), loaded["p"].requires_grad) == (True, (1, 3), True)


def makers(m, plain):
    array = numpy.ones(2)
    return [
        m.ones(2), m.tensor([1.0]), m.as_tensor([1.0]), m.as_tensor(plain), m.arange(3), m.linspace(0, 1, 3), m.eye(2),
        m.full((2,), 1.0), m.randn(2), m.randperm(3), m.empty_strided((2,), (1,)), m.scalar_tensor(1.0), m.tril_indices(2, 2),
        m.hann_window(3), m.nn.Linear(2, 3).weight, m.ones(2, device="cpu"), m.zeros_like(plain), plain.new_ones(2),
        m.from_numpy(array), m.Tensor([1.0]), m.Tensor(2, 3), m.normal(0.0, 1.0, (2,)), plain + 1,
    ]  # fmt: skip


def placed(m):
    plain = m.ones(2)
    with m.device("meta") as place:
        within = [made.device.type for made in makers(m, plain)], m.get_default_device()
        with m.device("cpu"):
            inner = m.ones(1).device
    m.set_default_device("meta")
    try:
        told = m.ones(2), m.get_default_device()
        with m.device("cpu"):
            told += (m.ones(1).device,)
    finally:
        m.set_default_device(None)
    return place, within, inner, told, m.ones(1).device, m.get_default_device()


def test_where_new_tensors_are_made():
    assert outcome(placed, adjoint) == outcome(placed, torch)
