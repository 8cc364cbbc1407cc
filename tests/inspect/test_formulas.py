"""Derivatives in the notation of a textbook."""

import pytest

import adjoint as torch
from adjoint.dispatch import registry
from adjoint.dispatch.declaration import OPERATORS
from adjoint.inspect.formulas import written
from adjoint.inspect.reading import source_of
from adjoint.inspect.snapshot import snapshot

functional = torch.nn.functional


def formulas(tensor, params=None):
    picture = snapshot([tensor], params)
    return picture.nodes[-1].derivative


def leaf(*shape):
    return torch.ones(*shape, requires_grad=True)


CASES = {
    "mul": (lambda x, y: x * y, {"self": "grad · other", "other": "grad · self"}),
    "div": (lambda x, y: x / y, {"self": "grad / other", "other": "−grad · self / other / other"}),
    "sub": (lambda x, y: x - y, {"self": "grad", "other": "−grad"}),
    "matrix product": (lambda x, y: x @ y, {"self": "grad @ mat2ᵀ", "mat2": "selfᵀ @ grad"}),
    "sin": (lambda x, y: x.sin(), {"self": "grad · cos(self)"}),
    "exp": (lambda x, y: x.exp(), {"self": "grad · result"}),
    "log": (lambda x, y: x.log(), {"self": "grad / self"}),
    "square": (lambda x, y: x**2, {"self": "grad · 2 · self"}),
    "cube": (lambda x, y: x**3, {"self": "grad · 3 · self²"}),
    "tanh": (lambda x, y: x.tanh(), {"self": "grad · (1 − result²)"}),
    "sigmoid": (lambda x, y: x.sigmoid(), {"self": "grad · result · (1 − result)"}),
    "relu": (lambda x, y: x.relu(), {"self": "grad · [result > 0]"}),
    "softmax": (lambda x, y: x.softmax(0), {"self": "result · (grad − Σ grad · result)"}),
    "transpose": (lambda x, y: x.t(), {"self": "gradᵀ"}),
    "mean": (lambda x, y: x.mean(), {"self": "grad / 9 to [3, 3]"}),
    "mask": (lambda x, y: x.masked_fill(y > 0, 0.0), {"self": "grad · [not mask]"}),
    "squared error": (
        lambda x, y: functional.mse_loss(x, y),
        {"self": "grad · 2 · (self − target) / n", "target": "grad · 2 · (target − self) / n"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_formula(name):
    function, wanted = CASES[name]
    assert formulas(function(leaf(3, 3), leaf(3, 3))) == wanted


@pytest.mark.parametrize(("reduction", "divided"), [("mean", " / n"), ("sum", ""), ("none", "")])
def test_only_a_mean_is_divided(reduction, divided):
    scores, target = leaf(3, 4), torch.zeros(3, dtype=torch.int64)
    loss = functional.nll_loss(scores, target, reduction=reduction)
    assert formulas(loss) == {"self": f"−grad · onehot(target){divided}"}
    weighted = functional.nll_loss(scores, target, torch.ones(4), reduction=reduction)
    assert formulas(weighted) == {"self": f"−grad · weight · onehot(target){divided}"}
    likelihood = functional.binary_cross_entropy(leaf(3) * 0.5, torch.ones(3), reduction=reduction)
    assert formulas(likelihood) == {"self": f"grad · (self − target) / (self · (1 − self)){divided}"}
    smooth = functional.smooth_l1_loss(leaf(3), torch.ones(3), reduction=reduction)
    assert formulas(smooth) == {"self": f"grad · clamp(self − target, −1, 1){divided}"}
    robust = functional.huber_loss(leaf(3), torch.ones(3), reduction=reduction, delta=2.0)
    assert formulas(robust) == {"self": f"grad · clamp(self − target, −2, 2){divided}"}


def test_in_a_small_graph_short_names_of_tensors_stand_for_parameters():
    w, x = leaf(3), torch.ones(3)
    assert formulas(w * x, {"w": w, "x": x}) == {"self": "grad · x"}


def test_tensors_without_gradient_have_no_formula():
    assert list(formulas(leaf(3) * torch.ones(3))) == ["self"]


def test_what_cannot_be_written_has_none():
    assert written("def grad_self(grad):\n    for _ in grad:\n        pass\n    return grad", {}, {}) is None
    assert written("lambda grad: grad", {}, {}) is None
    assert written("not python at all", {}, {}) is None


def test_most_operators_have_a_formula():
    registry.load_all()
    formulas_of = [formula for operator in OPERATORS.values() for formula in operator.formulas.values()]
    found = [written(source_of(formula), {}, {}) for formula in formulas_of]
    assert len(found) > 300
    assert sum(text is not None for text in found) / len(found) > 0.8


def test_conjugates_are_written_for_complex_numbers_alone():
    def formulas(dtype):
        z, u = (torch.ones(2, 2, dtype=dtype, requires_grad=True) for _ in range(2))
        return [snapshot([result]).nodes[-1].derivative["self"] for result in (z * u, z @ u, z.sin())]

    assert formulas(torch.float32) == ["grad · other", "grad @ mat2ᵀ", "grad · cos(self)"]
    assert formulas(torch.complex64) == ["grad · conj(other)", "grad @ mat2ᴴ", "grad · conj(cos(self))"]
