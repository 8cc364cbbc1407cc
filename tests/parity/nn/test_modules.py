"""Attributes, names, state dicts, hooks and containers of modules behave as in PyTorch, with the same messages."""

import pytest

torch = pytest.importorskip("torch")

from tests.parity.behaviour import assert_same

pytestmark = pytest.mark.computed

BEFORE_INIT = """
class Early(nn.Module):
    def __init__(self):
        self.a = {value}
Early()
"""


@pytest.mark.parametrize("value", ["nn.Parameter(torch.ones(1))", "nn.Linear(1, 1)", "nn.Buffer(torch.ones(1))"])
def test_assignment_before_init(value):
    assert_same(BEFORE_INIT.format(value=value))


OWNER = """
m = nn.Module()
m.p = nn.Parameter(torch.ones(2))
m.l = nn.Linear(2, 2)
m.register_buffer('b', torch.ones(1))
"""

ATTRIBUTES = """
setattr(m, 'p', torch.ones(2))
setattr(m, 'p', 3)
setattr(m, 'l', 3)
setattr(m, 'l', torch.ones(2))
setattr(m, 'b', 3)
(setattr(m, 'b', None), setattr(m, 'p', None), setattr(m, 'l', None), m._parameters, m._buffers, m._modules)[1:]
m.zzz
nn.Linear(2, 2).zzz
delattr(m, 'zzz')
(delattr(m, 'p'), delattr(m, 'b'), delattr(m, 'l'), m._parameters, m._buffers, m._modules)
(setattr(m, 'x', 3), setattr(m, 'x', nn.Parameter(torch.ones(1))), 'x' in m.__dict__, list(m._parameters))
(setattr(m, 'p', nn.Parameter(torch.zeros(1))), setattr(m, 'l', nn.Parameter(torch.zeros(1))), list(m._parameters), list(m._modules))
(setattr(m, 'q', nn.Buffer(torch.zeros(1), persistent=False)), list(m._buffers), m._non_persistent_buffers_set)
(setattr(m, 'b', nn.Buffer(torch.zeros(1), persistent=False)), list(m.state_dict()))
m.register_parameter(3, None)
m.register_parameter('a.b', None)
m.register_parameter('', None)
m.register_parameter('train', None)
m.register_parameter('ok', 3)
m.register_parameter('ok', torch.ones(1))
m.register_parameter('p', None)
m.register_parameter('b', None)
m.register_buffer(3, None)
m.register_buffer('a.b', None)
m.register_buffer('', None)
m.register_buffer('train', None)
m.register_buffer('ok', 3)
m.register_buffer('p', None)
m.add_module(3, None)
m.add_module('a.b', None)
m.add_module('', None)
m.add_module('train', None)
m.add_module('ok', 3)
m.add_module('ok', torch.ones(1))
m.add_module('p', None)
m(3)
m.forward()
m.get_submodule('x.y')
m.get_submodule('p')
m.get_submodule('') is m
m.get_submodule('l')
m.get_parameter('x.y')
m.get_parameter('y')
m.get_parameter('b')
m.get_parameter('l.bias').shape
m.get_buffer('p')
m.get_buffer('zz')
m.get_buffer('b')
m.set_submodule('', nn.Linear(1, 1))
m.set_submodule('a.b', nn.Linear(1, 1))
m.set_submodule('p', nn.Linear(1, 1))
(m.set_submodule('l.new', nn.ReLU()), m)[1]
(m.set_submodule('l', nn.ReLU(), strict=True), m)[1]
m.set_submodule('new', nn.ReLU(), strict=True)
m.set_submodule('l', 3)
m.set_submodule('new.deep', nn.ReLU(), strict=True)
m.train(3)
m.eval().training, m.l.training, m.train().training
m.to(torch.int32)
m.to(torch.ones(1, dtype=torch.int32))
m.to()
m.to(torch.float64).b.dtype
m.to('cpu', torch.float64).b.dtype
m.to(dtype=torch.float16).b.dtype
m.to(torch.ones(1, dtype=torch.float64)).p.dtype
m.to(torch.complex64).p.dtype
m.type(torch.float64).p.dtype
m.half().l.weight.dtype, m.float().p.dtype, m.double().b.dtype, m.bfloat16().p.dtype
m.get_extra_state()
m.set_extra_state(1)
nn.Module(1)
nn.Module(a=1)
nn.Module(1, 2, b=2)
m
nn.Linear(2, 2)(1, 2, 3)
[d for d in dir(m) if d in ('p', 'l', 'b')], [d for d in dir(nn.Sequential(m)) if d[0] == '0']
(m.requires_grad_(False), [p.requires_grad for p in m.parameters()])[1]
[n for n, _ in m.named_parameters()], [n for n, _ in m.named_parameters(recurse=False)], [n for n, _ in m.named_parameters('x')]
[n for n, _ in m.named_buffers()], [n for n, _ in m.named_modules()], [n for n, _ in m.named_children()]
[n for n, _ in nn.Sequential(m, m).named_parameters()]
[n for n, _ in nn.Sequential(m, m).named_parameters(remove_duplicate=False)]
[n for n, _ in nn.Sequential(m, m).named_modules()], [n for n, _ in nn.Sequential(m, m).named_modules(remove_duplicate=False)]
[n for n, _ in nn.Sequential(m, m).named_children()], len(list(nn.Sequential(m, m).modules()))
m.apply(lambda x: setattr(x, 'seen', True)).seen, m.l.seen
m.zero_grad(), m.p.grad
(m.p.sum().backward(), m.zero_grad(False), m.p.grad)[2]
(m.p.sum().backward(), m.zero_grad(), m.p.grad)[2]
"""  # noqa: E501


