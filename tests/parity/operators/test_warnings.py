"""No sample of PyTorch's operators causes a warning of NumPy, even with special numbers.

Programs may turn warnings into errors.
"""

import warnings

import pytest

torch = pytest.importorskip("torch")

from torch.testing._internal.common_methods_invocations import op_db

from tests.parity.candidate import candidate
from tests.parity.conversion import Converter

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch warns while it creates samples

OPS = [op for op in op_db if not op.name.startswith("sparse.")]  # samples in compressed layouts are not converted

SPECIAL = [float("nan"), float("inf"), -float("inf"), 0.0, 3e38, -1e-40]


def special(value):
    """Return a tensor in which every third element is a special number, and return other values unchanged."""
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided or not value.is_floating_point():
        return value
    place = torch.arange(value.numel()).reshape(value.shape)
    numbers = torch.tensor(SPECIAL, dtype=value.dtype)[place % len(SPECIAL)]
    return torch.where(place % 3 == 0, numbers, value.detach())


def function_of(op):
    function = candidate
    for name in op.name.split("."):
        function = getattr(function, name, None)
    return function


def calls(op):
    """Return the arguments of the samples, unchanged and with special numbers."""
    convert = Converter(candidate)
    for dtype in (torch.float32, torch.complex64, torch.int64):
        samples = op.sample_inputs("cpu", dtype) if dtype in op.dtypes else ()
        for sample in list(samples)[:12]:
            given = (sample.input, *sample.args)
            for values in (given, tuple(map(special, given))):
                yield convert(values), convert(dict(sample.kwargs))


def check(op):
    function = function_of(op)
    if function is None:
        pytest.skip("not a public function by this name")
    for args, keywords in calls(op):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for kind in (RuntimeWarning, DeprecationWarning):
                warnings.simplefilter("error", kind)
            try:
                function(*args, **keywords)
            except Warning:
                raise
            except Exception:  # other tests compare the errors
                continue


def named(op):
    return f"{op.name} {op.variant_test_name}".strip()


@pytest.mark.thorough
@pytest.mark.parametrize("op", OPS, ids=named)
def test_samples_do_not_warn(op):
    check(op)


@pytest.mark.parametrize("op", OPS[::15], ids=named)
def test_some_samples_do_not_warn(op):
    check(op)


def test_the_test_sees_warnings(monkeypatch):
    def warns(*args, **keywords):
        warnings.warn("invalid value", RuntimeWarning, stacklevel=2)

    op = next(each for each in op_db if each.name == "exp")
    monkeypatch.setattr(candidate, "exp", warns)
    with pytest.raises(RuntimeWarning):
        check(op)
