"""Initial values: their variance, their structure, and refused arguments."""

import math

import pytest

import adjoint as torch

init = torch.nn.init


@pytest.mark.parametrize(
    ("fill", "std"),
    [
        (lambda t: init.xavier_uniform_(t, 2.0), 2 * math.sqrt(2 / 300)),
        (lambda t: init.xavier_normal_(t), math.sqrt(2 / 300)),
        (lambda t: init.kaiming_uniform_(t, nonlinearity="relu"), math.sqrt(2 / 100)),
        (lambda t: init.kaiming_normal_(t, mode="fan_out", nonlinearity="linear"), math.sqrt(1 / 200)),
        (lambda t: init.normal_(t, 0.0, 3.0), 3),
        (lambda t: init.uniform_(t, -1, 1), 1 / math.sqrt(3)),
    ],
)
def test_standard_deviation_of_initial_values(fill, std):
    torch.manual_seed(1)
    tensor = fill(torch.empty(200, 100))
    assert tensor.std().item() == pytest.approx(std, rel=0.03)
    assert tensor.mean().item() == pytest.approx(0, abs=std / 20)


@pytest.mark.parametrize(("low", "high"), [(-2.0, 2.0), (-1.0, 0.5), (0.5, 1.0), (2.0, 3.0)])
def test_truncation(low, high):
    torch.manual_seed(1)
    values = init.trunc_normal_(torch.empty(2000), a=low, b=high)
    assert low <= values.min().item() <= values.max().item() <= high

    def density(x):
        return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)

    mass = (math.erf(high / math.sqrt(2)) - math.erf(low / math.sqrt(2))) / 2
    assert values.mean().item() == pytest.approx((density(low) - density(high)) / mass, abs=0.05)


def test_structured_initial_values():
    assert init.eye_(torch.empty(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert init.constant_(torch.empty(2), 5).tolist() == [5, 5]
    assert init.zeros_(torch.ones(2)).tolist() == [0, 0]
    assert init.ones_(torch.zeros(2)).tolist() == [1, 1]
    kernel = init.dirac_(torch.empty(2, 2, 3))
    signal = torch.randn(1, 2, 5)
    assert torch.allclose(torch.nn.functional.conv1d(signal, kernel, padding=1), signal)
    sparse = init.sparse_(torch.empty(10, 4), 0.3)
    assert (sparse == 0).sum(0).tolist() == [3, 3, 3, 3]


def test_orthogonal():
    tall = init.orthogonal_(torch.empty(5, 3, dtype=torch.float64), gain=2.0)
    assert torch.allclose(tall.T @ tall, 4 * torch.eye(3, dtype=torch.float64))


@pytest.mark.parametrize("shape", [(3, 7), (7, 3), (4, 4), (3, 2, 5)])
def test_an_orthogonal_matrix_is_the_factor_with_positive_diagonal_of_what_was_drawn(shape):
    torch.manual_seed(3)
    drawn = torch.randn(shape[0], torch.Size(shape[1:]).numel())
    state = torch.get_rng_state()
    torch.manual_seed(3)
    filled = init.orthogonal_(torch.empty(shape), gain=2).reshape(drawn.shape) / 2
    assert torch.get_rng_state().equal(state)
    tall, q = (drawn.T, filled.T) if drawn.shape[0] < drawn.shape[1] else (drawn, filled)
    triangle = q.T @ tall
    assert torch.allclose(triangle, triangle.triu(), atol=1e-5)
    assert bool((triangle.diagonal() > 0).all())


def test_the_same_seed_or_generator_gives_the_same_values():
    drawn = []
    for _ in range(2):
        generator = torch.Generator()
        generator.manual_seed(5)
        drawn.append(init.kaiming_uniform_(torch.empty(4, 4), generator=generator).tolist())
    assert drawn[0] == drawn[1]


def test_parameters_are_filled_unrecorded():
    parameter = torch.nn.Parameter(torch.empty(2, 2))
    assert init.xavier_normal_(parameter) is parameter
    assert parameter.is_leaf


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: init.calculate_gain("gelu"), ValueError, "Unsupported nonlinearity gelu"),
        (lambda: init.xavier_uniform_(torch.empty(3)), ValueError, "fewer than 2 dimensions"),
        (lambda: init.kaiming_normal_(torch.empty(3, 3), mode="x"), ValueError, "Mode x not supported"),
        (lambda: init.eye_(torch.empty(3)), ValueError, "Only tensors with 2 dimensions are supported"),
        (lambda: init.dirac_(torch.empty(3, 3)), ValueError, "Only tensors with 3, 4, or 5 dimensions are supported"),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_empty_tensors_are_left_alone():
    with pytest.warns(UserWarning, match="Initializing zero-element tensors is a no-op"):
        init.kaiming_uniform_(torch.empty(0, 3))


def test_old_names_warn():
    with pytest.warns(FutureWarning, match="`nn.init.uniform` is now deprecated"):
        init.uniform(torch.empty(2))
