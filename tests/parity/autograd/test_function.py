"""`torch.autograd.Function`: permitted and refused behaviour of custom functions."""
# ruff: noqa: E501

import pytest

torch = pytest.importorskip("torch")

from tests.parity.programs import program_test

PROGRAMS = {
    "a_changed_view_of_integers_beside_another_result": """
        class Changing(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                ctx.mark_dirty(y)
                y.zero_()
                return x * 3, y

            @staticmethod
            def backward(ctx, grad, _):
                return grad * 3, None

        for dtype in (torch.int64, torch.bool, torch.float32):
            x, y = torch.ones(3, requires_grad=True), torch.ones(3, dtype=dtype).view(-1)
            raises(lambda: show(*Changing.apply(x, y), y._version))
    """,
    "attributes": """
        class Summed(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.shape, ctx.dtype, ctx.device = x.shape, x.dtype, x.device
                ctx.edges, ctx.hooks, ctx.sequence, ctx.code, ctx.lasti, ctx.operation = 1, 2, 3, 4, 5, 6
                return x.sum(0)
            @staticmethod
            def backward(ctx, grad):
                show(ctx.shape, ctx.dtype, ctx.device)
                show(ctx.edges, ctx.hooks, ctx.sequence, ctx.code, ctx.lasti, ctx.operation)
                return grad.expand(ctx.shape)
        x = torch.ones(3, 4, dtype=torch.float64, requires_grad=True)
        Summed.apply(x).sum().backward()
        show(x.grad)
    """,
    "modes_and_names_of_nodes_in_transforms": """
        forward_ad = torch.autograd.forward_ad
        class Cube(torch.autograd.Function):
            @staticmethod
            def forward(x):
                show(forward_ad._is_fwd_grad_enabled(), torch.is_grad_enabled())
                return x ** 3
            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.save_for_backward(*inputs)
            @staticmethod
            def backward(ctx, grad):
                return grad * 3 * ctx.saved_tensors[0] ** 2
        def named(x):
            y = Cube.apply(x)
            show(y.grad_fn.name(), type(y.grad_fn).__name__, forward_ad._is_fwd_grad_enabled())
            return y
        show(torch.func.grad(named)(torch.tensor(2.)))
        show(torch.func.grad(torch.func.grad(named))(torch.tensor(2.)))
        show(named(torch.tensor(2., requires_grad=True)))
    """,
    "basic": """
        class Cube(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x ** 3
            @staticmethod
            def backward(ctx, grad):
                x, = ctx.saved_tensors
                return grad * 3 * x ** 2
        x = torch.tensor([1., 2.], requires_grad=True, dtype=torch.float64)
        y = Cube.apply(x)
        show(y, graph(y), type(y.grad_fn), y.grad_fn.name(), y.is_leaf)
        show(y.grad_fn.saved_tensors[0] is x, y.grad_fn.saved_tensors)
        y.sum().backward()
        show(x.grad)
        raises(lambda: y.sum().backward())
        raises(lambda: y.grad_fn.saved_tensors)
        g, = torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
        show(g, torch.autograd.grad(g.sum(), x))
        show(Cube.apply(torch.ones(2)).requires_grad, Cube.apply(torch.ones(2)).grad_fn)
        with torch.no_grad():
            show(Cube.apply(x).requires_grad)
    """,
    "setup_context": """
        class Scale(torch.autograd.Function):
            @staticmethod
            def forward(x, factor):
                return x * factor
            @staticmethod
            def setup_context(ctx, inputs, output):
                x, factor = inputs
                ctx.factor = factor
                ctx.save_for_backward(x, output)
            @staticmethod
            def backward(ctx, grad):
                x, output = ctx.saved_tensors
                show(x, output, ctx.needs_input_grad)
                return grad * ctx.factor, None
        x = torch.tensor([1., 2.], requires_grad=True)
        y = Scale.apply(x, 3.0)
        show(y, graph(y))
        y.sum().backward()
        show(x.grad)
    """,
    "several_inputs_and_outputs": """
        class Both(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a, b, c=None):
                show(ctx.needs_input_grad)
                return a + b, a * b, 5, None
            @staticmethod
            def backward(ctx, *grads):
                show(grads)
                return grads[0], grads[1], None
        a = torch.tensor([1., 2.], requires_grad=True)
        b = torch.tensor([1., 2.])
        r = Both.apply(a, b, 'text')
        show(r, [t.output_nr for t in r[:2]], r[0].grad_fn is r[1].grad_fn, r[1].requires_grad)
        r[1].sum().backward()
        show(a.grad)
    """,
    "materialize": """
        def make(on):
            class Two(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    ctx.set_materialize_grads(on)
                    return x * 1, x * 2
                @staticmethod
                def backward(ctx, a, b):
                    show(a, b)
                    return b
            return Two
        x = torch.tensor([1., 2.], requires_grad=True)
        for on in (True, False):
            a, b = make(on).apply(x)
            b.sum().backward()
        show(x.grad)
    """,
    "mark_dirty": """
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                x.mul_(2)
                ctx.mark_dirty(x)
                return x
            @staticmethod
            def backward(ctx, grad):
                return grad * 2
        x = torch.tensor([1., 2.], requires_grad=True)
        y = x * 1
        z = Double.apply(y)
        show(z is y, y, graph(y), y._version)
        y.sum().backward()
        show(x.grad)
        raises(lambda: Double.apply(x))
        v = (x * 1)[1:]
        w = Double.apply(v)
        show(w is v, graph(v), graph(v._base), v._base)
        plain = torch.ones(2)
        show(Double.apply(plain) is plain, plain, plain._version)
    """,
    "mark_dirty_not_returned": """
        class Bad(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x)
                return x * 2
            @staticmethod
            def backward(ctx, grad):
                return grad
        x = torch.tensor([1., 2.], requires_grad=True)
        raises(lambda: Bad.apply(x * 1))
    """,
    "returns_input": """
        class Same(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x
            @staticmethod
            def backward(ctx, grad):
                return grad * 7
        x = torch.tensor([1., 2.], requires_grad=True)
        y = Same.apply(x)
        show(y is x, y, graph(y), y._is_view(), y.data_ptr() == x.data_ptr())
        y.sum().backward()
        show(x.grad)
        plain = torch.ones(2)
        show(Same.apply(plain) is plain)
    """,
    "returns_view": """
        class View(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.view(-1)
            @staticmethod
            def backward(ctx, grad):
                return grad.view(2, 2)
        x = torch.ones(2, 2, requires_grad=True)
        y = View.apply(x * 1)
        show(y, graph(y), y._is_view())
        raises(lambda: y.add_(1))
    """,
    "non_differentiable": """
        class Sort(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                values, indices = x.sort()
                ctx.mark_non_differentiable(indices)
                ctx.save_for_backward(indices)
                return values, indices
            @staticmethod
            def backward(ctx, grad, unused):
                show(grad, unused)
                return torch.zeros_like(grad).scatter(0, ctx.saved_tensors[0], grad)
        x = torch.tensor([3., 1., 2.], requires_grad=True)
        v, i = Sort.apply(x)
        show(v, i, i.requires_grad, v.grad_fn.name(), i.grad_fn, i.is_leaf)
        (v * torch.arange(3.)).sum().backward()
        show(x.grad)
    """,
    "non_differentiable_float": """
        class Split(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                a, b = x * 1, x * 2
                ctx.mark_non_differentiable(b)
                return a, b
            @staticmethod
            def backward(ctx, a, b):
                show(a, b)
                return a
        x = torch.tensor([3., 1.], requires_grad=True)
        a, b = Split.apply(x)
        show(a.requires_grad, b.requires_grad)
        (a + b).sum().backward()
        show(x.grad)
    """,
    "wrong_number_of_gradients": """
        def make(result):
            class Bad(torch.autograd.Function):
                @staticmethod
                def forward(ctx, a, b):
                    return a + b
                @staticmethod
                def backward(ctx, grad):
                    return result(grad)
            return Bad
        a = torch.ones(2, requires_grad=True)
        b = torch.ones(2, requires_grad=True)
        def run(result):
            make(result).apply(a, b).sum().backward()
        raises(run, lambda g: g)
        raises(run, lambda g: (g, g, g))
        raises(run, lambda g: (g, g, None))
        raises(run, lambda g: (g, None))
        raises(run, lambda g: (g, torch.ones(3)))
        raises(run, lambda g: (g, torch.ones(1)))
        raises(run, lambda g: (g, 5))
        raises(run, lambda g: None)
        raises(run, lambda g: (g, g.double()))
        raises(run, lambda g: (g.expand(3, 2), g))
        show(a.grad, b.grad)
    """,
    "gradient_for_unneeded": """
        class Bad(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a, b):
                return a + b
            @staticmethod
            def backward(ctx, grad):
                return grad, grad
        a = torch.ones(2, requires_grad=True)
        Bad.apply(a, torch.ones(2)).sum().backward()
        show(a.grad)
        raises(lambda: Bad.apply(a, 5.0).sum().backward())
    """,
    "misuse": """
        class Old(torch.autograd.Function):
            def forward(self, x): return x * 1
            def backward(self, g): return g
        x = torch.ones(2, requires_grad=True)
        raises(lambda: Old()(x))
        raises(lambda: Old.apply(x))
        class Nothing(torch.autograd.Function):
            pass
        raises(lambda: Nothing.apply(x))
        class NoBackward(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x * 1
        y = NoBackward.apply(x)
        raises(lambda: y.sum().backward())
        class ReturnsText(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return 'a'
            @staticmethod
            def backward(ctx, g): return g
        raises(lambda: ReturnsText.apply(x))
        class Saves(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(5)
                return x * 1
            @staticmethod
            def backward(ctx, g): return g
        raises(lambda: Saves.apply(x))
        class Both(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x * 1
            @staticmethod
            def backward(ctx, g): return g
            @staticmethod
            def vjp(ctx, g): return g
        raises(lambda: Both.apply(x))
    """,
    "saved_none_and_intermediate": """
        class Half(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                mask = (x > 1)
                ctx.save_for_backward(x, None, mask)
                ctx.extra = 'anything'
                return x / 2
            @staticmethod
            def backward(ctx, g):
                show(ctx.saved_tensors, ctx.extra)
                return g / 2
        x = torch.tensor([1., 2.], requires_grad=True)
        Half.apply(x).sum().backward()
        show(x.grad)
    """,
    "saved_then_changed": """
        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x ** 2
            @staticmethod
            def backward(ctx, g):
                return g * 2 * ctx.saved_tensors[0]
        x = torch.tensor([1., 2.], requires_grad=True)
        a = x * 1
        y = Square.apply(a)
        a.add_(1)
        raises(lambda: y.sum().backward())
        class Out(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                y = x.exp()
                ctx.save_for_backward(y)
                return y
            @staticmethod
            def backward(ctx, g):
                return g * ctx.saved_tensors[0]
        y = Out.apply(x)
        show(y.grad_fn.saved_tensors[0] is y, y.grad_fn.saved_tensors[0].grad_fn is y.grad_fn)
        y.sum().backward()
        y = Out.apply(x)
        y.add_(1)
        raises(lambda: y.sum().backward())
    """,
    "saved_tensors_released_early": """
        class Once(torch.autograd.Function):
            clear_saved_tensors_on_access = True
            @staticmethod
            def forward(ctx, x, read):
                ctx.read = read
                ctx.save_for_backward(x)
                return x * 2
            @staticmethod
            def backward(ctx, grad):
                show([ctx.saved_tensors for _ in range(ctx.read)])
                return grad * 2, None
        x = torch.ones(2, requires_grad=True)
        for read in (0, 1, 2):
            y = Once.apply(x, read)
            raises(lambda: y.sum().backward(retain_graph=True))
            show(len(y.grad_fn._raw_saved_tensors))
            raises(lambda: y.sum().backward())
            raises(lambda: y.grad_fn.saved_tensors)
        class Early(Once):
            clear_saved_tensors_on_access = False
            @staticmethod
            def backward(ctx, grad):
                show(ctx.saved_tensors, ctx.maybe_clear_saved_tensors())
                raises(lambda: ctx.saved_tensors)
                return grad * 2, None
        y = Early.apply(x, 0)
        y.sum().backward(retain_graph=True)
        y.sum().backward()
        show(y.grad_fn.maybe_clear_saved_tensors())
        warns(lambda: Early.apply(x, 0).grad_fn.mark_shared_storage((x, x)))
    """,
    "gradients_in_one_list": """
        class Boxed(torch.autograd.Function):
            boxed_grads_call = True
            @staticmethod
            def forward(ctx, x):
                return x * 2, x * 3
            @staticmethod
            def backward(ctx, grads):
                show(type(grads).__name__, grads)
                result = grads[0] * 2 + grads[1] * 3
                grads.clear()
                return result
        x = torch.ones(2, requires_grad=True)
        a, b = Boxed.apply(x)
        show(torch.autograd.grad(a.sum() + b.sum(), x, retain_graph=True), torch.autograd.grad(b.sum(), x, create_graph=True))
    """,
    "once_differentiable": """
        from importlib import import_module
        once = torch.autograd.function.once_differentiable
        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x ** 2
            @staticmethod
            @once
            def backward(ctx, g):
                show(torch.is_grad_enabled())
                return g * 2 * ctx.saved_tensors[0]
        x = torch.tensor([1., 2.], requires_grad=True)
        g, = torch.autograd.grad(Square.apply(x).sum(), x, create_graph=True)
        show(g.requires_grad)
        raises(lambda: g.sum().backward())
    """,
    "grad_mode_inside": """
        class Probe(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                show(torch.is_grad_enabled(), (x * 2).requires_grad, x.requires_grad)
                return x * 2
            @staticmethod
            def backward(ctx, g):
                show(torch.is_grad_enabled(), g.requires_grad)
                return g * 2
        x = torch.tensor([1., 2.], requires_grad=True)
        Probe.apply(x).sum().backward()
        torch.autograd.grad(Probe.apply(x).sum(), x, create_graph=True)
    """,
    "keyword_arguments_and_structures": """
        class Many(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, options, flag):
                show(options, flag)
                return [x * 1, x * 2]
            @staticmethod
            def backward(ctx, a, b):
                return a + b, None, None
        x = torch.tensor([1., 2.], requires_grad=True)
        r = Many.apply(x, {'a': x}, True)
        show(type(r), r)
        raises(lambda: r[0].sum().backward())
        raises(lambda: Many.apply(x, flag=True))
    """,
    "saved_tensors_hooks_with_function": """
        log = []
        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x ** 2
            @staticmethod
            def backward(ctx, g):
                return g * 2 * ctx.saved_tensors[0]
        x = torch.tensor([1., 2.], requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: (log.append('pack'), t)[1], lambda t: (log.append('unpack'), t)[1]):
            y = Square.apply(x)
        y.sum().backward()
        show(log, x.grad)
    """,
    "hooks_on_function": """
        log = []
        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x ** 2
            @staticmethod
            def backward(ctx, g):
                log.append('backward')
                return g * 2 * ctx.saved_tensors[0]
        x = torch.tensor([1., 2.], requires_grad=True)
        y = Square.apply(x)
        y.grad_fn.register_hook(lambda gi, go: log.append(('post', gi, go)))
        y.grad_fn.register_prehook(lambda go: log.append(('pre', go)))
        y.register_hook(lambda g: log.append('tensor'))
        y.sum().backward()
        show(log, x.grad, y.grad_fn.needs_input_grad, y.grad_fn.metadata, y.grad_fn.next_functions)
    """,
    "error_in_backward": """
        class Bad(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x * 1
            @staticmethod
            def backward(ctx, g): raise KeyError('mine')
        x = torch.tensor([1., 2.], requires_grad=True)
        raises(lambda: Bad.apply(x).sum().backward())
        class Worse(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): raise KeyError('early')
            @staticmethod
            def backward(ctx, g): return g
        raises(lambda: Worse.apply(x))
        show((x * 2).requires_grad)
    """,
    "names": """
        class lower(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x * 1
            @staticmethod
            def backward(ctx, g): return g
        x = torch.tensor([1., 2.], requires_grad=True)
        y = lower.apply(x)
        show(y.grad_fn.name(), type(y.grad_fn).__name__, str(y).split('grad_fn')[1])
        show(isinstance(y.grad_fn, torch.autograd.function.BackwardCFunction), isinstance(y.grad_fn, torch.autograd.graph.Node))
    """,
    "nested_functions": """
        class Inner(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x * 2
            @staticmethod
            def backward(ctx, g): return g * 2
        class Outer(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                with torch.enable_grad():
                    z = x.detach().requires_grad_()
                    y = Inner.apply(z) ** 2
                ctx.pair = z, y
                return y.detach()
            @staticmethod
            def backward(ctx, g):
                z, y = ctx.pair
                return torch.autograd.grad(y, z, g)[0]
        x = torch.tensor([1., 2.], requires_grad=True)
        Outer.apply(x).sum().backward()
        show(x.grad)
    """,
    "no_tensor_inputs": """
        class Make(torch.autograd.Function):
            @staticmethod
            def forward(ctx, n): return torch.ones(n)
            @staticmethod
            def backward(ctx, g): return None
        y = Make.apply(3)
        show(y, y.requires_grad)
    """,
    "integer_output": """
        class Count(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return (x > 1).long()
            @staticmethod
            def backward(ctx, g): return None
        x = torch.tensor([1., 2.], requires_grad=True)
        y = Count.apply(x)
        show(y, y.requires_grad, y.grad_fn)
    """,
    "inplace_on_output": """
        class Two(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x * 1, x * 2
            @staticmethod
            def backward(ctx, a, b): return a + 2 * b
        x = torch.tensor([1., 2.], requires_grad=True)
        a, b = Two.apply(x)
        a.mul_(3)
        show(a, graph(a))
        (a + b).sum().backward()
        show(x.grad)
    """,
    "wrong_results_of_backward": """
        F = torch.autograd.Function
        x = torch.ones(2, requires_grad=True)
        def make(result, *args):
            class Odd(F):
                @staticmethod
                def forward(ctx, a, *rest): return a + 1
                @staticmethod
                def backward(ctx, g): return result(g) if callable(result) else result
            return lambda: Odd.apply(x, *args).sum().backward()
        raises(make(lambda g: g, x))
        raises(make(lambda g: (g, g, g), x))
        raises(make(lambda g: (g, g, None), x))
        raises(make(lambda g: (g, g), 3))
        raises(make(lambda g: (g, None), 3))
        raises(make(torch.ones(3)))
        raises(make(torch.ones(3, 2)))
        raises(make(torch.ones(2, dtype=torch.float64)))
        raises(make(torch.ones(2, dtype=torch.int64)))
        for wrong in (5, 'a', [torch.ones(2)], ()):
            raises(make(wrong))
        show(x.grad)
    """,
    "odd_outputs": """
        x = torch.ones(2, requires_grad=True)
        for out in (5, 'a', None, [x], {}, ()):
            class Odd(torch.autograd.Function):
                @staticmethod
                def forward(ctx, a): return out
                @staticmethod
                def backward(ctx, g): return g
            show(Odd.apply(x))
        class Mixed(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a): return a + 1, 5, None, [a * 2], torch.tensor(1)
            @staticmethod
            def backward(ctx, *g): show(g); return g[0]
        result = Mixed.apply(x)
        show(result)
        result[0].sum().backward()
    """,
    "save_for_forward": """
        x = torch.ones(2, requires_grad=True)
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a, b): ctx.save_for_forward(b); ctx.save_for_backward(a); return a + 1
            @staticmethod
            def backward(ctx, g): show(ctx.saved_tensors); return g, None
        F.apply(x, None).sum().backward()
        raises(F.apply, x, 5)
    """,
    "misuse_of_the_class": """
        x = torch.ones(2, requires_grad=True)
        AF = torch.autograd.Function
        raises(AF.apply, x)
        class OnlyForward(AF):
            @staticmethod
            def forward(ctx, a): return a + 1
        warns(lambda: str(type(OnlyForward())).startswith('<class'))
        raises(lambda: OnlyForward()(x))
        raises(lambda: OnlyForward.apply(x).sum().backward())
        class Both(OnlyForward):
            @staticmethod
            def backward(ctx, g): return g
            @staticmethod
            def vjp(ctx, g): return g
        raises(lambda: Both.apply(x).sum().backward())
        class OnlyVjp(OnlyForward):
            @staticmethod
            def vjp(ctx, g): return g * 7
        OnlyVjp.apply(x).sum().backward()
        show(x.grad)
        def forward(ctx, a): ctx.mark_dirty(5); return a
        Wrong = type(AF)('Wrong', (AF,), {'forward': staticmethod(forward)})
        try: Wrong.apply(x)
        except RuntimeError as error: show(str(error)[:48])
        show(type(AF), isinstance(AF, torch.autograd.function.FunctionMeta))
    """,
    "setup_context_binds": """
        x = torch.ones(2, requires_grad=True)
        class F(torch.autograd.Function):
            @staticmethod
            def forward(a, b=3): return a * b
            @staticmethod
            def setup_context(ctx, inputs, output): show(inputs, output); ctx.b = inputs[1]
            @staticmethod
            def backward(ctx, g): return g * ctx.b, None
        F.apply(x).sum().backward()
        F.apply(x, b=4).sum().backward()
        F.apply(b=5, a=x).sum().backward()
        show(x.grad)
        raises(lambda: F.apply(x, c=4))
        raises(lambda: F.apply())
    """,
    "dirty_views": """
        x = torch.ones(2, requires_grad=True)
        class Add(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a): a.add_(1); ctx.mark_dirty(a); return a
            @staticmethod
            def backward(ctx, g): return g * 2
        z = x * 2
        v = z[:1]
        o = Add.apply(v)
        show(o is v, o, z, z._version)
        z.sum().backward()
        show(x.grad)
        z = torch.ones(2)
        v = z[:1]
        show(Add.apply(v), z, z.requires_grad)
        class AddTo(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a, b): a.add_(b); ctx.mark_dirty(a); return a
            @staticmethod
            def backward(ctx, g): return g, g * 3
        b = torch.ones(1, requires_grad=True)
        o = AddTo.apply(v, b)
        show(o, z)
        z.sum().backward()
        show(b.grad)
        raises(Add.apply, (x * 2).unbind()[0])
        class Two(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a): a.add_(1); ctx.mark_dirty(a); return a, a * 2
            @staticmethod
            def backward(ctx, g, h): return g * 2 + h * 3
        z = x * 1
        o = Two.apply(z)
        show(o[0] is z, o)
        (o[0] + o[1]).sum().backward()
        show(x.grad)
        z = x * 1
        raises(lambda: Two.apply(z[:1]))
    """,
    "returned_views_changed": """
        x = torch.ones(2, requires_grad=True)
        class View(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a): return a.view(-1)
            @staticmethod
            def backward(ctx, g): return g * 2
        z = x * 1
        o = View.apply(z)
        raises(lambda: o.add_(1))
        z.add_(1)
        raises(lambda: o.grad_fn)
        class Views(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a): return a.view(-1), a[0]
            @staticmethod
            def backward(ctx, g, h): return g * 2
        z = x * 1
        o = Views.apply(z)
        raises(lambda: o[0].add_(1))
        z.add_(1)
        raises(lambda: o[0].grad_fn)
    """,
    "returned_twice": """
        def pair(change):
            class Pair(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    result = change(ctx, x)
                    return result, result
                @staticmethod
                def backward(ctx, first, second):
                    show(first, second)
                    return first + 10 * second
            return Pair
        def dirty(ctx, x):
            ctx.mark_dirty(x)
            return x.add_(1)
        def constant(ctx, x):
            ctx.mark_non_differentiable(x)
            return x
        def tracked(ctx, x):
            with torch.enable_grad():
                return x.detach().requires_grad_() * 3
        for change in (lambda ctx, x: x, lambda ctx, x: x * 2, dirty, constant, tracked):
            leaf = torch.tensor([1., 2.], requires_grad=True)
            for recording in (True, False) if change is not tracked else (True,):
                x = leaf * 1
                with torch.set_grad_enabled(recording):
                    a, b = pair(change).apply(x)
                show(a is b, a is x, a, b, a.output_nr, b.output_nr, a._is_view(), b._is_view())
                if a.requires_grad and recording:
                    (2 * a + 3 * b).sum().backward()
                    show(leaf.grad)
    """,
    "twice_differentiated": """
        from_function = torch.autograd.function
        x = torch.ones(2, requires_grad=True)
        class Once(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a): return a + 1
            @staticmethod
            @from_function.once_differentiable
            def backward(ctx, g): return g * 2
        seed = torch.ones(2, requires_grad=True)
        g, = torch.autograd.grad(Once.apply(x), x, seed, create_graph=True)
        show(g)
        raises(lambda: g.sum().backward())
        class Inplace(from_function.InplaceFunction):
            @staticmethod
            def forward(ctx, a): ctx.mark_dirty(a); return a.mul_(2)
            @staticmethod
            def backward(ctx, g): return g * 2
        z = x * 1
        show(Inplace.apply(z) is z, z, from_function.InplaceFunction(True).inplace)
    """,
    "every_gradient_is_looked_at": """
        class Bad(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y): return x * y
            @staticmethod
            def backward(ctx, g): return g * 2, torch.ones(7)
        a, b = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
        raises(torch.autograd.grad, Bad.apply(a, b).sum(), a)
        raises(torch.autograd.grad, Bad.apply(a * 1, b * 1).sum(), a, create_graph=True)
        y = Bad.apply(a, b)
        raises(lambda: y.sum().backward(inputs=[y]))
        show(torch.autograd.grad(Bad.apply(a, b.detach()).sum(), a))
    """,
    "a_leaf_changed_in_inference_mode_while_gradients_are_enabled": """
        class Dirty(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): ctx.mark_dirty(x); return x.add_(1)
            @staticmethod
            def backward(ctx, g): return g
        with torch.inference_mode():
            show(Dirty.apply(torch.ones(2, requires_grad=True)))
            with torch.enable_grad():
                raises(Dirty.apply, torch.ones(2, requires_grad=True))
    """,
    "pure_views": """
        class View(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, pure): ctx._is_pure_view = pure; return x.narrow(0, 0, 2)
            @staticmethod
            def backward(ctx, grad): return torch.cat([grad, grad[:1] * 0]), None
        class OfCopy(View):
            @staticmethod
            def forward(ctx, x, pure): ctx._is_pure_view = pure; return x.clone().narrow(0, 0, 2)
        class Several(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y): ctx._is_pure_view = True; return x * y
            @staticmethod
            def backward(ctx, grad): return grad, grad
        for pure in (True, False):
            for function in (View, OfCopy):
                x = torch.ones(3, requires_grad=True)
                for argument in (x * 1, x):
                    y = function.apply(argument, pure)
                    raises(lambda: y.add_(1))
                    show(y._is_view(), type(y.grad_fn).__name__)
                show(torch.autograd.grad(function.apply(x, pure).sum(), x))
        base = torch.ones(3)
        y = View.apply(base, True)
        y.add_(torch.ones(2, requires_grad=True))
        show(y.requires_grad, base.requires_grad)
        for others in ((x, x), (base.detach(), base.detach())):
            raises(Several.apply, *others)
    """,
    "marking_other_tensors_dirty": """
        for is_view in (True, False):
            class F(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    y = x.clone()
                    y = y.view_as(x) if is_view else y
                    ctx.mark_dirty(y)
                    return y
                @staticmethod
                def backward(ctx, grad): return grad
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                raises(lambda: F.apply(torch.ones(2, requires_grad=True) * 1))
            show([str(each.message) for each in caught])
    """,
    "tensors_saved_for_backward_are_not_saved_for_forward": """
        class Joined(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): ctx.save_for_backward(x); return x.clone()
            @staticmethod
            def jvp(ctx, tangent): show(len(ctx.saved_tensors)); return tangent
            @staticmethod
            def vjp(ctx, grad): show(len(ctx.saved_tensors)); return grad
        class Separate(Joined):
            @staticmethod
            def forward(x): return x.clone()
            @staticmethod
            def setup_context(ctx, inputs, output): ctx.save_for_backward(*inputs)
        for function in (Joined, Separate):
            for requires_grad in (False, True):
                x = torch.ones(2, requires_grad=requires_grad)
                with torch.autograd.forward_ad.dual_level():
                    y = function.apply(torch.autograd.forward_ad.make_dual(x, torch.ones(2)))
                    if requires_grad:
                        y.sum().backward()
        torch.func.jvp(Separate.apply, (torch.ones(2),), (torch.ones(2),))
    """,
}

test_program_shows_the_same = program_test(PROGRAMS)
