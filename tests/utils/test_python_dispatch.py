"""Typical modes and classes with `__torch_dispatch__`."""

import subprocess
import sys

import pytest

import adjoint as torch
from adjoint.utils._python_dispatch import (
    BaseTorchDispatchMode,
    TorchDispatchMode,
    _disable_current_modes,
    _get_current_dispatch_mode,
    _get_current_dispatch_mode_stack,
    return_and_correct_aliasing,
)
from adjoint.utils._pytree import tree_map

functional = torch.nn.functional
aten = torch.ops.aten


class Log(TorchDispatchMode):
    """A mode that records the names of the operators that it receives."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def named(names):
    return [f"aten.{name}" for name in names.split()]


class Cast(TorchDispatchMode):
    """A mode that converts every result to float64."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return tree_map(lambda each: each.double() if isinstance(each, torch.Tensor) else each, result)


class Wrapper(torch.Tensor):
    """A tensor that contains another tensor, and applies operators to it."""

    calls = []

    @staticmethod
    def __new__(cls, elem):
        made = torch.Tensor._make_wrapper_subclass(cls, elem.size(), dtype=elem.dtype, requires_grad=elem.requires_grad)
        made.elem = elem.detach()
        return made

    def __repr__(self):
        return f"Wrapper({self.elem})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        Wrapper.calls.append((str(func), types))
        inner = tree_map(lambda each: each.elem if isinstance(each, Wrapper) else each, (args, kwargs or {}))
        result = func(*inner[0], **inner[1])
        wrapped = tree_map(lambda each: Wrapper(each) if isinstance(each, torch.Tensor) else each, result)
        return return_and_correct_aliasing(func, args, kwargs or {}, wrapped)


# --- modes --------------------------------------------------------------------------------------------------------


def test_a_mode_is_told_forward_and_backward():
    x = torch.ones(3, requires_grad=True)
    with Log() as log:
        (x * 2).sum().backward()
    assert log.names == named("mul.Tensor sum.default ones_like.default expand.default mul.Tensor clone.default")
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_handwritten_functions_are_reported():
    with Log() as log:
        x = torch.zeros(2, 3)
        x.uniform_(0, 1)
        x[0, 0].item()
        torch.rand_like(x, dtype=torch.float64).detach()
    assert log.names == named(
        "zeros.default uniform_.default select.int select.int _local_scalar_dense.default rand_like.default "
        "detach.default"
    )


