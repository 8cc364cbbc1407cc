"""With filters that show warnings, NumPy's warnings about infinities and nan do not reach users.

With a filter that turns warnings into errors, the operator computes again without the warning.
"""

import warnings

import numpy
import pytest

import adjoint as torch

FUNCTIONS = {
    **{
        name: getattr(torch, name)
        for name in "sum mean acos asin acosh atanh cosh expm1 log10 digamma nan_to_num".split()
    },
    "dim 0": lambda x: x.sum(0),
    "dim 1": lambda x: x.reshape(2, -1).mean(1),
    "quantile": lambda x: x.quantile(0.3),
    "norm": lambda x: x.norm(),
    "std": lambda x: x.std(),
    "prod": lambda x: x.prod(),
    "dot": lambda x: x.dot(x.flip(0)),
    "softmax": lambda x: x.softmax(0),
    "maximum": lambda x: torch.maximum(x, x.flip(0)),
    "backward": lambda x: (x.clone().requires_grad_() * x.flip(0)).sum().backward(),
}


@pytest.mark.parametrize("size", [6, 300, 1000, 5000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_numpy_warns_nobody(name, dtype, size):
    pool = [numpy.inf, -numpy.inf, 3e38, -3e38, 1.0, 0.0]
    x = torch.from_numpy(numpy.random.default_rng(size).choice(pool, size)).to(dtype)
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        for _ in range(2):
            FUNCTIONS[name](x)
            FUNCTIONS[name](x.nan_to_num(nan=2.0))
    assert not [str(each.message) for each in shown]
