"""In-place operations within function transforms: permitted and refused changes, and their results."""
# ruff: noqa: E501

import pytest

torch = pytest.importorskip("torch")

from tests.parity.programs import program_test

CAPTURED = {
    "results that their nodes save are the function's own": """
        fn = torch.func
        x = torch.rand(3, 4) + 0.5
        for make in (torch.exp, lambda a: a**a, lambda a: a.softmax(0), lambda a: a.amax(0), lambda a: a.std(0), torch.linalg.svdvals,
                     lambda a: torch.linalg.inv(a @ a.mT + torch.eye(3)), lambda a: a.max(0).values, lambda a: a.cumprod(0)):
            def overwritten(a):
                made = make(a)
                made.zero_()
                return made + a.sum()
            def changed(a):
                made = make(a)
                made.select(-1, 0).mul_(2)
                return made
            for f in (overwritten, changed):
                raises(lambda: show(fn.vjp(f, x)[1](f(x))))
                show(fn.jvp(f, (x,), (x,)))
                raises(lambda: show(fn.grad(lambda a: fn.vmap(f)(torch.stack((a, a))).sum())(x)))
    """,
    "refused": """
        fn = torch.func
        x = torch.tensor([1., 2.])
        mask = torch.tensor([True, False])
        changes = [
            lambda c, x: c.add_(1), lambda c, x: c.mul_(x), lambda c, x: c.copy_(x), lambda c, x: c.zero_(), lambda c, x: c.fill_(1.),
            lambda c, x: c.__setitem__(0, 5.), lambda c, x: c.__setitem__(0, x[0]), lambda c, x: c.__setitem__(mask, 5.),
            lambda c, x: c[0].mul_(2), lambda c, x: c.view(2, 1).mul_(2), lambda c, x: c.detach().mul_(2), lambda c, x: c.data.mul_(2),
            lambda c, x: c.unsqueeze_(0), lambda c, x: c.detach_(), lambda c, x: c.resize_(4), lambda c, x: c.uniform_(),
            lambda c, x: c.random_(3), lambda c, x: torch.nn.init.zeros_(c), lambda c, x: torch.no_grad()(c.add_)(1),
            lambda c, x: torch.relu_(c), lambda c, x: c.clamp_(0, 1), lambda c, x: c.clamp_(x), lambda c, x: c.squeeze_(0),
            lambda c, x: c.index_fill_(0, torch.tensor([0]), 1.), lambda c, x: c.masked_fill_(mask, 1.), lambda c, x: c.pow_(2),
            lambda c, x: c.bernoulli_(0.5), lambda c, x: c.xlogy_(2.), lambda c, x: c.eq_(1), lambda c, x: c.lerp_(x, 0.5),
            lambda c, x: c.scatter_(0, torch.tensor([0]), 1.), lambda c, x: c.scatter_(0, torch.tensor([0]), x), lambda c, x: c.sub_(1),
            lambda c, x: c.floor_divide_(2), lambda c, x: c.addcmul_(x, x), lambda c, x: c.unbind()[0].add_(1),
            lambda c, x: c.contiguous().add_(1), lambda c, x: c.to(torch.float32).add_(1),
        ]
        for change in changes:
            captured = torch.tensor([3., 4.])
            def f(x):
                change(captured, x)
                return (x * x).sum()
            raises(lambda: fn.grad(f)(x))
            raises(lambda: fn.jvp(f, (x,), (x,)))
            show(captured)
        c = torch.tensor([3., 4.])
        f = lambda x: (c.add_(1) * x).sum()
        for transformed in (lambda: fn.vjp(f, x), lambda: fn.jacrev(f)(x), lambda: fn.jacfwd(f)(x), lambda: fn.hessian(f)(x),
                            lambda: fn.grad_and_value(f)(x), lambda: fn.vmap(fn.grad(f))(x.expand(2, 2)),
                            lambda: fn.grad(lambda x: fn.vmap(lambda y: c.add_(1) * y)(x).sum())(x)):
            raises(transformed)
            show(c)
    """,
    "allowed": """
        fn = torch.func
        x, c = torch.tensor([1., 2.]), torch.tensor([3., 4.])
        made = [
            lambda x: torch.zeros(2).add_(x), lambda x: x * torch.tensor([1., 1.]).add_(1), lambda x: x * torch.arange(2).add_(1),
            lambda x: x * c.clone().add_(1), lambda x: x * (c * 2).add_(1), lambda x: x * c.new_ones(2).add_(1),
            lambda x: x * torch.tensor(3.).expand(2).contiguous().add_(1), lambda x: x * torch.nn.Parameter(torch.ones(2)).detach().add_(1),
            lambda x: x * torch.ones(2)[0].add_(1), lambda x: x * torch.ones(4).split(2)[0].add_(1), lambda x: x * c.max(0)[0].add_(1),
            lambda x: x * torch.isclose(c, c).logical_not_(), lambda x: x * torch.zeros(2).data.add_(3), lambda x: x * c.double().add_(1).float(),
            lambda x: x.clone().mul_(2), lambda x: x * (c.data * 2).add_(1), lambda x: x * torch.ones_like(c).detach().add_(1),
        ]
        for f in made:
            show(fn.grad(lambda x: f(x).sum())(x), fn.jvp(f, (x,), (x,)), fn.jacrev(f)(x), fn.jacfwd(f)(x))
        for f in made[1:]:
            show(fn.vmap(fn.grad(lambda x: f(x).sum()))(torch.stack([x, x])))
        show(c)
        show(fn.vmap(lambda x: c.add_(1) * x)(torch.stack([x, x])), c)
        show(torch.add(c, 1, out=c), fn.grad(lambda x: (torch.add(c, 1, out=c) * x).sum())(x), c)
    """,
    "arguments": """
        fn = torch.func
        new = lambda: torch.tensor([1., 2.])
        f = lambda x, b: (b.mul_(2) * x).sum()
        a = new(); show(fn.grad(f)(new(), a), a)
        a = new(); show(fn.grad(f)(new(), b=a), a)
        a = new(); show(fn.grad(lambda x, b: f(x, b[0]))(new(), [a]), a)
        a = new(); raises(lambda: fn.grad(f, argnums=(0, 1))(new(), a)); show(a)
        a = new(); show(fn.jvp(f, (new(), a), (new(), new())), a)
        a = new(); show(fn.grad(lambda x: torch.no_grad()(x.mul_)(2).sum())(a), a)
        a = new(); show(fn.grad(lambda x: (x.detach().mul_(2), x * x)[1].sum())(a), a)
        a = new(); raises(lambda: fn.grad(lambda x: x.mul_(2).sum())(a)); raises(lambda: fn.grad(lambda x: x[0].mul_(2))(a))
        show(a)
    """,
    "nested": """
        fn = torch.func
        x = torch.tensor([1., 2.])
        a = torch.tensor([1., 2.])
        raises(lambda: fn.grad(lambda x: fn.grad(lambda y: (x.mul_(2) * y).sum())(x * 1).sum())(x))
        show(fn.grad(lambda x: fn.grad(lambda y: ((x * 1).mul_(2) * y).sum())(x * 1).sum())(x))
        raises(lambda: fn.grad(lambda x: fn.grad(lambda y: (y.mul_(2) * y).sum())(a).sum() + x.sum())(x))
        def zeros_of_outer(x):
            z = torch.zeros(2)
            return fn.grad(lambda y: (z.mul_(2) * y).sum())(x * 1).sum()
        raises(lambda: fn.grad(zeros_of_outer)(x))
        raises(lambda: fn.vmap(zeros_of_outer)(torch.stack([x, x])))
        def gradient_of_inner(x):
            z = torch.zeros(2)
            g = fn.grad(lambda y: (y * y).sum())(x * 1)
            return z.add_(g).sum() + g.mul_(2).sum()
        show(fn.grad(gradient_of_inner)(x))
        def in_batch(x):
            z = torch.zeros(2)
            return fn.vmap(lambda y: z.add_(1) * y)(x).sum()
        show(fn.grad(in_batch)(x))
        show(fn.grad(lambda x: fn.vmap(lambda y: torch.zeros(2).add_(1) * y)(x).sum())(x))
        show(fn.grad(lambda x: fn.vmap(lambda y, b: b.mul_(y).sum())(x, a.expand(2, 2).clone()).sum())(x))
        b = torch.ones(2, 2)
        raises(lambda: fn.grad(lambda x: fn.vmap(lambda y, b: b.mul_(y).sum())(x, b).sum())(x))
        show(a, b)
    """,
    "modules": """
        fn = torch.func
        norm = torch.nn.BatchNorm1d(2)
        raises(lambda: fn.grad(lambda x: norm(x).sum())(torch.ones(3, 2)))
        raises(lambda: fn.grad(lambda p, x: fn.functional_call(norm, p, (x,)).sum())(dict(norm.named_parameters()), torch.ones(3, 2)))
        show(norm.num_batches_tracked)
        norm = torch.nn.BatchNorm1d(2)
        buffers = dict(norm.named_buffers())
        x = torch.tensor([[1., 2.], [3., 5.], [4., 4.]])
        def loss(p, b, x):
            return (fn.functional_call(norm, (p, b), (x,)) * x).sum(), b
        show(fn.grad(loss, has_aux=True)({k: v.detach() for k, v in norm.named_parameters()}, buffers, x))
        show(buffers)
        raises(lambda: torch.nn.functional.batch_norm(x, torch.ones(2), None, training=True))
        raises(lambda: torch.nn.functional.batch_norm(x, None, torch.ones(2), training=True))
    """,
    "leaves_made_inside": """
        fn = torch.func
        x = torch.tensor([1., 2.])
        show(fn.grad(lambda x: (x * torch.ones(2, requires_grad=True)).sum())(x))
        show(fn.vjp(lambda x: x * torch.ones(2, requires_grad=True), x)[0])
        show(fn.jacrev(lambda x: x * torch.ones(2, requires_grad=True))(x))
    """,
}

