# ruff: noqa: E501
"""Values that a compiled function has read may change between calls. The next call then uses the new values.

Each case is a program that defines `f` and a list of changes. The test calls `f` before and after each change, with and without
compilation.
"""

import contextlib
import textwrap
import warnings

import pytest

import adjoint as torch

from .comparison import assert_alike, gradients, reason_of, tensors_in

CASES = {
    "a global number": ("g = 2.0\ndef f(x): return x * g", "g = 3.0", "g = 3", "g = True", "del g; g = 0.5"),
    "the sign of zero": ("g = 0.0\ndef f(x): return x.clone().fill_(g)", "g = -0.0"),
    "a global string": ("g = 'sum'\ndef f(x): return F.mse_loss(x, x * 2, reduction=g)", "g = 'mean'"),
    "a global tensor": ("g = torch.ones(4)\ndef f(x): return x * g", "g = torch.full((4,), 2.0)", "g.mul_(3)", "g = torch.ones(1)"),
    "a global function": ("def g(x): return x * 2\ndef f(x): return g(x)", "def g(x): return x + 1", "g = torch.exp"),
    "the code of a function": ("def g(x): return x * 2\ndef h(x): return x + 1\ndef f(x): return g(x)", "g.__code__ = h.__code__"),
    "defaults of a function": ("def g(x, a=2.0): return x * a\ndef f(x): return g(x)", "g.__defaults__ = (3.0,)"),
    "keyword defaults": ("def g(x, *, a=2.0): return x * a\ndef f(x): return g(x)", "g.__kwdefaults__ = {'a': 3.0}"),
    "a global that hides a builtin": ("def f(x): return x * max(1.0, 2.0)", "max = lambda a, b: 5.0", "del max"),
    "a list": ("g = [1.0, 2.0]\ndef f(x): return x * g[0] + g[-1]", "g[0] = 4.0", "g.append(7.0)", "g = [0.0]"),
    "a list that is summed": ("g = [1.0, 2.0]\ndef f(x): return x * sum(g)", "g.append(7.0)", "g.clear(); g.append(1.0)"),
    "a list of sizes": ("g = [2, 2]\ndef f(x): return x.reshape(g) * 2", "g[:] = [4, 1]", "g.insert(0, 1)"),
    "a nested list": ("g = [[1.0], [2.0]]\ndef f(x):\n    for a in g:\n        for b in a: x = x * b\n    return x", "g[1].append(3.0)", "g[0][0] = 5.0"),
    "a list of tensors": ("g = [torch.ones(4)]\ndef f(x): return torch.stack([x, *g]).sum(0)", "g.append(torch.ones(4))", "g[0] = torch.zeros(4)"),
    "a list given to an operator": ("g = [torch.ones(4)]\ndef f(x): return torch.cat(g) * x.sum()", "g.append(torch.ones(4))", "g[0] = torch.zeros(2)"),
    "a dictionary": ("g = {'a': 1.0}\ndef f(x): return x * g['a'] + g.get('b', 0.0)", "g['a'] = 2.0", "g['b'] = 3.0", "del g['b']"),
    "items of a dictionary": ("g = {'a': 1.0}\ndef f(x):\n    for k, v in g.items(): x = x * v + len(k)\n    return x", "g['b'] = 3.0", "g['a'] = 4.0"),
    "membership": ("g = {'a'}\ndef f(x): return x * 2 if 'b' in g else x * 3", "g.add('b')", "g.clear()"),
    "a length": ("g = [1]\ndef f(x): return x * len(g)", "g.append(1)"),
    "truth of a list": ("g = []\ndef f(x): return x * 2 if g else x * 3", "g.append(1)", "g.clear()"),
    "an attribute": ("class O: pass\no = O(); o.a = 2.0\ndef f(x): return x * o.a", "o.a = 3.0", "o = O(); o.a = 5.0"),
    "an attribute of an attribute": ("class O: pass\no = O(); o.o = O(); o.o.a = 2.0\ndef f(x): return x * o.o.a", "o.o.a = 3.0", "o.o = O(); o.o.a = 4.0"),
    "a class attribute": ("class O: a = 2.0\no = O()\ndef f(x): return x * o.a", "O.a = 3.0", "o.a = 4.0", "del o.a"),
    "operators of tensors": ("T = torch.Tensor; kept = {name: getattr(T, name) for name in dir(T)}\ndef f(x):\n    y = -x + 1\n    y *= 2\n    return y * x, x[1:] + 0, 2 - x, x > 0, abs(x), x.T, sum(x)", *(f"T.{name} = lambda s, *o: torch.zeros(4)" for name in ("__mul__", "__neg__", "__getitem__", "__rsub__", "__gt__", "__abs__", "__imul__")), "T.__iter__ = lambda s: iter([s])", "T.T = property(lambda s: torch.zeros(4))", "[setattr(T, name, kept[name]) for name in ('__mul__', '__neg__', '__getitem__', '__rsub__', '__gt__', '__abs__', '__imul__', '__iter__', 'T')]"),
    "a custom function": ("K = 2.0\nclass S(torch.autograd.Function):\n    a = 2.0\n    @staticmethod\n    def forward(ctx, x): return x * S.a\n    @staticmethod\n    def backward(ctx, g): return g * K\ndef f(x): return S.apply(x)", "S.a = 3.0", "K = 5.0", "S.backward = staticmethod(lambda ctx, g: g * 7)", "S.forward = staticmethod(lambda ctx, x: x * 9)", "S = type('S', (S,), {'backward': staticmethod(lambda ctx, g: g)})"),
    "a functional call": ("m = nn.Linear(4, 4); p = {'weight': torch.ones(4, 4)}\ndef f(x): return torch.func.functional_call(m, p, x)", "p['weight'] = torch.zeros(4, 4)", "m.bias.data.add_(1)", "m.bias = nn.Parameter(torch.ones(4))", "p['bias'] = torch.zeros(4)", "m.weight = nn.Parameter(torch.ones(4, 4))", "m = nn.Linear(4, 4)"),
    "a checkpointed function": ("def g(x): return x * 2\ndef f(x): return torch.utils.checkpoint.checkpoint(g, x, use_reentrant=False)", "g = torch.sin", "def g(x): return x * 3"),
    "a callable object": ("class O:\n    def __init__(s, k): s.k = k\n    def __call__(s, x): return x * s.k\no = O(2.0)\ndef f(x): return o(x)", "o.k = 3.0", "O.__call__ = lambda s, x: x - s.k", "o = O(7.0)", "o = torch.sin"),
    "a dataclass made inside": ("import dataclasses\n@dataclasses.dataclass\nclass C:\n    a: object\n    n: float = 3.0\n    def m(s): return s.a * s.n\ndef f(x): return C(x).m()", "C.__init__.__defaults__ = (4.0,)", "C.m = lambda s: s.a + 1", "C.__post_init__ = lambda s: None", "C = dataclasses.make_dataclass('C', ['a'], namespace={'m': lambda s: s.a * 9})"),
    "a base class": ("class P: a = 2.0\nclass O(P): pass\no = O()\ndef f(x): return x * o.a", "P.a = 3.0", "O.a = 4.0"),
    "a method": ("class O:\n    def m(self, x): return x * 2\no = O()\ndef f(x): return o.m(x)", "O.m = lambda self, x: x * 3", "o.m = lambda x: x * 4"),
    "a property": ("class O:\n    b = 2.0\n    @property\n    def a(self): return self.b\no = O()\ndef f(x): return x * o.a", "O.b = 3.0", "o.b = 7.0", "O.a = property(lambda self: 9.0)"),
    "slots": ("class O:\n    __slots__ = ('a',)\no = O(); o.a = 2.0\ndef f(x): return x * o.a", "o.a = 3.0"),
    "hasattr": ("class O: pass\no = O()\ndef f(x): return x * 2 if hasattr(o, 'a') else x * 3", "o.a = 1", "del o.a", "O.a = 1"),
    "getattr with a default": ("class O: pass\no = O()\ndef f(x): return x * getattr(o, 'a', 2.0)", "o.a = 3.0", "del o.a"),
    "isinstance": ("class A: pass\nclass B: pass\no = A()\ndef f(x): return x * 2 if isinstance(o, A) else x * 3", "o = B()", "o = A(); o.__class__ = B"),
    "a dataclass": ("import dataclasses\n@dataclasses.dataclass\nclass C:\n    a: float = 2.0\nc = C()\ndef f(x): return x * c.a", "c.a = 3.0", "c = dataclasses.replace(c, a=4.0)"),
    "a named tuple": ("import collections\nT = collections.namedtuple('T', 'a b')\nt = T(1.0, 2.0)\ndef f(x): return x * t.a + t.b", "t = T(3.0, 2.0)", "t = t._replace(b=5.0)"),
    "an enumeration": ("import enum\nclass E(enum.Enum):\n    A = 1\n    B = 2\ne = E.A\ndef f(x): return x * 2 if e is E.A else x * 3", "e = E.B"),
    "a module's own number": ("class M(nn.Module):\n    def __init__(s):\n        super().__init__(); s.a = 2.0\n    def forward(s, x): return x * s.a\nf = M()", "f.a = 3.0", "f.a = None; f.a = 4"),
    "a parameter": ("f = nn.Linear(4, 4)", "f.weight = nn.Parameter(torch.ones(4, 4))", "f.bias = None", "f.weight.requires_grad_(False)", "f.weight.data = torch.zeros(4, 4)"),
    "values of a parameter": ("f = nn.Linear(4, 4)", "torch.nn.init.ones_(f.weight)", "f.weight.data.mul_(2)", "f.load_state_dict({'weight': torch.eye(4), 'bias': torch.ones(4)})"),
    "the dtype of a module": ("f = nn.Linear(4, 4)", "f.double(); x = x.double()", "f.float(); x = x.float()"),
    "a submodule": ("f = nn.Sequential(nn.Linear(4, 4), nn.ReLU())", "f[1] = nn.Tanh()", "f.append(nn.Linear(4, 2))", "del f[2]", "f.insert(0, nn.Linear(4, 4))"),
    "a submodule beside the table": ("class M(nn.Module):\n    def __init__(s):\n        super().__init__(); s.l = nn.Linear(4, 4); s.register_buffer('b', torch.ones(4))\n    def forward(s, x): return s.l(x) * s.b\nf = M()", "f.__dict__['l'] = nn.Identity()", "del f.__dict__['l']", "f.__dict__['b'] = torch.zeros(4)", "del f.__dict__['b']; f.l.__dict__['weight'] = torch.zeros(4, 4)", "del f.l.__dict__['weight']"),
    "training mode": ("f = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))", "f.eval()", "f.train()", "f[1].p = 0.1", "f[1].eval()"),
    "modules in a list": ("class M(nn.Module):\n    def __init__(s):\n        super().__init__(); s.l = nn.ModuleList([nn.Linear(4, 4)])\n    def forward(s, x):\n        for m in s.l: x = m(x)\n        return x\nf = M()", "f.l.append(nn.ReLU())", "f.l[0] = nn.Identity()", "f.l = nn.ModuleList([nn.Tanh()])"),
    "modules in a dictionary": ("class M(nn.Module):\n    def __init__(s):\n        super().__init__(); s.d = nn.ModuleDict({'a': nn.Linear(4, 4)})\n    def forward(s, x):\n        for k, m in s.d.items(): x = m(x)\n        return s.d['a'](x)\nf = M()", "f.d['b'] = nn.ReLU()", "f.d['a'] = nn.Tanh()"),
    "parameters in a list": ("class M(nn.Module):\n    def __init__(s):\n        super().__init__(); s.l = nn.ParameterList([nn.Parameter(torch.ones(4))])\n    def forward(s, x):\n        for p in s.l: x = x * p\n        return x\nf = M()", "f.l.append(nn.Parameter(torch.full((4,), 2.0)))", "f.l[0] = nn.Parameter(torch.zeros(4))"),
    "all parameters": ("m = nn.Linear(4, 4)\ndef f(x): return x.sum() + sum(p.square().sum() for p in m.parameters())", "m.extra = nn.Linear(2, 2)", "m.bias = None"),
    "forward of an object": ("f = nn.Linear(4, 4)", "f.forward = lambda x: x * 2", "del f.forward"),
    "forward of a class": ("class M(nn.Module):\n    def forward(s, x): return x * 2\nf = M()", "M.forward = lambda s, x: x * 3"),
    "a forward hook": ("f = nn.Linear(4, 4)", "h = f.register_forward_hook(lambda m, a, r: r * 2)", "h.remove()", "h = f.register_forward_pre_hook(lambda m, a: (a[0] * 2,))", "h.remove()"),
    "a hook of a submodule": ("f = nn.Sequential(nn.Linear(4, 4))", "h = f[0].register_forward_hook(lambda m, a, r: r * 2)", "h.remove()"),
    "a backward hook of a module": ("f = nn.Sequential(nn.Linear(4, 4), nn.Tanh())", "h = f[0].register_full_backward_hook(lambda m, i, o: (i[0] * 2,))", "h.remove()"),
    "a global module hook": ("f = nn.Linear(4, 4)", "h = nn.modules.module.register_module_forward_hook(lambda m, a, r: r * 2)", "h.remove()"),
    "a tensor hook on a parameter": ("f = nn.Linear(4, 4)", "h = f.weight.register_hook(lambda g: g * 2)", "h.remove()"),
    "a tensor hook on an argument": ("def f(x): return x.exp()", "x = x.detach().requires_grad_(); h = x.register_hook(lambda g: g * 2)", "h.remove()"),
    "requires_grad of an argument": ("def f(x): return x.exp()", "x = x.detach()", "x = x.clone().requires_grad_()"),
    "history of an argument": ("def f(x): return x.exp()", "x = x * 2", "x = x.detach()", "x = x.view(2, 2)", "x = x.t()"),
    "the dtype of an argument": ("def f(x): return x * 2", "x = x.double()", "x = x.long()", "x = x > 0", "x = x.to(torch.bfloat16)", "x = x.to(torch.complex64)"),
    "the shape of an argument": ("def f(x): return x * x.shape[0] + x.numel()", "x = torch.ones(3)", "x = torch.ones(2, 2)", "x = torch.ones(())", "x = torch.ones(0)"),
    "the strides of an argument": ("def f(x): return (x * 2).contiguous().view(-1)", "x = torch.randn(2, 3)", "x = torch.randn(3, 2).t()", "x = torch.randn(1, 3).expand(2, 3)", "x = torch.randn(4, 3)[::2]"),
    "the class of an argument": ("def f(x): return x * 2", "x = nn.Parameter(torch.ones(4))", "x = torch.ones(4)", "x = 3.0", "x = 3", "x = True"),
    "conjugated and negative arguments": ("def f(x): return x * 2", "x = torch.randn(3, dtype=torch.complex64)", "x = x.conj()", "x = x.imag"),
    "a subclass": ("class T(torch.Tensor): pass\ndef f(x): return x * 2", "x = torch.ones(3).as_subclass(T)", "x = torch.ones(3)"),
    "a sparse argument": ("def f(x): return x * 2", "x = torch.eye(3).to_sparse()", "x = torch.eye(3)"),
    "a meta argument": ("def f(x): return (x * 2).sum() if x.device.type == 'meta' else x", "x = torch.ones(3)"),
    "gradients disabled": ("def f(x): return x.exp()", "mode = torch.no_grad", "mode = torch.enable_grad", "mode = torch.inference_mode"),
    "autocast": ("f = nn.Linear(4, 4)", "mode = lambda: torch.autocast('cpu')", "mode = torch.enable_grad"),
    "saved-tensor hooks": ("def f(x): return x.exp()", "mode = lambda: torch.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t)", "mode = torch.enable_grad"),
    "anomaly detection": ("def f(x): return x.exp()", "mode = torch.autograd.detect_anomaly", "mode = torch.enable_grad"),
    "a default device": ("def f(x): return torch.zeros(3) + 1", "mode = lambda: torch.device('meta')", "mode = torch.enable_grad"),
    "the default dtype": ("def f(x): return torch.zeros(3) + x.sum()", "torch.set_default_dtype(torch.float64)", "torch.set_default_dtype(torch.float32)"),
    "is_grad_enabled": ("def f(x): return x * 2 if torch.is_grad_enabled() else x * 3", "mode = torch.no_grad", "mode = torch.enable_grad"),
    "the number of arguments": ("def f(*x): return sum(x) * len(x)", "args = lambda: (x, x)", "args = lambda: (x, x * 2, x)", "args = lambda: (x,)"),
    "keywords": ("def f(x, **k): return x * k.get('a', 1.0) + len(k)", "kwargs = {'a': 2.0}", "kwargs = {'b': 2.0}", "kwargs = {'a': 2.0, 'b': 1.0}", "kwargs = {'a': x}"),
    "numbers as arguments": ("def f(x, a=1): return x * a", "kwargs = {'a': 2}", "kwargs = {'a': 2.0}", "kwargs = {'a': True}", "kwargs = {'a': 1}", "kwargs = {'a': None} if False else {'a': 0.0}", "kwargs = {'a': -0.0}"),
    "strings as arguments": ("def f(x, a='sum'): return getattr(x, a)()", "kwargs = {'a': 'mean'}", "kwargs = {'a': 'exp'}"),
    "functions as arguments": ("def f(x, a=torch.exp): return a(x)", "kwargs = {'a': torch.sin}", "kwargs = {'a': lambda y: y * 2}"),
    "nested arguments": ("def f(x, a=()): return x + sum(a)", "kwargs = {'a': [1.0, 2.0]}", "kwargs = {'a': (1.0, 2.0)}", "kwargs = {'a': [x, 2.0]}", "kwargs = {'a': [x, x]}"),
    "aliased arguments": ("def f(x, y=None): return x * y if y is not None else x", "kwargs = {'y': x}", "kwargs = {'y': x.detach()}", "kwargs = {'y': x.clone()}", "kwargs = {'y': x.view(4)}"),
    "identity of arguments": ("def f(x, y=None): return x * 2 if x is y else x * 3", "kwargs = {'y': x}", "kwargs = {'y': x.clone()}"),
    "an argument that a closure holds": ("w = torch.ones(4)\ndef f(x): return x * w", "x = w", "w = torch.zeros(4)", "x = torch.ones(4)"),
    "a closure": ("def make():\n    a = 2.0\n    def f(x): return x * a\n    def put(v):\n        nonlocal a\n        a = v\n    return f, put\nf, put = make()", "put(3.0)", "put(torch.ones(4))"),
    "a partial function": ("import functools\ndef g(a, x): return x * a\nh = functools.partial(g, 2.0)\ndef f(x): return h(x)", "h = functools.partial(g, 3.0)", "h = functools.partial(g, a=3.0) if False else functools.partial(g, 4.0)"),
    "a generator of random numbers": ("g = torch.Generator()\ndef f(x): return x + torch.randn(4, generator=g)", "g.manual_seed(5)", "g = torch.Generator().manual_seed(6)"),
    "constants of a module": ("import math\ndef f(x): return x * math.pi", "import types; math = types.SimpleNamespace(pi=3.0)"),
    "a NumPy array": ("import numpy\na = numpy.ones(4, 'f')\ndef f(x): return x * torch.from_numpy(a)", "a[0] = 5"),
    "a NumPy number": ("import numpy\na = numpy.float32(2)\ndef f(x): return x * float(a)", "a = numpy.float32(3)"),
    "a NumPy array as data": ("import numpy\na = numpy.ones(4, 'f')\ndef f(x): return x * torch.tensor(a)", "a[0] = 5"),
    "the time": ("import itertools\nc = itertools.count()\ndef f(x): return x * next(c)",),
    "an environment variable": ("import os\nos.environ['ADJOINT_TEST'] = '2'\ndef f(x): return x * float(os.environ.get('ADJOINT_TEST'))", "os.environ['ADJOINT_TEST'] = '3'"),
    "a cached function": ("import functools\n@functools.lru_cache\ndef g(n): return n * 2.0\ndef f(x): return x * g(2)", "g.cache_clear()"),
    "a gradient": ("w = torch.ones(4, requires_grad=True)\ndef f(x): return x * 2 if w.grad is None else x * w.grad", "w.grad = torch.full((4,), 3.0)", "w.grad = None", "w.grad = torch.zeros(4)", "w.grad.add_(2)"),
    "comparison operators of objects": ("class O:\n    def __init__(s, a): s.a = a\n    def __eq__(s, o): return s.a == 1\n    __hash__ = None\no = O(1)\ndef f(x): return x * 2 if o == 3 else x * 3", "o.a = 2"),
    "arithmetic of objects": ("class O:\n    def __init__(s, a): s.a = a\n    def __rmul__(s, o): return o * s.a\n    def __mul__(s, o): return o * s.a\no = O(2.0)\ndef f(x): return (3.0 * o) * x", "o.a = 5.0"),
    "an object that is called": ("class O:\n    a = 2.0\n    def __call__(s, x): return x * s.a\no = O()\ndef f(x): return o(x)", "o.a = 3.0"),
    "indexing of objects": ("class O:\n    a = 2.0\n    def __getitem__(s, i): return s.a\no = O()\ndef f(x): return x * o[0]", "o.a = 3.0"),
    "iteration of objects": ("class O:\n    a = [1.0, 2.0]\n    def __iter__(s): return iter(s.a)\no = O()\ndef f(x):\n    for a in o: x = x * a\n    return x", "o.a = [5.0]"),
    "truth of objects": ("class O:\n    a = 1\n    def __bool__(s): return bool(s.a)\no = O()\ndef f(x): return x * 2 if o else x * 3", "o.a = 0"),
    "a context manager": ("class O:\n    a = 2.0\n    def __enter__(s): return s.a\n    def __exit__(s, *e): pass\no = O()\ndef f(x):\n    with o as a: return x * a", "o.a = 3.0"),
    "a format": ("g = 2\ndef f(x): return x * len(f'{g}')", "g = 200"),
    "__getattr__": ("class O:\n    d = {'a': 2.0}\n    def __getattr__(s, n): return s.d[n]\no = O()\ndef f(x): return x * o.a", "O.d = {'a': 3.0}", "o.a = 7.0"),
    "a descriptor": ("class D:\n    v = 2.0\n    def __get__(s, o, t): return s.v\nclass O: a = D()\no = O()\ndef f(x): return x * o.a", "D.v = 3.0", "O.__dict__['a'].v = 4.0"),
    "a static method": ("class O:\n    @staticmethod\n    def m(x): return x * 2\n    @classmethod\n    def c(cls, x): return x * cls.k\n    k = 3.0\no = O()\ndef f(x): return o.m(x) + O.c(x)", "O.m = staticmethod(lambda x: x * 7)", "O.k = 5.0"),
    "super": ("class P(nn.Module):\n    def forward(s, x): return x * s.a\nclass M(P):\n    a = 2.0\n    def forward(s, x): return super().forward(x) + 1\nf = M()", "M.a = 3.0", "P.forward = lambda s, x: x * 9"),
    "match": ("g = 1\ndef f(x):\n    match g:\n        case 1: return x * 2\n        case _: return x * 3", "g = 2"),
    "shape of a buffer": ("class M(nn.Module):\n    def __init__(s):\n        super().__init__(); s.register_buffer('b', torch.ones(4))\n    def forward(s, x): return x * s.b.numel() * s.b.sum()\nf = M()", "f.b = torch.ones(2)", "f.b = None; f.register_buffer('b', torch.ones(3))", "f.b.fill_(3)"),
    "named parameters": ("m = nn.Linear(4, 4)\ndef f(x):\n    for n, p in m.named_parameters():\n        if n == 'weight': x = x @ p\n    return x", "m.weight = nn.Parameter(torch.ones(4, 4))"),
    "a state dict": ("m = nn.Linear(4, 4)\ndef f(x): return x @ m.state_dict()['weight']", "m.weight.data.fill_(2.0)", "m.weight = nn.Parameter(torch.ones(4, 4))"),
    "vars": ("class O: pass\no = O(); o.a = 2.0\ndef f(x): return x * vars(o)['a']", "o.a = 3.0"),
    "__dict__": ("class O: pass\no = O(); o.a = 2.0\ndef f(x): return x * o.__dict__['a']", "o.a = 3.0"),
    "globals()": ("g = 2.0\ndef f(x): return x * globals()['g']", "g = 3.0"),
    "a tensor's own attribute": ("t = torch.ones(4); t.mine = 2.0\ndef f(x): return x * t.mine", "t.mine = 3.0"),
    "data of a tensor": ("t = torch.ones(4)\ndef f(x): return x * t.data", "t.data = torch.zeros(4)", "t.add_(2)"),
    "a version": ("t = torch.ones(4)\ndef f(x): return x * t._version", "t.add_(1)"),
"the sign of zeros in a list": ("g = [0.0]\ndef f(x):\n    for a in g: x = x.clone().fill_(a)\n    return 1 / x", "g[:] = [-0.0]", "g[:] = [0.0]"),
    "kinds of numbers in a set": ("g = {1}\ndef f(x):\n    for a in g: y = torch.tensor([1, 2]) * a\n    return y", "g.clear(); g.add(1.0)", "g.clear(); g.add(True)"),
    "the order of a set": ("g = {8, 0}\ndef f(x):\n    for a in g: x = x * 2 + a\n    return x", "g.clear(); g.add(8); g.add(0)", "g.clear(); g.add(0); g.add(8)"),
    "kinds of keys": ("g = {1: 2}\ndef f(x):\n    for a in g: y = torch.tensor([1, 2]) * a\n    return y", "g.clear(); g[1.0] = 2", "g.clear(); g[True] = 2"),
    "kinds of keys of an argument": ("def f(x, a):\n    for k in a: y = torch.tensor([1, 2]) * k\n    return y\nkwargs = {'a': {1: 2}}", "kwargs = {'a': {1.0: 2}}", "kwargs = {'a': {True: 2}}"),
    "kinds of numbers in a frozen set": ("def f(x, a):\n    for k in a: y = torch.tensor([1, 2]) * k\n    return y\nkwargs = {'a': frozenset({1})}", "kwargs = {'a': frozenset({1.0})}"),
    "signs of zero of a complex number": ("def f(x, a): return torch.ones(2) * a\nkwargs = {'a': complex(0, 0.0)}", "kwargs = {'a': complex(-0.0, 0)}", "kwargs = {'a': complex(0, -0.0)}"),
    "a property that has its attribute's name": ("class O:\n    @property\n    def a(s): return s.__dict__['a'] * 10\n    @a.setter\n    def a(s, v): s.__dict__['a'] = v\no = O(); o.a = 2.0\ndef f(x): return x * o.a", "o.a = 3.0"),
    "a descriptor that sets the attribute": ("class D:\n    def __get__(s, o, t): return o.__dict__['a'] * 10\n    def __set__(s, o, v): o.__dict__['a'] = v\nclass O: a = D()\no = O(); o.a = 2.0\ndef f(x): return x * o.a", "o.a = 3.0"),
    "a property that hides a parameter": ("class M(nn.Module):\n    def __init__(s):\n        super().__init__(); s._parameters['w'] = nn.Parameter(torch.ones(4))\n    w = property(lambda s: s._parameters['w'] * 3)\n    def forward(s, x): return x * s.w\nf = M()", "f._parameters['w'].data.fill_(4)"),
    "a list that a generator unpacks": ("class O: pass\no = O(); o.l = [1.0, 2.0]\ndef f(x):\n    for a, b in (p.l for p in [o]): x = x * a + b\n    return x", "o.l[0] = 3.0"),
    "a list in a list that is made": ("g = [1.0, 2.0]\ndef f(x):\n    for a, b in [g]: x = x * a + b\n    return x", "g[0] = 3.0"),
    "an augmented element": ("g = [1.0]\ndef f(x):\n    d = {'a': g}\n    d['a'] += [2.0]\n    return x * len(g)",),
    "an augmented attribute": ("class O: pass\no = O(); o.a = 1.0\ndef f(x):\n    o.a += 1\n    return x * o.a",),
    "a list that contains itself": ("g = [1.0]; g.append(g)\ndef f(x):\n    for a in g:\n        x = x * a if a is not g else x\n    return x", "g[0] = 2.0"),
    "a lock": ("import threading\nlock = threading.Lock()\ndef f(x):\n    with lock: return x * (2 if lock.locked() else 3)",),
    "the identity of numbers": ("def f(x, a=1): return x * 2 if a is one else x * 3\none = 1", "kwargs = {'a': 2}", "kwargs = {'a': 1}", "kwargs = {'a': 3}", "kwargs = {'a': 1}"),
    "the class of a layer": ("class L(nn.Linear):\n    def forward(s, x): return super().forward(x) * 10\nf = nn.Sequential(nn.Linear(4, 4))", "f[0].__class__ = L", "f[0].__class__ = nn.Linear"),
    "forward of a class of layers": ("f = nn.Sequential(nn.Hardswish())\nold = nn.Hardswish.forward", "nn.Hardswish.forward = lambda s, x: x * 5", "nn.Hardswish.forward = old"),
    "how modules are called": ("f = nn.Sequential(nn.Hardswish())\nold = nn.Module.__call__", "nn.Module.__call__ = lambda s, x: old(s, x) * 5", "nn.Module.__call__ = old"),
    "gradients that are changed and dropped": ("m = nn.Linear(4, 1)\no = torch.optim.SGD(m.parameters(), 0.1)\ndef f(x):\n    l = m(x).sum(); l.backward(); o.step(); o.zero_grad(); return l.detach(), m.weight.clone()", "m.weight.grad = kept = torch.ones(1, 4)", "m.weight.grad = kept; m.bias.grad = torch.ones(1)"),
    "an operator that raises in later calls": ("def f(x):\n    try: return torch.linalg.cholesky(torch.eye(2) * x.detach().sum())\n    except RuntimeError: return x * 0", "x = x.abs()", "x = -x.abs()", "x = x.abs()"),
    "an operator that raises in the first call": ("i = torch.tensor([7])\ndef f(x):\n    try: y = x.gather(0, i)\n    except RuntimeError: y = x.sum()\n    return y * 2", "i = torch.tensor([1])", "i = torch.tensor([8])"),
    "an operator before a finally": ("i = torch.tensor([1])\nb = torch.zeros(1)\nw = 0\ndef f(x):\n    if w: return x * b\n    try: return F.embedding(i, x[:, None])\n    finally: b.add_(1)", "i = torch.tensor([8])", "i = torch.tensor([0])", "w = 1"),
    "an operator in a function within try": ("i = torch.tensor([1])\ndef g(x): return x[i]\ndef f(x):\n    try: y = g(x)\n    except IndexError: y = x\n    else: y = y + 1\n    return y", "i = torch.tensor([8])", "i = torch.tensor([0])"),
    "a key within try": ("g = {'a': 1.0}\ndef f(x):\n    try: k = g['a']\n    except KeyError: k = 2.0\n    return x * k", "del g['a']", "g['a'] = 5.0"),
    "changes before an error": ("b = torch.zeros(1)\na = torch.eye(2)\nw = 0\ndef f(x):\n    if w: return x * b._version\n    b.add_(1)\n    return torch.linalg.cholesky(a)", "a = -a", "a = -a", "w = 1"),
    "defaults of a function that is not captured": ("def f(x, a=2.0):\n    print(end='')\n    return x * a", "f.__defaults__ = (3.0,)"),
    "keyword defaults of a function that is not captured": ("def f(x, *, a=2.0):\n    print(end='')\n    return x * a", "f.__kwdefaults__ = {'a': 3.0}"),
    "gradients of other sizes": ("m = nn.Linear(4, 1)\ndef f(x):\n    m(x.detach()).sum().backward()\n    return m.weight.grad.clone()\nx = torch.ones(2, 4)", *(f"x = torch.ones({size}, 4)" for size in (2, 3, 4, 5, 4, 4, 4))),
    "arguments that share memory later": ("def f(x, y=None):\n    if y is None: return x * 1\n    v = y.max()\n    y.mul_(0.5); x.mul_(2.0)\n    return v.sigmoid(), x / (x.abs().sum() + 1), y + 0", "x = torch.ones(4); kwargs = {'y': torch.ones(4)}", "kwargs = {'y': x.view(4)}", "kwargs = {'y': x[:2]}", "kwargs = {'y': torch.ones(4)}", "kwargs = {'y': x.view(2, 2)}"),
    "an argument that is a view of a global": ("w = torch.ones(4)\ndef f(x):\n    if x.requires_grad: return x * 1\n    x.mul_(2.0)\n    return (w + 1).sigmoid()", "x = torch.ones(4)", "x = w.view(2, 2)", "x = w[1:]", "x = torch.ones(4)", "x = w"),
    "a view of a leaf, then the leaf": ("def f(x): return x * 2", "b = torch.ones(4); x = b.view(2, 2); b.requires_grad_()", "x = torch.ones(2, 2, requires_grad=True)", "x = x * 1", "x = (x * 1).view(2, 2)", "x = torch.ones(4, requires_grad=True).view(2, 2)"),
    "a view without history, then with one": ("def f(x): return x * 2", "b = torch.ones(4, requires_grad=True)\nwith torch.no_grad(): x = b.view(2, 2)", "x = b.view(2, 2)", "x = (b * 1).view(2, 2)"),
    "a view whose base requires grad later": ("def f(x): return x.exp()", "x = torch.ones(4)", "b = torch.ones(4); x = b.view(2, 2)", "x = torch.ones(2, 2)", "b = torch.ones(4); x = b.view(2, 2); b.requires_grad_()"),
    "torch functions replaced": ("import types\nlib = types.SimpleNamespace(act=torch.exp)\ndef f(x): return lib.act(x)", "lib.act = torch.sin"),
}  # fmt: skip

