"""The graph that small programs record: names, edges, saved values of nodes, attributes of tensors, modes."""
# ruff: noqa: E501

import pytest

torch = pytest.importorskip("torch")

from tests.parity.exceptions import unexcused
from tests.parity.programs import compare, program_test

# Expressions in x (float64, 2x3, requires grad), y (like x), v (3), m (3x3), c (complex, 2x3), i (int64 indices), b
# (bool mask).
_PRELUDE = """
x = torch.tensor([[0.1, 0.7, -0.3], [0.5, 0.2, 0.9]], dtype=torch.float64, requires_grad=True)
y = torch.tensor([[1.5, -2.0, 0.5], [0.25, 3.0, -1.0]], dtype=torch.float64, requires_grad=True)
v = torch.tensor([0.3, -0.2, 0.8], dtype=torch.float64, requires_grad=True)
m = torch.tensor([[2.0, 0.5, 0.0], [0.5, 3.0, 0.25], [0.0, 0.25, 1.5]], dtype=torch.float64, requires_grad=True)
c = torch.tensor([[1 + 2j, 0.5j, -1.0], [2 - 1j, 1 + 1j, 0.25]], dtype=torch.complex128, requires_grad=True)
w = torch.tensor([[2.0, 1.0, 4.0], [3.0, 0.5, 2.0]], dtype=torch.float64)
i = torch.tensor([2, 0])
b = torch.tensor([[True, False, True], [False, True, True]])
img = torch.arange(32, dtype=torch.float64).reshape(1, 2, 4, 4).mul(0.1).sin().requires_grad_()
k = torch.arange(36, dtype=torch.float64).reshape(2, 2, 3, 3).mul(0.3).cos().requires_grad_()
"""

