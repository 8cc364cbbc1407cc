"""Updates with `differentiable=True`: derivatives with respect to parameters, gradients, options and state."""

import itertools

import pytest

import adjoint as torch
from adjoint import optim

# With these options, three steps run all branches of the formulas.
CASES = {
    "SGD": {"lr": 0.3, "weight_decay": 0.1},
    "SGD with momentum": {"lr": 0.3, "momentum": 0.5, "dampening": 0.1, "weight_decay": 0.1},
    "SGD with Nesterov momentum": {"lr": 0.3, "momentum": 0.5, "weight_decay": 0.1, "nesterov": True},
    "ASGD": {"lr": 0.3, "lambd": 0.1, "alpha": 0.5, "t0": 1, "weight_decay": 0.1},
    "Adam": {"lr": 0.3, "betas": (0.6, 0.7), "weight_decay": 0.1, "maximize": True},
    "Adam with amsgrad": {"lr": 0.3, "betas": (0.6, 0.7), "weight_decay": 0.1, "amsgrad": True},
    "AdamW": {"lr": 0.3, "betas": (0.6, 0.7), "weight_decay": 0.1},
    "Adamax": {"lr": 0.3, "betas": (0.6, 0.7), "weight_decay": 0.1},
    "NAdam": {"lr": 0.3, "betas": (0.6, 0.7), "weight_decay": 0.1, "momentum_decay": 0.05},
    "NAdam with decoupled decay": {"lr": 0.3, "weight_decay": 0.1, "decoupled_weight_decay": True},
    "RAdam": {"lr": 0.3, "betas": (0.6, 0.7), "weight_decay": 0.1},
    "RAdam with decoupled decay": {
        "lr": 0.3,
        "betas": (0.6, 0.95),
        "weight_decay": 0.1,
        "decoupled_weight_decay": True,
    },
    "Adadelta": {"lr": 0.3, "rho": 0.6, "weight_decay": 0.1, "eps": 1e-2},
    "Adagrad": {"lr": 0.3, "lr_decay": 0.2, "weight_decay": 0.1, "eps": 1e-2},
    "RMSprop": {"lr": 0.3, "alpha": 0.6, "momentum": 0.5, "weight_decay": 0.1, "eps": 1e-2},
    "RMSprop, centered": {"lr": 0.3, "alpha": 0.6, "weight_decay": 0.1, "eps": 1e-2, "centered": True},
    "Rprop": {"lr": 0.3},
}


def differentiable_options(name):
    return [key for key, value in CASES[name].items() if key == "betas" or isinstance(value, float)]


OPTIONS = [(name, key) for name in CASES for key in (None, *differentiable_options(name))]