@pytest.mark.parametrize("line", ATTRIBUTES.strip().split("\n"))
def test_attributes(line):
    assert_same(OWNER + line)


PARAMETERS = """
nn.Parameter(torch.tensor([1, 2]))
nn.Parameter([1, 2])
nn.Parameter()
nn.Parameter(torch.tensor([1, 2]), requires_grad=False)
nn.Parameter(torch.ones(2), False)
str(nn.Parameter(torch.ones(2))), f'{nn.Parameter(torch.ones(2))}', repr(nn.Parameter(torch.tensor(3.0)))
type(nn.Parameter(torch.ones(2)) * 2).__name__, type(nn.Parameter(torch.ones(2)).detach()).__name__
type(nn.Parameter(torch.ones(2))[0]).__name__, type(nn.Parameter(torch.ones(2)).data).__name__
isinstance(nn.Parameter(torch.ones(2)), torch.Tensor), isinstance(torch.ones(2), nn.Parameter)
nn.Parameter(torch.ones(2)).add_(0)
nn.Buffer(torch.ones(1)), isinstance(nn.Buffer(torch.ones(1)), nn.Buffer), isinstance(torch.ones(1), nn.Buffer)
nn.Buffer(), nn.Buffer(torch.ones(1)).persistent, nn.Buffer(torch.ones(1), persistent=False).persistent
""".strip().split("\n")

PARAMETERS_IN_STEPS = """
x = torch.ones(2)
p = nn.Parameter(x)
x.add_(1)
p, p._version, x._version, p.is_leaf, p._is_view()

x = torch.ones(2, requires_grad=True) * 2
nn.Parameter(x)

import copy
p = nn.Parameter(torch.ones(2))
p.grad = torch.ones(2)
q = copy.deepcopy(p)
q, q is p, type(q).__name__, q.grad

import pickle
p = nn.Parameter(torch.ones(2))
p.foo = 3
q = pickle.loads(pickle.dumps(p))
q, type(q).__name__, q.foo

l = nn.Linear(2, 2)
w = l.weight
w.grad = torch.ones(2, 2)
l.double()
l.weight is w, w.grad.dtype

class P(nn.Parameter): pass
type(P(torch.ones(1))).__name__, isinstance(P(torch.ones(1)), nn.Parameter)
""".strip().split("\n\n")


