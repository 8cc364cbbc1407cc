"""Compiled modules have the same results, gradients, second gradients, statistics and random numbers as modules."""

import pytest

import adjoint as torch

from .comparison import assert_as_eager

nn = torch.nn

pytestmark = pytest.mark.filterwarnings("ignore")


def drawn(*shapes):
    """Draw inputs of these shapes, different in each call. A pair (shape, n) gives integers below n."""

    def inputs(number):
        return [
            torch.randint(0, shape[1], shape[0])
            if isinstance(shape[0], tuple)
            else torch.randn(*shape, requires_grad=True)
            for shape in shapes
        ]

    return inputs


MODULES = {
    "Linear": (lambda: nn.Linear(4, 3), drawn((5, 4))),
    "Linear without bias": (lambda: nn.Linear(4, 3, bias=False), drawn((2, 5, 4))),
    "Bilinear": (lambda: nn.Bilinear(3, 4, 2), drawn((5, 3), (5, 4))),
    "Identity": (lambda: nn.Identity(), drawn((3,))),
    "Flatten": (lambda: nn.Flatten(), drawn((2, 3, 4))),
    "Unflatten": (lambda: nn.Unflatten(1, (2, 2)), drawn((2, 4))),
    "Sequential": (lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), drawn((5, 4))),
    "Conv1d": (lambda: nn.Conv1d(2, 3, 3, padding=1), drawn((2, 2, 7))),
    "Conv2d": (lambda: nn.Conv2d(2, 4, 3, stride=2, groups=2), drawn((2, 2, 7, 7))),
    "Conv2d padding same": (lambda: nn.Conv2d(2, 3, 4, padding="same"), drawn((1, 2, 6, 6))),
    "Conv2d circular": (lambda: nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular"), drawn((1, 2, 6, 6))),
    "Conv2d reflect": (lambda: nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect"), drawn((1, 2, 6, 6))),
    "Conv3d": (lambda: nn.Conv3d(1, 2, 2), drawn((1, 1, 4, 4, 4))),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(2, 3, 3), drawn((2, 2, 5))),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(2, 3, 3, stride=2), drawn((2, 2, 4, 4))),
    "MaxPool1d": (lambda: nn.MaxPool1d(2), drawn((2, 2, 6))),
    "MaxPool2d": (lambda: nn.MaxPool2d(2), drawn((2, 2, 6, 6))),
    "MaxPool2d with indices": (lambda: nn.MaxPool2d(2, return_indices=True), drawn((2, 2, 6, 6))),
    "AvgPool2d": (lambda: nn.AvgPool2d(3, padding=1), drawn((2, 2, 6, 6))),
    "AdaptiveAvgPool2d": (lambda: nn.AdaptiveAvgPool2d(2), drawn((2, 2, 5, 6))),
    "AdaptiveMaxPool2d": (lambda: nn.AdaptiveMaxPool2d(2), drawn((2, 2, 5, 6))),
    "LPPool2d": (lambda: nn.LPPool2d(2, 2), drawn((2, 2, 4, 4))),
    "FractionalMaxPool2d": (lambda: nn.FractionalMaxPool2d(2, 3), drawn((2, 2, 7, 7))),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(3), drawn((5, 3))),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(3), drawn((5, 3, 4, 4))),
    "BatchNorm2d cumulative": (lambda: nn.BatchNorm2d(3, momentum=None), drawn((5, 3, 4, 4))),
    "BatchNorm1d in evaluation": (lambda: nn.BatchNorm1d(3).eval(), drawn((5, 3))),
    "BatchNorm1d without statistics": (
        lambda: nn.BatchNorm1d(3, track_running_stats=False, affine=False),
        drawn((5, 3)),
    ),
    "InstanceNorm2d": (lambda: nn.InstanceNorm2d(3, affine=True, track_running_stats=True), drawn((2, 3, 4, 4))),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), drawn((3, 4, 5))),
    "LayerNorm": (lambda: nn.LayerNorm(4), drawn((3, 4))),
    "RMSNorm": (lambda: nn.RMSNorm(4), drawn((3, 4))),
    "LocalResponseNorm": (lambda: nn.LocalResponseNorm(2), drawn((2, 4, 3))),
    "CrossMapLRN2d": (lambda: nn.CrossMapLRN2d(2), drawn((2, 4, 3, 3))),
    "Embedding": (lambda: nn.Embedding(10, 4), drawn(((5,), 10))),
    "Embedding with padding": (lambda: nn.Embedding(10, 4, padding_idx=0, scale_grad_by_freq=True), drawn(((5,), 10))),
    "EmbeddingBag": (lambda: nn.EmbeddingBag(10, 4, mode="sum"), drawn(((3, 5), 10))),
    "EmbeddingBag with padding": (lambda: nn.EmbeddingBag(10, 4, padding_idx=0), drawn(((3, 5), 10))),
    "EmbeddingBag of maxima with padding": (
        lambda: nn.EmbeddingBag(5, 4, mode="max", padding_idx=0),
        drawn(((3, 5), 5)),
    ),
    "Dropout": (lambda: nn.Dropout(0.3), drawn((3, 4))),
    "Dropout in evaluation": (lambda: nn.Dropout(0.3).eval(), drawn((3, 4))),
    "Dropout2d": (lambda: nn.Dropout2d(0.3), drawn((2, 3, 4, 4))),
    "AlphaDropout": (lambda: nn.AlphaDropout(0.3), drawn((3, 4))),
    "FeatureAlphaDropout": (lambda: nn.FeatureAlphaDropout(0.3), drawn((3, 4, 2))),
    "RReLU": (lambda: nn.RReLU(), drawn((3, 4))),
    "PReLU": (lambda: nn.PReLU(3), drawn((2, 3, 4))),
    "LSTM": (lambda: nn.LSTM(3, 4), drawn((5, 2, 3))),
    "LSTM of two layers": (
        lambda: nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True, dropout=0.2),
        drawn((2, 5, 3)),
    ),
    "LSTM with projection": (lambda: nn.LSTM(3, 4, proj_size=2), drawn((5, 2, 3))),
    "LSTM with a state": (
        lambda: nn.LSTM(3, 4),
        lambda n: [torch.randn(5, 2, 3), (torch.randn(1, 2, 4, requires_grad=True), torch.randn(1, 2, 4))],
    ),
    "GRU": (lambda: nn.GRU(3, 4), drawn((5, 2, 3))),
    "RNN": (lambda: nn.RNN(3, 4, nonlinearity="relu"), drawn((5, 2, 3), (1, 2, 4))),
    "LSTMCell": (lambda: nn.LSTMCell(3, 4), drawn((2, 3))),
    "GRUCell": (lambda: nn.GRUCell(3, 4), drawn((2, 3), (2, 4))),
    "RNNCell": (lambda: nn.RNNCell(3, 4), drawn((2, 3))),
    "MultiheadAttention": (lambda: nn.MultiheadAttention(8, 2), drawn((5, 2, 8), (5, 2, 8), (5, 2, 8))),
    "MultiheadAttention without weights": (
        lambda: Attending(nn.MultiheadAttention(8, 2, batch_first=True, dropout=0.1), need_weights=False),
        drawn((2, 5, 8)),
    ),
    "MultiheadAttention with a mask": (
        lambda: Attending(
            nn.MultiheadAttention(8, 2, batch_first=True), attn_mask=torch.ones(5, 5, dtype=torch.bool).triu(1)
        ),
        drawn((2, 5, 8)),
    ),
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), drawn((2, 5, 8))),
    "TransformerEncoderLayer in evaluation": (
        lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(),
        drawn((2, 5, 8)),
    ),
    "TransformerEncoder": (
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2, enable_nested_tensor=False),
        drawn((5, 2, 8)),
    ),
    "TransformerDecoderLayer": (lambda: nn.TransformerDecoderLayer(8, 2, 16), drawn((5, 2, 8), (4, 2, 8))),
    "Transformer": (lambda: nn.Transformer(8, 2, 1, 1, 16), drawn((4, 2, 8), (3, 2, 8))),
    "Upsample": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), drawn((1, 2, 3, 3))),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), drawn((1, 4, 3, 3))),
    "Fold": (lambda: nn.Fold((4, 4), 2), drawn((1, 8, 9))),
    "Unfold": (lambda: nn.Unfold(2), drawn((1, 2, 4, 4))),
    "CosineSimilarity": (lambda: nn.CosineSimilarity(), drawn((3, 4), (3, 4))),
    "PairwiseDistance": (lambda: nn.PairwiseDistance(), drawn((3, 4), (3, 4))),
    "ChannelShuffle": (lambda: nn.ChannelShuffle(2), drawn((1, 4, 3, 3))),
    "ZeroPad2d": (lambda: nn.ZeroPad2d(1), drawn((1, 2, 3, 3))),
    "ReplicationPad1d": (lambda: nn.ReplicationPad1d(1), drawn((1, 2, 3))),
    "CircularPad2d": (lambda: nn.CircularPad2d(1), drawn((1, 2, 3, 3))),
    "MSELoss": (lambda: nn.MSELoss(), drawn((3, 4), (3, 4))),
    "L1Loss": (lambda: nn.L1Loss(reduction="none"), drawn((3, 4), (3, 4))),
    "HuberLoss": (lambda: nn.HuberLoss(), drawn((3, 4), (3, 4))),
    "SmoothL1Loss": (lambda: nn.SmoothL1Loss(), drawn((3, 4), (3, 4))),
    "CrossEntropyLoss": (lambda: nn.CrossEntropyLoss(), drawn((5, 4), ((5,), 4))),
    "CrossEntropyLoss weighted": (
        lambda: nn.CrossEntropyLoss(torch.rand(4), label_smoothing=0.1),
        drawn((5, 4), ((5,), 4)),
    ),
    "NLLLoss": (lambda: nn.NLLLoss(), drawn((5, 4), ((5,), 4))),
    "BCEWithLogitsLoss": (
        lambda: nn.BCEWithLogitsLoss(),
        lambda n: [torch.randn(5, requires_grad=True), torch.rand(5)],
    ),
    "BCELoss": (lambda: nn.BCELoss(), lambda n: [torch.rand(5, requires_grad=True), torch.rand(5)]),
    "KLDivLoss": (
        lambda: nn.KLDivLoss(reduction="batchmean"),
        lambda n: [torch.randn(5, 3, requires_grad=True), torch.rand(5, 3)],
    ),
    "CTCLoss": (
        lambda: nn.CTCLoss(),
        lambda n: [
            torch.randn(6, 2, 5, requires_grad=True).log_softmax(2).detach().requires_grad_(),
            torch.randint(1, 5, (2, 3)),
            (6, 6),
            (3, 2),
        ],
    ),
    "TripletMarginLoss": (lambda: nn.TripletMarginLoss(), drawn((3, 4), (3, 4), (3, 4))),
    "MarginRankingLoss": (
        lambda: nn.MarginRankingLoss(),
        lambda n: [torch.randn(4, requires_grad=True), torch.randn(4), torch.randn(4).sign()],
    ),
    "CosineEmbeddingLoss": (
        lambda: nn.CosineEmbeddingLoss(),
        lambda n: [torch.randn(4, 3, requires_grad=True), torch.randn(4, 3), torch.randn(4).sign()],
    ),
    "MultiMarginLoss": (lambda: nn.MultiMarginLoss(), drawn((5, 4), ((5,), 4))),
    "GaussianNLLLoss": (
        lambda: nn.GaussianNLLLoss(),
        lambda n: [torch.randn(4, requires_grad=True), torch.randn(4), torch.rand(4) + 1],
    ),
    "PoissonNLLLoss": (lambda: nn.PoissonNLLLoss(), lambda n: [torch.randn(4, requires_grad=True), torch.rand(4)]),
    "AdaptiveLogSoftmaxWithLoss": (lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3, 6]), drawn((5, 8), ((5,), 10))),
    "weight_norm": (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), drawn((5, 4))),
    "spectral_norm": (lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3)), drawn((5, 4))),
}
for (
    name
) in """ReLU ReLU6 ELU SELU CELU GELU SiLU Mish Sigmoid Tanh Softplus Softsign Hardtanh Hardswish Hardsigmoid Hardshrink
        Softshrink
        Tanhshrink LogSigmoid LeakyReLU Softmin Softmax LogSoftmax GLU""".split():
    options = {"dim": 1} if name in ("Softmin", "Softmax", "LogSoftmax") else {}
    MODULES[name] = (lambda name=name, options=options: getattr(nn, name)(**options), drawn((3, 4)))

