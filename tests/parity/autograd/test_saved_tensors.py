"""Saved tensors: hooks, contexts that forbid hooks, and in-place changes of saved tensors."""

import pytest

torch = pytest.importorskip("torch")

from tests.parity.programs import program_test

PROGRAMS = {
    "disabled": """
        G = torch.autograd.graph
        def hooks(): return G.saved_tensors_hooks(lambda t: t, lambda t: t)
        def inside():
            with G.disable_saved_tensors_hooks('not here'):
                with hooks(): pass
        raises(inside)
        def outside():
            with hooks():
                with G.disable_saved_tensors_hooks('not here'): pass
        raises(outside)
        def nested():
            with G.disable_saved_tensors_hooks('outer'):
                with G.disable_saved_tensors_hooks('inner'): pass
                with hooks(): pass
        raises(nested)
        @G.disable_saved_tensors_hooks('decorated')
        def function():
            with hooks(): pass
        raises(function)
        with hooks(): pass
        x = torch.ones(2, requires_grad=True)
        with G.disable_saved_tensors_hooks('no'):
            y = x * x
            y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
    """,
    "entered_by_a_hook": """
        G = torch.autograd.graph
        x = torch.ones(2, requires_grad=True)
        packed = []
        def unpack(value):
            G.saved_tensors_hooks(lambda t: (packed.append(0), t)[1], lambda t: t).__enter__()
            return value
        with G.saved_tensors_hooks(lambda t: t, unpack):
            y = x.exp()
        y.sum().backward()
        x.exp()
        show(len(packed))
    """,
    "wrong_hooks": """
        G = torch.autograd.graph
        x = torch.ones(2, requires_grad=True)
        def use(*hooks):
            with G.saved_tensors_hooks(*hooks):
                (x * x).sum().backward()
        raises(use, 1, lambda t: t)
        raises(use, lambda t: t)
        raises(use, lambda t: 1 / 0, lambda t: t)
        raises(use, lambda t: t, lambda t: 3)
        def change(t): t.mul_(2); return t
        y = x.clone()
        z = y * y
        raises(z.grad_fn._raw_saved_self.register_hooks, change, lambda t: t)
        raises(z.grad_fn._raw_saved_self.register_hooks, 5, lambda t: t)
    """,
    "whether_hooks_record": """
        enabled = torch.is_grad_enabled
        def pack(t): show('pack', enabled(), t.requires_grad, (t * 2).requires_grad); return t
        def unpack(t): show('unpack', enabled(), (t * 2).requires_grad); return t
        def computed():
            x = torch.ones(2, requires_grad=True)
            with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
                y = (torch.exp(x * x + 1, out=None) * 2).sum(dim=0)
            return x, y
        x, y = computed()
        y.backward()
        show(enabled(), x.grad)
        x, y = computed()
        torch.autograd.grad(y, x, create_graph=True)
        x, y = computed()
        y.grad_fn.next_functions[0][0].next_functions[0][0]._saved_result
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: 1 / 0):
            y = (x * x).sum()
        raises(y.backward)
        show(enabled())
    """,
    "save_on_cpu": """
        x = torch.ones(2, requires_grad=True)
        with torch.autograd.graph.save_on_cpu():
            y = x * x
        saved_self = y.grad_fn._saved_self
        show(saved_self is x, saved_self.data_ptr() == x.data_ptr(), saved_self)
        y.sum().backward()
        show(x.grad)
    """,
    "objects_that_unpack_returns": """
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y): ctx.save_for_backward(x, y); return x * 1
            @staticmethod
            def backward(ctx, g):
                x, y = ctx.saved_tensors
                show(x is a, y is b)
                return g, None
        a, b = torch.ones(2, requires_grad=True), torch.full((2,), 3.)
        part = torch.arange(3.)[1:]
        recorded = torch.full((2,), 6., requires_grad=True).exp()
        for unpacked in (b, part, recorded, recorded.detach()):
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: unpacked if t is b else t):
                product, power = a * b, a.exp()
                own = F.apply(a, b)
            show(product.grad_fn._saved_other is unpacked, product.grad_fn._saved_self is a)
            show(power.grad_fn._saved_result is power, product.grad_fn._saved_other.requires_grad)
            (own + product + power).sum().backward()
        torch.utils.checkpoint.checkpoint(F.apply, a, b, use_reentrant=False).sum().backward()
        show(a.grad)
    """,
    "raw_of_functions": """
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y): ctx.save_for_backward(x, None, y); return x * y
            @staticmethod
            def backward(ctx, g):
                x, nothing, y = ctx.saved_tensors
                show(nothing)
                return g * y, g * x
        x, y = [torch.ones(2, requires_grad=True) for _ in range(2)]
        node = F.apply(x, y).grad_fn
        raw = node._raw_saved_tensors
        show(len(raw), node.saved_tensors)
        raises(raw[1].register_hooks, lambda t: t, lambda t: t)
        raises(raw[0].register_hooks, 5, lambda t: t)
        raw[0].register_hooks(lambda t: 2 * t, lambda t: t)
        raises(raw[0].register_hooks, lambda t: t, lambda t: t)
        out = F.apply(x, y)
        out.grad_fn._raw_saved_tensors[0].register_hooks(lambda t: 2 * t, lambda t: t)
        node = out.grad_fn
        out.sum().backward()
        show(x.grad, y.grad)
        raises(lambda: node._raw_saved_tensors)
        raises(lambda: node.saved_tensors)
    """,
    "increment_version": """
        bump = torch.autograd.graph.increment_version
        x = torch.ones(2)
        bump(x)
        bump([x, x])
        show(x._version)
        raises(bump, [1])
        raises(bump, 1)
    """,
    "mutation_allowed": """
        allow = torch.autograd.graph.allow_mutation_on_saved_tensors
        a = torch.ones(2, 3, requires_grad=True)
        with allow() as ctx:
            b = a.clone()
            out = (b ** 2).sum()
            show(len(ctx.cloned), len(ctx.original))
            b.sin_()
            show(len(ctx.cloned), torch.autograd.grad(out, a))
        with allow() as ctx:
            b = torch.arange(6.).reshape(2, 3).requires_grad_()
            c = b.clone()
            view = c[0]
            out = (view ** 2).sum()
            c.sin_()
            view.cos_()
            show(torch.autograd.grad(out, b))
        with allow() as ctx:
            b = torch.arange(3.).requires_grad_()
            y = b.exp()
            y.data.zero_()
            show(torch.autograd.grad(y.sum(), b))
        with allow() as ctx:
            b = torch.arange(3.).requires_grad_()
            c = b * 1
            y = c * c
            c[0] = 7.
            z = (c * c).sum() + y.sum()
            show(torch.autograd.grad(z, b))
    """,
    "what_pack_hooks_see": """
        x = torch.ones(3, requires_grad=True)
        constant, index = torch.ones(3), torch.tensor([0, 1])
        def pack(t):
            inner = t * 2
            show(next((name for name, each in named.items() if each is t), 'another'))
            show(t.requires_grad, t.grad_fn, t.is_leaf, t._version, t._is_view(), inner.requires_grad)
            return t
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a, b, c):
                result = a * b
                ctx.save_for_backward(a, b, c, result)
                return result
            @staticmethod
            def backward(ctx, g): return g, g, g
        def hooks(): return torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t)
        node = x * 3
        view = node[:2]
        named = dict(x=x, constant=constant, index=index, node=node, view=view)
        with hooks():
            x * constant, node * x, view * view, constant[:2] * view, node * 2.0
            node.tanh(), torch.where(constant > 0, node, x), node[index]
            torch.add(node, x, alpha=2), node.max(0), torch.mul(node, node, out=None)
            named['product'] = product = F.apply(x, node, constant)
            with hooks():
                (product * product).exp_()
        functions = [each.grad_fn for each in (node * x, x.exp(), F.apply(x, node, constant), node[index])]
        functions[0]._raw_saved_self.register_hooks(pack, lambda t: t)
        functions[1]._raw_saved_result.register_hooks(pack, lambda t: t)
        functions[2]._raw_saved_tensors[1].register_hooks(pack, lambda t: t)
        functions[3]._raw_saved_indices[0].register_hooks(pack, lambda t: t)
    """,
    "packed_in_one_thread": """
        import threading
        x = torch.ones(2, requires_grad=True)
        count = []
        def pack(t): count.append(threading.current_thread()); return t
        def other():
            y = x * x
            y.mul_(2)
            y.t_()
            (y.exp() * x).sum().backward()
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
            show(len(count), x.grad)
            y = x * x
            y.mul_(x)
            y.t_()
            show(len(count))
        y.sum().backward()
        show(x.grad)
    """,
    "mutation_not_allowed": """
        allow = torch.autograd.graph.allow_mutation_on_saved_tensors
        a = torch.ones(2, 3, requires_grad=True)
        def nested():
            with allow():
                with allow(): pass
        raises(nested)
        def after():
            with allow():
                b = a.clone()
                out = (b ** 2).sum()
                b.sin_()
            out.backward()
        raises(after)
        def cleared():
            with allow() as ctx:
                b = a.clone()
                out = (b ** 2).sum()
                ctx.clear()
                out.backward()
        raises(cleared)
        def saved_before():
            b = a.clone()
            out = (b ** 2).sum()
            with allow():
                b.sin_()
                out.backward()
        raises(saved_before)
    """,
    "operands_are_saved_by_name": """
        x, y, z = (torch.tensor([a, b], dtype=torch.float64, requires_grad=True) for a, b in ((.5, .25), (.75, .5), (.1, .2)))
        seen = []
        def pack(t): seen.append(t.tolist()); return t
        for first, second in ((x, y), (x.detach(), y), (x, y.detach())):
            for name in 'atan2 hypot pow maximum fmin dot complex logaddexp xlogy outer div'.split():
                with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
                    getattr(torch, name)(first, second)
                show(name, seen)
                del seen[:]
        for name in ('addcmul', 'addcdiv', 'clamp'):
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
                getattr(torch, name)(x, y, z)
            show(name, seen)
            del seen[:]
    """,
    "a_saved_result_does_not_take_the_retained_gradient_along": """
        x = torch.ones(2, requires_grad=True)
        y = x.exp()
        result = y.grad_fn._saved_result
        y.retain_grad()
        result.mul_(2)
        show(y.retains_grad, result.retains_grad)
    """,
    "mutation_of_layout": """
        for change in (lambda b: b.t_(), lambda b: b.unsqueeze_(0), lambda b: b.squeeze_(), lambda b: b.swapaxes_(0, 1),
                       lambda b: b.set_(torch.ones(2, 3)), lambda b: b.as_strided_((3, 2), (1, 1)), lambda b: b.zero_()):
            with torch.autograd.graph.allow_mutation_on_saved_tensors() as context:
                a = torch.ones(2, 3, requires_grad=True)
                b = a.clone()
                result = (b ** 2).sum()
                show(len(list(context.tid_to_weakhandle.items())))
                change(b)
                show(len(list(context.cloned.items())))
                result.backward()
                show(a.grad, len(list(context.tid_to_weakhandle.items())))
    """,
}

test_program_shows_the_same = program_test(PROGRAMS)
