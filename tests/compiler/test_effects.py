# ruff: noqa: E501
"""A compiled function changes outside objects as the original function does: once in each call, in the same order.

Each case is a program that defines `f` and a list of values to show. Each call of `f`, compiled or not, must show the
same values.
"""

import copy
import textwrap
import warnings

import pytest

import adjoint as torch

from .comparison import assert_alike, reason_of

CASES = {
    "prints": ("def f(x):\n    print('called')\n    return x * 2", ""),
    "appends to a list": ("seen = []\ndef f(x):\n    seen.append(x.shape[0])\n    return x * 2", "seen"),
    "appends results": ("seen = []\ndef f(x):\n    y = x * 2\n    seen.append(y)\n    return y", "[t.detach().clone() for t in seen]"),
    "counts": ("n = 0\ndef f(x):\n    global n\n    n += 1\n    return x * n", "n"),
    "counts in a closure": ("def make():\n    n = 0\n    def f(x):\n        nonlocal n\n        n += 1\n        return x * n\n    return f\nf = make()", ""),
    "counts in an attribute": ("class O: n = 0\no = O()\ndef f(x):\n    o.n += 1\n    return x * o.n", "o.n"),
    "counts in a module": ("class M(nn.Module):\n    def __init__(s):\n        super().__init__(); s.n = 0\n    def forward(s, x):\n        s.n += 1\n        return x * s.n\nf = M()", "f.n"),
    "stores a result": ("class O: last = None\no = O()\ndef f(x):\n    o.last = x * 3\n    return x * 2", "o.last.detach().clone()"),
    "stores in a dictionary": ("d = {}\ndef f(x):\n    d['n'] = d.get('n', 0) + 1\n    return x * d['n']", "d"),
    "deletes": ("d = {'a': 1}\ndef f(x):\n    d.pop('a', None)\n    return x * len(d)", "d"),
    "an optimizer of the user that changes a number": ("class O(torch.optim.SGD):\n    n = 0\n    def step(s):\n        super().step(); s.n += 1; g['a'] = 2.0 if s.n == 3 else 1.0\n        global h; h = g['a']\nw = torch.ones(4, requires_grad=True); o = O([w], 0.1); g = {'a': 1.0}; h = 1.0\ndef f(x):\n    (x * w).sum().backward(); o.step(); o.zero_grad()\n    return x * h", "w.detach().clone()"),
    "an optimizer of the user that changes a condition": ("class O(torch.optim.SGD):\n    n = 0\n    def step(s):\n        super().step(); s.n += 1\nw = torch.ones(4, requires_grad=True); o = O([w], 0.1)\ndef f(x):\n    (x * w).sum().backward(); o.step()\n    if o.n > 2: x = x.neg()\n    return x", ""),
    "an optimizer of the user that changes a result": ("class O(torch.optim.SGD):\n    def step(s):\n        super().step()\n        global h; h += 1\nw = torch.ones(4, requires_grad=True); o = O([w], 0.1); h = 1\ndef f(x):\n    (x * w).sum().backward(); o.step()\n    return h", ""),
    "a default argument that is kept": ("def f(x, seen=[]):\n    seen.append(1)\n    return x * len(seen)", "f.__defaults__"),
    "setattr": ("class O: pass\no = O(); o.a = 0\ndef f(x):\n    setattr(o, 'a', o.a + 1)\n    return x * o.a", "o.a"),
    "a list that is augmented": ("seen = []\ndef f(x):\n    a = seen\n    a += [1]\n    return x * len(a)", "seen"),
    "a list given": ("given = []\ndef f(x, l=given):\n    l.insert(0, 3)\n    return x * l[0]", "given"),
    "an argument in place": ("def f(x):\n    x.mul_(2)\n    return x + 1", "x._version"),
    "an argument by index": ("def f(x):\n    x[0] = 5\n    x[1:] += 1\n    return x * 2", "x._version"),
    "an argument that is returned": ("def f(x): return x.add_(1)", "x._version"),
    "an argument's view": ("def f(x):\n    x.view(2, 2)[0].zero_()\n    return x.sum()", "x._version"),
    "out=": ("o = torch.zeros(4)\ndef f(x):\n    torch.mul(x, 2, out=o)\n    return o + 1", "o.clone(), o._version"),
    "a buffer in place": ("b = torch.zeros(4)\ndef f(x):\n    b.add_(1)\n    return x * b", "b.clone(), b._version"),
    "a buffer by index": ("b = torch.zeros(4)\ndef f(x):\n    b[1] = x[0]\n    return x * b", "b.clone(), b._version"),
    "a buffer replaced": ("class M(nn.Module):\n    def __init__(s):\n        super().__init__(); s.register_buffer('b', torch.zeros(4))\n    def forward(s, x):\n        s.b = s.b + 1\n        return x * s.b\nf = M()", "f.b.clone()"),
    "copy_": ("b = torch.zeros(4)\ndef f(x):\n    b.copy_(x)\n    return b.sum()", "b.clone(), b._version"),
    "data": ("b = torch.zeros(4)\ndef f(x):\n    b.data = x * 2\n    return x", "b.clone(), b._version"),
    "requires_grad": ("b = torch.zeros(4)\ndef f(x):\n    b.requires_grad_()\n    return x * b", "b.requires_grad"),
    "random numbers": ("def f(x): return x + torch.randn(4) * torch.rand(4)", ""),
    "random numbers that nobody uses": ("def f(x):\n    torch.randn(3)\n    return x * 2", ""),
    "random numbers like": ("def f(x): return x + torch.randn_like(x) + torch.rand_like(x) + torch.randint_like(x, 5)", ""),
    "random numbers in place": ("def f(x): return x + torch.empty(4).normal_() + torch.empty(4).uniform_(1, 2) + torch.empty(4).bernoulli_(0.3)", ""),
    "random permutations": ("def f(x): return x[torch.randperm(4)] + torch.randint(0, 5, (4,))", ""),
    "drawn by probabilities": ("def f(x): return x + torch.bernoulli(torch.full((4,), 0.5)) + torch.multinomial(torch.ones(4), 4)", ""),
    "dropout": ("def f(x): return F.dropout(x, 0.5) + F.alpha_dropout(x, 0.5)", ""),
    "dropout in place": ("def f(x): return F.dropout(x + 1, 0.5, inplace=True)", ""),
    "a seed inside": ("def f(x):\n    torch.manual_seed(3)\n    return x + torch.randn(4)", ""),
    "a distribution": ("def f(x): return x + torch.distributions.Normal(x, 1.0).rsample()", ""),
    "Python's random numbers": ("import random\nrandom.seed(0)\ndef f(x): return x * random.random()", ""),
    "NumPy's random numbers": ("import numpy\nr = numpy.random.RandomState(0)\ndef f(x): return x * float(r.rand())", ""),
    "reading an element": ("def f(x): return x * x.sum().item()", ""),
    "elements returned": ("w = torch.ones(4, requires_grad=True)\ndef f(x):\n    l = (x * w).square().sum()\n    return {'l': l.item(), 'half': l.item() / 2 + 1, 'n': (x > 0).sum().item(), 'f': float(x.sum()), 'a': [l.detach().item()]}", ""),
    "an element summed": ("def f(x):\n    t = 0.0\n    for y in x: t += y.item() * 2\n    return t", ""),
    "an element before and after a change": ("b = torch.zeros(1)\ndef f(x):\n    n = b.item()\n    b.add_(x.sum())\n    return n, b.item(), x * b.item()", "b.clone()"),
    "an element that is formatted": ("def f(x): return f'{x.sum().item():.3f}', round(x.sum().item(), 2), str(x[0].item())", ""),
    "an element that is stored": ("d = {}\ndef f(x):\n    d['a'] = x.sum().item()\n    return x * 2", "d, type(d['a']).__name__"),
    "sizes stored in what is returned": ("def f(x):\n    l = [0, x]; l[0] = x.shape[0]\n    d = {}; d['a'] = x.numel() * 2\n    return l, d", ""),
    "an element that makes a tensor": ("def f(x): return torch.tensor(x.sum().item()) + torch.full((2,), x[0].item())", ""),
    "an index that is an element": ("def f(x): return x[x.argmax().item()] + 1", ""),
    "a condition without a tensor": ("f = lambda x: x * 2 if x.ndim == 1 else x", ""),
    "a branch on an element": ("def f(x): return x * 2 if x.sum() > 0 else x * 3", ""),
    "a loop on elements": ("def f(x):\n    while x.abs().max() < 10: x = x * 2\n    return x", ""),
    "tolist": ("def f(x): return x * sum(x.tolist())", ""),
    "numpy()": ("def f(x): return x * float(x.numpy().sum())", ""),
    "a NumPy view that is changed": ("def f(x):\n    y = torch.zeros(4)\n    y.numpy()[0] = 5\n    return x + y", ""),
    "asserts": ("def f(x):\n    assert x.shape[0] == 4\n    assert (x < 1e9).all()\n    return x * 2", ""),
    "an error after an effect": ("n = []\ndef f(x):\n    n.append(1)\n    if len(n) > 1: raise ValueError(len(n))\n    return x * 2", "n"),
    "an error that is caught": ("def f(x):\n    try: return x @ torch.ones(3)\n    except RuntimeError: return x * 2", ""),
    "operators that raise nothing in try": ("m = nn.Sequential(nn.Linear(4, 4), nn.GELU())\ndef f(x):\n    try: y = m(x)\n    except RuntimeError: y = x\n    finally: x = None\n    return y * 2", ""),
    "an error of some elements": ("def f(x):\n    a = torch.eye(2) * x[0]\n    try: return torch.linalg.cholesky(a)\n    except RuntimeError: return a * 2", ""),
    "an index that may be out of range": ("def f(x):\n    try: return F.embedding((x[:1] > 0).long() * 9, torch.ones(4, 2))\n    except IndexError: return x * 2", ""),
    "an exception of the user": ("def f(x):\n    try: raise ValueError\n    except ValueError as e: return x * 2\n    finally: x = None", ""),
    "a file": ("import io\no = io.StringIO()\ndef f(x):\n    o.write('a')\n    return x * 2", "o.getvalue()"),
    "logging": ("import logging\nl = []\nclass H(logging.Handler):\n    def emit(s, r): l.append(r.getMessage())\ng = logging.getLogger('test of compile'); g.addHandler(H())\ndef f(x):\n    g.warning('a')\n    return x * 2", "l"),
    "warnings": ("import warnings\ndef f(x):\n    warnings.warn('here')\n    return x * 2", ""),
    "an iterator": ("i = iter(range(100))\ndef f(x): return x * next(i)", "next(i)"),
    "a generator given": ("def f(x, g=(n for n in range(100))): return x * next(g)", ""),
    "batch norm": ("m = nn.BatchNorm1d(4)\ndef f(x): return m(x.view(1, 4).expand(3, 4) * torch.arange(3.0)[:, None])", "m.running_mean.clone(), m.running_var.clone(), m.num_batches_tracked.clone(), m.running_mean._version, m.num_batches_tracked._version"),
    "train inside": ("m = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))\ndef f(x):\n    m.eval()\n    y = m(x)\n    m.train()\n    return y + m(x)", "m.training"),
    "no_grad inside": ("w = torch.ones(4, requires_grad=True)\ndef f(x):\n    with torch.no_grad(): y = w * x\n    return y * x + w", ""),
    "no_grad as a decorator": ("w = torch.ones(4, requires_grad=True)\n@torch.no_grad()\ndef g(x): return x * w\ndef f(x): return g(x) + w", ""),
    "set_grad_enabled": ("w = torch.ones(4, requires_grad=True)\ndef f(x):\n    with torch.set_grad_enabled(False): y = w * x\n    with torch.enable_grad(): return y + w", ""),
    "a mode left open": ("w = torch.ones(4, requires_grad=True)\ndef f(x):\n    torch.set_grad_enabled(False)\n    return x * w", "torch.is_grad_enabled(), torch.set_grad_enabled(True) and None"),
    "detach": ("w = torch.ones(4, requires_grad=True)\ndef f(x): return (w * x).detach() * w + w.detach()", ""),
    "detach that shares memory": ("w = torch.ones(4, requires_grad=True)\ndef f(x):\n    d = w.detach()\n    d.add_(1)\n    return x * w", "w.detach().clone(), w._version"),
    "a parameter in no_grad": ("w = torch.ones(4, requires_grad=True)\ndef f(x):\n    with torch.no_grad(): w.add_(0.5)\n    return (x * w).sum()", "w.detach().clone(), w._version"),
    "backward inside": ("w = torch.ones(4, requires_grad=True)\ndef f(x):\n    loss = (x * w).square().sum()\n    loss.backward()\n    return loss", "w.grad.clone(), w.grad._version"),
    "backward and zeros": ("w = torch.ones(4, requires_grad=True)\ndef f(x):\n    w.grad = None\n    loss = (x * w).square().sum()\n    loss.backward()\n    return loss", "w.grad.clone()"),
    "a gradient removed afterwards": ("w = torch.ones(4, requires_grad=True)\ndef f(x):\n    (x * w).square().sum().backward()\n    with torch.no_grad(): w.sub_(w.grad)\n    w.grad = None\n    return w * 1", "w.grad, w.detach().clone()"),
    "a gradient deleted": ("w = torch.ones(4, requires_grad=True)\ndef f(x):\n    del w.grad\n    (x * w).sum().backward()\n    return w.grad * 2", "w.grad.clone()"),
    "a gradient set": ("w = torch.ones(4, requires_grad=True)\ndef f(x):\n    w.grad = torch.zeros_like(w)\n    (x * w).sum().backward()\n    w.grad = w.grad * 2\n    w.grad /= 4\n    return x * 2", "w.grad.clone(), w.grad._version"),
    "a gradient from autograd.grad": ("w = torch.ones(300, 300, requires_grad=True)\ndef f(x):\n    w.grad, = torch.autograd.grad((w.sin() * x[0]).sum(), w)\n    return w.grad.exp()", "w.grad.clone(), r is w.grad"),
    "a gradient that is an argument": ("w = torch.ones(4, requires_grad=True)\ndef f(x):\n    w.grad = x\n    return w * 2", "w.grad is x"),
    "a leaf inside": ("def f(x):\n    x = x.clone().requires_grad_()\n    d = torch.zeros(4, requires_grad=True)\n    ((x + d) ** 3).sum().backward()\n    return x.grad + d.grad.sign()", ""),
    "a leaf returned": ("def f(x):\n    return x.detach().requires_grad_()", "r.is_leaf, r.requires_grad"),
    "autograd.grad inside": ("w = torch.ones(4, requires_grad=True)\ndef f(x):\n    g, = torch.autograd.grad((x * w).square().sum(), w)\n    return g * 2", "w.grad"),
    "a second derivative inside": ("def f(x):\n    x = x.detach().requires_grad_()\n    g, = torch.autograd.grad((x ** 3).sum(), x, create_graph=True)\n    h, = torch.autograd.grad(g.sum(), x)\n    return h", ""),
    "a hook inside": ("seen = []\ndef f(x):\n    x = x.detach().requires_grad_()\n    y = x * 2\n    y.register_hook(lambda g: seen.append(1))\n    y.sum().backward()\n    return y", "seen"),
    "retain_grad": ("w = torch.ones(4, requires_grad=True)\ndef f(x):\n    y = x * w\n    y.retain_grad()\n    y.sum().backward()\n    return y.grad", ""),
    "vmap": ("def f(x): return torch.func.vmap(lambda a: a * 2)(x)", ""),
    "an element within vmap": ("def f(x): return torch.func.vmap(lambda a: a * a.sum().item())(x.view(2, 2))", ""),
    "func.grad": ("def f(x): return torch.func.grad(lambda a: a.square().sum())(x)", ""),
    "a custom function": ("class S(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        ctx.save_for_backward(x)\n        return x * 2\n    @staticmethod\n    def backward(ctx, g): return g * 5\nw = torch.ones(4, requires_grad=True)\ndef f(x): return S.apply(x * w)", ""),
    "a custom function of several results": ("class S(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, n):\n        ctx.save_for_backward(x); ctx.n = n; ctx.k = 0\n        return x * n, x + 1\n    @staticmethod\n    def backward(ctx, g, h):\n        pass\n        x, = ctx.saved_tensors\n        return g * x * ctx.n + h, None\nw = torch.ones(4, requires_grad=True); seen = []; b = torch.zeros(4)\ndef f(x):\n    y, z = S.apply(w * x, 2.0)\n    return y if x[0] is None else y * 3", "[w.grad, r.sum().backward(), w.grad.clone(), setattr(w, 'grad', None), len(seen), b.clone(), b._version]"),
    "a custom function that appends": ("class S(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, n):\n        ctx.save_for_backward(x); ctx.n = n; ctx.k = 0\n        return x * n, x + 1\n    @staticmethod\n    def backward(ctx, g, h):\n        seen.append(1)\n        x, = ctx.saved_tensors\n        return g * x * ctx.n + h, None\nw = torch.ones(4, requires_grad=True); seen = []; b = torch.zeros(4)\ndef f(x):\n    y, z = S.apply(w * x, 2.0)\n    return y if x[0] is None else y * 3", "[w.grad, r.sum().backward(), w.grad.clone(), setattr(w, 'grad', None), len(seen), b.clone(), b._version]"),
    "a custom function that draws": ("class S(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, n):\n        ctx.save_for_backward(x); ctx.n = n; ctx.k = 0\n        return x * n, x + 1\n    @staticmethod\n    def backward(ctx, g, h):\n        g = g * torch.rand(4)\n        x, = ctx.saved_tensors\n        return g * x * ctx.n + h, None\nw = torch.ones(4, requires_grad=True); seen = []; b = torch.zeros(4)\ndef f(x):\n    y, z = S.apply(w * x, 2.0)\n    return y if x[0] is None else y * 3", "[w.grad, r.sum().backward(), w.grad.clone(), setattr(w, 'grad', None), len(seen), b.clone(), b._version]"),
    "a custom function that changes a tensor": ("class S(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, n):\n        ctx.save_for_backward(x); ctx.n = n; ctx.k = 0\n        return x * n, x + 1\n    @staticmethod\n    def backward(ctx, g, h):\n        b.add_(g)\n        x, = ctx.saved_tensors\n        return g * x * ctx.n + h, None\nw = torch.ones(4, requires_grad=True); seen = []; b = torch.zeros(4)\ndef f(x):\n    y, z = S.apply(w * x, 2.0)\n    return y if x[0] is None else y * 3", "[w.grad, r.sum().backward(), w.grad.clone(), setattr(w, 'grad', None), len(seen), b.clone(), b._version]"),
    "a custom function that changes its context": ("class S(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, n):\n        ctx.save_for_backward(x); ctx.n = n; ctx.k = 0\n        return x * n, x + 1\n    @staticmethod\n    def backward(ctx, g, h):\n        ctx.k += 1; g = g * ctx.k\n        x, = ctx.saved_tensors\n        return g * x * ctx.n + h, None\nw = torch.ones(4, requires_grad=True); seen = []; b = torch.zeros(4)\ndef f(x):\n    y, z = S.apply(w * x, 2.0)\n    return y if x[0] is None else y * 3", "[w.grad, r.sum().backward(), w.grad.clone(), setattr(w, 'grad', None), len(seen), b.clone(), b._version]"),
    "a custom function that changes what it makes": ("class S(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, n):\n        ctx.save_for_backward(x); ctx.n = n; ctx.k = 0\n        return x * n, x + 1\n    @staticmethod\n    def backward(ctx, g, h):\n        g = g.clone().mul_(2)\n        x, = ctx.saved_tensors\n        return g * x * ctx.n + h, None\nw = torch.ones(4, requires_grad=True); seen = []; b = torch.zeros(4)\ndef f(x):\n    y, z = S.apply(w * x, 2.0)\n    return y if x[0] is None else y * 3", "[w.grad, r.sum().backward(), w.grad.clone(), setattr(w, 'grad', None), len(seen), b.clone(), b._version]"),
    "checkpoint in parts": ("m = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))\ndef f(x): return torch.utils.checkpoint.checkpoint_sequential(m, 2, x, use_reentrant=False)", "[r.sum().backward(), m[0].weight.grad.clone(), m.zero_grad()]"),
    "checkpoint that is reentrant": ("w = torch.ones(4, requires_grad=True)\ndef f(x): return torch.utils.checkpoint.checkpoint(lambda a: (a * w).exp(), x * w, use_reentrant=True)", "[r.sum().backward(), w.grad.clone(), setattr(w, 'grad', None)]"),
    "a functional call": ("m = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)); w = torch.ones(4, 4, requires_grad=True); b = {'1.running_mean': torch.zeros(4)}\ndef f(x): return torch.func.functional_call(m, ({'0.weight': w * 2}, b), x.expand(3, 4) * torch.arange(3.0)[:, None])", "[r.square().sum().backward(), w.grad.clone(), setattr(w, 'grad', None), b['1.running_mean'].clone(), m[1].running_var.clone(), m[1].running_mean.clone(), m.zero_grad()]"),
    "a functional call in a transform": ("m = nn.Linear(4, 4); p = {k: v.detach() for k, v in m.named_parameters()}\ndef loss(p, x): return torch.func.functional_call(m, p, x).square().sum()\ndef f(x): return torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(p, x.expand(3, 4))['weight']", ""),
    "checkpoint": ("w = torch.ones(4, requires_grad=True)\ndef f(x): return torch.utils.checkpoint.checkpoint(lambda a: (a * w).exp(), x, use_reentrant=False)", ""),
    "autocast inside": ("w = torch.ones(4, 4, requires_grad=True)\ndef f(x):\n    with torch.autocast('cpu'): return x @ w", ""),
    "views that are returned": ("def f(x):\n    y = x * 2\n    return y[:2], y[2:], y", ""),
    "the same result twice": ("def f(x):\n    y = x * 2\n    return y, y, [y]", ""),
    "a list twice": ("def f(x):\n    l = [x * 2]\n    return l, l", ""),
    "numbers returned": ("def f(x): return x * 2, x.shape[0], 'a', None, 2.5, (1, [2])", ""),
    "a dictionary returned": ("def f(x): return {'a': x * 2, 1: {'b': x + 1}}", ""),
    "a named tuple returned": ("import collections\nT = collections.namedtuple('T', 'a b')\ndef f(x): return T(x * 2, x.shape)", ""),
    "a result of several": ("def f(x): return torch.sort(x), x.max(0), torch.aminmax(x)", ""),
    "a field of several results": ("def f(x): return x.max(0).values + x.view(2, 2).sort(1).indices", ""),
    "a set returned": ("def f(x): return {1, 2}, frozenset((3,))", ""),
    "an object returned": ("class O:\n    def __init__(s, a): s.a = a\ndef f(x): return O(x * 2)", "r.a.detach().clone()"),
    "a dataclass returned": ("import dataclasses\n@dataclasses.dataclass\nclass C:\n    a: object\ndef f(x): return C(x * 2)", "r.a.detach().clone()"),
    "a dataclass changed inside": ("import dataclasses\n@dataclasses.dataclass\nclass C:\n    a: object\n    n: int = 3\n    l: list = dataclasses.field(default_factory=list)\n    def m(s): return s.a * s.n\ndef f(x):\n    c = C(x * 2); c.n = x.shape[0]; c.b = c.m()\n    return c, [C(c)]", "r[0].a.detach().clone(), r[0].n, r[0].b.detach().clone(), r[0].l, r[1][0].a is r[0], sorted(vars(r[0]))"),
    "a dataclass twice": ("import dataclasses\n@dataclasses.dataclass\nclass C:\n    a: object\ndef f(x):\n    c = C(x * 2)\n    return c, c", "r[0] is r[1], r[0].a.detach().clone()"),
    "a dataclass that computes": ("import dataclasses\n@dataclasses.dataclass\nclass C:\n    a: object\n    def __post_init__(s): s.b = s.a * 2\ndef f(x): return C(x * 2)", "r.b.detach().clone()"),
    "a callable object": ("class O:\n    k = 2.0\n    def __call__(s, x): return x * s.k\no = O()\ndef f(x): return o(x) + 1", ""),
    "a callable object that counts": ("class O:\n    k = 2\n    def __call__(s, x):\n        s.k += 1\n        return x * s.k\no = O()\ndef f(x): return o(x) + 1", "o.k"),
    "a function returned": ("def f(x):\n    y = x * 2\n    return lambda: y", "r().detach().clone()"),
    "an ordered dictionary returned": ("import collections\ndef f(x): return collections.OrderedDict(a=x * 2)", "r['a'].detach().clone()"),
    "a generator": ("def f(x):\n    for i in range(3): yield x * i", "[*map(lambda t: t.detach().clone(), r)]"),
    "an argument returned": ("def f(x): return x, [x]", "r[0] is x, r[1][0] is x"),
    "a global returned": ("w = torch.ones(4)\nl = [w]\ndef f(x): return w, l", "r[0] is w, r[1] is l"),
    "a parameter returned": ("m = nn.Linear(4, 4)\ndef f(x): return m.weight, m", "r[0] is m.weight, r[1] is m"),
    "nothing returned": ("def f(x): pass", "r"),
    "recursion": ("def f(x, n=3): return x if n == 0 else f(x * 2, n - 1)", ""),
    "a function that makes functions": ("def f(x):\n    def g(a): return a * x\n    h = lambda a: g(a) + 1\n    return h(x)", ""),
    "star arguments": ("def g(*a, **k): return a[0] * k['b'] + len(a)\ndef f(x): return g(x, 1, *[2, 3], b=2.0, **{'c': 1})", ""),
    "comprehensions": ("def f(x): return sum([x * i for i in range(3) if i]) + torch.stack([*(x * j for j in (1, 2))]).sum(0) + sum({i: x for i in range(2)}.values())", ""),
    "lists inside": ("def f(x):\n    l = []\n    for i in range(3): l.append(x * i)\n    l[0] = x\n    l.extend([x, x])\n    d = dict(a=x)\n    d['b'] = l.pop()\n    d.update(c=x)\n    return torch.stack(l + list(d.values())).sum(0)", ""),
    "sorted and zip": ("def f(x): return sum(a * x for a, b in sorted(zip([3, 1], [2, 4]), key=lambda p: p[1])) + max([1, 2], key=lambda n: -n)", ""),
    "string methods": ("def f(x): return x * len('a,b'.split(',')) * int('3'.strip())", ""),
    "math": ("import math\ndef f(x): return x * math.sqrt(4) / math.pi", ""),
    "walrus, ternary, chained": ("def f(x):\n    if (n := x.shape[0]) > 2: x = x * n\n    return x if 0 < n < 9 else None", ""),
    "unpacking": ("def f(x):\n    a, (b, *c) = x, (x * 2, 1, 2)\n    return a + b * sum(c)", ""),
    "while": ("def f(x):\n    n = 0\n    while n < 3:\n        n += 1\n        if n == 2: continue\n        x = x * n\n    else: x = x + 1\n    return x", ""),
    "with": ("import contextlib\ndef f(x):\n    with contextlib.nullcontext(): return x * 2", ""),
    "private names": ("class M(nn.Module):\n    def __init__(s):\n        super().__init__(); s.__p = 2.0\n    def __m(s, x): return x * s.__p\n    def forward(s, x): return s.__m(x)\nf = M()", ""),
    "decorated": ("import functools\ndef deco(g):\n    @functools.wraps(g)\n    def w(*a, **k): return g(*a, **k) * 2\n    return w\n@deco\ndef f(x): return x + 1", ""),
    "an imported name": ("def f(x):\n    import math\n    return x * math.pi", ""),
    "a class inside": ("def f(x):\n    class C: a = 2.0\n    return x * C.a", ""),
    "async": ("async def g(x): return x * 2\ndef f(x):\n    try: g(x).send(None)\n    except StopIteration as e: return e.value", ""),
    "a compiled function inside": ("@torch.compile\ndef g(x): return x * 2\ndef f(x): return g(x) + 1", ""),
    "a disabled function inside": ("seen = []\n@torch.compiler.disable\ndef g(x):\n    seen.append(1)\n    return x * 2\ndef f(x): return g(x) + 1", "seen"),
    "is_compiling": ("def f(x): return x * 2", "torch.compiler.is_compiling()"),
    "del": ("def f(x):\n    y = x * 2\n    z = y + 1\n    del y\n    return z", ""),
    "global tensors made inside": ("def f(x): return x + torch.zeros(4) + torch.tensor([1.0, 2, 3, 4]) + torch.arange(4) + torch.ones_like(x) + x.new_full((4,), 3.0) + torch.eye(4)[0] + torch.linspace(0, 1, 4)", ""),
    "a gradient that is returned": ("w = torch.ones(4, requires_grad=True)\ndef f(x):\n    (w * x).sum().backward()\n    return [w.grad]", "[r[0] is w.grad, r[0].add_(1).clone(), w.grad, r[0]._version, setattr(w, 'grad', None) if x[0] > 0 else None]"),
    "a gradient that a program stores and adds to": ("w = torch.ones(4, requires_grad=True)\ndef f(x):\n    for _ in range(3): (w * x).sum().backward()\n    return x * 2", "[w.grad.clone(), w.grad._version, setattr(w, 'grad', None)]"),
    "sparse gradients": ("w = torch.ones(4, 4, requires_grad=True)\ndef f(x):\n    F.embedding(torch.tensor([0, 1, 1]), w, sparse=True).mul(x).sum().backward()\n    return x * 2", "[str(w.grad.layout), w.grad.to_dense()]"),
    "a new tensor that is returned": ("def f(x): return torch.zeros(4), torch.tensor([1.0]), torch.tensor(2)", "[t.add_(1) for t in r]"),
    "einsum": ("def f(x): return torch.einsum('i,i->', x, x) * torch.einsum('i,j->ij', x, x)", ""),
    "indexing": ("i = torch.tensor([0, 2])\ndef f(x): return x[i] * x[..., 1:3] + x[x.argsort()][:2] + x[None, :, None][0, :2, 0]", ""),
    "masks": ("def f(x): return torch.where(x > 0, x, -x) + x.masked_fill(x < 0, 1.0) + x.clamp(min=0)", ""),
    "a mask that selects": ("def f(x): return x[x > 0].sum() + x.nonzero().sum()", ""),
    "dtypes and devices": ("def f(x): return x.to(torch.float64).to(x.device).type_as(x).float().double() * torch.finfo(x.dtype).eps", ""),
    "shapes": ("def f(x): return x.reshape(2, -1).flatten().unsqueeze(0).expand(3, -1).permute(1, 0).contiguous().view(-1, 2) * x.numel() * x.dim()", ""),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_effects(case, tmp_path, capsys):
    source, shown = CASES[case]
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(source) + "\n")
    code = compile(path.read_text(), str(path), "exec")
    outcomes, printed = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for is_compiled in (False, True):
            own = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "__name__": "effects"}
            torch.manual_seed(0)
            exec(code, own)
            compiled = torch.compile(own["f"]) if is_compiled else own["f"]
            seen = []
            for number in range(4):
                torch.manual_seed(number)
                own["x"] = torch.randn(4)
                try:
                    own["r"] = compiled(own["x"])
                    seen.append(
                        own["r"] if isinstance(own["r"], (torch.Tensor, list, tuple, dict)) else type(own["r"]).__name__
                    )
                except Exception as error:
                    seen.append((type(error).__name__, str(error)))
                seen += [own["x"], torch.get_rng_state(), copy.copy(eval(shown or "None", own))]
                torch.set_grad_enabled(True)
            outcomes.append(seen)
            printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert_alike(outcomes[1], outcomes[0], str(reason_of(compiled)))


