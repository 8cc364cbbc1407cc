"""Tensor subclasses, tensor-like classes and modes that override calls by `__torch_function__`: programs."""
# ruff: noqa: E501

import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from tests.parity.programs import program_test

OVERRIDES = Path(__file__).parents[2] / "torch_names" / "overrides_of_other_classes.py"

LOG = """
log = []
class Log(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        log.append((func.__name__, [kind.__name__ for kind in types], len(args), sorted(kwargs) if kwargs else kwargs))
        return super().__torch_function__(func, types, args, kwargs or {})
def told(function):
    log.clear()
    try:
        result = function()
    except Exception as error:
        result = error
    show(type(result), list(log))
"""

LIKE = """
class Like:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__, types, len(args), sorted(kwargs) if kwargs else kwargs
class Shy:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented
torch.overrides
"""

MODE = """
told = []
class Mode(torch.overrides.TorchFunctionMode):
    def __init__(self, name="mode"):
        self.name = name
    def __torch_function__(self, func, types, args=(), kwargs=None):
        told.append((self.name, func.__name__, [kind.__name__ for kind in types], len(args), sorted(kwargs) if kwargs else kwargs))
        return func(*args, **(kwargs or {}))
"""

PLAIN = """
class M(torch.Tensor):
    pass
class Finer(M):
    pass
class Other(torch.Tensor):
    pass
"""


def told_of(expressions: str, shape: str = "2, 2") -> str:
    lines = [line for line in expressions.strip().splitlines() if line]
    return LOG + f"y = torch.ones({shape}).as_subclass(Log)\n" + "".join(f"told(lambda: {line})\n" for line in lines)


