"""Compiled attention in blocks agrees with NumPy's form. NumPy's form agrees with attention that computes all scores at once."""

from __future__ import annotations

import math

import numpy
import pytest

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

import adjoint as torch
from adjoint.codegen.acceleration import LOOPS
from adjoint.codegen.llvm.host import HOST
from adjoint.kernels.compiled.nn import attention as compiled
from adjoint.kernels.nn import attention as kernels
from adjoint.kernels.runtime import parallel
from adjoint.nn import functional as F

TOLERANCE = {"f4": 3e-5, "f8": 1e-12}


@pytest.fixture
def numpy_alone(monkeypatch):
    monkeypatch.setattr(LOOPS, "_enabled", False)


@pytest.fixture
def any_size(monkeypatch):
    monkeypatch.setattr(LOOPS, "every_size", True)


def _mask(rng, form, batch, heads, length, keys):
    shape = {
        "full": (batch, heads, length, keys),
        "rows": (1, 1, length, keys),
        "keys": (batch, 1, 1, keys),
        "one": (1, 1, 1, 1),
    }
    if form is None:
        return None
    mask = rng.standard_normal(shape[form])
    mask[rng.random(mask.shape) < 0.3] = -math.inf
    if form == "rows":
        mask[..., 0, :] = -math.inf
    return mask


def _same(sizes, dtype, causal=False, mask=None, dropped=False):
    batch, heads, key_heads, length, keys, width, value_width = sizes
    rng = numpy.random.default_rng(0)
    query = rng.standard_normal((batch, length, heads, width)).astype(dtype).swapaxes(1, 2)
    key = rng.standard_normal((batch, key_heads, keys, width)).astype(dtype)
    value = rng.standard_normal((batch, key_heads, value_width, keys)).astype(dtype).mT
    added = _mask(rng, mask, batch, heads, length, keys)
    added = None if added is None else added.astype(dtype)
    kept, share = None, 0.0
    if dropped:
        share = 0.3
        kept = kernels.packed_weights(
            lambda noise: rng.random(noise.shape) < 1 - share, (batch, heads, length), keys, numpy.dtype(dtype)
        )
        kept = kept.reshape((batch, heads, *kept.shape[1:]))
    arguments = (query, key, value, added, kept, share, causal, 0.4)
    expected = kernels.attention(*arguments)
    grad = rng.standard_normal(expected[0].shape).astype(dtype)
    expected += kernels.attention_gradients(grad, *arguments, *expected)
    found = compiled.attention(*arguments)
    found += compiled.attention_gradients(grad, *arguments, *found)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        numpy.testing.assert_allclose(one, other, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.usefixtures("numpy_alone")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "sizes",
    [
        (1, 1, 1, 1, 1, 1, 1),
        (2, 3, 3, 5, 7, 4, 4),
        (2, 2, 2, 100, 130, 64, 64),
        (1, 4, 2, 33, 65, 20, 17),
        (1, 1, 1, 200, 200, 16, 48),
        (1, 2, 1, 3, 3, 256, 256),
    ],
)
def test_sizes(sizes, causal, dtype):
    _same(sizes, dtype, causal)


@pytest.mark.one_each("mask")
@pytest.mark.usefixtures("numpy_alone")
@pytest.mark.parametrize("mask", [None, "full", "rows", "keys", "one"])
@pytest.mark.parametrize("dropped", [False, True])
@pytest.mark.long_cases
def test_masks_and_dropout(mask, dropped):
    _same((2, 4, 2, 70, 90, 32, 24), "f8", mask=mask, dropped=dropped)


@pytest.mark.thorough
@pytest.mark.usefixtures("numpy_alone")
@pytest.mark.parametrize("vector_bytes", [16, 32])
def test_narrower_vectors(monkeypatch, vector_bytes):
    monkeypatch.setitem(HOST.__dict__, "vector_bytes", vector_bytes)
    _same((1, 2, 2, 37, 41, 24, 20), "f4", causal=True)
    _same((1, 2, 2, 37, 41, 24, 20), "f4", mask="rows", dropped=True)


