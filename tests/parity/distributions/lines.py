# ruff: noqa: E501  lines of code in strings
"""The lines that both libraries run for distributions: values, divergences, transforms, errors."""

SETUP = """
import pickle
import warnings
D = torch.distributions
C, X, U = D.constraints, D.transforms, D.utils
T = torch.tensor
LEAVES = []
def make(spec, dtype=torch.float64):
    leaves = []
    def P(*values):
        values = values[0] if len(values) == 1 else list(values)
        leaves.append(torch.tensor(values, dtype=dtype, requires_grad=True))
        return leaves[-1]
    made = eval(spec, {**{name: getattr(D, name) for name in D.__all__}, 'P': P, 'torch': torch})
    return made, leaves
def value(values):
    v = torch.tensor(values)
    return v.double() if v.is_floating_point() else v
def asked(f):
    try:
        return f()
    except (NotImplementedError, ValueError, RuntimeError) as error:
        return type(error).__name__, ' '.join(str(error).replace('adjoint.', 'torch.').split())
def seeded(f, *args):
    torch.manual_seed(7)
    return f(*args)
def gradients(d, p, result):
    weights = torch.linspace(1, 2, result.numel(), dtype=result.dtype).reshape(result.shape)
    return torch.autograd.grad((result * weights).sum(), p, allow_unused=True)
def moving(d, p):
    drawn = seeded(d.rsample, (3,))
    return drawn, gradients(d, p, drawn)
def expanded(d, v):
    new = d.expand((3, 2, *d.batch_shape))
    log_prob = new.log_prob(v)
    again = new.expand((4, *new.batch_shape))
    same = d.expand(d.batch_shape)
    return (repr(new), new.batch_shape, new.event_shape, seeded(new.sample), log_prob, asked(lambda: new.mean),
            repr(again), same.log_prob(v), type(new) is type(d))
def transformed(t, x):
    x.requires_grad_()
    y = t(x)
    return [asked(f) for f in (
        lambda: y, lambda: t.inv(y), lambda: t.log_abs_det_jacobian(x, y), lambda: t.inv.log_abs_det_jacobian(y, x),
        lambda: repr(t), lambda: repr(t.inv), lambda: t.inv.inv is t, lambda: (t.domain, t.codomain, t.bijective),
        lambda: t.sign, lambda: t.event_dim, lambda: t.forward_shape(x.shape), lambda: t.inverse_shape(y.shape),
        lambda: repr(t.with_cache()), lambda: t.with_cache(0) is t, lambda: t == t, lambda: t.inv == t.inv,
        lambda: [torch.autograd.grad(t(x).square().sum(), x), t.domain.check(x), t.codomain.check(y)],
    )]
def P(*values):
    values = values[0] if len(values) == 1 else list(values)
    LEAVES.append(torch.tensor(values, dtype=torch.float64, requires_grad=True))
    return LEAVES[-1]
"""

VALUES = {
    "Bernoulli(P(0.2, 0.7))": [1.0, 0.0],
    "Bernoulli(logits=P(0.2, -0.7))": [1.0, 0.0],
    "Beta(P(0.5, 2.0, 30.0), P(3.0, 1.5, 20.0))": [0.1, 0.6, 0.5],
    "Binomial(5, P(0.2, 0.7))": [1.0, 4.0],
    "Binomial(torch.tensor([[4.0], [40.0]]).double(), logits=P(0.2, -0.7))": [3.0, 2.0],
    "Categorical(P([[0.2, 0.3, 0.5], [2.0, 1.0, 1.0]]))": [2, 0],
    "Categorical(logits=P(0.2, 0.3, 0.5))": [2, 0],
    "Cauchy(P(0.3, -1.0), P(0.5, 2.0))": [0.4, 1.0],
    "Chi2(P(0.7, 4.0))": [0.4, 1.0],
    "ContinuousBernoulli(P(0.2, 0.7, 0.4995))": [0.4, 0.9, 0.5],
    "ContinuousBernoulli(logits=P(0.2, -2.0))": [0.4, 0.9],
    "Dirichlet(P([[0.5, 1.5, 2.0], [1.0, 7.0, 9.0]]))": [[0.2, 0.3, 0.5], [0.1, 0.5, 0.4]],
    "Exponential(P(0.5, 3.0))": [0.4, 1.0],
    "FisherSnedecor(P(3.0, 8.0), P(9.0, 5.0))": [0.4, 1.0],
    "Gamma(P(0.5, 3.0, 80.0), P(2.0, 0.3, 9.0))": [0.4, 1.0, 9.0],
    "Geometric(P(0.2, 0.7))": [3.0, 0.0],
    "Geometric(logits=P(0.2, 0.7))": [3.0, 0.0],
    "Gumbel(P(0.3, -1.0), P(0.5, 2.0))": [0.4, 1.0],
    "HalfCauchy(P(0.5, 2.0))": [0.4, 1.0],
    "HalfNormal(P(0.5, 2.0))": [0.4, 1.0],
    "Independent(Normal(P([[0.3, -1.0], [0.1, 0.2]]), P(0.5, 2.0)), 1)": [[0.4, 1.0], [0.1, 0.2]],
    "Independent(Bernoulli(P(0.3, 0.4)), 0)": [1.0, 0.0],
    "InverseGamma(P(0.5, 3.0), P(2.0, 0.3))": [0.4, 1.0],
    "Kumaraswamy(P(1.5, 0.7), P(2.0, 0.4))": [0.4, 0.9],
    "LKJCholesky(3, P(0.5, 2.0))": [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.6, 0.8]],
    "Laplace(P(0.3, -1.0), P(0.5, 2.0))": [0.4, 1.0],
    "LogNormal(P(0.3, -1.0), P(0.5, 2.0))": [0.4, 1.0],
    "LogisticNormal(P(0.3, -1.0), P(0.5, 2.0))": [0.2, 0.3, 0.5],
    "LowRankMultivariateNormal(P(0.3, -1.0, 0.5), P([[1.0, 0.2], [0.1, 0.5], [0.3, 0.3]]), P(0.4, 0.3, 1.0))": [
        0.2,
        0.3,
        1.0,
    ],
    "LowRankMultivariateNormal(P([[0.3, -1.0], [0.5, 0.7]]), P([[1.0], [0.1]]), P(0.4, 0.3))": [0.2, 0.3],
    "MixtureSameFamily(Categorical(P(0.2, 0.5)), Normal(P(0.3, -1.0), P(0.5, 2.0)))": [0.2, 0.3],
    "MixtureSameFamily(Categorical(P([[0.2, 0.5]] * 3)), Independent(Normal(P([[0.3, 1.0], [0.5, 2.0]]), P(0.5, 2.0)), 1).expand((3, 2)))": [
        0.2,
        0.3,
    ],
    "Multinomial(5, P([[0.2, 0.5], [1.0, 1.0]]))": [2.0, 3.0],
    "Multinomial(4, logits=P(0.2, 0.5, 1.0))": [2.0, 1.0, 1.0],
    "MultivariateNormal(P(0.3, -1.0), P([[2.0, 0.5], [0.5, 1.0]]))": [0.2, 0.3],
    "MultivariateNormal(P([[0.3, -1.0], [0.1, 0.2]]), precision_matrix=P([[2.0, 0.5], [0.5, 1.0]]))": [0.2, 0.3],
    "MultivariateNormal(P(0.3, -1.0), scale_tril=P([[[2.0, 0.0], [0.5, 1.0]], [[1.0, 0.0], [0.5, 3.0]]]))": [0.2, 0.3],
    "NegativeBinomial(P(2.5, 3.0), P(0.2, 0.7))": [3.0, 0.0],
    "NegativeBinomial(4, logits=P(0.2, -0.7))": [3.0, 0.0],
    "Normal(P(0.3, -1.0), P(0.5, 2.0))": [0.4, 1.0],
    "OneHotCategorical(P([[0.2, 0.3, 0.5], [2.0, 1.0, 1.0]]))": [0.0, 1.0, 0.0],
    "OneHotCategoricalStraightThrough(logits=P(0.2, 0.3, 0.5))": [0.0, 1.0, 0.0],
    "Pareto(P(0.3, 1.0), P(3.5, 1.5))": [0.4, 1.2],
    "Poisson(P(0.3, 25.0))": [1.0, 20.0],
    "RelaxedBernoulli(P(0.7), P(0.2, 0.7))": [0.1, 0.7],
    "RelaxedBernoulli(torch.tensor(0.7), logits=P(0.2, 0.7))": [0.1, 0.7],
    "RelaxedOneHotCategorical(P(0.7), P([[0.2, 0.3, 0.5], [2.0, 1.0, 1.0]]))": [0.1, 0.7, 0.2],
    "StudentT(P(3.0, 8.0), P(0.3, -1.0), P(0.5, 2.0))": [0.4, 1.0],
    "TransformedDistribution(Normal(P(0.3, -1.0), P(0.5, 2.0)), [AffineTransform(1.0, -2.0), SigmoidTransform()])": [
        0.4,
        0.7,
    ],
    "TransformedDistribution(Uniform(P(0.0), P(1.0)), [SigmoidTransform().inv, AffineTransform(P(0.3, -1.0), P(0.5, 2.0), event_dim=1)])": [
        0.4,
        0.7,
    ],
    "Uniform(P(0.3, -1.0), P(0.5, 2.0))": [0.4, 1.0],
    "VonMises(P(0.3, -1.0), P(0.5, 20.0))": [0.4, -1.0],
    "Weibull(P(0.3, 1.0), P(0.5, 2.0))": [0.4, 1.0],
    "Wishart(P(3.0, 5.5), P([[2.0, 0.5], [0.5, 1.0]]))": [[1.0, 0.2], [0.2, 3.0]],
    "Wishart(P(4.0), scale_tril=P([[[2.0, 0.0], [0.5, 1.0]], [[1.0, 0.0], [0.5, 3.0]]]))": [[1.0, 0.2], [0.2, 3.0]],
}
"""Values of each distribution; its parameters `P(...)` are leaves."""

