"""Layers: printed form, initial values, and results."""

import cmath
import math

import pytest

import adjoint as torch

nn = torch.nn
F = torch.nn.functional


@pytest.mark.parametrize(
    ("layer", "printed"),
    [
        (lambda: nn.Linear(3, 4, bias=False), "Linear(in_features=3, out_features=4, bias=False)"),
        (lambda: nn.Conv2d(1, 2, 3), "Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1))"),
        (
            lambda: nn.Conv2d(2, 4, (3, 2), 2, 1, 2, 2, False, "circular"),
            (
                "Conv2d(2, 4, kernel_size=(3, 2), stride=(2, 2), padding=(1, 1), dilation=(2, 2), groups=2, "
                "bias=False, padding_mode=circular)"
            ),
        ),
        (
            lambda: nn.BatchNorm2d(3, bias=False),
            "BatchNorm2d(3, eps=1e-05, momentum=0.1, affine=True, bias=False, track_running_stats=True)",
        ),
        (lambda: nn.LayerNorm([3, 4]), "LayerNorm((3, 4), eps=1e-05, elementwise_affine=True, bias=True)"),
        (lambda: nn.Embedding(4, 3, -1, 2.0), "Embedding(4, 3, padding_idx=3, max_norm=2.0)"),
        (lambda: nn.Dropout(0.2), "Dropout(p=0.2, inplace=False)"),
        (
            lambda: nn.MaxPool2d(2, ceil_mode=True),
            "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=True)",
        ),
        (lambda: nn.Flatten(), "Flatten(start_dim=1, end_dim=-1)"),
        (lambda: nn.GELU("tanh"), "GELU(approximate='tanh')"),
        (lambda: nn.LeakyReLU(0.1, True), "LeakyReLU(negative_slope=0.1, inplace=True)"),
        (lambda: nn.LSTM(2, 3, 2, bidirectional=True), "LSTM(2, 3, num_layers=2, bidirectional=True)"),
        (lambda: nn.CrossEntropyLoss(), "CrossEntropyLoss()"),
        (lambda: nn.ZeroPad2d(1), "ZeroPad2d((1, 1, 1, 1))"),
    ],
)
def test_printed_form(layer, printed):
    assert repr(layer()) == printed


@pytest.mark.parametrize(
    ("layer", "values"),
    [
        (
            lambda: nn.Linear(3, 2),
            [-0.00432251766, 0.309715837, -0.475185335, -0.424894601, -0.222368971, 0.154820725]
            + [-0.0114391446, 0.457774937],
        ),
        (
            lambda: nn.Conv2d(1, 1, 2),
            [-0.003743410110473633, 0.26822179555892944, -0.4115225672721863, -0.3679695129394531]
            + [-0.19257718324661255],
        ),
        (
            lambda: nn.Embedding(2, 2),
            [1.5409960746765137, -0.293428897857666, -2.1787893772125244, 0.5684312582015991],
        ),
        (
            lambda: nn.GRU(1, 1),
            [-0.007486820220947266, 0.5364435911178589, -0.8230451345443726]
            + [-0.7359390258789062, -0.3851543664932251, 0.26815736293792725]
            + [-0.019813179969787598, 0.7928894758224487, -0.08874404430389404]
            + [0.2646125555038452, -0.30221307277679443, -0.1965653896331787],
        ),
    ],
)
def test_a_seed_gives_the_weights_that_pytorch_draws(layer, values):
    torch.manual_seed(0)
    drawn = [value for parameter in layer().parameters() for value in parameter.flatten().tolist()]
    assert drawn == pytest.approx(values, rel=1e-7)


def test_a_seed_gives_the_mask_that_pytorch_draws():
    torch.manual_seed(0)
    assert nn.Dropout(0.5)(torch.ones(8)).tolist() == [0, 0, 2, 0, 0, 0, 2, 2]


def test_linear_computes_and_differentiates():
    layer = nn.Linear(2, 1)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[2.0, 3.0]]))
        layer.bias.fill_(1)
    x = torch.tensor([[1.0, 10.0]], requires_grad=True)
    output = layer(x)
    output.sum().backward()
    assert output.item() == 33
    assert layer.weight.grad.tolist() == [[1, 10]]
    assert layer.bias.grad.tolist() == [1]
    assert x.grad.tolist() == [[2, 3]]


def test_a_weight_that_is_kept_elsewhere_is_found():
    layer = nn.Linear(2, 1, bias=False)
    del layer.weight
    layer.weight = torch.tensor([[1.0, 1.0]])
    assert layer(torch.tensor([3.0, 4.0])).tolist() == [7]