TRUTHS = """
class O: pass
class P:
    __bool__ = __eq__ = lambda *s: s[1:] != ()
    __hash__ = None
    __call__ = 1
    a = property(lambda s: 9.0)
"""
CASES |= {  # a program adds or changes special methods of its class
    f"the class of an object in {read}": (
        f"{TRUTHS}\no = O(); p = O(); g = [p]; o.a = 2.0\ndef f(x): return x * ({read})",
        *changes,
        "o.__class__ = P",
    )
    for read, *changes in (
        (
            "2.0 if o else 3.0",
            "O.__bool__ = lambda s: False",
            "del O.__bool__; O.__len__ = lambda s: 0",
            "del O.__len__",
        ),
        ("2.0 if not o else 3.0", "O.__bool__ = lambda s: False", "del O.__bool__"),
        ("2.0 if (o and True) else 3.0", "O.__bool__ = lambda s: False", "del O.__bool__"),
        ("2.0 if any([o]) else 3.0", "O.__bool__ = lambda s: False", "del O.__bool__"),
        ("2.0 if o == p else 3.0", "O.__eq__ = lambda s, t: True", "del O.__eq__"),
        ("2.0 if o != p else 3.0", "O.__ne__ = lambda s, t: False", "del O.__ne__"),
        ("2.0 if o in g else 3.0", "O.__eq__ = lambda s, t: True", "del O.__eq__"),
        ("2.0 if callable(o) else 3.0", "O.__call__ = lambda s: 1", "del O.__call__"),
        ("o.a", "O.a = property(lambda s: 9.0)", "O.a = 4.0", "O.a = property(lambda s: 8.0)", "del O.a"),
        ("o.a", "O.__getattribute__ = lambda s, n: 9.0", "del O.__getattribute__"),
    )
}
STEPPING = """
class O(torch.optim.SGD):
    n = 0
    def step(s, closure=None):
        s.n += 1
        return super().step(closure)
m = nn.Linear(4, 2); n = [0]
def f(x):
    o.zero_grad(); l = m(x.detach()).square().sum(); l.backward(); o.step()
    return l.detach() * n[0] * getattr(o, "n", 1), m.weight.clone()
"""
CASES |= {  # user functions that a step calls
    "a step that counts": (STEPPING + "o = O(m.parameters(), 0.1)", "n[0] = 1", "o.n = 10"),
    "a step that counts what was read": (STEPPING.replace("s.n += 1", "s.n += 1; n[0] += 1").replace("def f(x):", "def f(x):\n    x = x * n[0]") + "o = O(m.parameters(), 0.1)", "n[0] = 5"),
    "a step that changes a global": (STEPPING.replace("s.n += 1", "globals()['k'] = k + 1").replace("* n[0]", "* k") + "k = 1; o = O(m.parameters(), 0.1)", "k = 10"),
    "hooks of a step that count": (STEPPING + "o = torch.optim.SGD(m.parameters(), 0.1)", "n[0] = 1", "h = o.register_step_post_hook(lambda *a: n.append(n.pop(0) + 1))", "n[0] = 5", "h.remove()"),
    "a step of a class that is replaced": (STEPPING + "o = torch.optim.SGD(m.parameters(), 0.1); old = torch.optim.SGD.step", "n[0] = 1", "torch.optim.SGD.step = lambda s, closure=None: n.append(n.pop(0) + 1)", "torch.optim.SGD.step = old"),
}  # fmt: skip
CASES |= {  # objects that guards compare by their values
    f"the identity of {kind}": (
        f"g = {made}\nh = [g]\ndef f(x, a=None): return x * (2 if a is h[0] else 3) * (5 if g is h[0] else 7)\nkwargs = {{'a': g}}",
        f"kwargs = {{'a': {made}}}",
        "kwargs = {'a': g}",
        f"h[0] = {made}",
    )
    for kind, made in {
        "a list": "[1.0]",
        "a dictionary": "{'a': 1.0}",
        "a tuple": "tuple([1.0])",
        "a string": "''.join(['a b', ' c'])",
        "a float": "float('1.5')",
        "a large number": "int('12345')",
        "a small number": "int('5')",
    }.items()
}
CASES |= {
    "attributes of a base class": ("class B: pass\nclass O(B): pass\no = O(); o.a = 2.0\ndef f(x): return x * o.a", "B.a = property(lambda s: 9.0)", "del B.a"),
    "a property that hides a parameter later": ("class M(nn.Module):\n    def __init__(s):\n        super().__init__(); s.w = nn.Parameter(torch.ones(4))\n    def forward(s, x): return x * s.w\nf = M()", "M.w = property(lambda s: 5.0)", "del M.w"),
    "defaults of a named tuple": ("import collections\nT = collections.namedtuple('T', 'a b', defaults=(3.0,))\ndef f(x):\n    t = T(x)\n    return t.a * t.b", "T.__new__.__defaults__ = (9.0,)", "T.__new__ = lambda c, a: tuple.__new__(c, (a, 5.0))"),
    "the class of a list": ("class O(list): pass\no = O([1])\ndef f(x): return x * 2 if 1 in o else x * 3", "O.__contains__ = lambda s, t: False", "del O.__contains__"),
    "bases of a class": ("class A: pass\nclass B: pass\nclass O(A): pass\ndef f(x): return x * 2 if issubclass(O, B) else x * 3", "O.__bases__ = (B,)"),
    "a registered class": ("import abc\nclass A(abc.ABC): pass\nclass O: pass\ndef f(x): return x * 2 if issubclass(O, A) else x * 3", "A.register(O)"),
    "tensors in a frozen set": ("w = torch.ones(4)\ng = (frozenset([w]),)\ndef f(x):\n    for s in g:\n        for t in s: x = x * t.shape[0] * (2 if t.requires_grad else 3)\n    return x", "w.requires_grad_()", "w.data = torch.ones(2)"),
    "the identity of a gradient": ("w = torch.ones(4, requires_grad=True); w.grad = kept = torch.ones(4)\ndef f(x): return x * 2 if w.grad is kept else x * 3", "w.grad = kept.clone()", "w.grad = kept"),
    "the place of an argument": ("x = torch.arange(8.0)[:4]\ndef f(x): return x * x.storage_offset()", "x = torch.arange(8.0)[2:6]"),
    "whether an argument is a view": ("x = torch.ones(4)\ndef f(x): return x * 2 if x._is_view() else x * 3", "x = torch.ones(8)[:4]"),
    "a builtin function": ("import builtins\nold = builtins.max\ndef f(x): return x * max(2.0, 3.0)", "builtins.max = lambda *a: 7.0", "builtins.max = old"),
    "a method of tensors": ("old = torch.Tensor.relu\ndef f(x): return x.relu()", "torch.Tensor.relu = lambda s: s * 5", "torch.Tensor.relu = old"),
    "a list of parameters that are clipped": ("m = nn.Linear(4, 2); ps = [*m.parameters()]\ndef f(x):\n    m.zero_grad(); m(x.detach()).sum().backward(); n = torch.nn.utils.clip_grad_norm_(ps, 0.1)\n    return n, m.weight.grad.clone(), m.bias.grad.clone()", "ps.pop()", "ps[:] = [m.bias]"),
    "numbers in a list of parameters": ("class M(nn.Module):\n    def __init__(s):\n        super().__init__(); s.l = nn.ParameterList([2.0, 3.0])\n    def forward(s, x): return x * s.l[0] + len(s.l)\nf = M()", "f.l[0] = 5.0", "f.l.append(1.0)"),
    "compiled methods of two objects": ("class O:\n    def __init__(s, k): s.k = k\n    @torch.compile\n    def m(s, x): return x * s.k\na = O(2.0); g = [a, O(3.0)]\ndef f(x): return g[0].m(x) + g[1].m(x)", "a.k = 5.0", "g.reverse(); g[0].k = 7.0"),
    "a module with its own __call__": ("class M(nn.Module):\n    k = 2.0\n    def __call__(s, x): return super().__call__(x) * s.k\n    def forward(s, x): return x * 3\nf = M()", "f.k = 4.0", "M.forward = lambda s, x: x * 5"),
    "a mode that is changed": ("ac = torch.autocast('cpu', enabled=False)\nm = nn.Linear(4, 4)\ndef f(x):\n    with ac: return m(x).float()", "ac._enabled = True"),
}  # fmt: skip

