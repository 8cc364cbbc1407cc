"""Forward mode, `vmap` and function transforms, alone and composed, compared with finite differences, loops and each other."""

import gc

import pytest

import adjoint as torch
import adjoint.autograd.forward_ad as fwAD
from adjoint.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def scalar(x):
    return (x.sin() ** 2).sum() + x.prod()


def vector(x):
    return torch.stack([x[0] * x[1], x[1].exp(), (x * x).sum()]).tanh()


def points(*shape):
    return torch.rand(*shape, dtype=torch.float64) + 0.5


def differences(function, x, step=1e-6):
    """Return the Jacobian by central differences."""
    columns = []
    for index in range(x.numel()):
        ahead, behind = x.clone(), x.clone()
        ahead.view(-1)[index] += step
        behind.view(-1)[index] -= step
        columns.append((function(ahead) - function(behind)) / (2 * step))
    return torch.stack(columns, -1)


def assert_close(found, expected, tolerance=1e-6):
    assert found.shape == expected.shape
    assert torch.allclose(found, expected, tolerance, tolerance), f"{found}\nexpected\n{expected}"


# ---------------------------------------------------------------- forward mode


def test_the_tangent_is_the_directional_derivative():
    x, direction = points(3), points(3)
    with fwAD.dual_level():
        tangent = fwAD.unpack_dual(vector(fwAD.make_dual(x, direction))).tangent
    assert_close(tangent, differences(vector, x) @ direction)


def test_tangents_end_with_their_level():
    with fwAD.dual_level():
        dual = fwAD.make_dual(points(2), points(2))
        assert fwAD.unpack_dual(dual).tangent is not None
    with fwAD.dual_level():
        assert fwAD.unpack_dual(dual).tangent is None


def test_in_place_changes_and_views_carry_tangents_both_ways():
    x, direction = points(4), points(4)
    with fwAD.dual_level():
        base = torch.zeros(2, 2, dtype=torch.float64)
        row = base[1]
        row.copy_(fwAD.make_dual(x, direction)[:2])
        assert_close(fwAD.unpack_dual(base).tangent, torch.stack([torch.zeros(2, dtype=torch.float64), direction[:2]]))
        base.mul_(3)
        assert_close(fwAD.unpack_dual(row).tangent, 3 * direction[:2])
        row.zero_()
        assert not fwAD.unpack_dual(base).tangent.any()


def test_forward_over_reverse_is_the_hessian_times_a_vector():
    x, direction = points(3), points(3)
    x.requires_grad_()
    with fwAD.dual_level():
        dual = fwAD.make_dual(x, direction)
        (gradient,) = torch.autograd.grad(scalar(dual), dual)
        found = fwAD.unpack_dual(gradient).tangent
    assert_close(found.detach(), differences(grad(scalar), x.detach()) @ direction, 1e-5)


def test_reverse_over_forward_is_the_same():
    x, direction = points(3).requires_grad_(), points(3)
    with fwAD.dual_level():
        tangent = fwAD.unpack_dual(scalar(fwAD.make_dual(x, direction))).tangent
    (found,) = torch.autograd.grad(tangent, x)
    assert_close(found, differences(grad(scalar), x.detach()) @ direction, 1e-5)


def test_a_level_leaves_no_garbage():
    def run():
        x = points(3).requires_grad_()
        with fwAD.dual_level():
            fwAD.unpack_dual(fwAD.make_dual(x, points(3)).exp().softmax(0)).tangent.sum()

    run()
    gc.collect()
    gc.disable()
    try:
        for _ in range(5):
            run()
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_custom_functions_have_a_jvp():
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x**3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, grad_output):
            return 3 * ctx.saved_tensors[0] ** 2 * grad_output

        @staticmethod
        def jvp(ctx, tangent):
            return 3 * ctx.saved_tensors[0] ** 2 * tangent

    x = points(3)
    assert_close(jvp(Cube.apply, (x,), (torch.ones_like(x),))[1], 3 * x**2)


# ---------------------------------------------------------------- derivatives of functions


def test_gradients_agree_with_differences():
    x = points(3)
    gradient, value = grad_and_value(scalar)(x)
    assert_close(gradient, differences(scalar, x))
    assert_close(value, scalar(x))
    assert not gradient.requires_grad and not value.requires_grad


def test_jacobians_agree_with_differences_and_each_other():
    x = points(3)
    expected = differences(vector, x)
    for jacobian in (jacrev, jacfwd):
        assert_close(jacobian(vector)(x), expected)
        assert_close(jacobian(vector, chunk_size=2)(x), expected)


