"""`torch.func`, `torch.vmap` and `torch.autograd.forward_ad`: what transforms return, refuse and say, alone and composed."""
# ruff: noqa: E501

import pytest

torch = pytest.importorskip("torch")

from .programs import program_test

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
            show(jac(f)(x, y), jac(f, argnums=1)(x, y), jac(f, argnums=(0, 1))(x, y), jac(f, argnums=-1)(x, y))
            show(jac(lambda x: (x * 2, x + 3), has_aux=True)(x))
            show(jac(lambda x: ({'a': x * 2}, {'b': x + 3}), has_aux=True)(x))
            show(jac(lambda x: x.sum())(x), jac(lambda x: x * 2)(torch.tensor(3.)), jac(lambda x: x.expand(2, 2))(torch.tensor(3.)))
            show(jac(lambda x: torch.ones(2))(x))
            show(jac(lambda x: [x, x.sum()])(x))
            for size in (1, 2, 3, 100):
                show(jac(f, chunk_size=size)(x, y))
            raises(lambda: jac(f, chunk_size=0))
            raises(lambda: jac(f, chunk_size=-1))
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
        fn.jvp(f, (r,), (x,))
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
        show(fn.linearize(f, x)[1](x))
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
        out = torch.zeros(3)
        def m(x):
            out.copy_(x)
            return (x * x).sum()
        raises(lambda: fn.grad(m)(x))
        show(out)
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
