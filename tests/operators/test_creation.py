"""Invisible properties of new tensors and copies: shared memory, memory order, rounding, gradients."""

import ml_dtypes
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adjoint as torch

DTYPES = (
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32,
    torch.float64, torch.complex64, torch.complex128, torch.bool,
)  # fmt: skip

shapes = st.lists(st.integers(0, 4), max_size=4).map(tuple)
numbers = st.one_of(st.booleans(), st.integers(-(2**40), 2**40), st.floats(width=32, allow_nan=False))


@st.composite
def nested(draw, depth=3):
    """Draw a shape and nested lists of this shape."""
    shape = draw(st.lists(st.integers(1, 3), max_size=depth).map(tuple))

    def build(rest):
        return draw(numbers) if not rest else [build(rest[1:]) for _ in range(rest[0])]

    return build(shape), shape


@pytest.mark.thorough
@settings(deadline=None, max_examples=200)
@given(nested())
def test_nested_lists_have_the_values_shape_and_dtype_of_their_numbers(data_and_shape):
    data, shape = data_and_shape
    tensor = torch.tensor(data)
    flat = list(numpy.array(data, dtype=object).reshape(-1))
    kinds = {type(value) for value in flat}
    expected = torch.float32 if float in kinds else torch.int64 if int in kinds else torch.bool
    assert tensor.shape == shape
    assert tensor.dtype is expected
    assert tensor.reshape(-1).tolist() == numpy.array(flat, dtype=expected.numpy).tolist()


def test_tensor_copies_and_from_numpy_shares():
    array = numpy.zeros(3)
    copied, shared = torch.tensor(array), torch.from_numpy(array)
    array[0] = 1
    assert copied[0] == 0
    assert shared[0] == 1
    shared[1] = 2
    assert array[1] == 2


def test_shared_memory_begins_with_the_array_handed_over():
    array = numpy.arange(12.0).reshape(3, 4)
    tensor = torch.from_numpy(array[1:, 1:])
    assert tensor.storage_offset() == 0
    assert tensor.stride() == (4, 1)
    assert tensor[1].storage_offset() == 4


def test_bfloat16_arrays_are_shared():
    array = numpy.zeros(3, ml_dtypes.bfloat16)
    torch.from_numpy(array).fill_(2)
    assert array.tolist() == [2, 2, 2]


def test_an_array_that_may_not_be_written_to_is_shared_with_a_warning():
    array = numpy.arange(3)
    array.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable"):
        tensor = torch.from_numpy(array)
    with pytest.raises((RuntimeError, ValueError)):
        tensor[0] = 5
    assert array[0] == 0


def test_as_tensor_copies_only_where_the_dtype_changes():
    array = numpy.zeros(2)
    assert torch.as_tensor(array).data_ptr() == array.ctypes.data
    assert torch.as_tensor(array, dtype=torch.float32).data_ptr() != array.ctypes.data
    tensor = torch.ones(2)
    assert torch.as_tensor(tensor) is tensor
    assert torch.asarray(tensor) is tensor


def test_frombuffer_shares_memory():
    memory = bytearray(8)
    torch.frombuffer(memory, dtype=torch.int32)[1] = 1
    assert memory == bytes([0, 0, 0, 0, 1, 0, 0, 0])


def test_a_capsule_of_dlpack_is_taken_once_and_shares_memory():
    x = torch.arange(6).reshape(2, 3).t()
    capsule = torch.utils.dlpack.to_dlpack(x)
    y = torch.utils.dlpack.from_dlpack(capsule)
    y[0, 0] = 9
    assert y.stride() == x.stride()
    assert x[0, 0] == 9
    with pytest.raises(RuntimeError, match="consumed only once"):
        torch.utils.dlpack.from_dlpack(capsule)


def test_dlpack_shares_memory():
    array = numpy.zeros(2)
    torch.from_dlpack(array).fill_(3)
    assert array.tolist() == [3, 3]


@pytest.mark.parametrize("name", "bfloat16 float8_e4m3fn float8_e5m2 complex32".split())
def test_capsules_hold_elements_that_numpy_does_not_know(name):
    x = torch.ones(2, 3).to(getattr(torch, name)).t()
    with pytest.raises((RuntimeError, BufferError), match="Unsupported dtype"):
        numpy.from_dlpack(x)
    for versions in ({}, {"max_version": (1, 0)}):
        y = torch.from_dlpack(x.__dlpack__(**versions))
        assert (y.dtype, y.shape, y.stride(), y.data_ptr()) == (x.dtype, x.shape, x.stride(), x.data_ptr())
        assert y.flatten()[0].item() == 1


