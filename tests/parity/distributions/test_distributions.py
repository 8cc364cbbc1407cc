"""Distributions, transforms, constraints and divergences behave as in PyTorch."""

import pytest

torch = pytest.importorskip("torch")

from tests.parity.behaviour import assert_same
from tests.parity.distributions.lines import (
    CONSTRAINTS,
    DISTRIBUTIONS,
    ERRORS,
    PAIRS,
    REGISTRY,
    SETUP,
    SEVERAL,
    TRANSFORM_LINES,
    TRANSFORMS,
    VALUES,
)


@pytest.fixture(autouse=True)
def validating():
    """Let PyTorch check arguments, which its compiler turns off for the rest of the process."""
    torch.distributions.Distribution.set_default_validate_args(__debug__)


# For these distributions, PyTorch approximates the gradients of gamma samples with errors of about 1e-3.
# tests/distributions/test_implicit_gradients.py compares adjoint's gradients with exact values.
APPROXIMATE_GRADIENTS = {"Beta", "Chi2", "Dirichlet", "FisherSnedecor", "Gamma", "InverseGamma", "StudentT", "Wishart"}

# PyTorch's results for these distributions are wrong or inexact. tests/distributions compares adjoint's results with exact
# values.
MISTAKEN = {
    ("Kumaraswamy", "moments"): "the mode is nan",
    **{
        (
            "LKJCholesky",
            aspect,
        ): "in more than two dimensions, the distribution of correlations does not agree with the density"
        for aspect in ("samples", "expanded", "single")
    },
    ("VonMises", "moments"): "the Bessel functions in the variance have 7 digits",
    ("Wishart", "log_prob_gradients"): "the unused triangle of `scale_tril` has a gradient",
    **{("Wishart", name): "every sample counts as singular, and warns" for name in ("samples", "expanded", "single")},
    ("Weibull", "moments"): "the mode of a decreasing density is wrong",
    ("Weibull", "moments_gradients"): "all moments share a reciprocal, whose graph the first gradient frees",
}

ASPECTS = {
    "printed": "repr(d), d.batch_shape, d.event_shape, d.has_rsample, d.has_enumerate_support, asked(lambda: d.support)",
    "moments": "[asked(lambda: getattr(d, name)) for name in ('mean', 'mode', 'variance', 'stddev')]",
    "moments_gradients": "[asked(lambda: gradients(d, p, getattr(d, name))) for name in ('mean', 'variance', 'stddev')]",
    "samples": "seeded(d.sample), seeded(d.sample, (3,)), seeded(d.sample, (20, 2))",
    "moving_samples": "asked(lambda: moving(d, p))",
    "log_prob": "d.log_prob(v)",
    "log_prob_gradients": "gradients(d, [*p, v.requires_grad_()] if v.is_floating_point() else p, d.log_prob(v))",
    "entropy": "asked(lambda: d.entropy()), asked(lambda: d.perplexity())",
    "entropy_gradients": "asked(lambda: gradients(d, p, d.entropy()))",
    "cdf": "asked(lambda: d.cdf(v)), asked(lambda: gradients(d, [v.requires_grad_()], d.cdf(v)))",
    "icdf": "asked(lambda: d.icdf(torch.tensor([[0.1], [0.7]], dtype=torch.float64)))",
    "enumerated": "asked(lambda: d.enumerate_support()), asked(lambda: d.enumerate_support(False))",
    "expanded": "expanded(d, v)",
    "pickled": "repr(pickle.loads(pickle.dumps(d))), pickle.loads(pickle.dumps(d)).log_prob(v)",
    "single": "seeded(single.sample, (4,)), single.log_prob(v.float() if v.is_floating_point() else v).dtype",
}


def run(lines):
    assert_same(f"{SETUP}\n{lines}")


@pytest.mark.parametrize("aspect", ASPECTS)
@pytest.mark.parametrize("line", DISTRIBUTIONS)
def test_distributions(line, aspect):
    name = line.partition("(")[0]
    if (name, aspect) in MISTAKEN:
        pytest.skip(f"in PyTorch, {MISTAKEN[name, aspect]}")
    if aspect == "moving_samples" and name in APPROXIMATE_GRADIENTS:
        pytest.skip("PyTorch's gradients are approximate")
    run(
        f"d, p = make({line!r})\nv = value({VALUES[line]!r})\nsingle = make({line!r}, torch.float32)[0]\n{ASPECTS[aspect]}"
    )


@pytest.mark.parametrize("pair", PAIRS)
def test_divergences(pair):
    run(f"p, q = {pair}\nasked(lambda: D.kl_divergence(p, q))")


@pytest.mark.parametrize("pair", PAIRS)
def test_gradients_of_divergences(pair):
    run(f"p, q = {pair}\nasked(lambda: torch.autograd.grad(D.kl_divergence(p, q).sum(), LEAVES, allow_unused=True))")


@pytest.mark.parametrize("line", [*ERRORS, *SEVERAL, *TRANSFORM_LINES, *CONSTRAINTS, *REGISTRY])
def test_lines(line):
    run(line)


@pytest.mark.parametrize("line", TRANSFORMS)
def test_transforms(line):
    transform, _, points = line.partition(" at ")
    run(f"t, x = {transform}, {points}\ntransformed(t, x)")


def test_all_names():
    run("sorted(D.__all__)")


def test_all_divergences():
    run("sorted((p.__name__, q.__name__) for p, q in D.kl._KL_REGISTRY)")