CONTAINERS = {
    "collections.deque([1.0, 2.0])": "g[0] = 4.0",
    "collections.defaultdict(float, {0: 1.0, 1: 2.0})": "g[0] = 4.0",
    "collections.OrderedDict({0: 1.0, 1: 2.0})": "g[0] = 4.0",
    "collections.Counter([0, 0, 1])": "g[0] = 4",
    "collections.ChainMap({0: 1.0}, {1: 2.0})": "g[0] = 4.0",
    "collections.UserDict({0: 1.0, 1: 2.0})": "g[0] = 4.0",
    "collections.UserList([1.0, 2.0])": "g[0] = 4.0",
    "type('D', (dict,), {})({0: 1.0, 1: 2.0})": "g[0] = 4.0",
    "type('D', (list,), {})([1.0, 2.0])": "g[0] = 4.0",
    "array.array('f', [1.0, 2.0])": "g[0] = 4.0",
    "bytearray(b'ab')": "g[0] = 4",
    "memoryview(bytearray(b'ab'))": "g[0] = 4",
    "numpy.ones(2)": "g[0] = 4.0",
}
"""Objects that contain numbers (except lists, dictionaries and sets), and changes of these objects."""

READS = {
    "an element": "g[0]",
    "the first": "next(iter(g.values() if hasattr(g, 'values') else g))",
    "the sum": "sum(g.values() if hasattr(g, 'values') else g)",
    "a part of": "list(g.values() if hasattr(g, 'values') else g)[:1][0]",
    "the comparison of": "(2.0 if g == {0: 1.0, 1: 2.0} or g == [1.0, 2.0] else 3.0)",
}
CASES |= {
    f"{name} {made}": (f"import array, collections, numpy\ng = {made}\ndef f(x): return x * {read}", change)
    for made, change in CONTAINERS.items()
    for name, read in READS.items()
    if not (made.startswith("numpy") and "comparison" in name)
}
CASES |= {
    f"{read} of {made}": (f"import collections\ng = {made}\ndef f(x): return x * {read}", change)
    for made, change in {
        "collections.deque([1.0])": "g.append(2.0)",
        "collections.OrderedDict()": "g[2.0] = 5.0",
        "collections.UserDict()": "g[2.0] = 5.0",
        "type('S', (set,), {})()": "g.add(2.0)",
    }.items()
    for read in ("len(g)", "(2.0 if g else 3.0)", "(2.0 if 2.0 in g else 3.0)", "max(g, default=7.0)")
}
CASES |= {
    f"the expression {read}": (f"import math\ng = {made}\ndef f(x): return x * {read}", change)
    for made, read, change in (
        ("[1.0, 2.0]", "(g + [3.0])[0]", "g[0] = 4.0"),
        ("[1.0, 2.0]", "([3.0] + g)[1]", "g[0] = 4.0"),
        ("[1.0, 2.0]", "(g * 2)[2]", "g[0] = 4.0"),
        ("{'a': 1.0}", "(g | {'b': 2.0})['a']", "g['a'] = 4.0"),
        ("{1.0}", "len(g | {2.0})", "g.add(3.0)"),
        ("[1.0, 2.0]", "math.prod(g)", "g[0] = 4.0"),
        ("[1.0, 2.0]", "math.fsum(g)", "g[0] = 4.0"),
        ("None", "(1 + torch.are_deterministic_algorithms_enabled())", "torch.use_deterministic_algorithms(True)"),
        ("None", "(1 + torch.is_anomaly_enabled())", "torch.autograd.set_detect_anomaly(True)"),
        ("None", "len(torch.get_float32_matmul_precision())", "torch.set_float32_matmul_precision('medium')"),
    )
}
CASES |= {  # values of elements determine a shape, a position or a number
    f"elements in {body}": (f"def f(x):\n    x = x.detach()\n    {body}", "x = -x", "x = x.flip(0) * 3")
    for body in (
        "y = torch.zeros(4); y[x.argmax()] = 7.0; return y",
        "y = x.clone(); y[x.argmin(),] += 5.0; return y",
        "y = torch.zeros(4, 4); y[:, x.argmax()] = 5.0; return y",
        "y = torch.zeros(4, 4); y[[0, 1], x.argmax()] = 2.0; return y",
        "i = x.argmax(); return x[i:].sum(), x[i - 1]",
        "y = x[x > 0]; return torch.cat([y, y]).sum(), y.shape",
        "return x[x > 0].sum() * 2, x[(x > 0).to(torch.uint8)]",
        "return x.masked_select(x > 0) + 1, torch.where(x > 0)",
        "return torch.repeat_interleave(x, x.abs().ceil().long())",
        "return torch.repeat_interleave(x.abs().ceil().long())",
        "return x.repeat(x.argmax() + 1), torch.zeros(x.argmax() + 1)",
        "return torch.tensor([x.sum(), x.max(), 1.0]), torch.tensor(x)",
        "return x.new_tensor([x[0], 1.0])",
        "return f'{x.sum()}', str(x), repr(x), '{}'.format(x[0])",
        "return torch.full((2,), x.sum()), torch.linspace(x.min(), x.max(), 4)",
        "return x.roll(int(x.argmax())), x.pow(x.argmax())",
        "return torch.bincount(x.abs().long()), x.unique(), x.nonzero()",
        "return [float(a) for a in x], {int(a): 1 for a in x}, sorted(x), max(x)",
        "return x.tolist(), x.numpy() * 2, x.sum() in (1.0, 2.0)",
        "return torch.take_along_dim(x, x.sign().long(), 0)",
        "return torch.cov(x, aweights=x.relu()), torch.cov(x, fweights=x.long().abs())",
        "return torch.segment_reduce(x, 'sum', lengths=x.sign().long() + 1)",
        "return F.one_hot(x.abs().long()), F.rrelu(x, training=True)",
        "return x * torch.allclose(x, x.abs())",
        "return torch.sparse_coo_tensor(x.abs().long()[None], x).to_dense()",
    )
}