@pytest.mark.parametrize("line", PARAMETERS + PARAMETERS_IN_STEPS)
def test_parameters(line):
    assert_same(line)


STATES = """
nn.Linear(2, 2).load_state_dict(3)
nn.Linear(2, 2).load_state_dict({})
nn.Linear(2, 2).load_state_dict({'weight': torch.ones(3, 2), 'bias': torch.ones(2), 'zz': 3})
nn.Linear(2, 2).load_state_dict({'weight': 3, 'bias': torch.ones(2), 'zz': 3})
nn.Linear(2, 2).load_state_dict({'weight': 3, 'bias': torch.ones(2), 'zz': 3}, strict=False)
nn.Linear(2, 2).load_state_dict({'zz': 3}, strict=False)
nn.BatchNorm1d(2).load_state_dict({'running_mean': torch.ones(3)})
nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 2)).load_state_dict({'0': 1, 'x.y': 3})
nn.Linear(2, 2, bias=False).load_state_dict({'weight': torch.ones(2, 2), 'bias': torch.ones(3)})
nn.Linear(2, 2).load_state_dict({'weight': torch.ones(2, 2), 'bias': torch.ones(3)}, assign=True)
nn.Sequential(nn.Linear(2, 2)).state_dict()._metadata
nn.Linear(2, 2).state_dict(3)
nn.Linear(1, 1).load_state_dict({'weight': torch.ones(1, 1), 'bias': torch.ones(1), '_extra_state': 3})
""".strip().split("\n")

STATES_IN_STEPS = """
l = nn.Linear(2, 2)
l.load_state_dict({'weight': torch.ones(2, 2).double(), 'bias': torch.ones(2)}, assign=True), l.weight

l = nn.Linear(2, 2)
w = l.weight
l.load_state_dict({'weight': torch.ones(2, 2).double(), 'bias': torch.ones(2)}), l.weight, l.weight is w

m = nn.Module()
m.s = nn.Parameter(torch.tensor(1.0))
m.load_state_dict({'s': torch.tensor([5.0])}), m.s

l = nn.Linear(2, 2)
l.state_dict({}, 'a.', True)

l = nn.Linear(2, 2)
[(k, v.requires_grad) for k, v in l.state_dict(destination={}).items()]

l = nn.Linear(2, 2)
[(k, v.requires_grad, v is l.weight) for k, v in l.state_dict(keep_vars=True, prefix='x.').items()]

l = nn.Linear(2, 2)
l.register_load_state_dict_post_hook(lambda m, k: 3)
l.load_state_dict(l.state_dict())

l = nn.Linear(2, 2)
l.register_load_state_dict_post_hook(lambda m, k: k.missing_keys.clear())
l.load_state_dict({})

l = nn.Linear(2, 2)
l.register_state_dict_post_hook(lambda *a: 3)
l.state_dict()

h = lambda *a: None
l = nn.Linear(2, 2)
l.register_state_dict_post_hook(h)
l._register_state_dict_hook(h)

l = nn.Linear(1, 1)
log = []
h = l.register_state_dict_pre_hook(lambda m, *a: log.append(a))
l.register_state_dict_post_hook(lambda m, d, *a: log.append((list(d), *a)))
l._register_state_dict_hook(lambda *a: 3)
(l.state_dict(prefix='q.', keep_vars=True), log)

l = nn.Linear(1, 1)
log = []
l.register_load_state_dict_pre_hook(lambda m, d, *a: log.append((m is l, list(d), *a)))
l._register_load_state_dict_pre_hook(lambda d, *a: log.append((list(d), *a)))
l._register_load_state_dict_pre_hook(lambda m, d, *a: log.append((m is l, list(d), *a)), with_module=True)
(l.load_state_dict(l.state_dict()), log)

class X(nn.Module):
    def get_extra_state(s): return {'a': 1}
    def set_extra_state(s, x): s.got = x
x = X()
x.register_buffer('b', torch.ones(1), persistent=False)
x.register_buffer('c', None)
(x.state_dict(), x.load_state_dict(x.state_dict()), x.got)

class X(nn.Module):
    def get_extra_state(s): return {'a': 1}
    def set_extra_state(s, x): s.got = x
X().load_state_dict({})

b = nn.BatchNorm1d(2)
d = {k: v for k, v in b.state_dict().items() if k != 'num_batches_tracked'}
b.load_state_dict(d)

b = nn.BatchNorm1d(2)
d = b.state_dict()
del d['num_batches_tracked']
b.load_state_dict(d)

import copy, pickle
l = nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1))
m = pickle.loads(pickle.dumps(l))
(m, m[0].weight.detach() == l[0].weight.detach(), m[0].weight.requires_grad, list(m.state_dict()))
""".strip().split("\n\n")