PROGRAMS = {
    "operators": told_of(
        """
y + 2
2 + y
y - 2
2 - y
y * 2
y / 2
2 / y
y // 2
2 // y
y % 2
2 % y
y ** 2
2 ** y
y @ y
-y
+y
abs(y)
y == 2
y != 2
y < 2
2 < y
torch.ones(2, 2) + y
torch.ones(2, 2) - y
torch.ones(2, 2) @ y
y.int() & 1
1 | y.int()
y.int() << 1
1 >> y.int()
~y.bool()
y[0]
y[y > 0]
y.__setitem__(0, 1)
y.__iadd__(1)
y.__isub__(1)
y.__imul__(2)
y.__itruediv__(2)
y.__ifloordiv__(1)
y.__ipow__(1)
y.__imod__(3)
"""
    ),
    "conversions": told_of(
        """
len(y)
bool(y[0, 0])
int(y[0, 0])
float(y[0, 0])
reversed(y)
1.0 in y
repr(y)
str(y)
format(y)
hash(y)
y.item()
y.tolist()
y.numpy()
y.size()
y.size(0)
y.dim()
y.numel()
y.stride()
y.element_size()
y.is_floating_point()
y.to(torch.float64)
y.double()
y.type_as(y)
y.cpu()
y.is_contiguous()
y.data_ptr()
y.ndimension()
y.nelement()
"""
    ),
    "attributes": told_of(
        """
y.shape
y.dtype
y.device
y.layout
y.ndim
y.T
y.mT
y.real
y.data
y.grad
y.grad_fn
y.requires_grad
y.is_leaf
y.is_cuda
y.is_sparse
y._version
y.output_nr
y.itemsize
y.retains_grad
setattr(y, "requires_grad", False)
setattr(y, "grad", None)
setattr(y, "data", torch.ones(2, 2))
delattr(y, "grad")
"""
    ),
    "methods": told_of(
        """
y.add(2)
y.multiply(2)
y.add_(1)
y.sum(0)
y.sum(dim=0)
y.max(0)
y.max()
y.sort()
y.topk(1)
y.view(4, 1)
y.reshape(4)
y.split(1)
y.chunk(2)
y.unbind()
y.detach()
y.clone()
y.new_zeros(2)
y.new_tensor([1])
y.requires_grad_(False)
y.masked_fill(y > 0, 0)
y.where(y > 0, y)
y.unique()
y.unflatten(0, (2, 1))
y.expand(2, 2, 2)
y.squeeze()
y.zero_()
y.as_subclass(Log)
y.as_subclass(torch.Tensor)
"""
    ),
    "functions": told_of(
        """
torch.add(y, 2)
torch.multiply(y, 2)
torch.cat([y, y])
torch.cat((torch.ones(2, 2), y), 1)
torch.stack([y, y], dim=1)
torch.where(y > 0, y, 1.0)
torch.zeros_like(y)
torch.full_like(y, 2)
torch.tensor(y)
torch.as_tensor(y)
torch.is_tensor(y)
torch.numel(y)
torch.einsum("ij->i", y)
torch.norm(y)
torch.linalg.norm(y)
torch.special.expit(y)
torch.split(y, 1)
torch.max(y, 0)
torch.sum(y, 0, keepdim=True)
torch.sum(input=y, dim=0)
torch.allclose(y, y)
torch.equal(y, y)
torch.unique(y)
torch.broadcast_tensors(y, y)
torch.atleast_1d(y)
torch.tensordot(y, y)
torch.result_type(y, 1)
torch.clone(y)
torch.add(torch.ones(2, 2), y, out=torch.ones(2, 2))
torch.add(torch.ones(2, 2), torch.ones(2, 2), out=y)
torch.relu(y)
torch.linspace(y[0, 0], 2, 3)
"""
    ),
    "functions of layers": told_of(
        """
F.relu(y)
F.relu(y, True)
F.dropout(y, 0.1)
F.linear(y, y)
F.mse_loss(y, y)
F.cross_entropy(y, torch.tensor([0, 1]))
F.gelu(y)
F.sigmoid(y)
F.tanh(y)
F.pad(y, (1, 1))
F.conv1d(y[None], y[None])
F.leaky_relu(y)
F.relu_(y)
F.embedding(torch.tensor([0]), y)
F.max_pool1d(y, 1)
F.avg_pool1d(y, 1)
F.normalize(y)
F.cosine_similarity(y, y)
F.elu(y)
F.silu(y)
F.softplus(y)
torch.nn.Linear(2, 2)(y)
torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())(y)
"""
    ),
    "gradients": LOG
    + """
y = torch.ones(2).as_subclass(Log)
told(lambda: y.requires_grad_().sum().backward())
show(type(y.grad), y.grad)
told(lambda: (y * 2).backward(torch.ones(2).as_subclass(Log)))
told(lambda: y.register_hook(lambda grad: None))
told(lambda: (y * 2).retain_grad())
told(lambda: torch.autograd.grad((y * y).sum(), y, create_graph=True)[0])
log.clear()
grad, = torch.autograd.grad((y * y * y).sum(), [y], create_graph=True)
show(list(log))
show(type(grad), grad, type(grad.grad_fn))
grad.sum().backward()
show(y.grad)
""",
    "results": PLAIN
    + """
x = torch.arange(6.0).reshape(2, 3).as_subclass(M)
for result in (x + 1, x.sum(), x[0], x.view(3, 2), torch.cat([x, x]), x.detach(), x.clone(), x.T, x.data, x.max(0),
               x.max(0).values, x.topk(1)[1], x.split(1), x.split(1)[0], x.unbind()[1], x.shape, x.size(), x.grad,
               torch.meshgrid(x[0], x[0], indexing="ij"), torch.atleast_1d(x, x)[0], x > 1, x.long(), x.add_(1), x.mean(),
               F.relu(x), F.softmax(x, 0), torch.tensor(x), torch.as_tensor(x), x.numpy(), x.tolist(), x.new_zeros(2)):
    show(type(result), result)
for row in x:
    show(type(row))
show(x.max(0).__class__.__name__, len(x.max(0)))
""",
    "mixtures": PLAIN
    + """
m, finer, other, plain = (torch.ones(2).as_subclass(kind) for kind in (M, Finer, Other, torch.Tensor))
show(type(m + finer), type(finer + m), type(plain + finer), type(m + plain), type(torch.stack([m, finer])))
raises(lambda: m + other)
raises(lambda: torch.add(m, other))
raises(lambda: m.add_(other))
raises(lambda: F.linear(m, other))
raises(lambda: F.mse_loss(m, other))
raises(lambda: torch.cat([m, other]))
raises(lambda: torch.norm(m.as_subclass(M)).add(other))
show(m == other, type(m == other), type(other == m), m == "text")
""",
    "history": PLAIN
    + """
x = torch.ones(2, requires_grad=True)
m = x.as_subclass(M)
show(m, m.grad_fn, m.is_leaf, m._is_view(), m._base is x, m.requires_grad, m._version)
r = m * 2
show(type(r.grad_fn), r.grad_fn.next_functions[0][0], r._is_view())
r.sum().backward()
show(x.grad, type(x.grad))
p = torch.ones(3).as_subclass(M).requires_grad_()
show(p.is_leaf, p._is_view())
with torch.no_grad():
    p.add_(1)
(p * 3).sum().backward()
show(p.grad, type(p.grad), p._version)
torch.optim.SGD([p], lr=0.5).step()
show(p, type(p))
q = p * 2
q.add_(1)
q.mul_(3)
show(q, type(q), type(q.grad_fn))
q.sum().backward()
show(p.grad)
z = (p * 2)[0]
z.mul_(3)
show(z, type(z))
with torch.no_grad():
    frozen = p * 2
frozen.add_(1)
show(frozen, frozen.requires_grad, p.detach().requires_grad)
""",
    "making": PLAIN
    + """
class Extra(torch.Tensor):
    @staticmethod
    def __new__(cls, data, extra, *args, **kwargs):
        return super().__new__(cls, data, *args, **kwargs)
    def __init__(self, data, extra):
        self.extra = extra
e = Extra([1.0, 2.0], "more")
show(e, e.extra, type(e + 1), hasattr(e + 1, "extra"), e.add_(1).extra)
show(M([1, 2]), M(torch.ones(2)), M(2, 3).shape, type(M([1.0])))
x = torch.ones(2)
show(torch.Tensor._make_subclass(M, x), torch.Tensor._make_subclass(M, x, True).requires_grad)
made = torch.Tensor._make_subclass(M, x)
made.add_(1)
show(x, x._version, type(made), made._is_view())
raises(lambda: torch.Tensor._make_subclass(int, x))
raises(lambda: torch.Tensor._make_subclass(M, 3))
raises(lambda: x.as_subclass(int))
raises(lambda: x.as_subclass(3))
raises(lambda: torch.Tensor._make_wrapper_subclass(M, (2, 3)))
class Slots(torch.Tensor):
    __slots__ = ("unit",)
s = x.as_subclass(Slots)
s.unit = 1
show(type(s + 1), s.unit, s.sum())
""",
    "text": PLAIN
    + """
m = torch.ones(2, 2).as_subclass(M)
show(repr(m), str(m), f"{m}", repr(m.clone().requires_grad_()), repr(m.double()), repr(m * 1000 + 0.5))
show(repr((torch.ones(2, requires_grad=True).as_subclass(M) * 2)), repr(m.max(0)), repr([m[0]]))
""",
    "copies": PLAIN
    + """
import copy
m = torch.ones(2).as_subclass(M)
m.unit = ["kg"]
c = copy.copy(m)
show(type(c), c.unit is m.unit, c.data_ptr() == m.data_ptr())
raises(lambda: copy.deepcopy(m))
class Deep(torch.Tensor):
    def new_empty(self, *args, **kwargs):
        return super().new_empty(*args, **kwargs).as_subclass(Deep)
d = torch.ones(2).as_subclass(Deep)
d.unit = ["kg"]
c = copy.deepcopy(d)
show(type(c), c, c.unit, c.unit is d.unit)
""",
    "parameters": PLAIN
    + """
m = torch.ones(2, 2).as_subclass(M)
p = torch.nn.Parameter(m)
show(type(p), p, isinstance(p, torch.nn.Parameter), p.requires_grad, p.is_leaf, repr(p))
show(isinstance(m, torch.nn.Parameter), isinstance(torch.nn.Parameter(torch.ones(1)), M))
layer = torch.nn.Linear(2, 2)
layer.weight = p
out = layer(torch.ones(1, 2))
show(type(layer.weight), type(out), list(layer._parameters), [type(q) for q in layer.parameters()])
show(type(layer.state_dict()["weight"]))
out.sum().backward()
show(type(p.grad), p.grad)
class P(torch.nn.Parameter):
    pass
q = P(torch.ones(2))
show(repr(q), type(q * 2), type(q.detach()), type(q.data), q.requires_grad, type(q.grad_fn))
show(repr(torch.nn.Parameter(torch.ones(2))))
class Lost(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))
raises(lambda: torch.nn.Parameter(torch.ones(2).as_subclass(Lost)))
""",
    "functions with a derivative": LOG
    + """
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        show(type(a))
        ctx.save_for_backward(a)
        return a * 2
    @staticmethod
    def backward(ctx, grad):
        show(type(grad), type(ctx.saved_tensors[0]))
        return grad * 2
y = torch.ones(2).as_subclass(Log).requires_grad_()
out = Twice.apply(y)
show(list(log))
show(type(out), out, out.grad_fn.name())
out.sum().backward()
show(y.grad)
""",
    "tensor-like classes": LIKE
    + """
d, x = Like(), torch.ones(2)
for call in (lambda: torch.add(d, 1), lambda: torch.add(x, d), lambda: x + d, lambda: d + x, lambda: x * d, lambda: x.add(d),
             lambda: torch.cat([x, d]), lambda: F.relu(d), lambda: torch.mean(d), lambda: torch.sum(d, 0), lambda: x.sum(d),
             lambda: x[d], lambda: torch.stack((d, d)), lambda: F.linear(d, x), lambda: torch.matmul(d, d), lambda: x @ d,
             lambda: torch.full((2,), d), lambda: torch.zeros_like(d), lambda: torch.ones(d), lambda: x.view(d),
             lambda: torch.is_tensor(d), lambda: torch.einsum("i->", d), lambda: torch.linalg.norm(d), lambda: torch.unique(d),
             lambda: x.add_(d), lambda: x.copy_(d), lambda: torch.nn.Linear(2, 2)(d), lambda: x.clamp(min=d),
             lambda: torch.add(x, 1, alpha=d), lambda: torch.where(d, 1, 2), lambda: F.mse_loss(x, d), lambda: torch.arange(d),
             lambda: d < x, lambda: x == d, lambda: x.to(d)):
    show(call())
""",
    "nobody knows": LIKE
    + """
b, d, x = Shy(), Like(), torch.ones(2)
for call in (lambda: torch.add(b, 1), lambda: x + b, lambda: b + x, lambda: x - b, lambda: x < b, lambda: F.relu(b),
             lambda: x.add(b), lambda: torch.cat([b, x]), lambda: torch.mean(b), lambda: torch.einsum("i->", b),
             lambda: x[b], lambda: F.gelu(b), lambda: torch.norm(b), lambda: F.layer_norm(b, (2,)), lambda: x @ b):
    raises(call)
show(torch.add(b, d), torch.add(d, b), x == b)
class Stubborn(torch.Tensor):
    __torch_function__ = Shy.__torch_function__
s = torch.Tensor.as_subclass(x, Stubborn)
for call in (lambda: s.shape, lambda: s.grad_fn, lambda: s.add(1), lambda: s + 1, lambda: -s, lambda: abs(s), lambda: s[0],
             lambda: len(s), lambda: s.backward(), lambda: repr(s), lambda: 1 - s, lambda: s ** 2, lambda: ~s, lambda: bool(s),
             lambda: setattr(s, "grad", None), lambda: torch.autograd.grad(s, [s]), lambda: s.split(1), lambda: s.T):
    raises(call)
show(s == 1, s.__iadd__(1) is NotImplemented)
""",
    "plain methods": """
torch.overrides
class Old:
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return "old", func.__name__
warns(lambda: torch.add(Old(), 1))
""",
    "order": """
told = []
class A(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        told.append((cls, types))
        return NotImplemented
class B(A):
    pass
class C(torch.Tensor):
    __torch_function__ = classmethod(A.__torch_function__.__func__)
a, b, c = (torch.Tensor.as_subclass(torch.ones(1), kind) for kind in (A, B, C))
for args in ((a, b), (a, c, b), (c, a, b), (b, a), (a, a), (c, b, a, c)):
    told.clear()
    raises(lambda: torch.stack(args))
    show(told)
""",
    "modes": MODE
    + """
x = torch.ones(2)
class M(torch.Tensor):
    pass
m = x.as_subclass(M)
for call in (lambda: torch.add(x, 1), lambda: x + 1, lambda: x.shape, lambda: torch.ones(2), lambda: F.relu(x), lambda: x.sum(),
             lambda: m + 1, lambda: torch.tensor([1.0]), lambda: torch.is_tensor(x), lambda: torch.zeros(2, requires_grad=True),
             lambda: x[0], lambda: x.dtype, lambda: torch.cat([x, m]), lambda: torch.arange(3), lambda: torch.get_default_dtype(),
             lambda: x.numpy(), lambda: len(x), lambda: repr(x), lambda: torch.Tensor([1.0]), lambda: torch.nn.Parameter(x),
             lambda: torch.eye(2), lambda: torch.full((2,), 1.0), lambda: x.requires_grad_(False), lambda: torch.as_tensor(x),
             lambda: x.to(torch.int), lambda: hash(x), lambda: x.is_cuda, lambda: torch.equal(x, x), lambda: torch.norm(x)):
    told.clear()
    with Mode():
        call()
    show(told)
told.clear()
with Mode("outer"):
    with Mode("inner"):
        x + 1
show(told)
with Mode() as entered:
    show(type(entered))
told.clear()
same = Mode("same")
with same, same:
    x * 2
show(told)
""",
    "modes that know nothing": MODE
    + """
x = torch.ones(2)
class Bad(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return NotImplemented
def within(call, mode=Bad):
    def run():
        with mode():
            return call()
    return run
raises(within(lambda: x + 1))
raises(within(lambda: x + 1, torch.overrides.TorchFunctionMode))
show(within(lambda: x + 1, torch.overrides.BaseTorchFunctionMode)())
try:
    within(lambda: torch.add(x, 1))()
except TypeError as error:
    show(str(error).split(" object at ")[0])
try:
    within(lambda: F.relu(x))()
except TypeError as error:
    show(str(error).split(" object at ")[0])
show(x + 1)
""",
    "switched off": LOG
    + MODE
    + """
x = torch.ones(2)
y = x.as_subclass(Log)
enabled = torch._C._is_torch_function_enabled
log.clear(); told.clear()
with torch._C.DisableTorchFunctionSubclass():
    show(type(y + 1), type(y.view(2, 1)), type(y[0]), type(y.add_(1)), type(y.detach()), type(y.max(0).values), enabled())
    with Mode():
        show(type(y + 1))
show(log, told, enabled())
with torch._C.DisableTorchFunction(), Mode():
    show(type(y + 1), enabled())
with Mode(), torch._C.DisableTorchFunction():
    show(type(y + 1))
show(log, told, type(torch._C._disabled_torch_function_impl(torch.add, (Log,), (y, 1), {})))
class Off(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl
o = x.as_subclass(Off)
show(type(o + 1), type(o.sum()), type(o + y), type(o.add_(1)))
""",
    "threads": MODE
    + """
import threading
x = torch.ones(2)
def work():
    x + 1
    torch.zeros(1)
with Mode():
    thread = threading.Thread(target=work)
    thread.start(); thread.join()
show(told)
""",
    "modes in backward": MODE
    + """
def hook(grad):
    grad * 2
    return None
x = torch.ones(2, requires_grad=True)
y = (x * 2).sum()
x.register_hook(hook)
with Mode():
    y.backward()
show(told)
""",
    "functions of one's own": LIKE
    + """
O = torch.overrides
d, b = Like(), Shy()
class M(torch.Tensor):
    pass
m, x = torch.ones(1).as_subclass(M), torch.ones(1)
show(O.is_tensor_like(d), O.is_tensor_like(Like), O.is_tensor_like(m), O.is_tensor_like(1), O.is_tensor_like(x))
p = torch.nn.Parameter(x)
show(O.has_torch_function((d,)), O.has_torch_function((m, 1)), O.has_torch_function((1, x)), O.has_torch_function([d]),
     O.has_torch_function_unary(d), O.has_torch_function_unary(p), O.has_torch_function_variadic(1, m),
     O.has_torch_function_variadic(1, 2), O.has_torch_function_variadic())
def mine(a, b=1):
    if O.has_torch_function_variadic(a, b):
        return O.handle_torch_function(mine, (a, b), a, b=b)
    return "mine"
mine.__module__ = "here"
show(mine(1), mine(d), mine(1, d), mine(b, d))
raises(lambda: mine(b))
raises(lambda: O.handle_torch_function(mine, (1,), 1))
@O.wrap_torch_function(lambda a, b: (a, b))
def wrapped(a, b):
    return "wrapped", a
show(wrapped(1, 2), wrapped(d, 1), wrapped.__name__)
""",
    "names": """
O = torch.overrides
T = torch.Tensor
for f in (torch.add, T.add, T.shape.__get__, T.grad.__set__, F.relu, torch.linalg.norm, torch.special.expit, T.__add__, torch.ones,
          print, F.linear, T.__getitem__, T.is_cuda.__get__, T.sum, torch.cat, F.layer_norm):
    show(O.resolve_name(f), O.is_tensor_method_or_property(f), f in O.get_ignored_functions(), f in O.get_testing_overrides())
show(T.add.__name__, torch.multiply.__name__, torch.linalg.norm.__name__, T.shape.__get__ == T.shape.__get__)
show(torch.add is T.add, torch.add is torch.add, T.shape.__get__ in {T.shape.__get__}, O.get_testing_overrides()[torch.add](1, 2))
show([T.grad.__get__ in O.get_default_nowrap_functions(), T.add in O.get_default_nowrap_functions()])
show(all(f in O.get_overridable_functions()[T] for f in (T.add, T.sum, T.__getitem__)))
""",
    "units": '''
HANDLED = {}
def implements(*functions):
    def register(function):
        for each in functions:
            HANDLED[each] = function
        return function
    return register
class Quantity:
    """A tensor with a unit: a class that is no tensor."""
    def __init__(self, value, unit):
        self.value, self.unit = torch.as_tensor(value), unit
    def __repr__(self):
        return f"{self.value.tolist()} {self.unit}"
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func not in HANDLED or not all(issubclass(kind, (torch.Tensor, Quantity)) for kind in types):
            return NotImplemented
        return HANDLED[func](*args, **(kwargs or {}))
@implements(torch.add, torch.Tensor.add)
def add(a, b):
    if a.unit != b.unit:
        raise ValueError(f"{a.unit} and {b.unit}")
    return Quantity(a.value + b.value, a.unit)
@implements(torch.mul, torch.Tensor.mul)
def mul(a, b):
    value = [x.value if isinstance(x, Quantity) else x for x in (a, b)]
    return Quantity(value[0] * value[1], "*".join(x.unit for x in (a, b) if isinstance(x, Quantity)))
@implements(torch.mean)
def mean(a, *args, **kwargs):
    return Quantity(torch.mean(a.value, *args, **kwargs), a.unit)
torch.overrides
length, time = Quantity([1.0, 2.0], "m"), Quantity([3.0, 4.0], "s")
show(str(torch.add(length, length)), str(torch.mul(length, time)), str(torch.mean(length)), str(torch.mean(length, dim=0)))
show(str(torch.ones(2) * length), str(torch.mul(2, length)))
raises(lambda: torch.add(length, time))
raises(lambda: torch.sum(length))
raises(lambda: torch.ones(2) / length)
''',
    "metadata": '''
class Tagged(torch.Tensor):
    """A tensor whose tag goes with it through every operation."""
    @staticmethod
    def __new__(cls, data, tag=None):
        return torch.as_tensor(data).as_subclass(cls)
    def __init__(self, data, tag=None):
        self.tag = tag
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs or {})
        tags = [a.__dict__.get("tag") for a in args if isinstance(a, Tagged)]
        if isinstance(result, Tagged) and tags:
            result.tag = tags[0]
        return result
    @property
    def shape(self):
        return ("shape", *super().shape)
t = Tagged([[1.0, 2.0], [3.0, 4.0]], tag="a")
show(t.shape, t.tag, (t + 1).tag, t.sum(0).tag, t[0].tag, t.mT.tag, torch.relu(t).tag, F.softmax(t, 1).tag, t.clone().tag)
show(torch.linalg.det(t).tag, (2 / t).tag, (t @ t).tag)
''',
    "keeping some": '''
class Image(torch.Tensor):
    """A tensor of which only some operations give images."""
    KEEP = {torch.Tensor.clone, torch.Tensor.to, torch.Tensor.detach, torch.Tensor.requires_grad_}
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
        return result.as_subclass(cls) if func in cls.KEEP and isinstance(args[0], cls) else result
    @property
    def size_of(self):
        return self.shape[-2:]
i = torch.ones(3, 4, 5).as_subclass(Image)
show(type(i + 1), type(i.clone()), type(i.to(torch.float64)), type(i.detach()), type(i.sum()), i.size_of, type(i.add_(1)))
i.requires_grad_()
(i * 2).sum().backward()
show(type(i), i.grad.sum(), type(i.grad))
''',
    "what modes are told of methods": MODE
    + """
x = torch.full((2, 2), 0.5)
names = "abs acos_ adjoint angle argwhere bool byte ceil conj contiguous corrcoef cos_ cpu data_ptr det detach dim"
names += " element_size erf exp exp_ fliplr frexp i0 inverse is_complex is_contiguous is_inference is_nonzero is_pinned is_signed"
names += " isfinite item log logdet logical_not_ max mean min msort ndimension neg nelement new new_tensor norm numel numpy positive"
names += " prod ravel reciprocal relu retain_grad round rsqrt sigmoid sign sin size slogdet sort squeeze std stride sum t tan"
names += " tolist trace trunc untyped_storage var zero_ __abs__ __bool__ __float__ __int__ __invert__ __neg__ __pos__"
class Stops(Mode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        told.append((func.__name__, [kind.__name__ for kind in types], len(args), sorted(kwargs) if kwargs else kwargs))
for name in names.split():
    told.clear()
    try:
        with Stops():
            getattr(torch.Tensor, name)(x)
    except Exception:
        pass
    show(name, told[:1])
""",
    "what modes are told of functions in Python": MODE
    + """
F, x = torch.nn.functional, torch.ones(2, 2)
for function in (
    lambda: F.layer_norm(x, (2,)), lambda: F.group_norm(x, 1), lambda: F.rms_norm(x, (2,)), lambda: F.hardsigmoid(x),
    lambda: F.hardswish(x, True), lambda: torch.nn.init.uniform_(x), lambda: torch.nn.init.constant_(x, 1.0),
    lambda: torch.nn.init.normal_(torch.nn.Parameter(x)), lambda: torch.einsum("ij,jk->ik", [x, x]),
    lambda: torch.einsum("ij,jk->ik", x, x), lambda: torch.meshgrid(x[0], x[0], indexing="ij"), lambda: x.norm(),
):
    told.clear()
    with Mode():
        function()
    show(told)
""",
    "plain methods, warned of": """
import warnings
class Plain:
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func.__name__
def warned(function):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function()
    show(result, [(w.category.__name__, str(w.message).partition(" (Triggered")[0]) for w in caught])
plain = Plain()
warned(lambda: torch.abs(plain))
warned(lambda: torch.split(plain, 1))
warned(lambda: torch.nn.functional.gumbel_softmax(plain))
""",
    "type errors of operators": LIKE
    + """
import operator
class Cross(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise TypeError("cross")
class Reflected(Shy):
    def __radd__(self, other):
        return "radd"
    def __rfloordiv__(self, other):
        return "rfloordiv"
cross, plain = torch.ones(2, 2).as_subclass(Cross), torch.ones(2, 2)
for name in "add sub mul truediv floordiv mod pow matmul and_ lshift eq ne lt ge iadd itruediv imod ipow ixor".split():
    for first, second in ((cross, plain), (plain, cross), (cross, cross), (2, cross)):
        try:
            show(name, getattr(operator, name)(first, second))
        except TypeError as error:
            show(name, error)
raises(cross.add, 1)
raises(lambda: -cross)
show(plain + Reflected(), plain // Reflected())
raises(lambda: plain * Reflected())
""",
    "transforms of the Fourier kind": LIKE
    + PLAIN
    + """
for name in ("fft", "ifft", "rfftn", "hfft2", "fftshift"):
    show(getattr(torch.fft, name)(Like())[0], torch.overrides.resolve_name(getattr(torch.fft, name)))
    raises(getattr(torch.fft, name), Shy())
show(type(torch.fft.fft(torch.ones(2).as_subclass(M))), torch.fft in torch.overrides.get_overridable_functions())
""",
    "names of what has two": """
for function in (torch.conv2d, torch.nn.functional.conv2d, torch.cosine_similarity, torch.bilinear):
    show(torch.overrides.resolve_name(function))
show(torch.overrides.get_overridable_functions()["nothing"])
""",
    "what transforms of functions give a function": PLAIN
    + """
x = torch.ones(2).as_subclass(M)
seen = []
def function(t):
    seen.append(type(t) is torch.Tensor)
    return (t * t).sum()
show(torch.func.grad(function)(x), torch.func.vjp(function, x)[1](torch.tensor(1.0))[0], torch.func.jacrev(function)(x), seen)
""",
    "nobody knows, asked by hand": LIKE
    + """
show(len(torch.overrides.get_default_nowrap_functions()), torch.Tensor.__torch_function__.__name__)
for function in (torch.sin, torch.split, torch.nn.functional.relu):
    raises(lambda: torch.overrides.handle_torch_function(function, (Shy(),), Shy()))
""",
}

test_programs = program_test(PROGRAMS)


@pytest.mark.thorough
def test_what_the_program_of_other_classes_expects():
    found = subprocess.run(
        [sys.executable, "-W", "ignore", str(OVERRIDES), "torch"], check=True, capture_output=True, text=True
    )
    assert found.stdout.splitlines() == ["checked 126"]
