"""Private names with which programs inspect the engine, and rare calls of the engine."""
# ruff: noqa: E501

import pytest

torch = pytest.importorskip("torch")

from tests.parity.programs import program_test

PROGRAMS = {
    "delayed_errors": """
        def f(x, y, again):
            out = x.clone().view(-1)
            other = out * 2
            out += y
            return out + other if again else out
        for again in (False, True):
            x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
            bad = torch._C._functions.DelayedError("too late", 1)(y)
            raises(lambda: f(x, bad, again).sum().backward())
            raises(torch.autograd.grad, f(x, bad, again).sum(), y)
            show(torch.autograd.grad(f(x, bad, again).sum(), x), torch.autograd.grad(f(x, bad, again).sum(), (x, bad)))
        first, second = torch._C._functions.DelayedError("two", 2)(x, x * 2)
        show(first, second, first.grad_fn is second.grad_fn, first.output_nr, second.output_nr)
        show(type(first.grad_fn).__name__, first.grad_fn.name(), [type(node).__name__ for node, _ in first.grad_fn.next_functions])
        show(torch._C._functions.DelayedError("none", 1)(torch.ones(2)).requires_grad)
        raises(torch._C._functions.DelayedError("one", 1), x, x)
        Node = torch.autograd.graph.Node
        show([issubclass(each, Node) for each in (torch._C._functions.AccumulateGrad, torch._C._functions.DelayedError)])
        show(isinstance(x.clone().grad_fn.next_functions[0][0], torch._C._functions.AccumulateGrad))
    """,
    "a_backward_that_is_once_differentiable_leads_to_leaves": """
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a, b, c): return a * b
            @staticmethod
            @torch.autograd.function.once_differentiable
            def backward(ctx, g): return g * 2, None, g * 3
        def names(node):
            return node and [type(node).__name__, *(names(each) for each, _ in node.next_functions)]
        x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
        grads = torch.autograd.grad(F.apply(x, 2, y).sum(), (x, y), torch.ones((), requires_grad=True), create_graph=True)
        show(grads, [names(grad.grad_fn) for grad in grads], [grad.output_nr for grad in grads])
        raises(lambda: grads[0].sum().backward())
    """,
    "the_current_node": """
        seen = []
        def note(value):
            node = torch._C._current_autograd_node()
            seen.append(node and node.name())
            return value
        x = torch.ones(3, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(lambda value: value, note):
            y = x.sin().exp()
        x.register_hook(note)
        y.register_hook(note)
        (y * 2).sum().backward()
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, value): return value.clone()
            @staticmethod
            def backward(ctx, grad): return note(grad)
        x.register_post_accumulate_grad_hook(lambda value: note(None))
        F.apply(x.sin()).sum().backward()
        note(None)
        x.register_hook(lambda grad: torch.autograd.Variable._execution_engine.queue_callback(lambda: note(None)))
        x.backward(torch.ones(3))
        show(seen)
    """,
    "hooks_added_while_saved_tensors_are_unpacked": """
        def unpack(value):
            torch._C._current_autograd_node().register_hook(lambda inputs, outputs: tuple(each / 2 for each in inputs))
            return value
        x = torch.arange(4.0, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(lambda value: value, unpack):
            y = x.exp()
        y.sum().backward()
        show(x.grad, torch.exp(x.detach()) / 2)
    """,
    "saved_tensors_by_hand": """
        counts = [0, 0]
        def pack(value): counts[0] += 1; return value
        def unpack(value): counts[1] += 1; return value
        a = torch.tensor(2.0, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            saved = torch._C._autograd._make_saved_tensor(a, is_output=False)
            show(saved.unpack(), saved.unpack(), counts)
            b = a ** 2
        c = b.exp()
        d = c ** 2
        show(b.grad_fn._raw_saved_self.data is a, b.grad_fn._raw_saved_self.unpack_hook is unpack)
        show(c.grad_fn._raw_saved_result.data is c, c.grad_fn._raw_saved_result.unpack_hook)
        show(d.grad_fn._raw_saved_self.data is c, d.grad_fn._raw_saved_self.unpack_hook)
        raises(torch.autograd.SavedTensor)
        for hooks in ((pack,), (1, 1), (pack, unpack, pack)):
            raises(d.grad_fn._raw_saved_self.register_hooks, *hooks)
    """,
    "what_nodes_of_rare_operators_save": """
        F = torch.nn.functional
        x, image = torch.rand(3, 4, requires_grad=True), torch.ones(1, 1, 3, 4, requires_grad=True)
        for output in (torch.pdist(x, 1), torch.logit(x, 0), F.unfold(image, 2)):
            show({name: getattr(output.grad_fn, name) for name in dir(output.grad_fn) if name.startswith("_saved") and name != "_saved_self"})
        leaf = torch.zeros(2)
        leaf.copy_(x[0, :2])
        show(leaf.grad_fn.name(), type(leaf.grad_fn).__name__)
    """,
    "references_and_owners": """
        def kept():
            y = torch.ones(2, requires_grad=True) * 2
            y.retain_grad()
            return y / 2, torch._C._WeakTensorRef(y)
        z, reference = kept()
        x = torch.ones(2, requires_grad=True)
        show(reference.expired(), torch._C._WeakTensorRef(x).expired(), x._use_count())
        y = x * 2 + 1
        show(x._use_count())
        del y
        show(x._use_count())
        torch._C._set_cached_tensors_enabled(True)
        torch._C._add_cached_tensor(x)
        show(torch._C._is_cached_tensor(x), torch._C._is_cached_tensor(z))
        torch._C._remove_cached_tensor(x)
        show(torch._C._is_cached_tensor(x))
        torch._C._set_cached_tensors_enabled(False)
        def delete(): del x._grad_fn
        raises(delete)
        show((x * 2)._grad_fn.name(), x._grad_fn, torch.autograd.torch is torch)
        negative = x._neg_view()
        show(negative, negative.is_neg(), negative.grad_fn.name())
    """,
    "an_error_in_a_pack_hook_frees_the_outputs": """
        import gc, weakref
        gc.collect(); gc.disable()
        references = []
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                y = x.clone()
                ctx.save_for_backward(y)
                references.append(weakref.ref(y))
                return y
            @staticmethod
            def backward(ctx, grad): return ctx.saved_tensors[0] * grad
        x = torch.ones(3, requires_grad=True)
        torch.utils.checkpoint.checkpoint(F.apply, x, use_reentrant=False).sum().backward()
        show([reference() for reference in references])
        gc.enable()
    """,
    "hooks_after_accumulation_see_changes_of_the_gradient": """
        x = torch.ones(3, requires_grad=True)
        node = x.view_as(x).grad_fn.next_functions[0][0]
        seen = []
        def change(leaf): leaf.grad.add_(0.5)
        x.register_post_accumulate_grad_hook(change)
        node.register_hook(lambda inputs, outputs: seen.append(outputs[0].clone()))
        (x * 2).sum().backward()
        (x * 2).sum().backward()
        show(seen, x.grad)
    """,
    "unreachable_inputs_do_not_delay_hooks": """
        a, b, c = (torch.ones(2, requires_grad=True) for _ in range(3))
        x, y, z = a * 2, b * 2, c * 2
        seen = []
        torch.autograd.graph.register_multi_grad_hook((x, y, z), lambda grads: seen.append([grad is not None for grad in grads]))
        out = (y * z).sum()
        out.backward(inputs=(y, z), retain_graph=True)
        out.backward(inputs=(x,), retain_graph=True)
        out.backward(inputs=(x, z), retain_graph=True)
        torch.autograd.grad(out, (x, z), retain_graph=True, allow_unused=True)
        out.backward(inputs=(a, c), retain_graph=True)
        show(seen)
    """,
}

test_program_shows_the_same = program_test(PROGRAMS)