EXPRESSIONS_OF_OBJECTS = {
    "g.get('o').a": "g = {'o': o}",
    "g.pop('o', None).a if g.copy() is None else dict(g).pop('o').a": "g = {'o': o}",
    "dict(g).setdefault('o').a": "g = {'o': o}",
    "list(g).pop().a": "g = [o]",
    "max(g, key=lambda each: 1).a": "g = [o, o]",
    "min(g, key=lambda each: 1).a": "g = (o,)",
    "next(iter(g)).a": "g = [o]",
    "next(each for each in g if each.a).a": "g = [o]",
    "sorted(g, key=lambda each: 1)[0].a": "g = [o]",
    "type(o).a": "g = None",
    "o.__class__.a": "g = None",
    "len(f'{o}')": "g = None",
    "len(str(o))": "g = None",
    "len('{0.a}'.format(o))": "g = None",
    "len('%s' % o)": "g = None",
    "(2.0 if o == p else 3.0)": "g = None",
    "(2.0 if o in g else 3.0)": "g = [p]",
    "(2.0 if isinstance(o, P) else 3.0)": "g = None",
    "(2.0 if type(o) is P else 3.0)": "g = None",
    "o.twice()": "g = None",
}
"""Expressions that read an attribute of an object or its class, and what they need."""
PRINTED = ("len(f'{o}')", "len(str(o))", "len('%s' % o)")
CLASSES = {
    "a plain object": "class O:\n    a = 1.0\n    def twice(s): return s.a * 2\nclass P(O): a = 3.0",
    "an object that compares": "class O:\n    a = 1.0\n    def __eq__(s, o): return s.a == o.a\n    def twice(s): return s.a * 2\nclass P(O):\n    def twice(s): return s.a * 3",
    "a data class": "import dataclasses\n@dataclasses.dataclass\nclass O:\n    a: float = 1.0\n    def twice(s): return s.a * 2\n@dataclasses.dataclass\nclass P(O): a: float = 3.0",
    "a namespace": "import types\nclass O(types.SimpleNamespace):\n    a = 1.0\n    def twice(s): return s.a * 2\nclass P(O):\n    def twice(s): return s.a * 3",
}
CASES |= {
    f"{read} of {kind}": (
        f"{classes}\no = O(); o.a = 2.0; p = O(); p.a = 2.0\n{need}\ndef f(x): return x * {read}",
        "o.a = 35.0",
        "p.a = 35.0",
        "o.__class__ = P",
        "P.a = 4.0; vars(o).pop('a')",
    )
    for kind, classes in CLASSES.items()
    for read, need in EXPRESSIONS_OF_OBJECTS.items()
    if not (read in PRINTED and kind in ("a plain object", "an object that compares"))  # the text contains an address
}
CASES |= {
    f"{read} of a list": (
        f"class O: pass\no = O(); o.l = [1.0, 2.0]; g = [3.0]\ndef f(x): return x * {read}",
        "o.l.append(77.0)",
        "o.l[0] = 6.0",
        "o.l.clear()",
    )
    for read in (
        "len(f'{o.l}')",
        "len(f'{o.l!r:>40}')",
        "len('%s' % (o.l,))",
        "len('{}'.format(o.l))",
        "len('{a}'.format(a=o.l))",
        "len(str([o.l]))",
        "sum(sum([o.l, g], []))",
        "sum(max([o.l, g]))",
        "sum(sorted([o.l, g])[0])",
        "sum(a for b in [o.l, g] for a in b)",
        "sum(sum((each.l for each in [o]), []))",
        "(2.0 if any(each.l for each in [o]) else 3.0)",
        "(2.0 if all(each.l for each in [o]) else 3.0)",
        "sum(max(each.l for each in [o]))",
        "sum(sorted(each.l for each in [o])[0])",
        "(2.0 if [o.l, 1] == [[1.0, 2.0], 1] else 3.0)",
        "(2.0 if o.l in [[1.0, 2.0], 1] else 3.0)",
        "sum(filter(None, o.l))",
        "len([*filter(None, (each.l for each in [o]))])",
        "sum([a * len(b) for a, *b in [o.l] if b])",
    )
}