EXPRESSIONS = """
x + y
x + 1
1 + x
x.add(y, alpha=2)
x - y
x - 1
1 - x
torch.rsub(x, y)
x * y
x * w
w * x
x * 2
2 * x
x * torch.tensor(2.0)
x / y
x / 2
2 / x
x / w
w / x
torch.div(x, y, rounding_mode='floor')
x // 2
x % 2
torch.remainder(x, y)
torch.fmod(x, 2)
x ** 2
x ** y
2 ** x
x ** w
w ** x
x.pow(0.5)
-x
+x
abs(x)
x @ m
x @ v
v @ v
v @ m
w @ m
x.exp()
x.log()
x.log2()
x.log1p()
x.expm1()
x.sqrt()
x.rsqrt()
x.reciprocal()
x.square()
x.sin()
x.cos()
x.tan()
x.asin()
x.atan()
x.sinh()
x.tanh()
x.atanh()
x.sigmoid()
x.erf()
x.erfinv()
x.lgamma()
x.digamma()
x.abs()
x.sign()
x.floor()
x.round()
x.trunc()
x.frac()
torch.atan2(x, y)
torch.hypot(x, y)
torch.logaddexp(x, y)
torch.xlogy(x, w)
torch.lerp(x, y, 0.3)
torch.lerp(x, y, w)
torch.addcmul(x, y, w, value=2)
torch.addcdiv(x, y, w, value=2)
torch.where(b, x, y)
torch.where(b, x, 0.0)
x.clamp(0, 1)
x.clamp(min=0)
x.clamp(w - 2, w)
x.clamp_min(0)
torch.maximum(x, y)
torch.minimum(x, y)
torch.relu(x)
F.relu(x)
F.relu6(x)
F.leaky_relu(x)
F.elu(x)
F.selu(x)
F.celu(x)
F.gelu(x)
F.gelu(x, approximate='tanh')
F.silu(x)
F.mish(x)
F.softplus(x)
F.softsign(x)
F.hardtanh(x)
F.hardsigmoid(x)
F.hardswish(x)
F.logsigmoid(x)
F.threshold(x, 0.1, 5)
F.glu(x.t(), 0) if x.shape[1] % 2 == 0 else F.glu(torch.cat([x, x]), 0)
F.prelu(x, v)
F.softshrink(x, 0.2)
F.hardshrink(x)
x.sum()
x.sum(0)
x.sum(1, keepdim=True)
x.sum((0, 1))
x.mean()
x.mean(0)
x.mean((0, 1), keepdim=True)
x.prod()
x.prod(1)
x.max()
x.max(1)
x.max(1).values
x.min(0)
x.amax(0)
x.amin((0, 1))
x.std()
x.std(1)
x.var(0, correction=0)
torch.var_mean(x, 1)
torch.std_mean(x)
x.norm()
x.norm(1)
x.norm(3, dim=1)
x.logsumexp(1)
x.cumsum(1)
x.cumprod(0)
x.cummax(1)
x.median()
x.median(1)
x.sort(1)
x.topk(2)
x.kthvalue(2)
x.mode()
x.view(3, 2)
x.view(-1)
x.reshape(6)
x.t().reshape(6)
x.t()
x.T
x.mT
x.transpose(0, 1)
x.permute(1, 0)
x.unsqueeze(0)
x.unsqueeze(0).squeeze(0)
x.unsqueeze(0).squeeze()
x.squeeze()
v.expand(2, 3)
v.broadcast_to(2, 3)
x.narrow(1, 0, 2)
x.select(0, 1)
x.diagonal()
x.unbind(0)
x.split(2, 1)
x.split([1, 2], 1)
x.chunk(2, 1)
v.unfold(0, 2, 1)
x.as_strided((2, 2), (1, 2))
x.movedim(0, 1)
x.flatten()
x.unflatten(1, (3, 1))
torch.view_as_real(c)
x.detach()
x.clone()
x.contiguous()
x.t().contiguous()
x[0]
x[0, 1]
x[:, 1]
x[:, 1:]
x[::2]
x[..., 0]
x[None]
x[i[:1] - 1]
x[:, i]
x[b]
x[[0, 1], [1, 2]]
x[0, None, 1:]
torch.cat([x, y])
torch.cat([x, w], 1)
torch.stack([x, y])
torch.hstack([x, y])
x.repeat(2, 1)
x.tile(2)
x.roll(1, 0)
x.flip(0)
x.gather(1, torch.tensor([[0, 1], [2, 0]]))
x.scatter(1, torch.tensor([[0], [2]]), y[:, :1])
x.scatter(1, torch.tensor([[0], [2]]), 5.0)
x.scatter_add(1, torch.tensor([[0], [2]]), y)
x.index_select(1, i)
x.index_add(1, i, y[:, :2])
x.masked_fill(b, 0.5)
x.masked_select(b)
x.take(i)
x.take_along_dim(torch.tensor([[0], [2]]), 1)
x.tril()
x.triu(1)
torch.diag(v)
m.diag()
m.trace()
x.mm(m)
torch.bmm(x[None], m[None])
m.mv(v)
torch.dot(v, v)
torch.outer(v, v)
torch.einsum('ij,jk->ik', x, m)
torch.tensordot(x, m, 1)
torch.addmm(v, x, m)
torch.addmm(x, x, m, beta=2, alpha=3)
torch.baddbmm(x[None], x[None], m[None])
torch.addmv(v, m, v)
x.softmax(1)
x.log_softmax(1)
F.softmax(x, 0)
F.mse_loss(x, y)
F.mse_loss(x, w, reduction='sum')
F.l1_loss(x, y)
F.smooth_l1_loss(x, y)
F.huber_loss(x, y)
F.nll_loss(x, i)
F.cross_entropy(x, i)
F.cross_entropy(x, i, label_smoothing=0.1)
F.cross_entropy(x, w.softmax(1))
F.binary_cross_entropy(x.sigmoid(), w.sigmoid())
F.binary_cross_entropy_with_logits(x, w.sigmoid())
F.kl_div(x, w)
F.linear(x, m)
F.linear(x, m, v)
F.linear(x[None], m, v)
F.linear(v, m, v)
F.conv2d(img, k)
F.conv2d(img, k, padding=1, stride=2)
F.conv1d(img[0], k[0])
F.max_pool2d(img, 2)
F.max_pool1d(img[0], 2)
F.avg_pool2d(img, 2)
F.batch_norm(img, None, None, training=True)
F.batch_norm(img, torch.zeros(2).double(), torch.ones(2).double(), v[:2], v[:2], training=False)
F.layer_norm(x, (3,), v, v)
F.layer_norm(x, (3,))
F.embedding(i, m)
F.dropout(x, 0.5, True)
F.dropout(x, 0.5, False)
F.pad(x, (1, 1))
F.normalize(x)
F.cosine_similarity(x, y)
torch.linalg.inv(m)
torch.linalg.solve(m, v)
torch.linalg.det(m)
torch.linalg.slogdet(m)
torch.linalg.cholesky(m)
torch.linalg.norm(x)
torch.linalg.vector_norm(x, 1)
torch.linalg.matrix_norm(x)
torch.inverse(m)
torch.det(m)
c * c
c.abs()
c.real
c.imag
c.conj()
c.angle()
c.mH
c.sum()
torch.complex(x, y)
x.to(torch.float32)
x.float()
x.half()
x.double()
x.to(torch.complex64)
x.type(torch.float32)
x.float() + x
x * c
x + v
x * v
x.expand_as(y) * v
x.new_zeros(3)
torch.zeros_like(x)
torch.tensor([1.0, 2.0], requires_grad=True)
x > y
x.argmax()
x.eq(y)
x.isnan()
torch.round(x, decimals=1)
x.nan_to_num()
x.fmod(y)
torch.meshgrid(v, v, indexing='ij')
torch.broadcast_tensors(v, x)
x.repeat_interleave(2, 0)
torch.unique(x)
x.masked_scatter(b, y)
x.index_fill(1, i, 3.0)
x.index_copy(1, i, y[:, :2])
x.index_put((torch.tensor([0]),), v)
x.put(i, y.view(-1)[:2])
x.count_nonzero()
torch.aminmax(x)
x.ravel()
x.swapaxes(0, 1)
torch.tensor_split(x, 2, 1)
x.logcumsumexp(1) if hasattr(x, 'logcumsumexp') else x
torch.nn.Parameter(x.detach())
""".strip().split("\n")


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expression_records_the_same_graph(expression: str) -> None:
    differences = compare(f"""{_PRELUDE}
result = {expression}
results = list(result) if isinstance(result, (tuple, list)) else [result]
for each in results:
    show(each)
    show(each.is_leaf, each.requires_grad, each.output_nr, each._is_view(), each._version)
    show(graph(each))
""")
    remaining = unexcused(f"graph of {expression}", differences)
    assert not remaining, "\n".join(remaining)


