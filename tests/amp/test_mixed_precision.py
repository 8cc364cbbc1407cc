"""Mixed precision: the dtypes in which functions compute, and scaled losses."""

import pytest

import adjoint as torch
import adjoint.nn.functional as F
from adjoint import nn

A = torch.ones(3, 3)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda: A @ A, torch.bfloat16),
        (lambda: F.linear(A, A), torch.bfloat16),
        (lambda: torch.einsum("ij,jk->ik", A, A), torch.bfloat16),
        (lambda: nn.MultiheadAttention(4, 2)(*[torch.ones(2, 4)] * 3)[0], torch.bfloat16),
        (lambda: F.mse_loss(A.bfloat16(), A.bfloat16()), torch.float32),
        (lambda: A.bfloat16().prod(), torch.float32),
        (lambda: torch.cat([A, A.bfloat16()]), torch.float32),
        (lambda: A.bfloat16() + A.bfloat16(), torch.bfloat16),
        (lambda: A.double() @ A.double(), torch.float64),
        (lambda: A + 1, torch.float32),
    ],
)
def test_types_within_autocast(function, expected):
    with torch.autocast("cpu"):
        assert function().dtype is expected


def test_autocast_is_left_and_nested():
    with torch.autocast("cpu", dtype=torch.float16):
        assert torch.is_autocast_enabled("cpu")
        assert (A @ A).dtype is torch.float16
        with torch.autocast("cpu", enabled=False):
            assert (A @ A).dtype is torch.float32
        assert (A @ A).dtype is torch.float16
    assert not torch.is_autocast_enabled("cpu")
    assert (A @ A).dtype is torch.float32

    @torch.autocast("cpu")
    def product():
        return A @ A

    assert product().dtype is torch.bfloat16
    with pytest.raises(ZeroDivisionError), torch.autocast("cpu"):
        1 / 0
    assert not torch.is_autocast_enabled("cpu")


def test_gradients_have_the_type_of_parameters_which_are_cast_once():
    layer = nn.Linear(3, 2)
    with torch.autocast("cpu"):
        first, second = layer(A), layer(A)
        loss = F.cross_entropy(first + second, torch.tensor([0, 1, 0]))
    assert loss.dtype is torch.float32
    loss.backward()
    assert layer.weight.grad.dtype is torch.float32


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers(name):
    x = torch.rand(5, 3, 4, requires_grad=True)
    layer = getattr(torch.nn, name)(4, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output, _ = layer(x)
    output.float().sum().backward()
    grads = [x.grad, *(parameter.grad for parameter in layer.parameters())]
    x.grad = None
    layer.zero_grad()
    layer(x)[0].sum().backward()
    for grad, expected in zip(grads, [x.grad, *(parameter.grad for parameter in layer.parameters())], strict=True):
        torch.testing.assert_close(grad, expected, rtol=0.05, atol=0.05)


def test_other_devices_are_warned_of():
    with pytest.warns(UserWarning, match="CUDA is not available. Disabling"), torch.autocast("cuda"):
        assert (A @ A).dtype is torch.float32
    with pytest.warns(UserWarning, match="target dtype is not supported"), torch.autocast("cpu", dtype=torch.float64):
        pass


def test_custom_functions_run_backward_with_the_autocast_of_forward():
    seen = []

    class Double(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu")
        def forward(ctx, x):
            seen.append(torch.is_autocast_enabled("cpu"))
            return x * 2

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            seen.append(torch.is_autocast_enabled("cpu"))
            return grad * 2

    x = torch.ones(2, requires_grad=True)
    with torch.autocast("cpu"):
        y = Double.apply(x)
    y.sum().backward()
    assert seen == [True, True]


def test_a_scaler_leaves_out_steps_with_infinite_gradients():
    weight = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.5)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=1)
    scaler.scale(weight.sum() * float("inf")).backward()
    assert scaler.step(optimizer) is None
    scaler.update()
    assert (weight.item(), scaler.get_scale()) == (1.0, 2.0)
    optimizer.zero_grad()
    scaler.scale(weight.sum()).backward()
    scaler.unscale_(optimizer)
    assert weight.grad.item() == 1.0
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert (weight.item(), scaler.get_scale()) == (0.5, 4.0)
    other = torch.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other._get_growth_tracker() == scaler.state_dict()["_growth_tracker"]
    assert other.get_scale() == 4.0


class Recording(torch.optim.Optimizer):
    """An optimizer that unscales gradients itself."""

    def __init__(self, params):
        super().__init__(params, {})
        self._step_supports_amp_scaling, self.seen = True, []

    def step(self, closure=None):
        self.seen.append((self.grad_scale and float(self.grad_scale), float(self.found_inf)))


def test_a_scaler_scales_nested_tensors_and_leaves_the_letters_of_a_string_alone():
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    one, (two,) = scaler.scale([A, (A * 2,)])
    assert (one == 4).all()
    assert (two == 8).all()
    assert isinstance(scaler.scale("text"), map)
    with pytest.raises(ValueError, match="outputs must be a Tensor or an iterable of Tensors"):
        scaler.scale([1])


@pytest.mark.parametrize("scale", [torch.ones(2), torch.ones(1, requires_grad=True)])
def test_a_new_scale_is_one_number(scale):
    with pytest.raises(AssertionError, match="new_scale should be a float or a 1-element"):
        torch.amp.GradScaler("cpu").update(scale)


def test_an_optimizer_that_unscales_itself_receives_the_scale_and_what_was_found():
    weight = torch.ones(2, requires_grad=True)
    optimizer, scaler = Recording([weight]), torch.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale((weight * 3).sum()).backward()
    scaler.step(optimizer)
    assert weight.grad.tolist() == [12.0, 12.0] and not hasattr(optimizer, "grad_scale")
    scaler.update()
    weight.grad.fill_(torch.inf)
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert optimizer.seen == [(4.0, 0.0), (None, 1.0)]
    assert scaler.get_scale() == 2.0


def test_an_optimizer_whose_step_takes_the_scaler_receives_it_with_a_warning():
    class Taking(Recording):
        def step(self, closure=None, *, grad_scaler=None):
            self.seen.append(grad_scaler)

    weight = torch.ones(1, requires_grad=True)
    optimizer, scaler = Taking([weight]), torch.amp.GradScaler("cpu")
    scaler.scale(weight.sum()).backward()
    with pytest.warns(FutureWarning, match="stop passing itself"):
        scaler.step(optimizer)
    assert optimizer.seen == [scaler]


def test_scalers_of_one_device_are_deprecated():
    with pytest.warns(FutureWarning, match=r"`torch.cpu.amp.GradScaler\(args...\)` is deprecated"):
        torch.cpu.amp.GradScaler()


def test_joining_other_half_precisions_is_an_error():
    with torch.autocast("cpu", torch.float16), pytest.raises(RuntimeError, match="Unexpected floating ScalarType"):
        torch.cat([torch.ones(2, dtype=torch.bfloat16), torch.ones(2)])
