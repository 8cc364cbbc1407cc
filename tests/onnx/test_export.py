"""Exported modules give the same results in ONNX's reference evaluator."""

import io

import pytest

import adjoint as torch
from adjoint.utils._pytree import tree_leaves

onnx = pytest.importorskip("onnx")

nn, functional = torch.nn, torch.nn.functional


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.project, self.out = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.project(x).reshape(batch, length, 3, 2, 4).permute(2, 0, 3, 1, 4)
        mask = torch.ones(length, length, dtype=torch.bool).tril()
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        return self.mix(x, x, x)[0]


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places, self.mix = nn.Embedding(10, 8), nn.Embedding(20, 8), Attention()

    def forward(self, tokens):
        return self.mix(self.words(tokens) + self.places(torch.arange(tokens.shape[1])))


class Applied(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def image():
    return torch.randn(2, 3, 8, 8)


def rows():
    return torch.randn(4, 8)


def sequence():
    return torch.randn(2, 5, 8)


MODELS = {
    "perceptron": lambda: (nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 3), nn.Softmax(-1)), rows()),
    "linear of sequences": lambda: (nn.Linear(8, 2), sequence()),
    "linear without bias": lambda: (nn.Linear(8, 2, bias=False), rows()),
    "convolutions": lambda: (
        nn.Sequential(nn.Conv2d(3, 4, 3, padding=1, stride=2), nn.BatchNorm2d(4), nn.SiLU(), nn.MaxPool2d(2), nn.Flatten(),
                      nn.Linear(16, 2)), image()),
    "transposed convolution": lambda: (nn.ConvTranspose2d(3, 2, 3, 2, 1, 1), image()),
    "convolution of one dimension": lambda: (nn.Conv1d(5, 2, 3, dilation=2), sequence()),
    "averages": lambda: (nn.Sequential(nn.AvgPool2d(2, 1, 1), nn.AdaptiveAvgPool2d(3), nn.AdaptiveAvgPool2d(1)), image()),
    "maxima": lambda: (nn.Sequential(nn.AdaptiveMaxPool2d(4)), image()),
    "maxima of one dimension": lambda: (nn.MaxPool1d(2), sequence()),
    "layer norm": lambda: (nn.Sequential(nn.LayerNorm(8), nn.RMSNorm(8)), sequence()),
    "group norms": lambda: (nn.Sequential(nn.GroupNorm(3, 3), nn.InstanceNorm2d(3, affine=True)), image()),
    "attention": lambda: (Attention(), sequence()),
    "language": lambda: (Language(), torch.randint(0, 10, (2, 5))),
    "multi-head attention": lambda: (Mixed(), sequence()),
    "transformer": lambda: (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), sequence()),
    "LSTM": lambda: (nn.LSTM(8, 3, batch_first=True), sequence()),
    "GRU of both directions": lambda: (nn.GRU(8, 3, batch_first=True, bidirectional=True), sequence()),
    "upsampling": lambda: (nn.Sequential(nn.Upsample(scale_factor=2), nn.Upsample(scale_factor=2, mode="bilinear"),
                                         nn.Upsample(size=(9, 9), mode="bilinear", align_corners=True)), image()),
    "padding": lambda: (nn.Sequential(nn.ReflectionPad2d(1), nn.ConstantPad2d(1, 2.0), nn.ReplicationPad2d(1)), image()),
    "changes in place": lambda: (nn.Sequential(nn.Linear(8, 8), nn.ReLU(inplace=True), nn.Hardtanh(inplace=True)), rows()),
    "pixels": lambda: (nn.Sequential(nn.PixelUnshuffle(2), nn.PixelShuffle(2)), image()),
    "arithmetic": lambda: (
        Applied(lambda a: (a * 2 - 1) / 3 + a.abs().sqrt().log1p().exp() - a.clamp(0, 1) ** 2 + (2 - a).sin() // 1 + a % 2),
        rows()),
    "reductions": lambda: (
        Applied(lambda a: a.sum() + a.mean(0) + a.max(0).values + a.std(0) + a.var(0) + a.amax(0) + a.logsumexp(0)
                + a.norm(dim=0)),
        rows()),
    "shapes": lambda: (
        Applied(lambda a: torch.cat([a[:, 1:3], a[:, :2].flip(1), torch.stack([a[:, 0], a[:, 1]], 1)], 1)
                .roll(1, 1).chunk(2, 1)),
        rows()),
    "lookups": lambda: (Applied(lambda a: (a[:, torch.tensor([0, 2])], a.topk(2)[0], a.sort()[0], a.cumsum(1), a.argmax(1))),
        rows()),
    "conditions": lambda: (Applied(lambda a: torch.where(a > 0, a, -a).masked_fill(a > 1, 0.0)), rows()),
    "einsum": lambda: (Applied(lambda a: torch.einsum("bi,bj->bij", a, a)), rows()),
    "containers": lambda: (Applied(lambda a: {"x": a + 1, "y": (a * 2, a)}), rows()),
}  # fmt: skip