def test_what_a_mode_returns_is_recorded_as_the_result():
    class Doubled(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            return result * 2 if func is aten.mul.Tensor else result

    x = torch.ones(2, requires_grad=True)
    with Doubled():
        y = x * 3
    assert y.tolist() == [6.0, 6.0]
    assert y.grad_fn.name() == "MulBackward0"
    assert torch.autograd.grad(y.sum(), x)[0].tolist() == [3.0, 3.0]


def test_the_object_that_a_mode_returns_is_the_result():
    class Tag(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.made = func(*args, **(kwargs or {}))
            return self.made

    with Tag() as mode:
        y = torch.ones(2, requires_grad=True) * 2
    assert mode.made is y
    assert y.requires_grad


def test_a_mode_casts():
    x = torch.ones(2, requires_grad=True)
    with Cast():
        y = x.exp()
    assert y.dtype == torch.float64
    y.sum().backward()
    assert x.grad.dtype == torch.float32


def test_modes_nest():
    inner, outer = Log(), Log()
    with outer, inner:
        torch.ones(2) + 1
        assert _get_current_dispatch_mode() is inner
        assert _get_current_dispatch_mode_stack() == [outer, inner]
        with _disable_current_modes():
            torch.ones(2)
    assert inner.names == outer.names == ["aten.ones.default", "aten.add.Tensor"]
    assert _get_current_dispatch_mode() is None


def test_a_layer_is_taken_apart_as_pytorch_does():
    layer = torch.nn.Linear(3, 2)
    with Log() as log:
        functional.cross_entropy(functional.relu(layer(torch.ones(4, 3))), torch.zeros(4, dtype=torch.long))
    assert log.names == named(
        "ones.default t.default addmm.default relu.default zeros.default _log_softmax.default nll_loss_forward.default"
    )


def test_transforms_come_before_modes():
    x = torch.arange(3.0)
    with Log() as log:
        rows = torch.vmap(lambda each: each.sin())(x)
    assert log.names == ["aten.sin.default"]
    torch.testing.assert_close(rows, x.sin())
    with BaseTorchDispatchMode():
        assert torch.func.grad(lambda each: (each**2).sum())(x).tolist() == [0.0, 2.0, 4.0]
        assert torch.func.jvp(torch.sin, (x,), (torch.ones(3),))[1].tolist() == x.cos().tolist()


def test_what_a_mode_raises_reaches_the_caller_and_the_mode_is_left():
    class Refuse(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            raise ValueError("no")

    x = torch.ones(2)
    with pytest.raises(ValueError, match="no"), Refuse():
        x.exp()
    assert _get_current_dispatch_mode() is None
    assert (x * 2).tolist() == [2.0, 2.0]


def test_a_result_that_is_no_tensor_is_refused():
    class Five(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return 5

    x = torch.ones(2)
    with pytest.raises(RuntimeError, match="Unable to cast 5 to Tensor"), Five():
        x.exp()


def test_optimizers_and_checkpoints_run_in_a_mode():
    layer = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh())
    optimizer = torch.optim.Adam(layer.parameters())
    before = [parameter.clone() for parameter in layer.parameters()]
    with BaseTorchDispatchMode():
        torch.utils.checkpoint.checkpoint(layer, torch.ones(1, 2), use_reentrant=False).sum().backward()
        optimizer.step()
    assert all((one != other).any() for one, other in zip(before, layer.parameters(), strict=True))


# --- classes ------------------------------------------------------------------------------------------------------


def test_a_class_passes_operators_on():
    Wrapper.calls.clear()
    x = Wrapper(torch.ones(3, requires_grad=True))
    y = x * 2 + torch.ones(3)
    assert isinstance(y, Wrapper)
    assert y.elem.tolist() == [3.0, 3.0, 3.0]
    assert [name for name, _ in Wrapper.calls] == ["aten.mul.Tensor", "aten.add.Tensor"]
    assert {types for _, types in Wrapper.calls} == {(Wrapper,)}


def test_a_class_has_gradients():
    x = Wrapper(torch.tensor([0.5, 1.0], requires_grad=True))
    (x.exp() * x.sin()).sum().backward()
    inner = torch.tensor([0.5, 1.0], requires_grad=True)
    (inner.exp() * inner.sin()).sum().backward()
    assert isinstance(x.grad, Wrapper)
    torch.testing.assert_close(x.grad.elem, inner.grad)


def test_a_class_changes_in_place_and_is_read():
    x = Wrapper(torch.ones(2))
    assert x.add_(1) is x
    assert x.elem.tolist() == [2.0, 2.0]
    assert x.sum().item() == 4.0
    with pytest.raises(RuntimeError, match="not supported for tensor subclasses"):
        x.tolist()


def test_a_mode_comes_before_a_class():
    order = []

    class First(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            order.append(types)
            return func(*args, **(kwargs or {}))

    x = Wrapper(torch.ones(2))
    Wrapper.calls.clear()
    with First():
        x.exp()
    assert order[0] == (Wrapper,)
    assert [name for name, _ in Wrapper.calls] == ["aten.exp.default"]


def test_parameters_may_be_of_such_a_class():
    layer = torch.nn.Linear(2, 2, bias=False)
    layer.weight = torch.nn.Parameter(Wrapper(torch.eye(2)))
    layer(torch.ones(1, 2)).sum().backward()
    assert layer.weight.grad.elem.tolist() == [[1.0, 1.0], [1.0, 1.0]]


# --- overloads ----------------------------------------------------------------------------------------------------


def test_overloads_tell_of_themselves():
    overload = aten.add_.Tensor
    assert (overload.name(), overload.__name__, overload.namespace) == ("aten::add_.Tensor", "add_.Tensor", "aten")
    assert overload.overloadpacket is aten.add_
    assert str(overload._schema) == "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)"
    assert overload._schema.is_mutable
    assert aten.transpose.int.is_view
    assert "dim_IntList" in aten.sum.overloads()
    with pytest.raises(AttributeError, match="has no overload name 'Foo'"):
        aten.mul.Foo


def test_overloads_are_called():
    x = torch.ones(2, 3)
    assert aten.sum.dim_IntList(x, [1], True).tolist() == [[3.0], [3.0]]
    assert aten._softmax.default(x, -1, False).shape == (2, 3)
    assert aten._to_copy.default(x, dtype=torch.float64).dtype == torch.float64
    assert aten.slice.Tensor(x, 1, 0, 2).shape == (2, 2)
    assert aten.index.Tensor(x, [None, torch.tensor([0])]).shape == (2, 1)
    assert aten.add_.Tensor(x, 1) is x


@pytest.mark.thorough
def test_fake_tensors_cost_nothing_before_their_first_use():
    text = """
import adjoint as torch
from adjoint.tape.torch_dispatch import DISPATCHING
from adjoint.fx.experimental import proxy_tensor
from adjoint._subclasses import FakeTensor, FakeTensorMode
assert not DISPATCHING
FakeTensorMode()
assert FakeTensor in DISPATCHING
"""
    subprocess.run([sys.executable, "-c", text], check=True)


class Container(torch.Tensor):
    """A tensor that contains another, whose values are elsewhere."""

    @staticmethod
    def __new__(cls, elem, requires_grad=False):
        made = torch.Tensor._make_wrapper_subclass(
            cls, elem.size(), elem.stride(), elem.storage_offset(), dtype=elem.dtype, requires_grad=requires_grad
        )
        made.elem = elem.detach()
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        result = func(
            *torch.utils._pytree.tree_map_only(cls, lambda x: x.elem, args),
            **torch.utils._pytree.tree_map_only(cls, lambda x: x.elem, kwargs or {}),
        )
        return torch.utils._pytree.tree_map_only(torch.Tensor, cls, result)


@pytest.mark.parametrize("shape", [(3, 4), (300, 200)])
def test_a_wrapper_has_the_strides_and_the_offset_that_it_is_given(shape):
    wrapper = Container(torch.zeros(shape).t()[1:])
    assert wrapper.stride() == (1, shape[1]) and wrapper.storage_offset() == 1
    assert not wrapper.is_contiguous() and wrapper.mT.is_contiguous() is False
    assert Container(torch.zeros(shape)).is_contiguous()
    assert not Container(torch.zeros(shape))._array.flags.writeable


def test_a_wrapper_needs_no_memory():
    huge = torch.Tensor._make_wrapper_subclass(Container, (10**6, 10**6))
    assert huge.shape == (10**6, 10**6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"storage_offset": 3}, "setting storage offset without stride not supported"),
        ({"strides": (3,)}, r"dimensionality of sizes \(2\) must match dimensionality of strides \(1\)"),
        ({"dtype": torch.int64, "requires_grad": True}, "Only Tensors of floating point and complex dtype can"),
    ],
)
def test_descriptions_of_wrappers_are_checked(options, message):
    with pytest.raises(RuntimeError, match=message):
        torch.Tensor._make_wrapper_subclass(Container, (2, 3), **options)


def test_a_class_with_torch_dispatch_alone_overrides_no_functions():
    assert Container.__torch_function__ is torch._C._disabled_torch_function_impl

    class Both(Container):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs)

    assert Both.__torch_function__ is not torch._C._disabled_torch_function_impl