DISTRIBUTIONS = list(VALUES)

SEVERAL = [
    "d, p = make('GeneralizedPareto(P(0.5, 0.0, 0.1), P(2.0, 0.3, 1.0), P(0.2, 0.0, -0.3))', torch.float32)\nmoving(d, p), [gradients(d, p, f(T([0.6, 1.0, 0.9]))) for f in (d.log_prob, d.cdf, d.log_survival_function, d.log_cdf)], gradients(d, p, d.icdf(T(0.4))), repr(d.expand((2, 3))), [asked(lambda: gradients(d, p, f())) for f in (d.entropy, lambda: d.mean, lambda: d.variance)]"
]

_OF_PAIRS = {
    "Bernoulli": ("D.Bernoulli(P(0.2, 0.7))", "D.Bernoulli(P(0.3, 0.5))", "D.Bernoulli(P(0.0, 1.0))"),
    "Beta": ("D.Beta(P(0.5, 2.0), P(3.0, 1.5))", "D.Beta(P(1.5, 2.0), P(0.7, 1.5))"),
    "Binomial": ("D.Binomial(5, P(0.2, 0.7))", "D.Binomial(T([5.0, 4.0]).double(), P(0.3, 0.5))"),
    "Categorical": ("D.Categorical(P(0.2, 0.7))", "D.Categorical(P(0.0, 0.5))"),
    "Cauchy": ("D.Cauchy(P(0.3, -1.0), P(0.5, 2.0))", "D.Cauchy(P(0.1, 0.0), P(1.5, 2.0))"),
    "ContinuousBernoulli": ("D.ContinuousBernoulli(P(0.2, 0.7))", "D.ContinuousBernoulli(P(0.3, 0.6))"),
    "Dirichlet": ("D.Dirichlet(P(0.2, 0.7, 2.0))", "D.Dirichlet(P(1.0, 0.5, 1.5))"),
    "Exponential": ("D.Exponential(P(0.2, 0.7))", "D.Exponential(P(1.0, 0.5))"),
    "Gamma": ("D.Gamma(P(0.5, 2.0), P(3.0, 1.5))", "D.Gamma(P(1.5, 2.0), P(0.7, 1.5))"),
    "Geometric": ("D.Geometric(P(0.2, 0.7))", "D.Geometric(P(0.3, 0.5))"),
    "Gumbel": ("D.Gumbel(P(0.3, -1.0), P(0.5, 2.0))", "D.Gumbel(P(0.1, 0.0), P(1.5, 2.0))"),
    "HalfNormal": ("D.HalfNormal(P(0.2, 0.7))", "D.HalfNormal(P(1.0, 0.5))"),
    "Laplace": ("D.Laplace(P(0.3, -1.0), P(0.5, 2.0))", "D.Laplace(P(0.1, 0.0), P(1.5, 2.0))"),
    "Normal": ("D.Normal(P(0.3, -1.0), P(0.5, 2.0))", "D.Normal(P(0.1, 0.0), P(1.5, 2.0))"),
    "OneHotCategorical": ("D.OneHotCategorical(P(0.2, 0.7))", "D.OneHotCategorical(P(0.1, 0.5))"),
    "Pareto": ("D.Pareto(P(0.3, 1.0), P(3.5, 2.5))", "D.Pareto(P(0.2, 1.2), P(2.5, 1.5))"),
    "Poisson": ("D.Poisson(P(0.2, 7.0))", "D.Poisson(P(1.0, 5.0))"),
    "Uniform": ("D.Uniform(P(0.3, -1.0, 2.0), P(0.5, 2.0, 3.0))", "D.Uniform(P(0.2, 0.0, 0.0), P(0.7, 3.0, 1.0))"),
}