BATCHES = {
    "views_in_place": """
        fn = torch.func
        ops = [lambda v: v.t_(), lambda v: v.transpose_(0, 1), lambda v: v.swapaxes_(0, 1), lambda v: v.swapdims_(0, -1),
               lambda v: v.squeeze_(), lambda v: v.squeeze_(-1), lambda v: v.unsqueeze_(0), lambda v: v.unsqueeze_(-1)]
        for op in ops:
            a = torch.arange(1., 7.).reshape(2, 3, 1)
            show(fn.vmap(lambda v: op(v.clone()) * 2)(a), fn.grad(lambda a: fn.vmap(lambda v: op(v.clone()) ** 2)(a).sum())(a))
            show(fn.vmap(fn.grad(lambda v: (op(v.clone()) ** 2).sum()))(a))
            show(fn.jvp(lambda a: fn.vmap(lambda v: op(v.clone()) ** 2)(a), (a,), (a,)))
            show(fn.vmap(lambda v: op(v) * 1)(a), a, a.stride(), a._version)
            a = torch.arange(1., 7.).reshape(2, 3, 1)
            show(fn.vmap(lambda v: op(v).mul_(3))(a), a)
            a = torch.arange(1., 13.).reshape(2, 2, 3, 1)
            show(fn.vmap(fn.vmap(lambda v: op(v.clone()) * 1))(a), a.shape)
            c = torch.ones(2, 3)
            show(fn.vmap(lambda v: op(c[:, :]) * 1 + v.sum())(a), c.shape)
            raises(lambda: fn.vmap(lambda v: op(v))(torch.ones(2, 3, 1, requires_grad=True)))
    """,
}

