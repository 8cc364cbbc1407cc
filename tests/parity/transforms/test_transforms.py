"""`torch.func`, `torch.vmap` and `torch.autograd.forward_ad`: results, errors and messages, for single and composed transforms."""
# ruff: noqa: E501

import pytest

torch = pytest.importorskip("torch")

from tests.parity.programs import program_test

DERIVATIVES = {
    "grad_arguments": """
        fn = torch.func
        x, y = torch.tensor([1., 2.]), torch.tensor([3., 4.])
        f = lambda x, y: (x ** 2 * y).sum()
        show(fn.grad(f)(x, y), fn.grad(f, argnums=1)(x, y), fn.grad(f, argnums=(0, 1))(x, y), fn.grad(f, argnums=-1)(x, y))
        show(fn.grad(f, (1,))(x, y), fn.grad(f, argnums=(1, 0))(x, y), fn.grad(lambda x, *, y: (x * y).sum())(x, y=y))
        show(fn.grad(lambda x, y: (f(x, y), x * y), has_aux=True)(x, y))
        show(fn.grad(lambda x, y: (f(x, y), {'a': [x * y, 3]}), has_aux=True)(x, y))
        show(fn.grad_and_value(f)(x, y), fn.grad_and_value(f, argnums=(0, 1))(x, y))
        show(fn.grad_and_value(lambda x, y: (f(x, y), (x, 'text')), has_aux=True)(x, y))
    """,
    "grad_pytrees": """
        fn = torch.func
        p = {'w': torch.tensor([1., 2.]), 'b': [torch.tensor(3.), (torch.tensor([4.]),)]}
        f = lambda p, x: (p['w'] * x).sum() * p['b'][0] + p['b'][1][0].sum()
        x = torch.tensor([5., 6.])
        show(fn.grad(f)(p, x))
        show(fn.grad(f, argnums=(0, 1))(p, x))
        show(fn.grad_and_value(f)(p, x))
        v, pull = fn.vjp(f, p, x)
        show(v, pull(torch.tensor(2.)))
        show(fn.jvp(f, (p, x), (p, x)))
        out, pull = fn.vjp(lambda x: {'s': x.sin(), 'c': (x.cos(), x)}, x)
        show(out, pull({'s': x, 'c': (x, x)}))
        show(fn.jacrev(lambda p: {'r': p['a'] * p['b']})({'a': x, 'b': x * 2}))
        show(fn.jacfwd(lambda p: {'r': p['a'] * p['b']})({'a': x, 'b': x * 2}))
        show(fn.hessian(lambda p: (p['a'] ** 2 * p['b']).sum())({'a': x, 'b': x * 2}))
    """,
    "grad_errors": """
        fn = torch.func
        x = torch.tensor([1., 2.])
        raises(lambda: fn.grad(lambda x: x * 2)(x))
        raises(lambda: fn.grad(lambda x: 'text')(x))
        raises(lambda: fn.grad(lambda x: (x.sum(), x))(x))
        raises(lambda: fn.grad(lambda x: x.sum(), has_aux=True)(x))
        raises(lambda: fn.grad(lambda x: (x.sum(), 1, 2), has_aux=True)(x))
        raises(lambda: fn.grad(lambda x: x.sum())(torch.tensor([1, 2])))
        raises(lambda: fn.grad(lambda x: x.sum())(3.0))
        raises(lambda: fn.grad(lambda x: x.sum())([x, 3]))
        raises(lambda: fn.grad(lambda x: x.sum(), argnums=1)(x))
        raises(lambda: fn.grad(lambda x: x.sum(), argnums=-2)(x))
        raises(lambda: fn.grad(lambda x: x.sum(), argnums=())(x))
        raises(lambda: fn.grad(lambda x: x.sum(), argnums='0')(x))
        raises(lambda: fn.grad(lambda x: x.sum(), argnums=(0, 1.0))(x, x))
        raises(lambda: fn.grad(lambda x: x.sum())())
        raises(lambda: fn.grad(lambda x, y: x.sum(), argnums=(0, 0))(x, x))
        raises(lambda: fn.grad(lambda x: x.sum().long())(x))
        raises(lambda: fn.grad(lambda x: torch.tensor(3))(x))
        show(fn.grad(lambda x: torch.tensor(3.))(x))
        show(fn.grad(lambda x: x.sum().detach())(x))
        raises(lambda: fn.grad(lambda x: 1 / 0)(x))
        show(fn.grad(lambda x: (x * 0).sum() + x[0].item())(x))
    """,
    "vjp_arguments": """
        fn = torch.func
        x, y = torch.tensor([1., 2.]), torch.tensor([3., 4.])
        out, pull = fn.vjp(lambda x, y: (x * y, x + y), x, y)
        show(out, pull((x, y)), pull((x, y)))
        show(fn.vjp(lambda x: (x * 2, {'a': x}), x, has_aux=True)[2])
        show(fn.vjp(lambda x: [x, x * 2], x)[0])
        raises(lambda: pull(x))
        raises(lambda: pull([x, y]))
        raises(lambda: pull((x, y), 3))
        raises(lambda: pull(x, y))
        raises(lambda: fn.vjp(lambda x: 3, x))
        raises(lambda: fn.vjp(lambda x: (x, 3), x))
        raises(lambda: fn.vjp(lambda x: (), x))
        raises(lambda: fn.vjp(lambda x: None, x))
        raises(lambda: fn.vjp(lambda x: x, x, has_aux=True))
        raises(lambda: fn.vjp(lambda: x))
        raises(lambda: fn.vjp(lambda x: x, 3.))
        _, pull = fn.vjp(lambda x: x.sin(), x)
        raises(lambda: pull(torch.ones(3)))
        show(pull(torch.ones(2, dtype=torch.float64)))
        _, pull = fn.vjp(lambda x: torch.ones(2), x)
        show(pull(torch.ones(2)))
        _, pull = fn.vjp(lambda x: x, x)
        show(pull(torch.ones(2)))
        r = torch.tensor([1., 2.], requires_grad=True)
        o, pull = fn.vjp(lambda x: x * r, x)
        show(o.requires_grad, pull(x)[0].requires_grad)
        o, pull = fn.vjp(lambda x: x * x, r)
        show(o.requires_grad, pull(x)[0].requires_grad, torch.autograd.grad(pull(x)[0].sum(), r))
    """,
    "jvp_arguments": """
        fn = torch.func
        x, t = torch.tensor([1., 2.]), torch.tensor([3., 4.])
        show(fn.jvp(torch.sin, (x,), (t,)))
        show(fn.jvp(lambda x, y: (x * y, {'a': x}), (x, t), (t, x)))
        show(fn.jvp(lambda x: (x * 2, x + 1), (x,), (t,), has_aux=True))
        show(fn.jvp(lambda x: torch.ones(2), (x,), (t,)))
        raises(lambda: fn.jvp(lambda x: torch.ones(2), (x,), (t,), strict=True))
        raises(lambda: fn.jvp(torch.sin, x, (t,)))
        raises(lambda: fn.jvp(torch.sin, (x,), t))
        raises(lambda: fn.jvp(torch.sin, (x,), (t, t)))
        raises(lambda: fn.jvp(torch.sin, (), ()))
        raises(lambda: fn.jvp(torch.sin, (x,), (torch.ones(3),)))
        raises(lambda: fn.jvp(torch.sin, (x,), (3.,)))
        raises(lambda: fn.jvp(torch.sin, (3.,), (3.,)))
        raises(lambda: fn.jvp(torch.sin, (x,), (torch.ones(2, dtype=torch.long),)))
        raises(lambda: fn.jvp(lambda x: x * 2., (torch.ones(2, dtype=torch.long),), (t,)))
        raises(lambda: fn.jvp(lambda x: 3, (x,), (t,)))
        raises(lambda: fn.jvp(lambda x: (x, 3), (x,), (t,)))
        raises(lambda: fn.jvp(lambda x: (), (x,), (t,)))
        raises(lambda: fn.jvp(lambda x: x, (x,), (t,), has_aux=True))
        show(fn.jvp(lambda x: x.long(), (x,), (t,)))
        show(fn.jvp(lambda x: x, (x,), (t,)))
        raises(lambda: fn.jvp(torch.sin, (x,), (t.double(),)))
    """,
    "linearize": """
        fn = torch.func
        x, t = torch.tensor([1., 2.]), torch.tensor([3., 4.])
        out, push = fn.linearize(torch.sin, x)
        show(out, push(t), push(t * 2))
        out, push = fn.linearize(lambda x, y: (x * y, {'a': x}), x, t)
        show(out, push(t, x))
        out, push = fn.linearize(lambda p: p['a'] * p['b'][0], {'a': x, 'b': [t]})
        show(out, push({'a': t, 'b': [x]}))
        raises(lambda: push({'a': t, 'b': (x,)}))
        raises(lambda: push({'a': t}))
        out, push = fn.linearize(torch.sin, x)
        raises(lambda: push(torch.ones(3)))
        raises(lambda: push(torch.ones(2).double()))
        raises(lambda: push(t, t))
        show(fn.linearize(lambda x: (x.sin(), torch.ones(3)), x)[1](t))
        show(fn.linearize(lambda x: x, x)[1](t))
    """,
    "jacobians": """
        fn = torch.func
        x, y = torch.tensor([1., 2.]), torch.tensor([[3., 4.], [5., 6.]])
        f = lambda x, y: (y @ x, {'s': (x * x).sum()})
        for jac in (fn.jacrev, fn.jacfwd):
            show(jac(f)(x, y), jac(f, argnums=1)(x, y), jac(f, argnums=(0, 1))(x, y))
            show(jac(lambda x: (x * 2, x + 3), has_aux=True)(x))
            show(jac(lambda x: ({'a': x * 2}, {'b': x + 3}), has_aux=True)(x))
            show(jac(lambda x: x.sum())(x), jac(lambda x: x * 2)(torch.tensor(3.)), jac(lambda x: x.expand(2, 2))(torch.tensor(3.)))
            show(jac(lambda x: torch.ones(2))(x))
            show(jac(lambda x: [x, x.sum()])(x))
            raises(lambda: jac(f, argnums=2)(x, y))
            raises(lambda: jac(f, argnums=())(x, y))
            raises(lambda: jac(f, argnums=(0, 0))(x, y))
            raises(lambda: jac(f, argnums='a')(x, y))
            raises(lambda: jac(lambda x: 3)(x))
            raises(lambda: jac(lambda x: (x, 3))(x))
            raises(lambda: jac(lambda x: x, has_aux=True)(x))
            raises(lambda: jac(lambda x: x.sin())(torch.tensor([1, 2])))
            raises(lambda: jac(lambda x: x.sin())(3.))
            raises(lambda: jac(lambda x: x.sin())())
            show(jac(lambda x: x.double())(x))
            show(jac(lambda p: p['a'] * 2, argnums=0)({'a': x}))
        for size in (1, 2, 3, 100):
            show(fn.jacrev(f, chunk_size=size)(x, y))
        raises(lambda: fn.jacrev(f, chunk_size=0))
        raises(lambda: fn.jacrev(f, chunk_size=-1))
        show(fn.jacrev(f, argnums=-1)(x, y))
        show(fn.hessian(lambda x: (x ** 3).sum())(x), fn.hessian(lambda x, y: (y @ x).prod(), argnums=(0, 1))(x, y))
        show(fn.hessian(lambda x, y: (y @ x).prod(), argnums=1)(x, y), fn.hessian(lambda x: x ** 3)(x))
        raises(lambda: fn.jacfwd(lambda x: x * torch.rand(()))(x))
        show(fn.jacfwd(lambda x: x * (torch.rand(()) * 0 + 2), randomness='same')(x))
        show(fn.jacrev(lambda x: torch.rand(2) * 0 + x * 2)(x))
        show(fn.jacrev(lambda x: x * 2, _preallocate_and_copy=True, chunk_size=1)(x))
    """,
    "jacobian_complex": """
        fn = torch.func
        z = torch.tensor([1 + 2j, 3 - 1j])
        show(fn.grad(lambda z: z.abs().sum())(z), fn.grad(lambda z: (z * z.conj()).real.sum())(z))
        show(fn.vjp(lambda z: z * z, z)[1](z), fn.jvp(lambda z: z * z, (z,), (z,)))
        raises(lambda: fn.grad(lambda z: (z * z).sum())(z))
        show(fn.jacrev(lambda z: z.exp())(z))
        show(fn.jacfwd(lambda z: z.exp())(z))
        show(fn.vmap(lambda z: (z * z).real)(z), fn.vmap(fn.grad(lambda z: z.abs()))(z))
    """,
    "requires_grad_and_leaves_inside": """
        fn = torch.func
        seen = []
        def f(x):
            seen.append((x.requires_grad, x.is_leaf, x.grad_fn is None, (x * 2).requires_grad))
            return x.sum()
        x = torch.tensor([1., 2.])
        fn.grad(f)(x)
        fn.vjp(f, x)
        fn.jvp(f, (x,), (x,))
        fn.vmap(f)(x[None])
        fn.vmap(fn.grad(f))(x[None])
        fn.grad(lambda x: fn.vmap(f)(x[None]).sum())(x)
        r = torch.tensor([1., 2.], requires_grad=True)
        fn.vmap(f)(r[None])
        show(seen)
        raises(lambda: fn.grad(lambda x: x.requires_grad_().sum())(x))
        raises(lambda: fn.vmap(lambda x: x.requires_grad_())(x))
        raises(lambda: fn.grad(lambda x: (x * torch.ones(2).requires_grad_()).sum())(x))
        raises(lambda: fn.grad(lambda x: x.sum().backward())(x))
        raises(lambda: fn.grad(lambda x: torch.autograd.grad(x.sum(), x)[0].sum())(x))
        raises(lambda: fn.grad(lambda x: x.retain_grad())(x))
    """,
    "closures": """
        fn = torch.func
        w = torch.tensor([1., 2.], requires_grad=True)
        x = torch.tensor([3., 4.])
        g = fn.grad(lambda x: (w * x ** 2).sum())(x)
        show(g.requires_grad, torch.autograd.grad(g.sum(), w))
        g, v = fn.grad_and_value(lambda x: (w * x ** 2).sum())(x)
        show(g.requires_grad, v.requires_grad, torch.autograd.grad(v, w))
        o, t = fn.jvp(lambda x: w * x ** 2, (x,), (x,))
        show(torch.autograd.grad(o.sum() + t.sum(), w))
        o = fn.vmap(lambda x: w * x ** 2)(x)
        show(o.requires_grad, torch.autograd.grad(o.sum(), w))
        o = fn.vmap(fn.grad(lambda x: (w * x ** 2).sum()))(x[:, None])
        show(o.requires_grad, torch.autograd.grad(o.sum(), w))
        for jac in (fn.jacrev, fn.jacfwd, fn.hessian):
            j = jac(lambda x: (w * x ** 3).sum())(x)
            show(j.requires_grad, torch.autograd.grad(j.sum(), w))
        o, push = fn.linearize(lambda x: x ** 2, x)
        show(o.requires_grad, push(x).requires_grad)
        g = fn.grad(lambda w: (w ** 2).sum())(w)
        show(g.requires_grad, torch.autograd.grad(g.sum(), w))
        with torch.no_grad():
            g = fn.grad(lambda w: (w ** 2).sum())(w)
            show(g, g.requires_grad)
            show(fn.grad(lambda x: (w * x ** 2).sum())(x).requires_grad)
            show(fn.vjp(lambda w: w ** 2, w)[1](x))
            show(fn.jvp(lambda w: w ** 2, (w,), (x,)))
            show(fn.vmap(lambda w: w ** 2)(w))
    """,
    "no_grad_inside": """
        fn = torch.func
        x = torch.tensor([1., 2.])
        def f(x):
            with torch.no_grad():
                c = x ** 2
            return (x * c).sum()
        show(fn.grad(f)(x), fn.grad(lambda x: f(x).sin())(x))
        def g(x):
            with torch.no_grad():
                return fn.grad(lambda y: (y ** 3).sum())(x).sum()
        show(fn.grad(g)(x))
        def h(x):
            with torch.no_grad():
                d = fn.grad(lambda y: (y ** 3).sum())(x)
            return (d * x).sum()
        show(fn.grad(h)(x))
        def k(x):
            with torch.no_grad():
                o, t = fn.jvp(lambda y: y ** 3, (x,), (x,))
            return (t * x).sum()
        show(fn.grad(k)(x))
        def m(x):
            with torch.no_grad():
                o = fn.vmap(lambda y: y ** 3)(x)
            return (o * x).sum()
        show(fn.grad(m)(x))
        show(fn.grad(torch.no_grad()(lambda x: x.sum()))(x))
        with torch.inference_mode():
            raises(lambda: fn.grad(lambda x: (x ** 2).sum())(x))
        def jv(x):
            with torch.no_grad():
                return x ** 2
        show(fn.jvp(jv, (x,), (x,)))
        show(fn.jacrev(jv)(x), fn.jacfwd(jv)(x))
        show(torch.is_grad_enabled())
    """,
    "detach_inside": """
        fn = torch.func
        x = torch.tensor([1., 2.])
        show(fn.grad(lambda x: (x.detach() * x).sum())(x))
        show(fn.jvp(lambda x: x.detach() * x, (x,), (x,)))
        show(fn.grad(lambda x: fn.grad(lambda y: (y * x.detach() * x).sum())(x).sum())(x))
        show(fn.grad(lambda x: fn.grad(lambda y: (y ** 2 * x).sum())(x.detach()).sum())(x))
        show(fn.grad(lambda x: fn.grad(lambda y: (y.detach() * y * x).sum())(x).sum())(x))
        show(fn.jvp(lambda x: fn.jvp(lambda y: y.detach() * y * x, (x,), (x,))[1], (x,), (x,)))
        show(fn.vmap(fn.grad(lambda x: x.detach() * x))(x))
        show(fn.hessian(lambda x: (x.detach() * x ** 2).sum())(x))
    """,
    "in_place_and_views": """
        fn = torch.func
        x = torch.tensor([1., 2., 3.])
        def f(x):
            y = x.clone()
            y[1] = 5 * x[0]
            y[1:].mul_(x[:-1])
            y += 1
            return (y * y).sum()
        show(fn.grad(f)(x), fn.vjp(f, x)[1](torch.tensor(1.)), fn.jvp(f, (x,), (x,)), fn.hessian(f)(x))
        show(fn.jacrev(f)(x), fn.jacfwd(f)(x), fn.vmap(f)(x.expand(2, 3)), fn.vmap(fn.grad(f))(torch.stack([x, x * 2])))
        def g(x):
            x.mul_(2)
            return x.sum()
        a = x.clone()
        raises(lambda: fn.grad(g)(a))
        show(a)
        a = x.clone()
        raises(lambda: fn.jvp(g, (a,), (x,)))
        show(a)
        a = x.clone()
        show(fn.vmap(lambda x: x.mul_(2))(a), a)
        def h(x):
            y = torch.zeros(3)
            y.copy_(x)
            return (y ** 2).sum()
        show(fn.grad(h)(x), fn.jvp(h, (x,), (x,)))
        raises(lambda: fn.vmap(h)(x.expand(2, 3)))
        def k(x):
            y = torch.zeros_like(x)
            y[0] = x[0] ** 2
            return y
        show(fn.jacrev(k)(x), fn.jacfwd(k)(x), fn.vmap(k)(torch.stack([x, x * 2])))
        def n(x):
            y = x.view(3, 1).expand(3, 2)
            return (y.t() * y.t()).sum()
        show(fn.grad(n)(x), fn.vmap(fn.grad(n))(torch.stack([x, x])), fn.hessian(n)(x))
        def s(x):
            y = x * 1
            a, b, c = y.unbind()
            return a * b * c
        show(fn.grad(s)(x), fn.hessian(s)(x), fn.vmap(fn.hessian(s))(torch.stack([x, x])))
    """,
}