@pytest.mark.usefixtures("numpy_alone")
@pytest.mark.parametrize("threads", [1, 3])
def test_queries_of_one_head_are_shared_among_threads(monkeypatch, threads):
    monkeypatch.setattr(parallel, "num_threads", threads)
    _same((1, 1, 1, 300, 300, 32, 32), "f8", causal=True)


def test_same_bits_every_time(any_size):
    torch.manual_seed(0)
    query = torch.randn(1, 2, 300, 32, requires_grad=True)
    runs = []
    for _ in range(3):
        output = F.scaled_dot_product_attention(query, query, query, is_causal=True)
        runs.append((output, *torch.autograd.grad(output.sum(), query)))
    assert all((one == other).all() for run in runs[1:] for one, other in zip(run, runs[0], strict=True))


def _derivatives(dtype, mask, dropout, shape, options):
    torch.manual_seed(0)
    query, key, value = (torch.randn(shape, dtype=dtype, requires_grad=True) for _ in range(3))
    output = F.scaled_dot_product_attention(query, key, value, mask, dropout, **options)
    first = torch.autograd.grad(output, (query, key, value), torch.ones_like(output) * 0.5, create_graph=True)
    return [output, *first, *torch.autograd.grad(sum((each * each).sum() for each in first), (query, key, value))]


