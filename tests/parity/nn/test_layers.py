"""The printed form, state, initial values, results and gradients of layers are PyTorch's."""

import copy

import pytest

torch = pytest.importorskip("torch")

from tests.parity.behaviour import assert_same, namespace
from tests.parity.candidate import candidate, seed
from tests.parity.comparison import results_differ
from tests.parity.conversion import from_array, to_array

pytestmark = pytest.mark.computed

# Each layer with the lines that create its inputs.
LAYERS = """
Linear(3, 4)                                    tensor(5, 3)
Linear(3, 4)                                    tensor(3)
Linear(3, 4, bias=False)                        tensor(2, 5, 3)
Bilinear(2, 3, 4)                               tensor(5, 2)  tensor(5, 3, seed=1)
Bilinear(2, 3, 4, bias=False)                   tensor(5, 6, 2)  tensor(5, 6, 3, seed=1)
Identity(3, a=4)                                tensor(3)
Conv1d(2, 4, 3)                                 tensor(2, 2, 7)
Conv1d(2, 4, 3, padding="same")                 tensor(2, 7)
Conv2d(2, 4, 3)                                 tensor(2, 2, 6, 5)
Conv2d(2, 4, (3, 2), stride=2, padding=1, dilation=2, groups=2, bias=False)  tensor(2, 2, 9, 8)
Conv2d(2, 4, 3, padding=(1, 2), padding_mode="circular")  tensor(2, 2, 6, 5)
Conv2d(2, 4, 3, padding=1, padding_mode="reflect")  tensor(2, 2, 6, 5)
Conv2d(2, 4, 3, padding=1, padding_mode="replicate")  tensor(2, 2, 6, 5)
Conv2d(2, 4, 3, padding="valid", stride=(1, 2))  tensor(2, 2, 6, 5)
Conv2d(2, 4, 4, padding="same", padding_mode="circular")  tensor(2, 2, 6, 5)
Conv3d(1, 2, 2)                                 tensor(2, 1, 3, 4, 3)
ConvTranspose1d(2, 4, 3, output_padding=1, stride=2)  tensor(2, 2, 5)
ConvTranspose2d(2, 4, 3, padding=1, dilation=2)  tensor(2, 2, 4, 5)
ConvTranspose2d(2, 4, 3, groups=2, bias=False)  tensor(2, 2, 4, 5)
BatchNorm1d(3)                                  tensor(5, 3)
BatchNorm1d(3, bias=False)                      tensor(5, 3, 2)
BatchNorm2d(3)                                  tensor(5, 3, 4, 2)
BatchNorm2d(3, affine=False, momentum=None, track_running_stats=False, eps=1e-3)  tensor(5, 3, 4, 2)
BatchNorm2d(3, momentum=None)                   tensor(5, 3, 4, 2)
BatchNorm3d(3)                                  tensor(2, 3, 2, 2, 2)
LayerNorm(3)                                    tensor(5, 3)
LayerNorm([3, 4], elementwise_affine=False, bias=False)  tensor(5, 3, 4)
LayerNorm((3,), bias=False)                     tensor(5, 3)
GroupNorm(2, 4)                                 tensor(3, 4, 5)
GroupNorm(1, 2, affine=False)                   tensor(3, 2)
InstanceNorm1d(3)                               tensor(2, 3, 5)
InstanceNorm1d(3)                               tensor(3, 5)
InstanceNorm2d(3, affine=True, track_running_stats=True)  tensor(2, 3, 4, 4)
InstanceNorm3d(3)                               tensor(2, 3, 2, 2, 2)
RMSNorm(3)                                      tensor(5, 3)
RMSNorm([2, 3], eps=1e-5, elementwise_affine=False)  tensor(5, 2, 3)
LocalResponseNorm(3)                            tensor(2, 5, 4)
Embedding(4, 3)                                 classes(5, n=4)
Embedding(4, 3, padding_idx=-1)                 classes(5, 2, n=4)
Embedding(4, 3, max_norm=1.0)                   classes(6, n=4)
Embedding(4, 3, scale_grad_by_freq=True)        classes(6, n=4)
Dropout()                                       tensor(40, 5)
Dropout(0.1, True)                              tensor(7)
Dropout1d()                                     tensor(4, 5, 3)
Dropout2d(0.3)                                  tensor(4, 5, 3, 2)
Dropout3d(0.3)                                  tensor(4, 5, 3, 2, 2)
AlphaDropout(0.3)                               tensor(10, 5)
FeatureAlphaDropout(0.3)                        tensor(6, 5, 4)
MaxPool1d(2)                                    tensor(2, 3, 7)
MaxPool2d((2, 3), padding=1, ceil_mode=True, return_indices=True)  tensor(2, 3, 7, 8)
MaxPool2d(2, stride=1, dilation=2)              tensor(2, 3, 7, 8)
MaxPool3d(2)                                    tensor(1, 2, 4, 4, 5)
AvgPool1d(2)                                    tensor(2, 3, 7)
AvgPool1d((2,))                                 tensor(2, 3, 7)
AvgPool2d(2, 1, 1, True, False)                 tensor(2, 3, 7, 6)
AvgPool2d(2, 1, 1, True, False, 3)              tensor(2, 3, 7, 6)
AvgPool3d(2)                                    tensor(1, 2, 4, 4, 5)
AdaptiveAvgPool1d(2)                            tensor(2, 3, 7)
AdaptiveAvgPool2d((2, None))                    tensor(2, 3, 7, 5)
AdaptiveAvgPool3d(2)                            tensor(2, 3, 4, 5, 3)
AdaptiveMaxPool1d(2)                            tensor(2, 3, 7)
AdaptiveMaxPool2d(2, True)                      tensor(2, 3, 7, 5)
Flatten()                                       tensor(2, 3, 4)
Flatten(0, 1)                                   tensor(2, 3, 4)
Unflatten(1, (2, 3))                            tensor(2, 6, 2)
Unflatten(1, torch.Size([2, 3]))                tensor(2, 6)
ZeroPad1d(2)                                    tensor(2, 3)
ZeroPad2d((1, 2, 3, 4))                         tensor(2, 3, 3)
ZeroPad3d(1)                                    tensor(2, 2, 3, 3)
ConstantPad1d(2, 3.5)                           tensor(2, 3)
ConstantPad2d(1, 2)                             tensor(2, 3, 3)
ConstantPad3d(1, 2)                             tensor(2, 2, 3, 3)
ReflectionPad1d(2)                              tensor(2, 3)
ReflectionPad2d((1, 2, 0, 1))                   tensor(2, 2, 3, 3)
ReflectionPad3d(1)                              tensor(2, 3, 3, 3)
ReplicationPad1d(2)                             tensor(2, 3)
ReplicationPad2d(2)                             tensor(2, 3, 3)
ReplicationPad3d(1)                             tensor(2, 3, 3, 3)
CircularPad1d((1, 2))                           tensor(2, 3)
CircularPad2d(1)                                tensor(2, 3, 3)
PixelShuffle(2)                                 tensor(2, 8, 3, 2)
PixelUnshuffle(2)                               tensor(2, 2, 4, 6)
ChannelShuffle(2)                               tensor(2, 4, 3)
ReLU()                                          tensor(9)
ReLU(True)                                      tensor(9)
ReLU6()                                         tensor(9) * 5
ReLU6(True)                                     tensor(9) * 5
RReLU()                                         tensor(20)
RReLU(0.1, 0.2, True)                           tensor(20)
LeakyReLU()                                     tensor(9)
LeakyReLU(0.2, True)                            tensor(9)
PReLU()                                         tensor(9)
PReLU(3, 0.1)                                   tensor(2, 3, 4)
ELU()                                           tensor(9)
ELU(2.0, True)                                  tensor(9)
SELU()                                          tensor(9)
SELU(True)                                      tensor(9)
CELU()                                          tensor(9)
CELU(2, True)                                   tensor(9)
GELU()                                          tensor(9)
GELU("tanh")                                    tensor(9)
SiLU()                                          tensor(9)
SiLU(True)                                      tensor(9)
Mish()                                          tensor(9)
Mish(True)                                      tensor(9)
Sigmoid()                                       tensor(9)
Tanh()                                          tensor(9)
Softmax(1)                                      tensor(2, 3)
Softmax2d()                                     tensor(2, 3, 2, 2)
LogSoftmax(-1)                                  tensor(2, 3)
Softmin(0)                                      tensor(2, 3)
Softplus()                                      tensor(9) * 10
Softplus(2, 3)                                  tensor(9)
Softsign()                                      tensor(9)
Hardtanh()                                      tensor(9)
Hardtanh(-2, 2, True)                           tensor(9)
Hardsigmoid()                                   tensor(9) * 3
Hardsigmoid(True)                               tensor(9) * 3
Hardswish()                                     tensor(9) * 3
Hardswish(True)                                 tensor(9) * 3
LogSigmoid()                                    tensor(9) * 30
Tanhshrink()                                    tensor(9)
Softshrink()                                    tensor(9)
Softshrink(0.2)                                 tensor(9)
Hardshrink()                                    tensor(9)
Threshold(0.1, 2)                               tensor(9)
Threshold(0.1, 2, True)                         tensor(9)
GLU()                                           tensor(2, 6)
GLU(0)                                          tensor(2, 5)
MSELoss()                                       tensor(4, 3)  tensor(4, 3, seed=1)
L1Loss(reduction="sum")                         tensor(4, 3)  tensor(4, 3, seed=1)
SmoothL1Loss(beta=0.5)                          tensor(4, 3)  tensor(4, 3, seed=1)
SmoothL1Loss(beta=0, reduction="none")          tensor(4, 3)  tensor(4, 3, seed=1)
HuberLoss(delta=0.7)                            tensor(4, 3)  tensor(4, 3, seed=1)
NLLLoss(uniform(3))                             tensor(4, 3)  classes(4)
NLLLoss(reduction="none", ignore_index=1)       tensor(4, 3)  classes(4)
CrossEntropyLoss(uniform(3), label_smoothing=0.1)  tensor(4, 3)  classes(4)
CrossEntropyLoss()                              tensor(4, 3)  uniform(4, 3)
CrossEntropyLoss(reduction="sum")               tensor(4, 3, 2)  classes(4, 2)
BCELoss(uniform(3))                             uniform(4, 3)  uniform(4, 3, seed=1)
BCEWithLogitsLoss(pos_weight=uniform(3))        tensor(4, 3)  uniform(4, 3, seed=1)
KLDivLoss(reduction="batchmean")                tensor(4, 3)  uniform(4, 3)
KLDivLoss(reduction="sum", log_target=True)     tensor(4, 3)  tensor(4, 3, seed=1)
GaussianNLLLoss()                               tensor(4, 3)  tensor(4, 3, seed=1)  uniform(4, 3)
GaussianNLLLoss(full=True, reduction="sum")     tensor(4, 3)  tensor(4, 3, seed=1)  uniform(4, 1)
PoissonNLLLoss()                                tensor(4, 3)  uniform(4, 3) * 4
PoissonNLLLoss(log_input=False, full=True)      uniform(4, 3)  uniform(4, 3) * 4
CosineEmbeddingLoss(0.1)                        tensor(4, 3)  tensor(4, 3, seed=1)  classes(4, n=2) * 2 - 1
MarginRankingLoss(0.3, reduction="none")        tensor(4)  tensor(4, seed=1)  classes(4, n=2) * 2 - 1
HingeEmbeddingLoss()                            tensor(4, 3)  classes(4, 3, n=2) * 2 - 1
TripletMarginLoss(swap=True)                    tensor(4, 3)  tensor(4, 3, seed=1)  tensor(4, 3, seed=2)
TripletMarginLoss(margin=2, p=1)                tensor(4, 3)  tensor(4, 3, seed=1)  tensor(4, 3, seed=2)
TripletMarginWithDistanceLoss()                 tensor(4, 3)  tensor(4, 3, seed=1)  tensor(4, 3, seed=2)
SoftMarginLoss()                                tensor(4, 3)  classes(4, 3, n=2) * 2 - 1
MultiMarginLoss()                               tensor(4, 3)  classes(4)
MultiMarginLoss(2, 0.5, uniform(3), reduction="none")  tensor(4, 3)  classes(4)
MultiLabelMarginLoss()                          tensor(2, 3)  torch.tensor([[0, 2, -1], [1, -1, 0]])
MultiLabelSoftMarginLoss()                      tensor(4, 3)  classes(4, 3, n=2)
CosineSimilarity()                              tensor(4, 3)  tensor(4, 3, seed=1)
PairwiseDistance(keepdim=True)                  tensor(4, 3)  tensor(4, 3, seed=1)
RNN(2, 3)                                       tensor(4, 5, 2)
RNN(2, 3, 2, nonlinearity="relu", bias=False, batch_first=True, bidirectional=True)  tensor(4, 5, 2)
LSTM(2, 3, 2)                                   tensor(4, 5, 2)
LSTM(2, 3, proj_size=2, bidirectional=True)     tensor(4, 5, 2)
LSTM(2, 3)                                      tensor(4, 2)
LSTM(2, 3)                                      tensor(4, 5, 2)  (tensor(1, 5, 3), tensor(1, 5, 3, seed=1))
GRU(2, 3)                                       tensor(4, 5, 2)
GRU(2, 3, bidirectional=True, batch_first=True)  tensor(4, 5, 2)  tensor(2, 4, 3)
GRU(2, 3)                                       tensor(4, 2)  tensor(1, 3)
RNNCell(2, 3)                                   tensor(5, 2)
RNNCell(2, 3, bias=False, nonlinearity="relu")  tensor(2)  tensor(3)
LSTMCell(2, 3)                                  tensor(5, 2)
LSTMCell(2, 3)                                  tensor(5, 2)  (tensor(5, 3), tensor(5, 3, seed=1))
GRUCell(2, 3)                                   tensor(5, 2)  tensor(5, 3)
Sequential()                                    tensor(3)
Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 1))  tensor(4, 3)
""".strip().split("\n")