test_derivatives = program_test(DERIVATIVES)


BATCHES = {
    "vmap_arguments": """
        fn = torch.func
        x, y = torch.arange(6.).reshape(2, 3), torch.arange(6.).reshape(3, 2)
        show(fn.vmap(torch.mul)(x, x), fn.vmap(torch.mul, in_dims=(0, 1))(x, y), fn.vmap(torch.mul, in_dims=(0, None))(x, y[:, 0]))
        show(fn.vmap(torch.mul, in_dims=(-1, 0))(x, y), fn.vmap(torch.mul, in_dims=(0, -1), out_dims=1)(x, y), fn.vmap(torch.mul, out_dims=-1)(x, x))
        show(fn.vmap(lambda x: (x, {'a': x.sum(), 'b': [x * 2]}))(x))
        show(fn.vmap(lambda x: (x, x.sum()), out_dims=(1, 0))(x), fn.vmap(lambda x: (x, [x, x]), out_dims=(1, 0))(x))
        show(fn.vmap(lambda p: p['a'] * p['b'][0])({'a': x, 'b': (x,)}))
        show(fn.vmap(lambda p: p['a'] * p['b'], in_dims=({'a': 0, 'b': None},))({'a': x, 'b': x[0]}))
        show(fn.vmap(lambda p, q: p[0] * p[1] * q, in_dims=((0, 1), None))((x, y), torch.tensor(2.)))
        show(fn.vmap(lambda p, q: p[0] * p[1] * q, in_dims=([0, 1], 0))([x, y], x))
        show(fn.vmap(lambda x, k: x * k, in_dims=(0, None))(x, 3), fn.vmap(lambda x, k=None: x * k)(x, k=torch.ones(3)))
        show(fn.vmap(lambda x: torch.ones(3))(x))
        show(fn.vmap(lambda x: (x.sum(), 5), out_dims=(0, None))(x), fn.vmap(lambda x: torch.ones(2), out_dims=None)(x))
        show(torch.vmap(torch.sum)(x), torch.vmap is fn.vmap)
        show(fn.vmap(lambda x: torch.max(x, 0))(x), fn.vmap(lambda x: x.sort(descending=True))(x))
        show(fn.vmap(lambda x: x.dim(), out_dims=None)(x), fn.vmap(lambda x: x.numel(), out_dims=None)(x))
        for size in (1, 2, 3, 7):
            show(fn.vmap(lambda x, y: (x + y, [x]), in_dims=(1, None), chunk_size=size)(x, torch.tensor([1., 2.])))
            show(fn.vmap(lambda x: x * 2, in_dims=1, out_dims=1, chunk_size=size)(x))
    """,
    "vmap_errors": """
        fn = torch.func
        x, y = torch.arange(6.).reshape(2, 3), torch.arange(6.).reshape(3, 2)
        raises(lambda: fn.vmap(torch.mul)(x, y))
        raises(lambda: fn.vmap(lambda: x)())
        raises(lambda: fn.vmap(lambda x: x, in_dims=None)(x))
        raises(lambda: fn.vmap(lambda x, y: x, in_dims=(None, None))(x, y))
        raises(lambda: fn.vmap(lambda x: x, in_dims=2)(x))
        raises(lambda: fn.vmap(lambda x: x, in_dims=-3)(x))
        raises(lambda: fn.vmap(lambda x: x)(torch.tensor(3.)))
        raises(lambda: fn.vmap(lambda x: x)(3.))
        raises(lambda: fn.vmap(lambda x, y: x)(x, 3))
        raises(lambda: fn.vmap(lambda x: x, in_dims=1.0)(x))
        raises(lambda: fn.vmap(lambda x: x, in_dims=[0])(x))
        raises(lambda: fn.vmap(lambda x: x, in_dims=(0, 0))(x))
        raises(lambda: fn.vmap(lambda x: x[0], in_dims=((0, 0),))([x]))
        raises(lambda: fn.vmap(lambda x: x[0], in_dims=({'a': 0},))([x]))
        raises(lambda: fn.vmap(lambda x: x, in_dims=('a',))(x))
        raises(lambda: fn.vmap(lambda x: x, out_dims=3)(x))
        raises(lambda: fn.vmap(lambda x: x, out_dims=(0, 0))(x))
        raises(lambda: fn.vmap(lambda x: (x, x), out_dims=(0,))(x))
        raises(lambda: fn.vmap(lambda x: x, out_dims='a')(x))
        raises(lambda: fn.vmap(lambda x: x, out_dims=1.5)(x))
        raises(lambda: fn.vmap(lambda x: x, out_dims=None)(x))
        raises(lambda: fn.vmap(lambda x: 3)(x))
        raises(lambda: fn.vmap(lambda x: None)(x))
        raises(lambda: fn.vmap(lambda x: (x, 3))(x))
        raises(lambda: fn.vmap(lambda x: (x, 'text'))(x))
        raises(lambda: fn.vmap(lambda x: x, randomness='other'))
        raises(lambda: fn.vmap(lambda x: x, randomness='other')(x))
        raises(lambda: fn.vmap(lambda x: x, chunk_size=0))
        raises(lambda: fn.vmap(lambda x: x, chunk_size=-1)(x))
        raises(lambda: fn.vmap(3))
        raises(lambda: fn.vmap(lambda x: 1 / 0)(x))
        show(fn.vmap(lambda x: x)(x))
        raises(lambda: fn.vmap(fn.vmap(lambda x: x))(torch.ones(2)))
        raises(lambda: fn.vmap(lambda x: x @ x)(x))
    """,
    "refused_of_examples": """
        fn = torch.func
        x = torch.arange(6.).reshape(2, 3)
        for f in (lambda x: x.item(), lambda x: float(x), lambda x: int(x), lambda x: bool(x), lambda x: x if x > 0 else -x,
                  lambda x: x.tolist(), lambda x: x.numpy(), lambda x: x.data_ptr(), lambda x: x.nonzero(), lambda x: x.is_nonzero(),
                  lambda x: torch.allclose(x, x), lambda x: torch.equal(x, x), lambda x: torch.where(x > 0)):
            raises(lambda: fn.vmap(f)(torch.arange(3.)))
        raises(lambda: fn.vmap(lambda x: x[x > 1])(x))
        raises(lambda: fn.vmap(lambda x: torch.masked_select(x, x > 1))(x))
        raises(lambda: fn.vmap(lambda x: torch.unique(x))(x))
        raises(lambda: fn.vmap(lambda x: torch.unique_consecutive(x))(x))
        raises(lambda: fn.vmap(lambda x: torch.add(x, 1, out=torch.empty(3)))(x))
        z = torch.zeros(3)
        for name in ('mul_', 'sub_', 'div_', 'copy_', 'pow_', 'fmod_', 'logical_and_', 'clamp_min_'):
            raises(lambda: fn.vmap(lambda x: getattr(z, name)(x))(x))
        raises(lambda: fn.vmap(lambda x: z.fill_(x[0]))(x))
        raises(lambda: fn.vmap(lambda x: z.masked_fill_(x > 0, 1.))(x))
        raises(lambda: fn.vmap(lambda x: z.index_put_((torch.tensor([0]),), x[:1]))(x))
        def assign(x):
            z[0] = x[0]
            return z
        raises(lambda: fn.vmap(assign)(x))
        show(z)
        import copy
        raises(lambda: fn.vmap(lambda x: copy.deepcopy(x))(x))
        raises(lambda: fn.vmap(lambda x: x.storage())(x))
    """,
    "shapes_and_types": """
        fn = torch.func
        for shape in ((0, 3), (3, 0), (1, 2), (4,), (2, 1, 3)):
            for dtype in (torch.float64, torch.float32, torch.int64, torch.bool, torch.complex64):
                x = torch.ones(shape).to(dtype)
                show(fn.vmap(lambda x: x * 2)(x), fn.vmap(lambda x: x.sum())(x), fn.vmap(lambda x: x.expand(2, *x.shape))(x))
                show(fn.vmap(lambda x: x.reshape(-1))(x), fn.vmap(lambda x: torch.stack([x, x]))(x), fn.vmap(lambda x: x + 1.5)(x))
        x = torch.arange(24.).reshape(2, 3, 4)
        for d in (0, 1, 2, -1):
            f = lambda x: (x.t() @ x, x.mean(0), x.cumsum(1), x.transpose(0, 1), x[0], x[:, 1], x[..., None], x.flip(0), x.view(x.shape))
            show(fn.vmap(f, in_dims=d)(x), fn.vmap(f, in_dims=d, out_dims=-1)(x) if d == 0 else None)
        i = torch.tensor([1, 2, 3])
        show(fn.vmap(lambda a, b: a * b)(i, i.double()), fn.vmap(lambda a, b: a + b)(i, torch.ones(3, dtype=torch.float32)))
        show(fn.vmap(lambda a, b: a / b)(i, i), fn.vmap(lambda a: a ** 2)(i), fn.vmap(lambda a: 2 ** a)(i), fn.vmap(lambda a: 2. ** a)(i))
        show(fn.vmap(lambda a, b: a + b, in_dims=(0, None))(torch.ones(3), torch.ones(2, dtype=torch.float64)))
        show(fn.vmap(lambda a, b: a + b, in_dims=(0, None))(torch.ones(3, dtype=torch.float64), torch.ones(2)))
        show(fn.vmap(lambda a, b: torch.where(a > 1, a, b))(i.float(), torch.zeros(3, dtype=torch.float64)))
    """,
    "indexing": """
        fn = torch.func
        x = torch.arange(24.).reshape(2, 3, 4)
        i, j = torch.tensor([0, 2]), torch.tensor([[1, 2], [0, 1]])
        show(fn.vmap(lambda x, i: x[i])(x, i), fn.vmap(lambda x, i: x[:, i])(x, i), fn.vmap(lambda x, i: x[i, i])(x, i))
        show(fn.vmap(lambda x, j: x[j])(x, j), fn.vmap(lambda x, j: x[:, j])(x, j), fn.vmap(lambda x, j: x[j, j])(x, j))
        show(fn.vmap(lambda x, j: x[j, 1])(x, j), fn.vmap(lambda x, j: x[None, :, j])(x, j), fn.vmap(lambda x, j: x[j, ..., None])(x, j))
        show(fn.vmap(lambda j: x[0][j])(j), fn.vmap(lambda j: x[:, j])(j), fn.vmap(lambda j: x[j % 2, :, j])(j))
        show(fn.vmap(lambda x: x[i])(x), fn.vmap(lambda x: x[[0, 1], [1, 2]])(x), fn.vmap(lambda x: x[i, 1:])(x), fn.vmap(lambda x: x[..., i])(x))
        show(fn.vmap(lambda x: x[torch.tensor([True, False, True])])(x), fn.vmap(lambda x: x[1:, ::2])(x), fn.vmap(lambda x: x[-1, -1])(x))
        show(fn.vmap(lambda x, j: x.gather(0, j))(x, j[:, None].expand(2, 2, 2)), fn.vmap(lambda x, j: x.index_select(1, j))(x, j), fn.vmap(lambda x, j: x.take(j))(x, j))
        show(fn.vmap(lambda x, j: torch.take_along_dim(x, j[:, None].expand(2, 4), 0))(x, j), fn.vmap(lambda x: x.index_select(0, i))(x))
        def write(x, j):
            y = x.clone()
            y[j] = 7.
            y[0] = x[1]
            y[:, 1] = x[:, 0] * 2
            y[1, 1] = x[0, 0] + 5
            y[..., -1] += 1
            return y
        show(fn.vmap(write)(x, j))
        def write2(x, j):
            y = x.clone()
            y[j, j] = x[0, :2]
            y[i] = x[i] * 2
            y[x > 20] = 0.
            return y
        show(fn.vmap(lambda x: x.clone().masked_fill(x > 3, 0.))(x), fn.vmap(lambda x, j: x.index_fill(0, j, -1.))(x, j))
        show(fn.vmap(lambda x, j: x.index_add(0, j, x[:2]))(x, j), fn.vmap(lambda x, j: x.index_copy(0, j, x[1:]))(x, j))
        show(fn.vmap(lambda x, j: x.index_put((j,), x[:2]))(x, j), fn.vmap(lambda x, j: x.index_put((j, j), x[0, :2], accumulate=True))(x, j))
        show(fn.vmap(lambda x, j: x.scatter(0, j, x[:2, :2]))(x, j[:, None].expand(2, 2, 2)), fn.vmap(lambda x, j: x.scatter_add(0, j, x[:2, :2]))(x, j[:, None].expand(2, 2, 2)))
        show(fn.vmap(lambda x: torch.where(x > 5, x, -x))(x), fn.vmap(lambda x: x.clamp(3, 8))(x), fn.vmap(lambda x: x.clamp(min=x.mean()))(x))
        show(fn.vmap(lambda x: x.sort(0))(x), fn.vmap(lambda x: x.topk(2))(x), fn.vmap(lambda x: x.argsort(1, descending=True))(x), fn.vmap(lambda x: x.cummax(1))(x))
        show(fn.vmap(lambda x: x.unfold(1, 2, 1))(x), fn.vmap(lambda x: x.split(2, 1))(x), fn.vmap(lambda x: x.chunk(2, 1))(x), fn.vmap(lambda x: x.unbind(1))(x))
        show(fn.vmap(lambda x: x.diagonal())(x), fn.vmap(lambda x: x.tril())(x), fn.vmap(lambda x: torch.diag(x[0]))(x), fn.vmap(lambda x: x.roll(1, 0))(x))
        show(fn.vmap(lambda x: torch.einsum('ij,kj->ik', x, x))(x), fn.vmap(lambda x: torch.tensordot(x, x, 2))(x), fn.vmap(lambda x: torch.outer(x[0], x[1]))(x))
    """,
    "gradients_of_indexing": """
        fn = torch.func
        x = torch.arange(1., 9.).reshape(2, 4).double()
        i = torch.tensor([[0, 2], [1, 1]])
        fs = {
            'set': lambda x: (lambda y: [y.__setitem__(0, x[1] * x[2]), (y * y).sum()][1])(x.clone()),
            'set_slice': lambda x: (lambda y: [y.__setitem__(slice(1, 3), x[:2] * 2), (y * y).sum()][1])(x * 1),
            'index_put': lambda x: (x.index_put((torch.tensor([0, 1]),), x[2:] ** 2) ** 2).sum(),
            'scatter': lambda x: (x.scatter(0, torch.tensor([0, 3]), x[1:3] ** 2) ** 2).sum(),
            'scatter_add': lambda x: (x.scatter_add(0, torch.tensor([0, 0]), x[1:3] ** 2) ** 2).sum(),
            'gather': lambda x: (x.gather(0, torch.tensor([0, 0, 3])) ** 2).sum(),
            'where': lambda x: torch.where(x > 2, x ** 3, x ** 2).sum(),
            'clamp': lambda x: (x.clamp(2, 6) ** 2).sum(),
            'clamp_': lambda x: ((x * 1).clamp_(2, 6) ** 2).sum(),
            'sort': lambda x: (x.sort(descending=True).values * torch.arange(4.).double()).pow(2).sum(),
            'cumsum': lambda x: (x.cumsum(0) ** 2).sum(),
            'cumprod': lambda x: (x.cumprod(0) ** 2).sum(),
            'logcumsumexp': lambda x: x.logcumsumexp(0).sum(),
            'max': lambda x: x.max() * x.min() + x.amax() ** 2,
            'topk': lambda x: (x.topk(2).values ** 2).sum(),
            'median': lambda x: x.median() ** 2,
            'norm': lambda x: x.norm() + x.norm(1) + torch.linalg.vector_norm(x, 3),
            'var': lambda x: x.var() * x.std() + x.mean(),
            'softmax': lambda x: (x.softmax(0) * x.log_softmax(0)).sum() + x.logsumexp(0),
            'view': lambda x: (x.view(2, 2) @ x.view(2, 2).t()).prod(),
            'inv': lambda x: (torch.linalg.inv(x.view(2, 2)) ** 2).sum() + torch.linalg.det(x.view(2, 2)),
            'solve': lambda x: torch.linalg.solve(x.view(2, 2), x[:2]).pow(2).sum(),
            'prod': lambda x: x.prod() + x.view(2, 2).prod(0).sum(),
            'repeat': lambda x: (x.repeat(2) * x.repeat_interleave(2)).sum(),
            'roll': lambda x: (x.roll(1) * x.flip(0)).sum(),
            'stack': lambda x: (torch.stack([x, x * x]).sum(0) * torch.cat([x[2:], x[:2]])).sum(),
            'masked_fill': lambda x: (x.masked_fill(x > 3, 1.) ** 2).sum(),
            'pad': lambda x: (F.pad(x, (1, 1)) ** 3).sum(),
            'expand': lambda x: (x.expand(3, 4) ** 3).sum(),
            'diag': lambda x: (torch.diag(x) @ x).sum(),
            'outer': lambda x: torch.outer(x, x).sum() ** 2,
            'lerp': lambda x: torch.lerp(x, x ** 2, 0.3).sum(),
            'addcmul': lambda x: torch.addcmul(x, x, x, value=2).sum(),
            'gelu': lambda x: (F.gelu(x) + F.silu(x) + F.softplus(x) + F.elu(x) + F.leaky_relu(x)).sum(),
            'loss': lambda x: F.mse_loss(x, x.flip(0)) + F.smooth_l1_loss(x, x.roll(1)) + F.huber_loss(x, x ** 2),
            'ce': lambda x: F.cross_entropy(x.view(2, 2), torch.tensor([0, 1])) + F.nll_loss(x, torch.tensor(2)),
            'layer_norm': lambda x: (F.layer_norm(x, (4,)) ** 3).sum(),
            'conv': lambda x: (F.conv1d(x[None, None], x[None, None, :2]) ** 2).sum(),
            'matmul': lambda x: (x.view(2, 2) @ x.view(2, 2) @ x[:2]).sum(),
            'abs': lambda x: ((x - 3).abs() * (x - 3).sign()).sum(),
            'pow': lambda x: (x ** x).sum() + (2 ** x).sum() + (x ** 0.5).sum(),
            'trig': lambda x: (x.sin() * x.cos() + x.tan() + x.atan2(x * x) + x.tanh().sigmoid()).sum(),
            'exp': lambda x: (x.exp().log1p() + x.expm1().sqrt() + x.rsqrt() + x.reciprocal() + x.erf()).sum(),
        }
        for name, f in fs.items():
            show(name, fn.vmap(fn.grad(f))(x), fn.grad(lambda x: fn.vmap(fn.grad(f))(x).pow(2).sum())(x * 1.1))
            if name in ('inv', 'solve', 'layer_norm', 'loss'):
                continue  # PyTorch's second derivatives of these in forward mode are wrong, or missing
            show(name, fn.vmap(fn.hessian(f))(x))
            show(name, fn.vmap(lambda x, t: fn.jvp(f, (x,), (t,)))(x, x.flip(0)))
            show(name, fn.jvp(fn.vmap(fn.grad(f)), (x,), (x.flip(1),)))
            show(name, fn.grad(lambda x: fn.vmap(fn.grad(f))(x).pow(2).sum())(x))
            show(name, fn.jacfwd(fn.grad(f))(x[0]), fn.jacrev(fn.grad(f))(x[0]), fn.jacrev(fn.jacfwd(f))(x[0]))
    """,
    "randomness": """
        fn = torch.func
        x = torch.zeros(3, 2)
        draws = {
            'rand': lambda x: torch.rand(2), 'randn': lambda x: torch.randn(2), 'randint': lambda x: torch.randint(0, 1000000, (2,)),
            'randperm': lambda x: torch.randperm(100), 'rand_like': lambda x: torch.rand_like(x), 'randn_like': lambda x: torch.randn_like(x),
            'bernoulli': lambda x: torch.bernoulli(x + 0.5), 'normal': lambda x: torch.normal(x, 1.), 'uniform_': lambda x: x.clone().uniform_(),
            'normal_': lambda x: x.clone().normal_(), 'exponential_': lambda x: x.clone().exponential_(), 'dropout': lambda x: F.dropout(x + 1),
            'multinomial': lambda x: torch.multinomial(x + 1, 2), 'plus': lambda x: x + torch.rand(2), 'random_': lambda x: x.clone().random_(),
            'alpha_dropout': lambda x: F.alpha_dropout(x + 1, 0.5, True), 'poisson': lambda x: torch.poisson(x + 100), 'outside': lambda x: torch.rand(5),
            'normal2': lambda x: torch.normal(0., 1., (4,)), 'bernoulli_': lambda x: x.clone().bernoulli_(0.5),
        }
        for name, f in draws.items():
            show(name)
            raises(lambda: fn.vmap(f)(x))
            if name not in ('bernoulli', 'normal', 'multinomial', 'poisson'):
                same = fn.vmap(f, randomness='same')(x)
                show(name, same.shape, same.dtype, bool((same == same[0]).all()))
            different = fn.vmap(f, randomness='different')(x)
            show(name, different.shape, different.dtype)
        for name in ('rand', 'randn', 'rand_like', 'randperm', 'uniform_'):
            different = fn.vmap(draws[name], randomness='different')(x)
            show(name, bool((different[0] == different[1]).all()))
        show(fn.vmap(lambda x: F.dropout(x, training=False))(x), fn.vmap(lambda x: F.dropout(x, p=0.))(x))
        torch.manual_seed(3)
        a = fn.vmap(lambda x: torch.rand(2), randomness='same')(x)
        torch.manual_seed(3)
        show(a, torch.rand(2))
        d = fn.vmap(lambda x: fn.vmap(lambda y: torch.rand(2), randomness='same')(x), randomness='different')(x)
        show(d.shape, bool((d[:, 0] == d[:, 1]).all()), bool((d[0] == d[1]).all()))
        raises(lambda: fn.vmap(lambda x: fn.vmap(lambda y: torch.rand(2), randomness='same')(x))(x))
        raises(lambda: fn.vmap(lambda x: torch.zeros(2).uniform_(), randomness='different')(x))
        show(fn.grad(lambda x: (torch.rand(2) * 0 + x).sum())(x[0]))
    """,
    "nesting": """
        fn = torch.func
        x = torch.arange(1., 5.).double()
        f = lambda x: x.sin() * x ** 2
        s = lambda x: f(x).sum()
        show(fn.grad(fn.grad(fn.grad(lambda x: x ** 5)))(torch.tensor(2.)))
        show(fn.vmap(fn.grad(fn.grad(f)))(x), fn.vmap(fn.vmap(fn.grad(f)))(x.view(2, 2)), fn.vmap(fn.grad(lambda x: fn.vmap(f)(x).sum()))(x.view(2, 2)))
        show(fn.grad(lambda x: fn.vmap(fn.grad(f))(x).sum())(x), fn.grad(lambda x: fn.vmap(fn.vmap(f))(x.view(2, 2)).sum())(x))
        one = torch.ones(4).double()
        J = lambda f: (lambda x: fn.jvp(f, (x,), (torch.ones_like(x),))[1])
        G = lambda f: fn.grad(lambda x: f(x).sum())
        V = lambda f: fn.vmap(f)
        R = lambda f: fn.jacrev(f)
        W = lambda f: fn.jacfwd(f)
        import itertools
        for a, b, c in itertools.product((J, G), repeat=3):
            show(a(b(c(f)))(x))
        for a, b in itertools.product((J, G), repeat=2):
            show(V(a(b(f)))(x), a(V(b(f)))(x), a(b(V(f)))(x), V(V(a(b(f))))(x.view(2, 2)))
        for a, b in itertools.product((R, W), repeat=2):
            show(a(b(f))(x[:2]), V(a(b(f)))(x.view(2, 2)))
            for c in (R, W):
                show(a(b(c(s)))(x[:2]))
        for a in (J, G):
            show(a(R(f))(x[:2]), a(W(f))(x[:2]), R(a(f))(x[:2]), W(a(f))(x[:2]), V(a(V(f)))(x.view(2, 2)))
        show(fn.vmap(lambda a: fn.vmap(lambda b: a * b)(x))(x), fn.vmap(lambda a: fn.grad(lambda b: (a * b ** 2).sum())(x))(x))
        show(fn.vmap(lambda a: fn.jvp(lambda b: (a * b ** 2).sum(), (x,), (x,)))(x), fn.jvp(lambda a: fn.vmap(lambda b: a * b)(x), (x,), (x,)))
        show(fn.vmap(lambda v: fn.vjp(f, x)[1](v)[0])(torch.eye(4).double()))
        _, pull = fn.vjp(f, x)
        show(fn.vmap(pull)(torch.eye(4).double()), fn.jacrev(lambda v: pull(v)[0])(x))
        _, push = fn.linearize(f, x)
        show(fn.vmap(push)(torch.eye(4).double()))
        show(fn.vmap(fn.jacrev(f), in_dims=1)(x.view(2, 2)), fn.vmap(fn.jacfwd(f), out_dims=2)(x.view(2, 2)), fn.vmap(fn.hessian(s), chunk_size=1)(x.view(2, 2)))
    """,
    "is_grads_batched": """
        x = torch.arange(1., 4.).requires_grad_()
        y = x ** 2
        show(torch.autograd.grad(y, x, torch.eye(3), is_grads_batched=True))
        show(torch.autograd.functional.jacobian(lambda x: x ** 2, x, vectorize=True), torch.autograd.functional.hessian(lambda x: (x ** 3).sum(), x, vectorize=True))
        show(torch.autograd.functional.jacobian(lambda x: x ** 2, x.detach(), vectorize=True, strategy='forward-mode'))
    """,
    "leaves_outside": """
        fn = torch.func
        x = torch.arange(1., 7.).reshape(2, 3).requires_grad_()
        w = torch.arange(1., 4.).requires_grad_()
        fs = (lambda x: x * w, lambda x: (x * w).sum(), lambda x: x.sort().values * w, lambda x: torch.stack([x, w]), lambda x: w.expand(2, 3) + x,
              lambda x: x @ w, lambda x: x.cumsum(0) * w[0], lambda x: fn.grad(lambda y: (y ** 2 * w).sum())(x), lambda x: x[1:] * w[:-1])
        for f in fs:
            out = fn.vmap(f)(x)
            show(out, torch.autograd.grad(out.pow(2).sum(), (x, w)))
        def in_place(x):
            y = x * 1
            y[0] = w[0]
            y.mul_(w)
            return y
        out = fn.vmap(in_place)(x)
        show(out.requires_grad, out.detach(), torch.autograd.grad(out.pow(2).sum(), (x, w)))
        out = fn.vmap(lambda x: x * w, randomness='same', chunk_size=1)(x)
        out.sum().backward()
        show(x.grad, w.grad)
        with torch.no_grad():
            show(fn.vmap(lambda x: x * w)(x).requires_grad)
        show(fn.vmap(lambda x: x.detach() * w)(x).requires_grad, fn.vmap(lambda x: x.requires_grad and 1., out_dims=None)(x))
    """,
    "what_is_checked_before_the_function_runs": """
        def never(x): raise IndexError('never')
        z = torch.ones(2, dtype=torch.complex64)
        raises(torch.func.jacrev(never), z)
        raises(torch.func.jacfwd(never), z)
        raises(torch.func.jacrev(lambda x: x * 1j), torch.ones(2))
        raises(torch.func.vmap(never, out_dims='a'), z)
        nothing = torch.empty(0, 3)
        show(torch.func.vmap(torch.func.vmap(lambda a: (a * a).sum()))(nothing))
        show(torch.func.vmap(torch.func.vmap(torch.func.grad(lambda a: (a * a).sum())))(nothing))
    """,
    "views_that_have_become_ambiguous": """
        for mode in (torch.no_grad, torch.inference_mode):
            def view():
                b = torch.ones(3, requires_grad=True)
                with mode(): v = b[:2]
                with torch.no_grad(): b.mul_(2)
                return v
            square = lambda a: (a * a).sum()
            raises(torch.func.grad(square), view())
            raises(torch.func.vjp, square, view())
            raises(torch.func.linearize, square, view())
            with torch.no_grad():
                show(torch.func.grad(square)(view()))
    """,
}