CASES |= {  # values whose access raises an error
    f"{read} within try": (
        f"import math, types\nclass O: pass\no = O(); g = []; d = {{}}; t = types.ModuleType('t'); m = nn.Tanh()\ndef f(x, a=0):\n    try: k = {read}\n    except ({error}): k = 7.0\n    return x * k",
        *(line for each in changes for line in (each, back)),
    )
    for read, error, changes, back in (
        ("o.a", "AttributeError", ["o.a = 2.0"], "del o.a"),
        ("O.a", "AttributeError", ["O.a = 2.0"], "del O.a"),
        ("t.a", "AttributeError", ["t.a = 2.0"], "del t.a"),
        ("m.a", "AttributeError", ["m.a = 2.0"], "del m.a"),
        ("getattr(o, 'a')", "AttributeError", ["O.a = 2.0"], "del O.a"),
        ("g[0]", "IndexError", ["g.append(2.0)"], "g.clear()"),
        ("d['a']", "KeyError", ["d['a'] = 2.0"], "d.clear()"),
        ("next(iter(g))", "StopIteration", ["g.append(2.0)"], "g.clear()"),
        ("missing", "NameError", ["missing = 2.0"], "del missing"),
        ("1 / a", "ZeroDivisionError", ["kwargs = {'a': 2}", "kwargs = {'a': 3}"], "kwargs = {'a': 0}"),
        ("5 // a + 5 % a", "ZeroDivisionError", ["kwargs = {'a': 2}", "kwargs = {'a': 3}"], "kwargs = {'a': 0}"),
        ("math.log(a)", "ValueError", ["kwargs = {'a': 2}", "kwargs = {'a': 3}"], "kwargs = {'a': 0}"),
        ("int(f'{a or str()}')", "ValueError", ["kwargs = {'a': 2}", "kwargs = {'a': 3}"], "kwargs = {'a': 0}"),
    )
}