def test_second_derivatives_agree_however_they_are_composed():
    x = points(3)
    expected = differences(grad(scalar), x)
    for function in (
        hessian(scalar),
        jacrev(grad(scalar)),
        jacfwd(grad(scalar)),
        jacrev(jacfwd(scalar)),
        jacfwd(jacfwd(scalar)),
    ):
        assert_close(function(x), expected, 1e-5)


def test_third_derivative():
    assert_close(grad(grad(grad(lambda x: x**4)))(torch.tensor(2.0)), torch.tensor(48.0))
    assert_close(jacfwd(jacrev(jacfwd(lambda x: x**4)))(torch.tensor(2.0)), torch.tensor(48.0))


def test_a_perturbation_is_not_confused_with_another():
    """The inner derivative of `x * y` by `y` is `x`, even within a derivative by `x` (Siskind and Pearlmutter, 2005)."""
    one = torch.tensor(1.0)

    def outer(x):
        return x * jvp(lambda y: x * y, (one,), (one,))[1]

    assert jvp(outer, (torch.tensor(3.0),), (one,))[1].item() == 6
    assert grad(lambda x: x * grad(lambda y: x * y)(one))(torch.tensor(3.0)).item() == 6


def test_vjp_and_linearize_are_transposes():
    x, u, v = points(3), points(3), points(3)
    value, pull = vjp(vector, x)
    same, push = linearize(vector, x)
    assert_close(value, same)
    assert_close((push(v) * u).sum(), (pull(u)[0] * v).sum())


def _scale(x, y):
    x.mul_(y)
    return x.sin()


def _add_to_both(x, y):
    x.add_(y)
    y.mul_(x)
    return x * y


def _set_part(x, y):
    x[0] = y[1] * 2
    return x * x


def _scale_view(x, y):
    x[1:].mul_(3)
    return {"square": x**2, "other": (y, x)}


def _overwrite(x, y):
    x.zero_()
    y.copy_(y.sum() + y)
    return x + y


def _fill(x, y):
    x.masked_fill_(y > 0.5, 1.0)
    return x**3


@pytest.mark.parametrize("function", [_scale, _add_to_both, _set_part, _scale_view, _overwrite, _fill])
def test_linearize_of_functions_that_write_into_their_arguments(function):
    primals = points(3), points(3) + 1
    written, same = ([one.clone() for one in primals] for _ in range(2))
    value, push = linearize(function, *written)
    for scale in (1.0, -2.0):
        directions = points(3) * scale, points(3) + scale
        again = [one.clone() for one in primals]
        torch.testing.assert_close((value, push(*directions)), jvp(function, tuple(again), directions))
        torch.testing.assert_close(written, again)
    value, push = linearize(lambda x: linearize(function, x.clone(), same[1].clone())[0], same[0])
    expected = jvp(lambda x: function(x.clone(), same[1].clone()), (same[0],), (torch.ones(3, dtype=same[0].dtype),))
    torch.testing.assert_close((value, push(torch.ones(3, dtype=same[0].dtype))), expected)


def test_what_is_differentiated_outside_is_differentiated_through():
    weight = points(3).requires_grad_()
    gradient = grad(lambda x: (weight * x**2).sum())(points(3))
    gradient.sum().backward()
    assert weight.grad is not None
    assert_close(weight.grad, gradient.detach() / weight.detach())


# ---------------------------------------------------------------- vmap


def test_vmap_is_a_loop_over_examples():
    xs = points(4, 3)
    assert_close(vmap(vector)(xs), torch.stack([vector(x) for x in xs]))
    assert_close(vmap(vector, in_dims=1, out_dims=-1)(xs.t()), torch.stack([vector(x) for x in xs], -1))
    assert_close(vmap(vector, chunk_size=3)(xs), torch.stack([vector(x) for x in xs]))


def test_vmap_nests():
    xs, ys = points(2, 3), points(4, 3)
    products = vmap(lambda x: vmap(lambda y: (x * y).sum())(ys))(xs)
    assert_close(products, xs @ ys.t())


@pytest.mark.parametrize("derivative", [grad(scalar), hessian(scalar), jacrev(vector), jacfwd(vector)])
def test_derivatives_of_each_example(derivative):
    xs = points(4, 3)
    assert_close(vmap(derivative)(xs), torch.stack([derivative(x) for x in xs]))


