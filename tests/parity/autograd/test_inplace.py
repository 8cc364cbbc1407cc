"""In-place operations and views: versions, rewritten histories, and errors."""
# ruff: noqa: E501

import pytest

torch = pytest.importorskip("torch")

from tests.parity.programs import program_test

PROGRAMS = {
    "results_with_more_dimensions_are_refused": """
        changes = [
            lambda c, t, u: c.addcmul_(t, u), lambda c, t, u: c.addcmul_(u, t, value=2), lambda c, t, u: c.addcdiv_(t, u),
            lambda c, t, u: c.addcdiv_(u, t, value=2), lambda c, t, u: c.lerp_(t, u), lambda c, t, u: c.lerp_(t, 0.5),
            lambda c, t, u: c.lerp_(u, t), lambda c, t, u: c.add_(t), lambda c, t, u: c.add_(t, alpha=2), lambda c, t, u: c.sub_(t, alpha=2),
            lambda c, t, u: c.mul_(t), lambda c, t, u: c.div_(t), lambda c, t, u: c.pow_(t), lambda c, t, u: c.clamp_(t, u),
            lambda c, t, u: c.clamp_(max=t), lambda c, t, u: c.clamp_min_(t), lambda c, t, u: c.atan2_(t), lambda c, t, u: c.copy_(t),
            lambda c, t, u: c.masked_fill_(t > 0, 1.0), lambda c, t, u: c.gt_(t), lambda c, t, u: c.remainder_(t),
        ]
        for dtype in (torch.float32, torch.bfloat16, torch.float64):
            for shape in ((2, 3), (40, 200), (3,), ()):
                for ones in ((1,), (1, 1)):
                    for change in changes:
                        c, t, u = torch.ones(shape, dtype=dtype), torch.ones(ones + shape, dtype=dtype), torch.ones(shape, dtype=dtype)
                        raises(lambda: change(c, t, u))
                        show(c._version, c.sum())
    """,
    "versions": """
        x = torch.ones(3)
        show(x._version)
        x.add_(1); show(x._version)
        x += 1; show(x._version)
        x[0] = 5; show(x._version)
        x.zero_(); show(x._version)
        x.fill_(2); show(x._version)
        x.copy_(torch.ones(3)); show(x._version)
        x.clamp_(0, 1); show(x._version)
        v = x[1:]; show(v._version)
        v.mul_(2); show(v._version, x._version)
        w = v.view(2, 1); w.zero_(); show(w._version, v._version, x._version, x)
        x.set_(torch.ones(2)) if False else None
        y = x.detach(); y.add_(1); show(x._version, y._version)
        torch.add(x, 1, out=x); show(x._version)
        x.data.add_(1); show(x._version)
        x.requires_grad_(); show(x._version)
        torch.relu_(y); show(y._version)
        x.detach().normal_(); show(x._version)
    """,
    "inplace_history": """
        x = torch.tensor([1., 2., 3.], requires_grad=True)
        y = x * 2
        first = y.grad_fn
        y.mul_(3)
        show(y, graph(y), y.grad_fn.next_functions[0][0] is first, y._version)
        y += x
        y -= 1
        y /= 2
        y **= 2
        show(y, graph(y))
        y.sum().backward()
        show(x.grad)
    """,
    "inplace_into_plain": """
        x = torch.tensor([1., 2., 3.], requires_grad=True)
        y = torch.zeros(3)
        y.add_(x)
        show(y, y.is_leaf, graph(y))
        z = torch.zeros(2, 3)
        z[0] = x
        show(z, graph(z))
        z.sum().backward()
        show(x.grad)
    """,
    "inplace_on_leaf": """
        x = torch.tensor([1., 2., 3.], requires_grad=True)
        raises(lambda: x.add_(1))
        raises(lambda: x.zero_())
        def index(): x[0] = 1
        raises(index)
        def iadd():
            global x
            x += 1
        raises(iadd)
        raises(lambda: x.view(3).add_(1))
        raises(lambda: x[1:].mul_(2))
        raises(lambda: x.unbind()[0].add_(1))
        raises(lambda: x.copy_(torch.ones(3)))
        raises(lambda: torch.add(x, 1, out=x))
        show(x, x._version)
        with torch.no_grad():
            x.add_(1)
        show(x, x._version)
        x.data.add_(1)
        x.detach().add_(1)
        show(x, x._version)
    """,
    "views_of_no_grad": """
        x = torch.tensor([1., 2., 3.], requires_grad=True)
        y = x * 2
        with torch.no_grad():
            v = y.view(3)
            a, b, c = y.unbind()
        raises(lambda: v.add_(1))
        raises(lambda: a.add_(1))
        with torch.no_grad():
            leaf_view = x[1:]
        raises(lambda: leaf_view.add_(1))
        with torch.no_grad():
            leaf_view.add_(1)
        show(x, x._version)
        raises(lambda: leaf_view.grad_fn)
        plain = torch.zeros(3)
        with torch.no_grad():
            w = plain[1:]
        raises(lambda: w.add_(x[1:]))
    """,
    "views_of_multiple_outputs": """
        x = torch.arange(6.).reshape(3, 2).requires_grad_()
        y = x * 2
        for make in (lambda: y.unbind()[0], lambda: y.split(1)[0], lambda: y.chunk(3)[1], lambda: torch.tensor_split(y, 3)[0],
                     lambda: y.split_with_sizes([1, 2])[0], lambda: [r for r in y][0], lambda: torch.hsplit(y, 2)[0]):
            raises(lambda: make().add_(1))
        a, b, c = torch.zeros(3, 2).unbind()
        raises(lambda: a.add_(x[0]))
        a.add_(1)
        show(a, a._version, a._base)
    """,
    "expanded": """
        x = torch.ones(1, 3)
        e = x.expand(2, 3)
        raises(lambda: e.add_(1))
        raises(lambda: e.mul_(torch.ones(2, 3)))
        raises(lambda: e.copy_(torch.ones(2, 3)))
        raises(lambda: e.zero_())
        raises(lambda: e.fill_(3))
        def write(): e[0] = 5
        raises(write)
        def write(): e[:] = torch.ones(2, 3)
        raises(write)
        raises(lambda: e.index_add_(0, torch.tensor([0]), torch.ones(1, 3)))
        raises(lambda: e.masked_fill_(torch.ones(2, 3) > 0, 5))
        raises(lambda: e.scatter_(0, torch.zeros(1, 3, dtype=torch.int64), 5.0))
        raises(lambda: e.uniform_())
        raises(lambda: e.clamp_(0))
        raises(lambda: e.exp_())
        show(x, x._version)
        y = (torch.ones(1, 3, requires_grad=True) * 2).expand(2, 3)
        raises(lambda: y.add_(1))
    """,
    "partial_overlap": """
        x = torch.arange(5.)
        raises(lambda: x[1:].add_(x[:-1]))
        raises(lambda: torch.add(x[1:], 1, out=x[:-1]))
        raises(lambda: x[1:].copy_(x[:-1]))
        show(x.add_(x))
    """,
    "copy_slices": """
        x = torch.tensor([1., 2., 3.], requires_grad=True)
        y = x * 2
        v = y[1:]
        show(graph(v))
        v.mul_(10)
        show(y, v, graph(y), graph(v), type(y.grad_fn), type(v.grad_fn))
        show(v._base is y, v._version, y._version)
        y.sum().backward()
        show(x.grad)
    """,
    "copy_slices_of_plain_base": """
        x = torch.tensor([1., 2., 3.], requires_grad=True)
        base = torch.zeros(2, 3)
        row = base[0]
        row.add_(x)
        show(base.requires_grad, base.grad_fn, row.grad_fn, graph(base), graph(row), base.is_leaf)
        (base * 2).sum().backward()
        show(x.grad)
    """,
    "view_sees_base": """
        x = torch.tensor([1., 2., 3.], requires_grad=True)
        y = x * 2
        v = y[1:]
        node = v.grad_fn
        y.mul_(5)
        show(v, v.grad_fn is node, graph(v), v.grad_fn.next_functions[0][0] is y.grad_fn)
        v.sum().backward()
        show(x.grad)
    """,
    "view_regenerated": """
        x = torch.arange(6.).reshape(2, 3).requires_grad_()
        for make in (lambda y: y.t(), lambda y: y.view(3, 2), lambda y: y.unsqueeze(0), lambda y: y.permute(1, 0), lambda y: y.diagonal(),
                     lambda y: y.narrow(1, 0, 2), lambda y: y.select(0, 1), lambda y: y.squeeze(), lambda y: y.flatten(),
                     lambda y: y.as_strided((2,), (1,)), lambda y: y.transpose(0, 1)[0], lambda y: y[:, 1:][1], lambda y: y.unfold(1, 1, 2),
                     lambda y: y.movedim(0, 1), lambda y: y.unflatten(1, (3, 1)), lambda y: y[0, None], lambda y: y.T, lambda y: y.mT,
                     lambda y: y.reshape(6), lambda y: y.view_as(torch.ones(3, 2)), lambda y: y.swapaxes(0, 1), lambda y: y[..., ::2]):
            y = x * 2
            v = make(y)
            before = graph(v)
            y.mul_(3)
            show(before, graph(v), v, v._version)
            y = x * 2
            v = make(y)
            v.mul_(3)
            show(v, graph(v), y, graph(y))
            show(torch.autograd.grad(y.sum() + (v * v).sum(), x))
    """,
    "chain_of_views": """
        x = torch.arange(12.).reshape(3, 4).requires_grad_()
        y = x * 1
        a = y[1:]
        b = a.t()
        c = b[1]
        c.mul_(10)
        show(y, a, b, c, graph(c), graph(y), c._base is y, b._base is y)
        d = y.view(-1)
        d[0] = 100
        show(a, graph(a), graph(d), y._version)
        (a.sum() + d.sum() * 2).backward()
        show(x.grad)
    """,
    "two_views_interleaved": """
        x = torch.arange(4.).requires_grad_()
        y = x * 1
        a, b = y[:2], y[1:3]
        a.mul_(2)
        b.mul_(3)
        a.add_(b.clone())
        show(y, a, b)
        (y * torch.arange(4.)).sum().backward()
        show(x.grad)
    """,
    "view_of_view_after_change": """
        x = torch.arange(4.).requires_grad_()
        y = x * 1
        v = y[1:]
        v.sub_(1)
        w = v[1:]
        show(graph(w), w._base is y)
        w.mul_(2)
        show(graph(v), graph(w), v, w)
        (v.sum()).backward()
        show(x.grad)
    """,
    "setitem_forms": """
        x = torch.tensor([1., 2., 3.], requires_grad=True)
        def run(change):
            y = torch.arange(12.).reshape(4, 3) * 1
            change(y)
            show(y, graph(y), y._version)
            if y.requires_grad:
                show(torch.autograd.grad((y * y).sum(), x))
        def a(y): y[0] = x
        def b(y): y[:, 1] = x[0]
        def c(y): y[1:3] = x
        def d(y): y[[0, 2]] = x
        def e(y): y[y > 5] = x[1]
        def f(y): y[0, 0] = x[2]
        def g(y): y[...] = x
        def h(y): y[torch.tensor([0, 0]), torch.tensor([1, 1])] = x[:2]
        def i(y): y[0, 1] = 7
        def j(y): y[:, [0, 1]] += x[:2]
        def k(y): y[1] *= x
        def l(y): y[None, 0] = x
        for change in (a, b, c, d, e, f, g, h, i, j, k, l):
            run(change)
    """,
    "setitem_casts": """
        y = torch.zeros(3, dtype=torch.int64)
        y[0] = 2.7
        y[1] = torch.tensor(3.9)
        y[2] = True
        show(y)
        def f(): y[0] = 1j
        raises(f)
        def f(): y[0] = torch.tensor([1., 2.])
        raises(f)
        def f(): y[5] = 1
        raises(f)
        def f(): y[0] = 'a'
        raises(f)
        def f(): y[0] = [1, 2]
        raises(f)
        z = torch.zeros(2, 2)
        z[0] = torch.tensor([1, 2])
        z[1] = torch.tensor([[3., 4.]])
        show(z)
        def f(): z[0] = torch.ones(3)
        raises(f)
    """,
    "version_mismatch": """
        x = torch.tensor([1., 2., 3.], requires_grad=True)
        def run(record, change):
            a = x * 1
            y = record(a)
            change(a, y)
            y.sum().backward()
        change_input = lambda a, y: a.add_(1)
        change_output = lambda a, y: y.mul_(2)
        change_view = lambda a, y: a[0].zero_()
        for record in (lambda a: a * a, lambda a: a ** 2, lambda a: a.exp(), lambda a: a.sin(), lambda a: a + 1, lambda a: a.sum(),
                       lambda a: a.sigmoid(), lambda a: a / a, lambda a: a.sqrt(), lambda a: a.relu(), lambda a: a.max(), lambda a: a.clone(),
                       lambda a: a @ a, lambda a: a.abs(), lambda a: torch.where(a > 1, a, a), lambda a: a.softmax(0), lambda a: a.mean(),
                       lambda a: a.view(3, 1), lambda a: torch.cat([a, a]), lambda a: a.prod(), lambda a: a.std(), lambda a: a.log(),
                       lambda a: a * 2, lambda a: a.clamp(0, 2), lambda a: a.tanh(), lambda a: a.norm(), lambda a: a.masked_fill(a > 2, 0),
                       lambda a: F.softplus(a), lambda a: F.gelu(a), lambda a: a.cumsum(0), lambda a: a.cumprod(0), lambda a: a.reciprocal()):
            for change in (change_input, change_output, change_view):
                raises(run, record, change)
    """,
    "version_mismatch_of_leaf": """
        x = torch.tensor([1., 2., 3.], requires_grad=True)
        y = x * x
        with torch.no_grad():
            x.add_(1)
        raises(lambda: y.sum().backward())
        y = x * x
        x.data.add_(1)
        y.sum().backward()
        show(x.grad)
        w = torch.ones(3)
        z = x * w
        w.add_(1)
        raises(lambda: z.sum().backward())
        i = torch.tensor([0, 1])
        z = x[i]
        i.zero_()
        raises(lambda: z.sum().backward())
    """,
    "version_mismatch_message": """
        x = torch.ones(2, 3, requires_grad=True)
        a = x.sigmoid()
        b = a * a
        a += 1
        raises(lambda: b.sum().backward())
        a = x.double().sigmoid()
        a.mul_(2)
        raises(lambda: a.sum().backward())
        c = x.exp()
        d = c.unbind()[0]
        e = d * d
        c.add_(1)
        raises(lambda: e.sum().backward())
    """,
    "saved_after_change": """
        x = torch.tensor([1., 2., 3.], requires_grad=True)
        a = x * 1
        y = a ** 2
        a.add_(1)
        raises(lambda: y.grad_fn._saved_self)
    """,
    "inplace_activations": """
        x = torch.tensor([-1., 2., 3.], requires_grad=True)
        for change in (lambda y: F.relu(y, inplace=True), lambda y: torch.relu_(y), lambda y: y.relu_(), lambda y: F.relu_(y), lambda y: y.sigmoid_(),
                       lambda y: y.tanh_(), lambda y: F.leaky_relu(y, 0.1, inplace=True), lambda y: F.elu(y, inplace=True), lambda y: y.exp_(),
                       lambda y: y.neg_(), lambda y: y.abs_(), lambda y: y.clamp_(0, 2), lambda y: y.masked_fill_(y > 2, 0), lambda y: y.pow_(2),
                       lambda y: F.silu(y, inplace=True), lambda y: F.hardtanh(y, inplace=True), lambda y: F.dropout(y, 0.0, True, inplace=True),
                       lambda y: y.squeeze_(), lambda y: y.unsqueeze_(0), lambda y: y.t_(), lambda y: y.transpose_(0, 0), lambda y: y.index_fill_(0, torch.tensor([0]), 3),
                       lambda y: y.index_add_(0, torch.tensor([0]), x[:1]), lambda y: y.scatter_(0, torch.tensor([0]), x[1:2]), lambda y: y.cumsum_(0),
                       lambda y: y.lerp_(x, 0.3), lambda y: y.addcmul_(x, x), lambda y: y.tril_() if y.dim() > 1 else y.add_(0), lambda y: y.copy_(x * 3),
                       lambda y: y.zero_(), lambda y: y.fill_(2), lambda y: y.fill_(x[1]), lambda y: y.sub_(x), lambda y: y.rsub_(x) if hasattr(y, 'rsub_') else y):
            y = x * 2
            r = change(y)
            show(r is y, y, graph(y), y._version)
            if y.requires_grad:
                show(torch.autograd.grad((y * torch.arange(3.)).sum(), x))
    """,
    "inplace_shape_errors": """
        x = torch.ones(3)
        raises(lambda: x.add_(torch.ones(2, 3)))
        raises(lambda: x.add_(torch.ones(4)))
        i = torch.ones(3, dtype=torch.int64)
        raises(lambda: i.add_(1.5))
        raises(lambda: i.div_(2))
        raises(lambda: i.add_(torch.ones(3)))
        raises(lambda: x.add_(1j))
        raises(lambda: i.sqrt_())
        b = torch.ones(3, dtype=torch.bool)
        raises(lambda: b.add_(1))
        show(i.add_(True), x.add_(i), x.double().add_(x))
        raises(lambda: x.squeeze_(5))
        raises(lambda: x.copy_(torch.ones(2)))
    """,
    "copy_": """
        x = torch.tensor([1., 2., 3.], requires_grad=True)
        y = torch.zeros(2, 3, dtype=torch.float64)
        y.copy_(x)
        show(y, graph(y))
        y.sum().backward()
        show(x.grad)
        z = torch.zeros(3, dtype=torch.int64)
        z.copy_(x)
        show(z, z.requires_grad)
    """,
    "detach_then_change": """
        x = torch.tensor([1., 2.], requires_grad=True)
        y = x.exp()
        y.detach().zero_()
        raises(lambda: y.sum().backward())
        y = x.exp()
        y.data.zero_()
        y.sum().backward()
        show(x.grad)
    """,
    "as_strided_inplace": """
        x = torch.arange(6.).requires_grad_()
        y = x * 1
        v = y.as_strided((2, 2), (3, 1), 1)
        v.mul_(10)
        show(y, graph(v), graph(y))
        y.sum().backward()
        show(x.grad)
        w = torch.zeros(3).as_strided((3, 2), (1, 0))
        raises(lambda: w.add_(1))
    """,
    "view_of_leaf": """
        x = torch.arange(4.).requires_grad_()
        v = x.view(2, 2)
        show(v._base is x, v.is_leaf, v.requires_grad, graph(v))
        raises(lambda: v.add_(1))
        plain = torch.arange(4.)
        v = plain.view(2, 2)
        v.requires_grad_()
        show(v.is_leaf, v.requires_grad, plain.requires_grad)
        raises(lambda: v.add_(1))
        raises(lambda: plain.requires_grad_().add_(1))
    """,
    "requires_grad_view_inplace_on_base": """
        plain = torch.arange(4.)
        v = plain[1:].requires_grad_()
        plain.add_(1)
        show(v, v._version, v.requires_grad)
        (v * 2).sum().backward()
        show(v.grad)
    """,
    "inplace_under_no_grad_on_nonleaf": """
        x = torch.tensor([1., 2.], requires_grad=True)
        y = x * 2
        with torch.no_grad():
            y.add_(1)
        show(y, y._version, graph(y), y.requires_grad)
        y.sum().backward()
        show(x.grad)
    """,
    "out_argument": """
        x = torch.tensor([1., 2.], requires_grad=True)
        y = torch.zeros(2)
        raises(lambda: torch.add(x, 1, out=y))
        raises(lambda: torch.add(y, 1, out=x))
        with torch.no_grad():
            torch.add(x, 1, out=y)
        show(y, y._version, y.requires_grad)
        warns(lambda: torch.add(torch.ones(3), 1, out=torch.zeros(2)))
        warns(lambda: torch.add(torch.ones(3), 1, out=torch.empty(0)))
        raises(lambda: torch.add(torch.ones(3), 1, out=torch.zeros(3, dtype=torch.int64)))
        raises(lambda: torch.add(torch.ones(3), 1, out=5))
        show(torch.max(torch.arange(6.).reshape(2, 3), 1, out=(torch.empty(0), torch.empty(0, dtype=torch.int64))))
    """,
    "complex_views": """
        x = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
        y = x * 1
        r = torch.view_as_real(y)
        r[..., 0].mul_(5)
        show(y, graph(y))
        y.imag.zero_()
        show(y, graph(y))
        torch.view_as_real(y).pow(2).sum().backward()
        show(x.grad)
    """,
    "swap_inplace_backward_twice": """
        x = torch.ones(3, requires_grad=True)
        y = x * 2
        y[0] = 0
        y[1] *= 5
        g, = torch.autograd.grad((y ** 3).sum(), x, create_graph=True)
        show(g, torch.autograd.grad(g.sum(), x))
    """,
    "bumped_by_out_of_graph_optimizer": """
        w = torch.ones(3, requires_grad=True)
        for step in range(3):
            (w ** 2).sum().backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
            w.grad.zero_()
        show(w, w._version, w.grad, w.grad._version)
    """,
    "resize_": """
        x = torch.arange(6.)
        show(x.resize_(2, 3), x.shape, x.stride(), x._version)
        show(x.resize_(2).shape)
        show(x.resize_(8).shape)
        y = torch.ones(3, requires_grad=True)
        raises(lambda: y.resize_(2))
        raises(lambda: (y * 2).resize_(2))
        show(torch.ones(2).resize_as_(torch.ones(2, 1)).shape)
    """,
    "set_data_shares": """
        x = torch.arange(3.)
        y = x.data
        y[0] = 9
        show(x, x._version, y._version)
        z = x.detach()
        z[0] = 8
        show(x, x._version)
    """,
    "view_dtype": """
        x = torch.arange(4, dtype=torch.float32)
        show(x.view(torch.int32), x.view(torch.int16).shape, x.view(torch.float64).shape)
        raises(lambda: torch.arange(3, dtype=torch.float32).view(torch.float64))
        y = x.view(torch.int32)
        y.zero_()
        show(x, x._version)
    """,
    "a_view_whose_base_was_told_to_require_no_grad": """
        class Same(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x.view(x.shape)
            @staticmethod
            def backward(ctx, g): return g
        for view in (lambda x: x[:2], Same.apply, lambda x: x.split(2)[0]):
            for recorded in (True, False):
                x = torch.ones(3, requires_grad=True)
                with torch.set_grad_enabled(recorded):
                    y = view(x)
                x.requires_grad_(False)
                def change():
                    y.mul_(2)
                    show(x, y.requires_grad)
                raises(change) if recorded else change()
        x = torch.ones(3, requires_grad=True)
        with torch.no_grad(): y = x[:2]
        x.requires_grad_(False)
        raises(y.mul_, torch.ones(2, requires_grad=True))
    """,
    "a_tensor_written_over_itself": """
        i = torch.arange(3)
        for y in (torch.ones(3, 4), torch.ones(3, 8)[:, ::2], torch.ones(0, 3)):
            j = i[:len(y)]
            raises(y.__setitem__, j, y)
            raises(y.index_add_, 0, j, y)
            show(y.copy_(y))
    """,
    "nothing_to_fill": """
        x = torch.ones(0, 0)
        show(x.index_fill_(1, torch.tensor([0]), 1.), x._version)
    """,
}

test_program_shows_the_same = program_test(PROGRAMS)