FUNCTIONS = {
    "generated_rules": """
        fn = torch.func
        calls = []
        class C(torch.autograd.Function):
            generate_vmap_rule = True
            @staticmethod
            def forward(x, y, k):
                calls.append((tuple(x.shape), tuple(y.shape)))
                return x * y * k, x + y
            @staticmethod
            def setup_context(ctx, inputs, output):
                x, y, ctx.k = inputs
                ctx.save_for_backward(x, y, output[0])
            @staticmethod
            def backward(ctx, g, h):
                x, y, o = ctx.saved_tensors
                calls.append((tuple(x.shape), tuple(g.shape)))
                return g * y * ctx.k * 10 + h, g * x * ctx.k + h, None
        x, y = torch.arange(1., 7.).reshape(3, 2), torch.tensor([5., 7.])
        ys = torch.stack([y, y + 1, y + 2])
        f = lambda a, b: (C.apply(a, b, 2.)[0] ** 2).sum()
        for dims, a, b in (((0, None), x, y), ((None, 0), y, ys), ((0, 0), x, ys), ((1, 0), x.t(), ys), ((1, None), x.t(), y)):
            show(fn.vmap(lambda a, b: C.apply(a, b, 2.), in_dims=dims)(a, b))
            for argnum in (0, 1):
                show(fn.grad(lambda a, b: fn.vmap(f, in_dims=dims)(a, b).sum(), argnums=argnum)(a, b))
            show(fn.vmap(fn.grad(f, argnums=(0, 1)), in_dims=dims)(a, b))
            show(fn.grad(lambda a: fn.grad(lambda a: fn.vmap(f, in_dims=dims)(a, b).sum())(a).sum())(a))
            leaf = a.clone().requires_grad_()
            o = fn.vmap(lambda a, b: C.apply(a, b, 2.)[0], in_dims=dims)(leaf, b)
            o.sum().backward()
            show(o, leaf.grad)
        show(calls)
        nested = lambda x: fn.vmap(fn.vmap(lambda a, b: C.apply(a, b, 2.)[0], in_dims=(0, None)), in_dims=(None, 0))(x, ys)
        show(nested(x), fn.grad(lambda x: nested(x).sum())(x), fn.jacrev(lambda x: C.apply(x, x, 2.)[0])(y))
        class Whole(torch.autograd.Function):
            generate_vmap_rule = True
            @staticmethod
            def forward(x):
                return x.mul_(2)
            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.mark_dirty(inputs[0])
            @staticmethod
            def backward(ctx, g):
                return g * 2
        show(fn.vmap(lambda x: Whole.apply(x.clone()))(x), fn.grad(lambda x: fn.vmap(lambda x: Whole.apply(x.clone()))(x).sum())(x))
    """,
}