def test_hessian_vector_products_of_each_example():
    xs, vs = points(4, 3), points(4, 3)
    found = vmap(lambda x, v: jvp(grad(scalar), (x,), (v,))[1])(xs, vs)
    assert_close(found, torch.stack([hessian(scalar)(x) @ v for x, v in zip(xs, vs, strict=True)]))


def test_gradients_pass_through_vmap():
    xs = points(4, 3).requires_grad_()
    vmap(grad(scalar))(xs).sum().backward()
    assert_close(xs.grad, torch.stack([hessian(scalar)(x.detach()).sum(0) for x in xs]))


def test_in_place_changes_of_examples():
    def change(x):
        y = x.clone()
        y[0] = 2.0
        y[1:].mul_(x[:-1])
        return (y * y).sum()

    xs = points(4, 3)
    assert_close(vmap(change)(xs), torch.stack([change(x) for x in xs]))
    assert_close(vmap(grad(change))(xs), torch.stack([grad(change)(x) for x in xs]))


def test_gradients_of_each_example_of_a_model():
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.Flatten(0), torch.nn.Linear(32, 3))
    parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}
    images, labels = torch.rand(5, 1, 6, 6), torch.tensor([0, 1, 2, 1, 0])

    def loss(parameters, image, label):
        return torch.nn.functional.cross_entropy(functional_call(model, parameters, (image,)), label)

    found = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, images, labels)
    for index in range(5):
        single = grad(loss)(parameters, images[index], labels[index])
        for name in parameters:
            assert_close(found[name][index], single[name], 1e-5)


def test_models_stacked_into_one():
    models = [torch.nn.Linear(3, 2) for _ in range(4)]
    parameters, buffers = stack_module_state(models)
    x = torch.rand(5, 3)
    found = vmap(lambda p, b: functional_call(models[0], (p, b), (x,)))(parameters, buffers)
    assert_close(found, torch.stack([model(x) for model in models]))


def test_random_numbers_of_examples():
    xs = torch.zeros(3, 2)

    def draw(x):
        return x + torch.rand(2)

    with pytest.raises(RuntimeError, match="called random operation while in randomness error mode"):
        vmap(draw)(xs)
    same = vmap(draw, randomness="same")(xs)
    assert (same == same[0]).all()
    different = vmap(draw, randomness="different")(xs)
    assert different.unique().numel() == 6


def test_data_dependent_control_flow_is_refused():
    with pytest.raises(RuntimeError, match="data-dependent control flow"):
        vmap(lambda x: x if x > 0 else -x)(torch.ones(3))
    with pytest.raises(RuntimeError, match=r"calling .item\(\) on a Tensor"):
        vmap(lambda x: x.item())(torch.ones(3))
    with pytest.raises(RuntimeError, match="dynamic shape"):
        vmap(lambda x: x.nonzero())(torch.ones(3, 2))


def test_modes_are_left_as_they_were_after_an_error():
    for failing in (
        lambda: vmap(lambda x: x.nonzero())(torch.ones(3, 2)),
        lambda: jvp(lambda x: 1 / 0, (torch.ones(1),), (torch.ones(1),)),
        lambda: grad(lambda x: 1 / 0)(torch.ones(1)),
    ):
        with pytest.raises((RuntimeError, ZeroDivisionError)):
            failing()
    assert torch.is_grad_enabled()
    x = torch.ones(2, requires_grad=True)
    (x * 2).sum().backward()
    assert x.grad is not None


# ---------------------------------------------------------------- compositions


def test_a_transform_under_no_grad_is_a_constant_outside():
    def outer(x):
        with torch.no_grad():
            slope = grad(lambda y: (y**3).sum())(x)
        return (slope * x).sum()

    x = points(3)
    assert_close(grad(outer)(x), 3 * x**2)


def test_results_do_not_hang_on_transforms_that_have_ended():
    x = points(3)
    found = grad(lambda x: grad(lambda y: (y**2 * x).sum())(x.detach()).sum())(x)
    assert not found.requires_grad


def test_tangents_of_changed_values_are_kept_for_backward():
    def change(x):
        y = x.clone()
        y[1:].mul_(x[:-1])
        return (y * y).sum()

    x = points(3)
    assert_close(hessian(change)(x), jacrev(jacrev(change))(x))