@given(shapes)
def test_like_functions_keep_shape_dtype_and_order_in_memory(shape):
    for dtype in DTYPES:
        tensor = torch.zeros(shape, dtype=dtype)
        tensor = tensor.permute(tuple(reversed(range(tensor.dim()))))
        for make in (torch.zeros_like, torch.ones_like, torch.empty_like):
            like = make(tensor)
            assert (like.shape, like.dtype, like.stride()) == (tensor.shape, dtype, tensor.stride())


@pytest.mark.parametrize("make", [torch.zeros, torch.ones, torch.empty, torch.rand, torch.randn])
def test_tensors_are_made_inference_tensors_in_inference_mode(make):
    with torch.inference_mode():
        assert make(2).is_inference()
    assert not make(2).is_inference()


def test_a_bad_argument_does_not_change_out():
    out = torch.ones(2)
    with pytest.raises(RuntimeError):
        torch.zeros(2, dtype=torch.int64, out=out)
    with pytest.raises(RuntimeError):
        torch.full((2,), 1e40, out=out)
    assert out.tolist() == [1, 1]
    assert out._version == 0


def test_out_is_written_to_and_its_version_goes_up():
    out = torch.empty(3)
    assert torch.arange(3, out=out) is out
    assert out.tolist() == [0, 1, 2]
    assert out._version == 1


# --- copies ---------------------------------------------------------------------------------------------------


def test_clone_keeps_the_order_of_dimensions_of_a_tensor_that_is_not_dense():
    tensor = torch.zeros(4, 6).t()[::2]
    assert tensor.clone().stride() == (1, 3)
    assert tensor.clone(memory_format=torch.contiguous_format).stride() == (4, 1)


def test_gradients_pass_through_copies_and_casts():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.zeros(3, 2)
    y.copy_(x)
    (y * torch.arange(6.0).view(3, 2)).sum().backward()
    assert x.grad.tolist() == [6, 9]
    x.grad = None
    x.clone().double().sum().backward()
    assert x.grad.dtype is torch.float32
    assert x.grad.tolist() == [1, 1]


def test_overwritten_values_have_no_gradient():
    x = torch.ones(3, requires_grad=True)
    for overwrite in (
        lambda y: y.copy_(torch.zeros(3)), lambda y: y.fill_(2), lambda y: y.zero_(), lambda y: y.normal_(),
        lambda y: y.uniform_(), lambda y: y.bernoulli_(), lambda y: y.exponential_(), lambda y: y.random_(),
    ):  # fmt: skip
        y = x * 2
        overwrite(y)
        (gradient,) = torch.autograd.grad(y.sum(), x)
        assert gradient.tolist() == [0, 0, 0]


def test_the_value_of_fill_has_the_sum_of_the_gradient():
    value = torch.tensor(2.0, requires_grad=True)
    torch.zeros(3).fill_(value).sum().backward()
    assert value.grad == 3


def test_copying_within_overlapping_memory_is_refused():
    x = torch.arange(5.0)
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        x[1:].copy_(x[:-1])
    assert x.tolist() == [0, 1, 2, 3, 4]
    assert x._version == 0
    x[1:].copy_(x[:-1].clone())
    assert x.tolist() == [0, 0, 1, 2, 3]


def test_filling_an_expanded_tensor_fills_its_base():
    x = torch.zeros(2, 1)
    x.expand(2, 3).fill_(4)
    assert x.tolist() == [[4], [4]]
    assert x._version == 1


def test_to_returns_the_tensor_itself_where_nothing_changes():
    x = torch.ones(2)
    assert x.to(torch.float32) is x
    assert x.float() is x
    assert x.contiguous() is x
    assert x.to("cpu", copy=True) is not x


def test_tensors_that_require_grad_become_integers_without_history():
    assert torch.ones(2, requires_grad=True).long().grad_fn is None


@given(st.lists(st.floats(width=64), max_size=20))
def test_half_precision_is_rounded_through_single_precision(values):
    array = numpy.array(values)
    with numpy.errstate(all="ignore"):
        expected = array.astype(numpy.float32).astype(numpy.float16)
    assert numpy.array_equal(torch.from_numpy(array).half().numpy(), expected, equal_nan=True)


