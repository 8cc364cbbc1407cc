"""The engine: requested gradients, hooks without gradients, callbacks, nested backwards."""

import pytest

torch = pytest.importorskip("torch")

from tests.parity.programs import program_test

PROGRAMS = {
    "multi_grad_hook_all": """
        a, b, c = [torch.ones(2, requires_grad=True) for _ in range(3)]
        G = torch.autograd.graph
        log = []
        handle = G.register_multi_grad_hook((a, b, c), lambda grads: log.append(grads))
        (a * 2 + b).sum().backward()
        (a * b * c).sum().backward()
        (a + b).sum().backward(inputs=[a])
        raises(lambda: torch.autograd.grad((a * b).sum(), [a]))
        show(log)
        handle.remove()
        (a * b).sum().backward()
        show(len(log))
        y, z = a * 2, b * 3
        with G.register_multi_grad_hook((y, z), log.append):
            torch.autograd.grad((y * z).sum(), [a], retain_graph=True)
            (y * z).sum().backward()
        show(log)
        raises(lambda: G.register_multi_grad_hook([torch.ones(2)], print))
        raises(lambda: G.register_multi_grad_hook([a], print, mode='foo'))
        G.register_multi_grad_hook([], print)
    """,
    "multi_grad_hook_any": """
        a, b = [torch.ones(2, requires_grad=True) for _ in range(2)]
        log = []
        torch.autograd.graph.register_multi_grad_hook((a, b), lambda grad: log.append(grad), mode='any')
        (a * 2 + b).sum().backward()
        (b * 3).sum().backward()
        torch.autograd.grad((b * 3).sum(), b)
        show(log)
        def fail(grad): raise ValueError('from the hook')
        torch.autograd.graph.register_multi_grad_hook((a, b), fail, mode='any')
        raises(lambda: (a * b).sum().backward())
        raises(lambda: (a * b).sum().backward())
    """,
    "gradient_edges": """
        G = torch.autograd.graph
        a = torch.ones(2, requires_grad=True)
        b = torch.ones(2, requires_grad=True)
        raises(G.get_gradient_edge, torch.ones(2))
        raises(G.get_gradient_edge, 5)
        u = a * 2
        m = u.sum()
        edge = G.get_gradient_edge
        show(edge(u).node is u.grad_fn, edge(u).output_nr, edge(a).node, len(edge(a)))
        show(torch.autograd.grad(edge(m), edge(a), retain_graph=True))
        show(torch.autograd.grad(m, [edge(u), a, u], retain_graph=True))
        show(torch.autograd.grad(edge(u), a, torch.tensor([1., 2.]), retain_graph=True))
        raises(torch.autograd.grad, edge(u), a, retain_graph=True)
        raises(torch.autograd.grad, edge(u), a, torch.ones(3), retain_graph=True)
        raises(torch.autograd.grad, m, [edge(b)], retain_graph=True)
        show(torch.autograd.grad(m, [edge(b)], retain_graph=True, allow_unused=True))
        raises(torch.autograd.grad, m, [edge(b)], retain_graph=True, materialize_grads=True)
        torch.autograd.backward(m, inputs=[edge(a)], retain_graph=True)
        show(a.grad)
        torch.autograd.backward(m, inputs=[edge(u)], retain_graph=True)
        torch.autograd.backward(edge(u), torch.ones(2))
        show(a.grad)
        p, q = (a * 3).unbind()
        show([edge(q).output_nr, torch.autograd.grad(edge(q), a)])
    """,
    "wrong_arguments": """
        a = torch.ones(2, requires_grad=True)
        b = torch.ones(2, requires_grad=True)
        u = a * 2
        m = u.sum()
        G = torch.autograd
        raises(G.backward, m, inputs=[])
        raises(G.backward, m, inputs=[torch.ones(2)])
        raises(G.backward, m, inputs=[3])
        raises(G.grad, m, [3])
        raises(G.grad, 3, [a])
        raises(G.grad, [m, 3], [a])
        raises(G.backward, 3)
        raises(G.backward, [None])
        G.backward([])
        raises(G.grad, m, [])
        raises(G.grad, m, [torch.ones(2)])
        raises(G.grad, m, [b], retain_graph=True)
        raises(G.grad, [m, m], [a], grad_outputs=[torch.ones(())])
        raises(G.grad, m, [a], grad_outputs=torch.ones(2))
        raises(G.grad, m, [a], grad_outputs=3)
        raises(G.grad, m, [a], grad_outputs=torch.ones((), dtype=torch.complex64))
        show(G.grad(m, [a], grad_outputs=torch.ones((), dtype=torch.float64), retain_graph=True))
        raises(G.grad, [m, u], [a])
        raises(G.grad, (a * 1j).sum(), [a])
        raises(G.grad, m, a, materialize_grads=True, allow_unused=False)
        raises(G.backward, m, torch.ones(()), grad_variables=torch.ones(()))
        warns(lambda: G.backward(m, grad_variables=torch.ones(()), retain_graph=True))
        warns(lambda: G.grad(m, a, only_inputs=False))
        raises(G.backward, [torch.ones(1, requires_grad=True), torch.ones(1)])
        show(G.grad(u.sum(), [b], retain_graph=True, materialize_grads=True, create_graph=True))
    """,
    "batched": """
        a = torch.ones(2, requires_grad=True)
        b = torch.ones(3, requires_grad=True)
        u = a * a
        m = u.sum()
        G = torch.autograd
        show(G.grad(u, a, torch.arange(6.).reshape(3, 2), is_grads_batched=True, retain_graph=True))
        show(G.grad((u, m), a, (torch.ones(3, 2), torch.arange(3.)), is_grads_batched=True, retain_graph=True))
        raises(G.grad, m, a, torch.ones(3, 2), is_grads_batched=True, retain_graph=True)
        raises(G.grad, (u, m), a, (torch.ones(3, 2), torch.arange(2.)), is_grads_batched=True, retain_graph=True)
        raises(G.grad, u, (a, b), torch.ones(3, 2), is_grads_batched=True, retain_graph=True)
        show(G.grad(u, (a, b), torch.ones(3, 2), is_grads_batched=True, retain_graph=True, allow_unused=True))
        show(G.grad(u, (a, b), torch.ones(3, 2), is_grads_batched=True, materialize_grads=True))
        raises(m.backward)
    """,
    "hooks_where_no_gradient_arrives": """
        class Nothing(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x.clone()
            @staticmethod
            def backward(ctx, g): return None
        a = torch.ones(2, requires_grad=True)
        log = []
        y = a * 2
        z = y + 1
        z.register_hook(lambda g: log.append(('z tensor', g)))
        z.grad_fn.register_hook(lambda gi, go: log.append(('z post', gi, go)))
        z.grad_fn.register_prehook(lambda go: log.append(('z pre', go)))
        y.register_hook(lambda g: log.append(('y tensor', g)))
        y.grad_fn.register_hook(lambda gi, go: log.append(('y post', gi, go)))
        a.register_hook(lambda g: log.append(('leaf', g)))
        a.register_post_accumulate_grad_hook(lambda p: log.append(('post', p.grad)))
        acc = y.grad_fn.next_functions[0][0]
        acc.register_hook(lambda gi, go: log.append(('acc post', gi, go)))
        acc.register_prehook(lambda go: log.append(('acc pre', go)))
        y.retain_grad()
        Nothing.apply(z).sum().backward()
        show(log, a.grad, y.grad)
        y = a * 2
        y.register_hook(lambda g: torch.ones(2))
        raises(lambda: Nothing.apply(y).sum().backward())
    """,
    "hooks_of_outputs_without_gradient": """
        class Two(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): ctx.set_materialize_grads(False); return x.clone(), x * 2
            @staticmethod
            def backward(ctx, *g): log.append(g); return g[0]
        a = torch.ones(2, requires_grad=True)
        log = []
        p, q = Two.apply(a)
        p.register_hook(lambda g: log.append(('p', g)))
        q.register_hook(lambda g: log.append(('q', g)))
        p.grad_fn.register_prehook(lambda g: log.append(('pre', g)))
        p.grad_fn.register_hook(lambda g, o: log.append(('post', g, o)))
        p.retain_grad()
        q.retain_grad()
        q.sum().backward()
        show(log, p.grad, q.grad, a.grad)
        p, q = a.unbind()
        p.register_hook(lambda g: log.append(('p', g)))
        q.sum().backward()
        show(log, a.grad)
    """,
    "captured_and_hooked": """
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        z = y * 3
        y.register_hook(lambda g: g * 10)
        y.grad_fn.register_prehook(lambda g: (g[0] * 100,))
        y.retain_grad()
        show(torch.autograd.grad(z.sum(), [y, x], retain_graph=True), y.grad)
        show(torch.autograd.grad(z.sum(), [y], retain_graph=True), y.grad)
        z.sum().backward(inputs=[y])
        show(y.grad)
        z = x * 3
        log = []
        x.register_hook(lambda g: g * 10)
        node = torch.autograd.graph.get_gradient_edge(x).node
        node.register_prehook(lambda g: (g[0] * 100,))
        x.register_post_accumulate_grad_hook(lambda p: log.append(p.grad.clone()))
        show(torch.autograd.grad(z.sum(), [x], retain_graph=True), log)
        z.sum().backward(inputs=[x])
        show(x.grad, log)
    """,
    "order_of_hooks_and_inputs": """
        log = []
        a = torch.tensor([2.], requires_grad=True)
        b = a * 1
        c = b.clone()
        def note(what): return lambda *args: log.append(what)
        b.register_hook(note('b first'))
        b.retain_grad()
        b.register_hook(note('b second'))
        b.grad_fn.register_prehook(note('b pre'))
        b.grad_fn.register_hook(note('b post'))
        a.register_hook(note('a'))
        acc = b.grad_fn.next_functions[0][0]
        acc.register_prehook(note('accumulator pre'))
        acc.register_hook(note('accumulator post'))
        a.register_post_accumulate_grad_hook(note('accumulated'))
        c.sum().backward(retain_graph=True)
        show(log)
        for inputs in ([a, b], [b], [a]):
            log.clear()
            torch.autograd.grad(c.sum(), inputs, retain_graph=True)
            show(log)
            log.clear()
            c.sum().backward(inputs=inputs, retain_graph=True)
            show(log, b.grad, a.grad)
    """,
    "callbacks": """
        queue = torch.autograd.Variable._execution_engine.queue_callback
        x = torch.ones(2, requires_grad=True)
        log = []
        raises(queue, print)
        def hook(g):
            queue(lambda: log.append(('callback', x.grad.clone())))
            queue(lambda: queue(lambda: log.append('queued by a callback')))
            log.append('hook')
        y = x * 2
        y.register_hook(hook)
        y.sum().backward()
        show(log)
        y = x * 2
        y.register_hook(lambda g: queue(lambda: 1 / 0))
        raises(lambda: y.sum().backward())
        raises(queue, print)
        y = x * 2
        def fail(g): queue(lambda: log.append('never')); raise ValueError('no')
        y.register_hook(fail)
        raises(lambda: y.sum().backward())
        show(log)
    """,
    "callbacks_of_nested_backwards": """
        queue = torch.autograd.Variable._execution_engine.queue_callback
        log = []
        class Inner(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                with torch.enable_grad():
                    ctx.x = x.detach().requires_grad_()
                    ctx.y = ctx.x * ctx.x
                return ctx.y.detach()
            @staticmethod
            def backward(ctx, g):
                queue(lambda: log.append('outer callback'))
                with torch.enable_grad():
                    z = ctx.x * 3
                    z.register_hook(lambda g: queue(lambda: log.append('inner callback')))
                    z.sum().backward()
                log.append('inner done')
                return g * ctx.x.grad
        x = torch.ones(2, requires_grad=True)
        Inner.apply(x).sum().backward()
        show(log, x.grad)
    """,
    "deep_reentrance": """
        class Deep(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                with torch.enable_grad():
                    ctx.x = x.detach().requires_grad_()
                    ctx.x = ctx.x - 1
                return ctx.x.detach()
            @staticmethod
            def backward(ctx, g):
                if ctx.x < 0:
                    return g
                with torch.enable_grad():
                    Deep.apply(ctx.x).sum().backward()
                return g
        v = torch.tensor(150., requires_grad=True)
        Deep.apply(v).sum().backward()
        show(v.grad)
        class Fails(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): ctx.x = x.detach(); return x.clone()
            @staticmethod
            def backward(ctx, g):
                if ctx.x < 0: raise ValueError('at the bottom')
                with torch.enable_grad():
                    Fails.apply((ctx.x - 1).requires_grad_()).sum().backward()
                return g
        raises(lambda: Fails.apply(torch.tensor(100., requires_grad=True)).backward())
        show(torch.is_grad_enabled())
    """,
    "switches": """
        A = torch.autograd
        show(A.is_multithreading_enabled(), A.is_view_replay_enabled())
        mode = A.set_multithreading_enabled(False)
        show(A.is_multithreading_enabled())
        with A.set_multithreading_enabled(True):
            show(A.is_multithreading_enabled())
        show(A.is_multithreading_enabled())
        mode.__exit__(None, None, None)
        show(A.is_multithreading_enabled())
        raises(A.set_multithreading_enabled, 3)
        with A._force_original_view_tracking(True):
            show(A.is_view_replay_enabled())
        x = torch.ones(2)
        with A._unsafe_preserve_version_counter(x):
            x.add_(1)
        show(x._version)
        raises(A._unsafe_preserve_version_counter, 3)
        with A.enforce_grad_layout_policy(False):
            y = torch.ones(2, 3, requires_grad=True)
            (y * 2).sum().backward()
            show(y.grad)
    """,
    "variable": """
        V = torch.autograd.Variable
        x = torch.ones(2, requires_grad=True)
        show(V(x), V(x * 2, requires_grad=True), V(), isinstance(x, V), isinstance(3, V), issubclass(torch.Tensor, V))
        y = torch.ones(2)
        V(y).add_(1)
        show(y, y._version)
        raises(V, [1.])
        raises(V, torch.ones(2, dtype=torch.int64), requires_grad=True)
        raises(torch.autograd.variable, 3)
        show(torch.autograd.variable.Variable is V)
    """,
    "abstract_node": """
        Node = torch.autograd.graph.Node
        x = torch.ones(2, requires_grad=True)
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x.clone()
            @staticmethod
            def backward(ctx, g): return g
        y, z = x * 2, F.apply(x)
        show([isinstance(node, Node) for node in (y.grad_fn, z.grad_fn, y.grad_fn.next_functions[0][0], x)])
        show(issubclass(type(y.grad_fn), Node), sorted(Node.__abstractmethods__))
        raises(Node)
    """,
    "weights_are_constants": """
        F = torch.nn.functional
        def f(*shape): return torch.full(shape, .5, requires_grad=True)
        t = torch.tensor([0, 1])
        calls = [
            lambda: F.binary_cross_entropy(f(2), f(2), weight=f(2)),
            lambda: F.binary_cross_entropy_with_logits(f(2), f(2), weight=f(2)),
            lambda: F.binary_cross_entropy_with_logits(f(2), f(2), pos_weight=f(2)),
            lambda: F.nll_loss(f(2, 3), t, weight=f(3)),
            lambda: F.nll_loss(f(2, 3, 1, 1), t.view(2, 1, 1), weight=f(3)),
            lambda: F.cross_entropy(f(2, 3), t, weight=f(3)),
            lambda: F.multi_margin_loss(f(2, 3), t, weight=f(3)),
            lambda: F.soft_margin_loss(f(2), f(2)),
            lambda: F.batch_norm(f(2, 3), f(3), f(3).detach()),
            lambda: F.batch_norm(f(2, 3), f(3).detach(), f(3), training=True),
        ]
        for call in calls:
            raises(call)
            with torch.no_grad():
                show(call())
    """,
    "leaves_of_another_shape": """
        changes = [
            lambda w: w.t_(), lambda w: w.transpose_(0, 1), lambda w: w.unsqueeze_(0), lambda w: w.unsqueeze_(-1),
            lambda w: w.as_strided_((6,), (1,)), lambda w: w.as_strided_((3, 2), (2, 1)), lambda w: w.as_strided_((2, 3), (0, 1)),
            lambda w: setattr(w, 'data', torch.ones(1, 3)), lambda w: setattr(w, 'data', torch.ones(3)),
            lambda w: w.t_().t_(), lambda w: w.unsqueeze_(0).squeeze_(0),
        ]
        uses = [
            lambda w: (w * 2).sum(), lambda w: w.sum(), lambda w: (w * w.detach()).sum(), lambda w: w[0].sum(),
            lambda w: (w * 2).sum() + (-w).sum(), lambda w: (w.reshape(-1) * 2).sum(),
        ]
        ends = [
            lambda y, w: y.backward(), lambda y, w: y.backward(create_graph=True), lambda y, w: y.backward(inputs=[w]),
            lambda y, w: show(torch.autograd.grad(y, w)[0].detach()),
        ]
        for change in changes:
            for use in uses:
                for end in ends:
                    for before in (None, torch.ones(2, 3)):
                        w = torch.arange(6.0).reshape(2, 3).requires_grad_()
                        w.grad = before
                        w.register_hook(lambda grad: show(tuple(grad.shape)))
                        y = use(w)
                        with torch.no_grad():
                            change(w)
                        try:
                            end(y, w)
                        except RuntimeError as error:
                            show(str(error).partition(' ')[0])
                        if w.grad is not None:
                            show(w.grad.detach(), w.grad.stride())
    """,
    "losses_of_booleans": """
        d, a = torch.full((2, 2), .5, dtype=torch.float64, requires_grad=True), torch.tensor([[True, False], [False, True]])
        for loss in (torch.nn.functional.mse_loss, torch.nn.functional.smooth_l1_loss):
            g, = torch.autograd.grad(loss(a, d), d, create_graph=True)
            show(g.detach())
    """,
}

test_program_shows_the_same = program_test(PROGRAMS)
