"""Lazy modules, transformers, parametrizations, normalized weights, pruning and fusion, with PyTorch's results and messages."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch.nn.utils.prune")


from tests.parity.behaviour import assert_same

SETUP = """
import copy, warnings
warnings.filterwarnings("ignore", message="enable_nested_tensor")
U, P, PZ, prune = nn.utils, nn.utils.parametrize, nn.utils.parametrizations, nn.utils.prune
UninitializedParameter, is_lazy = nn.parameter.UninitializedParameter, nn.parameter.is_lazy
class Sym(nn.Module):
    def forward(self, X): return X.triu() + X.triu(1).T
    def right_inverse(self, A): return A.triu()
class NoInverse(nn.Module):
    def forward(self, X): return X * 2
class Two(nn.Module):
    def forward(self, a, b): return a + b
    def right_inverse(self, X): return X / 4, X / 4 * 3
class Returns(nn.Module):
    def __init__(self, forward, inverse=None):
        super().__init__()
        self.f = forward
        if inverse is not None: self.right_inverse = inverse
    def forward(self, X): return self.f(X)
def L(n=3, m=3):
    torch.manual_seed(0)
    return nn.Linear(n, m).double()
def reg(m, *a, **k): return P.register_parametrization(m, *a, **k)
def shown(m, *inputs):
    "outputs, state and gradients"
    x = tensor(2, 3) if not inputs else inputs[0]
    y = m(x)
    (y * y).sum().backward()
    return [y, dict(m.state_dict()), {n: p.grad for n, p in m.named_parameters()}, repr(m)]
u = UninitializedParameter()
def lazily(kind, *args, **options):
    torch.manual_seed(1)
    *args, x = args
    m = kind(*args, **options)
    return [m(x), repr(m), dict(m.state_dict()), len(m._forward_pre_hooks)]
def marks(*activations):
    return [nn.TransformerEncoderLayer(4, 2, activation=each).activation_relu_or_gelu for each in activations]
def fused(layer, norm, fuse, x, *options):
    norm(tensor(4, 3, *x.shape[2:]).float())
    torch.manual_seed(0)
    layer.reset_parameters()
    return fuse(layer.eval(), norm.eval(), *options)(x.float())
