"""Operators of programs with a rule for each transform, mode and key, and the names that their rules use."""

import pytest

import adjoint as torch

functorch = torch._C._functorch
Key = torch._C.DispatchKey


def _sum_of_program():
    class Sum(torch._ops.HigherOrderOperator):
        def __call__(self, x, dim):
            return super().__call__(x, dim)

    total = Sum("total")

    @total.py_impl(functorch.TransformType.Vmap)
    def batched(interpreter, x, dim):
        if not functorch.is_batchedtensor(x):
            with interpreter.lower():
                return total(x, dim)
        whole, place = functorch.get_unwrapped(x), functorch.maybe_get_bdim(x)
        with interpreter.lower():
            result = total(whole.movedim(place, 0), dim + 1)
        return functorch._add_batch_dim(result, 0, interpreter.level())

    @total.py_impl(functorch.TransformType.Grad)
    def differentiated(interpreter, x, dim):
        level = interpreter.level()

        class SumAtLevel(torch.autograd.function._SingleLevelFunction):
            @staticmethod
            def forward(ctx, x, dim):
                ctx.shape, ctx.dim = x.shape, dim
                x = functorch._unwrap_for_grad(x, level)
                with torch.enable_grad(), interpreter.lower():
                    result = total(x, dim)
                return functorch._wrap_for_grad(result, level)

            @staticmethod
            def backward(ctx, grad):
                return grad.unsqueeze(ctx.dim).expand(ctx.shape), None

        with torch._functorch.utils.enable_single_level_autograd_function():
            return SumAtLevel.apply(x, dim)

    @total.py_impl(Key.AutogradCPU)
    def plain(x, dim):
        return torch.sum(x, dim)

    return total


def test_rules_of_transforms():
    total, x = _sum_of_program(), torch.arange(6.0).reshape(2, 3)
    assert total(x, 1).tolist() == [3.0, 12.0]
    assert torch.vmap(total, (0, None))(x, 0).tolist() == [3.0, 12.0]
    assert torch.vmap(torch.vmap(total, (0, None)), (0, None))(x.reshape(2, 3, 1), 0).tolist() == x.tolist()
    assert torch.func.grad(total)(x[0], 0).tolist() == [1.0, 1.0, 1.0]
    assert torch.vmap(torch.func.grad(total), (0, None))(x, 0).tolist() == [[1.0] * 3] * 2
    second = torch.func.grad(lambda x: torch.func.grad(lambda x: total(x.sin(), 0))(x).sum())(x[0])
    assert torch.allclose(second, -x[0].sin())


def test_rules_of_modes_and_keys():
    class Mode(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    class Twice(torch._ops.HigherOrderOperator):
        def __call__(self, x):
            return super().__call__(x)

    twice, seen = Twice("twice"), []
    with pytest.raises(NotImplementedError, match="could not find kernel for HigherOrderOperator twice"):
        twice(torch.ones(1))
    twice.py_impl(Key.CPU)(lambda x: x * 2)
    twice.fallthrough(Key.AutogradCPU)
    assert twice(torch.ones(1)).item() == 2

    @twice.py_impl(Mode)
    def in_mode(mode, x):
        seen.append(mode)
        return twice(x) + 1

    with Mode() as mode:
        assert twice(torch.ones(1)).item() == 3
    assert seen == [mode]
    assert (twice.name(), str(twice), twice.namespace) == ("twice", "twice", "higher_order")
    with pytest.raises(TypeError, match="abstract"):
        torch._ops.HigherOrderOperator("name")


def test_levels_begin_and_end_without_a_function():
    assert functorch.get_dynamic_layer_stack_depth() == 0
    numbers = (
        functorch._vmap_increment_nesting(3, "error"),
        functorch._grad_increment_nesting(),
        functorch._jvp_increment_nesting(),
    )
    assert numbers == (1, 2, 3)
    functorch.pop_dynamic_layer_stack_and_undo_to_depth(2)
    assert functorch.get_dynamic_layer_stack_depth() == 2
    functorch.pop_dynamic_layer_stack_and_undo_to_depth(0)
    assert functorch.get_dynamic_layer_stack_depth() == 0


def test_tensors_of_ended_transforms_are_unwrapped():
    unwrap, base, live = torch._functorch.utils.unwrap_dead_wrappers, torch.ones(2), torch.ones(1)
    level = functorch._grad_increment_nesting()
    try:
        dead = functorch._wrap_for_grad(base, level)
        assert not functorch.is_dead_tensor_wrapper(dead)
    finally:
        functorch._grad_decrement_nesting()
    assert functorch.is_dead_tensor_wrapper(dead)
    given = (dead, "text", live)
    found = unwrap(given)
    assert not functorch.is_dead_tensor_wrapper(found[0])
    assert found[0].tolist() == [1.0, 1.0]
    assert found[1:] == given[1:]
    assert unwrap(given[1:]) is given[1:] or unwrap(given[1:]) == given[1:]


def test_ctx_with_other_saved_tensors():
    wrapped, x = torch._functorch.autograd_function.CtxWithSavedTensors, torch.tensor(2.0, requires_grad=True)

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            inner = wrapped(wrapped(ctx, (torch.tensor(3.0),)), (torch.tensor(5.0),))
            inner.note = "set"
            assert ctx.note == "set"
            assert inner.needs_input_grad == ctx.needs_input_grad
            return grad * inner.saved_tensors[0]

    Scaled.apply(x).backward()
    assert x.grad.item() == 5

    class Taken:
        _pt_inner_ctx = None

    with pytest.raises(RuntimeError, match="name collision"):
        wrapped(Taken(), ())


@pytest.mark.parametrize(
    ("grad_bdim", "bdim", "shape", "expected"),
    [
        (1, None, None, (3, 4)),
        (None, 1, None, (3, 2, 2, 4)),
        (1, 0, None, (2, 3, 4)),
        (1, 1, (4,), (4, 2)),
        (None, None, None, (3, 2, 4)),
    ],
)
def test_gradient_of_a_batch(grad_bdim, bdim, shape, expected):
    grad = torch.arange(24.0).reshape(3, 2, 4)
    reduced = torch._functorch.autograd_function.reductify(grad, grad_bdim, bdim, 2, shape)[0]
    assert tuple(reduced.shape) == expected
    assert torch._functorch.autograd_function.reductify_leaf(None, None, 0, 2) is None


def test_excluded_keys():
    guard = torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(Key.Functionalize))
    with guard:
        assert torch._C._dispatch_tls_local_exclude_set().has(Key.Functionalize)
    assert not torch._C._dispatch_tls_local_exclude_set().has(Key.Functionalize)
    assert (int(Key.AutogradCPU) > int(Key.CPU), str(Key.CPU)) == (True, "DispatchKey.CPU")