CASES = [[part.strip() for part in line.split("  ") if part.strip()] for line in LAYERS]


def with_parameters(library, layer):
    """Return the layer in float64 and in training mode."""
    return eval(f"nn.{layer}", namespace(library)).double()


@pytest.mark.parametrize("layer", list(dict.fromkeys(case[0] for case in CASES)))
def test_printed_form_and_options(layer):
    assert_same(f"nn.{layer}")
    assert_same(
        f"m = nn.{layer}\n"
        "shown = lambda v: v if isinstance(v, (int, float, str, tuple, list)) else str(type(v))\n"
        "{k: shown(v) for k, v in sorted(m.__dict__.items()) if not k.startswith('_') and not callable(v)}"
    )


@pytest.mark.parametrize("layer", list(dict.fromkeys(case[0] for case in CASES)))
def test_same_seed_gives_the_same_state(layer):
    states = []
    for library in (candidate, torch):
        library.manual_seed(7)
        states.append(eval(f"nn.{layer}", namespace(library)).state_dict())
    actual, expected = states
    assert list(actual) == list(expected)
    assert dict(actual._metadata) == dict(expected._metadata)
    for name, value in expected.items():
        assert to_array(actual[name]).tobytes() == to_array(value).tobytes(), name


def leaves(value):
    return [leaf for item in value for leaf in leaves(item)] if isinstance(value, (tuple, list)) else [value]