def test_gradients_by_plain_vectors_are_plain():
    x = Container(torch.ones(2), requires_grad=True)
    (gradient,) = torch.autograd.grad((x * 3).sum(), x, torch.tensor(1.0))
    assert type(gradient) is torch.Tensor and gradient.tolist() == [3.0, 3.0]


def test_gradients_by_wrapped_vectors_are_wrappers():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (found,) = torch.autograd.grad(x * 2, x, Wrapper(torch.tensor([3.0, 4.0])))
    assert type(found) is Wrapper
    assert found.elem.tolist() == [6, 8]


def test_missing_derivatives_of_wrappers_are_wrappers():
    x = Container(torch.ones(2))
    unused = Container(torch.ones(2), requires_grad=True)
    root = Container(torch.ones(2), requires_grad=True).sum()
    found = [
        torch.autograd.grad(root, unused, materialize_grads=True)[0],
        torch.func.grad(lambda x: x.detach().sum())(x),
        torch.func.jvp(lambda x: x.detach(), (x,), (x,))[1],
        torch.autograd.functional.jacobian(lambda x: x.detach(), x, vectorize=True),
        torch.autograd.functional.hessian(torch.sum, x),
    ]
    assert [(type(each), each.elem.count_nonzero().item()) for each in found] == [(Container, 0)] * 5