NOT_CAPTURED = {"AdaptiveLogSoftmaxWithLoss"}  # it selects by the elements of its argument
"""Modules that run without compilation."""


class Attending(nn.Module):
    """Self-attention with options."""

    def __init__(self, attention, **options):
        super().__init__()
        self.attention, self.options = attention, options

    def forward(self, x):
        return self.attention(x, x, x, **self.options)


def made(name):
    torch.manual_seed(0)
    return MODULES[name][0]()


@pytest.mark.parametrize("name", MODULES)
def test_a_compiled_module_computes_the_same(name):
    assert_as_eager(None, MODULES[name][1], module=made(name), captured=name not in NOT_CAPTURED)


@pytest.mark.parametrize("name", MODULES)
def test_without_recording(name):
    with torch.no_grad():
        assert_as_eager(None, MODULES[name][1], module=made(name), captured=None)


@pytest.mark.thorough
@pytest.mark.parametrize("name", MODULES)
def test_second_gradients(name):
    if not name.startswith(("CTC", "spectral")):
        assert_as_eager(
            None, MODULES[name][1], module=made(name).double(), captured=None, twice=True, dtype=torch.float64
        )


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.long_cases
def test_in_double_precision(name):
    assert_as_eager(None, MODULES[name][1], module=made(name).double(), captured=None, dtype=torch.float64)
