"""Masked tensors: the same text, gradients and errors as PyTorch's.

The comparison of operators covers the functions of `torch.masked`.
"""

import copy
import io
import pickle
import warnings

import pytest

torch = pytest.importorskip("torch")

import adjoint
import adjoint.masked

pytestmark = pytest.mark.filterwarnings("ignore")


def x(t):
    return t.arange(6.0).reshape(2, 3)


def m(t):
    return t.tensor([[True, False, True], [False, False, False]])


def mt(t, **options):
    return t.masked.masked_tensor(x(t), m(t), **options)


def outcome(t, program):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return str(program(t))
        except Exception as error:
            return type(error).__name__


def with_gradient(t):
    masked = mt(t, requires_grad=True)
    (masked * 2).sum().backward()
    return masked, masked.grad


def _through_a_file(t):
    file = io.BytesIO()
    t.save(mt(t), file)
    file.seek(0)
    return t.load(file, weights_only=False)


PROGRAMS = {
    "text": mt,
    "text with gradient": lambda t: mt(t, requires_grad=True),
    "integers": lambda t: t.masked.masked_tensor(t.arange(3), t.tensor([True, False, True])),
    "three dims": lambda t: t.masked.masked_tensor(t.ones(2, 2, 2), t.ones(2, 2, 2) > 0),
    "number": lambda t: t.masked.masked_tensor(t.tensor(3.0), t.tensor(False)),
    "as_masked_tensor": lambda t: t.masked.as_masked_tensor(x(t), m(t)),
    "is_masked_tensor": lambda t: (t.masked.is_masked_tensor(mt(t)), t.masked.is_masked_tensor(x(t))),
    "what it is made of": lambda t: (mt(t).get_data(), mt(t).get_mask(), mt(t).to_tensor(9.0)),
    "attributes": lambda t: (mt(t).dtype, mt(t).shape, mt(t).dim(), mt(t).is_leaf, mt(t).requires_grad),
    "arithmetic": lambda t: [mt(t) + mt(t), mt(t) * x(t), mt(t) / 2, 2 / mt(t), -mt(t), mt(t) ** 2, mt(t) > 1, mt(t) == mt(t)],
    "unary": lambda t: [mt(t).sin(), t.exp(mt(t)), mt(t).floor(), mt(t).clamp(0, 1), mt(t).round(), mt(t).to(t.float64)],
    "in place": lambda t: [mt(t).sin_(), mt(t).mul_(2)],
    "pickle": lambda t: pickle.loads(pickle.dumps(mt(t))),
    "pickle with gradient": lambda t: [pickle.loads(pickle.dumps(each)) for each in with_gradient(t)],
    "file": _through_a_file,
    "copy": lambda t: [copy.copy(each) for each in with_gradient(t)],
    "deep copy": lambda t: copy.deepcopy(with_gradient(t)[:1] * 2)[1].grad,
    "deep copy of a result": lambda t: copy.deepcopy(mt(t, requires_grad=True) * 2),
    "sums": lambda t: [mt(t).sum(), mt(t).sum(1), mt(t).sum(dim=1, keepdim=True), mt(t).mean(), mt(t).prod(), mt(t).std(1)],
    "extrema": lambda t: [mt(t).amax(), mt(t).amin(1), mt(t).argmax(), mt(t).argmin(1)],
    "softmax": lambda t: t.softmax(mt(t), 1),
    "mean of integers": lambda t: t.masked.mean(t.tensor([1, 2])),
    "mean in integers": lambda t: t.masked.mean(t.tensor([1.0, 2.0]), dtype=t.int64),
    "softmax of integers": lambda t: t.masked.softmax(t.tensor([1, 2]), 0, mask=t.tensor([True, False])),
    "softmax of integers in floats": lambda t: t.masked.log_softmax(t.tensor([1, 2]), 0, dtype=t.float32),
    "integers normalized": lambda t: t.masked.normalize(t.tensor([1, 2]), 2, 0),
    "views": lambda t: [mt(t).t(), mt(t).reshape(3, 2), mt(t)[0], mt(t)[:, 1], mt(t).unsqueeze(0)],
    "parts": lambda t: [mt(t).narrow(0, 0, 1), mt(t).split(1)],
    "joined": lambda t: [t.cat([mt(t), mt(t)]), t.stack([mt(t), mt(t)]), t.hstack([mt(t), mt(t)])],
    "where": lambda t: t.where(m(t), mt(t), t.masked.masked_tensor(x(t), ~m(t))),
    "copies": lambda t: [mt(t).clone(), mt(t).detach(), mt(t).contiguous()],
    "gradient": with_gradient,
    "other mask": lambda t: mt(t) + t.masked.masked_tensor(x(t), ~m(t)),
    "mask of numbers": lambda t: t.masked.masked_tensor(x(t), x(t)),
    "mask of another shape": lambda t: t.masked.masked_tensor(x(t), m(t)[0]),
    "no tensor": lambda t: t.masked.masked_tensor([1], [True]),
    "no support": lambda t: t.tril(mt(t)),
    "matmul": lambda t: mt(t) @ mt(t).t(),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_masked_tensors(name):
    import torch.masked

    assert outcome(adjoint, PROGRAMS[name]) == outcome(torch, PROGRAMS[name])


OF_BOOLS = "sum prod amax amin argmax argmin mean norm median logsumexp softmax log_softmax softmin logaddexp".split()


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("name", OF_BOOLS)
def test_reductions_of_bools(name, masked):
    outcomes = []
    for library in (torch, adjoint):
        data = library.tensor([[True, False], [True, True]])
        mask = data.clone() if masked else None
        function = getattr(library.masked, name)
        args = {"norm": (data, 2.0, 0), "logaddexp": (data, data)}.get(name, (data, 0))
        masks = {"input_mask": mask, "other_mask": mask} if name == "logaddexp" else {"mask": mask}
        try:
            outcomes.append(str(function(*args, **masks)))
        except Exception as error:
            outcomes.append((type(error).__name__, str(error)[:60]))
    assert outcomes[0] == outcomes[1]