test_batches = program_test(BATCHES, "nesting")

FORWARD = {
    "forward_ad": """
        fwAD = torch.autograd.forward_ad
        x, t = torch.tensor([1., 2.]), torch.tensor([3., 4.])
        with fwAD.dual_level() as level:
            show(level)
            d = fwAD.make_dual(x, t)
            show(str(d), fwAD.unpack_dual(d), type(fwAD.unpack_dual(d)), fwAD.unpack_dual(x), fwAD.unpack_dual(d)._fields)
            show(fwAD.unpack_dual(d.sin()), fwAD.unpack_dual(d.sum()), fwAD.unpack_dual(d[0]), fwAD.unpack_dual(d.detach()), fwAD.unpack_dual(d.clone()))
            show(fwAD.unpack_dual(d * 2 + 1), fwAD.unpack_dual(d @ d), fwAD.unpack_dual(d.long()), fwAD.unpack_dual(d > 1), fwAD.unpack_dual(d.double()))
            raises(lambda: fwAD.make_dual(d, t))
            raises(lambda: fwAD.make_dual(x, torch.ones(3)))
            raises(lambda: fwAD.make_dual(x.long(), t))
            raises(lambda: fwAD.make_dual(x, t.long()))
            raises(lambda: fwAD.make_dual(x, 3.))
            raises(lambda: fwAD.make_dual(3., t))
            raises(lambda: fwAD.unpack_dual(3.))
            raises(lambda: fwAD.enter_dual_level())
            raises(lambda: torch.add(d, d, out=torch.empty(2)))
            p, q = fwAD.unpack_dual(d)
            show(p is x, q is t, p._base is x, fwAD.unpack_dual(p).tangent)
            show(fwAD.unpack_dual(fwAD.make_dual(p, t * 2)))
            y = d * d
            y[0] = 5.
            show(fwAD.unpack_dual(y))
            y.mul_(d)
            show(fwAD.unpack_dual(y))
            z = torch.zeros(2, 2)
            z[1].copy_(d)
            show(fwAD.unpack_dual(z), fwAD.unpack_dual(z[1]), fwAD.unpack_dual(z.t()), fwAD.unpack_dual(z[0]))
            z.add_(1)
            show(fwAD.unpack_dual(z))
            z[0] = d
            v = z.view(4)
            v.mul_(2)
            show(fwAD.unpack_dual(z), fwAD.unpack_dual(v[2:]))
            z.zero_()
            show(fwAD.unpack_dual(z), fwAD.unpack_dual(v))
            show(fwAD.unpack_dual(fwAD.make_dual(torch.tensor(1.), torch.tensor(2.)).expand(3)))
            show(fwAD.unpack_dual(torch.stack([d, x]))[1], fwAD.unpack_dual(torch.cat([x, d]))[1], fwAD.unpack_dual(torch.where(d > 1, d, x))[1])
        show(fwAD.unpack_dual(d), fwAD.unpack_dual(y), str(d))
        raises(lambda: fwAD.make_dual(x, t))
        raises(lambda: fwAD.exit_dual_level())
        level = fwAD.enter_dual_level()
        raises(lambda: fwAD.make_dual(x, t, level=5))
        raises(lambda: fwAD.exit_dual_level(level=3))
        show(fwAD.unpack_dual(fwAD.make_dual(x, t, level=level), level=level))
        fwAD.exit_dual_level(level=level)
    """,
    "forward_and_reverse": """
        fwAD = torch.autograd.forward_ad
        x, t = torch.tensor([1., 2.]).requires_grad_(), torch.tensor([3., 4.])
        with fwAD.dual_level():
            d = fwAD.make_dual(x, t)
            y = (d ** 3).sum()
            g, = torch.autograd.grad(y, x, create_graph=True)
            show(fwAD.unpack_dual(g).tangent.detach(), fwAD.unpack_dual(y).tangent)
            t2 = fwAD.unpack_dual(y).tangent
            show(t2.requires_grad, torch.autograd.grad(t2, x))
            y = (d ** 3).sum()
            y.backward()
            show(x.grad)
            w = torch.tensor([1., 1.], requires_grad=True)
            dw = fwAD.make_dual(w.detach(), t).requires_grad_() if False else w
            out = (d * dw).exp()
            show([part.detach() for part in fwAD.unpack_dual(out)])
            g, = torch.autograd.grad(out.sum(), w)
            show(fwAD.unpack_dual(g))
            with torch.no_grad():
                show(fwAD.unpack_dual(d * 2).tangent)
            tt = t.clone().requires_grad_()
            dd = fwAD.make_dual(x.detach(), tt)
            o = fwAD.unpack_dual(dd.sin()).tangent
            show(o.requires_grad, torch.autograd.grad(o.sum(), tt))
        x.grad = None
        with fwAD.dual_level():
            d = fwAD.make_dual(x, t)
            g, = torch.autograd.grad((d ** 3).sum(), d)
            show(fwAD.unpack_dual(g))
            with torch.inference_mode():
                show(fwAD.unpack_dual(d * 2).tangent is None)
            with fwAD._set_fwd_grad_enabled(False):
                show(fwAD.unpack_dual(d * 2).tangent is None)
    """,
    "layouts": """
        fwAD = torch.autograd.forward_ad
        x = torch.arange(6.).reshape(2, 3)
        with fwAD.dual_level():
            for p, t in ((x.t(), torch.ones(3, 2)), (x[:, ::2], torch.ones(2, 2)), (x, torch.ones(3, 2).t()), (torch.zeros(0), torch.zeros(0))):
                d = fwAD.make_dual(p, t)
                show(fwAD.unpack_dual(d), fwAD.unpack_dual(d.t() if d.dim() == 2 else d), fwAD.unpack_dual(d.reshape(-1)), fwAD.unpack_dual(d.sum(0)))
                show(fwAD.unpack_dual(d).tangent.stride() == p.stride())
            z = torch.tensor([1 + 2j, 3 - 1j])
            d = fwAD.make_dual(z, z * 1j)
            show(fwAD.unpack_dual(d.real), fwAD.unpack_dual(d.imag), fwAD.unpack_dual(d.conj()), fwAD.unpack_dual(d.abs()), fwAD.unpack_dual(d * d), fwAD.unpack_dual(torch.view_as_real(d)))
            show(fwAD.unpack_dual(d.angle()), fwAD.unpack_dual(d.exp()), fwAD.unpack_dual(torch.complex(d.real, d.imag)), fwAD.unpack_dual(d.sum()))
            raises(lambda: fwAD.make_dual(z, torch.ones(2)))
            show(fwAD.unpack_dual(fwAD.make_dual(torch.ones(2), torch.ones(2).double())))
    """,
}

