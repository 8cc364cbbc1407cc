"""Functional layers refuse wrong arguments with PyTorch's messages. Results keep the dtypes of the arguments."""

import warnings

import pytest

import adjoint as torch
import adjoint.nn.functional as F


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic", "area", "nearest-exact"])
@pytest.mark.parametrize("size", [2.0, (2.0, 2.0), (2, 2.5), True, "2"], ids=str)
def test_sizes_of_images_are_integers(mode, size):
    image = torch.ones(1, 1, 4, 4)
    with pytest.raises(TypeError, match="expected size to be one of int or Tuple"):
        F.interpolate(image, size=size, mode=mode)
    assert F.interpolate(image, size=torch.tensor(2), mode=mode).shape == (1, 1, 2, 2)


@pytest.mark.parametrize("shape", [(1, 4), (1, 4, 1), (1, 4, 1, 1)])
def test_groups_of_one_value_cannot_be_normalized(shape):
    with pytest.raises(ValueError, match="Expected more than 1 value per channel when training, got input size"):
        F.group_norm(torch.ones(shape), 4)
    with pytest.raises(ValueError, match="Expected more than 1 value"):
        torch.nn.GroupNorm(4, 4)(torch.ones(shape))
    assert F.group_norm(torch.ones(2, *shape[1:]), 4).shape == (2, *shape[1:])


@pytest.mark.parametrize(
    "dtype", [torch.int64, torch.int32, torch.uint8, torch.float16, torch.bfloat16, torch.complex64]
)
def test_masks_of_attention_are_of_bool_or_of_its_dtype(dtype):
    query = torch.ones(1, 2, 3, 4)
    with pytest.raises(RuntimeError, match="Expected attn_mask dtype to be bool or float or to match query dtype"):
        F.scaled_dot_product_attention(query, query, query, attn_mask=torch.ones(3, 3).to(dtype))
    for kind in (torch.bool, torch.float32):
        F.scaled_dot_product_attention(query, query, query, attn_mask=torch.ones(3, 3).to(kind))


@pytest.mark.parametrize("mask", ["attn_mask", "key_padding_mask"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_weights_of_attention_refuse_masks_of_another_dtype(dtype, mask):
    query, attention = torch.ones(2, 3, 4), torch.nn.MultiheadAttention(4, 2, batch_first=True)
    given = torch.zeros(3 if mask == "attn_mask" else 2, 3)
    assert attention(query, query, query, **{mask: given})[1].shape == (2, 3, 3)
    with pytest.raises(
        RuntimeError, match=r"Input dtypes must be the same, got: input .*, batch1: float, batch2: float"
    ):
        attention(query, query, query, **{mask: given.to(dtype)})


@pytest.mark.parametrize("keys", [1, 4])
def test_padding_masks_of_attention_have_an_element_for_each_key(keys):
    query, attention = torch.ones(2, 3, 4), torch.nn.MultiheadAttention(4, 2, batch_first=True)
    for weights in (True, False):
        with pytest.raises(AssertionError, match=rf"Expected key_padded_mask.shape\[1\] to be 3, but got {keys}"):
            attention(query, query, query, key_padding_mask=torch.zeros(2, keys), need_weights=weights)


def test_divergences_are_of_real_floating_point_numbers():
    real, whole = torch.ones(2, 3), torch.ones(2, 3, dtype=torch.int64)
    for pair in ((whole, real), (real, whole), (whole, whole), (real > 0, real)):
        for log_target in (False, True):
            with pytest.raises(RuntimeError, match="kl_div: Integral inputs not supported"):
                F.kl_div(*pair, reduction="sum", log_target=log_target)
    for pair in ((real * 1j, real), (real, real * 1j), (whole, real * 1j)):
        with pytest.raises(RuntimeError, match="kl_div: Complex inputs not supported"):
            F.kl_div(*pair, reduction="sum")


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.bfloat16])
def test_cholesky_factors_are_of_types_that_lapack_has(dtype):
    factor = torch.eye(3).to(dtype)
    with pytest.raises(NotImplementedError, match='"cholesky_inverse_out_cpu" not implemented for'):
        torch.cholesky_inverse(factor)
    with pytest.raises(NotImplementedError, match='"cholesky_solve_cpu" not implemented for'):
        torch.cholesky_solve(factor, factor)


@pytest.mark.parametrize("padding_side", ["left", "right"])
@pytest.mark.parametrize("batch_first", [False, True])
def test_padded_sequences_have_the_dtype_of_the_first_one(batch_first, padding_side):
    whole, real = torch.ones(2, dtype=torch.int64), torch.ones(3) * 1.5
    pad = torch.nn.utils.rnn.pad_sequence
    for first, second in ((whole, real), (real, whole), (real, real.double())):
        found = pad([first, second], batch_first, padding_side=padding_side)
        assert found.dtype == first.dtype
        assert found.sum() == first.sum() + second.to(first.dtype).sum()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("dims", [2, 3])
def test_grids_have_the_dtype_of_their_maps(dims, dtype):
    maps = torch.randn(2, dims, dims + 1).to(dtype).requires_grad_()
    grid = F.affine_grid(maps, (2, 1, *[3] * dims), align_corners=False)
    assert grid.dtype == dtype
    exact = F.affine_grid(maps.detach().double(), (2, 1, *[3] * dims), align_corners=False)
    torch.testing.assert_close(grid.double(), exact, rtol=2e-2, atol=2e-2)
    assert torch.autograd.grad(grid.sum(), maps)[0].dtype == dtype


