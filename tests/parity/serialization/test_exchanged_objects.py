"""Each library reads objects that the other library has saved or pickled. The objects give the same results."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from functools import cache

import pytest

torch = pytest.importorskip("torch")

import adjoint
import adjoint.distributions
from adjoint.serialization import exchange

NO_ARGUMENTS = """
    ReLU ReLU6 ELU SELU CELU GELU SiLU Mish Sigmoid Tanh Softplus Softsign Softmin Softmax LogSoftmax Softmax2d Hardtanh Hardswish
    Hardsigmoid Hardshrink Softshrink Tanhshrink LeakyReLU LogSigmoid PReLU RReLU GLU Dropout Dropout1d Dropout2d Dropout3d
    AlphaDropout FeatureAlphaDropout L1Loss MSELoss NLLLoss CrossEntropyLoss BCELoss BCEWithLogitsLoss KLDivLoss PoissonNLLLoss
    GaussianNLLLoss HingeEmbeddingLoss MultiLabelMarginLoss SmoothL1Loss HuberLoss SoftMarginLoss MultiLabelSoftMarginLoss
    CosineEmbeddingLoss MarginRankingLoss MultiMarginLoss TripletMarginLoss CTCLoss Flatten Identity CosineSimilarity
    PairwiseDistance TripletMarginWithDistanceLoss
    """.split()
ONE_ARGUMENT = """
    MaxPool1d MaxPool2d MaxPool3d AvgPool1d AvgPool2d AvgPool3d AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d
    AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d ReflectionPad1d ReflectionPad2d
    ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d ZeroPad1d ZeroPad2d ZeroPad3d CircularPad1d CircularPad2d
    CircularPad3d PixelShuffle PixelUnshuffle ChannelShuffle UpsamplingBilinear2d UpsamplingNearest2d BatchNorm1d BatchNorm2d
    BatchNorm3d InstanceNorm1d LayerNorm RMSNorm LocalResponseNorm SyncBatchNorm CrossMapLRN2d LazyLinear Unfold
    """.split()
MODULES = """
    Linear(2,2) Bilinear(2,2,2) Conv1d(1,1,1) Conv2d(1,2,3,padding='same') Conv3d(1,1,1) ConvTranspose2d(1,1,2) LazyConv2d(1,1)
    LazyBatchNorm1d() GroupNorm(1,2) LSTM(2,3,2,bidirectional=True) LSTM(2,4,proj_size=2) GRU(2,3) RNN(2,2) LSTMCell(2,2)
    GRUCell(2,2) RNNCell(2,2) MultiheadAttention(2,1) TransformerEncoderLayer(2,1,2)
    TransformerEncoderLayer(2,1,2,activation='gelu')
    TransformerDecoderLayer(2,1,2) Transformer(2,1,1,1,2) Embedding(3,2) EmbeddingBag(3,2) ParameterList([m.ones(1)])
    ParameterDict({'a':m.ones(1)}) ModuleList([m.nn.ReLU()]) ModuleDict({'a':m.nn.ReLU()})
    Sequential(m.nn.Linear(2,2),m.nn.ReLU())
    AdaptiveLogSoftmaxWithLoss(4,5,[2]) Upsample(scale_factor=2) Fold(2,1) Unflatten(0,(1,1)) Threshold(1,2) LPPool2d(2,2)
    ConstantPad2d(2,2) FractionalMaxPool2d(2,output_size=2) DataParallel(m.nn.Linear(1,1)) LinearCrossEntropyLoss(2,3)
    utils.weight_norm(m.nn.Linear(2,2)) utils.spectral_norm(m.nn.Linear(2,2))
    """.split()
OPTIMIZERS = """
    SGD(p,lr=.1) SGD(p,lr=.1,momentum=.9,nesterov=True) ASGD(p) Adam(p) Adam(p,amsgrad=True) AdamW(p) Adamax(p) NAdam(p) RAdam(p)
    RMSprop(p) Rprop(p) Adagrad(p) Adadelta(p) Adafactor(p) LBFGS(p) Muon(p)
    """.split()
SCHEDULERS = """
    StepLR(o,1) MultiStepLR(o,[1,2]) ConstantLR(o) LinearLR(o) ExponentialLR(o,.9) CosineAnnealingLR(o,3) PolynomialLR(o)
    CosineAnnealingWarmRestarts(o,3) CyclicLR(o,.01,.1) CyclicLR(o,.01,.1,mode='exp_range',gamma=.9) OneCycleLR(o,.1,10)
    SequentialLR(o,[s.ConstantLR(o),s.ExponentialLR(o,.9)],[2]) ChainedScheduler([s.ConstantLR(o),s.ExponentialLR(o,.9)])
    """.split()
DISTRIBUTIONS = """
    Bernoulli(x) Beta(x,x) Binomial(3,x) Categorical(x) Cauchy(x,x) Chi2(x) ContinuousBernoulli(x) Dirichlet(x) Exponential(x)
    FisherSnedecor(x,x) Gamma(x,x) GeneralizedPareto(x,x,x) Geometric(x) Gumbel(x,x) HalfCauchy(x) HalfNormal(x)
    Independent(d.Normal(x,x),1) InverseGamma(x,x) Kumaraswamy(x,x) LKJCholesky(2) Laplace(x,x) LogNormal(x,x) LogisticNormal(x,x)
    LowRankMultivariateNormal(x,m.ones(2,1),x) MixtureSameFamily(d.Categorical(x),d.Normal(x,x)) Multinomial(3,x)
    MultivariateNormal(x,m.eye(2)) NegativeBinomial(3,x) Normal(x,x) OneHotCategorical(x) Pareto(x,x) Poisson(x)
    RelaxedBernoulli(m.tensor(.5),x) RelaxedOneHotCategorical(m.tensor(.5),x) StudentT(x) Uniform(x,x+1) VonMises(x,x)
    Weibull(x,x)
    Wishart(m.tensor(3.),m.eye(2)) TransformedDistribution(d.Normal(x,x),[d.ExpTransform()])
    """.split()
TRANSFORMS = """
    AbsTransform() AffineTransform(x,x) ComposeTransform([d.ExpTransform()]) CumulativeDistributionTransform(d.Normal(x,x))
    ExpTransform() IndependentTransform(d.ExpTransform(),1) LowerCholeskyTransform() PowerTransform(x) SigmoidTransform()
    SoftmaxTransform() SoftplusTransform() StackTransform([d.ExpTransform()]*2) StickBreakingTransform() TanhTransform()
    """.split()
VALUES = """
    arange(6.).view(2,3).t() ones(2,dtype=m.bfloat16) tensor([True]) tensor([1+2j]).conj() tensor([1+2j]).conj().imag
    ones(2,dtype=m.uint16) ones(2).to(m.float8_e5m2) eye(2).to_sparse() eye(2).to_sparse_csr() ones(2,device='meta')
    ones(2,requires_grad=True) nn.Parameter(m.ones(2)) tensor(3) empty(0,3) ones(1).expand(3) Size([1,2]) device('cpu') float16
    strided sparse_coo channels_last ones(2,2).max(0) linalg.svd(m.eye(2)) ones(2).sort() linalg.slogdet(m.eye(2))
    nn.utils.rnn.pack_sequence([m.ones(2)]) utils.data.TensorDataset(m.ones(2))[0] amp.GradScaler('cpu').state_dict()
    """.split()
FUNCTIONS = """
    relu add einsum norm tensor ones save no_grad manual_seed vmap meshgrid softmax get_default_dtype from_numpy _foreach_add
    linalg.norm linalg.inv fft.fft special.expit sparse.mm func.grad autograd.grad autograd.functional.jacobian Tensor.add
    Tensor.backward Tensor.split Tensor.__add__ Tensor.relu_ nn.functional.relu nn.functional.gelu nn.functional.conv2d
    nn.functional.cross_entropy nn.init.xavier_uniform_ utils.data.default_collate nn.utils.clip_grad_norm_ nn.Linear.forward
    nn.MultiheadAttention.forward nn.MultiheadAttention nn.LazyLinear optim.Adam optim.lr_scheduler.StepLR distributions.Normal
    distributions.kl_divergence return_types.max Tensor FloatTensor Generator linalg.LinAlgError utils.checkpoint.checkpoint
    """.split()

KINDS = {
    "nn": [*(f"{n}()" for n in NO_ARGUMENTS), *(f"{n}(2)" for n in ONE_ARGUMENT), *MODULES],
    "optim": OPTIMIZERS,
    "schedule": SCHEDULERS,
    "distributions": DISTRIBUTIONS,
    "transforms": TRANSFORMS,
    "value": VALUES,
    "function": FUNCTIONS,
}
CASES = [(kind, source) for kind, sources in KINDS.items() for source in sources]
PREFIXES = {
    "nn": "m.nn.",
    "optim": "m.optim.",
    "schedule": "s.",
    "distributions": "d.",
    "transforms": "d.",
    "value": "m.",
    "function": "m.",
}


def made(m, kind, source):
    """Return the object that a source text creates with a library."""
    m.manual_seed(0)
    p = [m.nn.Parameter(m.arange(4.0).reshape(2, 2) + 1)]
    names = {"m": m, "d": m.distributions, "s": m.optim.lr_scheduler, "p": p, "x": m.tensor([0.3, 0.7])}
    names["o"] = m.optim.SGD(p, lr=0.1, momentum=0.9)
    result = eval(PREFIXES[kind] + source, names)
    if kind == "optim":
        steps(result)
    return result


def steps(optimizer):
    parameter = optimizer.param_groups[0]["params"][0]

    def closure():
        optimizer.zero_grad()
        loss = (parameter**2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return [[round(value, 4) for value in row] for row in parameter.tolist()]


def used(m, kind, source, value):
    """Use an object of one library, and return the outcome as text."""
    if kind == "nn":
        state = {} if "Lazy" in source else {name: each.tolist() for name, each in value.state_dict().items()}
        result = [repr(value), state, called(m, source, value)]
    elif kind == "optim":
        result = [steps(value), sorted(value.state_dict())]
    elif kind == "schedule":
        value.optimizer.step()
        value.step()
        result = [round(value.optimizer.param_groups[0]["lr"], 5), sorted(value.state_dict())]
    elif kind == "distributions":
        m.manual_seed(1)
        sample = made(m, kind, source).sample()
        result = [repr(value), [round(each, 3) for each in value.log_prob(sample).reshape(-1).tolist()]]
    elif kind == "transforms":
        point = m.tensor([[0.3, 0.2], [0.1, 0.4]])
        result = [repr(value), [round(each, 3) for each in value(point).reshape(-1).tolist()]]
    elif kind == "function":
        result = value is made(m, kind, source)
    else:
        result = [type(value).__name__, repr(value)]
    return str(result).replace("adjoint", "torch")


def called(m, source, module):
    inputs = {
        "LSTM": (3, 2),
        "GRU": (3, 2),
        "RNN": (3, 2),
        "Linear": (1, 2),
        "Multihead": (2, 1, 2),
        "TransformerE": (2, 1, 2),
    }
    shape = next(
        (
            shape
            for name, shape in inputs.items()
            if source.startswith((f"{name}(", "Multihead", "TransformerE")) and name in source
        ),
        None,
    )
    if shape is None:
        return None
    with m.no_grad():
        return repr(module.eval()(*[m.ones(shape)] * (3 if "Multihead" in source else 1)))


def saved(m, value, **options):
    file = io.BytesIO()
    m.save(value, file, **options)
    return file.getvalue()


def loaded(m, content, **options):
    return m.load(io.BytesIO(content), **options)


def crossed(source_library, target, value, form):
    """Return the object that one library has saved and the other library has loaded."""
    if form == "file":
        return loaded(target, saved(source_library, value), weights_only=False)
    if form == "old file":
        return loaded(target, saved(source_library, value, _use_new_zipfile_serialization=False), weights_only=False)
    dumps = exchange.dumps if source_library is adjoint else pickle.dumps
    return (exchange.loads if target is adjoint else pickle.loads)(dumps(value, int(form)))


@pytest.fixture(autouse=True)
def silent():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@cache
def expected(m, kind, source):
    """Use the object that a source text creates with a library, and return the outcome."""
    return used(m, kind, source, made(m, kind, source))


@cache
def survives(kind, source, form):
    """Return whether PyTorch's object remains the same when PyTorch writes and reads it."""
    try:
        value = crossed(torch, torch, made(torch, kind, source), form)
        return used(torch, kind, source, value) == expected(torch, kind, source)
    except Exception:
        return False


