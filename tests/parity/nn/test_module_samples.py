"""PyTorch's own sample inputs for its modules and optimizers, run by both libraries."""

import re
import warnings

import numpy
import pytest

torch = pytest.importorskip("torch")

from torch.testing._internal.common_modules import module_db
from torch.testing._internal.common_optimizers import OptimizerErrorEnum, optim_db

from tests.parity.behaviour import plain
from tests.parity.candidate import candidate, seed
from tests.parity.comparison import is_tensor, results_differ
from tests.parity.conversion import Converter, from_array, to_array

pytestmark = pytest.mark.computed

MODULES = [info for info in module_db if hasattr(candidate.nn, info.module_cls.__name__)]
OPTIMIZERS = [
    info
    for info in optim_db
    if hasattr(candidate.optim, info.optim_cls.__name__)
    and info.optim_cls is not torch.optim.SparseAdam  # `test_sparse` tests this optimizer, which needs sparse gradients
]


def samples(info, training):
    """Return `(constructor arguments, forward arguments)` of each sample that both libraries accept."""
    torch.manual_seed(0)
    found = info.module_inputs_func(info, device="cpu", dtype=torch.float64, requires_grad=True, training=training)
    for sample in found:
        if sample.forward_input is None:
            continue
        arguments = (*sample.forward_input.args, *sample.forward_input.kwargs.values())
        if any(isinstance(value, torch.nn.utils.rnn.PackedSequence) for value in arguments):
            continue
        yield sample.constructor_input, sample.forward_input, sample.desc


def leaves(value):
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]


def evaluate(library, module, arguments):
    """Return the outputs and all gradients."""
    convert = Converter(library)
    args, kwargs = convert(arguments.args), convert(arguments.kwargs)
    seed(library, 0)
    outputs = [output for output in leaves(module(*args, **kwargs)) if is_tensor(output)]
    total = None
    for i, output in enumerate(outputs):
        if output.requires_grad and output.is_floating_point():
            weights = from_array(library, numpy.asarray(numpy.random.RandomState(i).randn(*output.shape)))
            part = (output * weights.to(output.dtype)).sum()
            total = part if total is None else total + part
    if total is not None:
        total.backward()
    grads = [tensor.grad for tensor in (*convert.tensors, *module.parameters()) if tensor.requires_grad]
    return [output.detach() for output in outputs], grads


@pytest.mark.parametrize("most", [24, pytest.param(None, marks=pytest.mark.thorough)], ids=["some", "all"])
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("info", MODULES, ids=lambda info: info.name)
def test_modules(info, training, most):
    count, given = 0, list(samples(info, training))
    if most is None and len(given) <= 24:
        pytest.skip("some are all")
    for constructor, forward, description in given[:: 1 + (len(given) - 1) // (most or len(given) or 1)]:
        modules = []
        for library in (candidate, torch):
            convert = Converter(library)
            kwargs = {key: convert(value) for key, value in constructor.kwargs.items()}
            kind = getattr(library.nn, info.module_cls.__name__)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                modules.append(kind(*convert(constructor.args), **kwargs).double().train(training))
        ours, theirs = modules
        assert plain(repr(ours)) == plain(repr(theirs))
        if hasattr(theirs, "initialize_parameters"):  # the first call of a lazy module draws its parameters
            theirs.initialize_parameters(*forward.args)
            theirs(*forward.args)
        ours.load_state_dict({k: from_array(candidate, to_array(v).copy()) for k, v in theirs.state_dict().items()})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            actual, expected = evaluate(candidate, ours, forward), evaluate(torch, theirs, forward)
        difference = results_differ(actual, expected)
        assert difference is None, f"{constructor} {forward} {description}: {difference}"
        state = ours.state_dict()
        for name, value in theirs.state_dict().items():
            assert results_differ(state[name], value) is None, name
        count += 1
    assert count or info.module_cls.__name__ == "ReLU6"


@pytest.mark.parametrize(
    "info", [info for info in MODULES if info.module_error_inputs_func is not None], ids=lambda info: info.name
)
def test_refusals(info):
    errors = info.module_error_inputs_func(info, device="cpu", dtype=torch.float64, requires_grad=False, training=True)
    kind = getattr(candidate.nn, info.module_cls.__name__)

    def build_and_call(built, called):
        convert = Converter(candidate)
        module = kind(*convert(built.args), **convert(built.kwargs))
        if "dtype" not in built.kwargs and any(True for _ in module.parameters()):
            module = module.double()  # the module must have the dtype of the inputs, unless the sample sets the dtype
        return called is None or module(*convert(called.args), **convert(called.kwargs))

    for error in errors:
        sample = error.module_error_input
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # Python warns of future meanings of regular expressions
            expected = re.compile(error.error_regex)
        with pytest.raises(error.error_type, match=expected):
            build_and_call(sample.constructor_input, sample.forward_input)


def problem(library, bias=(3,)):
    random = numpy.random.RandomState(3)
    params = [library.nn.Parameter(from_array(library, random.randn(*shape))) for shape in ((4, 3), bias)]
    inputs = from_array(library, random.randn(6, 4))
    return params, lambda: ((inputs @ params[0] + params[1]).tanh() ** 2).mean()


@pytest.mark.parametrize("info", OPTIMIZERS, ids=lambda info: info.name)
@pytest.mark.long_cases
def test_optimizers(info):
    for sample in info.optim_inputs_func(device="cpu"):
        results = []
        for library in (candidate, torch):
            params, loss = problem(library, (1, 3) if info.optim_cls is torch.optim.Muon else (3,))
            convert = Converter(library)
            optimizer = getattr(library.optim, info.optim_cls.__name__)(params, **convert(dict(sample.kwargs)))

            def closure(optimizer=optimizer, loss=loss):
                optimizer.zero_grad()
                value = loss()
                value.backward()
                return value

            try:
                for _ in range(5):
                    optimizer.step(closure)
            except AssertionError as error:  # a CPU cannot capture steps
                results.append(([], str(error)))
                continue
            results.append(([to_array(param) for param in params], plain(repr(optimizer))))
        (actual, text), (expected, expected_text) = results
        assert text == expected_text, sample
        for ours, theirs in zip(actual, expected, strict=True):
            # Muon multiplies matrices in bfloat16, which has eight bits, and sums in another order.
            digits = 1e-4 if info.optim_cls is torch.optim.Muon else 1e-6
            numpy.testing.assert_allclose(ours, theirs, digits, 1e-9, err_msg=str(sample))


@pytest.mark.parametrize("info", OPTIMIZERS, ids=lambda info: info.name)
def test_refusals_of_optimizers(info):
    if info.optim_error_inputs_func is None:
        pytest.skip("PyTorch has no samples of errors")
    kind = getattr(candidate.optim, info.optim_cls.__name__)

    def build(params, kwargs, stepped):
        convert = Converter(candidate)
        params = [candidate.nn.Parameter(candidate.ones(2))] if params is None else convert(params)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            optimizer = kind(params, **convert(dict(kwargs)))
        if stepped:
            for param in optimizer.param_groups[0]["params"]:
                param.grad = candidate.ones_like(param)
            optimizer.step()

    for error in info.optim_error_inputs_func(device="cpu", dtype=torch.float32):
        sample = error.optimizer_error_input
        with pytest.raises(error.error_type) as raised:
            build(sample.params, sample.kwargs, error.error_on is OptimizerErrorEnum.STEP_ERROR)
        message = plain(str(raised.value))
        assert error.error_regex in message or re.search(error.error_regex, message), sample