@pytest.mark.parametrize("line", STATES + STATES_IN_STEPS)
def test_state_dicts(line):
    assert_same("torch.manual_seed(0)\n" + line)


HOOKED = """
log = []
class M(nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, *args, **kwargs):
        return self.f(self, *args, **kwargs)
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = torch.tensor([3.0, 4.0])
def seen(tag):
    shown = lambda q: q.detach() if isinstance(q, torch.Tensor) else q
    return lambda m, *a: log.append((tag, type(m).__name__, list(map(shown, a))))
def run(f, *args, pre=None, hook=None, back=True):
    m = M(f)
    m.register_full_backward_pre_hook(pre or seen('pre'))
    m.register_full_backward_hook(hook or seen('full'))
    o = m(*args)
    if back:
        first = o if isinstance(o, torch.Tensor) else o[0] if isinstance(o, (tuple, list)) else o['a']
        first.sum().backward()
    outputs = o if isinstance(o, tuple) else (o,)
    named = [type(p.grad_fn).__name__ if isinstance(p, torch.Tensor) else p for p in outputs]
    return named if not isinstance(o, (list, dict)) else None, m.w.grad, x.grad, log
def legacy(f, *args):
    m = M(f)
    m.register_backward_hook(seen('legacy'))
    o = m(*args)
    (o if isinstance(o, torch.Tensor) else o[0]).sum().backward()
    return x.grad, log
"""

HOOKS = """
run(lambda s, a: a * s.w, x)
run(lambda s, a: a * s.w, y)
run(lambda s, a, b: a * s.w * b, x, y)
run(lambda s, a, b: (a * s.w, a * b), x, y)
run(lambda s, a, b: [a * s.w, a * b], x, y)
run(lambda s, a, b: {'a': a * s.w}, x, y)
run(lambda s, a, b: (a * s.w, 3, y), x, 5)
run(lambda s, a, b: a[0] * s.w, [x], 5)
run(lambda s, a: a * s.w, x, pre=lambda m, g: (g[0] * 10,), hook=lambda m, gi, go: (gi[0] + go[0],))
run(lambda s, a: a * s.w, x, pre=lambda m, g: g[0] * 10, hook=lambda m, gi, go: gi[0] + go[0])
run(lambda s, a: a * s.w, x, pre=lambda m, g: (g[0], g[0]))
run(lambda s, a: a * s.w, x, hook=lambda m, gi, go: (gi[0], gi[0]))
run(lambda s, a: a * s.w, y, hook=lambda m, gi, go: (y,))
run(lambda s, a: a * s.w, y, hook=lambda m, gi, go: (None,))
run(lambda s, a: a * s.w, x, hook=lambda m, gi, go: 3)
run(lambda s, a: 3, x, back=False)
run(lambda s, a: None, x, back=False)
run(lambda s, a: y, y, back=False)
legacy(lambda s, a: a * s.w, x)
legacy(lambda s, a: (a * s.w, a), x)
legacy(lambda s, a: a * s.w + 1, x)
legacy(lambda s, a: [a * s.w], x)
legacy(lambda s, a: y, y)
run(lambda s, a: a * s.w, x, hook=lambda m, gi, go: torch.ones(2, 2))
""".strip().split("\n")