_KNOWN = {
    "Bernoulli": "Bernoulli Poisson",
    "Beta": "Beta ContinuousBernoulli Exponential Gamma Normal Pareto",
    "Binomial": "Binomial",
    "Categorical": "Categorical",
    "Cauchy": "Cauchy",
    "ContinuousBernoulli": "ContinuousBernoulli Exponential Normal Pareto",
    "Dirichlet": "Dirichlet",
    "Exponential": "Beta ContinuousBernoulli Exponential Gamma Gumbel Normal Pareto Uniform",
    "Gamma": "Beta ContinuousBernoulli Exponential Gamma Gumbel Normal Pareto Uniform",
    "Geometric": "Geometric Normal",
    "Gumbel": "Beta ContinuousBernoulli Exponential Gamma Gumbel Normal Pareto Uniform Cauchy",
    "HalfNormal": "HalfNormal",
    "Laplace": "Beta ContinuousBernoulli Exponential Gamma Laplace Normal Pareto Uniform",
    "Normal": "Beta ContinuousBernoulli Exponential Gamma Gumbel Laplace Normal Pareto Uniform",
    "OneHotCategorical": "OneHotCategorical",
    "Pareto": "Beta ContinuousBernoulli Exponential Gamma Normal Pareto Uniform",
    "Poisson": "Bernoulli Binomial Poisson",
    "Uniform": "Uniform",
}

PAIRS = [
    *(
        f"{p}, {q}"
        for name, others in _KNOWN.items()
        for p in _OF_PAIRS[name][:1]
        for other in others.split()
        for q in _OF_PAIRS[other][1:]
    ),
    *(
        f"D.Uniform(P(0.3, 0.1), P(0.5, 0.9)), {q}"
        for name in "Beta ContinuousBernoulli Exponential Gamma Gumbel Normal Pareto Uniform".split()
        for q in _OF_PAIRS[name][1:]
        if name not in ("Pareto", "Uniform")
    ),
    "D.Uniform(P(-0.3, 0.1), P(0.5, 1.9)), D.ContinuousBernoulli(P(0.3, 0.6))",
    "D.Uniform(P(-0.3, 0.1), P(0.5, 1.9)), D.Exponential(P(0.3, 0.6))",
    "D.Uniform(P(2.0, 0.1), P(5.0, 1.9)), D.Pareto(P(1.0, 0.3), P(2.0, 0.6))",
    "D.Beta(P(0.5, 2.0), P(3.0, 1.5)), D.Uniform(P(-1.0, 0.2), P(1.5, 0.6))",
    "D.ContinuousBernoulli(P(0.2, 0.7)), D.Uniform(P(-1.0, 0.2), P(1.5, 0.6))",
    "D.Binomial(3, P(0.2, 0.7)), D.Binomial(4, P(0.3, 0.5))",
    "D.Bernoulli(P(0.0, 1.0)), D.Bernoulli(P(0.0, 0.5))",
    "D.Independent(D.Normal(P(0.3, -1.0), P(0.5, 2.0)), 1), D.Independent(D.Normal(P(0.1, 0.0), P(1.5, 2.0)), 1)",
    "D.Independent(D.Normal(P(0.3, -1.0), P(0.5, 2.0)), 1), D.Independent(D.Normal(P(0.1, 0.0), P(1.5, 2.0)), 0)",
    "D.LogNormal(P(0.3, -1.0), P(0.5, 2.0)), D.LogNormal(P(0.1, 0.0), P(1.5, 2.0))",
    "D.LogNormal(P(0.3, -1.0), P(0.5, 2.0)), D.Normal(P(0.1, 0.0), P(1.5, 2.0))",
    "D.Chi2(P(3.0)), D.Gamma(P(2.0), P(1.5))",
    "D.Chi2(P(3.0)), D.Chi2(P(2.0))",
    "D.Wishart(P(3.0), P([[2.0, 0.5], [0.5, 1.0]])), D.Wishart(P(4.0), P([[1.0, 0.1], [0.1, 1.0]]))",
    *(
        f"{p}, {q}"
        for p in (
            "D.MultivariateNormal(P(0.3, -1.0), P([[2.0, 0.5], [0.5, 1.0]]))",
            "D.LowRankMultivariateNormal(P([[0.3, -1.0], [0.5, 0.7]]), P([[1.0], [0.1]]), P(0.4, 0.3))",
        )
        for q in (
            "D.MultivariateNormal(P([[0.1, -0.2], [0.4, 0.3]]), P([[1.0, 0.1], [0.1, 3.0]]))",
            "D.LowRankMultivariateNormal(P([0.3, 1.0]), P([[[1.0], [2.0]], [[0.3], [1.0]]]), P(1.4, 0.3))",
            "D.MultivariateNormal(torch.zeros(3), torch.eye(3))",
        )
    ),
]

TRANSFORMS = """
X.AbsTransform() at tensor(2, 3)
X.AffineTransform(1.0, -2.0) at tensor(2, 3)
X.AffineTransform(T([1.0, 2.0, 3.0]).double(), T([1.0, -2.0, 0.5]).double(), event_dim=1) at tensor(2, 3)
X.AffineTransform(0.0, T([1.0, -2.0, 0.5]).double()) at tensor(2, 3)
X.CatTransform([X.ExpTransform(), X.identity_transform, X.TanhTransform()], dim=1, lengths=[1, 1, 2]) at tensor(2, 4)
X.CatTransform([X.ExpTransform(), X.AffineTransform(1.0, 2.0)]) at tensor(2, 3)
X.StackTransform([X.ExpTransform(), X.AffineTransform(1.0, 2.0)]) at tensor(2, 3)
X.StackTransform([X.ExpTransform(), X.AffineTransform(1.0, 2.0)], dim=-1) at tensor(3, 2)
X.ComposeTransform([X.ExpTransform(), X.AffineTransform(1.0, 2.0)]) at tensor(2, 3)
X.ComposeTransform([X.AffineTransform(1.0, 2.0), X.StickBreakingTransform()]) at tensor(2, 3)
X.ComposeTransform([X.StickBreakingTransform(), X.AffineTransform(1.0, 2.0)]) at tensor(2, 3)
X.ComposeTransform([X.ReshapeTransform((3,), (3, 1)), X.ExpTransform()]) at tensor(2, 3)
X.ComposeTransform([]) at tensor(2, 3)
X.CorrCholeskyTransform() at tensor(2, 3)
X.CorrCholeskyTransform() at tensor(6)
X.CumulativeDistributionTransform(D.Normal(0.5, 2.0)) at tensor(2, 3)
X.ExpTransform() at tensor(2, 3)
X.ExpTransform().inv at uniform(2, 3)
X.IndependentTransform(X.ExpTransform(), 1) at tensor(2, 3)
X.LowerCholeskyTransform() at tensor(2, 3, 3)
X.PositiveDefiniteTransform() at tensor(2, 3, 3)
X.PowerTransform(T([2.0, -1.0, 0.5])) at uniform(2, 3)
X.PowerTransform(3.0) at uniform(2, 3)
X.ReshapeTransform((2, 3), (6,)) at tensor(4, 2, 3)
X.SigmoidTransform() at tensor(2, 3)
X.SoftplusTransform() at tensor(2, 3)
X.TanhTransform() at tensor(2, 3)
X.SoftmaxTransform() at tensor(2, 3)
X.StickBreakingTransform() at tensor(2, 3)
D.biject_to(C.interval(-1.0, 2.0)) at tensor(2, 3)
D.biject_to(C.less_than(2.0)) at tensor(2, 3)
D.biject_to(C.independent(C.positive, 1)) at tensor(2, 3)
D.transform_to(C.simplex) at tensor(2, 3)
D.transform_to(C.cat([C.real, C.positive], 1, [2, 1])) at tensor(2, 3)
D.transform_to(C.stack([C.real, C.positive])) at tensor(2, 3)
""".strip().split("\n")