@pytest.mark.parametrize(
    ("shape", "mask", "dropout", "options"),
    [
        ((2, 3, 9, 4), None, 0.0, {}),
        ((2, 3, 9, 4), None, 0.0, {"is_causal": True, "scale": -0.7}),
        ((3, 9, 4), "bool", 0.0, {}),
        ((9, 4), "float", 0.0, {}),
        ((2, 3, 9, 4), "bool", 0.25, {}),
    ],
)
def test_blocks_and_all_scores_at_once_agree_to_the_second_derivative(monkeypatch, shape, mask, dropout, options):
    if mask is not None:
        allowed = torch.ones(9, 9, dtype=torch.bool).tril(2)
        allowed[3] = False
        mask = allowed if mask == "bool" else torch.zeros(9, 9, dtype=torch.float64).masked_fill(~allowed, -math.inf)
    monkeypatch.setattr(LOOPS, "every_size", True)
    found = _derivatives(torch.float64, mask, dropout, shape, options)
    assert found[0].grad_fn.name() == "ScaledDotProductFlashAttentionForCpuBackward0"
    monkeypatch.setattr(LOOPS, "every_size", False)
    monkeypatch.setattr(kernels, "PART", 0)
    expected = _derivatives(torch.float64, mask, dropout, shape, options)
    assert expected[0].grad_fn.name() != found[0].grad_fn.name()
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    "options", [{}, {"is_causal": True, "scale": -0.7}, {"attn_mask": "bool"}, {"attn_mask": "float"}]
)
@pytest.mark.parametrize("heads", [2, 4])
def test_small_ones_are_one_operator_without_loops_too(monkeypatch, numpy_alone, heads, options):
    def derivatives():
        torch.manual_seed(0)
        query = torch.randn(2, 4, 5, 3, dtype=torch.float64)
        key, value = torch.randn(2, 2, heads, 7, 3, dtype=torch.float64).unbind()
        inputs = [each.requires_grad_() for each in (query, key, value)]
        output = F.scaled_dot_product_attention(*inputs, **given, enable_gqa=heads < 4)
        output.backward(torch.randn(output.shape, dtype=torch.float64))
        return output.grad_fn.name(), output, *[each.grad for each in inputs]

    given = dict(options)
    if "attn_mask" in given:
        allowed = torch.ones(5, 7, dtype=torch.bool).tril(3)
        allowed[1] = False
        given["attn_mask"] = allowed if given["attn_mask"] == "bool" else torch.where(allowed, 0.3, -math.inf).double()
    name, *found = derivatives()
    assert name == "ScaledDotProductFlashAttentionForCpuBackward0"
    parts = kernels.parts
    monkeypatch.setattr(kernels, "parts", lambda *arguments: parts(*arguments[:-1], 1))
    by_head = derivatives()[1:]
    monkeypatch.setattr(kernels, "PART", 0)
    name, *expected = derivatives()
    assert name != "ScaledDotProductFlashAttentionForCpuBackward0"
    for others in (found, by_head):
        for one, other in zip(others, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.thorough
def test_rows_that_attend_to_nothing_give_zeros_and_pass_no_gradient(any_size):
    query = torch.randn(1, 1, 4, 8, requires_grad=True)
    mask = torch.zeros(4, 4)
    mask[2] = -math.inf
    for given in (mask, mask == 0):
        output = F.scaled_dot_product_attention(query, query, query, given)
        assert (output[0, 0, 2] == 0).all()
        assert not torch.autograd.grad(output[0, 0, 2].sum(), query)[0].any()


def test_nan_stays_in_its_row(any_size):
    query = torch.randn(1, 1, 40, 8)
    query[0, 0, 7, 3] = math.nan
    key = torch.randn(1, 1, 40, 8)
    output = F.scaled_dot_product_attention(query, key, key)
    assert output.isnan().any(-1).flatten().nonzero().flatten().tolist() == [7]


def test_transforms_take_the_scores_at_once(any_size):
    query = torch.randn(2, 3, 5, 4, dtype=torch.float64)
    attend = lambda part: F.scaled_dot_product_attention(part, part, part, is_causal=True)
    torch.testing.assert_close(torch.func.vmap(attend)(query), attend(query))
    _, tangent = torch.func.jvp(attend, (query,), (torch.ones_like(query),))
    step = 1e-6
    torch.testing.assert_close(
        tangent, (attend(query + step) - attend(query - step)) / (2 * step), rtol=1e-6, atol=1e-8
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types_are_computed_in_float32(any_size, dtype):
    query = torch.randn(2, 2, 50, 16).to(dtype)
    expected = F.scaled_dot_product_attention(query.float(), query.float(), query.float())
    assert (F.scaled_dot_product_attention(query, query, query) == expected.to(dtype)).all()


def test_scores_are_not_held():
    import tracemalloc

    query = torch.randn(1, 1, 2048, 16, requires_grad=True)
    F.scaled_dot_product_attention(query, query, query, is_causal=True).sum().backward()
    tracemalloc.start()
    F.scaled_dot_product_attention(query, query, query, is_causal=True).sum().backward()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2048 * 2048 * 4 / 4


@pytest.mark.parametrize("which", [(0,), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("dim", [0, 1])
def test_inputs_whose_elements_share_memory(any_size, which, dim):
    rng = numpy.random.default_rng(0)
    given = [torch.from_numpy(rng.random((40, 3, 5, 4))) for _ in range(3)]
    for place in which:
        given[place] = given[place].narrow(dim, 0, 1).expand(40, 3, 5, 4)
    found = F.scaled_dot_product_attention(*given, is_causal=True)
    expected = F.scaled_dot_product_attention(*(one.clone() for one in given), is_causal=True)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("causal", [False, True])
def test_parts_of_one_array_give_the_bits_of_separate_arrays(causal):
    rng = numpy.random.default_rng(0)
    parts = rng.standard_normal((1, 130, 3, 2, 64), numpy.float32).transpose(2, 0, 3, 1, 4)
    grad = rng.standard_normal((1, 2, 130, 64), numpy.float32)
    results = []
    for arrays in (parts, numpy.ascontiguousarray(parts)):
        arguments = (*arrays, None, None, 0.0, causal, 0.125)
        found = compiled.attention(*arguments)
        results.append(found + compiled.attention_gradients(grad, *arguments, *found))
    for one, other in zip(*results, strict=True):
        numpy.testing.assert_array_equal(one, other)


def test_a_key_that_is_nan_reaches_the_queries_that_attend_to_it():
    query, key, value = numpy.random.default_rng(0).standard_normal((3, 1, 1, 20, 8), numpy.float32)
    key[..., 5, 0] = math.nan
    out, _ = compiled.attention(query, key, value, None, None, 0.0, True, 1.0)
    assert numpy.isfinite(out[..., :5, :]).all()
    assert numpy.isnan(out[..., 5:, :]).all()