HOOKS_IN_STEPS = """
m = M(lambda s, a: a * s.w)
m.register_full_backward_hook(seen('f'))
o = m(x)
(o._is_view(), o.add_(1))

m = M(lambda s, a: a.add_(1) * s.w)
m.register_full_backward_hook(seen('f'))
m(x * 1)

m = M(lambda s, a: a * s.w)
m.register_full_backward_hook(seen('f'))
o = m(x)
o.sum().backward(retain_graph=True)
o.sum().backward()
log

m = M(lambda s, a: a * s.w)
m.register_full_backward_hook(seen('a'))
m.register_full_backward_hook(seen('b'), prepend=True)
m(x).sum().backward()
log

m = M(lambda s, a: a * s.w)
h = m.register_full_backward_hook(seen('a'))
h.remove()
h.remove()
m(x).sum().backward()
log

m = M(lambda s, a: a * s.w)
m.register_full_backward_hook(seen('a'))
with torch.no_grad(): o = m(x)
o, log

m = M(lambda s, a: a)
m.register_backward_hook(print)
m.register_full_backward_hook(print)

m = M(lambda s, a: a)
m.register_full_backward_hook(print)
m.register_backward_hook(print)

m = M(lambda s, *a, **k: (a, k))
m.register_forward_pre_hook(lambda m, a: 5)
m(1, b=2)

m = M(lambda s, *a, **k: (a, k))
m.register_forward_pre_hook(lambda m, a: 5)
m.register_forward_pre_hook(lambda m, a, k: ((a, 1), {'z': 2}), with_kwargs=True)
m.register_forward_pre_hook(lambda m, a: (7, 8), prepend=True)
m(1, b=2)

m = M(lambda s, *a, **k: (a, k))
m.register_forward_pre_hook(lambda m, a, k: 3, with_kwargs=True)
m(1)

m = M(lambda s, *a, **k: (a, k))
m.register_forward_pre_hook(lambda m, a, k: (1, 2, 3), with_kwargs=True)
m(1)

m = M(lambda s, *a, **k: (a, k))
m.register_forward_hook(lambda m, a, o: (a, o))
m.register_forward_hook(lambda m, a, k, o: (a, k, o), with_kwargs=True)
m(1, b=2)

m = M(lambda s, *a, **k: 1 / 0)
m.register_forward_hook(seen('never'))
m.register_forward_hook(seen('always'), always_call=True)
m.register_forward_hook(seen('both'), always_call=True, with_kwargs=True)
m.register_forward_hook(lambda *a: [][1], always_call=True)
try: m(1, k=2)
except ZeroDivisionError as e: log.append(str(e))
log

m = M(lambda s, *a: a)
m.register_forward_hook(lambda *a: [][1])
m.register_forward_hook(seen('always'), always_call=True)
try: m(1)
except IndexError as e: log.append(str(e))
log

m = M(lambda s, *a: a)
with m.register_forward_hook(seen('a')): m(1)
m(2)
log

mm = nn.modules.module
h = mm.register_module_forward_hook(lambda m, a, o: [][1], always_call=True)
m = M(lambda s, *a: 1 / 0)
try: m(1)
finally: h.remove()

mm = nn.modules.module
h = mm.register_module_forward_hook(seen('gk'), with_kwargs=True)
m = M(lambda s, *a, **k: a)
m(1, z=3)
h.remove()
m(2)
log

mm = nn.modules.module
hs = [mm.register_module_full_backward_hook(seen('gfull')), mm.register_module_full_backward_pre_hook(seen('gpre')), mm.register_module_forward_pre_hook(seen('gforward'))]
r = run(lambda s, a: a * s.w, x)
for h in hs: h.remove()
r

mm = nn.modules.module
hs = [mm.register_module_parameter_registration_hook(lambda m, n, p: log.append(n)), mm.register_module_buffer_registration_hook(lambda m, n, p: log.append(n)), mm.register_module_module_registration_hook(lambda m, n, p: log.append(n))]
nn.Sequential(nn.BatchNorm1d(2))
for h in hs: h.remove()
log
""".strip().split("\n\n")  # noqa: E501


