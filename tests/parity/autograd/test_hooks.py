"""Hooks: the times, the order, the arguments and the permitted results of their calls."""

import pytest

torch = pytest.importorskip("torch")

from tests.parity.programs import program_test

PROGRAMS = {
    "hooks that are kept": """
        x = torch.ones(2, requires_grad=True)
        show(x._post_accumulate_grad_hooks, x._backward_hooks)
        after, before = x.register_post_accumulate_grad_hook(lambda t: None), x.register_hook(lambda g: None)
        show(len(x._post_accumulate_grad_hooks), after.id in x._post_accumulate_grad_hooks, len(x._backward_hooks))
        after.remove()
        show(len(x._post_accumulate_grad_hooks), (x * 2)._post_accumulate_grad_hooks)
    """,
    "tensor_hook": """
        x = torch.tensor([1., 2.], requires_grad=True)
        log = []
        h = x.register_hook(lambda g: log.append(('x', g)))
        y = x * 2
        y.register_hook(lambda g: log.append(('y', g)))
        y.sum().backward()
        show(log, x.grad)
        h.remove()
        del log[:]
        (x * 3).sum().backward()
        show(log, x.grad)
    """,
    "tensor_hook_replaces": """
        x = torch.tensor([1., 2.], requires_grad=True)
        y = x * 2
        y.register_hook(lambda g: g * 10)
        y.register_hook(lambda g: g + 1)
        y.sum().backward()
        show(x.grad)
        x.register_hook(lambda g: g * 100)
        (x * 1).sum().backward()
        show(x.grad)
    """,
    "tensor_hook_order": """
        x = torch.tensor([1., 2.], requires_grad=True)
        log = []
        y = x * 2
        for n in range(3):
            y.register_hook(lambda g, n=n: log.append(n))
        z = y * 3
        z.register_hook(lambda g: log.append('z'))
        z.sum().backward()
        show(log)
    """,
    "tensor_hook_on_accumulated_gradient": """
        x = torch.tensor([1., 2.], requires_grad=True)
        log = []
        y = x * 2
        y.register_hook(lambda g: log.append(g))
        (y * 3 + y * 4).sum().backward()
        show(log, x.grad)
    """,
    "tensor_hook_wrong_results": """
        x = torch.tensor([1., 2.], requires_grad=True)
        def run(result):
            y = x * 2
            y.register_hook(lambda g: result)
            y.sum().backward()
        raises(run, torch.ones(3))
        raises(run, torch.ones(2, dtype=torch.float64))
        raises(run, 5)
        raises(run, None)
        show(x.grad)
        def fail(g): raise ValueError('from the hook')
        y = x * 2
        y.register_hook(fail)
        raises(lambda: y.sum().backward())
    """,
    "tensor_hook_needs_grad": """
        raises(lambda: torch.ones(2).register_hook(print))
        with torch.no_grad():
            y = torch.ones(2, requires_grad=True) * 2
        raises(lambda: y.register_hook(print))
        raises(lambda: torch.ones(2, requires_grad=True).register_hook(5))
    """,
    "tensor_hook_does_not_fire_when_not_needed": """
        x = torch.tensor([1., 2.], requires_grad=True)
        w = torch.tensor([1., 2.], requires_grad=True)
        log = []
        x.register_hook(lambda g: log.append('x'))
        w.register_hook(lambda g: log.append('w'))
        y = x * w
        y.register_hook(lambda g: log.append('y'))
        show(torch.autograd.grad(y.sum(), w, retain_graph=True), log)
        y.sum().backward(inputs=[x])
        show(log)
    """,
    "hooks_of_grad_inputs": """
        x = torch.tensor([1., 2.], requires_grad=True)
        x.register_hook(lambda g: g * 10)
        y = x * 2
        y.register_hook(lambda g: g * 100)
        z = (y * 3).sum()
        show(torch.autograd.grad(z, [x, y]), x.grad)
    """,
    "remove_during_backward": """
        x = torch.tensor([1., 2.], requires_grad=True)
        log = []
        y = x * 2
        def first(g):
            log.append('first')
            handle.remove()
        y.register_hook(first)
        handle = y.register_hook(lambda g: log.append('second'))
        y.sum().backward(retain_graph=True)
        show(log)
        y.sum().backward()
        show(log)
    """,
    "handle": """
        x = torch.tensor([1., 2.], requires_grad=True)
        log = []
        with x.register_hook(lambda g: log.append('x')) as handle:
            (x * 2).sum().backward()
        (x * 2).sum().backward()
        show(log, type(handle))
        handle.remove()
        handle.remove()
    """,
    "retain_grad_and_hooks": """
        x = torch.tensor([1., 2.], requires_grad=True)
        y = x * 2
        y.register_hook(lambda g: g * 2)
        y.retain_grad()
        y.register_hook(lambda g: g * 5)
        y.sum().backward()
        show(y.grad, x.grad)
    """,
    "hook_then_inplace": """
        x = torch.tensor([1., 2.], requires_grad=True)
        log = []
        y = x * 2
        y.register_hook(lambda g: log.append(('before', g)))
        y.mul_(3)
        y.register_hook(lambda g: log.append(('after', g)))
        y.sum().backward()
        show(log, x.grad)
    """,
    "retain_grad_then_inplace": """
        x = torch.tensor([1., 2.], requires_grad=True)
        y = x * 2
        y.retain_grad()
        y.mul_(3)
        y.sum().backward()
        show(y.grad, x.grad)
        y = x * 2
        y.retain_grad()
        v = y[:1]
        v.mul_(7)
        y.sum().backward()
        show(y.grad, x.grad)
    """,
    "hook_on_view_then_inplace_on_base": """
        x = torch.tensor([1., 2.], requires_grad=True)
        log = []
        y = x * 2
        v = y[:1]
        v.register_hook(lambda g: log.append(('view', g)))
        y.mul_(3)
        v.register_hook(lambda g: log.append(('view after', g)))
        (y.sum() + v.sum()).backward()
        show(log, x.grad)
    """,
    "node_hook": """
        x = torch.tensor([1., 2.], requires_grad=True)
        w = torch.tensor([3., 4.], requires_grad=True)
        log = []
        y = x * w
        h = y.grad_fn.register_hook(lambda gi, go: log.append((gi, go)))
        y.sum().backward()
        show(log, type(h))
        h.remove()
    """,
    "node_hook_replaces": """
        x = torch.tensor([1., 2.], requires_grad=True)
        w = torch.tensor([3., 4.], requires_grad=True)
        y = x * w
        y.grad_fn.register_hook(lambda gi, go: (gi[0] * 10, gi[1] * 100))
        y.sum().backward()
        show(x.grad, w.grad)
        y = x * w
        y.grad_fn.register_hook(lambda gi, go: (None, gi[1]))
        y.sum().backward()
        show(x.grad, w.grad)
    """,
    "node_hook_wrong": """
        x = torch.tensor([1., 2.], requires_grad=True)
        w = torch.tensor([3., 4.], requires_grad=True)
        def run(result):
            y = x * w
            y.grad_fn.register_hook(lambda gi, go: result)
            y.sum().backward()
        raises(run, (torch.ones(2),))
        raises(run, (torch.ones(3), torch.ones(2)))
        raises(run, 5)
        raises(run, (1, 2))
        raises(run, None)
    """,
    "node_hook_with_none": """
        x = torch.tensor([1., 2.], requires_grad=True)
        w = torch.tensor([3., 4.])
        log = []
        y = x * w
        y.grad_fn.register_hook(lambda gi, go: log.append((gi, go)))
        y.sum().backward()
        a, b = torch.arange(4.).requires_grad_().chunk(2)
        a.grad_fn.register_hook(lambda gi, go: log.append((gi, go)))
        b.sum().backward()
        show(log)
    """,
    "node_prehook": """
        x = torch.tensor([1., 2.], requires_grad=True)
        log = []
        y = x * 2
        h = y.grad_fn.register_prehook(lambda go: log.append(go))
        y.sum().backward()
        show(log)
        h.remove()
        z = x * 2
        z.grad_fn.register_prehook(lambda go: (go[0] * 10,))
        z.sum().backward()
        show(x.grad)
        def run(result):
            z = x * 2
            z.grad_fn.register_prehook(lambda go: result)
            z.sum().backward()
        raises(run, (torch.ones(2), torch.ones(2)))
        raises(run, 5)
        raises(run, (torch.ones(3),))
    """,
    "order_of_all": """
        x = torch.tensor([1., 2.], requires_grad=True)
        log = []
        y = x * 2
        y.grad_fn.register_hook(lambda gi, go: log.append('post'))
        y.grad_fn.register_prehook(lambda go: log.append('pre'))
        y.register_hook(lambda g: log.append('tensor'))
        y.retain_grad()
        y.register_hook(lambda g: log.append('tensor 2'))
        y.grad_fn.register_prehook(lambda go: log.append('pre 2'))
        x.register_hook(lambda g: log.append('leaf'))
        x.register_post_accumulate_grad_hook(lambda p: log.append(('accumulated', p.grad)))
        node = y.grad_fn.next_functions[0][0]
        node.register_hook(lambda gi, go: log.append(('leaf post', gi, go)))
        node.register_prehook(lambda go: log.append(('leaf pre', go)))
        y.sum().backward()
        show(log)
    """,
    "post_accumulate": """
        x = torch.tensor([1., 2.], requires_grad=True)
        log = []
        def step(p):
            log.append((p is x, p.grad))
            with torch.no_grad():
                p -= 0.1 * p.grad
            p.grad = None
        h = x.register_post_accumulate_grad_hook(step)
        (x * x).sum().backward()
        show(log, x, x.grad)
        h.remove()
        (x * x).sum().backward()
        show(x.grad)
        raises(lambda: (x * 2).register_post_accumulate_grad_hook(step))
        raises(lambda: torch.ones(2).register_post_accumulate_grad_hook(step))
    """,
    "post_accumulate_returns": """
        x = torch.tensor([1., 2.], requires_grad=True)
        x.register_post_accumulate_grad_hook(lambda p: 5)
        raises(lambda: (x * x).sum().backward())
        torch.autograd.grad((x * x).sum(), x)
    """,
    "order_of_nodes": """
        x = torch.tensor([1., 2.], requires_grad=True)
        log = []
        def named(t, name):
            t.register_hook(lambda g: log.append(name))
            return t
        a = named(x * 2, 'a')
        b = named(x * 3, 'b')
        c = named(a + 1, 'c')
        d = named(b * a, 'd')
        e = named(c * d, 'e')
        e.sum().backward()
        show(log, x.grad)
    """,
    "order_of_nodes_late_creation": """
        x = torch.tensor([1., 2.], requires_grad=True)
        w = torch.tensor([1., 2.], requires_grad=True)
        log = []
        x.register_hook(lambda g: log.append('x'))
        w.register_hook(lambda g: log.append('w'))
        a = x.exp(); a.register_hook(lambda g: log.append('a'))
        b = w.exp(); b.register_hook(lambda g: log.append('b'))
        c = a.sin(); c.register_hook(lambda g: log.append('c'))
        d = b.sin(); d.register_hook(lambda g: log.append('d'))
        (d.sum() * c.sum()).backward()
        show(log)
        del log[:]
        a = x.exp(); a.register_hook(lambda g: log.append('a'))
        b = w.exp(); b.register_hook(lambda g: log.append('b'))
        d = b.sin(); d.register_hook(lambda g: log.append('d'))
        c = a.sin(); c.register_hook(lambda g: log.append('c'))
        (d.sum() * c.sum()).backward()
        show(log)
    """,
    "order_of_post_hooks": """
        x = torch.tensor([1., 2.], requires_grad=True)
        w = torch.tensor([1., 2.], requires_grad=True)
        log = []
        def watch(t, name):
            t.grad_fn.register_hook(lambda gi, go: log.append(name))
            return t
        a = watch(x.exp(), 'a')
        b = watch(w.sin(), 'b')
        c = watch(a * b, 'c')
        d = watch(c + a, 'd')
        e = watch(d.sum(), 'e')
        f = watch(b.sum(), 'f')
        g = watch(e * f, 'g')
        g.backward()
        show(log)
    """,
    "hook_with_create_graph": """
        x = torch.tensor([1., 2.], requires_grad=True)
        log = []
        y = x ** 3
        y.register_hook(lambda g: log.append((g.requires_grad, torch.is_grad_enabled())))
        x.register_hook(lambda g: log.append((g.requires_grad, torch.is_grad_enabled())))
        y.sum().backward(retain_graph=True)
        show(log)
        del log[:]
        g, = torch.autograd.grad(y.sum(), x, create_graph=True)
        show(log, g)
    """,
    "backward_inside_hook": """
        x = torch.tensor([1., 2.], requires_grad=True)
        w = torch.tensor([1., 2.], requires_grad=True)
        y = x * 2
        def inner(g):
            with torch.enable_grad():
                (w * g).sum().backward()
        y.register_hook(inner)
        y.sum().backward()
        show(x.grad, w.grad)
    """,
    "change_gradient_in_place_in_hook": """
        x = torch.tensor([1., 2.], requires_grad=True)
        y = x * 2
        y.register_hook(lambda g: g.clone().mul_(4))
        y.backward(torch.ones(2))
        show(x.grad)
    """,
    "multi_grad_hook": """
        x = torch.tensor([1., 2.], requires_grad=True)
        w = torch.tensor([3., 4.], requires_grad=True)
        log = []
        a, b = x * 2, w * 2
        h = torch.autograd.graph.register_multi_grad_hook((a, b), lambda grads: log.append(grads))
        (a * b).sum().backward(retain_graph=True)
        show(log)
        a.sum().backward()
        show(log[1:])
        h.remove()
        log.clear()
        c, d = x * 2, w * 2
        torch.autograd.graph.register_multi_grad_hook((c, d), lambda g: log.append(g), mode='any')
        (c * d).sum().backward()
        show(log)
    """,
    "hooks_of_requires_grad_changes": """
        x = torch.tensor([1., 2.], requires_grad=True)
        log = []
        x.register_hook(lambda g: log.append('x'))
        x.requires_grad_(False)
        w = torch.ones(2, requires_grad=True)
        (x * w).sum().backward()
        x.requires_grad_(True)
        (x * w).sum().backward()
        show(log, x.grad)
    """,
    "backward_hooks_attribute": """
        x = torch.tensor([1., 2.], requires_grad=True)
        show(x._backward_hooks)
        h = x.register_hook(lambda g: None)
        show(len(x._backward_hooks))
        h.remove()
        show(len(x._backward_hooks))
    """,
    "module_hooks": """
        torch.manual_seed(0)
        layer = torch.nn.Linear(3, 2)
        log = []
        layer.register_forward_pre_hook(lambda m, args: log.append(('pre', args)))
        layer.register_forward_hook(lambda m, args, out: log.append(('post', out)))
        layer.register_full_backward_hook(lambda m, gi, go: log.append(('back', gi, go)))
        layer.register_full_backward_pre_hook(lambda m, go: log.append(('back pre', go)))
        x = torch.ones(4, 3, requires_grad=True)
        y = layer(x)
        y.sum().backward()
        show(log, x.grad, graph(y))
    """,
    "accumulate_node_hooks_last": """
        x = torch.tensor([1., 2.], requires_grad=True)
        log = []
        node = (x * 1).grad_fn.next_functions[0][0]
        node.register_hook(lambda gi, go: log.append(('post', gi, go, x.grad)))
        node.register_prehook(lambda go: log.append(('pre', go, x.grad)))
        x.register_hook(lambda g: log.append(('tensor', g)))
        (x * 5).sum().backward()
        show(log, x.grad)
    """,
    "whether_what_a_backward_calls_records": """
        import warnings
        warnings.simplefilter('ignore')
        def note(name): show(name, torch.is_grad_enabled())
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a):
                note('forward')
                return a * a
            @staticmethod
            def backward(ctx, g):
                note('backward')
                torch.autograd.Variable._execution_engine.queue_callback(lambda: note('callback'))
                return g
        for create_graph in (False, True):
            x = torch.ones(2, requires_grad=True)
            x.register_hook(lambda g: note('leaf'))
            x.register_post_accumulate_grad_hook(lambda t: note('accumulated'))
            accumulator = (x * 1).grad_fn.next_functions[0][0]
            accumulator.register_prehook(lambda *grads: note('before accumulation'))
            accumulator.register_hook(lambda *grads: note('after accumulation'))
            y = F.apply(x)
            y.register_hook(lambda g: note('tensor'))
            y.grad_fn.register_prehook(lambda *grads: note('before node'))
            y.grad_fn.register_hook(lambda *grads: note('after node'))
            y.retain_grad()
            y.sum().backward(create_graph=create_graph)
            note('outside')
            with torch.no_grad():
                F.apply(x)
                (x.detach().requires_grad_() * 2).requires_grad_().sum().backward()
                note('outside, not recording')
            def fail(g): raise ValueError('hook')
            z = x * 2
            z.register_hook(fail)
            raises(z.sum().backward)
            note('after an error')
    """,
    "one_tensor_for_one_gradient": """
        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a): return a * 2
            @staticmethod
            def backward(ctx, g): return g.mul_(2)
        a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
        seen = []
        for leaf in (a, b):
            leaf.register_hook(lambda g: seen.append(g))
        one, two = torch.autograd.grad((a + b).sum(), [a, b])
        show(seen[0] is seen[1], one is two, one is seen[0])
        one.add_(1)
        show(seen[0]._version, two)
        g = torch.ones(2)
        show(torch.autograd.grad(a + 1, a, g)[0] is g, torch.autograd.grad(Twice.apply(b), b, g)[0] is g, g, g._version)
        c = torch.ones(2, requires_grad=True)
        c.register_hook(lambda g: g.mul_(3) and None)
        torch.autograd.grad(c.view(2), c, g)
        show(g, g._version)
        c.backward(c.detach())
        show(c, c._version, c.grad is c, c.grad)
        empty = torch.empty(0, 3, requires_grad=True)
        empty.register_hook(lambda g: g.mul_(2))
        empty.sum().backward()
        show(empty.grad)
    """,
}

test_program_shows_the_same = program_test(PROGRAMS)
