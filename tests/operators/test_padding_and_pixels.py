"""Padding with elements of the tensor, and the rearrangement of channels and pixels."""

import numpy
import pytest

import adjoint as torch
import adjoint.nn.functional as F

MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("pad", [(2, 1), (0, 3), (1, 0, 2, 3), (1, 2, 0, 1, 3, 1)], ids=str)
def test_padding_continues_the_input(mode: str, pad: tuple[int, ...]) -> None:
    x = torch.randn(2, 3, *(4 + i for i in range(len(pad) // 2)))
    widths = [(0, 0), (0, 0), *((pad[i], pad[i + 1]) for i in range(len(pad) - 2, -2, -2))]
    expected = numpy.pad(x.numpy(), widths, MODES[mode])
    numpy.testing.assert_array_equal(F.pad(x, pad, mode).numpy(), expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("pad", [(2, 1), (-1, 2), (3, -2)], ids=str)
def test_padding_is_transposed_by_its_gradient(mode: str, pad: tuple[int, ...]) -> None:
    x = torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True)
    y = F.pad(x, pad, mode)
    weights, direction = torch.randn_like(y).requires_grad_(), torch.randn_like(x)
    (grad,) = torch.autograd.grad(y, x, weights, create_graph=True)
    assert torch.allclose((grad * direction).sum(), (weights * F.pad(direction, pad, mode)).sum())
    (again,) = torch.autograd.grad(grad, weights, direction)
    assert torch.allclose(again, F.pad(direction, pad, mode))


def test_negative_padding_crops_before_nothing_is_repeated() -> None:
    x = torch.arange(4.0).reshape(1, 1, 4)
    assert F.pad(x, (-1, 2), "reflect").tolist() == [[[1.0, 2.0, 3.0, 2.0, 1.0]]]
    assert F.pad(x, (-4, 2), "replicate").tolist() == [[[3.0, 3.0]]]


def test_circular_padding_is_the_same_with_a_graph_and_without() -> None:
    x = torch.randn(2, 3, 9, 70, requires_grad=True)
    for pad in ((2, 3, 4, 1), (-1, 2, 3, -2), (-3, -4, 2, 0)):
        recorded, plain = F.pad(x, pad, "circular"), F.pad(x.detach(), pad, "circular")
        assert torch.equal(recorded, plain)
        assert recorded._version == plain._version
    with pytest.raises(RuntimeError, match="wrapping around more than once"):
        F.pad(torch.ones(1, 1, 4), (-2, 3), "circular")


def test_pixels_go_back_to_the_channels_they_came_from() -> None:
    x = torch.randn(2, 3, 12, 4, 5, requires_grad=True)
    y = F.pixel_shuffle(x, 2)
    assert y.shape == (2, 3, 3, 8, 10)
    assert torch.equal(F.pixel_unshuffle(y, 2), x)
    weights = torch.randn_like(y)
    assert torch.equal(torch.autograd.grad(y, x, weights)[0], F.pixel_unshuffle(weights, 2))


def test_shuffled_channels_are_one_of_each_group() -> None:
    x = torch.arange(6.0, requires_grad=True)
    y = F.channel_shuffle(x.reshape(1, 6, 1), 2)
    assert y.flatten().tolist() == [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]
    (grad,) = torch.autograd.grad(y, x, torch.arange(6.0).reshape(1, 6, 1))
    assert grad.tolist() == [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]


KEPT = [
    ("linear", 1),
    ("bilinear", 2),
    ("trilinear", 3),
    ("nearest", 2),
    ("bilinear antialias", 2),
    ("bicubic antialias", 2),
]


@pytest.mark.parametrize("scale", [1.00001, 1.1, 1.2])
@pytest.mark.parametrize(("mode", "dims"), KEPT)
def test_dimensions_that_keep_their_size_keep_their_elements(mode: str, dims: int, scale: float) -> None:
    name, _, antialias = mode.partition(" ")
    x = torch.randn(2, 3, *[4] * dims, requires_grad=True)
    y = F.interpolate(x, scale_factor=scale, mode=name, antialias=bool(antialias))
    assert torch.equal(y, x)
    assert y.data_ptr() != x.data_ptr()
    weights = torch.randn_like(y)
    assert torch.equal(torch.autograd.grad(y, x, weights)[0], weights)
    if dims == 2:  # each dimension separately
        wide = F.interpolate(x, scale_factor=(scale, 2), mode=name, antialias=bool(antialias))
        rows = x.unbind(2)
        by_rows = [
            F.interpolate(row[:, :, None], scale_factor=(1, 2), mode=name, antialias=bool(antialias)) for row in rows
        ]
        torch.testing.assert_close(wide, torch.cat(by_rows, 2))
        whole = torch.randint(0, 255, (2, 3, 4, 4), dtype=torch.uint8)
        assert torch.equal(F.interpolate(whole, scale_factor=scale, mode=name, antialias=bool(antialias)), whole)


def test_corners_of_a_single_pixel_are_the_first_one() -> None:
    x = torch.arange(5.0).reshape(1, 1, 1, 5)
    for antialias in (False, True):
        assert F.interpolate(x, size=(1, 1), mode="bilinear", align_corners=True, antialias=antialias).item() == 0


WHOLE = torch.ones(1, 2, dtype=torch.int32)


@pytest.mark.filterwarnings("ignore:torch.range is deprecated")
@pytest.mark.parametrize(
    ("call", "name"),
    [
        (
            lambda: torch.nn.functional.interpolate(
                torch.ones(1, 1, 4, 4, dtype=torch.half), size=2, mode="bilinear", antialias=True
            ),
            "compute_index_ranges_weights",
        ),
        (lambda: torch.special.i1(torch.ones(2).half().requires_grad_()).sum().backward(), "i1_backward"),
        (lambda: torch.special.i1e(torch.ones(2).half().requires_grad_()).sum().backward(), "i1e_backward"),
        (lambda: torch.range(0, 3, dtype=torch.complex64), "range_cpu"),
        (lambda: torch.logspace(0, 1, 3, dtype=torch.bool), "logspace_cpu"),
        (lambda: torch.ops.aten.reflection_pad1d_backward(WHOLE, WHOLE, [0, 0]), "reflection_pad1d_backward"),
        (lambda: torch.ops.aten.hardtanh_backward(WHOLE, WHOLE, 0, 1), "hardshrink_backward_cpu"),
        (lambda: torch.ops.aten.softshrink_backward(WHOLE, WHOLE, 0.5), "shrink_backward_cpu"),
    ],
)
def test_dtypes_that_a_kernel_of_pytorch_refuses_are_refused(call, name):
    with pytest.raises(NotImplementedError, match=f'"{name}" not implemented for'):
        call()


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("name", ["reflection", "replication"])
def test_operators_of_the_dispatcher_check_dimensions_and_paddings(name: str, dims: int) -> None:
    pad = getattr(torch.ops.aten, f"{name}_pad{dims}d")
    with pytest.raises(RuntimeError, match=rf"Expected {dims + 1}D or {dims + 2}D .* got: \[3, 3"):
        pad(torch.ones((3, 3) + (4,) * (dims + 1)), (2,) * (2 * dims))
    with pytest.raises(RuntimeError, match=f"padding size is expected to be {2 * dims}"):
        getattr(torch._C._nn, f"{name}_pad{dims}d")(torch.ones(2), padding=[])


def test_circular_padding_names_the_reason_of_its_refusal() -> None:
    x = torch.ones(1, 1, 4)
    with pytest.raises(RuntimeError, match="empty dimension"):
        F.pad(x, (-3, -2), "circular")
    with pytest.raises(RuntimeError, match="more than once"):
        F.pad(x, (-9, 5), "circular")


def test_blocks_larger_than_the_image_are_refused() -> None:
    fold = torch.nn.Fold((4, 5), (2, 2), dilation=8)
    with pytest.raises(RuntimeError, match=r"sliding blocks as \(-4, -3\), which is too small"):
        fold(torch.ones(1, 12, 12))


def test_sizes_of_images_are_integers() -> None:
    for size in (torch.tensor(4.0), 4.0):
        with pytest.raises(TypeError, match="expected size to be one of int or"):
            F.interpolate(torch.ones(1, 1, 2), size=(size,), mode="nearest")
    assert F.interpolate(torch.ones(1, 1, 2), size=(torch.tensor(4),), mode="nearest").shape == (1, 1, 4)


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
def test_the_gradient_of_padding_no_images(mode: str) -> None:
    x = torch.zeros(0, 1, 4, requires_grad=True)
    torch.nn.functional.pad(x, (1, 1), mode=mode).sum().backward()
    assert x.grad is not None and x.grad.shape == (0, 1, 4)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("widths", [(3, 4), (0, 1), (11, 11)])
def test_rows_of_large_arrays_are_padded_in_parts(mode, widths):
    x = numpy.random.default_rng(0).standard_normal((4000, 12))
    for given in (x, x.T.copy().T):
        found = F.pad(torch.from_numpy(given), widths, mode)
        numpy.testing.assert_array_equal(found.numpy(), numpy.pad(x, ((0, 0), widths), MODES[mode]))
        assert found.is_contiguous()