@pytest.mark.parametrize("line", HOOKS + HOOKS_IN_STEPS)
def test_hooks(line):
    assert_same(HOOKED + line)


def containers(make, lines):
    return [f"{make}\n{line}" for line in lines.strip().split("\n")]


SEQUENTIAL = containers(
    "R, T = nn.ReLU, nn.Tanh\nfrom collections import OrderedDict\ns = nn.Sequential(R(), T(), nn.Sigmoid())",
    """
s[3]
s[-4]
s[-1]
s[1:]
s[::2]
s['a']
s[1.5]
(s.__delitem__(0), s)[1]
(s.__delitem__(slice(0, 2)), s)[1]
s.__delitem__(5)
s + s
s + 3
s * 2
2 * s
s * 0
s * 'a'
(s.__iadd__(nn.Sequential(R())), s)
s.__iadd__(3)
(s.__imul__(2), s)
(s.append(R()), s)
(s.insert(1, R()), s)
s.insert(9, R())
(s.insert(-1, R()), s)
(s.extend([R(), T()]), s)
s.extend(3)
(s.pop(0), s)
(s.pop(-1), s)
s.pop(9)
(s.__setitem__(0, T()), s)
s.__setitem__(9, T())
s.append(3)
s.__setitem__(0, 3)
nn.Sequential(OrderedDict(a=R(), b=T()))
nn.Sequential({'a': R()})
nn.Sequential([R()])
nn.Sequential(OrderedDict(a=R(), b=T()))[0]
nn.Sequential(OrderedDict(a=R(), b=T()))[:1]
nn.Sequential(OrderedDict(a=R(), b=T())).append(R())
nn.Sequential(OrderedDict(a=R(), b=T())).a
len(s), list(s), bool(nn.Sequential()), [d for d in dir(s) if d.isdigit()]
nn.Sequential()(3)
s(torch.ones(1), 2)
""",
)

MODULE_LIST = containers(
    "R, T = nn.ReLU, nn.Tanh\ns = nn.ModuleList([R(), T(), nn.Sigmoid()])",
    """
s
s[3]
s[-1]
s[1:]
s[::-1]
s['a']
(s.__delitem__(0), s)[1]
(s.__delitem__(slice(0, 2)), s)[1]
(s.__delitem__(-1), s)[1]
s.__delitem__(5)
s + s
s + [R()]
s + 3
(s.__iadd__([R()]), s)
(s.append(R()), s)
(s.insert(1, R()), s)
(s.insert(9, R()), s)
(s.extend((R(),)), s)
(s.extend(R() for _ in range(2)), s)
s.extend(3)
(s.pop(1), s)
(s.pop(slice(0, 2)), s)
(s.__setitem__(-1, T()), s)
s.__setitem__(9, T())
s.__setitem__(slice(0, 2), T())
s(3)
nn.ModuleList(3)
nn.ModuleList([3])
nn.ModuleList([None, R()])
nn.ModuleList([R()] * 3 + [nn.Sequential(R(), T())] * 2)
nn.ModuleList(x for x in [R()])
s.append(3)
T() in s, s[0] in s, len(s), list(s), [d for d in dir(s) if d.isdigit()]
""",
)

MODULE_DICT = containers(
    "R, T = nn.ReLU, nn.Tanh\ns = nn.ModuleDict({'a': R(), 'b': nn.Sequential(T())})",
    """
s
s['a']
s['z']
(s.__setitem__('c', R()), s)
s.__setitem__('c', 3)
s.__setitem__(3, R())
s.__setitem__('keys', R())
(s.update({'a': T(), 'z': R()}), s)
(s.update([('q', T())]), s)
(s.update([['q', T()]]), s)
(s.update(nn.ModuleDict({'x': T()})), s)
s.update(3)
s.update([3])
s.update([(1, 2, 3)])
s.update({3: R()})
(s.pop('a'), s)
s.pop('zz')
(s.clear(), s)
(s.__delitem__('a'), s)
list(s.keys()), list(s.values()), list(s.items()), list(s), 'a' in s, len(s)
s(3)
""",
)