def evaluated(library, layer, inputs):
    """Return the outputs, and the gradients of inputs and parameters for a fixed random sum of outputs."""
    tensors = leaves(inputs)
    for tensor in tensors:
        if tensor.is_floating_point():
            tensor.requires_grad_()
    seed(library, 3)
    given = [x.clone() if hasattr(x, "clone") and x.is_floating_point() else x for x in inputs]  # for in-place layers
    output = layer(*given)
    total = 0
    for i, part in enumerate(leaves(output)):
        if part.requires_grad:
            total = total + (part * namespace(library)["tensor"](*part.shape, seed=10 + i)).sum()
    if not isinstance(total, int):
        total.backward()
    wanted = [*tensors, *layer.parameters()]
    return leaves(output), [x.grad for x in wanted], layer.state_dict()


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_results_and_gradients(case, training):
    layer, *inputs = case
    reference = with_parameters(torch, layer).train(training)
    model = with_parameters(candidate, layer).train(training)
    state = {name: from_array(candidate, to_array(value).copy()) for name, value in reference.state_dict().items()}
    model.load_state_dict(state)
    results = []
    for library, module in ((candidate, model), (torch, reference)):
        arguments = [eval(text, namespace(library)) for text in inputs]
        results.append(evaluated(library, module, arguments))
    for actual, expected, what in zip(*results, ("outputs", "gradients", "state"), strict=True):
        if what == "outputs":
            actual, expected = ([part.detach() for part in side] for side in (actual, expected))
        difference = results_differ(actual, expected)
        assert difference is None, f"{what}: {difference}"


