"""Per-sample gradients."""

import pytest

import adjoint as torch
from adjoint.nn.utils._per_sample_grad import call_for_per_sample_grads

nn = torch.nn


def sequential_fallback(module, *batch, dim=0):
    """Return the gradients of each parameter, computed sample by sample."""
    grads = []
    for i in range(batch[0].size(dim)):
        result = module(*(each.narrow(dim, i, 1) for each in batch))
        result = result[0] if isinstance(result, tuple) else result
        grads.append(torch.autograd.grad(result.sin().sum(), list(module.parameters())))
    return [torch.stack(samples) for samples in zip(*grads, strict=True)]


@pytest.mark.parametrize(
    ("make", "shapes", "batch_first"),
    [
        (lambda: nn.Linear(2, 3), [(4, 2)], True),
        (lambda: nn.Linear(2, 3), [(5, 4, 2)], False),
        (
            lambda: nn.Sequential(nn.Conv1d(2, 3, 2), nn.GroupNorm(3, 3), nn.Flatten(), nn.Linear(12, 1)),
            [(4, 2, 5)],
            True,
        ),
        (lambda: nn.LSTM(2, 3), [(5, 4, 2)], False),
        (lambda: nn.MultiheadAttention(2, 1, batch_first=True), [(4, 3, 2)] * 3, True),
        (lambda: nn.Bilinear(2, 3, 2), [(4, 2), (4, 3)], True),
    ],
)
@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_they_are_those_of_samples_one_by_one(make, shapes, batch_first, reduction):
    torch.manual_seed(0)
    module, batch = make().double(), [torch.randn(shape, dtype=torch.float64) for shape in shapes]
    dim = 0 if batch_first else 1
    expected = sequential_fallback(module, *batch, dim=dim)
    result = call_for_per_sample_grads(module, loss_reduction=reduction, batch_first=batch_first)(*batch)
    result = result[0] if isinstance(result, tuple) else result
    assert result.shape == (module(*batch)[0] if isinstance(module(*batch), tuple) else module(*batch)).shape
    loss = result.sin().sum()
    (loss if reduction == "sum" else loss / batch[0].size(dim)).backward()
    for param, grad in zip(module.parameters(), expected, strict=True):
        assert param.grad is None
        torch.testing.assert_close(param.grad_sample, grad)


def test_frozen_parameters_and_inputs():
    layer, x = nn.Linear(2, 3), torch.ones(4, 2, requires_grad=True)
    layer.bias.requires_grad_(False)
    call_for_per_sample_grads(layer)(input=x).sum().backward()
    assert layer.weight.grad_sample.shape == (4, 3, 2) and not hasattr(layer.bias, "grad_sample")
    torch.testing.assert_close(x.grad, layer.weight.sum(0).expand(4, 2))


def test_two_calls_before_a_backward_add_up_and_after_it_are_refused():
    layer, x = nn.Linear(2, 3), torch.ones(4, 2)
    call = call_for_per_sample_grads(layer)
    (call(x) + call(x)).sum().backward()
    assert (layer.weight.grad_sample == 2).all()
    with pytest.raises(RuntimeError, match="will be incorrect for multiple calls without clearing gradients"):
        call_for_per_sample_grads(layer)


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda: call_for_per_sample_grads(3), "Module passed must be nn.Module, got int"),
        (
            lambda: call_for_per_sample_grads(nn.Linear(2, 3), batch_size="x"),
            "Batch size passed must be None or an integer",
        ),
        (lambda: call_for_per_sample_grads(nn.Linear(2, 3), batch_size=0), "Batch size must be positive, got 0"),
        (
            lambda: call_for_per_sample_grads(nn.Linear(2, 3), loss_reduction="no"),
            "Expected loss_reduction argument to be sum or",
        ),
        (lambda: call_for_per_sample_grads(nn.Linear(2, 3))(), "Unable to find a tensor in the passed args and kwargs"),
        (lambda: call_for_per_sample_grads(nn.Linear(2, 3))(torch.ones(2)), "Input does not have a batch dimension"),
        (
            lambda: call_for_per_sample_grads(nn.Linear(2, 3), batch_size=3)(torch.ones(4, 2)),
            "got input batch size of 4 with",
        ),
        (
            lambda: call_for_per_sample_grads(nn.Bilinear(2, 2, 3))(torch.ones(4, 2), torch.ones(3, 2)),
            "found at least one input with batch size 4 and one with batch size 3",
        ),
    ],
)
def test_wrong_arguments(use, words):
    with pytest.raises(RuntimeError) as caught:
        use()
    assert words in str(caught.value)


def test_padding_of_each_example_of_a_batch():
    attention = torch.nn.MultiheadAttention(4, 2, batch_first=True)
    query, padding = torch.rand(2, 3, 4), torch.tensor([[False, False, True], [False, True, True]])
    found = torch.func.vmap(lambda q, k: attention(q, q, q, key_padding_mask=k)[0])(query, padding)
    torch.testing.assert_close(found, attention(query, query, query, key_padding_mask=padding)[0])
