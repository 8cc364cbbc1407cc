"""In-place changes of views: the nodes on the path of a gradient, the order of hooks, and the replay of views."""
# ruff: noqa: E501

import pytest

torch = pytest.importorskip("torch")

from tests.parity.programs import program_test

PROGRAMS = {
    "saved_result_of_a_change_whose_view_is_gone": """
        for dtype in (torch.float64, torch.complex128):
            for keep in (True, False):
                for retain in (True, False):
                    w = torch.tensor([[1., 2.], [.5, 1.]], dtype=dtype, requires_grad=True)
                    y = w * 1
                    v = y[0]
                    v.exp_()
                    if not keep:
                        del v
                    g, = torch.autograd.grad(y.sum().abs(), w, create_graph=True)
                    raises(lambda: show(torch.autograd.grad(g.sum().abs(), w, retain_graph=retain)))
                    raises(lambda: show(torch.autograd.grad(g.sum().abs(), w)))
                    raises(lambda: torch.autograd.grad(y.sum().abs(), w))
    """,
    "saved_output_of_a_function_that_changes_a_view": """
        class Exp(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                x.exp_()
                ctx.mark_dirty(x)
                ctx.save_for_backward(x)
                return x
            @staticmethod
            def backward(ctx, g):
                r, = ctx.saved_tensors
                show(r, r.grad_fn.name(), r._version)
                return g * r
        for part in (lambda y: y, lambda y: y[0], lambda y: y.t()[1]):
            for keep in (True, False):
                w = torch.tensor([[1., 2.], [3., 4.]], requires_grad=True, dtype=torch.double)
                y = w * 1
                r = Exp.apply(part(y))
                show(r, y.grad_fn.name(), r.grad_fn.name())
                if not keep:
                    del r
                g, = torch.autograd.grad((y * y).sum(), w, create_graph=True)
                show(g, torch.autograd.grad(g.sum(), w, retain_graph=True), torch.autograd.grad(g.sum(), w))
    """,
    "hooks_stay_with_the_value_they_were_put_on": """
        def case(change, again, name):
            log = []
            w = torch.ones(2, 2, requires_grad=True)
            y = w * 1
            v, u = y[0], y.t()
            t = dict(y=y, v=v, u=u)[name]
            first = t.register_hook(lambda g: log.append(("first", g.tolist())))
            change(y, v, u)
            before = t._backward_hooks is None
            t.grad_fn
            after = t._backward_hooks is None
            if again:
                second = t.register_hook(lambda g: log.append(("second", g.tolist())))
                if again == 2:
                    first.remove()
                if again == 3:
                    second.remove()
            (y.sum() + v.sum() * 2 + u.sum() * 3).backward()
            show(log, before, after, t._backward_hooks is None, w.grad)
        for change in (lambda y, v, u: v.mul_(2), lambda y, v, u: y.mul_(2), lambda y, v, u: u.mul_(2), lambda y, v, u: (v.mul_(2), v.mul_(3))):
            for name in "yvu":
                for again in range(4):
                    case(change, again, name)
    """,
    "functions_that_change_views_seen_by_hooks": """
        class Scale(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                x.mul_(3).add_(y)
                ctx.mark_dirty(x)
                return x
            @staticmethod
            def backward(ctx, g):
                log.append(("backward", g.tolist(), ctx.needs_input_grad))
                return g * 3, g
        log = []
        def put(t, name, what):
            if what == "hook": t.register_hook(lambda g: log.append((name, g.tolist())))
            elif what == "retain": t.retain_grad()
            elif what == "node": t.grad_fn.register_hook(lambda *grads: log.append((name, len(grads))))
            elif what == "pre": t.grad_fn.register_prehook(lambda grads: log.append((name, grads[0].tolist())))
            else: t.register_hook(lambda g: g * 10)
        def case(part, when, what):
            log.clear()
            w = torch.tensor([[1., 2.], [3., 4.]], requires_grad=True)
            z = torch.tensor([5., 6.], requires_grad=True)
            y = w * 1
            v = part(y)
            if when == 0: put(v, "v", what), put(y, "y", what)
            r = Scale.apply(v, z)
            show(r is v, r._version, r.grad_fn.name(), y.grad_fn.name(), r._base is y)
            if when == 1: put(v, "v", what), put(y, "y", what)
            ((y * torch.tensor([[1., 2.], [3., 4.]])).sum() + (r * r).sum()).backward()
            show(log, w.grad, z.grad, v.grad, y.grad, v.retains_grad, y.retains_grad, v._backward_hooks is None, y._backward_hooks is None)
        for part in (lambda y: y[0], lambda y: y.t()[0], lambda y: y.view(4)[1:3], lambda y: y.diagonal()):
            for when in (0, 1):
                for what in ("hook", "retain", "node", "pre", "replace"):
                    case(part, when, what)
    """,
    "which_change_of_a_leaf_is_refused": """
        class Exp(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                x.exp_()
                ctx.mark_dirty(x)
                return x
            @staticmethod
            def backward(ctx, g):
                return g
        def unrecorded(make):
            with torch.no_grad():
                return make()
        def later(w):
            a = torch.ones(2)
            b = a[:1]
            a.requires_grad_()
            return b
        def after_a_change(w):
            a = torch.ones(2)
            b = a[:1]
            a.mul_(w[0])
            return b
        def own(w):
            b = torch.ones(2)[0]
            return b.requires_grad_()
        def of_history(w):
            y = w * 1
            return unrecorded(lambda: y[0])
        for make in (lambda w: w, lambda w: w[0], lambda w: unrecorded(lambda: w[0]), of_history, lambda w: w.unbind()[0], lambda w: (w * 1).unbind()[0], later, after_a_change, own):
            raises(lambda: Exp.apply(make(torch.ones(2, 2, requires_grad=True))))
            raises(lambda: make(torch.ones(2, 2, requires_grad=True)).exp_())
    """,
    "parts_of_complex_tensors": """
        wholes = [lambda y: y, lambda y: y.conj(), lambda y: y.t(), lambda y: y.conj()[0], lambda y: torch._neg_view(y), lambda y: y.diagonal(), lambda y: y[0:1].conj()]
        parts = [lambda v: v.real, lambda v: v.imag, lambda v: torch.view_as_real(v.resolve_conj()), lambda v: torch.view_as_real(v.resolve_conj())[..., 0], lambda v: torch.view_as_complex(torch.view_as_real(v.resolve_conj()))]
        changes = [lambda p: p.mul_(3), lambda p: p.__iadd__(2.5), lambda p: p.copy_(torch.arange(p.numel()).reshape(p.shape)), lambda p: p.copy_(torch.ones(p.shape, dtype=torch.bool)), lambda p: p.exp_(), lambda p: p.copy_(torch.linspace(0, 1, p.numel()).reshape(p.shape).requires_grad_()), lambda p: p.__setitem__((..., 0), 5)]
        for whole in wholes:
            for part in parts:
                for change in changes:
                    w = torch.tensor([[1+2j, 3-1j], [0.5j, -2+0j]], dtype=torch.complex128, requires_grad=True)
                    y = w * 1
                    v = whole(y)
                    p = part(v)
                    change(p)
                    show(y, y.grad_fn, v, v.grad_fn, p, p.grad_fn, y._version)
                    g, = torch.autograd.grad((y * y.conj() * torch.arange(1, 5).reshape(2, 2)).real.sum() + y.sum().imag, w, create_graph=True)
                    raises(lambda: show(g, torch.autograd.grad((g.abs() ** 2).sum(), w, allow_unused=True)))
    """,
}

test_changed_views = program_test(PROGRAMS, "parts_of_complex_tensors")