@pytest.mark.one_each("kind", "source", "direction")
@pytest.mark.parametrize("form", ["file", "4", "2", "old file"])
@pytest.mark.parametrize("direction", ["to PyTorch", "from PyTorch"])
@pytest.mark.parametrize(("kind", "source"), CASES)
def test_objects_cross(kind, source, direction, form):
    if not survives(kind, source, form):
        pytest.skip("PyTorch's own does not survive it")
    first, second = (adjoint, torch) if direction == "to PyTorch" else (torch, adjoint)
    value = crossed(first, second, made(first, kind, source), form)
    assert used(second, kind, source, value) == expected(second, kind, source)


def is_copied_in_pytorch(kind, source, way):
    try:
        way(made(torch, kind, source))
    except Exception:
        return False
    return True


@pytest.mark.one_each("kind", "source")
@pytest.mark.parametrize("way", [2, copy.deepcopy, copy.copy, 0, 1, 3, 4, 5])
@pytest.mark.parametrize(("kind", "source"), CASES)
def test_objects_are_copied(kind, source, way):
    value = made(adjoint, kind, source)
    try:
        value = way(value) if callable(way) else pickle.loads(pickle.dumps(value, way))
    except RuntimeError:
        assert callable(way) and not is_copied_in_pytorch(kind, source, way)
        return
    assert used(adjoint, kind, source, value) == expected(adjoint, kind, source)


@pytest.mark.parametrize("source", VALUES)
def test_values_cross_with_weights_only(source):
    for first, second in ((adjoint, torch), (torch, adjoint)):
        try:
            content = saved(first, made(first, "value", source))
        except TypeError:
            assert (
                first is torch
            )  # after an import of `torch._dynamo`, PyTorch cannot pickle layouts and memory formats
            continue
        outcomes = []
        for library in (first, second):
            try:
                outcomes.append(used(library, "value", source, loaded(library, content)))
            except pickle.UnpicklingError:
                outcomes.append("refused")
        assert outcomes[0] == outcomes[1]