PARAMETER_LIST = containers(
    "P = lambda: nn.Parameter(torch.ones(2))\ns = nn.ParameterList([P(), torch.zeros(1, 3), 3])",
    """
s
s[0]
s[3]
s[-1]
s[1:]
s['a']
(s.__setitem__(0, torch.ones(3)), s)
s.__setitem__(9, P())
(s.append(torch.ones(1)), s)
(s.append('x'), s)
(s.extend([P(), 4]), s)
s.extend(3)
s.extend(P())
s.extend(torch.ones(2, 3))
(s.__iadd__([P()]), s)
list(s), len(s), [n for n, _ in s.named_parameters()], [d for d in dir(s) if d.isdigit()]
nn.ParameterList(3)
nn.ParameterList(s)
nn.ParameterList()
s(3)
""",
)

PARAMETER_DICT = containers(
    "P = lambda: nn.Parameter(torch.ones(2))\ns = nn.ParameterDict({'a': P(), 'b': torch.zeros(1, 3), 'c': 3})",
    """
s
s['a']
s['zz']
(s.__setitem__('d', torch.ones(1)), s)
(s.__setitem__('a', torch.ones(1)), s)
s.__setitem__(3, torch.ones(1))
(s.__delitem__('a'), s)
s.__delitem__('zz')
len(s), list(s), list(reversed(s)), 'a' in s, list(s.keys()), list(s.items()), list(s.values())
s.copy()
(s.setdefault('a'), s)
(s.setdefault('q', 5), s)
(s.setdefault('q'), s)
(s.clear(), s)
(s.pop('a'), s)
s.pop('zz')
(s.popitem(), s)
s.get('a'), s.get('zz', 7)
s.fromkeys(['a', 'b'], 1)
(s.update([('q', P())]), s)
(s.update({'a': P()}), s)
s.update(3)
s.update([3])
s.update([(1, 2, 3)])
s | {'z': P()}
{'z': P()} | s
(s.__ior__({'z': 1}), s)
nn.ParameterDict(3)
nn.ParameterDict()
s(3)
nn.ParameterDict({'keys': P()})
nn.ParameterDict({'x.y': P()})
nn.ParameterDict({3: P()})
""",
)


@pytest.mark.parametrize("lines", SEQUENTIAL + MODULE_LIST + MODULE_DICT + PARAMETER_LIST + PARAMETER_DICT)
def test_containers(lines):
    assert_same(lines)