CAPTURED = [
    *(
        "an argument in place",
        "an argument by index",
        "a buffer in place",
        "copy_",
        "random numbers",
        "random numbers like",
    ),
    *(
        "random numbers in place",
        "dropout",
        "batch norm",
        "no_grad inside",
        "no_grad as a decorator",
        "set_grad_enabled",
        "detach",
    ),
    *(
        "operators that raise nothing in try",
        "a gradient removed afterwards",
        "a gradient deleted",
        "a gradient from autograd.grad",
        "a leaf inside",
    ),
    *("a second derivative inside", "backward and zeros", "a field of several results"),
    *("a custom function", "a custom function of several results", "a custom function that changes what it makes"),
    *("checkpoint", "checkpoint in parts", "a functional call", "a functional call in a transform"),
    *("backward inside", "autograd.grad inside", "the same result twice", "numbers returned"),
    *(
        "a dictionary returned",
        "a named tuple returned",
        "a result of several",
        "an argument returned",
        "a global returned",
    ),
    *(
        "a parameter returned",
        "nothing returned",
        "a function that makes functions",
        "star arguments",
        "comprehensions",
        "lists inside",
    ),
    *(
        "sorted and zip",
        "string methods",
        "math",
        "walrus, ternary, chained",
        "unpacking",
        "while",
        "private names",
        "decorated",
    ),
    *(
        "a compiled function inside",
        "del",
        "global tensors made inside",
        "a new tensor that is returned",
        "einsum",
        "indexing",
    ),
    *("masks", "dtypes and devices", "shapes", "with", "an exception of the user"),
]


@pytest.mark.parametrize("case", CAPTURED)
def test_common_programs_are_captured(case, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(CASES[case][0] + "\n")
    own = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "__name__": "effects"}
    exec(compile(path.read_text(), str(path), "exec"), own)
    compiled = torch.compile(own["f"], fullgraph=True)
    for _ in range(3):
        compiled(torch.randn(4))
    assert sum(each.calls for each in compiled.compiled.variants) == (1 if case == "backward inside" else 2)