def environment():
    return {
        "torch": torch,
        "nn": torch.nn,
        "F": torch.nn.functional,
        "__name__": "guarded",
        "mode": torch.enable_grad,
        "kwargs": {},
    }


def restore_settings():
    torch.set_default_dtype(torch.float32)
    torch.use_deterministic_algorithms(False)
    torch.autograd.set_detect_anomaly(False)
    torch.set_float32_matmul_precision("highest")


@pytest.mark.parametrize("case", CASES)
def test_a_change_of_a_read_value_is_noticed(case, tmp_path):
    source, *changes = CASES[case]
    path = tmp_path / "program.py"  # the compiler needs the source of functions
    path.write_text(textwrap.dedent(source) + "\n")
    outcomes = []
    code = compile(path.read_text(), str(path), "exec")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for is_compiled in (False, True):
                own = environment()
                torch.manual_seed(0)
                restore_settings()
                exec(code, own)
                own["x"] = torch.randn(4, requires_grad=True)
                own["args"] = lambda own=own: (own["x"],)
                compiled = torch.compile(own["f"]) if is_compiled else None
                seen = []
                for change in ("pass", "pass", *(line for each in changes for line in (each, "pass"))):
                    exec(change, own)
                    torch.manual_seed(1)
                    with own["mode"]():
                        try:
                            args = own["args"]()
                            result = (compiled if is_compiled else own["f"])(*args, **own["kwargs"])
                            leaves = [t for t in tensors_in([args, own["kwargs"]]) if t.requires_grad]
                            leaves += [
                                p
                                for p in (own["f"].parameters() if isinstance(own["f"], torch.nn.Module) else ())
                                if p.requires_grad
                            ]
                            found = (
                                []
                                if any(t.is_meta or t.is_sparse for t in tensors_in(result))
                                else gradients(result, leaves)
                            )
                            seen.append((snapshot(result), snapshot(found)))
                        except Exception as error:
                            seen.append((type(error), str(error)))
                outcomes.append(seen)
        finally:
            restore_settings()
    for number, (found, expected) in enumerate(zip(outcomes[1], outcomes[0], strict=True)):
        what = f"call {number}, after {('pass', 'pass', *(line for each in changes for line in (each, 'pass')))[number]}; {reason_of(compiled)}"
        assert_alike(found, expected, what)