x = torch.ones(3, 1, 4)
causal = torch.ones(3, 3).bool().triu(1)
"""

LAZY = """
repr(u)
repr(nn.parameter.UninitializedBuffer())
u.shape
(u.dtype, u.device, u.requires_grad, u.size(), u.is_leaf, u.grad, is_lazy(u), isinstance(u, nn.Parameter))
repr(copy.deepcopy(u))
u.double().dtype
[u.materialize((2, 3), dtype=torch.float64), type(u).__name__, u.shape, u.dtype]
nn.LazyLinear(3)
nn.LazyLinear(3, bias=False)
repr(nn.LazyLinear(3).state_dict())
nn.LazyLinear(3).double().weight.dtype
nn.LazyConv2d(3, 2, groups=2)
nn.LazyBatchNorm2d()
nn.LazyConvTranspose2d(3, 2, 1)
nn.LazyConv2d(3, 2)(torch.ones(3, 3))
nn.LazyBatchNorm2d()(torch.ones(3, 3))
nn.LazyConv2d(4, 2, groups=2)(torch.ones(1, 3, 4, 4))
nn.LazyInstanceNorm1d()
nn.LazyLinear(3).load_state_dict(nn.Linear(2, 3).state_dict())
nn.Linear(2, 3).load_state_dict(nn.LazyLinear(3).state_dict())
nn.LazyLinear(3).load_state_dict(nn.LazyLinear(3).state_dict())
nn.LazyLinear(2).initialize_parameters()
nn.LazyLinear(3).has_uninitialized_params()
lazily(nn.LazyLinear, 3, torch.ones(2, 5))
lazily(nn.LazyConv2d, 4, 3, torch.ones(2, 4, 5, 5), groups=2)
lazily(nn.LazyConvTranspose1d, 3, 3, torch.ones(2, 4, 5))
lazily(nn.LazyBatchNorm1d, tensor(4, 5).float())
lazily(nn.LazyInstanceNorm2d, tensor(4, 5, 3, 3).float())
[(m := copy.deepcopy(nn.LazyLinear(2))), m(torch.ones(1, 3)).shape]
(setattr(torch, '_', None), nn.LazyLinear(2).reset_parameters())[1]
"""

TRANSFORMERS = """
nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2), 2)
nn.Transformer(4, 2, 1, 1, 8)
nn.Transformer(4, 2, 1, 1, 8)(torch.ones(2, 3, 4), torch.ones(2, 2, 4))
nn.Transformer(4, 2, 1, 1, 8)(torch.ones(2, 3, 5), torch.ones(2, 3, 5))
nn.Transformer.generate_square_subsequent_mask(3)
nn.TransformerEncoderLayer(4, 2, activation='foo')
nn.TransformerEncoderLayer(4, 2)(torch.ones(3, 1, 4), is_causal=True)
nn.TransformerEncoderLayer(4, 2)(torch.ones(3, 1, 4), src_mask=torch.ones(3, 3).long())
nn.TransformerEncoderLayer(4, 2).eval()(x, src_mask=causal, src_key_padding_mask=torch.zeros(1, 3)).shape
marks(nn.ReLU(), 'gelu', torch.tanh, nn.GELU('tanh'))
nn.Transformer(4, 2, 1, 1)(torch.ones(3, 4), torch.ones(2, 4)).shape
"""

PARAMETRIZED = """
shown(reg(L(), 'weight', Sym()))
shown(reg(L(), 'weight', Two()))
shown(reg(reg(L(), 'weight', Sym()), 'weight', NoInverse()))
reg(L(), 'foo', Sym())
reg(L(), 'weight', Returns(lambda X: X[:1]))
reg(L(), 'weight', Returns(lambda X: 3))
reg(L(), 'weight', Returns(lambda X: X.float()))
reg(L(), 'weight', Returns(lambda X: X, lambda X: 3))
reg(L(), 'weight', Returns(lambda X: X, lambda X: X.float()))
reg(L(), 'weight', Returns(lambda X: X, lambda X: (X, 3)))
reg(L(), 'weight', Returns(lambda X: X[:1]), unsafe=True)
reg(reg(L(), 'weight', Sym()), 'weight', Returns(lambda X: X[:1]))
reg(reg(L(), 'weight', Sym()), 'weight', Returns(lambda X: 3))
reg(reg(L(), 'weight', Sym()), 'weight', Returns(lambda X: X, lambda X: 3))
(type(reg(L(), 'weight', Sym())).__name__, P.type_before_parametrizations(reg(L(), 'weight', Sym())).__name__)
(P.is_parametrized(L()), P.is_parametrized(reg(L(), 'weight', Sym())), P.is_parametrized(reg(L(), 'weight', Sym()), 'bias'))
P.remove_parametrizations(L(), 'weight')
P.remove_parametrizations(reg(L(), 'weight', Two()), 'weight', leave_parametrized=False)
shown(P.remove_parametrizations(reg(L(), 'weight', Two()), 'weight'))
shown(P.remove_parametrizations(reg(L(), 'weight', NoInverse()), 'weight'))
shown(P.remove_parametrizations(reg(L(), 'weight', NoInverse()), 'weight', leave_parametrized=False))
shown(copy.deepcopy(reg(L(), 'weight', Sym())))
__import__('pickle').dumps(reg(L(), 'weight', Sym()))
setattr(reg(L(), 'weight', NoInverse()), 'weight', torch.ones(3, 3))
[(m := reg(L(), 'weight', Sym())), setattr(m, 'weight', tensor(3, 3)), m.weight, m.parametrizations.weight.original]
delattr(reg(L(), 'weight', Sym()), 'weight')
shown(P.transfer_parametrizations_and_params(reg(L(), 'weight', Sym()), L()))
shown(reg(nn.LayerNorm(3).double(), 'weight', NoInverse()))
shown(reg(nn.Conv1d(2, 3, 2).double(), 'weight', NoInverse()), tensor(1, 2, 4))[0].shape
shown(PZ.weight_norm(L()))
shown(PZ.weight_norm(L(), dim=1))
shown(PZ.weight_norm(L(), dim=None))
PZ.weight_norm(L(), 'foo')
PZ.weight_norm(L()).load_state_dict({'bias': torch.ones(3), 'weight_g': torch.ones(3, 1), 'weight_v': torch.ones(3, 3)})
shown(PZ.spectral_norm(L()))
shown(PZ.spectral_norm(L()).eval())
PZ.spectral_norm(L(), 'foo')
PZ.spectral_norm(L(), n_power_iterations=0)
PZ.spectral_norm(L(), dim=5)
PZ.orthogonal(L(), 'bias')
PZ.orthogonal(L(), orthogonal_map='x')
shown(PZ.orthogonal(L()))
shown(PZ.orthogonal(L(3, 3), orthogonal_map='cayley'))
shown(PZ.orthogonal(L(3, 2), orthogonal_map='householder', use_trivialization=False))
PZ.orthogonal(L(3, 2), orthogonal_map='cayley', use_trivialization=False).parametrizations.weight.original
shown(U.weight_norm(L()))
shown(U.weight_norm(L(), dim=None))
U.weight_norm(U.weight_norm(L()))
shown(U.remove_weight_norm(U.weight_norm(L())))
U.remove_weight_norm(L())
shown(U.spectral_norm(L()))
shown(U.spectral_norm(L()).eval())
U.spectral_norm(L(), n_power_iterations=0)
U.spectral_norm(U.spectral_norm(L()))
shown(U.remove_spectral_norm(U.spectral_norm(L())))
U.remove_spectral_norm(L())
[torch.norm_except_dim(tensor(3, 4, 2), 2, d) for d in (0, 1, -1, -2)]
torch.norm_except_dim(tensor(3), 2, 3)
torch._weight_norm(tensor(3, 4), tensor(3, 1))
U.skip_init(nn.Linear, 2, 3)
U.skip_init(list)
U.skip_init(nn.ReLU)
U.convert_conv2d_weight_memory_format(nn.Conv2d(2, 3, 2), torch.channels_last).weight.stride()
"""

PRUNED = """
shown(prune.l1_unstructured(L(), 'weight', 2))
shown(prune.l1_unstructured(L(), 'weight', 0.5))
shown(prune.l1_unstructured(prune.l1_unstructured(L(), 'weight', 2), 'weight', 2))
shown(prune.ln_structured(L(), 'weight', 1, 2, 0))
shown(prune.ln_structured(prune.ln_structured(L(), 'weight', 1, 2, 0), 'weight', 1, 1, -1))
shown(prune.l1_unstructured(prune.ln_structured(L(), 'weight', 1, 2, 0), 'weight', 2))
shown(prune.random_unstructured(L(), 'weight', 2))
shown(prune.random_structured(L(), 'weight', 1, 0))
shown(prune.custom_from_mask(L(), 'weight', torch.eye(3)))
shown(prune.identity(L(), 'weight'))
shown(prune.remove(prune.l1_unstructured(L(), 'weight', 2), 'weight'))
[(m := L()), prune.global_unstructured([(m, 'weight'), (m, 'bias')], prune.L1Unstructured, amount=4), shown(m)]
prune.l1_unstructured(L(), 'weight', 1.5)
prune.l1_unstructured(L(), 'weight', 100)
prune.l1_unstructured(L(), 'weight', -1)
prune.l1_unstructured(L(), 'weight', 'a')
prune.remove(L(), 'weight')
(prune.is_pruned(L()), prune.is_pruned(prune.identity(L(), 'weight')))
prune.ln_structured(L(), 'bias', 1, 2, 0)
prune.ln_structured(L(), 'weight', 1, 2, 5)
prune.custom_from_mask(L(), 'weight', torch.ones(2, 2))
prune.global_unstructured([1], prune.L1Unstructured)
prune.global_unstructured(3, prune.L1Unstructured)
prune.l1_unstructured(L(), 'weight', 1, importance_scores=torch.ones(2, 2))
[(m := L()), prune.L1Unstructured(2).prune(m.weight)]
"""

FUSED = """
U.fuse_conv_bn_eval(nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3))
fused(nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3), U.fuse_conv_bn_eval, tensor(1, 2, 3, 3))
fused(nn.ConvTranspose2d(2, 3, 2, bias=False), nn.BatchNorm2d(3), U.fuse_conv_bn_eval, tensor(1, 2, 3, 3), True)
fused(nn.Linear(2, 3), nn.BatchNorm1d(3), U.fuse_linear_bn_eval, tensor(4, 2))
U.fuse_linear_bn_eval(nn.Linear(2, 3).eval(), nn.BatchNorm1d(4).eval())
"""


@pytest.mark.parametrize(
    "line", [line for lines in (LAZY, TRANSFORMERS, PARAMETRIZED, PRUNED, FUSED) for line in lines.strip().split("\n")]
)
def test_as_pytorch(line):
    assert_same(SETUP + line)


PADDED = """
layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).double()
encoder = nn.TransformerEncoder(layer, 2, {norm}).double().eval()
for i, p in enumerate(encoder.parameters()):
    p.data = tensor(*p.shape, seed=i) / 4
padding = torch.tensor([[0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 0, 0]]).bool().{order}
with {mode}: y = encoder(tensor(3, 4, 8), src_key_padding_mask=padding)
y.detach()
"""


@pytest.mark.parametrize("mode", ["torch.no_grad()", "torch.enable_grad()"])
@pytest.mark.parametrize("order", ["clone()", "flip(1)"])
@pytest.mark.parametrize("norm", ["None", "nn.LayerNorm(8)"])
def test_encoders_leave_padding_out(mode, order, norm):
    assert_same("import warnings\nwarnings.simplefilter('ignore')\n" + PADDED.format(mode=mode, order=order, norm=norm))