test_forward = program_test(FORWARD)

FUNCTIONS = {
    "custom_functions": """
        fn = torch.func
        x = torch.tensor([1., 2.])
        class Cube(torch.autograd.Function):
            generate_vmap_rule = True
            @staticmethod
            def forward(x, power):
                return x ** power
            @staticmethod
            def setup_context(ctx, inputs, output):
                x, ctx.power = inputs
                ctx.save_for_backward(x)
                ctx.save_for_forward(x)
            @staticmethod
            def backward(ctx, grad):
                x, = ctx.saved_tensors
                return grad * ctx.power * x ** (ctx.power - 1), None
            @staticmethod
            def jvp(ctx, t, _):
                x, = ctx.saved_tensors
                return t * ctx.power * x ** (ctx.power - 1)
        f = lambda x: Cube.apply(x, 3)
        show(f(x), fn.grad(lambda x: f(x).sum())(x), fn.vjp(f, x)[1](x), fn.jvp(f, (x,), (x,)), fn.vmap(f)(x))
        show(fn.vmap(fn.grad(f))(x), fn.grad(lambda x: fn.vmap(f)(x).sum())(x), fn.jacrev(f)(x), fn.jacfwd(f)(x))
        show(fn.grad(lambda x: fn.grad(lambda x: f(x).sum())(x).sum())(x), fn.jacrev(fn.jacrev(f))(x), fn.vmap(fn.jacrev(f))(x[None]))
        show(fn.jvp(fn.vmap(f), (x,), (x,)), fn.vmap(lambda x, t: fn.jvp(f, (x,), (t,)))(x, x), fn.vmap(fn.vmap(f))(x[None]))
        show(fn.vmap(fn.grad(fn.grad(f)))(x), fn.jvp(fn.grad(lambda x: f(x).sum()), (x,), (x,)), fn.jacfwd(fn.jacrev(f))(x), fn.linearize(f, x)[1](x))
        r = x.clone().requires_grad_()
        out = fn.vmap(f)(r)
        show(out.requires_grad, torch.autograd.grad(out.sum(), r))
        out = fn.vmap(fn.grad(f))(r)
        show(out.requires_grad, torch.autograd.grad(out.sum(), r))
    """,
    "custom_vmap": """
        fn = torch.func
        x = torch.tensor([1., 2.])
        shown = True
        class Mul(torch.autograd.Function):
            @staticmethod
            def forward(x, y):
                return x * y
            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.save_for_backward(*inputs)
            @staticmethod
            def backward(ctx, grad):
                x, y = ctx.saved_tensors
                return Mul.apply(grad, y), Mul.apply(grad, x)
            @staticmethod
            def vmap(info, in_dims, x, y):
                if shown:
                    show(info.batch_size, info.randomness, in_dims, str(info), x.shape, y.shape)
                if in_dims[0] is None:
                    return Mul.apply(x, y), in_dims[1]
                if in_dims[1] is None:
                    return Mul.apply(x, y), in_dims[0]
                return Mul.apply(x.movedim(in_dims[0], -1), y.movedim(in_dims[1], -1)), -1
        show(fn.vmap(Mul.apply)(x, x), fn.vmap(Mul.apply, in_dims=(0, None))(x, torch.tensor(3.)), fn.vmap(Mul.apply, in_dims=(None, 0))(torch.tensor(3.), x))
        show(fn.vmap(Mul.apply, in_dims=(1, 0), randomness='same')(torch.ones(3, 2), torch.arange(6.).reshape(2, 3)))
        shown = False
        show(fn.vmap(fn.grad(lambda x: Mul.apply(x, x)))(x))
        show(fn.grad(lambda x: fn.vmap(Mul.apply)(x, x).sum())(x))
        show(fn.vmap(fn.vmap(Mul.apply))(x[None], x[None]))
        show(fn.vmap(fn.grad(fn.grad(lambda x: Mul.apply(x, Mul.apply(x, x)))))(x))
        show(fn.vmap(lambda x: Mul.apply(torch.tensor(2.), torch.tensor(3.)))(x))
        class Both(torch.autograd.Function):
            @staticmethod
            def forward(x):
                return x * 2, x.sum(), 5
            @staticmethod
            def setup_context(ctx, inputs, output):
                pass
            @staticmethod
            def backward(ctx, g, h, _):
                return g * 2 + h
            @staticmethod
            def vmap(info, in_dims, x):
                return (x * 2, x.sum(1 - in_dims[0]), 5), (in_dims[0], 0, None)
        show(fn.vmap(lambda x: Both.apply(x)[:2])(torch.ones(3, 2)), fn.vmap(lambda x: Both.apply(x)[:2], in_dims=1)(torch.ones(3, 2)))
        show(fn.vmap(fn.grad(lambda x: sum(t.sum() for t in Both.apply(x)[:2])))(torch.ones(3, 2)))
    """,
    "custom_saved_outputs": """
        fn = torch.func
        x = torch.tensor([1., 2., 3.])
        class Exp(torch.autograd.Function):
            generate_vmap_rule = True
            @staticmethod
            def forward(x):
                return x.exp(), x * 2
            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.save_for_backward(*output, *inputs)
                ctx.save_for_forward(*output)
            @staticmethod
            def backward(ctx, g, h):
                y, z, x = ctx.saved_tensors
                return g * y + h * 2
            @staticmethod
            def jvp(ctx, t):
                y, z = ctx.saved_tensors
                return t * y, t * 2
        f = lambda x: Exp.apply(x)[0] * Exp.apply(x)[1]
        show(fn.vmap(fn.grad(f))(x), fn.vmap(fn.grad(fn.grad(f)))(x), fn.jvp(f, (x,), (x,)), fn.jvp(fn.vmap(fn.grad(f)), (x,), (x,)))
        show(fn.vmap(lambda x: fn.jvp(f, (x,), (x,)))(x), fn.hessian(lambda x: f(x).sum())(x), fn.vmap(fn.jacrev(f))(x), fn.linearize(f, x)[1](x))
    """,
    "custom_errors": """
        fn = torch.func
        fwAD = torch.autograd.forward_ad
        x = torch.tensor([1., 2.])
        class Old(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2
            @staticmethod
            def backward(ctx, grad):
                return grad * 2
        raises(lambda: fn.grad(lambda x: Old.apply(x).sum())(x))
        raises(lambda: fn.vmap(Old.apply)(x))
        raises(lambda: fn.jvp(Old.apply, (x,), (x,)))
        show(Old.apply(x))
        def make(rule=None, generate=False, push=None):
            class F(torch.autograd.Function):
                generate_vmap_rule = generate
                @staticmethod
                def forward(x):
                    return x ** 2
                @staticmethod
                def setup_context(ctx, inputs, output):
                    ctx.save_for_backward(*inputs)
                @staticmethod
                def backward(ctx, grad):
                    return grad * 2 * ctx.saved_tensors[0]
            if push:
                F.jvp = staticmethod(push)
            if rule:
                F.vmap = staticmethod(rule)
            return F
        for rule in (None, lambda info, dims, x: x, lambda info, dims, x: (x, 0, 0), lambda info, dims, x: [x, 0], lambda info, dims, x: (x, (0, 0)), lambda info, dims, x: ((x, x), 0)):
            raises(lambda: fn.vmap(make(rule).apply)(x))
        raises(lambda: fn.vmap(make(lambda info, dims, x: (x, 0), True).apply)(x))
        show(fn.vmap(make(lambda info, dims, x: (x ** 2, None)).apply)(x))
        for push in (None, lambda ctx, t: (t, t), lambda ctx, t: t.sum(), lambda ctx, t: 3):
            raises(lambda: fn.jvp(make(push=push).apply, (x,), (x,)))
            with fwAD.dual_level():
                raises(lambda: make(push=push).apply(fwAD.make_dual(x, x)))
    """,
    "custom_in_place_and_views": """
        fn = torch.func
        x = torch.tensor([1., 2.])
        class Double(torch.autograd.Function):
            generate_vmap_rule = True
            @staticmethod
            def forward(x):
                return x.mul_(2)
            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.mark_dirty(inputs[0])
            @staticmethod
            def backward(ctx, grad):
                return grad * 2
            @staticmethod
            def jvp(ctx, t):
                return t.mul_(2)
        f = lambda x: Double.apply(x * 1) ** 2
        show(f(x), fn.grad(lambda x: f(x).sum())(x), fn.jvp(f, (x,), (x,)))
        class Constant(torch.autograd.Function):
            generate_vmap_rule = True
            @staticmethod
            def forward(x):
                return x * 2, x > 1
            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.mark_non_differentiable(output[1])
                ctx.set_materialize_grads(False)
            @staticmethod
            def backward(ctx, grad, _):
                show(_ is None)
                return grad * 2
        show(fn.grad(lambda x: Constant.apply(x)[0].sum())(x), fn.vmap(Constant.apply)(x), fn.vmap(fn.grad(lambda x: Constant.apply(x)[0]))(x))
    """,
}