ACTIVATIONS = """
    ReLU ReLU6 LeakyReLU ELU CELU SELU GELU SiLU Mish Softplus Sigmoid Tanh Hardswish Hardsigmoid Hardtanh PReLU LogSigmoid
    Softsign Tanhshrink Hardshrink Softshrink GLU
""".split()


def check(model, x, others, **options):
    program = torch.onnx.export(model.eval(), x, **options)
    for each in (x, *others):
        with torch.no_grad():
            expected = [leaf for leaf in tree_leaves(model(each)) if isinstance(leaf, torch.Tensor)]
        found = program(each)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    return program


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("opset", [15, 18])
def test_models(name, opset):
    torch.manual_seed(0)
    check(*MODELS[name](), [], opset_version=opset)


@pytest.mark.parametrize("name", MODELS)
def test_models_of_any_batch(name):
    torch.manual_seed(0)
    model, x = MODELS[name]()
    check(model, x, [torch.cat([x, x, x[:1]])], input_names=["x"], dynamic_axes={"x": {0: "batch"}})


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    torch.manual_seed(0)
    check(getattr(nn, name)(), rows(), [])


def test_two_dynamic_dimensions():
    torch.manual_seed(0)
    tokens = torch.randint(0, 10, (2, 5))
    others = [torch.randint(0, 10, (3, 9)), torch.randint(0, 10, (1, 2))]
    program = check(Language(), tokens, others, dynamic_shapes={"tokens": {0: "batch", 1: "length"}})
    (given,) = program.model_proto.graph.input
    assert given.name == "tokens"
    assert [dim.dim_param for dim in given.type.tensor_type.shape.dim] == ["batch", "length"]


def test_names_and_files(tmp_path):
    model = nn.Sequential(nn.Linear(3, 2))
    torch.onnx.export(model, (torch.ones(1, 3),), tmp_path / "model.onnx", input_names=["a"], output_names=["b"])
    read = onnx.load(tmp_path / "model.onnx")
    onnx.checker.check_model(read, full_check=True)
    assert [each.name for each in read.graph.input] == ["a"]
    assert [each.name for each in read.graph.output] == ["b"]
    assert {each.name for each in read.graph.initializer} == {"0.weight", "0.bias"}
    written = io.BytesIO()
    torch.onnx.export(model, torch.ones(1, 3), written)
    assert written.getvalue()


def test_the_mode_of_the_module_is_as_before():
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(2, 2))
    torch.onnx.export(model, torch.ones(1, 2))
    assert all(part.training for part in model.modules())
    assert not torch.onnx.is_in_onnx_export()


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: x if x.sum() > 0 else -x, "reads an element"),
        (lambda x: torch.linalg.svd(x)[1], "has no form in ONNX"),
        (lambda x: x[x > 0], "depends on elements"),
        (lambda x: x.clone().t().mul_(2), "changes a view in place"),
    ],
)
def test_unsupported_exports_raise_errors(function, words):
    with pytest.raises(torch.onnx.OnnxExporterError, match=words):
        torch.onnx.export(Applied(function), torch.ones(2, 2))


def test_loops_over_a_dynamic_dimension_are_refused():
    model = Applied(lambda x: sum(row.sum() for row in x.unbind(0)))
    with pytest.raises(torch.onnx.OnnxExporterError, match="dynamic dimension"):
        torch.onnx.export(model, torch.ones(2, 2), input_names=["x"], dynamic_axes={"x": [0]})


def test_old_versions_of_operators_are_refused():
    with pytest.raises(ValueError, match="Unsupported ONNX opset version: 9"):
        torch.onnx.export(nn.ReLU(), torch.ones(2), opset_version=9)
