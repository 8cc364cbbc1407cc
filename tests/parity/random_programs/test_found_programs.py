"""Rules of autograd that random programs have violated, each as a small program."""

import pytest

pytest.importorskip("torch")

from tests.parity.programs import program_test

PROGRAMS = {
    "errors_about_changed_results_name_the_type": """
        for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128):
            x = torch.ones(2, dtype=dtype, requires_grad=True)
            y = x.sqrt()
            y.mul_(2)
            raises(lambda: y.abs().sum().backward())
    """,
    "second_derivatives_of_losses_at_their_limit": """
        for loss, limit in ((torch.nn.functional.smooth_l1_loss, "beta"), (torch.nn.functional.huber_loss, "delta")):
            for size in (0.5, 1.0):
                x = torch.tensor([-1.0, -0.5, 0.25, 0.5, 1.0], requires_grad=True)
                y = torch.zeros(5, requires_grad=True)
                grads = torch.autograd.grad(loss(x, y, reduction="sum", **{limit: size}), (x, y), create_graph=True)
                show(*map(torch.detach, grads), *torch.autograd.grad((grads[0] * torch.arange(5.0)).sum(), (x, y)))
    """,
    "leaf_resized_by_out_after_its_use": """
        for shape in ((2, 3), (2, 1), ()):
            leaf = torch.ones(3, requires_grad=True)
            y = leaf * 2
            with torch.no_grad():
                torch.exp(torch.zeros(shape), out=leaf)
            y.sum().backward()
            show(leaf.shape, leaf.grad)
    """,
    "root_whose_gradient_does_not_fit": """
        leaf, x = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
        y = x * 1
        y.data = torch.ones(2, 1)
        try:
            torch.autograd.backward([leaf, y], [torch.ones(3), torch.ones(2, 1)])
        except RuntimeError:
            show(leaf.grad)
    """,
    "products_of_booleans": """
        for left, right in (((0, 3), (3, 0)), ((2, 0), (0, 2)), ((2, 2, 0), (2, 0, 1)), ((0, 3), (3,)), ((0,), (0,))):
            raises(lambda: torch.matmul(torch.ones(left).bool(), torch.ones(right).bool()))
        raises(lambda: torch.nn.functional.linear(torch.ones(0, 3).bool(), torch.ones(0, 3).bool()))
    """,
    "index_out_of_bounds_of_no_elements": """
        x = torch.empty(0, 3)
        raises(lambda: x.data.index_put_((torch.tensor([0]),), x))
    """,
    "integers_have_no_history": """
        x = torch.tensor([1.5, 2.5], requires_grad=True)
        for convert in (lambda a: a.long(), lambda a: a.bool(), lambda a: a.to(torch.int32)):
            show(convert(x), convert(x[:1]), torch.vmap(convert)(x), torch.vmap(torch.func.grad(lambda a: a * convert(a)))(x))
            show(torch.func.jvp(lambda a: a * convert(a), (x.detach(),), (torch.ones(2),)))
    """,
    "leaf_that_is_a_view": """
        whole = torch.zeros(4)
        leaf = whole.view(2, 2).requires_grad_()
        raises(lambda: leaf[0].mul_(2))
        raises(lambda: leaf.view(-1).add_(1))
        whole.mul_(2)
        show(leaf.is_leaf, leaf.requires_grad, whole.requires_grad)
        with torch.no_grad():
            part = leaf[0]
        show(part.requires_grad, (part * 2).requires_grad)
    """,
    "integers_changed_by_what_requires_grad": """
        x = torch.tensor([0.5, 3.0], requires_grad=True)
        for change in ("fill_", "gt_"):
            n = torch.tensor([2, 1])
            getattr(n, change)(x.sum())
            show(n.detach())
        n = torch.tensor([2, 1])
        n[[0]] = x[1]
        show(n.detach())
        raises(lambda: n.index_copy_(0, torch.tensor([0]), x[:1]))
    """,
    "accumulation_into_what_the_user_gave": """
        x = torch.ones(2, requires_grad=True)
        given = torch.zeros(2, requires_grad=True)
        x.grad = given
        (x * 2).sum().backward()
        show(given, x.grad is given)
        x.grad = given * 1
        kept = x.grad
        (x * 2).sum().backward()
        show(kept, x.grad is kept)
    """,
    "requires_grad_of_what_has_a_history": """
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        def switch(value):
            y.requires_grad = value
        raises(switch, True)
        raises(switch, False)
        show(y.requires_grad_() is y)
    """,
    "multi_grad_hook_on_any": """
        x, y = torch.ones(2, requires_grad=True), torch.ones(2)
        torch.autograd.graph.register_multi_grad_hook((y, x), show, mode="any")
        (x * 2).sum().backward()
    """,
    "inputs_returned_under_no_grad": """
        class Same(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, constant):
                if constant:
                    ctx.mark_non_differentiable(x)
                return x
            @staticmethod
            def backward(ctx, grad):
                return grad * 2, None
        class Dirty(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x)
                return x.mul_(2)
            @staticmethod
            def backward(ctx, grad):
                return grad * 2
        leaf = torch.ones(2, requires_grad=True)
        for x in (leaf, leaf * 1, torch.ones(2)):
            for enabled in (True, False):
                with torch.set_grad_enabled(enabled):
                    for constant in (True, False):
                        y = Same.apply(x, constant)
                        show(y is x, y.requires_grad, y.is_leaf, y._is_view(), y._version)
        for x in (leaf * 1, torch.ones(2)):
            with torch.no_grad():
                y = Dirty.apply(x)
            show(y is x, y.requires_grad, y._is_view(), y._version, x._version, x)
        raises(Dirty.apply, leaf)
        show(leaf._version)
    """,
    "hooks_of_an_accumulator_seen": """
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        y.grad_fn.next_functions[0][0].register_prehook(lambda grads: show("pre", grads))
        y.grad_fn.next_functions[0][0].register_hook(lambda inputs, grads: show("post", grads))
        (x * 3).sum().backward()
        y.sum().backward()
    """,
    "hooks_of_a_root": """
        x, other = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
        y = x * 2
        y.register_hook(lambda grad: show("y", grad))
        x.register_hook(lambda grad: show("x", grad))
        show(torch.autograd.grad(y, other, torch.ones(2), allow_unused=True, retain_graph=True))
        show(torch.autograd.grad(x, other, torch.ones(2), allow_unused=True))
        y.retain_grad()
        torch.autograd.grad(y, other, torch.ones(2), allow_unused=True, retain_graph=True)
        show(y.grad)
    """,
    "backward_from_a_view_that_nobody_recorded": """
        x = torch.ones(2, 2, requires_grad=True)
        with torch.no_grad():
            y = x.T
        show(y.requires_grad, y.is_leaf)
        raises(y.backward, torch.ones(2, 2))
        raises(torch.autograd.grad, y, x, torch.ones(2, 2))
        y.sum().backward()
        show(x.grad)
        with torch.no_grad():
            base = torch.zeros(2, requires_grad=True)
            view = base[:1]
            base.mul_(2)
            raises(view.backward, torch.ones(1))
    """,
    "gradients_enabled_within_inference_mode": """
        x = torch.ones(3, requires_grad=True)
        with torch.inference_mode(), torch.enable_grad():
            show(torch.is_grad_enabled())
            for y in (x * 2, x + x, x.sum(0), torch.stack([x, x]), x[[0]]):
                show(y.requires_grad, y.is_inference(), y.is_leaf)
            x.mul_(2)
            y = x[torch.tensor([0])]
        show(x, y)
    """,
    "batches_of_classes": """
        def classes(*size):
            return torch.zeros(size, dtype=torch.int64)
        for loss in (torch.nn.functional.nll_loss, torch.nn.functional.cross_entropy):
            raises(lambda: loss(torch.ones(2, 3, 4), classes(3, 4)))
            raises(lambda: loss(torch.ones(2, 3, 4), classes()))
            raises(lambda: loss(torch.ones(2, 3, 4), classes(2, 3)))
            raises(lambda: loss(torch.ones(2, 3, 4, 5, 6), classes(3, 4, 5, 6)))
    """,
    "inference_mode_and_transforms": """
        x = torch.ones(2, requires_grad=True)
        with torch.inference_mode():
            y = x * 2
            show(torch.func.grad(lambda a: (a * a).sum())(y), torch.func.jacrev(lambda a: a * a)(y))
            result = torch.func.vjp(lambda a: (a * a).sum(), y)[1](torch.tensor(1.0))[0]
            show(result, result.is_inference())
            for point in (x[None].detach(), y[None]):
                show(torch.func.jvp(lambda a: a.T * a, (point,), (point,))[1], torch.func.jacfwd(lambda a: a.T * a)(point))
            n = torch.zeros(4)
        raises(n.t_)
        show(n.view(torch.int32).is_inference())
    """,
    "indices_packed": """
        x = torch.arange(3.0, requires_grad=True)
        def pack(tensor):
            show("pack", tensor)
            return tensor + 0
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda packed: packed * 0):
            y = x[torch.tensor([1, 2])]
        y.sum().backward()
        show(x.grad)
        raises(lambda: y.sum().backward())
    """,
    "let_go_after_a_backward": """
        x = torch.ones(3, requires_grad=True)
        y = torch.zeros(3)
        y[1:] = x[1:]
        y.sum().backward(retain_graph=True)
        y.sum().backward()
        raises(lambda: y.sum().backward())
        y = x[[0, 1]]
        y.sum().backward()
        raises(lambda: y.sum().backward())
        raises(lambda: y.grad_fn._saved_indices)
    """,
    "out_refused_before_anything_is_computed": """
        x = torch.ones(2, 2, requires_grad=True)
        raises(lambda: torch.sum(torch.ones(2), 3, out=x))
    """,
    "jacfwd_of_a_transposed_point": """
        p = torch.arange(6.0).reshape(3, 2).t()
        def change(a):
            b = a * 1
            b[0].mul_(b[1] * 2)
            return b
        show(torch.func.jacfwd(change)(p), torch.func.jacfwd(lambda a: a.max(0).values)(p))
    """,
    "reverse_over_forward_in_place": """
        def change(a):
            b = a.clone()
            b.mul_(a)
            b[1:].mul_(b[:-1] * 1)
            return b
        x = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)
        tangent = torch.func.jvp(change, (x,), (torch.ones_like(x),))[1]
        tangent.backward(torch.ones(3))
        show(tangent, x.grad)
    """,
    "anomaly_mode_and_transforms": """
        with torch.autograd.set_detect_anomaly(True):
            show(torch.func.jacrev(torch.func.grad(lambda a: (a * a * a).sum()))(torch.ones(2)))
    """,
    "set_": """
        x, n = torch.ones(2, requires_grad=True), torch.zeros(2)
        raises(x.set_, n)
        raises(x[:1].set_, n)
        show((x * 2).set_(n), n.set_(x * 3))
    """,
    "other_dtypes": """
        single, double = torch.tensor([0.5, 1.5]), torch.tensor([1.0, 2.0], dtype=torch.float64)
        show(torch.dist(torch.tensor([1, 2]), single), torch.select_scatter(torch.zeros(2, 2), double, 0, 0))
        show(torch.cosine_similarity(single[:1], double.sum(), dim=-1))
        raises(torch.dist, single > 0, single > 0)
        raises(torch.zeros(0, 3).index_select, 0, torch.tensor([0]))
        raises(torch.zeros(0).index_select, 0, torch.tensor([0]))
    """,
}

test_rule = program_test(PROGRAMS)