test_functions = program_test(FUNCTIONS)

MODULES = {
    "functional_call": """
        fn = torch.func
        m = torch.nn.Linear(2, 2)
        x = torch.tensor([1., 2.])
        p = {'weight': torch.ones(2, 2), 'bias': torch.zeros(2)}
        show(fn.functional_call(m, p, x), fn.functional_call(m, p, (x,)), fn.functional_call(m, p, kwargs={'input': x}), fn.functional_call(m, p, (), {'input': x}))
        show(fn.functional_call(m, ({'weight': torch.ones(2, 2)}, {'bias': torch.zeros(2)}), x), m.weight.shape)
        show(fn.functional_call(m, {'weight': torch.ones(2, 2)}, x).shape)
        raises(lambda: fn.functional_call(m, {'weight': torch.ones(2, 2)}, x, strict=True))
        raises(lambda: fn.functional_call(m, {'weight': torch.ones(2, 2), 'bias': torch.zeros(2), 'other': x}, x, strict=True))
        raises(lambda: fn.functional_call(m, ({'weight': x}, {'weight': x}), x))
        raises(lambda: fn.functional_call(m, ({'weight': x}, 3), x))
        raises(lambda: fn.functional_call(m, 3, x))
        raises(lambda: fn.functional_call(m, {'weight': 3}, x))
        raises(lambda: fn.functional_call(m, {'other': x}, x))
        raises(lambda: fn.functional_call(m, {'other.weight': x}, x))
        raises(lambda: fn.functional_call(m, {'weight': torch.ones(3, 3)}, x))
        raises(lambda: fn.functional_call(m, {'': x}, x))
        raises(lambda: fn.functional_call('m', {}, x))
        class Tied(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.a = torch.nn.Linear(1, 1, bias=False)
                self.b = torch.nn.Linear(1, 1, bias=False)
                self.b.weight = self.a.weight
                self.register_buffer('count', torch.tensor(0.))
            def forward(self, x):
                self.count = self.count + 1
                return self.b(self.a(x)) + self.count
        t = Tied()
        one = torch.ones(1)
        two = torch.tensor([[2.]])
        show(fn.functional_call(t, {'a.weight': two}, one), fn.functional_call(t, {'b.weight': two}, one), fn.functional_call(t, {'a.weight': two, 'b.weight': two}, one))
        raises(lambda: fn.functional_call(t, {'a.weight': two, 'b.weight': two + 1}, one))
        show(fn.functional_call(t, {'a.weight': two, 'b.weight': two + 1}, one, tie_weights=False))
        b = {'count': torch.tensor(5.)}
        show(fn.functional_call(t, ({'a.weight': two}, b), one), b, t.count)
        fn.functional_call(t, {'a.weight': two}, one)
        show(t.count)
        class Bump(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer('count', torch.tensor(0.))
            def forward(self, x):
                self.count.add_(1)
                return x + self.count
        b, m = {'count': torch.tensor(5.)}, Bump()
        show(fn.functional_call(m, b, one), b, m.count)
        show(fn.grad(lambda p: fn.functional_call(t, {'a.weight': p}, one).sum())(two))
    """,
    "ensembles": """
        fn = torch.func
        torch.manual_seed(0)
        models = [torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.ReLU(), torch.nn.Linear(4, 2)).eval() for _ in range(3)]
        params, buffers = fn.stack_module_state(models)
        show({k: (v.shape, v.requires_grad, v.is_leaf) for k, v in params.items()}, {k: (v.shape, v.requires_grad) for k, v in buffers.items()})
        x = torch.arange(15.).reshape(5, 3)
        show(fn.vmap(lambda p, b, x: fn.functional_call(models[0], (p, b), x), in_dims=(0, 0, None))(params, buffers, x).shape)
        raises(lambda: fn.stack_module_state([]))
        raises(lambda: fn.stack_module_state([torch.nn.Linear(1, 1), torch.nn.ReLU()]))
        raises(lambda: fn.stack_module_state([torch.nn.Linear(1, 1), torch.nn.Linear(1, 1).eval()]))
        frozen = torch.nn.Linear(1, 1).requires_grad_(False)
        raises(lambda: fn.stack_module_state([torch.nn.Linear(1, 1), frozen]))
        show({k: v.requires_grad for k, v in fn.stack_module_state([frozen, frozen])[0].items()})
        raises(lambda: fn.stack_module_state(models[0]))
    """,
    "layers": """
        fn = torch.func
        nn = torch.nn
        def fixed(m):
            for n, p in m.named_parameters():
                p.data = torch.arange(p.numel()).reshape(p.shape) / p.numel() - 0.3
            return m
        img, seq = torch.arange(2 * 3 * 2 * 6 * 6).reshape(2, 3, 2, 6, 6).double() / 432 - 0.501, torch.arange(24.).reshape(2, 3, 4).double() / 24 + 0.01
        cases = [(nn.Conv2d(2, 3, 3, padding=1), img), (nn.Conv2d(2, 4, 3, stride=2, groups=2), img), (nn.ConvTranspose2d(2, 3, 2, stride=2), img), (nn.Conv1d(3, 2, 2), seq[:, None]),
                 (nn.LayerNorm(4), seq), (nn.GroupNorm(1, 2), img), (nn.BatchNorm2d(2, track_running_stats=False), img), (nn.InstanceNorm2d(2), img), (nn.MaxPool2d(2), img), (nn.AvgPool2d(2), img),
                 (nn.AdaptiveAvgPool2d(2), img), (nn.Linear(4, 5), seq), (nn.PReLU(), seq), (nn.Bilinear(4, 4, 2), None), (nn.Softmax(-1), seq), (nn.Flatten(0), seq),
                 (nn.BatchNorm2d(2).eval(), img), (nn.Dropout(0.5).eval(), seq), (nn.GELU(), seq), (nn.ZeroPad2d(1), img)]
        for m, x in cases:
            m = fixed(m.double())
            m.to(torch.float64)
            p = {k: v.detach() for k, v in m.named_parameters()}
            b = dict(m.named_buffers())
            if isinstance(m, nn.Bilinear):
                call = lambda p, x: fn.functional_call(m, (p, b), (x, x))
                x = seq
            else:
                call = lambda p, x: fn.functional_call(m, (p, b), (x,))
            show(type(m).__name__, fn.vmap(call, in_dims=(None, 0))(p, x))
            loss = lambda p, x: (call(p, x) ** 2).sum()
            show(fn.vmap(fn.grad(loss, argnums=(0, 1)), in_dims=(None, 0))(p, x))
            show(fn.jvp(lambda x: call(p, x), (x[0],), (x[1],)))
        raises(lambda: fn.vmap(lambda x: fn.functional_call(nn.BatchNorm2d(2), {}, (x,)))(img))
        e = fixed(nn.Embedding(5, 3))
        idx = torch.tensor([[0, 1], [4, 2]])
        show(fn.vmap(lambda i: e(i))(idx).detach(), fn.vmap(lambda w, i: F.embedding(i, w), in_dims=(0, 0))(torch.stack([e.weight, e.weight * 2]).detach(), idx))
        show(fn.vmap(fn.grad(lambda w, i: (F.embedding(i, w) ** 2).sum()), in_dims=(None, 0))(e.weight.detach(), idx))
        show(fn.vmap(lambda i: F.one_hot(i, 5))(idx))
    """,
    "functionalize": """
        fn = torch.func
        def f(x):
            y = x.clone()
            y[0] = 1
            y.view(-1).mul_(2)
            return y
        x = torch.tensor([3., 4.])
        show(fn.functionalize(f)(x), fn.functionalize(f, remove='mutations_and_views')(x), fn.functionalize(fn.grad(lambda x: f(x).sum()))(x), fn.vmap(fn.functionalize(f))(x[None]))
        raises(lambda: fn.functionalize(f, remove='other')(x))
        raises(lambda: fn.functionalize(f, remove=3)(x))
        def g(x):
            x.add_(1)
            return x * 2
        y = x.clone()
        show(fn.functionalize(g)(y), y)
    """,
    "names": """
        fn = torch.func
        show(sorted(n for n in dir(fn) if not n.startswith('_')), sorted(fn.__all__))
        show(sorted(torch.autograd.forward_ad.__all__))
        m = torch.nn.Sequential(torch.nn.BatchNorm1d(2), torch.nn.Sequential(torch.nn.BatchNorm2d(3)))
        show(fn.replace_all_batch_norm_modules_(m) is m, m[0].running_mean, m[0].track_running_stats, m[1][0].num_batches_tracked, str(m))
        show(fn.vmap(m[0])(torch.arange(12.).reshape(2, 3, 2)).detach())
        import inspect
        for name in ('grad', 'grad_and_value', 'vjp', 'jvp', 'linearize', 'jacrev', 'hessian', 'vmap', 'functional_call', 'stack_module_state', 'functionalize', 'debug_unwrap', 'rearrange'):
            show(name, [(p.name, str(p.kind), str(p.default)) for p in inspect.signature(getattr(fn, name)).parameters.values()])
        f = lambda x: x.sum()
        f.__name__ = 'named'
        show([g.__name__ for g in (fn.grad(f), fn.vmap(f), fn.jacrev(f), fn.jacfwd(f), fn.grad_and_value(f))])
    """,
    "rearrange": """
        rearrange = torch.func.rearrange
        x = torch.arange(24).reshape(2, 3, 4)
        show(rearrange(x, 'a b c -> c b a'), rearrange(x, 'a b c -> (a b) c'), rearrange(x, 'a b c -> a (b c)'), rearrange(x, 'a b c -> (c a) b'))
        show(rearrange(x, 'a b (c d) -> a b c d', d=2), rearrange(x, 'a b (c d) -> (d b) a c', c=2), rearrange(x, '... c -> c ...'), rearrange(x, 'a ... -> ... a'))
        show(rearrange(x, 'a b c -> a 1 b c'), rearrange(x, 'a b c -> a b c ()'), rearrange(x[:, :1], 'a 1 c -> a c'), rearrange([x, x], 'n a b c -> a b (n c)'))
        show(rearrange(x, '... -> (...)'), rearrange(x, 'a ... -> a (...)'), rearrange(torch.arange(24).reshape(4, 6), '(a b) c -> a b c', a=2), rearrange(x, 'a b c -> (a b c)'))
        raises(lambda: rearrange(x, 'a b -> b a'))
        raises(lambda: rearrange(x, 'a b c -> a b'))
        raises(lambda: rearrange(x, 'a b c'))
        raises(lambda: rearrange(x, 'a b (c d) -> a b c d'))
        raises(lambda: rearrange(x, 'a a c -> a c'))
        raises(lambda: rearrange(x, 'a b (c d) -> a b c d', d=3))
        raises(lambda: rearrange(x, 'a b c -> a b c', d=3))
    """,
    "text": """
        fn = torch.func
        x = torch.tensor([1., 2.])
        seen = []
        note = lambda *values: seen.extend(map(repr, values))
        fn.grad(lambda x: (note(x, x * 2), x.sum())[1])(x)
        fn.grad(lambda x: fn.grad(lambda y: (note(y, x, y * x), (y * x).sum())[1])(x).sum())(x)
        fn.vmap(fn.grad(lambda x: (note(x, x * 2), x.sum())[1]))(x)
        fn.grad(lambda x: fn.vmap(lambda x: (note(x, x * 2), x)[1])(x).sum())(x)
        fn.jvp(lambda x: (note(x, x * 2), x)[1], (x,), (x,))
        fn.jvp(lambda x: fn.grad(lambda x: (note(x, x * 2), x.sum())[1])(x), (x,), (x,))
        fn.vmap(lambda x: (note(x, x * 2), x)[1])(torch.ones(2, 2))
        fn.vmap(lambda x: (note(x, x * 2), x)[1], in_dims=1)(torch.ones(2, 2))
        fn.vmap(lambda x: fn.vmap(lambda x: (note(x, x * 2), x)[1])(x))(torch.ones(2, 2))
        fn.vjp(lambda x: (note(x), x)[1], x)
        fn.vmap(lambda x: (note(x > 1, x.long()), x)[1])(torch.ones(2, 2))
        unwrap = fn.debug_unwrap
        fn.vmap(lambda x: (note(unwrap(x), unwrap(x, recurse=False)), x)[1])(torch.ones(2, 2))
        fn.vmap(lambda x: fn.vmap(lambda x: (note(unwrap(x), unwrap(x, recurse=False)), x)[1])(x))(torch.ones(2, 2))
        fn.grad(lambda x: (note(unwrap(x), unwrap(x, recurse=False)), x.sum())[1])(x)
        fn.vmap(fn.grad(lambda x: (note(unwrap(x), unwrap(x, recurse=False)), x.sum())[1]))(x)
        r = x.clone().requires_grad_()
        fn.vmap(lambda x: (note(x, x * 2), x)[1])(r)
        for line in seen:
            show(line)
        show(unwrap(x) is x)
        with torch.autograd.forward_ad.dual_level():
            show(str(torch.autograd.forward_ad.make_dual(x, x) * 2))
    """,
}

test_modules = program_test(MODULES)