def test_resizing_keeps_elements_in_their_order_in_memory():
    x = torch.arange(4.0)
    view = x[1:3]
    x.resize_(2, 2)
    assert x.tolist() == [[0, 1], [2, 3]]
    x.resize_(3, 3)
    assert x.reshape(-1)[:4].tolist() == [0, 1, 2, 3]
    assert view.tolist() == [1, 2]


def test_set_shares_the_memory_of_its_source():
    source = torch.zeros(3)
    x = torch.ones(2).set_(source)
    x[0] = 5
    assert source.tolist() == [5, 0, 0]


# --- random numbers -------------------------------------------------------------------------------------------


def test_the_same_seed_draws_the_same_numbers():
    for draw in (
        lambda: torch.rand(20), lambda: torch.randn(20), lambda: torch.randint(100, (20,)), lambda: torch.randperm(20),
        lambda: torch.normal(torch.zeros(20), 2.0), lambda: torch.bernoulli(torch.full((20,), 0.5)),
        lambda: torch.dropout(torch.ones(20), 0.5, True), lambda: torch.poisson(torch.full((20,), 3.0)),
        lambda: torch.multinomial(torch.ones(20), 10),
    ):  # fmt: skip
        torch.manual_seed(5)
        first = draw()
        torch.manual_seed(5)
        assert torch.equal(draw(), first)
        assert not torch.equal(draw(), first)


def test_a_generator_of_ones_own_leaves_the_default_one_alone():
    state = torch.get_rng_state()
    torch.rand(5, generator=torch.Generator())
    assert torch.equal(torch.get_rng_state(), state)


def test_bad_arguments_draw_nothing_and_change_nothing():
    state = torch.get_rng_state()
    x = torch.ones(3)
    for attempt in (
        lambda: x.normal_(std=-1),
        lambda: x.uniform_(2, 1),
        lambda: x.bernoulli_(2),
        lambda: x.geometric_(0),
    ):
        with pytest.raises(RuntimeError):
            attempt()
    assert x.tolist() == [1, 1, 1]
    assert x._version == 0
    assert torch.equal(torch.get_rng_state(), state)


def test_dropout_scales_what_it_keeps_and_its_gradient():
    x = torch.ones(1000, requires_grad=True)
    y = torch.dropout(x, 0.2, True)
    y.sum().backward()
    assert set(y.tolist()) == {0.0, 1.25}
    assert torch.equal(x.grad, y.detach())


def test_channel_dropout_drops_whole_channels():
    y = torch.feature_dropout(torch.ones(4, 8, 5), 0.5, True)
    assert all(len(set(channel.tolist())) == 1 for sample in y for channel in sample)
    assert len(set(y.reshape(-1).tolist())) == 2


def test_native_dropout_gives_its_mask():
    y, mask = torch.native_dropout(torch.ones(50), 0.5, True)
    assert mask.dtype is torch.bool
    assert torch.equal(y, mask * 2.0)


def test_bounds_of_ranges_outside_int64_are_refused():
    for bounds in ((2**63,), (2**63 - 3, 2**63), (0, 3, 2**63)):
        with pytest.raises(RuntimeError, match="without overflow"):
            torch.arange(*bounds)
    assert torch.arange(2**63 - 3, 2**63 - 1).tolist() == [2**63 - 3, 2**63 - 2]
    with pytest.raises(RuntimeError, match="negative dimension"):
        torch.fft.fftfreq(-1)


@pytest.mark.parametrize("function", [torch.linspace, torch.logspace])
@pytest.mark.parametrize("dtype", [torch.bool, torch.complex32])
def test_kernels_of_ranges_refuse_dtypes_from_two_steps_on(function, dtype):
    assert function(1, 2, 0, dtype=dtype).shape == (0,) and function(1, 2, 1, dtype=dtype).dtype is dtype
    with pytest.raises(NotImplementedError, match=f'"{function.__name__}_cpu" not implemented for'):
        function(1, 2, 2, dtype=dtype)


def test_half_complex_parts_have_no_derivative():
    x = torch.ones(2, 2, dtype=torch.complex32, requires_grad=True)
    with pytest.raises(
        RuntimeError, match=r"^select_scatter does not support automatic differentiation for outputs with"
    ):
        torch.select_scatter(x, x.detach()[0], 0, 0)


@pytest.mark.parametrize("number", [numpy.float64(3), numpy.int8(3), numpy.bool_(True)])
def test_numpy_scalars_have_no_memory_to_share(number):
    with pytest.raises(RuntimeError, match="can't alias NumPy scalars"):
        torch.asarray(number, copy=False)
    assert torch.asarray(number).item() == number
