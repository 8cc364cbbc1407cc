"""Extreme numbers of each type, and tensors without dimensions or elements: values and errors."""
# ruff: noqa: E501

from functools import partial

import pytest

pytest.importorskip("torch")

from tests.parity.programs import program_test

PROGRAMS = {
    "reductions_of_no_elements": """
        functions = [
            *(getattr(torch, name) for name in "logsumexp sum mean var std amax amin cumsum logcumsumexp softmax log_softmax nansum".split()),
            *(lambda x, dim, order=order: torch.linalg.vector_norm(x, order, dim) for order in (0, 1, 2, 3)),
        ]
        for shape in ((0, 3), (3, 0), (0,), (2, 0, 3), (0, 0), (2, 3, 0), (0, 2, 3)):
            for dim in (0, -1, (-1,), (0, -1))[: 2 + len(shape)]:
                for function in functions:
                    x = torch.empty(shape, dtype=torch.float64, requires_grad=True)
                    raises(lambda: function(x, dim).sum().backward())
                    show(x.grad)
    """,
    "places_of_a_grid": """
        grid_sample = torch.nn.functional.grid_sample
        nan, inf = float("nan"), float("inf")
        places = [nan, inf, -inf, -1.0, 1.0, 0.3, 2.2, -5.3]
        for dtype in (torch.float32, torch.float64):
            for dims, modes in ((2, ("bilinear", "nearest", "bicubic")), (3, ("bilinear", "nearest"))):
                image = torch.arange(4.0 ** dims, dtype=dtype).view(1, 1, *(4,) * dims)
                grid = torch.zeros(1, *(1,) * (dims - 1), len(places), dims, dtype=dtype)
                grid.view(-1, dims)[:, 0] = torch.tensor(places)
                for mode in modes:
                    for padding in ("zeros", "border", "reflection"):
                        for align in (False, True):
                            show(grid_sample(image, grid, mode, padding, align))
    """,
    "places_of_a_half_grid": """
        grid_sample = torch.nn.functional.grid_sample
        for dtype in (torch.float16, torch.bfloat16):
            image = torch.arange(9.0).expand(1, 1, 9, 9).to(dtype)
            grid = torch.zeros(1, 1, 64, 2)
            grid[..., 0] = torch.linspace(-1, 1, 64) - 2.0 ** -12
            for align in (False, True):
                found = grid_sample(image, grid.to(dtype), align_corners=align, padding_mode="border").flatten().double()
                places = grid.to(dtype)[0, 0, :, 0].double()
                exact = ((places + 1) * 4 if align else ((places + 1) * 9 - 1) / 2).clamp(0, 8)
                show(bool(((found - exact).abs() < 0.1).all()))
    """,
    "complex_logarithm_near_one": """
        for z in (1e-10, 1e-20 + 1e-20j, 1e-5j, -1e-9 + 1e-4j, -0.3 + 0.1j, 2 - 3j, -1.0, -2.0, 3e38 + 3e38j, 1.7e38j):
            for dtype in (torch.complex64, torch.complex128):
                show(torch.log1p(torch.tensor(z, dtype=dtype)), torch.tensor([z], dtype=dtype).log1p_())
        show(torch.log1p(torch.tensor([1e308 + 1.7e308j], dtype=torch.complex128)))
    """,
    "complex_norms_with_infinities": """
        nan, inf = float("nan"), float("inf")
        for parts in ((inf, nan), (nan, -inf), (nan, 1.0), (3e38, 3e38), (inf, inf)):
            z = torch.tensor([[complex(*parts), 1.0], [2.0, 3j]])
            show(torch.norm(z), torch.norm(z, dim=0), torch.linalg.vector_norm(z), torch.linalg.matrix_norm(z), torch.linalg.norm(z, dim=1))
            show(torch.renorm(z, 2, 0, 0.5), torch.nn.functional.normalize(z))
    """,
    "sizes_of_scalars": """
        s = torch.ones(())
        for dim in (0, -1, 1):
            raises(lambda: s.size(dim))
            raises(lambda: s.stride(dim))
        for dim in ((0,), (-1,), 0, -1):
            show(s.all(dim), s.any(dim, keepdim=True), torch.sum(s, dim))
        for dim in ((0, -1), (1,), (0, 0), 1, -2):
            raises(lambda: s.all(dim))
            raises(lambda: s.any(dim))
        for dim in (0, 1, -2):
            raises(lambda: s.unflatten(dim, (-1, 3)))
    """,
    "products_of_scalars": """
        F = torch.nn.functional
        o = torch.ones
        for add, matrix, vector in ((o(()), o(0, 10), o(0)), (o(()), o(3, 10), o(0)), (o(1), o(3, 10), o(9)), (o(()), o(3, 10), o(()))):
            raises(lambda: torch.addmv(add, matrix, vector))
        show(torch.addmv(o(()), o(3, 10), o(10)))
        for B in (o(()), o(2)):
            raises(lambda: torch.linalg.ldl_solve(o(0, 2, 2), o(0, 2).int(), B))
        for input, weight in ((o(2), o(())), (o(()), o(2, 2)), (o(()), o(()))):
            raises(lambda: F.linear(input, weight))
        for first, second, weight, bias in (
            (o(()), o(()), o(()), None), (o(()), o(()), o(2, 2, 2), None), (o(2, 2), o(2, 2), o(2, 2), None), (o(2, 2), o(2, 2), o(1, 2, 2), o(())),
        ):
            raises(lambda: F.bilinear(first, second, weight, bias))
        for query, key, value in ((o(()), o(()), o(())), (o(3, 2), o(2), o(3, 4)), (o(3, 2), o(3, 2), o(2))):
            raises(lambda: F.scaled_dot_product_attention(query, key, value))
        show(F.scaled_dot_product_attention(o(3, 0), o(3, 0), o(3, 4)), F.scaled_dot_product_attention(o(2, 3, 0), o(2, 3, 0), o(2, 3, 0)))
    """,
    "layers_of_scalars_and_empties": """
        F = torch.nn.functional
        o = torch.ones
        s = o(())
        for shape in ((2,), (), (0,)):
            raises(lambda: F.rms_norm(s, shape))
            raises(lambda: F.layer_norm(s, shape))
        raises(lambda: F.rms_norm(s, (2,), weight=o(3)))
        for input in (s, o(0), o(2)):
            raises(lambda: F.instance_norm(input))
            raises(lambda: F.instance_norm(input, s, s, use_input_stats=False))
        raises(lambda: F.cross_entropy(s, s))
        raises(lambda: F.multilabel_soft_margin_loss(s, s))
        raises(lambda: F.avg_pool2d(s, 2))
        raises(lambda: F.lp_pool2d(s, 2, 2))
        for shape in ((), (3,), (3, 3), (2, 0, 4), (1, 0, 4, 4), (1, 2, 3, 3, 3, 3)):
            raises(lambda: F.fractional_max_pool2d(o(shape), (2, 2), output_ratio=(0.5, 0.5)))
            raises(lambda: F.fractional_max_pool2d(o(shape), (2, 2), output_size=(1, 1)))
            raises(lambda: F.fractional_max_pool3d(o(shape), (2, 2, 2), output_ratio=(0.5, 0.5, 0.5)))
        show(F.fractional_max_pool2d(o(0, 4, 4), (2, 2), output_size=(1, 1)), F.fractional_max_pool3d(o(0, 4, 4, 4), (2, 2, 2), output_size=2))
    """,
    "embeddings_of_nothing": """
        F = torch.nn.functional
        o = torch.ones
        nothing = torch.zeros(3, 0, dtype=torch.int64)
        show(F.embedding(nothing, o(0, 5), padding_idx=0), F.embedding(nothing, o(2, 5), padding_idx=-2))
        for rows, index in ((0, -1), (0, 1), (2, 2), (2, -3)):
            raises(lambda: F.embedding(nothing, o(rows, 5), padding_idx=index))
        raises(lambda: F.embedding(nothing, o(()), padding_idx=1))
        for mode in ("sum", "mean", "max"):
            raises(lambda: F.embedding_bag(nothing, o(2, 5), mode=mode))
        show(F.embedding_bag(nothing.T, o(2, 5)), F.embedding_bag(nothing[0], o(2, 5), torch.tensor([0])))
        for rows, index in ((0, 0), (0, 1), (2, 3), (2, -3)):
            raises(lambda: F.embedding_bag(nothing[0], o(rows, 5), torch.tensor([0]), padding_idx=index))
        for weight in (o(2), o(())):
            raises(lambda: F.embedding_bag(nothing[0], weight, torch.tensor([0])))
    """,
    "histograms_with_weights_of_another_shape": """
        o = torch.ones
        for input, weight in ((o(5, 5, 0), o(5, 0, 5)), (o(5, 2), o(2, 5)), (o(5, 2), o(10))):
            for density in (False, True):
                show(*torch.histogram(input, 1, weight=weight, density=density))
        raises(lambda: torch.histogram(o(5, 2), 1, weight=o(9)))
        raises(lambda: torch.histogramdd(o(3, 0), (1,)))
    """,
    "sizes_of_what_is_repeated": """
        o, t = torch.ones, torch.tensor
        for input in (o(()), o(1), o(2), o(2, 3)):
            for repeats in (0, 2, -1, t(0), t(2), t([2]), t([1, 2]), t([1, 2], dtype=torch.int32), t([1, 2], dtype=torch.int16)):
                for dim in (None, 0, 1):
                    for size in (None, 3, 4):
                        raises(lambda: torch.repeat_interleave(input, repeats, dim=dim, output_size=size))
        show(torch.repeat_interleave(o(2), t([1, 2]), output_size=3), torch.repeat_interleave(o(2, 3), 2, dim=1, output_size=6))
        raises(lambda: torch.repeat_interleave(t([[1]])))
    """,
    "norms_of_one_element": """
        for dtype, number in ((torch.bfloat16, 3e38), (torch.float32, -3e38), (torch.float64, 1e308), (torch.float32, 1e-40)):
            for order in (2, 3, 1, 0.5, -1, 0):
                for shape, dim in (((), None), ((1,), None), ((2, 1), 1), ((1, 2), 0), ((1, 1), (0, 1))):
                    input = torch.full(shape, number, dtype=torch.float64).to(dtype)
                    show(torch.linalg.vector_norm(input, order, dim), torch.linalg.vector_norm(input, order, dim, keepdim=True))
    """,
    "integers_of_numpy": """
        import numpy
        one, x = numpy.int64(1), torch.arange(6.0).view(2, 3)
        for name in ("sum std var mean logsumexp softmax unsqueeze squeeze flatten cumsum amax sort count_nonzero nanmean chunk "
                     "tensor_split hsplit std_mean").split():
            show(getattr(torch, name)(x, one))
        show(torch.all(x, one), torch.any(x, one), torch.movedim(x, one, 0), torch.movedim(x, 0, one), torch.roll(x, 1, None))
        for dim in (1.5, "a", numpy.ones(2), {}.keys()):
            for name in "softmax cumsum unsqueeze flatten chunk unflatten tril".split():
                raises(lambda: getattr(torch, name)(x, *((2,) if name == "chunk" else ()), dim, *(((1, 1),) if name == "unflatten" else ())))
    """,
    "shapes_that_do_not_fit": """
        o = torch.ones
        for shape in ((0, 2), (2, 2), (2, 4, 3)):
            for weight in ((), (2,), (3,), (1,), (2, 1)):
                raises(lambda: torch.nn.functional.group_norm(o(shape), 2, weight=o(weight)))
        raises(lambda: torch.nn.functional.group_norm(o(2, 2), -1))
        raises(lambda: torch._softmax_backward_data(o(2, 3), o(3, 2), -1, torch.float32))
        raises(lambda: torch.nn.functional.bilinear(o(4, 2), o(4, 3), o(5, 2, 3, 1)))
        for shape in ((5, 0, 0), (0, 0)):
            raises(lambda: torch.unique(o(shape), dim=1))
        show(*torch.gradient(o(4, 4, 0), dim=(0, 1)))
        raises(lambda: torch.gradient(o(4, 4, 0), dim=2, edge_order=3))
        raises(lambda: torch.nn.functional.ctc_loss(o(5, 0, 3), torch.ones(0, 2, dtype=torch.int64), (), ()))
        raises(lambda: torch.quantile(o(2), torch.tensor(2.0), dim=5))
    """,
    "differences_beside_other_shapes": """
        o = torch.ones
        for input in (o(3, 3), o(0, 3), o(3)):
            for part in (o(3, 3), o(3), o(0, 3), o(2, 1), o(()), o(3, 1, 1), o(0)):
                for dim in (0, -1, 5):
                    for n in (0, 1):
                        raises(lambda: show(torch.diff(input, n, dim, prepend=part)))
                        raises(lambda: show(torch.diff(input, n, dim, append=part)))
    """,
    "transforms_of_no_elements_to_real_numbers": """
        for name in ("irfft", "irfft2", "irfftn", "hfft", "hfft2", "hfftn"):
            for shape in ((3, 0), (2, 3, 0), (2, 1)):
                raises(lambda: getattr(torch.fft, name)(torch.ones(shape)))
            if name[-1] in "2n":
                for shape in ((0, 3), (2, 0, 3)):
                    raises(lambda: getattr(torch.fft, name)(torch.ones(shape)))
                for size in ((0, 2), (2, 0)):
                    raises(lambda: getattr(torch.fft, name)(torch.ones(2, 3), s=size))
    """,
    "windows_with_nan": """
        nan, inf = float("nan"), float("inf")
        spectrum = torch.ones(6, 5, dtype=torch.complex64)
        for number in (nan, inf):
            show(torch.istft(spectrum, 10, window=torch.full((10,), number)).shape)
        raises(lambda: torch.istft(spectrum, 10, window=torch.zeros(10)))
    """,
}

test_extreme_values = program_test(PROGRAMS, "reductions_of_no_elements")


def test_known_differences_are_of_operators_that_are_compared():
    pytest.importorskip("expecttest", reason="PyTorch's table of operators imports it")
    from tests.parity import samples
    from tests.reliability._extreme_differences import DIFFERENCES

    compared = set(samples.operators())
    gone = {each.why: set(each.operators.split()) - compared for each in DIFFERENCES}
    assert {why: names for why, names in gone.items() if names} == {}


@pytest.mark.thorough
def test_each_known_difference_is_met():
    pytest.importorskip("expecttest", reason="PyTorch's table of operators imports it")
    from tests.reliability._children import in_child
    from tests.reliability._extreme_differences import DIFFERENCES, reason
    from tests.reliability.extremes import tries

    unmet = []
    for each in DIFFERENCES:
        seed, name, number = each.example.split()
        found, end = in_child(partial(tries, [name], int(number) + 1, int(number), seed), patience=300)
        case, difference = (name, end) if end is not None else (found[0][0], found[0][2])
        if reason(case, difference or "") != each.why:
            unmet.append((each.example, difference))
    assert unmet == []