INIT = """
init.calculate_gain('linear'), init.calculate_gain('tanh'), init.calculate_gain('relu'), init.calculate_gain('selu')
init.calculate_gain('leaky_relu'), init.calculate_gain('leaky_relu', 0.2), init.calculate_gain('tanh', 3)
init.calculate_gain('zz')
init.calculate_gain('leaky_relu', True)
init.calculate_gain('leaky_relu', 'a')
init.xavier_uniform_(torch.empty(3))
init.xavier_uniform_(torch.empty(0, 3))
init.kaiming_uniform_(torch.empty(0, 3))
init.kaiming_normal_(torch.empty(3, 2), mode='zz')
init.kaiming_normal_(torch.empty(3, 2), nonlinearity='zz')
init.eye_(torch.empty(3))
init.eye_(torch.empty(2, 3))
init.dirac_(torch.empty(3, 3))
init.dirac_(torch.empty(3, 3, 1), groups=2)
init.dirac_(torch.empty(4, 2, 3), groups=2)
init.dirac_(torch.empty(2, 3, 3, 2))
init.orthogonal_(torch.empty(3))
init.orthogonal_(torch.empty(0, 3))
init.sparse_(torch.empty(3), 0.1)
init.trunc_normal_(torch.empty(3), a=3, b=1)
init.trunc_normal_(torch.empty(3, 2), std=0)
init.uniform(torch.empty(2))
init.xavier_uniform(torch.empty(2, 2))
init.xavier_uniform.__name__
init._calculate_fan_in_and_fan_out(torch.empty(3, 4, 5, 6))
init.ones_(nn.Parameter(torch.empty(2, 2))), init.zeros_(torch.empty(2)), init.constant_(torch.empty(2), 3)
init.uniform_(torch.empty(50)), init.uniform_(torch.empty(5), 2, 3), init.normal_(torch.empty(50)), init.normal_(torch.empty(5), 2, 3)
init.xavier_uniform_(torch.empty(5, 6)), init.xavier_normal_(torch.empty(5, 6), 2.0)
init.kaiming_uniform_(torch.empty(5, 6), 0.1, 'fan_out'), init.kaiming_normal_(torch.empty(5, 6, 3), nonlinearity='relu')
init.trunc_normal_(torch.empty(50)), init.trunc_normal_(torch.empty(20), 1.0, 2.0, -1.0, 3.0)
init.trunc_normal_(torch.empty(20), a=0.5, b=1.0)
init.trunc_normal_(torch.empty(20), mean=3.0)
init.sparse_(torch.empty(5, 3), 0.3)
init.orthogonal_(torch.empty(3, 5).double()), init.orthogonal_(torch.empty(5, 3).double(), 2.0), init.orthogonal_(torch.empty(4, 2, 2).double())
""".strip().split("\n")  # noqa: E501

INIT_IN_STEPS = """
g = torch.Generator()
g.manual_seed(3)
init.kaiming_uniform_(torch.empty(3, 3), generator=g)

g = torch.Generator()
g.manual_seed(3)
[init.orthogonal_(torch.empty(s).double(), 0.3, g) for s in ((3, 7), (7, 3), (4, 4), (3, 2, 5))], torch.rand(3, generator=g)

init.trunc_normal_(torch.empty(0, 3, dtype=torch.complex64))
""".strip().split("\n\n")


@pytest.mark.parametrize("line", INIT + INIT_IN_STEPS)
def test_initial_values(line):
    assert_same("torch.manual_seed(0)\n" + line)


GRADIENTS = """
ps = [nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(3))]
ps[0].grad, ps[1].grad = torch.tensor([3.0, 4.0]), torch.tensor([1.0, -2.0, 2.0])
u = nn.utils
"""

CLIPPING = """
u.clip_grad_norm_(ps, 1.0), ps[0].grad, ps[1].grad
u.clip_grad_norm_(ps, 100.0), ps[0].grad
u.clip_grad_norm_(ps[0], 1.0, 1), ps[0].grad
u.clip_grad_norm_(iter(ps), 1.0, float('inf')), ps[0].grad
u.clip_grad_norm_([], 1.0)
u.clip_grad_norm_((p for p in []), 1.0)
u.clip_grad_value_(ps, 1.5), ps[0].grad, ps[1].grad
u.get_total_norm([p.grad for p in ps]), u.get_total_norm([p.grad for p in ps], 1.0), u.get_total_norm([])
u.clip_grads_with_norm_(ps, 1.0, torch.tensor(10.0)), ps[0].grad
u.parameters_to_vector(ps)
u.vector_to_parameters(torch.arange(5.0), ps), ps
u.vector_to_parameters(3, ps)
u.clip_grad_norm(ps, 1.0)
""".strip().split("\n")

CLIPPING_IN_STEPS = """
ps[0].grad[0] = float('nan')
u.clip_grad_norm_(ps, 1.0, error_if_nonfinite=True)
""".strip().split("\n\n")


@pytest.mark.parametrize("line", CLIPPING + CLIPPING_IN_STEPS)
def test_gradients_and_vectors(line):
    assert_same(GRADIENTS + line)