_WALK = """
result = {expression}
first = result[0] if isinstance(result, (tuple, list)) else result
seen = []
waiting = [first.grad_fn]
while waiting:
    node = waiting.pop(0)
    if node is not None and node not in seen and 'Accumulate' not in node.name():
        seen.append(node)
        waiting += [edge[0] for edge in node.next_functions]
        show(type(node).__name__, {what}(node))
"""


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expression_saves_the_same_tensors(expression: str) -> None:
    differences = compare(_PRELUDE + _WALK.format(expression=expression, what="saved_tensors"))
    remaining = unexcused(f"saved tensors of {expression}", differences)
    assert not remaining, "\n".join(remaining)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expression_saves_the_same_arguments(expression: str) -> None:
    differences = compare(_PRELUDE + _WALK.format(expression=expression, what="saved_arguments"))
    remaining = unexcused(f"saved arguments of {expression}", differences)
    assert not remaining, "\n".join(remaining)


PROGRAMS = {
    "leaf": """
        x = torch.ones(3, requires_grad=True)
        show(x.is_leaf, x.grad_fn, x.grad, x.requires_grad, x.output_nr, x._version, x._base, x._is_view())
        y = torch.ones(3)
        show(y.is_leaf, y.grad_fn, y.requires_grad)
        show((y * 2).is_leaf, (x * 2).is_leaf, (x * 2).detach().is_leaf)
    """,
    "accumulate_grad": """
        x = torch.ones(3, requires_grad=True)
        y = x * 2
        node, index = y.grad_fn.next_functions[0]
        show(node.name(), type(node), index, node.variable is x, node.next_functions)
        show(node is (x + 1).grad_fn.next_functions[0][0])
        show(y.grad_fn.next_functions[1])
        show(x.expand(2, 3).grad_fn.next_functions[0][0] is node)
        show(x.view_as(x).grad_fn.next_functions[0][0] is node)
    """,
    "identity_of_nodes": """
        x = torch.ones(3, requires_grad=True)
        y = x * 2
        show(y.grad_fn is y.grad_fn, y.grad_fn == y.grad_fn, hash(y.grad_fn) == hash(y.grad_fn))
        z = y + 1
        show(z.grad_fn.next_functions[0][0] is y.grad_fn)
        show(isinstance(y.grad_fn, torch.autograd.graph.Node))
        show(repr(y.grad_fn).split(' at ')[0], str(type(y.grad_fn)))
    """,
    "metadata": """
        x = torch.ones(3, requires_grad=True)
        y = x * 2
        show(y.grad_fn.metadata)
        y.grad_fn.metadata['a'] = 5
        show(y.grad_fn.metadata, y.grad_fn.metadata['a'])
    """,
    "saved_self_is_the_input": """
        x = torch.ones(3, requires_grad=True)
        y = x ** 2
        show(y.grad_fn._saved_self is x)
        z = x.exp()
        show(z.grad_fn._saved_result is z, z.grad_fn._saved_result.grad_fn is z.grad_fn)
        show(z.grad_fn._saved_result.data_ptr() == z.data_ptr())
        raises(lambda: y.grad_fn._saved_other)
    """,
    "saved_of_mul_depends_on_needs": """
        x = torch.ones(3, requires_grad=True)
        w = torch.full((3,), 2.)
        a = x * w
        show(saved(a.grad_fn))
        a = w * x
        show(saved(a.grad_fn))
        a = x * x
        show(saved(a.grad_fn))
        a = x * 5
        show(saved(a.grad_fn))
    """,
    "raw_saved_hooks": """
        x = torch.ones(3, requires_grad=True)
        y = x ** 2
        log = []
        y.grad_fn._raw_saved_self.register_hooks(lambda t: (log.append('pack'), t.numpy(force=True).copy())[1] if False else (log.append('pack'), 7.0)[1], lambda p: (log.append(('unpack', p)), torch.full((3,), p))[1])
        y.sum().backward()
        show(log, x.grad)
        z = x ** 2
        raw = z.grad_fn._raw_saved_self
        raw.register_hooks(lambda t: t, lambda t: t)
        raises(lambda: raw.register_hooks(lambda t: t, lambda t: t))
        z.sum().backward()
        raises(lambda: z.grad_fn._saved_self)
        raises(lambda: raw.register_hooks(lambda t: t, lambda t: t))
        raises(lambda: (x ** 2).grad_fn._raw_saved_self.register_hooks(lambda: 1, lambda t: t))
        raises(lambda: (x ** 2).grad_fn._raw_saved_self.register_hooks(5, lambda t: t))
    """,
    "saved_tensors_hooks": """
        x = torch.tensor([1., 2., 3.], requires_grad=True)
        log = []
        def pack(t):
            log.append(('pack', t.detach().clone(), t is x, t.requires_grad))
            return t * 10
        def unpack(t):
            log.append(('unpack', t))
            return t / 10
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            y = x * x
            z = y.exp()
        show(log)
        show(y.grad_fn._saved_self is x, y.grad_fn._saved_self)
        show(z.grad_fn._saved_result)
        del log[:]
        z.sum().backward()
        show(log, x.grad)
    """,
    "saved_tensors_hooks_nested": """
        x = torch.tensor([1., 2., 3.], requires_grad=True)
        log = []
        hooks = torch.autograd.graph.saved_tensors_hooks
        with hooks(lambda t: (log.append('p1'), t)[1], lambda t: (log.append('u1'), t)[1]):
            with hooks(lambda t: (log.append('p2'), t)[1], lambda t: (log.append('u2'), t)[1]):
                y = x ** 2
            z = y ** 2
        z.sum().backward()
        show(log, x.grad)
    """,
    "saved_tensors_hooks_bad": """
        x = torch.tensor([1., 2., 3.], requires_grad=True)
        hooks = torch.autograd.graph.saved_tensors_hooks
        def run(pack, unpack):
            with hooks(pack, unpack):
                y = x ** 2
            y.sum().backward()
        raises(run, lambda t: t, lambda t: 5)
        raises(run, lambda t: t, lambda t: t.double())
        raises(run, lambda: 1, lambda t: t)
        raises(run, lambda t: t, lambda: 1)
        def change(t):
            t.mul_(2)
            return t
        raises(run, change, lambda t: t)
        with torch.autograd.graph.disable_saved_tensors_hooks('not here'):
            raises(run, lambda t: t, lambda t: t)
    """,
    "save_on_cpu": """
        x = torch.tensor([1., 2., 3.], requires_grad=True)
        with torch.autograd.graph.save_on_cpu():
            y = x ** 3
        y.sum().backward()
        show(x.grad)
    """,
    "unbind_output_numbers": """
        x = torch.arange(6.).reshape(3, 2).requires_grad_()
        a, b, c = x.unbind()
        show(a.output_nr, b.output_nr, c.output_nr, a.grad_fn is b.grad_fn)
        y = b * c
        show(graph(y))
        y.sum().backward()
        show(x.grad)
        show(a.grad_fn.name(), [r.output_nr for r in x.max(1)], x.sort().indices.output_nr)
    """,
    "iteration_is_unbind": """
        x = torch.arange(6.).reshape(3, 2).requires_grad_()
        rows = [row for row in x]
        show([row.grad_fn for row in rows], [row.output_nr for row in rows])
        a, b, c = x
        show(a)
    """,
    "converging_branches": """
        x = torch.tensor(2., requires_grad=True)
        y = x * x
        z = y * x + y.exp() * y
        show(graph(z))
        z.backward()
        show(x.grad)
    """,
    "converging_deep": """
        x = torch.tensor(1., requires_grad=True, dtype=torch.float64)
        y = x
        for i in range(20):
            y = y * 0.5 + y * 0.6
        y.backward()
        show(x.grad)
    """,
    "unused_output": """
        x = torch.arange(6.).reshape(3, 2).requires_grad_()
        values, indices = x.max(1)
        a, b, c = x.unbind()
        b.sum().backward()
        show(x.grad)
        values.sum().backward()
        show(x.grad, indices.requires_grad, indices.grad_fn)
    """,
    "no_grad": """
        x = torch.ones(3, requires_grad=True)
        with torch.no_grad():
            y = x * 2
            show(y.requires_grad, torch.is_grad_enabled())
            with torch.enable_grad():
                z = x * 2
                show(z.requires_grad, torch.is_grad_enabled())
            w = torch.ones(2, requires_grad=True)
            show(w.requires_grad, (w * 2).requires_grad)
            v = x.view(3)
            show(v.requires_grad, v._is_view(), v._base is x)
        show(torch.is_grad_enabled(), y.is_leaf, y.grad_fn)
    """,
    "grad_mode_decorators": """
        x = torch.ones(3, requires_grad=True)
        @torch.no_grad()
        def f(a): return a * 2
        @torch.no_grad
        def g(a): return a * 2
        @torch.enable_grad()
        def h(a): return a * 2
        @torch.set_grad_enabled(False)
        def s(a): return a * 2
        @torch.inference_mode()
        def i(a): return a * 2
        show(f(x), g(x), h(x), s(x) if torch.is_grad_enabled() else 'off', torch.is_grad_enabled())
        show(i(x).requires_grad, i(x).is_inference())
        show(f.__name__, g.__name__)
        with torch.no_grad():
            show(h(x), f(x))
        torch.set_grad_enabled(True)
        show(torch.is_grad_enabled())
    """,
    "grad_mode_of_wrong_types": """
        for mode in (torch.set_grad_enabled, torch.autograd.set_multithreading_enabled):
            for value in (1, None, "a", torch.tensor(True), len):
                raises(lambda: mode(value))
                show(torch.is_grad_enabled())
    """,
    "grad_mode_of_classes": """
        import warnings
        class A:
            def __init__(self):
                self.on = torch.is_grad_enabled()
            def method(self):
                return torch.is_grad_enabled()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            make = torch.no_grad()(A)
        show(isinstance(make, type), make().on, make().method(), type(make()) is A)
    """,
    "grad_mode_of_coroutines": """
        import asyncio
        for mode in (torch.no_grad, torch.inference_mode):
            log = []
            def note(where):
                log.append((where, torch.is_grad_enabled(), torch.is_inference_mode_enabled()))
            @mode()
            async def coroutine():
                note("a"); await asyncio.sleep(0); note("a"); return 1
            @mode()
            async def several():
                note("b"); yield 1; note("b"); yield 2
            async def other():
                note("c"); await asyncio.sleep(0)
                async for value in several():
                    note(value)
            async def main():
                return await asyncio.gather(coroutine(), other())
            show(asyncio.run(main()), log)
    """,
    "node_metadata": """
        x = torch.ones(2, 3, requires_grad=True)
        for meta in (x * 2).grad_fn._input_metadata:
            show(tuple(meta.shape), meta.dtype, meta.device, meta.is_nested_tensor, meta.is_cpp_nested_tensor)
        seen = []
        y = x.exp()
        y.grad_fn.register_prehook(lambda grads: seen.append(torch._C._current_autograd_node().name()))
        y.sum().backward()
        show(seen, torch._C._current_autograd_node(), torch._C._current_graph_task_id())
    """,
    "grad_mode_generators": """
        x = torch.ones(3, requires_grad=True)
        log = []
        @torch.no_grad()
        def numbers():
            log.append(torch.is_grad_enabled())
            got = yield x * 2
            log.append((torch.is_grad_enabled(), got))
            try:
                yield x * 3
            except ValueError:
                log.append(('caught', torch.is_grad_enabled()))
                yield x * 4
            return 9
        g = numbers()
        show(next(g).requires_grad, torch.is_grad_enabled())
        show(g.send('hello').requires_grad, torch.is_grad_enabled())
        show(g.throw(ValueError()).requires_grad, torch.is_grad_enabled())
        try:
            next(g)
        except StopIteration as stop:
            show(stop.value)
        show(log)
    """,
    "grad_mode_class": """
        warns(lambda: torch.no_grad()(type('A', (), {'__init__': lambda self: setattr(self, 'on', torch.is_grad_enabled())}))().on)
    """,
    "set_grad_enabled": """
        torch.set_grad_enabled(False)
        show(torch.is_grad_enabled())
        with torch.set_grad_enabled(True):
            show(torch.is_grad_enabled())
        show(torch.is_grad_enabled())
        torch.set_grad_enabled(True)
        with torch.autograd.grad_mode.set_grad_enabled(False):
            show(torch.is_grad_enabled())
        raises(lambda: torch.set_grad_enabled())
    """,
    "inference_mode": """
        x = torch.ones(3, requires_grad=True)
        with torch.inference_mode():
            show(torch.is_inference_mode_enabled(), torch.is_grad_enabled())
            y = x * 2
            show(y.requires_grad, y.is_inference(), x.is_inference())
            y.add_(1)
            raises(lambda: y._version)
            z = torch.ones(2)
            show(z.is_inference(), z.is_leaf)
            with torch.inference_mode(False):
                show((x * 2).requires_grad, torch.is_inference_mode_enabled())
            v = x.view(3)
            show(v.is_inference(), v.requires_grad)
        show(torch.is_inference_mode_enabled())
        raises(lambda: y.requires_grad_())
        raises(lambda: x * y)
        show((y * 2).requires_grad)
        raises(lambda: y.add_(1))
        raises(lambda: y.view(3).add_(1))
        show((x + y).requires_grad)
        show(y.clone().is_inference())
        raises(lambda: torch.ones(3, requires_grad=True).mul(y))
    """,
    "inference_inplace_inside": """
        x = torch.ones(3)
        with torch.inference_mode():
            x.add_(1)
        show(x, x._version)
    """,
    "requires_grad_setter": """
        x = torch.ones(3)
        x.requires_grad = True
        y = x * 2
        show(y.requires_grad)
        def off(): y.requires_grad = False
        raises(off)
        raises(lambda: y.requires_grad_(False))
        show(y.requires_grad_().requires_grad)
        i = torch.tensor([1, 2])
        raises(lambda: i.requires_grad_())
        def on(): i.requires_grad = True
        raises(on)
        raises(lambda: torch.tensor([1, 2], requires_grad=True))
        raises(lambda: torch.ones(2, dtype=torch.bool, requires_grad=True))
        x.requires_grad = False
        show(x.requires_grad, y.requires_grad)
        x.requires_grad_()
        show(x.requires_grad_() is x, i.requires_grad_(False) is i)
    """,
    "detach_and_data": """
        x = torch.tensor([1., 2., 3.], requires_grad=True)
        y = x * 2
        d = y.detach()
        show(d.requires_grad, d.grad_fn, d._version, d.data_ptr() == y.data_ptr(), d._is_view(), d._base is None)
        d.add_(1)
        show(y, y._version, d._version)
        z = y.exp()
        e = y.data
        e.mul_(2)
        show(y, y._version, e._version)
        z.sum().backward()
        show(x.grad)
    """,
    "detach_": """
        x = torch.tensor([1., 2., 3.], requires_grad=True)
        y = x * 2
        show(y.detach_() is y, y.requires_grad, y.is_leaf, y.grad_fn)
        raises(lambda: (x * 2).view(3).detach_())
        raises(lambda: (x * 2)[1:].detach_())
        raises(lambda: (x * 2).unbind()[0].detach_())
        x.detach_()
        show(x.requires_grad)
    """,
    "data_setter": """
        x = torch.tensor([1., 2., 3.], requires_grad=True)
        version = x._version
        x.data = torch.tensor([5., 6.])
        show(x, x.requires_grad, x._version == version, x.shape)
        x.data.zero_()
        show(x)
        def wrong(): x.data = 5
        raises(wrong)
        def other(): x.data = torch.tensor([1, 2])
        raises(other)
    """,
    "grad_setter": """
        x = torch.tensor([1., 2., 3.], requires_grad=True)
        x.grad = torch.ones(3)
        (x * 2).sum().backward()
        show(x.grad)
        def assign(value):
            x.grad = value
        raises(assign, torch.ones(2))
        raises(assign, torch.ones(3, dtype=torch.float64))
        raises(assign, 5)
        raises(assign, x)
        assign(None)
        show(x.grad)
        del x.grad
        show(x.grad)
    """,
    "grad_of_non_leaf_warns": """
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        warns(lambda: y.grad)
        y.retain_grad()
        warns(lambda: y.grad)
        warns(lambda: x.grad)
        warns(lambda: (torch.ones(2) * 2).grad)
    """,
    "backward_frees": """
        x = torch.tensor([1., 2.], requires_grad=True)
        y = (x ** 2).sum()
        y.backward()
        raises(lambda: y.backward())
        raises(lambda: y.grad_fn.next_functions[0][0]._saved_self)
        z = (x + 1).sum()
        z.backward()
        z.backward()
        show(x.grad)
        w = (x ** 2).sum()
        w.backward(retain_graph=True)
        w.backward()
        show(x.grad)
    """,
    "backward_arguments": """
        x = torch.tensor([1., 2.], requires_grad=True)
        y = x ** 2
        raises(lambda: y.backward())
        y.backward(torch.tensor([1., 10.]), retain_graph=True)
        show(x.grad)
        raises(lambda: y.backward(torch.ones(3)))
        raises(lambda: y.backward(torch.ones(2, 1)))
        raises(lambda: y.backward(5.0))
        y.backward(torch.tensor([1, 10], dtype=torch.float64), retain_graph=True)
        show(x.grad)
        y.backward(gradient=torch.ones(2), create_graph=True)
        show(x.grad)
        raises(lambda: torch.ones(2).sum().backward())
        raises(lambda: torch.autograd.backward([y, y], [torch.ones(2)]))
        raises(lambda: torch.autograd.backward(y, [torch.ones(2), torch.ones(2)]))
        raises(lambda: y.backward(torch.ones(2), inputs=[]))
        raises(lambda: torch.ones(2, requires_grad=True).backward())
        torch.tensor(3., requires_grad=True).backward()
    """,
    "backward_inputs": """
        x = torch.tensor([1., 2.], requires_grad=True)
        w = torch.tensor([3., 4.], requires_grad=True)
        y = (x * w)
        z = y.sum()
        z.backward(inputs=[x], retain_graph=True)
        show(x.grad, w.grad)
        z.backward(inputs=w, retain_graph=True)
        show(x.grad, w.grad)
        z.backward(inputs=[y], retain_graph=True)
        show(y.grad)
        torch.autograd.backward([z, y], [None, torch.ones(2)], inputs=(x,))
        show(x.grad, w.grad)
        raises(lambda: (x * 2).sum().backward(inputs=[torch.ones(2)]))
    """,
    "backward_many_roots": """
        x = torch.tensor([1., 2.], requires_grad=True)
        y = x * 2
        a = y.sum()
        b = (y ** 2).sum()
        torch.autograd.backward([a, b])
        show(x.grad)
        y = x * 3
        torch.autograd.backward((y, y), (torch.ones(2), torch.ones(2)))
        show(x.grad)
        torch.autograd.backward([(x * 1).sum(), torch.tensor(2., requires_grad=True)])
        show(x.grad)
    """,
    "accumulation_identity": """
        x = torch.tensor([1., 2.], requires_grad=True)
        (x * 2).sum().backward()
        g = x.grad
        (x * 3).sum().backward()
        show(x.grad is g, g, g._version)
        x.grad = None
        h = torch.ones(2)
        (x + 0).backward(h)
        show(x.grad is h, x.grad.data_ptr() == h.data_ptr())
        x.grad = None
        (x * 2).sum().backward(create_graph=True)
        g = x.grad
        (x ** 2).sum().backward(create_graph=True)
        show(x.grad is g, x.grad.requires_grad, graph(x.grad))
    """,
    "grad_function": """
        x = torch.tensor([1., 2.], requires_grad=True)
        w = torch.tensor([3., 4.], requires_grad=True)
        y = x * x
        z = (y * 2).sum()
        show(torch.autograd.grad(z, x, retain_graph=True))
        show(torch.autograd.grad(z, [x, y], retain_graph=True))
        show(x.grad, y.requires_grad)
        raises(lambda: torch.autograd.grad(z, [x, w], retain_graph=True))
        show(torch.autograd.grad(z, [x, w], retain_graph=True, allow_unused=True))
        show(torch.autograd.grad(z, [x, w], retain_graph=True, materialize_grads=True))
        raises(lambda: torch.autograd.grad(z, [x, w], retain_graph=True, allow_unused=False, materialize_grads=True))
        raises(lambda: torch.autograd.grad(z, torch.ones(2)))
        raises(lambda: torch.autograd.grad(z, []))
        raises(lambda: torch.autograd.grad(y, x))
        show(torch.autograd.grad(y, x, torch.ones(2), retain_graph=True))
        raises(lambda: torch.autograd.grad(y, x, torch.ones(3)))
        raises(lambda: torch.autograd.grad(torch.ones(2).sum(), x))
        show(torch.autograd.grad([y, z], [x], [torch.ones(2), None], retain_graph=True))
        g, = torch.autograd.grad(z, x, create_graph=True)
        show(g, graph(g))
        show(torch.autograd.grad(g.sum(), x))
        show(torch.autograd.grad(x.sum(), x))
        show(torch.autograd.grad(z, z, torch.tensor(5.)))
    """,
    "grad_accumulates_nothing": """
        x = torch.tensor([1., 2.], requires_grad=True)
        w = torch.tensor([1., 2.], requires_grad=True)
        y = (x * w).sum()
        g = torch.autograd.grad(y, x)
        show(x.grad, w.grad, g)
        raises(lambda: torch.autograd.grad(y, x))
    """,
    "grad_of_intermediate": """
        x = torch.tensor([1., 2.], requires_grad=True)
        y = x * 2
        z = y ** 2
        t = z.sum() + y.sum()
        show(torch.autograd.grad(t, [y, z, x], retain_graph=True))
        y2 = y
        y.retain_grad()
        t.backward()
        show(y.grad, x.grad)
    """,
    "third_derivative": """
        x = torch.tensor(2., requires_grad=True, dtype=torch.float64)
        y = x ** 4 * x.sin()
        for order in range(4):
            y, = torch.autograd.grad(y, x, create_graph=True)
            show(y)
    """,
    "double_backward_graph": """
        x = torch.tensor([1., 2.], requires_grad=True, dtype=torch.float64)
        w = torch.tensor([3., -4.], requires_grad=True, dtype=torch.float64)
        y = (x * w).tanh().sum()
        gx, gw = torch.autograd.grad(y, [x, w], create_graph=True)
        show(graph(gx))
        show(torch.autograd.grad((gx * gw).sum(), [x, w]))
    """,
    "leaf_twice": """
        x = torch.tensor([1., 2.], requires_grad=True)
        (x + x).sum().backward()
        show(x.grad)
        (x * x).sum().backward()
        show(x.grad)
        torch.cat([x, x, x]).sum().backward()
        show(x.grad)
        torch.stack([x, x * x]).sum().backward()
        show(x.grad)
    """,
    "broadcast_gradients": """
        a = torch.ones(3, 1, requires_grad=True)
        b = torch.ones(4, requires_grad=True)
        c = torch.tensor(2., requires_grad=True)
        (a * b * c).sum().backward()
        show(a.grad, b.grad, c.grad)
    """,
    "mixed_dtypes": """
        a = torch.ones(3, requires_grad=True)
        b = torch.ones(3, dtype=torch.float64, requires_grad=True)
        y = a * b
        show(y, graph(y))
        y.sum().backward()
        show(a.grad, b.grad)
        c = torch.ones(3, dtype=torch.float16, requires_grad=True)
        (c * a + c).sum().backward()
        show(c.grad, a.grad)
        d = torch.ones(2, dtype=torch.complex64, requires_grad=True)
        e = torch.ones(2, requires_grad=True)
        (d * e).abs().sum().backward()
        show(d.grad, e.grad)
    """,
    "integer_inputs": """
        x = torch.tensor([1., 2., 3.], requires_grad=True)
        n = torch.tensor([1, 2, 3])
        y = x * n
        show(y, saved(y.grad_fn))
        y.sum().backward()
        show(x.grad)
        z = n / 2
        show(z)
        show((x > 1) * x, (x > 1).requires_grad)
    """,
    "zero_dim_and_empty": """
        x = torch.zeros(0, 3, requires_grad=True)
        y = (x * 2).sum()
        y.backward()
        show(y, x.grad)
        s = torch.tensor(3., requires_grad=True)
        (s * s).backward()
        show(s.grad)
        raises(lambda: torch.zeros(0, requires_grad=True).max())
    """,
    "retain_grad": """
        x = torch.tensor([1., 2.], requires_grad=True)
        y = x * 2
        y.retain_grad()
        y.retain_grad()
        show(y.retains_grad, x.retains_grad)
        y.sum().backward(retain_graph=True)
        show(y.grad)
        y.sum().backward()
        show(y.grad, x.grad)
        x.retain_grad()
        show(x.retains_grad)
        raises(lambda: torch.ones(2).retain_grad())
    """,
    "deepcopy": """
        import copy
        x = torch.tensor([1., 2.], requires_grad=True)
        (x * 2).sum().backward()
        y = copy.deepcopy(x)
        show(y, y.grad, y is x, y.requires_grad, y.is_leaf)
        raises(lambda: copy.deepcopy(x * 2))
        show(copy.copy(x).requires_grad, copy.copy(x).data_ptr() == x.data_ptr())
        z = torch.ones(2, 3).t()
        show(copy.deepcopy(z).stride())
        a = [x, x]
        b = copy.deepcopy(a)
        show(b[0] is b[1])
    """,
    "grad_dtype_follows": """
        x = torch.ones(3, dtype=torch.bfloat16, requires_grad=True)
        (x.float() * 2).sum().backward()
        show(x.grad)
    """,
    "td_lambda": """
        torch.manual_seed(0)
        p = torch.ones(3, requires_grad=True)
        z = [torch.zeros(3)]
        alpha, gamma, lam = 0.1, 0.9, 0.8
        for step in range(3):
            v = (p * torch.tensor([1., 2., 3.]) * (step + 1)).sum()
            p.grad = None
            v.backward()
            z[0][:] = gamma * lam * z[0] + p.grad
            delta = 1.0 - v.item()
            p.grad[:] = alpha * delta * z[0]
            with torch.no_grad():
                p += p.grad
        show(p, z, p._version)
    """,
    "weak_references": """
        import weakref
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        r = weakref.ref(y)
        z = y + 1
        del y
        show(r() is None)
        z.foo = 5
        show(z.foo)
    """,
    "set_multithreading": """
        with torch.autograd.set_multithreading_enabled(False):
            x = torch.ones(2, requires_grad=True)
            x.sum().backward()
            show(x.grad)
    """,
    "detect_anomaly": """
        x = torch.tensor([0.], requires_grad=True)
        def run():
            with torch.autograd.detect_anomaly(check_nan=True):
                y = (x * 0).sqrt() * 0
                (y / x).sum().backward()
        raises(run)
    """,
    "is_tensor_and_functions": """
        x = torch.ones(2, requires_grad=True)
        show(torch.is_tensor(x), torch.is_floating_point(x), torch.is_complex(x), torch.numel(x), x.is_floating_point())
        show(torch.is_nonzero(torch.tensor(1.)), x.is_complex(), x.is_signed())
        raises(lambda: torch.is_nonzero(x))
    """,
    "node_with_none_edges": """
        x = torch.ones(2, requires_grad=True)
        w = torch.ones(2)
        show((x * w).grad_fn.next_functions, graph(w * x), graph(torch.addcmul(w, w, x)))
        show(graph(torch.where(x > 0, w, x)), graph(torch.cat([w, x, w])), graph(torch.stack([w, x])))
        show(graph(torch.lerp(w, x, w)), graph(F.linear(w, w[None], x[:1])))
    """,
    "gradient_edge": """
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        edge = torch.autograd.graph.get_gradient_edge(y)
        show(edge.node is y.grad_fn, edge.output_nr)
        z = y.exp().sum()
        show(torch.autograd.grad(z, edge))
    """,
    "increment_version": """
        x = torch.ones(2)
        torch.autograd.graph.increment_version(x)
        show(x._version)
        torch.autograd._unsafe_preserve_version_counter if False else None
    """,
    "allow_mutation_on_saved": """
        x = torch.tensor([1., 2.], requires_grad=True)
        with torch.autograd.graph.allow_mutation_on_saved_tensors():
            a = x * 1
            y = a * a
            a.add_(10)
            y.sum().backward()
        show(x.grad)
    """,
}

test_program_shows_the_same = program_test(PROGRAMS)
