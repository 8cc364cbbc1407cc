"""Rare cases of autograd: permitted and refused operations, and the messages."""
# ruff: noqa: E501

import pytest

torch = pytest.importorskip("torch")

from tests.parity.programs import program_test

PROGRAMS = {
    "inference_tensors_by_any_way": """
        leaf, plain = torch.ones(3, 4, requires_grad=True), torch.ones(3)
        with torch.inference_mode():
            for make in (
                lambda t: t.to("meta"), lambda t: t.detach().to("meta").requires_grad_()[1:], lambda t: t.detach(), lambda t: t.clone(),
                lambda t: pickle.loads(pickle.dumps(t)), lambda t: copy.deepcopy(t), lambda t: torch.from_numpy(t.detach().numpy()),
            ):
                for tensor in (leaf, plain):
                    show(make(tensor).is_inference(), make(tensor).requires_grad)
    """,
    "the_kth_among_equals": """
        for length in (1, 2, 3, 4, 5, 7, 8, 16, 33, 100, 255):
            for count in (1, 2, 5):
                row = (torch.arange(length) * 7919 % 101 % count).float()
                row[::6] = float("nan")
                for k in {1, (length + 1) // 2, length}:
                    show(torch.kthvalue(row, k))
        x = (torch.arange(60) * 7919 % 101 % 3).reshape(3, 4, 5)
        for dim in range(3):
            for dtype in (torch.int8, torch.uint8, torch.bfloat16, torch.float64):
                show(torch.kthvalue(x.to(dtype), 2, dim), torch.kthvalue(x.to(dtype), 3, dim, keepdim=True))
    """,
    "saved_tensors_detached_in_place": """
        def case(make, op, use):
            x = torch.tensor(0.5, requires_grad=True)
            y = make(x)
            z = op(y, x)
            y.detach_()
            show(y._version, y.requires_grad)
            raises(lambda: use(z, x))
        grad = lambda z, x: torch.autograd.grad(z, x)
        for make in (lambda x: x * 1, lambda x: x.exp()):
            case(make, lambda y, x: y.sin(), grad)
            case(make, lambda y, x: y * x, grad)
            case(make, lambda y, x: x * y, grad)
            case(make, lambda y, x: y ** 2, lambda z, x: torch.autograd.grad(z, x, create_graph=True))
            case(make, lambda y, x: y.sin(), lambda z, x: [torch.autograd.grad(z, x)])
        def allowed(make, op):
            x = torch.tensor(0.5, requires_grad=True)
            y = make(x)
            z = op(y, x)
            y.detach_()
            show(torch.autograd.grad(z, x), y._version)
        for make in (lambda x: x * 1, lambda x: x.exp()):
            for op in (lambda y, x: y.exp(), lambda y, x: y + 1, lambda y, x: y.detach() * x, lambda y, x: y.view(1).sin().sum()):
                allowed(make, op)
        x = torch.tensor(0.5, requires_grad=True)
        y = x * 1
        v, z = y.view(1), y.sin()
        y.detach_()
        show(v.requires_grad, v.grad_fn.name(), torch.autograd.grad(v.sum(), x), z.grad_fn._saved_self)
        y.requires_grad_()
        show(torch.autograd.grad(y.sin(), y), torch.autograd.grad((y * y).sin(), y))
    """,
    "checkpoints_unpack_once": """
        checkpoint = torch.utils.checkpoint.checkpoint
        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                ctx.save_for_backward(x, y)
                return x * y
            @staticmethod
            def backward(ctx, g):
                first, second = ctx.saved_tensors, ctx.saved_tensors
                return g * first[1], g * second[0]
        new = lambda: (torch.tensor(2., requires_grad=True), torch.tensor(3., requires_grad=True))
        raises(lambda: checkpoint(Twice.apply, *new(), use_reentrant=False).backward())
        raises(lambda: checkpoint(Twice.apply, *new(), use_reentrant=False).backward(retain_graph=True))
        raises(lambda: checkpoint(Twice.apply, *new(), use_reentrant=False, early_stop=False).backward())
        a, b = new()
        checkpoint(Twice.apply, a, b, use_reentrant=True).backward()
        show(a.grad, b.grad)
        a, b = new()
        o = checkpoint(lambda a, b: (a * b).sin() * a, a, b, use_reentrant=False)
        show(torch.autograd.grad(o, a, retain_graph=True), torch.autograd.grad(o, b, create_graph=True))
        o = checkpoint(lambda a, b: (a * b).sin(), a, b, use_reentrant=False)
        show(o.grad_fn._saved_self, o.grad_fn._saved_self)
    """,
    "batched_gradients_checked": """
        x = torch.ones(2, 2, requires_grad=True)
        g = lambda o, v: torch.autograd.grad(o, (x,), v, is_grads_batched=True)
        for o in (lambda: x.clone(), lambda: x.sum(), lambda: x[0]):
            for v in (None, torch.tensor(1.), torch.ones(0, 2, 2)):
                raises(lambda: g(o(), v))
        raises(lambda: g((x.clone(), x.sum()), (torch.ones(3, 2, 2),)))
        raises(lambda: g((x.clone(), x.sum()), (torch.ones(3, 2, 2), torch.ones(4))))
        raises(lambda: g((x.clone(), x.sum()), (torch.ones(3, 2, 2), None)))
        raises(lambda: g((x.clone(), x.sum()), (torch.ones(3, 2, 2), torch.ones(3), torch.ones(3))))
        show(g((x.clone(), x.sum()), (torch.ones(3, 2, 2), torch.ones(3))))
    """,
    "data_of_another_shape": """
        for new in (torch.ones(3), torch.ones(2, dtype=torch.double), torch.ones(2).half(), torch.tensor([5., 6.])):
            x = torch.tensor([1., 2.], requires_grad=True)
            y = (x * 3).sum()
            x.data = new.clone()
            show(x._version, x.is_leaf, x.dtype)
            y.backward()
            show(x.grad, x.grad.dtype)
    """,
    "inference_tensors_of_other_kinds": """
        with torch.inference_mode():
            d = torch.ones(2)
            p = torch.nn.Parameter(torch.ones(2))
            linear = torch.nn.Linear(2, 2)
        raises(lambda: torch.nn.Parameter(d))
        show(torch.nn.Parameter(d, requires_grad=False).is_inference(), d.data.is_inference(), p.is_inference(), p.requires_grad)
        out = linear(torch.ones(2))
        show(out.requires_grad)
        out.sum().backward()
        show(linear.weight.is_inference())
    """,
    "changed_by_itself": """
        def made():
            x = torch.tensor([1., 2., 3.], requires_grad=True)
            return x, x * 1
        for name in ('mul_', 'div_', 'pow_', 'atan2_', 'hypot_', 'xlogy_', 'remainder_', 'add_', 'sub_'):
            def gradient(change):
                x, y = made()
                change(y)
                return torch.autograd.grad(y.sum(), x)
            change = getattr(torch.Tensor, name)
            for use in (lambda y: change(y, y), lambda y: change(y[:2], y[:2]), lambda y: change(y, y).add_(1), lambda y: change(y[:2], y[1:])):
                raises(lambda: gradient(use))
            def of_view():
                x, y = made()
                v = y[:2]
                change(v, v).sum().backward()
            raises(of_view)
        raises(lambda: gradient(lambda y: y.addcmul_(y, y)))
        raises(lambda: gradient(lambda y: y.lerp_(y, y)))
        part = torch.unsafe_split(torch.ones(4, requires_grad=True) * 1, 2)[0]
        raises(lambda: part.mul_(part).sum().backward())
    """,
    "modes_and_hooks": """
        c = torch.set_grad_enabled(False)
        torch.set_grad_enabled(True)
        show(c.clone().mode, torch.is_grad_enabled())
        torch.set_grad_enabled(True)
        t = torch.ones(3, requires_grad=True)
        y = t * 1
        y.register_hook(lambda g: torch.tensor(1))
        raises(lambda: y.sum().backward())
        y = t * 1
        y.register_hook(lambda g: torch.ones(2))
        raises(lambda: y.sum().backward())
    """,
    "gradcheck_perturbs_both_ways": """
        check = torch.autograd.gradcheck
        x = torch.tensor([0.3, 0.6], dtype=torch.double, requires_grad=True)
        for fast in (True, False):
            show(check(lambda x: x * 2, x, eps=-1e-6, fast_mode=fast), check(lambda x: x.sin(), x, eps=-1e-6, fast_mode=fast))
            one = torch.ones(1, dtype=torch.double, requires_grad=True)
            raises(lambda: check(lambda x: torch.cat([x, x]) if torch.all(x >= 1) else x, (one,), fast_mode=fast))
            raises(lambda: check(lambda x: x.float() if torch.all(x >= 1) else x, (one,), fast_mode=fast))
        z = torch.tensor([0.3 + 1j], dtype=torch.cdouble, requires_grad=True)
        show(check(lambda z: z * z, z, eps=-1e-6), check(lambda z: z * z, z, eps=-1e-6, fast_mode=True))
    """,
    "sequence_numbers_set_by_the_user": """
        for number in (-1, 2**64, 1.5, "a", None):
            raises(lambda: torch.ones(2, requires_grad=True).mul(2).grad_fn._set_sequence_nr(number))
        def siblings(numbers):
            order = []
            w = torch.ones(2, requires_grad=True)
            parts = [w * i for i in (1., 2., 3., 4.)]
            for i, part in enumerate(parts):
                part.register_hook(lambda g, i=i: order.append(i))
                if numbers[i] is not None:
                    part.grad_fn._set_sequence_nr(numbers[i])
            torch.stack(parts).sum().backward()
            show(order, w.grad)
        for numbers in ((None,) * 4, (10**6, None, None, None), (3, 2, 1, 0), (0, 1, 2, 3), (5, 5, 9, 9), (0, 0, 0, 0), (2**63, 2**64 - 1, 0, 1)):
            siblings(numbers)
        for name in "abcd":
            for number in (0, 1, 10**9):
                w = torch.ones(2, requires_grad=True)
                a = w * 2
                b = a * 3
                c = b * 4
                d = a + c
                tensors = dict(a=a, b=b, c=c, d=d)
                tensors[name].grad_fn._set_sequence_nr(number)
                order = []
                for key, each in tensors.items():
                    each.register_hook(lambda g, key=key: order.append((key, g.tolist())))
                show(tensors[name].grad_fn._sequence_nr() == number, torch.autograd.grad(d.sum(), [w, b], retain_graph=True), order)
                d.sum().backward(inputs=[w])
                show(w.grad, order)
    """,
    "post_accumulate_hooks_return_nothing": """
        w = torch.ones(2, requires_grad=True)
        for result in (None, w, 3, torch.ones(3), (w,), torch.ones(2)):
            w.grad = None
            hook = w.register_post_accumulate_grad_hook(lambda p: result)
            raises(lambda: (w * 2).sum().backward())
            show(w.grad)
            hook.remove()
        first = w.register_post_accumulate_grad_hook(lambda p: torch.zeros(2))
        second = w.register_post_accumulate_grad_hook(lambda p: show(p is w, p) or w)
        raises(lambda: (w * 2).sum().backward())
        raises(lambda: torch.autograd.grad((w * 2).sum(), w))
    """,
    "checkpoints_recomputed_within_themselves": """
        checkpoints, log = torch.utils.checkpoint, []
        def checkpointed(function):
            return lambda x: checkpoints.checkpoint(function, x, use_reentrant=False)
        def named(tag, inner=None):
            def function(x):
                log.append(tag + "1")
                y = x.sin()
                if inner is not None:
                    y = inner(y)
                log.append(tag + "2")
                z = y.exp() + 1
                log.append(tag + "3")
                return z
            return function
        def differentiated(x):
            with torch.enable_grad():
                y = x.detach().requires_grad_()
                g, = torch.autograd.grad(checkpointed(named("n"))(y).sum(), y)
            return x.sin() * g
        for function in (named("o", checkpointed(named("i"))), named("o", checkpointed(named("i", checkpointed(named("j"))))), differentiated, named("o", checkpointed(differentiated))):
            for stop in (True, False):
                for options in ({}, {"create_graph": True}):
                    log.clear()
                    x = torch.tensor([.3, .5], requires_grad=True, dtype=torch.double)
                    with checkpoints.set_checkpoint_early_stop(stop):
                        y = checkpointed(function)(x)
                    show(list(log))
                    raises(lambda: show(torch.autograd.grad(y.sum(), x, **options)))
                    show(log)
    """,
    "extrema_of_nan": """
        nan = float("nan")
        for values in ([nan] * 3, [1., nan, 1.], [1., 2., 2.]):
            x = torch.tensor(values, requires_grad=True)
            for names in ({}, {"dim": 0}):
                both = x.aminmax(**names)
                show(torch.autograd.grad(both.min + both.max, x, retain_graph=True), torch.autograd.grad(both.max, x))
            show(torch.autograd.grad(x.amax(), x), torch.autograd.grad(x.max(), x))
    """,
}

test_rare_cases = program_test(PROGRAMS)