def test_a_scalar_made_of_a_tensor_with_a_history_warns_once():
    from adjoint import interchange

    x = torch.ones((), requires_grad=True)
    for convert in (float, complex):
        interchange._warn_of_lost_history.cache_clear()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            int(x), bool(x), x.item(), float(x.detach())
            assert not caught
            convert(x), convert(x)
        assert [str(each.message)[:42] for each in caught] == ["Converting a tensor with requires_grad=Tru"]


def test_extreme_statistics_are_no_accident():
    large = torch.full((2, 3, 4), 3e38)
    large[0] *= -1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in (large, large * torch.inf, torch.zeros(2, 3, 4)):
            running = torch.zeros(3), torch.ones(3)
            F.batch_norm(x, *running, training=True)
            F.instance_norm(x, *running, use_input_stats=True, eps=0.0)
        torch.histogramdd(torch.tensor([[-3e38, 3e38], [3e38, 1.0]]), bins=[2, 2], density=True)
        torch.histogramdd(torch.ones(2, 2), bins=[2, 2], range=[5.0, 6.0, 5.0, 6.0], density=True)


def test_attention_refuses_masks_and_biases_that_do_not_fit():
    layer, single = torch.nn.MultiheadAttention(4, 2, add_bias_kv=True), torch.ones(3, 4)
    with pytest.raises(AssertionError, match=r"`attn_mask` shape to be \(2, 3, 3\) but got torch.Size\(\[5, 3, 3\]\)"):
        layer(single, single, single, attn_mask=torch.zeros(5, 3, 3))
    weights = (layer.in_proj_weight, layer.in_proj_bias, layer.bias_k, layer.bias_v, False, 0.0)
    for name in ("key", "value"):
        with pytest.raises(AssertionError, match=f"bias cannot be added to static {name}"):
            F.multi_head_attention_forward(
                *[torch.ones(3, 1, 4)] * 3,
                *(4, 2, *weights, layer.out_proj.weight, layer.out_proj.bias),
                **{f"static_{name[0]}": torch.ones(2, 3, 2)},
            )


def test_lengths_of_sequences_have_one_dimension():
    with pytest.raises(RuntimeError, match="'lengths' argument should be a 1D CPU int64 tensor, but got 2D cpu Long"):
        torch.nn.utils.rnn.pack_padded_sequence(torch.ones(3, 3), torch.tensor([[3, 2, 1]]))


def test_attention_refuses_heads_that_do_not_divide_and_mixed_devices():
    query, key = torch.ones(2, 4, 3, 4), torch.ones(2, 3, 3, 4)
    with pytest.raises(RuntimeError, match="Number of heads in key and value must divide"):
        F.scaled_dot_product_attention(query, key, key, enable_gqa=True)
    with pytest.raises(RuntimeError, match=r"query\.device: cpu key\.device: meta and value\.device: cpu instead"):
        F.scaled_dot_product_attention(query, query.to("meta"), query)


@pytest.mark.parametrize("shape", [(2,), (3, 1)])
def test_weights_of_classes_match_the_classes_of_probabilities(shape):
    with pytest.raises(
        RuntimeError, match=r"cross_entropy: weight tensor should be defined either for all 3 classes or no"
    ):
        F.cross_entropy(torch.ones(2, 3), torch.ones(2, 3), weight=torch.ones(shape))


def test_the_nuclear_norm_of_a_stack_needs_two_dimensions():
    x = torch.arange(8.0).reshape(2, 2, 2)
    with pytest.raises(RuntimeError, match=r"dim must be a 2-tuple. Got 0 1 2"):
        x.norm("nuc")
    with pytest.raises(RuntimeError, match=r"dim must be a 2-tuple. Got 1"):
        x.norm("nuc", 1)
    assert torch.equal(x.norm("nuc", (1, 2)), torch.linalg.matrix_norm(x, "nuc"))


def test_bags_of_embeddings_have_the_node_of_pytorch():
    weight = torch.ones(3, 2, requires_grad=True)
    bags = F.embedding_bag(torch.tensor([0, 1, 1]), weight, torch.tensor([0, 2]), mode="mean")
    assert bags.grad_fn.name() == "EmbeddingBagBackward0"


def test_separate_weights_of_attention_match_the_features_of_keys_and_values():
    attention, x = torch.nn.MultiheadAttention(4, 2, kdim=3), torch.ones(2, 1, 4)
    with pytest.raises(
        AssertionError, match=r"expecting key weights shape of \(4, 4\), but got torch.Size\(\[4, 3\]\)"
    ):
        attention(x, x, x)
    assert attention(x, x[..., :3], x)[0].shape == (2, 1, 4)


def test_options_of_linear_cross_entropy_are_checked_and_their_loss_is_named():
    options = torch.nn.modules.LinearCrossEntropyOptions
    for wrong in (
        {"batch_chunk_size": 0},
        {"batch_chunk_size": 1.5},
        {"chunking_method": "aspect_ratio:0"},
        {"chunking_method": "vocabulary"},
        {"acc_policy": "x"},
        {"acc_dtype": torch.int64},
    ):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            options(**wrong)
    x, weight, target = torch.ones(3, 5), torch.ones(4, 5), torch.tensor([0, 1, 2])
    loss = torch.nn.functional.linear_cross_entropy
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss(x, weight, target, options=options(chunking_method="aspect_ratio:2"))
        loss(x, weight, target, label_smoothing=0.1)
    with pytest.warns(UserWarning, match=r"``options`` ignored.*label_smoothing=0.1, target.dtype=torch.int64"):
        loss(x, weight, target, label_smoothing=0.1, options=options())