ERRORS = r"""
D.Normal(T([0.,1.]),T([-1.,1.]))
D.Normal(0.,-1.)
D.Normal(0.,1.).log_prob(T(float('nan')))
D.Normal(0.,1.).log_prob(1.0)
D.Normal(torch.zeros(2),1.).log_prob(torch.zeros(3))
D.Exponential(torch.ones(2)).log_prob(T([-1.,1]))
D.Normal('a',1.)
D.Normal(T(1),T(1))
D.Normal(T([1]),2)
D.Normal(1,2).loc.dtype
D.Normal(True,2).loc
D.Normal(T(1.,dtype=torch.float64),2).scale
D.Normal(torch.zeros(2,3),1)
D.Normal(torch.zeros(2),torch.ones(3))
D.Bernoulli(0.3)
D.Bernoulli(logits=T([0.3,.2]))
D.Bernoulli()
D.Bernoulli(.3,.4)
D.Categorical(T([.3,.3]))
D.Categorical(T(.3))
D.Categorical(logits=T(.3))
D.Categorical()
D.Categorical(T([-.3,.4]))
D.Bernoulli(1.3)
D.Bernoulli(.3).log_prob(T(.5))
D.Categorical(T([.3,.3])).log_prob(T(2))
D.Categorical(T([.3,.3])).log_prob(T([[2.]]))
D.MultivariateNormal(T(0.), torch.eye(2))
D.MultivariateNormal(torch.zeros(2))
D.MultivariateNormal(torch.zeros(2), torch.ones(2))
D.MultivariateNormal(torch.zeros(2), precision_matrix=torch.ones(2))
D.MultivariateNormal(torch.zeros(2), scale_tril=torch.ones(2))
D.MultivariateNormal(torch.zeros(2), -torch.eye(2))
D.MultivariateNormal(torch.zeros(2), T([[1.,2],[3,4]]))
D.MultivariateNormal(torch.zeros(2), torch.eye(3))
D.MultivariateNormal(torch.zeros(2), torch.eye(2))
D.MultivariateNormal(torch.zeros(2), scale_tril=torch.eye(2)).expand((3,))
D.MultivariateNormal(torch.zeros(2), scale_tril=torch.eye(2), covariance_matrix=torch.eye(2))
D.Dirichlet(T(1.))
D.Dirichlet(torch.ones(3))
D.Dirichlet(torch.ones(3)).log_prob(T([.5,.5,.5]))
D.Beta(1,2)
D.Beta(T([1.,2]),2)
D.Uniform(1.,0.)
D.Uniform(0.,1.).log_prob(T(2.))
D.Uniform(0.,1.)
D.Uniform(0.,1.,validate_args=False).log_prob(T(2.))
D.Multinomial(T([3,2]),T([.2,.3]))
D.Multinomial(T(3),T([.2,.3]))
D.Multinomial(-3,T([.2,.3]))
D.Multinomial(3,T([.2,.3]))
D.Multinomial(3,T([.2,.3])).log_prob(T([1.,1.]))
D.Multinomial()
D.Multinomial(3)
D.Binomial(3)
D.Binomial(3,.4)
D.Binomial(3,T(.4))
D.Binomial(3,T([.4])).expand((2,1))
D.Binomial(T([3,4]),T(.4)).enumerate_support()
D.Binomial(T([3,3]),T(.4)).enumerate_support()
D.Normal(0.,1.).enumerate_support()
D.Poisson(1.).cdf(T(1.))
D.Poisson(1.).icdf(T(1.))
D.Poisson(1.)
D.Independent(D.Normal(torch.zeros(2,3),1.),1)
D.Independent(D.Normal(torch.zeros(2,3),1.),3)
D.TransformedDistribution(D.Normal(0.,1.),[D.ExpTransform()])
D.TransformedDistribution(D.Normal(0.,1.),3)
D.TransformedDistribution(D.Normal(0.,1.),[3])
D.TransformedDistribution(D.Categorical(torch.ones(3)),[D.StickBreakingTransform()])
D.TransformedDistribution(D.Normal(0.,1.),[D.StickBreakingTransform()])
D.LogNormal(0.,1.)
D.LogNormal(0.,torch.ones(2))
D.MixtureSameFamily(D.Categorical(torch.ones(2)),D.Normal(torch.zeros(2),1.))
D.MixtureSameFamily(D.Categorical(torch.ones(2)),D.Normal(torch.zeros(3),1.))
D.MixtureSameFamily(D.Categorical(torch.ones(4,2)),D.Normal(torch.zeros(3,2),1.))
D.MixtureSameFamily(D.Normal(torch.zeros(2),1.),D.Normal(torch.zeros(3),1.))
D.MixtureSameFamily(D.Categorical(torch.ones(2)),2)
D.LKJCholesky(1)
D.LKJCholesky(3)
D.LKJCholesky(3,T([1.,2.]))
D.VonMises(0.,1.)
D.VonMises(T(0.),T(1.))
D.Wishart(T(3.),torch.eye(2))
D.Wishart(T(.3),torch.eye(2))
D.Wishart(3.,torch.eye(2))
D.Wishart(3.)
D.Wishart(3.,torch.ones(2))
D.Wishart(T(1.5),torch.eye(2))
D.LowRankMultivariateNormal(torch.zeros(2),torch.ones(2,1),torch.ones(2))
D.LowRankMultivariateNormal(T(0.),torch.ones(2,1),torch.ones(2))
D.LowRankMultivariateNormal(torch.zeros(2),torch.ones(2),torch.ones(2))
D.LowRankMultivariateNormal(torch.zeros(2),torch.ones(2,1),torch.ones(3))
D.LowRankMultivariateNormal(torch.zeros(2),torch.ones(3,1),torch.ones(2))
D.LowRankMultivariateNormal(torch.zeros(2),torch.ones(2,1),T(1.))
D.OneHotCategorical(T([.2,.3]))
D.RelaxedBernoulli(T(1.),T([.2,.3]))
D.RelaxedOneHotCategorical(T(1.),T([.2,.3]))
D.RelaxedOneHotCategorical(T(1.),T([.2,.3])).base_dist
D.StudentT(2.)
D.Chi2(2.)
D.Chi2(-2.)
D.Pareto(2.,1.)
D.Pareto(T([2.,1.]),1.)
D.GeneralizedPareto(0.,2.,1.)
D.GeneralizedPareto(T([0.]),2.,1.)
D.HalfCauchy(T([1.]))
D.HalfNormal(1.)
D.InverseGamma(1.,2.)
D.Kumaraswamy(1.,2.)
D.Weibull(1.,2.)
D.Gumbel(1.,2.)
D.FisherSnedecor(1.,2.)
D.NegativeBinomial(3.,.5)
D.NegativeBinomial(3.,T(.5))
D.NegativeBinomial(3.,T(1.))
D.ContinuousBernoulli(.5)
D.ContinuousBernoulli()
D.Geometric(0.)
D.Geometric()
D.Geometric(.5)
D.Laplace(.5,1.)
D.Cauchy(.5,1.)
D.LogisticNormal(T([.5,1.]),1.)
D.LogisticNormal(.5,1.)
D.LogisticNormal(T([.5,1.]),1.).base_dist
D.kl_divergence(D.Normal(0.,1.),D.Cauchy(0.,1.))
D.kl_divergence(D.Independent(D.Normal(torch.zeros(2,3),1.),1),D.Independent(D.Normal(torch.zeros(2,3),1.),2))
D.kl_divergence(D.LogNormal(0.,1.), D.TransformedDistribution(D.Normal(0.,1.),D.AffineTransform(0.,1.)))
D.Distribution()
D.Distribution().batch_shape
D.Distribution(torch.Size([2]),torch.Size([3]),validate_args=False)
D.Distribution(validate_args=False).expand((2,))
D.Distribution(validate_args=False).mean
D.Distribution(validate_args=False).mode
D.Distribution(validate_args=False).stddev
D.Distribution(validate_args=False).entropy()
D.Distribution(validate_args=False).perplexity()
D.Distribution(validate_args=False).support
D.Normal(0.,1.)._extended_shape((2,))
D.MultivariateNormal(torch.zeros(2),torch.eye(2)).log_prob(torch.zeros(3))
D.MultivariateNormal(torch.zeros(2),torch.eye(2)).log_prob(torch.zeros(()))
D.MultivariateNormal(torch.zeros(4,2),torch.eye(2)).log_prob(torch.zeros(3,2))
D.Normal(torch.zeros(2),1.).expand((3,))
D.Normal(torch.zeros(2),1.).expand((3,2)).stddev
D.Normal(torch.zeros(2),1.).expand([3,2]).batch_shape
D.Normal(torch.zeros(2),1.).expand([])
D.Poisson(T([2.,0.])).log_prob(T([1.,0.]))
D.Poisson(T([2.,0.])).log_prob(T([1,0]))
D.Bernoulli(T([2,0]))
D.Bernoulli(1)
D.Bernoulli(T([1,0])).log_prob(T([1,0]))
D.Categorical(logits=T([1.,2.])).log_prob(T(1))
D.Categorical(logits=T([1.,2.])).logits
(D.Categorical(logits=T([1.,2.])).mean,D.Categorical(logits=T([1.,2.])).variance,D.Categorical(logits=T([1.,2.])).mode)
D.Categorical(logits=T([1.,2.])).enumerate_support()
D.Categorical(logits=torch.zeros(3,2)).enumerate_support()
D.Categorical(logits=torch.zeros(3,2)).enumerate_support(expand=False)
D.Bernoulli(T([.1,.2])).enumerate_support(False)
D.Bernoulli(T([.1,.2])).enumerate_support()
D.Bernoulli(T([.1,.5])).mode
D.Binomial(5,T([.1,.5,1.])).mode
D.Binomial(5,T([.1,.5,1.])).entropy()
D.Binomial(T([5,4,3]),T([.1,.5,1.])).entropy()
D.Binomial(5,logits=T([.1,.5,100.])).log_prob(T([1.,2.,5.]))
D.OneHotCategorical(T([.2,.3])).enumerate_support()
D.OneHotCategorical(T([[.2,.3]]*3)).enumerate_support(False).shape
D.OneHotCategorical(T([.2,.3])).mode
(D.Cauchy(0.,1.).mean,D.Cauchy(0.,1.).variance,D.Cauchy(0.,1.).mode)
(D.StudentT(T([.5,1.,1.5,2.,3.])).mean,D.StudentT(T([.5,1.,1.5,2.,3.])).variance)
(D.Pareto(1.,T([.5,1.,1.5,2.,3.])).mean,D.Pareto(1.,T([.5,1.,1.5,2.,3.])).variance,D.Pareto(1.,T([.5,1.,1.5,2.,3.])).support)
(D.InverseGamma(T([.5,1.,1.5,2.,3.]),1.).mean,D.InverseGamma(T([.5,1.,1.5,2.,3.]),1.).variance,D.InverseGamma(T([.5,1.,1.5,2.,3.]),1.).mode)
(D.FisherSnedecor(T([.5,1.,1.5,2.,3.]),T([1.,2.,3.,4,5.])).mean,D.FisherSnedecor(T([.5,1.,1.5,2.,3.]),T([1.,2.,3.,4,5.])).variance,D.FisherSnedecor(T([.5,1.,1.5,2.,3.]),1.).mode)
(D.Gamma(T([.5,1.,1.5]),1.).mode, D.Beta(T([.5,1.,1.5,3.]),T([.5,2,1,3.])).mode, D.Dirichlet(T([[.5,1.,1.5],[2.,2.,4.],[.5,.2,.2]])).mode)
(D.HalfCauchy(1.).mean,D.HalfCauchy(1.).variance,D.HalfCauchy(1.).mode)
(D.GeneralizedPareto(0.,1.,T([-.5,0.,.3,.5,1.])).mean,D.GeneralizedPareto(0.,1.,T([-.5,0.,.3,.5,1.])).variance,D.GeneralizedPareto(0.,1.,T([-.5,0.,.3,.5,1.])).mode,D.GeneralizedPareto(0.,1.,T([-.5,0.,.3,.5,1.])).entropy())
D.GeneralizedPareto(0.,1.,T([-.5,0.,.3,.5,1.])).support
D.GeneralizedPareto(0.,1.,T([.5,0.,.3,.5,1.])).support
D.GeneralizedPareto(0.,1.,T([-.5,0.,.3,.5,1.])).cdf(T(.7))
D.GeneralizedPareto(0.,1.,T([-.5,0.,.3,.5,1.])).icdf(T(.7))
D.GeneralizedPareto(0.,1.,T([-.5,0.,.3,.5,1.])).log_survival_function(T(.7))
D.GeneralizedPareto(0.,1.,T([-.5,0.,.3,.5,1.])).log_cdf(T(.7))
D.GeneralizedPareto(0.,1.,T([-.5,0.,.3,.5,1.])).log_prob(T(.7))
D.GeneralizedPareto(0.,1.,T([-.5,0.,.3,.5,1.]),validate_args=False).log_prob(T(3.7))
D.GeneralizedPareto(0.,1.,T([-.5,0.,.3,.5,1.]),validate_args=False).cdf(T(3.7))
D.GeneralizedPareto(0.,1.,T([-.5,0.,.3,.5,1.]),validate_args=False).log_prob(T(-1.))
(D.NegativeBinomial(T([.5,3.]),.3).mode,D.NegativeBinomial(T([.5,3.]),.3).mean,D.NegativeBinomial(T([.5,3.]),.3).variance)
(D.Geometric(.3).mode,D.Poisson(3.3).mode,D.Multinomial(3,T([.2,.3])).support,D.Binomial(3,T([.2,.3])).support)
(D.VonMises(T(.3),T(2.)).mode,D.VonMises(T(.3),T(2.)).variance,D.VonMises(T(.3),T([2.,.1,100.,0.001])).log_prob(T(.5)))
(D.ContinuousBernoulli(T([.3,.5,.5005,.9])).mean,D.ContinuousBernoulli(T([.3,.5,.5005,.9])).variance,D.ContinuousBernoulli(T([.3,.5,.5005,.9])).entropy())
(D.ContinuousBernoulli(T([.3,.5,.5005,.9])).cdf(T(.4)),D.ContinuousBernoulli(T([.3,.5,.5005,.9])).icdf(T(.4)))
(D.LogNormal(T(0.),1.).mode,D.Gumbel(0.,1.).mode, D.HalfNormal(2.).mode, D.Wishart(T(3.),torch.eye(2)).mode, D.Wishart(T(2.5),torch.eye(2)).mode,D.LogisticNormal(T([0.]),1.))
D.LogisticNormal(T([0.,1.]),1.).mean
D.Independent(D.Normal(torch.zeros(2,3),1.),1).entropy()
D.Independent(D.Bernoulli(torch.ones(2,3)*.5),1).enumerate_support()
D.Independent(D.Bernoulli(torch.ones(2,3)*.5),0).enumerate_support().shape
D.HalfNormal(1.).log_prob(T(-1.))
D.HalfNormal(1.,validate_args=False).log_prob(T(-1.))
D.HalfCauchy(1.,validate_args=False).log_prob(T(-1.))
D.TransformedDistribution(D.Normal(0.,1.),[D.AffineTransform(1.,-2.)]).cdf(T(.3))
D.TransformedDistribution(D.Normal(0.,1.),[D.AffineTransform(1.,-2.)]).icdf(T(.3))
D.TransformedDistribution(D.Normal(0.,1.),[D.AffineTransform(1.,-2.)]).support
D.TransformedDistribution(D.Normal(0.,1.),[]).support
D.TransformedDistribution(D.Normal(torch.zeros(3),1.),[D.StickBreakingTransform()]).event_shape
D.TransformedDistribution(D.Normal(torch.zeros(()),1.),[D.AffineTransform(T([1.,2.]),1.)]).batch_shape
D.TransformedDistribution(D.Normal(torch.zeros(2),1.),[D.AffineTransform(T([1.,2.]),1.,event_dim=1)]).event_shape
D.MixtureSameFamily(D.Categorical(torch.ones(2)),D.Normal(torch.zeros(2),T([1.,2.]))).variance
D.MixtureSameFamily(D.Categorical(torch.ones(2)),D.Normal(torch.zeros(2),T([1.,2.]))).support
D.MixtureSameFamily(D.Categorical(torch.ones(2)),D.Normal(torch.zeros(2),T([1.,2.]))).cdf(T(.3))
D.MixtureSameFamily(D.Categorical(torch.ones(2)),D.Uniform(torch.zeros(2),T([1.,2.]))).support
D.MixtureSameFamily(D.Categorical(torch.ones(2)),D.Uniform(torch.zeros(2),T([1.,2.]))).log_prob(T(3.))
D.MixtureSameFamily(D.Categorical(torch.ones(2)),D.Uniform(torch.zeros(2),T([1.,2.]))).log_prob(T(1.5))
D.RelaxedBernoulli(T(1.),T(.3)).log_prob(T(.5))
D.RelaxedBernoulli(T(1.),T(.3)).support
(D.RelaxedBernoulli(T(1.),T(.3)).base_dist,D.RelaxedOneHotCategorical(T(1.),T([.3,.2])).event_shape,D.RelaxedOneHotCategorical(T([1.,2.]),T([.3,.2])).batch_shape)
(D.Wishart(T(3.),torch.eye(2)).mean,D.Wishart(T(3.),torch.eye(2)).variance,D.Wishart(T(3.),torch.eye(2)).entropy(),D.Wishart(T(3.),torch.eye(2)).log_prob(torch.eye(2)))
D.Wishart(T([1.5,1.2]),torch.eye(2)).expand((3,2)).batch_shape
D.Uniform(T([0.,1.]),2.).cdf(T([3.,1.5]))
D.Uniform(T([0.,1.]),2.,validate_args=False).cdf(T([3.,1.5]))
D.Normal(0.,1.)._natural_params
(D.Bernoulli(.3)._natural_params,D.Beta(1.,2.)._natural_params,D.Gamma(1.,2.)._natural_params,D.Poisson(1.)._natural_params,D.Exponential(2.)._natural_params,D.Dirichlet(T([1.,2.]))._natural_params,D.ContinuousBernoulli(.3)._natural_params,D.Wishart(T(3.),torch.eye(2))._natural_params)
D.Poisson(T([1.,2.])).entropy()
D.Beta(1.,2.)._mean_carrier_measure
D.Normal(T([0.]),1.).cdf(2.)
D.Normal(T([0.]),1.).log_prob(T([[1],[2]]))
D.Laplace(T([0.,1.]),T([1.,2.])).cdf(T([.5,.7]))
D.Exponential(T([.5])).icdf(T([.5]))
D.Exponential(T([.5])).stddev
D.kl_divergence(D.Pareto(1.0, T([1.5, 2.5])), D.Normal(0.0, 1.0))
D.kl_divergence(D.Pareto(1.0, T([0.5, 2.5])), D.Exponential(1.0))
seeded(D.GeneralizedPareto(0.5, 2.0, T([-0.3, 0.0, 0.2])).sample, (4,))
D.Normal(T([0.]),T([1.]),validate_args=None)._validate_args
D.Categorical(torch.ones(0))
D.Categorical(torch.ones(3,0))
D.Categorical(probs=[.1,.2])
D.Normal(loc=[0.],scale=1.)
D.Normal(None,1.)
D.Normal(T(0.),None)
D.Normal(1+2j,1.)
D.Bernoulli(T([float('nan')]))
D.Normal(float('nan'),1.)
D.Gamma(2.,1.).cdf(T(1.))
D.Gamma(2.,1.).icdf(T(1.))
D.Gamma(2.,1.).log_prob(1.)
D.HalfNormal(1.).log_prob(1.)
D.HalfCauchy(1.).log_prob(1.)
D.Normal(0.,1.).cdf(T(0))
D.Normal(0.,1.).icdf(T([0.,.5,1.]))
D.Normal(torch.zeros(2),1.).log_prob(T([0,1]))
D.Exponential(1.).cdf(T(-1.))
D.Uniform(0.,1.).log_prob(T([0.,1.]))
D.Beta(1.,2.).log_prob(T([0.,1.]))
D.Dirichlet(T([[1.,2.]])).expand((3,)).batch_shape
D.Multinomial(3,T([1.,2.])).expand((3,)).event_shape
D.Multinomial(3,T([1.,2.])).support
D.Independent(D.Normal(torch.zeros(2),1.),1).support
D.Independent(D.Normal(torch.zeros(2),1.),0).support
D.Independent(D.Categorical(torch.ones(2,3)),1).support
D.Independent(D.Normal(torch.zeros(2),1.),1).cdf(torch.zeros(2))
D.MixtureSameFamily(D.Categorical(torch.ones(2)),D.Poisson(T([1.,2.]))).log_prob(T([1.,2.]))
D.MixtureSameFamily(D.Categorical(torch.ones(2)),D.Independent(D.Poisson(torch.ones(2,3)),1)).mean
D.LogNormal(0.,1.).cdf(T(1.))
D.LogNormal(0.,1.).icdf(T(.5))
D.Gumbel(0.,1.).cdf(T(1.))
D.Weibull(1.,2.).cdf(T(1.))
D.Pareto(1.,2.).cdf(T(1.5))
D.Kumaraswamy(1.,2.).cdf(T(.5))
D.InverseGamma(1.,2.).cdf(T(.5))
D.HalfNormal(1.).cdf(T(-1.))
D.TransformedDistribution(D.Normal(0.,1.),D.AbsTransform()).log_prob(T(1.))
D.TransformedDistribution(D.Normal(0.,1.),D.AbsTransform()).cdf(T(1.))
D.TransformedDistribution(D.Normal(0.,1.),(D.ExpTransform(),))
D.Uniform.support
D.Uniform.arg_constraints
D.Categorical.support.event_dim
D.TransformedDistribution.support.event_dim
D.Independent.support.is_discrete
D.RelaxedBernoulli(.5,T([.3]))
D.RelaxedBernoulli(.5,T([.3])).log_prob(T([.5]))
D.Binomial(T([3,4]),T([.3,.2])).sample().shape
D.Binomial(3,T(1.)).log_prob(T(3.))
D.Binomial(3,T(1.)).log_prob(T(2.))
D.Binomial(3,T(0.)).log_prob(T(0.))
D.Geometric(T(1.)).log_prob(T([0.,1.]))
D.NegativeBinomial(0.,T(.3)).log_prob(T(0.))
D.NegativeBinomial(3.,T(0.)).mean
D.Poisson(-1.)
D.VonMises(T(0.),T(1e-7)).log_prob(T(1.))
D.LKJCholesky(3,T([1.,2.])).expand((4,2)).sample().shape
D.Wishart(T([3.,4.]),torch.eye(2)).batch_shape
D.Wishart(4,torch.eye(2)).df
D.Wishart(4,scale_tril=torch.eye(2)).covariance_matrix
D.Wishart(4,precision_matrix=torch.eye(2)*2).covariance_matrix
D.StudentT(T([1.,2.])).expand((3,2)).sample().shape
D.FisherSnedecor(2.,3.).expand((2,)).sample().shape
D.OneHotCategorical(T([.3,.7])).log_prob(T([.5,.5]))
D.Categorical(T([.3,.7])).entropy()
D.Categorical(T([0.,1.])).entropy()
D.Bernoulli(T([0.,1.])).entropy()
D.ContinuousBernoulli(T([0.,1.])).log_prob(T([0.,1.]))
D.ContinuousBernoulli(1.5)
D.ContinuousBernoulli(.5,lims=(.4,.6)).expand((2,))._lims
D.Normal(torch.zeros(2,dtype=torch.bfloat16),1.).log_prob(torch.zeros(2,dtype=torch.bfloat16))
D.kl_divergence(D.Categorical(T([.5,.5])),D.Categorical(T([.3,.3,.4])))
D.kl_divergence(D.Normal(torch.zeros(3),1.),D.Normal(torch.zeros(2,1),1.)).shape
D.Chi2(T([1.,2.])).expand((3,2)).df.shape
D.Chi2(3).df
D.MultivariateNormal(torch.zeros(2),torch.eye(2)).rsample((3,)).shape
D.MultivariateNormal(torch.zeros(5,1,2),torch.eye(2).expand(3,2,2)).batch_shape
D.MultivariateNormal(torch.zeros(5,2),torch.eye(2).expand(3,2,2))
D.MultivariateNormal(torch.zeros(2),torch.eye(2)).cdf(torch.zeros(2))
""".strip().split("\n")
"""Short queries: the text and single values."""