RULES = {
    "own_rules_in_place": """
        fn = torch.func
        class D(torch.autograd.Function):
            @staticmethod
            def forward(x):
                return x.mul_(2)
            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.mark_dirty(inputs[0])
            @staticmethod
            def backward(ctx, g):
                return g.mul_(2)
            @staticmethod
            def jvp(ctx, t):
                return t.mul_(2)
            @staticmethod
            def vmap(info, dims, x):
                return D.apply(x), dims[0]
        f = lambda x: D.apply(x * 1) ** 2
        x = torch.tensor([1., 2.])
        show(fn.grad(lambda x: f(x).sum())(x), fn.jvp(f, (x,), (x,)), fn.vmap(f)(x), fn.vmap(fn.grad(f))(x))
        show(fn.grad(lambda x: fn.vmap(f)(x).sum())(x), fn.grad(lambda x: fn.jvp(f, (x,), (x,))[1].sum())(x))
        show(fn.vmap(lambda x: fn.jvp(f, (x,), (x,)))(x), fn.jacfwd(f)(x), fn.jacrev(f)(x))
    """,
}

test_changes_within_transforms = program_test(RULES)

TANGENTS = {
    "tangents_of_their_own": """
        fa, fn = torch.autograd.forward_ad, torch.func
        makers = [
            lambda d: d + 1, lambda d: torch.zeros(3) + d, lambda d: torch.zeros(3).add_(d), lambda d: d - torch.ones(3), lambda d: d.clone(),
            lambda d: torch.zeros(3).copy_(d), lambda d: d.contiguous(), lambda d: torch.cat([d]), lambda d: d.detach() + d,
            lambda d: (lambda z: (z.__setitem__(slice(None), d), z)[1])(torch.zeros(3)), lambda d: torch.zeros(2, 3) + d, lambda d: d.relu(),
            lambda d: d.view(3), lambda d: d.repeat(1), lambda d: torch.stack([d])[0], lambda d: d.clamp(-10, 10), lambda d: d.to(torch.float32),
        ]
        changes = [lambda r: r.mul_(2), lambda r: r.zero_(), lambda r: r[:1].mul_(3), lambda r: r.copy_(torch.ones(3)), lambda r: r[1:].fill_(2.)]
        x, t = torch.tensor([1., 2., 3.]), torch.tensor([4., 5., 6.])
        for make in makers:
            for change in changes:
                def f(x):
                    x = x.clone()
                    r = make(x)
                    change(r)
                    return r, x
                show(fn.jvp(f, (x,), (t,)))
                with fa.dual_level():
                    d = fa.make_dual(x.clone(), t.clone())
                    r = make(d)
                    change(r)
                    show(fa.unpack_dual(d).tangent, fa.unpack_dual(r).tangent)
        show(t, fn.jvp(lambda x: (x * 2).detach_(), (x,), (t,)))
    """,
    "jvp_of_views_and_changes": """
        fa = torch.autograd.forward_ad
        def applied(forward, jvp, *others):
            class K(torch.autograd.Function):
                pass
            K.forward, K.jvp = staticmethod(forward), staticmethod(jvp)
            with fa.dual_level():
                d = fa.make_dual(torch.tensor([1., 2.]), torch.tensor([3., 4.])).clone()
                out = K.apply(d, *others)
                out = out if isinstance(out, tuple) else (out,)
                return [fa.unpack_dual(o).tangent for o in out if isinstance(o, torch.Tensor) and o.is_floating_point()], fa.unpack_dual(d).tangent
        def dirty(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)
        view, same, fresh = (lambda ctx, x: x.view(2)), (lambda ctx, x: x), (lambda ctx, x: x * 1)
        def constant(ctx, x):
            o = x * 1
            ctx.mark_non_differentiable(o)
            return o
        several = lambda ctx, x: (x * 1, x.long(), 3)
        halves = lambda ctx, x: (x[:1], x[1:])
        show(applied(dirty, lambda ctx, t: t.mul_(2)), applied(view, lambda ctx, t: t.view(2)), applied(same, lambda ctx, t: t.view_as(t)))
        show(applied(several, lambda ctx, t: (t, None, None)), applied(fresh, lambda ctx, t: t), applied(halves, lambda ctx, t: (t[:1], t[1:])))
        show(applied(constant, lambda ctx, t: None), applied(lambda ctx, x: (3, x * 1), lambda ctx, t: (None, t)))
        for forward, jvp in (
            (dirty, lambda ctx, t: t * 2), (dirty, lambda ctx, t: None), (dirty, lambda ctx, t: t), (dirty, lambda ctx, t: t.mul_(2).view(2)),
            (view, lambda ctx, t: t * 1), (view, lambda ctx, t: t), (same, lambda ctx, t: t * 1), (same, lambda ctx, t: t),
            (lambda ctx, x: x[:1], lambda ctx, t: torch.ones(2)[:1]), (halves, lambda ctx, t: (t[:1] * 1, t[1:] * 1)), (constant, lambda ctx, t: t),
            (several, lambda ctx, t: (t, None)), (several, lambda ctx, t: (t, t, None)), (fresh, lambda ctx, t: (t, t)), (fresh, lambda ctx, t: 3),
        ):
            raises(lambda: applied(forward, jvp))
        with fa.dual_level():
            d = fa.make_dual(torch.ones(2), torch.ones(2))
            raises(lambda: torch.zeros(2).set_(d))
    """,
}