@pytest.fixture(autouse=True)
def double_precision():
    """Convert counts and products in the state to float64, for finite differences."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def optimizer_of(name, params, options):
    return getattr(optim, name.replace(",", "").split()[0])(params, **{**CASES[name], **options}, differentiable=True)


def drawn(dtype):
    torch.manual_seed(0)
    return [(torch.rand(2, dtype=dtype) + 0.2).requires_grad_() for _ in range(3)]


@pytest.mark.parametrize(
    ("name", "key", "dtype"),
    [
        pytest.param(*case, marks=pytest.mark.thorough if number % 3 else ())
        for number, case in enumerate(
            [(*pair, torch.float64) for pair in OPTIONS] + [(name, None, torch.complex128) for name in CASES]
        )
    ],
)
def test_three_steps_are_differentiated_by_parameters_gradients_and_options(name, key, dtype):
    tensors = [torch.tensor(value, requires_grad=True) for value in numbers(CASES[name][key])] if key else []

    def stepped(start, first, second, *option):
        param = start.clone()
        optimizer = optimizer_of(name, [param], {key: option if key == "betas" else option[0]} if key else {})
        for grad in (first, second, first):
            param.grad = grad.clone()
            optimizer.step()
        return param

    assert torch.autograd.gradcheck(stepped, (*drawn(dtype), *tensors), atol=1e-4)


def numbers(value):
    return value if isinstance(value, tuple) else (value,)


@pytest.mark.parametrize("name", [name for name in CASES if "Rprop" not in name])
def test_a_step_is_differentiated_by_the_state_before_it(name):
    """Test all tensors of the state, except the tensors that depend only on the step count."""
    start, first, second = drawn(torch.float64)
    example = start.detach().clone()
    example.grad = first.detach()
    optimizer = optimizer_of(name, [example], {})
    optimizer.step()
    before = {key: value.clone() for key, value in optimizer.state[example].items() if torch.is_tensor(value)}
    names = [key for key in before if key not in ("step", "mu")]

    def stepped(start, grad, *state):
        param = start.clone()
        param.grad = grad
        optimizer = optimizer_of(name, [param], {})
        held = {**before, **dict(zip(names, state, strict=True))}
        optimizer.state[param].update({key: value.clone() for key, value in held.items()})
        optimizer.step()
        return (param, *(value for value in optimizer.state[param].values() if value.requires_grad))

    assert torch.autograd.gradcheck(
        stepped, (start, second, *(before[key].requires_grad_() for key in names)), atol=1e-4
    )


@pytest.mark.parametrize("name", ["SGD with momentum", "Adam with amsgrad", "AdamW", "NAdam", "RMSprop, centered"])
def test_a_loss_after_steps_is_differentiated_by_all_options(name):
    """The gradients come from a loss, with `create_graph`. The learning rate may be a tensor of one element."""
    keys = [key for key in differentiable_options(name) if key != "betas"]
    tensors = [torch.tensor([CASES[name][key]], requires_grad=True) for key in keys]

    def trained(start, *options):
        param = start.clone()
        optimizer = optimizer_of(name, [param], dict(zip(keys, options, strict=True)))
        for _ in range(2):
            loss = (param.sum() - 2).square()
            (param.grad,) = torch.autograd.grad(loss, param, create_graph=True)
            optimizer.step()
            optimizer.zero_grad()
        return (param.sum() - 2).square()

    assert torch.autograd.gradcheck(trained, (drawn(torch.float64)[0], *tensors), atol=1e-4)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
def test_a_recorded_step_equals_an_ordinary_one(name, dtype):
    results = []
    for differentiable, as_tensor in itertools.product((False, True), repeat=2):
        param, first, second = (tensor.detach() for tensor in drawn(dtype))
        options = {**CASES[name], "differentiable": differentiable}
        if as_tensor:
            options["lr"] = torch.tensor(options["lr"], requires_grad=differentiable)
        optimizer = getattr(optim, name.replace(",", "").split()[0])([param], **options)
        for grad in (first, second, first):
            param.grad = grad.clone()
            optimizer.step()
        results.append(param.detach())
    for result in results[1:]:
        torch.testing.assert_close(result, results[0])


@pytest.mark.parametrize(
    ("name", "numbers"), [("Adam", "step"), ("Adagrad", "step"), ("NAdam", "step mu_product"), ("ASGD", "step eta mu")]
)
def test_numbers_in_the_state_are_of_the_default_dtype_if_that_is_float64(name, numbers):
    for default, fused, expected in [
        (torch.float64, False, torch.float64),
        (torch.float32, False, torch.float32),
        *([(torch.float64, True, torch.float32)] if name in ("Adam", "Adagrad") else []),
    ]:
        torch.set_default_dtype(default)
        param = torch.ones(2)
        param.grad = torch.ones(2)
        optimizer = getattr(optim, name)([param], **({"fused": True} if fused else {}))
        optimizer.step()
        assert [optimizer.state[param][each].dtype for each in numbers.split()] == [expected] * len(numbers.split())
        saved = optimizer.state_dict()
        saved["state"][0].update(dict.fromkeys(numbers.split(), 1))
        optimizer.load_state_dict(saved)
        assert {optimizer.state[param][each].dtype for each in numbers.split()} == {expected}


@pytest.mark.parametrize(("dtype", "device"), [(torch.complex64, "cpu"), (torch.int64, "cpu"), (torch.float32, "meta")])
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad"])
def test_fused_steps_are_of_floating_point_parameters(name, dtype, device):
    param = torch.ones(2, dtype=dtype, device=device)
    param.grad = torch.ones_like(param)
    optimizer = getattr(optim, name)([param], fused=True)
    with pytest.raises(RuntimeError, match=f"floating point Tensors of supported devices: .* but {dtype} and {device}"):
        optimizer.step()