TRANSFORM_LINES = r"""
X.Transform(cache_size=2)
X.ExpTransform(cache_size=2)
X.ExpTransform().with_cache(2)
X.Transform()
X.Transform().event_dim
X.Transform()(1)
X.Transform().inv
X.Transform().log_abs_det_jacobian(1,2)
X.ReshapeTransform((2,3),(5,))
X.ReshapeTransform((2,3),(6,))(torch.ones(4,3))
X.ReshapeTransform((2,3),(6,)).inv(torch.ones(4,3))
X.ReshapeTransform((2,3),(6,)).log_abs_det_jacobian(torch.ones(4,2,3),torch.ones(4,6))
X.IndependentTransform(X.ExpTransform(),-1)
X.IndependentTransform(X.ExpTransform(),1)(torch.ones(()))
X.IndependentTransform(X.ExpTransform(),1).inv(torch.ones(()))
X.IndependentTransform(X.ExpTransform(),1).log_abs_det_jacobian(torch.ones(2,3),torch.ones(2,3))
X.StickBreakingTransform().forward_shape(())
X.CorrCholeskyTransform().forward_shape((3,))
X.CorrCholeskyTransform().forward_shape((4,))
X.CorrCholeskyTransform().forward_shape(())
X.CorrCholeskyTransform().inverse_shape((4,3))
X.CorrCholeskyTransform()(torch.ones(5))
X.CatTransform([1])
X.CatTransform([X.ExpTransform(),X.ExpTransform()],lengths=[1])
c(torch.ones(2,3))
c(torch.ones(2,4))
s(torch.ones(2,2))
s(torch.ones(2,3))
X.StackTransform([1])
X.StackTransform([]).event_dim
X.identity_transform
X.identity_transform.log_abs_det_jacobian(torch.ones(2),torch.ones(2))
X.ComposeTransform([X.StickBreakingTransform(),X.AffineTransform(0.,2.)]).domain
X.ComposeTransform([X.StickBreakingTransform(),X.AffineTransform(0.,2.)]).codomain
X.ComposeTransform([X.AffineTransform(0.,2.),X.StickBreakingTransform(),]).domain
X.ComposeTransform([X.AffineTransform(0.,T([-2.,1])),X.ExpTransform()]).sign
X.ComposeTransform([X.AffineTransform(0.,2.)],cache_size=1).parts
X.ComposeTransform([X.AffineTransform(0.,2.)]).with_cache(1).parts[0]._cache_size
X.ComposeTransform([X.AffineTransform(0.,2.),X.ExpTransform()])==X.ComposeTransform([X.AffineTransform(0,2),X.ExpTransform()])
X.AffineTransform(T([1.,2.]),1)==X.AffineTransform(T([1.,2.]),1)
X.AffineTransform(T([1.,2.]),1)==X.AffineTransform(T([1.,3.]),1)
X.PowerTransform(T(2.))==X.PowerTransform(T(2.))
X.PowerTransform(2.)(T(3.))
X.PowerTransform(2.).sign
X.PowerTransform(2.).forward_shape((2,))
X.AffineTransform(0.,T([-2.,3])).sign
X.AffineTransform(0.,-2).sign
X.AffineTransform(0.,-2).log_abs_det_jacobian(torch.ones(3),1)
X.AffineTransform(0.,-2,event_dim=1).log_abs_det_jacobian(torch.ones(3),1)
X.AffineTransform(0.,T([1.,2.,3.]),event_dim=1).log_abs_det_jacobian(torch.ones(4,3),1)
X.AffineTransform(0.,T([1.,2.,3.]),event_dim=2).domain
X.CorrCholeskyTransform()(torch.linspace(-1,1,3))
X.CorrCholeskyTransform().inv(X.CorrCholeskyTransform()(torch.linspace(-1,1,3)))
X.CorrCholeskyTransform().log_abs_det_jacobian(torch.linspace(-1,1,3),X.CorrCholeskyTransform()(torch.linspace(-1,1,3)))
X.LowerCholeskyTransform()(torch.linspace(-1,1,4).view(2,2))
X.LowerCholeskyTransform().inv(X.LowerCholeskyTransform()(torch.linspace(-1,1,4).view(2,2)))
X.PositiveDefiniteTransform()(torch.linspace(-1,1,4).view(2,2))
X.PositiveDefiniteTransform().inv(X.PositiveDefiniteTransform()(torch.linspace(-1,1,4).view(2,2)))
U.clamp_probs(T([0.,1.]))
U.probs_to_logits(T([0.,1.]))
U.tril_matrix_to_vec(torch.arange(9.).view(3,3),-1)
U.tril_matrix_to_vec(torch.arange(9.).view(3,3),3)
U.tril_matrix_to_vec(torch.arange(9.).view(3,3),1)
U.vec_to_tril_matrix(torch.arange(3.),-1)
U.vec_to_tril_matrix(torch.arange(6.))
U.vec_to_tril_matrix(torch.arange(5.))
U.broadcast_all(1,T([2.]))
U.broadcast_all(1,T([2]))
U.broadcast_all(1.5,T([2]))
U.broadcast_all(1,True)
U.broadcast_all(T([1.,2.]),T([2]))
""".strip().split("\n")

