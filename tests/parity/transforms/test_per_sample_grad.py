"""Per-sample gradients compared with PyTorch."""

import pytest

torch = pytest.importorskip("torch")

from torch.nn.utils._per_sample_grad import call_for_per_sample_grads as theirs

import adjoint
from adjoint.nn.utils._per_sample_grad import call_for_per_sample_grads as ours


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda nn: nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)), (4, 2)),
        (lambda nn: nn.Conv1d(2, 3, 2), (4, 2, 5)),
        (lambda nn: nn.GroupNorm(1, 2), (4, 2, 3)),
        (lambda nn: nn.RNN(2, 3, batch_first=True), (4, 5, 2)),
    ],
)
def test_gradients(make, shape, reduction):
    found = []
    for library, call in ((torch, theirs), (adjoint, ours)):
        library.manual_seed(0)
        module, x = make(library.nn), library.randn(shape)
        result = call(module, loss_reduction=reduction)(x)
        result = result[0] if isinstance(result, tuple) else result
        getattr(result.sin(), reduction)().backward()
        found.append([param.grad_sample.numpy() for param in module.parameters()])
    for theirs_, ours_ in zip(*found, strict=True):
        assert ours_ == pytest.approx(theirs_, abs=1e-6)