def test_batch_norm_learns_its_statistics():
    norm = nn.BatchNorm1d(1, momentum=0.5)
    x = torch.tensor([[0.0], [2.0], [4.0]])
    output = norm(x)
    assert output.mean().item() == pytest.approx(0, abs=1e-6)
    assert norm.running_mean.item() == pytest.approx(1)
    assert norm.running_var.item() == pytest.approx(0.5 + 0.5 * 4)
    assert norm.num_batches_tracked.item() == 1
    norm.eval()
    assert norm(x)[0].item() == pytest.approx((0 - 1) / math.sqrt(2.5 + 1e-5))
    with pytest.raises(ValueError, match="Expected more than 1 value per channel when training"):
        norm.train()(torch.ones(1, 1))
    with pytest.raises(ValueError, match=r"expected 2D or 3D input \(got 4D input\)"):
        norm(torch.ones(1, 1, 1, 1))


def test_cumulative_batch_norm():
    norm = nn.BatchNorm1d(1, momentum=None)
    for value in (1.0, 5.0, 9.0):
        norm(torch.tensor([[value], [value + 2]]))
    assert norm.running_mean.item() == pytest.approx(6)


def test_dropout_does_nothing_in_evaluation():
    x = torch.ones(100)
    layer = nn.Dropout(0.9)
    assert 0 < (layer(x) == 0).sum() < 100
    assert layer.eval()(x).tolist() == x.tolist()


def test_embedding_with_padding():
    table = nn.Embedding(4, 2, padding_idx=1)
    assert (table.weight[1] == 0).all()
    table(torch.tensor([0, 1, 1, 3])).sum().backward()
    assert table.weight.grad.sum(1).tolist() == [2, 0, 0, 2]


def test_embedding_limits_norms():
    table = nn.Embedding.from_pretrained(torch.tensor([[3.0, 4.0], [30.0, 40.0]]), max_norm=1.0)
    assert not table.weight.requires_grad
    assert table(torch.tensor([0])).norm().item() == pytest.approx(1, abs=1e-5)
    assert table.weight[1].tolist() == [30, 40]


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_a_reversed_direction_is_the_reversed_sequence(kind):
    torch.manual_seed(0)
    both = kind(2, 3, bidirectional=True)
    one = kind(2, 3)
    one.load_state_dict({name: both.state_dict()[name + "_reverse"] for name in one.state_dict()})
    x = torch.randn(5, 4, 2)
    torch_output, _ = both(x)
    alone, _ = one(x.flip(0))
    assert torch.allclose(torch_output[..., 3:], alone.flip(0), atol=1e-6)


@pytest.mark.parametrize(("cell", "network"), [(nn.RNNCell, nn.RNN), (nn.GRUCell, nn.GRU), (nn.LSTMCell, nn.LSTM)])
def test_a_network_is_its_cell_step_by_step(cell, network):
    torch.manual_seed(0)
    step, whole = cell(2, 3), network(2, 3)
    whole.load_state_dict({name + "_l0": value for name, value in step.state_dict().items()})
    x = torch.randn(4, 5, 2)
    state = None
    for moment in x:
        state = step(moment, state)
    last = state[0] if isinstance(state, tuple) else state
    assert torch.allclose(whole(x)[0][-1], last, atol=1e-6)


def test_pixel_shuffle_and_back():
    x = torch.arange(32.0).reshape(1, 8, 2, 2)
    assert F.pixel_shuffle(x, 2)[0, 0, 0].tolist() == [0, 4, 1, 5]
    assert (F.pixel_unshuffle(F.pixel_shuffle(x, 2), 2) == x).all()


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("reflect", [3, 2, 1, 2, 3, 2]), ("replicate", [1, 1, 1, 2, 3, 3]), ("circular", [2, 3, 1, 2, 3, 1])],
)
def test_padding(mode, expected):
    x = torch.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
    padded = F.pad(x, (2, 1), mode)
    assert padded[0].tolist() == expected
    padded.sum().backward()
    assert x.grad[0].tolist() == [expected.count(value) for value in (1, 2, 3)]


def test_attention_is_a_weighted_mean():
    q = torch.zeros(1, 2, 4)
    v = torch.tensor([[[1.0], [3.0]]])
    assert F.scaled_dot_product_attention(q, q, v)[0].flatten().tolist() == [2, 2]
    assert F.scaled_dot_product_attention(q, q, v, is_causal=True)[0].flatten().tolist() == [1, 2]


def test_losses_warn_of_broadcasting():
    with pytest.warns(UserWarning, match="Using a target size"):
        F.mse_loss(torch.ones(2, 3), torch.ones(2, 1))
    with pytest.raises(ValueError, match="zz is not a valid value for reduction"):
        F.mse_loss(torch.ones(2), torch.ones(2), reduction="zz")


def test_old_reduction_arguments():
    with pytest.warns(UserWarning, match="reduction='sum'"):
        assert nn.MSELoss(size_average=False).reduction == "sum"


def test_in_place_activations_write_into_their_input():
    for layer in (nn.ReLU(True), nn.ELU(inplace=True), nn.SiLU(True), nn.Hardtanh(inplace=True), nn.SELU(True)):
        x = torch.tensor([-1.0, 2.0])
        assert layer(x) is x