def test_modes_and_classes_receive_operators_of_the_program():
    class Replace(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            received.append(str(func))
            return args[0] + 100 if func is torch.ops.seen.twice.default else func(*args, **(kwargs or {}))

    @torch.library.custom_op("seen::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    twice.register_autograd(lambda ctx, grad: grad * 2, setup_context=lambda ctx, inputs, output: None)
    received = []
    x = torch.ones(2, requires_grad=True)
    with Replace():
        y = twice(x)
    y.sum().backward()
    assert (y.tolist(), x.grad.tolist(), received) == ([101.0, 101.0], [2.0, 2.0], ["seen.twice.default"])
    assert type(twice(Container(torch.ones(2)))) is Container
    with Log() as log:
        twice(x)
    assert log.names == ["seen.twice.default"]


def test_modes_receive_comparisons_of_whole_tensors():
    x = torch.ones(2)
    with Log() as log:
        assert torch.equal(x, x) and torch.allclose(x, x, rtol=0.5)
    assert log.names == ["aten.equal.default", "aten.allclose.default"]
    wrapped = Container(x)
    assert torch.equal(wrapped, wrapped)


class Unwrapped(torch.Tensor):
    """A tensor that contains another tensor, and whose operators return plain tensors."""

    @staticmethod
    def __new__(cls, elem):
        made = torch.Tensor._make_wrapper_subclass(cls, elem.size(), dtype=elem.dtype)
        made.elem = elem
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args, kwargs = tree_map(lambda each: each.elem if isinstance(each, cls) else each, (args, kwargs or {}))
        return func(*args, **kwargs)


@pytest.mark.parametrize(
    "function", [torch.matmul, torch.mul, torch.div, torch.linalg.cross, torch.linalg.solve, torch.clamp]
)
def test_plain_results_have_gradients_through_wrapped_operands(function):
    x = torch.rand(3, 3, requires_grad=True)
    other = torch.eye(3) + torch.rand(3, 3)
    (expected,) = torch.autograd.grad(function(x, other).sum(), x)
    (found,) = torch.autograd.grad(function(x, Unwrapped(other)).sum(), x)
    function(x, Unwrapped(other)).sum().backward()
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(x.grad, expected)


def test_data_of_a_wrapper_is_what_the_class_makes_of_detach():
    data = torch.nn.Parameter(Wrapper(torch.ones(2))).data
    assert type(data) is Wrapper
    assert data.elem.tolist() == [1, 1]
    assert not data.requires_grad


def test_gradients_without_such_tensors_do_not_run_on_tensors_while_a_class_exists(monkeypatch):
    assert issubclass(Unwrapped, torch.Tensor)
    x = torch.rand(3, requires_grad=True)
    y = x * x
    monkeypatch.setattr(type(y.grad_fn), "backward_recorded", None)
    y.sum().backward()
    assert x.grad.tolist() == (2 * x).tolist()


def test_plain_results_have_gradients_through_changes_by_wrapped_operands():
    x = torch.rand(3, requires_grad=True)
    other = torch.rand(3)
    (expected,) = torch.autograd.grad((x * 1).mul_(other).sum(), x)
    (found,) = torch.autograd.grad((x * 1).mul_(Unwrapped(other)).sum(), x)
    torch.testing.assert_close(found, expected)


def test_what_overrides_batch_norm_changes_the_running_statistics():
    x, expected = torch.arange(24.0).reshape(2, 3, 4), (torch.zeros(3), torch.ones(3))
    for layer in (functional.batch_norm, functional.instance_norm):
        output = layer(x, *expected, None, None, True)
    statistics = torch.zeros(3), torch.ones(3)
    wrapped = [Wrapper(each) for each in statistics]
    for layer in (functional.batch_norm, functional.instance_norm):
        found = layer(Wrapper(x), *wrapped, None, None, True)
    assert torch.equal(found.elem, output)
    assert all(map(torch.equal, statistics, expected))
    with Log() as log:
        functional.batch_norm(x, *statistics, None, None, True)
    assert log.names == named("native_batch_norm.default")
    assert not torch.equal(statistics[0], expected[0])


def test_wrappers_are_cut_from_the_graph_where_their_class_is_not_asked():
    wrapper = Wrapper(torch.tensor([1.0, 2.0], requires_grad=True))
    with torch.utils._mode_utils.no_dispatch():
        for cut in (wrapper.detach(), wrapper.to(torch.bool)):
            assert (type(cut), cut.shape, cut.requires_grad) == (torch.Tensor, (2,), False)


def test_changes_of_new_tensors_carry_wrapped_tangents():
    functions = (
        lambda x: torch.diff(x, 0),
        lambda x: torch.t_copy(x),
        lambda x: functional.pad(x, (1, 1), mode="circular"),
        lambda x: (x * 2).clamp_min_(1.5),
    )
    forward_ad = torch.autograd.forward_ad
    primal, tangent = torch.tensor([[0.5, 2.0, 3.0]]), torch.tensor([[4.0, 5.0, 6.0]])
    for function in functions:
        with forward_ad.dual_level():
            expected = forward_ad.unpack_dual(function(forward_ad.make_dual(primal, tangent)))
            for pair in (
                (Container(primal), Container(tangent)),
                (primal.clone(), Container(tangent)),
                (Container(primal), tangent),
            ):
                found = forward_ad.unpack_dual(function(forward_ad.make_dual(*pair)))
                for one, other in zip(found, expected, strict=True):
                    assert torch.equal(getattr(one, "elem", one), other)


def test_functions_that_read_elements_ask_the_class():
    numbers, matrix, pick = torch.tensor([0, 2, 1]), torch.eye(3), torch.tensor([2, 0, 1])
    calls = {
        "nonzero": lambda x, n: torch.nonzero(x, as_tuple=True)[1],
        "where": lambda x, n: torch.where(x)[0],
        "isclose": lambda x, n: torch.isclose(x, x * 0),
        "one_hot": lambda x, n: functional.one_hot(n),
        "one_hot of 4": lambda x, n: functional.one_hot(n, 4),
        "repeat_interleave": lambda x, n: torch.repeat_interleave(n),
        "repeat_interleave of rows": lambda x, n: torch.repeat_interleave(matrix, n, dim=0),
        "histogram": lambda x, n: torch.histogram(x, 2).hist,
        "histogramdd": lambda x, n: torch.histogramdd(x, [2, 2, 2]).hist,
        "take_along_dim": lambda x, n: torch.take_along_dim(pick, n - 3, 0),
        "segment_reduce": lambda x, n: torch.segment_reduce(x, "max", lengths=n),
    }
    for name, call in calls.items():
        found = call(Container(matrix), Container(numbers))
        assert type(found) is Container, name
        assert torch.equal(found.elem, call(matrix, numbers)), name


def test_modes_receive_the_operators_that_read_elements():
    numbers, matrix = torch.tensor([0, 2, 1]), torch.eye(3)
    with Log() as log:
        torch.nonzero(matrix, as_tuple=True)
        torch.repeat_interleave(matrix, numbers, dim=0)
        torch.histogram(matrix, 2)
    names = "nonzero.default unbind.int expand.default repeat_interleave.Tensor index_select.default histogram.bin_ct"
    assert log.names == named(names)


def test_changed_arguments_replace_only_the_results_that_are_those_arguments():
    x, noise, result = torch.tensor([-1.0, 2.0]), torch.ones(2), torch.zeros(2)
    assert return_and_correct_aliasing(aten.rrelu_with_noise.default, (x, noise), {}, result) is result
    assert return_and_correct_aliasing(aten.add_.Tensor, (x, noise), {}, result) is x
    places, given = torch.tensor([0, 0]), {"values": x, "indices": torch.tensor([1, 1])}
    found = return_and_correct_aliasing(aten.sort.values, (noise,), given, (result, places))
    assert found[0] is x
    assert found[1] is given["indices"]
    (slopes,) = functional.rrelu(Wrapper(x), training=True).elem[:1].tolist()
    assert -1 / 3 <= slopes <= -1 / 8


@pytest.mark.parametrize("wrapped", [(0,), (1,), (0, 1)])
def test_indices_may_be_the_only_wrappers_of_a_call(wrapped):
    places = [torch.tensor([0, 2]), torch.tensor([1, 3])]
    keys = tuple(Container(each) if position in wrapped else each for position, each in enumerate(places))
    plain, given = (torch.arange(12.0).reshape(3, 4).requires_grad_() for _ in range(2))
    for tensor, key in ((plain, tuple(places)), (given, keys)):
        (tensor[key] * torch.tensor([2.0, 3.0])).sum().backward()
    assert torch.equal(getattr(given.grad, "elem", given.grad), plain.grad)
    expected = plain.detach().index_put(tuple(places), torch.tensor(7.0))
    assert torch.equal(given.detach().index_put(keys, torch.tensor(7.0)).elem, expected)
    assert torch.equal(given.detach()[keys].elem, plain.detach()[tuple(places)])


def test_eigenvalues_of_a_wrapper():
    matrix = torch.tensor([[2.0, 1.0], [1.0, 2.0]])
    assert torch.allclose(torch.linalg.eigvalsh(Container(matrix)).elem, torch.tensor([1.0, 3.0]))


def test_the_gradient_of_an_index_reaches_modes_as_tensors():
    x, key = torch.zeros(3, 4, requires_grad=True), torch.tensor([0, 1, 1])
    with Log() as log:
        x[:, key].sum().backward()
    assert "aten.index_put.default" in log.names


@pytest.mark.parametrize("name", ["index_put", "index_put_", "_unsafe_index_put"])
def test_repeated_indices_beside_a_whole_dimension_accumulate(name):
    put = getattr(torch.ops.aten, name)
    found = put(torch.zeros(2, 3), [None, torch.tensor([0, 0, 2])], torch.ones(2, 3), True)
    assert found.tolist() == [[2, 0, 1], [2, 0, 1]]


def test_the_backward_of_products_transposes_matrices_by_t():
    x, weight = torch.ones(2, 3, requires_grad=True), torch.ones(4, 3, requires_grad=True)
    total = functional.linear(x, weight).sum()
    with Log() as log:
        total.backward()
    assert log.names.count("aten.t.default") == 4
    assert "aten.transpose.int" not in log.names