CONSTRAINTS = r"""
C.dependent.is_discrete
C.dependent.event_dim
C.dependent.check(1)
C.Constraint().check(1)
C.independent(C.real,-1)
C.independent(C.real,1).check(torch.ones(()))
C.independent(C.real,1).check(torch.ones(2,3))
C.cat([1])
C.stack([C.real,C.positive],1).check(torch.tensor([[1.,-1.],[2.,3.]]))
C.stack([C.real,C.positive],5).check(torch.tensor([[1.,-1.],[2.,3.]]))
C.cat([C.real,C.positive],1,[1,2]).check(torch.tensor([[1.,-1.,2.],[2.,3.,4.]]))
C.cat([C.real,C.positive],1,[1,2,3])
C.is_dependent(C.dependent)
C.is_dependent(D.Uniform.support)
C.is_dependent(C.real)
C.symmetric.check(torch.ones(2,3))
C.positive_definite.check(torch.ones(2,2))
C.positive_semidefinite.check(torch.ones(2,2))
C.positive_definite.check(torch.ones(3,2,3))
C.positive_definite.check(torch.eye(3).expand(2,3,3))
C.corr_cholesky.check(torch.eye(3))
C.multinomial(3).check(T([[1,2],[3,1],[-1,4]]))
[(c, c.is_discrete, c.event_dim) for c in (C.boolean, C.one_hot, C.integer_interval(0, 3), C.half_open_interval(0, 1), C.less_than(2), C.multinomial(3), C.simplex, C.stack([C.real, C.positive]), C.cat([C.real, C.positive]), C.independent(C.real, 2), C.lower_cholesky, C.greater_than_eq(T(1.0)), C.interval(T([1.0, 2.0]), 3), C.dependent(is_discrete=True, event_dim=1), D.Uniform.support, C.real_vector, C.corr_cholesky, C.MixtureSameFamilyConstraint(C.real), C.positive_semidefinite)]
[c.check(T([[-1.0, 0.0, 0.5], [1.0, 2.0, float('nan')]])) for c in (C.boolean, C.real, C.positive, C.nonnegative, C.unit_interval, C.half_open_interval(0, 1), C.less_than(2), C.nonnegative_integer, C.positive_integer, C.integer_interval(0, 1), C.simplex, C.one_hot, C.real_vector)]
""".strip().split("\n")

REGISTRY = r"""
D.biject_to(C.lower_triangular)
D.biject_to(3)
D.transform_to(C.symmetric)
[(D.biject_to(c), D.transform_to(c)) for c in (C.real, C.positive, C.nonnegative, C.greater_than(2.0), C.less_than(2.0), C.unit_interval, C.half_open_interval(1, 3))]
D.biject_to(C.lower_cholesky)
D.biject_to(C.positive_definite)
D.transform_to.register(3, lambda c: 1)
D.biject_to(C.boolean)
D.Distribution.set_default_validate_args(3)
""".strip().split("\n")