@pytest.mark.parametrize("layer", [case[0] for case in CASES if case[0].startswith(("Linear", "BatchNorm", "GRU("))])
def test_copies_are_deep(layer):
    model = with_parameters(candidate, layer)
    copied = copy.deepcopy(model)
    assert repr(copied) == repr(model)
    for (name, parameter), (_, other) in zip(model.named_parameters(), copied.named_parameters(), strict=True):
        assert parameter is not other, name
        assert type(other) is candidate.nn.Parameter
        assert (to_array(parameter) == to_array(other)).all()


FUNCTIONS = """
F.relu(tensor(5), True)
F.softmax(tensor(3, 4), 1, dtype=torch.float32)
F.log_softmax(tensor(3, 4), -1, dtype=torch.float32)
F.softmin(tensor(3, 4), 0)
F.softmax(tensor(3, 4))
F.softmin(tensor(2, 3, 4))
F.log_softmax(tensor(3))
F.normalize(tensor(3, 4))
F.normalize(tensor(3, 4), p=1, dim=0)
F.cosine_similarity(tensor(3, 4), tensor(3, 4, seed=1))
F.cosine_similarity(tensor(3, 1, 4), tensor(3, 4), dim=-1)
F.pairwise_distance(tensor(3, 4), tensor(4), p=1)
F.pdist(tensor(4, 3))
F.pdist(tensor(4, 3), p=1)
F.huber_loss(tensor(3), tensor(3, seed=1), weight=uniform(3))
F.mse_loss(tensor(3), tensor(3, seed=1), weight=uniform(3))
F.l1_loss(tensor(3), tensor(3, seed=1), weight=uniform(3), reduction="sum")
F.scaled_dot_product_attention(tensor(2, 3, 4), tensor(2, 5, 4), tensor(2, 5, 6))
F.scaled_dot_product_attention(tensor(2, 3, 4), tensor(2, 3, 4), tensor(2, 3, 6), is_causal=True)
F.scaled_dot_product_attention(tensor(2, 3, 4), tensor(2, 5, 4), tensor(2, 5, 6), classes(3, 5, n=2).bool(), scale=0.3)
F.scaled_dot_product_attention(tensor(2, 3, 4), tensor(2, 5, 4), tensor(2, 5, 6), tensor(3, 5))
F.scaled_dot_product_attention(tensor(2, 4, 3, 4), tensor(2, 2, 5, 4), tensor(2, 2, 5, 6), enable_gqa=True)
(torch.manual_seed(0), F.gumbel_softmax(tensor(3, 4).float()))[1]
(torch.manual_seed(0), F.gumbel_softmax(tensor(3, 4).float(), hard=True, tau=0.5))[1]
F.embedding(classes(4), tensor(3, 2), padding_idx=-1)
F.max_pool2d(tensor(1, 1, 4, 4), 2, return_indices=True)
F.max_pool1d(tensor(1, 1, 4), 2, None, 0, 1, True, True)
F.adaptive_max_pool2d(tensor(1, 4, 4), (None, 2))
F.one_hot(classes(4))
F.pad(tensor(2, 3), (-1, 1), "reflect")
F.pad(tensor(2, 3), (-1, 1), "circular")
F.pad(tensor(2, 3), (-1, 4), "replicate")
F.pad(tensor(2, 3), (1, 1, 2, 0), value=7)
F.gaussian_nll_loss(tensor(2, 3), tensor(2, 3, seed=1), 0.5)
F.mse_loss(tensor(2, 3), tensor(2, 1))
F.mse_loss(tensor(2, 3), tensor(2, 3), size_average=False)
F.l1_loss(tensor(2, 3), tensor(2, 3), reduce=False)
F.kl_div(tensor(2, 3), uniform(2, 3))
F.dropout2d(tensor(2, 3), training=False)
F.dropout3d(tensor(2, 3), training=False)
F.dropout2d(tensor(2, 3, 4), training=False)
""".strip().split("\n")


