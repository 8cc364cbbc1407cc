"""Compositions of function transforms, also with in-place changes and modes: values and errors."""
# ruff: noqa: E501

from textwrap import dedent

import pytest

torch = pytest.importorskip("torch")

from tests.parity.programs import program_test

SETUP = """
    fn, F, AF, fwAD = torch.func, torch.nn.functional, torch.autograd.functional, torch.autograd.forward_ad
    x, t = torch.tensor([0.5, -1.5, 2.5]), torch.tensor([1., 2., -3.])
    xs = torch.stack([x, x * 2, t])
"""

COMPOSED = {
    "tangents_of_examples": """
        f = lambda x, y: F.hinge_embedding_loss(x, y, reduction='none', margin=0.5)
        show(fn.vmap(lambda a: fn.jvp(f, (a, x), (t, t)))(xs))
        show(fn.vmap(lambda a: fn.jvp(f, (x, t), (a, t)))(xs))
        show(fn.vmap(lambda y: fn.jvp(lambda x, v: fn.vjp(lambda x: f(x, y), x)[1](v), (x, t), (t, x)))(xs))
        show(fn.vmap(lambda a: fn.jvp(lambda a: F.margin_ranking_loss(a, t, x.sign()), (a,), (t,)))(xs))
        m = torch.arange(24.).reshape(2, 3, 4).permute(2, 0, 1)
        show(fn.vmap(lambda v: fn.jvp(lambda m: torch.cat([m], 1), (m,), (v,)))(torch.stack([m.contiguous(), m * 2])))
        def change(a, b):
            c = a.clone()
            v = c[1:]
            v.mul_(b[1:])
            c[0] = b[0]
            return c, v
        show(fn.vmap(lambda a: fn.jvp(lambda a: change(a, t), (x,), (a,)))(xs))
    """,
    "pooling_of_rows_in_forward_mode": """
        rows = torch.tensor([[[1., 5., 2., 4.], [3., 2., 8., 1.]]])
        show(fn.jvp(lambda r: F.max_pool1d(r, 2), (rows,), (rows * 10,)))
        show(fn.vmap(lambda r: fn.jvp(lambda r: F.max_pool1d(r, 2), (r,), (r * 10,)))(rows))
    """,
    "elements_written_by_masks_of_examples": """
        m = xs > 0
        f = lambda x, m, s: x.masked_scatter(m, s)
        show(fn.vmap(f)(xs, m, xs * 10))
        show(fn.vmap(lambda x, m, s: fn.vjp(lambda x, s: f(x, m, s), x, s)[1](t))(xs, m, xs * 10))
        show(fn.vmap(lambda x, m, s: fn.jvp(lambda x, s: f(x, m, s), (x, s), (s, x)))(xs, m, xs * 10))
        show(fn.grad(lambda s: fn.grad(lambda x: (f(x, m[0], s) ** 3).sum())(s).sum())(x))
    """,
    "indices_apart": """
        y = torch.arange(48.).reshape(2, 2, 2, 3, 2)
        show(fn.vmap(lambda y: y[:, [0, 1], :, [0, 1]])(y))
        show(fn.vmap(lambda y: y[:, [[0], [1]], :, [0, 1]], in_dims=2)(y))
        show(fn.vmap(fn.grad(lambda y: (y[:, [0, 1], :, [0, 1]] ** 2).sum()))(y))
    """,
    "sums_and_distances_at_once": """
        a, b = torch.arange(12.).reshape(2, 3, 2).sin(), torch.arange(12.).reshape(2, 3, 2).cos()
        for p in (1., 2., 3.):
            show(fn.vmap(lambda a: F.pdist(a, p))(a), fn.vmap(lambda a, b: torch.dist(a, b, p), (0, None))(a, b[0]))
            show(fn.grad(lambda a: fn.vmap(lambda a: F.pdist(a, p).sum())(a).sum())(a))
        show(fn.vmap(lambda m, v, w: torch.addr(m, v, w, beta=2, alpha=3))(a, xs[:2], b[:, 0]))
        show(fn.vmap(lambda m, v, w: torch.addr(m, v, w), (None, 0, None))(b[0, 0], xs, t[:2]))
        show(fn.vmap(lambda m, v: torch.addbmm(m, v, v), (0, None))(torch.ones(2, 2, 2), torch.arange(8.).reshape(2, 2, 2)))
        i = torch.tensor([[0, 3], [-1, 2]])
        show(fn.vmap(lambda a, i, s: a.put(i, s))(a, i, b[:, 0]), fn.vmap(lambda i: a[0].put(i, t[:2], True))(i))
        s = xs.sort().values
        show(fn.vmap(lambda s, v: torch.searchsorted(s, v))(s, xs), fn.vmap(lambda v: torch.searchsorted(s[0], v))(xs))
        show(fn.vmap(lambda s, v: torch.searchsorted(s, v), (0, None))(s, torch.tensor(1.)))
        show(fn.vmap(lambda v, s: torch.bucketize(v, s, right=True))(xs, s))
        show(fn.vmap(lambda r: torch.repeat_interleave(x, r))(torch.tensor([[1, 2, 0], [0, 0, 3]])))
        show(fn.vmap(lambda a, b: torch.linspace(a, b, 4))(x, t))
        show(fn.jvp(fn.vmap(torch.aminmax), (xs,), (xs * 2,)))
    """,
    "statistics_that_all_examples_share": """
        mean, var, y = torch.zeros(3), torch.ones(3), xs.clone()
        show(fn.vmap(lambda b: F.batch_norm(y, mean, var, None, b, True))(xs))
        show(mean, var)
        raises(lambda: fn.vmap(lambda y: F.batch_norm(y, mean, var, None, None, True))(torch.stack([xs, xs])))
    """,
    "numbers_that_all_examples_share": """
        show(fn.vmap(lambda a: fn.grad(lambda b: b * 2 if b > 0 else b * 3)(x[0]) * a)(xs))
        show(fn.vmap(lambda a: fn.grad(lambda b: b * b.item())(x[1]) * a)(xs))
    """,
    "no_grad_outside_of_vjp_only": """
        y = torch.tensor(0.5, requires_grad=True)
        def f(x):
            with torch.no_grad():
                value, pull = fn.vjp(torch.sin, x)
            return value, pull(x)[0]
        value, pulled = f(y)
        show(value, pulled.requires_grad, torch.autograd.grad(pulled, y))
        show(fn.grad(lambda x: f(x)[1])(torch.tensor(0.5)))
        with torch.no_grad():
            show(fn.grad(torch.sin)(y), fn.vjp(torch.sin, y)[0])
    """,
    "forward_mode_in_modes": """
        with torch.inference_mode():
            show(fn.jvp(torch.sin, (x.clone(),), (t.clone(),)))
        with fwAD._set_fwd_grad_enabled(False):
            show(fn.jvp(torch.sin, (x,), (t,)))
        with fwAD.dual_level():
            d = fwAD.make_dual(x, t)
            with fwAD._set_fwd_grad_enabled(False):
                show(fwAD.unpack_dual(d))
            raises(lambda: fwAD.make_dual(x, d))
            raises(lambda: fwAD.exit_dual_level(level=3))
        raises(lambda: fwAD.exit_dual_level(level=0))
        raises(lambda: fwAD.exit_dual_level())
    """,
    "tangents_of_functions": """
        class Product(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y, z):
                ctx.save_for_forward(x, y)
                return x * y
            @staticmethod
            def jvp(ctx, a, b, c):
                show(a, b, c)
                x, y = ctx.saved_tensors
                return a * y + x * b
        with fwAD.dual_level():
            d = fwAD.make_dual(x, t)
            show(fwAD.unpack_dual(Product.apply(d, t, 3)), fwAD.unpack_dual(Product.apply(t, d, x > 0)))
    """,
    "checkpoints": """
        from importlib import import_module
        checkpoint = import_module(torch.__name__ + '.utils.checkpoint').checkpoint
        f = lambda x: checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False)
        show(fn.vmap(f)(x), fn.jvp(f, (x,), (t,)))
    """,
    "randomness_of_chunks": """
        r = fn.vmap(lambda x: torch.rand(2), randomness='same', chunk_size=2)(torch.zeros(4))
        show(bool((r == r[0]).all()))
        r = fn.vmap(lambda x: torch.rand(2), randomness='different', chunk_size=2)(torch.zeros(4))
        show(bool((r[0] == r[2]).all()))
    """,
    "complex_views_changed_in_place": """
        y = torch.arange(6.).reshape(3, 2).requires_grad_()
        z = y.clone()
        c = torch.view_as_complex(z)
        c.mul_(1j)
        show(torch.autograd.grad(z.pow(2).sum() + c.abs().sum(), y))
        def f(y):
            z = y.clone()
            c = torch.view_as_complex(z.view(-1)[2:].view(2, 2))
            c.mul_(2 + 1j)
            return (z ** 3).sum() + c.abs().sum()
        show(fn.grad(f)(y.detach()), fn.jvp(f, (y.detach(),), (y.detach() * 2,)))
        show(torch.autograd.functional.hessian(f, y.detach()))
    """,
    "derivatives_at_the_edge": """
        zero = torch.tensor([0., 1.])
        for f in (torch.special.i1, torch.special.i1e):
            show(fn.vmap(fn.grad(f))(zero), fn.vmap(fn.grad(fn.grad(f)))(zero))
        pulled = lambda f: lambda v: fn.vjp(f, v)[1](torch.ones(()))[0]
        for p in (1.5, 2., 3., 4.):
            f = lambda v: torch.linalg.vector_norm(v, p)
            show(fn.jvp(f, (torch.zeros(3),), (t,)), fn.jvp(pulled(f), (torch.zeros(3),), (t,))[0])
        z = torch.zeros(2, dtype=torch.complex64)
        show(fn.jvp(torch.sgn, (z,), (z + 1j,)), fn.jvp(pulled(lambda z: z.abs().sum()), (z,), (z + 1j,)))
        inf = float('inf')
        for v in ([inf, 1.], [-inf, 1.], [-inf, -inf]):
            show(fn.vjp(lambda v: v.logsumexp(0), torch.tensor(v))[1](torch.tensor(1.)))
    """,
    "jacobians_by_columns": """
        by_columns = dict(vectorize=True, strategy='forward-mode')
        y = x.clone().requires_grad_()
        show(AF.jacobian(torch.sin, x, **by_columns), AF.jacobian(torch.sin, y, **by_columns).requires_grad)
        show(AF.jacobian(lambda a: (a ** 2, a.sum()), x, **by_columns))
        show(AF.jacobian(lambda a, b: a * b.sum(), (x, t), **by_columns))
        show(AF.jacobian(lambda a, b: (a * b.sum(), b), (x, t), **by_columns))
        show(AF.jacobian(lambda a: torch.ones(2), x, **by_columns))
        show(AF.hessian(lambda a, b: (a ** 3 * b).sum(), (x, t), vectorize=True, outer_jacobian_strategy='forward-mode')[0][1].detach())
    """,
    "vectors_that_do_not_fit": """
        for name, f in (('vjp', lambda a: a), ('jvp', lambda a: a), ('vhp', lambda a: a.sum()), ('hvp', lambda a: a.sum())):
            for v in (3, (x, x), x[:2], (x[:2],)):
                raises(lambda: getattr(AF, name)(f, x, v))
        raises(lambda: AF.jvp(lambda a, b: a, (x, x), (x,)))
        raises(lambda: AF.jvp(lambda a, b: a, (x, x), (x, x[:2])))
    """,
    "outputs_that_are_refused": """
        raises(lambda: fn.vjp(lambda x: x.long(), x))
        raises(lambda: fn.jacrev(lambda x: (x, x > 0))(x))
        raises(lambda: fn.vjp(torch.sin, x)[1](1.))
        raises(lambda: fn.vjp(torch.sin, x)[1]((x,)))
        raises(lambda: fn.vjp(lambda x: [x, {'a': x}], x)[1](x))
        raises(lambda: fn.grad(torch.sin, argnums=(0, -1))(x[0]))
        raises(lambda: fn.vmap(lambda a: setattr(a, 'data', x))(xs))
        from functools import partial
        raises(lambda: fn.vmap(partial(torch.mul, x), in_dims='a')(x))
    """,
    "modules_with_missing_names": """
        nn = torch.nn
        m = nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1))
        m[1].tied = m[0].bias
        given = {'0.bias': torch.ones(1), '0.weight': torch.ones(1, 1), '1.weight': torch.ones(1), '1.bias': torch.ones(1)}
        raises(lambda: fn.functional_call(m, given, torch.ones(2, 1), strict=True))
        show(fn.functional_call(m.eval(), {**given, **dict(m.named_buffers())}, torch.ones(2, 1), strict=True))
        raises(lambda: fn.functional_call(m, {'0.weight.a': x}, torch.ones(2, 1)))
    """,
    "wrappers": """
        C = torch._C._functorch
        def look(x):
            show(C.is_batchedtensor(x), C.is_gradtrackingtensor(x), C.is_functorch_wrapped_tensor(x))
            show(C.maybe_get_bdim(x), C.maybe_get_level(x), C.maybe_current_level(), repr(C.get_unwrapped(x)))
            return x.sum()
        fn.vmap(look)(xs)
        fn.grad(look)(x)
        fn.vmap(fn.grad(look), in_dims=1)(xs)
        fn.grad(lambda xs: fn.vmap(look)(xs).sum())(xs)
        fn.jvp(look, (x,), (t,))
        show(C.maybe_get_bdim(x), C.maybe_get_level(x), C.maybe_current_level(), C.is_functorch_wrapped_tensor(x))
        raises(lambda: C.get_unwrapped(x))
        fn.vmap(lambda x: (show(repr(x)), x)[1])(torch.zeros(2, 2, 2))
    """,
    "weights_of_losses": """
        y, w, p = t.sigmoid(), x.abs() + 0.5, t.abs()
        for f in (lambda w: F.binary_cross_entropy_with_logits(x, y, w), lambda w: F.binary_cross_entropy_with_logits(x, y, pos_weight=w, reduction='sum'), lambda w: F.binary_cross_entropy_with_logits(x, y, w, None, None, 'none', p).sum()):
            show(fn.grad(f)(w), fn.jvp(f, (w,), (t,)), fn.vmap(fn.grad(f))(xs.abs()), fn.hessian(f)(w))
        leaf = w.clone().requires_grad_()
        raises(lambda: F.binary_cross_entropy_with_logits(x, y, leaf))
    """,
    "running_statistics_captured": """
        i, j = torch.arange(24.).reshape(2, 3, 4).sin(), torch.arange(24.).reshape(2, 3, 4).cos()
        for f in (F.instance_norm, lambda i, m, v: F.batch_norm(i, m, v, training=True)):
            m, v = torch.zeros(3), torch.ones(3)
            show(fn.jvp(lambda i: f(i, m, v), (i,), (j,)), fn.grad(lambda i: f(i, m, v).sum())(i).shape, m, v)
            for dims in ((0, None, None), (0, 0, None), (None, 0, 0), (0, 0, 0)):
                given = [torch.stack([a, a * 2]) if dim == 0 else a.clone() for a, dim in zip((i, torch.zeros(3), torch.ones(3)), dims)]
                raises(lambda: show(fn.vmap(f, dims)(*given), *given[1:]))
            show(fn.vmap(lambda i, m: f(i, m, v), (None, 0))(i, torch.zeros(2, 3)))
    """,
    "changes_that_lack_a_batch_dimension": """
        b = torch.ones(4, 3)
        i = b.int()
        one, two = torch.ones(3), torch.ones(3, dtype=torch.int32)
        for name in ("add_", "sub_", "mul_", "div_", "atan2_", "copysign_", "copy_", "pow_", "maximum", "hypot_"):
            raises(lambda: fn.vmap(lambda b: getattr(torch.ones(3), name)(b))(b))
        for name in ("bitwise_and_", "bitwise_or_", "bitwise_xor_", "bitwise_left_shift_", "gcd_", "lcm_", "remainder_"):
            raises(lambda: fn.vmap(lambda i: getattr(torch.ones(3, dtype=torch.int32), name)(i))(i))
        raises(lambda: fn.vmap(lambda b: torch.ones(2, 3).add_(b))(b))
        index = torch.tensor([0])
        for f in (lambda b: one.index_add_(0, index, b[:1]), lambda b: one.index_fill_(0, index, b[0]), lambda b: one.scatter_add_(0, index, b), lambda b: one.clamp_(b), lambda b: one.masked_fill_(one > 0, b[0]), lambda b: one.masked_fill_(b > 0, 1)):
            raises(lambda: fn.vmap(f)(b))
        raises(lambda: fn.vmap(lambda b: b.is_contiguous(memory_format=torch.channels_last))(b))
    """,
    "tensors_that_are_plain_attributes": """
        class Plain(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(1, 1)
                self.scale = torch.ones(1)
            def forward(self, x): return self.layer(x) * 0 + self.scale
        model = Plain()
        show(fn.functional_call(model, {'scale': torch.ones(1) * 5}, torch.ones(1, 1)), model.scale)
        show(fn.grad(lambda s: fn.functional_call(model, {'scale': s}, torch.ones(1, 1)).sum())(torch.ones(1)))
        raises(lambda: fn.functional_call(model, {'scale': torch.ones(1)}, torch.ones(1, 1), strict=True))
        raises(lambda: fn.functional_call(model, {'other': torch.ones(1)}, torch.ones(1, 1)))
    """,
}

test_composed = program_test({name: dedent(SETUP) + dedent(program) for name, program in COMPOSED.items()})