def test_custom_functions_that_save_outputs():
    class Exp(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x.exp()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(output)
            ctx.save_for_forward(output)

        @staticmethod
        def backward(ctx, grad_output):
            return ctx.saved_tensors[0] * grad_output

        @staticmethod
        def jvp(ctx, tangent):
            return ctx.saved_tensors[0] * tangent

    x = points(3)
    for derivative in (
        vmap(grad(grad(Exp.apply))),
        lambda x: jvp(grad(lambda x: Exp.apply(x).sum()), (x,), (torch.ones_like(x),))[1],
        lambda x: grad(lambda x: vmap(grad(Exp.apply))(x).sum())(x),
        lambda x: hessian(lambda x: Exp.apply(x).sum())(x).diagonal(),
    ):
        assert_close(derivative(x), x.exp())


@pytest.mark.parametrize(
    "read",
    [lambda x: x.tolist(), lambda x: torch.tensor([x, x]), lambda x: torch.from_dlpack(x), lambda x: torch.equal(x, x)],
)
def test_elements_of_examples_are_not_read(read):
    with pytest.raises(RuntimeError):
        vmap(read)(points(3))


def test_masks_of_dropout_differ_as_told():
    ones = torch.ones(4, 100)
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(torch.nn.functional.dropout)(ones)
    same = vmap(torch.nn.functional.dropout, randomness="same")(ones)
    assert (same == same[0]).all()
    different = vmap(torch.nn.functional.dropout, randomness="different")(ones)
    assert not (different == different[0]).all()


def test_tensors_within_transforms_are_shown_with_their_transforms():
    shown = []
    vmap(grad(lambda x: (shown.append(repr(x * 2)), x)[1]))(torch.tensor([1.0, 2.0]))
    assert shown == [
        "GradTrackingTensor(lvl=2, value=\n    BatchedTensor(lvl=1, bdim=0, value=\n        tensor([2., 4.])\n    )\n)"
    ]


def test_dimensions_rearranged_by_name():
    x = torch.arange(24).reshape(2, 3, 4)
    assert torch.equal(
        torch.func.rearrange(x, "a b (c d) -> (d b) a c", d=2),
        x.reshape(2, 3, 2, 2).permute(3, 1, 0, 2).reshape(6, 2, 2),
    )
    assert torch.equal(torch.func.rearrange(x, "a ... -> ... a"), x.permute(1, 2, 0))
    with pytest.raises(ValueError, match="only on one side"):
        torch.func.rearrange(x, "a b c -> a b")


def test_a_tangent_gets_examples_when_they_are_written_into_it():
    x, t = points(3), torch.tensor([1.0, 2.0, 3.0])
    xs = torch.stack([x, 2 * x])

    def changed(a):
        copy = a.clone()
        copy[1:].mul_(t[1:])
        return copy

    values, tangents = vmap(lambda a: jvp(changed, (a,), (t,)))(xs)
    assert_close(values, torch.stack([changed(a) for a in xs]))
    assert_close(tangents, changed(t).expand(2, 3))


def test_vjp_is_differentiated_through_where_only_its_function_ran_without_grad():
    x = torch.tensor(0.5, requires_grad=True)
    with torch.no_grad():
        value, pull = torch.func.vjp(torch.sin, x)
    (pulled,) = pull(torch.tensor(1.0))
    assert not value.requires_grad
    assert_close(torch.autograd.grad(pulled, x)[0], -x.detach().sin())


def test_max_pool1d_carries_tangents():
    rows = torch.tensor([[[1.0, 5.0, 2.0, 4.0]]])
    assert jvp(lambda r: torch.nn.functional.max_pool1d(r, 2), (rows,), (10 * rows,))[1].tolist() == [[[50.0, 40.0]]]


def test_examples_share_random_numbers_also_from_chunk_to_chunk():
    drawn = vmap(lambda x: torch.rand(2), randomness="same", chunk_size=2)(torch.zeros(5))
    assert (drawn == drawn[0]).all()


def test_rules_agree_with_one_example_at_a_time():
    a, b = points(12).reshape(2, 3, 2), points(12).reshape(2, 3, 2).sin()
    index = torch.tensor([[0, 3], [-1, 2]])
    index_of_places = torch.arange(12).reshape(2, 1, 2, 3) % 4
    for f, args in (
        (torch.pdist, (a,)),
        (torch.dist, (a, b)),
        (torch.addr, (a, a[:, :, 0], b[:, 0])),
        (lambda m, v: torch.addbmm(m, v, v), (torch.ones(2, 2, 2), torch.arange(16.0).reshape(2, 2, 2, 2))),
        (lambda x, i, s: x.put(i, s), (a, index, b[:, 0])),
        (lambda s, v: torch.searchsorted(s, v), (a[:, :, 0].sort().values, b[:, 0])),
        (lambda x: x[:, [0, 1], :, [0, 1]], (torch.arange(48.0).reshape(2, 2, 2, 3, 2),)),
        (lambda x, m, s: x.masked_scatter(m, s), (a, a > 0, b)),
        (lambda x: torch.repeat_interleave(torch.arange(3), x), (torch.tensor([[1, 2, 0], [0, 0, 3]]),)),
        (lambda x: torch.linspace(x, 1, 3), (points(2),)),
        (lambda x, i: x.index_select(0, i), (a, index % 3)),
        (lambda x, i, s: x.index_add(0, i, s, alpha=2), (a, index % 3, b[:, :2])),
        (lambda x, i, s: x.index_copy(0, i, s), (a, torch.tensor([[0, 2], [1, 0]]), b[:, :2])),
        (lambda x, i: x.index_fill(-1, i, 5.0), (a, torch.tensor([[0], [1]]))),
        (lambda i: torch.ones(3).index_fill(0, i, torch.tensor(7.0)), (index % 3,)),
        (lambda p, t: torch.nn.functional.nll_loss(p, t), (points(48).reshape(2, 1, 4, 2, 3), index_of_places)),
        (
            lambda p, t: torch.nn.functional.cross_entropy(p, t, reduction="sum"),
            (points(48).reshape(2, 1, 4, 2, 3), index_of_places),
        ),
        (
            lambda x: torch.nn.functional.interpolate(x, size=(3, 5), mode="bilinear"),
            (points(48).reshape(2, 1, 4, 2, 3),),
        ),
        (lambda x: torch.nn.functional.unfold(x, 2), (points(48).reshape(2, 2, 2, 2, 3),)),
        (lambda x: torch.nn.functional.unfold(x, 2), (points(48).reshape(2, 4, 2, 3),)),
        (lambda x: torch.nn.functional.channel_shuffle(x, 2), (points(48).reshape(2, 2, 2, 2, 3),)),
        (lambda x, y: torch.cdist(x, y, p=1.0), (a, b)),
        (lambda u, v: torch.nn.functional.bilinear(u, v, torch.ones(2, 3, 3, dtype=u.dtype)), (a.mT, b.mT)),
        (lambda m, r: torch.cholesky_solve(r, m), (a[:, :2].tril(), b[:, :2])),
    ):
        assert_close(vmap(f)(*args), torch.stack([f(*(arg[i] for arg in args)) for i in range(2)]))


def test_complex_views_of_real_tensors_are_changed_in_place():
    x = points(6).reshape(3, 2).requires_grad_()

    def turned(x):
        copy = x.clone()
        view = torch.view_as_complex(copy)
        view.mul_(1j)
        return copy**3, view.abs()

    assert torch.autograd.gradcheck(turned, (x,), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(turned, (x,))


def test_jacobians_in_forward_mode_are_differentiable_outside():
    x = points(3).requires_grad_()
    jacobian = torch.autograd.functional.jacobian(torch.sin, x, vectorize=True, strategy="forward-mode")
    (found,) = torch.autograd.grad(jacobian.sum(), x)
    assert_close(found, -x.detach().sin())


def test_a_generated_rule_pushes_tangents_forward_for_all_examples_at_once():
    calls = []

    class Product(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, y):
            return x * y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_forward(*inputs)
            ctx.save_for_backward(*inputs)

        @staticmethod
        def jvp(ctx, tx, ty):
            calls.append(tuple(tx.shape))
            x, y = ctx.saved_tensors
            return tx * y + x * ty

    x, y = points(6).reshape(3, 2), points(2).sin()
    value, tangent = jvp(lambda x, y: vmap(Product.apply, in_dims=(0, None))(x, y), (x, y), (x.sin(), y))
    assert_close(value, x * y)
    assert_close(tangent, x.sin() * y + x * y)
    assert calls == [(2,)]


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize(
    "transform", [torch.func.grad, torch.func.jacrev, torch.func.hessian, torch.func.grad_and_value]
)
def test_an_argument_keeps_its_history(transform, recorded):
    x = torch.ones(2, 3, requires_grad=True) * 2
    node = x.grad_fn
    with torch.set_grad_enabled(recorded):
        transform(lambda given: (given * given).sum())(x)
    assert x.requires_grad
    assert x.grad_fn is node