test_tangents = program_test(TANGENTS, "tangents_of_their_own")
test_functions = program_test(FUNCTIONS)
test_batches = program_test(BATCHES)
test_captured = program_test(CAPTURED)


FUNCTIONALIZED = {
    "composed": """
        fn = torch.func
        new = lambda: torch.tensor([[1., 2.], [3., 4.]])
        def fill(x):
            z = torch.zeros(2)
            z[0] = x[1]
            return z
        def chain(x):
            z = torch.ones(3, 2)
            z[1:3].mul_(x)
            z.t()[0].add_(x[0])
            return z
        for remove in ('mutations', 'mutations_and_views'):
            F = lambda f: fn.functionalize(f, remove=remove)
            show(fn.vmap(F(lambda x: torch.zeros(2).add_(x)))(new()), fn.vmap(F(fill))(new()), fn.vmap(F(chain))(new()))
            show(fn.vmap(fn.vmap(F(lambda x: torch.zeros(()).add_(x))))(new()))
            show(fn.vmap(fn.grad(F(lambda x: (torch.zeros(2).add_(x) ** 2).sum())))(new()))
            show(fn.jacrev(F(chain))(torch.tensor([1., 2.])), fn.jacfwd(F(chain))(torch.tensor([1., 2.])))
            show(fn.grad(F(lambda x: x.clone().mul_(x).sum()))(new()), F(fn.grad(lambda x: x.clone().mul_(x).sum()))(new()))
            show(F(fn.vmap(lambda x: x.clone().mul_(x)))(new()), F(lambda x, n: {'a': [x.clone().add_(n), 3]})(new(), 2))
            a = new(); show(fn.vmap(F(lambda x: x.mul_(x)))(a), a)
        c = new()
        raises(lambda: fn.vmap(lambda x: torch.zeros(2).mul_(x))(new()))
        raises(lambda: fn.functionalize(lambda x: x, remove='all'))
    """,
    "aliasing": """
        fn = torch.func
        new = lambda: torch.tensor([[1., 2.], [3., 4.]])
        for remove in ('mutations', 'mutations_and_views'):
            F = lambda f: fn.functionalize(f, remove=remove)
            a = new(); r = F(lambda x: x.add_(1))(a); show(r, a, r is a, r.data_ptr() == a.data_ptr(), r._is_view(), a._version)
            a = new(); r = F(lambda x: x)(a); show(r is a)
            a = new(); r = F(lambda x: x.view(-1))(a); show(r._is_view(), r.data_ptr() == a.data_ptr())
            a = new(); r = F(lambda x: (x.add_(1), x[0]))(a); show(r, r[1].data_ptr() == a.data_ptr())
            show(F(lambda x: x.unsqueeze_(0))(a), a, F(lambda x: torch.add(x, 1, out=torch.empty(0)))(a))
            b = new().requires_grad_() * 2; show(F(lambda x: x.mul_(3).sum())(b).requires_grad, b.requires_grad, b.detach())
            raises(lambda: F(lambda x: x.mul_(3))(new().requires_grad_()))
            raises(lambda: F(lambda x: (x * x).sum().backward())(new().requires_grad_()))
            raises(lambda: F(lambda x: x.clone().requires_grad_())(new()))
            show(F(lambda: torch.zeros(2).add_(1))(), F(lambda x: None)(a), F(lambda x: x.sum().item())(a))
    """,
}

test_functionalize = program_test(FUNCTIONALIZED)
