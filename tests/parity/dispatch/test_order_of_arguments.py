"""Functions of `torch` whose arguments have another order than in `torch.nn.functional`, and newer functions."""

import warnings

import numpy
import pytest

torch = pytest.importorskip("torch")

import adjoint


def tensor(t, *shape, seed=0):
    return t.tensor(numpy.random.default_rng(seed).normal(size=shape)).requires_grad_()


def with_gradients(t, result, *leaves):
    (result if isinstance(result, t.Tensor) else result[0]).sum().backward()
    return result, [leaf.grad for leaf in leaves]


def losses(t):
    a, b, c = (tensor(t, 4, 3, seed=seed) for seed in range(3))
    signs = t.tensor([1.0, -1.0, 1.0, -1.0])
    return [
        value
        for reduction in (0, 1, 2)
        for value in (
            t.cosine_embedding_loss(a, b, signs, 0.5, reduction),
            t.hinge_embedding_loss(a, a.detach().sign(), 1.5, reduction),
            t.kl_div(a, b.exp(), reduction),
            t.kl_div(a, b, reduction, log_target=True),
            t.margin_ranking_loss(a, b, c.detach().sign(), 0.2, reduction),
            t.poisson_nll_loss(a, b.exp().detach(), True, True, 1e-8, reduction),
            t.triplet_margin_loss(a, b, c, 1.0, 2.0, 1e-6, False, reduction),
        )
    ]


def norms(t):
    x, weight, bias = tensor(t, 2, 4, 3), tensor(t, 4), tensor(t, 4, seed=1)
    mean, var = t.zeros(4, dtype=t.float64), t.ones(4, dtype=t.float64)
    results = [
        t.native_layer_norm(x, (3,), None, None, 1e-5),
        t.native_group_norm(x, weight, bias, 2, 4, 3, 2, 1e-5),
        t.native_batch_norm(x, weight, bias, mean, var, True, 0.1, 1e-5),
        t.native_batch_norm(x, weight, bias, mean, var, False, 0.1, 1e-5),
        t.instance_norm(x, weight, bias, None, None, True, 0.1, 1e-5, False),
        t.batch_norm(x, weight, bias, mean, var, True, 0.1, 1e-5, False),
        (mean, var),
    ]
    return results, with_gradients(t, results[1], x, weight, bias)[1]


def cells(t):
    x, h, c = tensor(t, 2, 3), tensor(t, 2, 4), tensor(t, 2, 4, seed=1)
    results = []
    for name, gates in (("rnn_tanh_cell", 1), ("rnn_relu_cell", 1), ("gru_cell", 3), ("lstm_cell", 4)):
        w, u, b = tensor(t, 4 * gates, 3), tensor(t, 4 * gates, 4), tensor(t, 4 * gates)
        results.append(getattr(t, name)(x, (h, c) if gates == 4 else h, w, u, b, b))
    return results


def others(t):
    x = tensor(t, 5, 2, 3)
    return [
        with_gradients(t, t.conv_tbc(x, tensor(t, 2, 3, 4), tensor(t, 4), 1), x),
        t.native_channel_shuffle(tensor(t, 1, 4, 2), 2),
        t.hash_tensor(t.arange(6).reshape(2, 3), 1),
        t.hash_tensor(t.tensor([1.5, -2.0])),
    ]


def linear_cross_entropy(t):
    x, weight, bias = tensor(t, 4, 3), tensor(t, 5, 3), tensor(t, 5)
    target = t.tensor([0, 4, 2, -100])
    function = t.nn.functional.linear_cross_entropy
    results = [
        function(x, weight, target, linear_bias=bias, reduction=reduction, label_smoothing=0.1)
        for reduction in ("none", "mean", "sum")
    ]
    results.append(function(x, tensor(t, 5, 2, 3), t.tensor([[0, 4], [1, 1], [2, 2], [3, 0]])))
    return results, with_gradients(t, results[1], x, weight, bias)[1]


def lobpcg(t):
    a = tensor(t, 20, 20).detach()
    a = a @ a.mT
    b = t.eye(20, dtype=t.float64) * 2
    found = [t.lobpcg(a, 3), t.lobpcg(a, 2, largest=False), t.lobpcg(a, 2, b), t.lobpcg(a.to_sparse(), 1)]
    residual = t.dist(a @ found[0][1], found[0][1] * found[0][0])  # the iteration ends when the norm is small enough
    return [values for values, _ in found] + [residual < 1e-5]


@pytest.mark.parametrize("program", [losses, norms, cells, others, linear_cross_entropy, lobpcg])
def test_functions(program):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(program(adjoint), program(torch))


def check(actual, expected):
    if isinstance(expected, (list, tuple)):
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            check(one, other)
        return
    assert str(actual.dtype) == str(expected.dtype)
    numpy.testing.assert_allclose(actual.detach().numpy(), expected.detach().numpy(), 1e-6, 1e-6)