def test_module_calls_carry_nothing_over():
    layer = nn.Linear(2, 2)
    first = layer(torch.ones(1, 2))
    layer(torch.zeros(1, 2))
    first.sum().backward()
    assert layer.weight.grad.tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("batch_first", [False, True])
def test_outputs_of_recurrent_layers_may_be_changed_in_place(name, batch_first):
    layer = getattr(torch.nn, name)(3, 2, batch_first=batch_first)
    x = torch.rand(4, 4, 3, requires_grad=True)
    kept = torch.ones(4, 4, 1)
    kept[:, 2:] = 0
    (layer(x)[0] * kept).sum().backward()
    expected, x.grad = x.grad, None
    output, _ = layer(x)
    output[:, 2:] = 0
    output.sum().backward()
    torch.testing.assert_close(x.grad, expected)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_soft_margin_loss_of_complex_scores(reduction):
    scores = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex128)
    target = torch.tensor([1.0, -1.0], dtype=torch.float64)
    expected = torch.tensor(
        [cmath.log(1 + cmath.exp(-(1 + 2j))), cmath.log(1 + cmath.exp(3 - 1j))], dtype=torch.complex128
    )
    found = torch.nn.functional.soft_margin_loss(scores, target, reduction=reduction)
    torch.testing.assert_close(found, expected if reduction == "none" else getattr(expected, reduction)())
    with pytest.raises(RuntimeError, match="soft_margin_loss does not support automatic differentiation"):
        torch.nn.functional.soft_margin_loss(scores.requires_grad_(), target, reduction=reduction)
    with pytest.raises(RuntimeError, match="result type ComplexDouble can't be cast to the desired output type Double"):
        torch.nn.functional.soft_margin_loss(target, scores.detach())


def test_rearranged_and_pooled_images_keep_channels_last():
    images = torch.arange(2.0 * 8 * 6 * 6).reshape(2, 8, 6, 6)
    last = images.contiguous(memory_format=torch.channels_last)
    for function in (
        lambda x: (F.pixel_shuffle(x, 2),),
        lambda x: F.adaptive_max_pool2d(x, 4, return_indices=True),
        lambda x: F.adaptive_max_pool2d(x, 3, return_indices=True),
    ):
        for found, expected in zip(function(last), function(images), strict=True):
            assert found.is_contiguous(memory_format=torch.channels_last)
            assert expected.is_contiguous()
            assert torch.equal(found, expected)


def test_the_grid_of_an_image_with_one_pixel_warns():
    with pytest.warns(UserWarning, match="unit-size grids"):
        F.affine_grid(torch.eye(2, 3)[None], (1, 1, 2, 1), align_corners=True)
    with pytest.raises(ValueError, match=r"positive output size\. Got \[1, 1, 0, 2\]"):
        F.affine_grid(torch.eye(2, 3)[None], [1, 1, 0, 2], align_corners=True)


@pytest.mark.parametrize("hard", [False, True])
def test_gumbel_noise_is_drawn_in_the_order_of_the_elements(hard):
    logits = torch.rand(3, 4)
    results = []
    for given in (logits, logits.t().contiguous().t()):
        torch.manual_seed(0)
        results.append(torch.nn.functional.gumbel_softmax(given, hard=hard))
    assert torch.equal(*results)


def test_recurrent_layers_tell_the_size_of_their_hidden_state():
    layer = nn.LSTM(3, 4, 2, batch_first=True, proj_size=2, bidirectional=True)
    assert layer.get_expected_hidden_size(torch.ones(5, 7, 3), None) == (4, 5, 2)
    assert layer.get_expected_hidden_size(torch.ones(6, 3), torch.tensor([4, 2])) == (4, 4, 2)
    layer.check_hidden_size(torch.ones(4, 5, 2), (4, 5, 2))
    with pytest.raises(RuntimeError, match=r"Expected hidden size \(4, 5, 2\), got \[1\]"):
        layer.check_hidden_size(torch.ones(1), (4, 5, 2))


@pytest.mark.parametrize("dtype", [torch.bool, torch.float32])
def test_attention_takes_a_mask_and_the_causal_mask_together(dtype):
    query, mask = torch.randn(1, 1, 3, 2), torch.tensor([[1, 0, 1], [1, 1, 0], [0, 1, 1]], dtype=dtype)
    both = mask.masked_fill(torch.ones(3, 3, dtype=torch.bool).triu(1), False if dtype is torch.bool else -math.inf)
    attention = F.scaled_dot_product_attention
    assert torch.equal(attention(query, query, query, mask, is_causal=True), attention(query, query, query, both))
    with pytest.raises(RuntimeError, match="should not be set when is_causal=True"):
        attention(query[0], query[0], query[0], mask, is_causal=True)