@pytest.mark.parametrize("line", FUNCTIONS)
def test_functions(line):
    assert_same(line)


REFUSALS = """
F.mse_loss(tensor(2, 3), tensor(2, 3), reduction="zz")
F.l1_loss(tensor(2, 3), tensor(2, 3), weight=tensor(3))
F.huber_loss(tensor(2), tensor(2), delta=0)
F.huber_loss(tensor(2), tensor(2), reduction="zz")
F.binary_cross_entropy(uniform(2, 3), uniform(2, 1))
F.binary_cross_entropy_with_logits(uniform(2, 3), uniform(2, 1))
F.kl_div(tensor(2), tensor(2), reduction="zz")
F.poisson_nll_loss(tensor(2), tensor(2), reduction="zz")
F.gaussian_nll_loss(tensor(2), tensor(2), uniform(2), reduction="zz")
F.gaussian_nll_loss(tensor(2, 3), tensor(2, 3), -uniform(2, 3))
F.gaussian_nll_loss(tensor(2, 3), tensor(2, 3), uniform(3, 3))
F.gaussian_nll_loss(tensor(2, 3), tensor(2, 3), -0.5)
F.cosine_embedding_loss(tensor(2, 3), tensor(2, 3), tensor(2, 2))
F.cosine_embedding_loss(tensor(2, 3), tensor(3), tensor(2))
F.margin_ranking_loss(tensor(2, 3), tensor(2, 3), tensor(2))
F.triplet_margin_loss(tensor(2, 3), tensor(3), tensor(2, 3))
F.triplet_margin_loss(tensor(2, 3), tensor(2, 3), tensor(2, 3), margin=-1)
F.multi_margin_loss(tensor(2, 3), classes(2), p=3)
F.multi_margin_loss(tensor(2, 3), torch.tensor([0, 5]))
F.multi_margin_loss(tensor(2, 3), torch.tensor([0]))
F.multi_margin_loss(tensor(2, 3), classes(2), weight=uniform(2))
F.multilabel_margin_loss(tensor(2, 3), classes(2, 2))
F.glu(tensor(3))
F.glu(torch.tensor(1.0))
F.prelu(tensor(2, 3), uniform(2))
F.prelu(tensor(2, 3), uniform(1, 3))
F.softshrink(tensor(3).float(), -1)
F.hardtanh(tensor(3), 2, 1)
F.rrelu(tensor(3), 2, 1)
F.celu(tensor(3), 0)
F.dropout(tensor(3), 2)
F.dropout1d(tensor(3))
F.pad(tensor(2, 3), (1, 1), "zz")
F.pad(tensor(2, 3), (1, 1), "reflect", 1.0)
F.pad(tensor(2, 3), (1, 1, 1), "reflect")
F.pad(tensor(2, 3), (1, 1, 1, 1), "reflect")
F.pad(tensor(2, 3), (3, 1), "reflect")
F.pad(tensor(1, 1, 2, 3), (1, 1, 5, 1), "reflect")
F.pad(tensor(2, 3), (4, 1), "circular")
F.pixel_shuffle(tensor(2, 3), 2)
F.pixel_shuffle(tensor(1, 2, 3), 2)
F.pixel_shuffle(tensor(1, 2, 3), 0)
F.pixel_unshuffle(tensor(1, 2, 3), 2)
F.pixel_unshuffle(tensor(2, 3), 2)
F.channel_shuffle(tensor(2, 3), 1)
F.channel_shuffle(tensor(2, 3, 1), 0)
F.batch_norm(tensor(1, 3), None, None, training=True)
F.instance_norm(tensor(2, 3, 1))
F.instance_norm(tensor(2, 3, 4), use_input_stats=False)
F.local_response_norm(tensor(2, 3), 2)
F.rms_norm(tensor(2, 3), [2])
F.rms_norm(tensor(2, 3), [3], uniform(2))
F.embedding(torch.tensor([1]), tensor(2, 3), padding_idx=5)
F.scaled_dot_product_attention(tensor(2, 3), tensor(2, 3), tensor(2, 3), classes(2, 2).bool(), is_causal=True)
nn.Bilinear(0, 1, 1)
nn.Conv2d(3, 4, 3, groups=2)
nn.Conv2d(4, 3, 3, groups=2)
nn.Conv2d(4, 4, 3, groups=0)
nn.Conv2d(4, 4, 3, stride=2, padding="same")
nn.ConvTranspose2d(4, 4, 3, padding_mode="circular")
nn.ConvTranspose2d(4, 4, 3)(torch.ones(1, 4, 5, 5), output_size=(9, 9))
nn.ConvTranspose2d(4, 4, 3)(torch.ones(1, 4, 5, 5), output_size=(9,))
nn.ConvTranspose2d(4, 4, 3, stride=2)(torch.ones(1, 4, 5, 5), output_size=(1, 4, 12, 12)).shape
nn.BatchNorm1d(3)(torch.ones(1, 3, 2, 2))
nn.BatchNorm2d(3)(torch.ones(1, 3, 2))
nn.BatchNorm3d(3)(torch.ones(1, 3, 2))
nn.BatchNorm1d(3)(torch.ones(1, 3))
nn.InstanceNorm1d(3)(torch.ones(3))
nn.InstanceNorm2d(3)(torch.ones(3, 3))
nn.InstanceNorm1d(3)(torch.rand(2, 4, 5)).shape
nn.InstanceNorm1d(3, affine=True)(torch.rand(2, 4, 5))
nn.GroupNorm(2, 3)
nn.Embedding(3, 2, padding_idx=5)
nn.Embedding.from_pretrained(torch.ones(3))
nn.Embedding(3, 2, _weight=torch.ones(2, 2))
nn.Dropout(2)
nn.Unflatten(1, (2, "a"))
nn.Unflatten(1, 3)
nn.Hardtanh(2, 1)
nn.Hardtanh(min_value=-3)
nn.Hardtanh(max_value=3)
nn.Softmax2d()(torch.ones(2))
nn.Softmax()(torch.ones(2, 2))
nn.TripletMarginLoss(margin=-1)
nn.TripletMarginWithDistanceLoss(margin=-1)
nn.MultiMarginLoss(p=3)
nn.MultiMarginLoss(weight=torch.ones(2, 2))
nn.MSELoss(size_average=False).reduction
nn.RNN(0, 3)
nn.RNN(2, 0)
nn.RNN(2, 3, 0)
nn.RNN(2, 3, dropout=2)
nn.RNN(2, 3, dropout=0.1)
nn.RNN(2, 3, proj_size=2)
nn.RNN(2, 3, nonlinearity="zz")
nn.RNN(2.5, 3)
nn.LSTM(2, 3, proj_size=3)
nn.LSTM(2, 3, proj_size=-1)
nn.RNN(2, 3)(torch.ones(2))
nn.LSTM(2, 3)(torch.ones(2))
nn.RNN(2, 3)(torch.ones(4, 5, 3))
nn.RNN(2, 3)(torch.ones(4, 5, 2), torch.ones(2, 5, 3))
nn.RNN(2, 3)(torch.ones(4, 5, 2), torch.ones(5, 3))
nn.GRU(2, 3)(torch.ones(4, 2), torch.ones(1, 5, 3))
nn.GRU(2, 3)(torch.ones(0, 5, 2))
nn.LSTM(2, 3)(torch.ones(4, 5, 2), (torch.ones(1, 5, 3), torch.ones(1, 5, 2)))
nn.LSTM(2, 3)(torch.ones(4, 2), (torch.ones(1, 5, 3), torch.ones(1, 5, 3)))
nn.RNN(2, 3)(torch.ones(4, 5, 2).int())
nn.GRU(2, 3)(torch.ones(4, 5, 2).double())
nn.RNNCell(2, 3)(torch.ones(4, 3))
nn.RNNCell(2, 3)(torch.ones(1, 2, 2))
nn.GRUCell(2, 3)(torch.ones(4, 2), torch.ones(4, 2))
nn.GRUCell(2, 3)(torch.ones(4, 2), torch.ones(3, 3))
nn.GRUCell(2, 3)(torch.ones(4, 2), torch.ones(1, 4, 3))
nn.LSTMCell(2, 3)(torch.ones(4, 2), (torch.ones(1, 4, 3), torch.ones(4, 3)))
nn.BatchNorm1d(2).double()(torch.ones(2, 2))
nn.BatchNorm1d(2)(torch.ones(2, 2).double())
nn.LayerNorm(2)(torch.ones(2, 2).double())
F.layer_norm(torch.ones(2, 2), (2,), torch.ones(2), torch.ones(2).double())
nn.GroupNorm(1, 2)(torch.ones(2, 2).double())
F.batch_norm(torch.ones(2, 2).half(), torch.zeros(2), torch.ones(2)).dtype
nn.LinearCrossEntropyLoss(3, 2, weight=torch.ones(3))
nn.LinearCrossEntropyLoss(3, 2, label_smoothing=2.0)
F.smooth_l1_loss(torch.ones(2), torch.ones(2), beta=-1)
F.binary_cross_entropy(torch.rand(2), torch.ones(2).long())
F.cross_entropy(torch.ones(1, 2), torch.tensor([0]), label_smoothing=2.0)
F.embedding(torch.tensor([0, 7]), torch.ones(3, 2), max_norm=1.0)
F.embedding(torch.tensor([0.0]), torch.ones(3, 2), max_norm=1.0)
F.embedding_bag(torch.tensor([0, 1]), torch.ones(3, 2), torch.tensor([0]), mode="max", sparse=True)
F.embedding_bag(torch.tensor([0, 1]), torch.ones(3, 2), torch.tensor([0]), mode="max", scale_grad_by_freq=True)
F.embedding_bag(torch.tensor([0, 1]).short(), torch.ones(3, 2), torch.tensor([0]))
F.embedding_bag(torch.tensor([0, 1]), torch.ones(3, 2), torch.tensor([0.0]))
F.embedding_bag(torch.tensor([0, 1]), torch.ones(3, 2).long(), torch.tensor([0]))
F.embedding_bag(torch.tensor([0, 9]), torch.ones(3, 2), torch.tensor([0]))
F.embedding_bag(torch.tensor([0, 9]), torch.ones(3, 2).double(), torch.tensor([0]))
F.embedding_bag(torch.tensor([0, 1]), torch.ones(3, 2), torch.tensor([0]), mode="sum", per_sample_weights=torch.ones(2).double())
nn.Linear(1, 1).to(torch.float32, torch.float64)
nn.Linear(1, 1).to("cpu", torch.float32, 3)
list(nn.ParameterDict({"b": 1, "a": 2}))
nn.LazyLinear(3)
""".strip().split("\n")


@pytest.mark.parametrize("line", REFUSALS)
def test_refusals_and_warnings(line):
    assert_same(line)


def test_state_dicts_go_both_ways():
    line = "nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(8, 2))"
    ours, theirs = eval(line, namespace(candidate)), eval(line, namespace(torch))
    ours.load_state_dict({k: from_array(candidate, to_array(v).copy()) for k, v in theirs.state_dict().items()})
    for name, value in theirs.state_dict().items():
        assert (to_array(ours.state_dict()[name]) == to_array(value)).all()
    back = {k: torch.from_numpy(to_array(v).copy()) for k, v in ours.state_dict().items()}
    assert repr(theirs.load_state_dict(back)) == "<All keys matched successfully>"