def snapshot(value):
    """Copy nested values, so that later changes do not affect them. Tensors without elements become a description."""
    if isinstance(value, torch.Tensor):
        if value.is_meta or value.is_sparse:
            return (str(value.device), value.layout is torch.strided, tuple(value.shape), value.dtype is torch.float32)
        facts = (
            value.requires_grad,
            value.is_leaf,
            value.stride() if value.numel() > 1 else None,
            type(value).__name__,
        )
        return facts, value.detach().as_subclass(torch.Tensor).clone()
    if isinstance(value, (list, tuple)):
        return [*map(snapshot, value)]
    return value if isinstance(value, (int, float, str, bool, type(None))) else type(value).__name__


MODES = {
    "grad": torch.enable_grad,
    "no grad": torch.no_grad,
    "inference": torch.inference_mode,
    "bfloat16": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "float16": lambda: torch.autocast("cpu", dtype=torch.float16),
}


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.long_cases
def test_each_mode_has_a_program(mode, inside):
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LayerNorm(4), torch.nn.Linear(4, 2))

    def within(x):
        with MODES[mode]():
            return module(x)

    function = within if inside else module
    compiled = torch.compile(function)
    for number in range(4):
        for name in [mode] if inside else [mode, "grad"]:
            found = []
            for called in (compiled, function):
                with contextlib.nullcontext() if inside else MODES[name]():
                    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(number))
                    result = called(x)
                grads = torch.autograd.grad(result.float().sum(), module.parameters()) if result.requires_grad else []
                found.append((result, list(grads)))
            assert_alike(*found, strides=False)
    assert compiled.compiled.reason is None
    assert sum(each.calls for each in compiled.compiled.variants) == 4 * (2 - inside) - len(compiled.compiled.variants)


def test_inference_tensors_are_distinguished():
    compiled = torch.compile(lambda x: x * 2 + 1)
    with torch.inference_mode():
        inner = torch.ones(3)
    for _ in range(3):
        for x in (inner, torch.ones(3)):
            for mode in (torch.inference_mode, torch.no_grad):
                with mode():
                    result = compiled(x)
                    assert (result.tolist(), result.is_inference()) == ([3.0] * 3, mode is torch.inference_mode)
    assert [each.calls for each in compiled.compiled.variants] == [2, 2, 2, 2]
