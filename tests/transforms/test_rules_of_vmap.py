"""Properties of operators inside transforms, apart from values: memory, errors, checks, random numbers."""

import pytest

import adjoint as torch
from adjoint.func import grad, jvp, vmap
from adjoint.testing import assert_close


def test_a_view_that_an_example_does_not_have_is_refused():
    batch = torch.arange(12.0).reshape(2, 3, 2).clone()
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        vmap(lambda x: x.view(4), in_dims=1)(batch)
    assert vmap(lambda x: x.reshape(4), in_dims=1)(batch)[1].tolist() == [2.0, 3.0, 8.0, 9.0]
    assert vmap(lambda x: x.view(2, 1, 2), in_dims=1)(batch)._base is batch


def test_a_contiguous_copy_is_contiguous_for_each_example():
    batch = torch.rand(2, 3, 7)
    copy = vmap(lambda x: x.clone(memory_format=torch.contiguous_format), in_dims=1)(batch)
    assert copy.is_contiguous()
    assert not vmap(torch.clone, in_dims=1)(batch).is_contiguous()


def test_dimensions_of_numbers_transposed_are_the_same_tensor():
    numbers = torch.rand(3)
    assert vmap(lambda x: x.transpose(0, -1))(numbers) is numbers
    with pytest.raises(IndexError, match="Dimension out of range"):
        vmap(lambda x: x.transpose(0, 1))(numbers)


def test_number_as_complex_is_refused():
    with pytest.raises(RuntimeError, match="Input tensor must have one or more dimensions"):
        vmap(torch.view_as_complex)(torch.rand(2))


@pytest.mark.parametrize("batch", [torch.rand(5, 2, 3), torch.rand(2, 5, 2, 3)[1], torch.rand(2, 3, 5).movedim(-1, 0)])
def test_as_strided_gives_each_example_its_window(batch):
    _, rows, columns = batch.stride()
    start = batch.storage_offset()
    windows = vmap(lambda x: x.as_strided((3, 2), (columns, rows), start))(batch)
    assert (windows == batch.mT).all()
    assert windows._base is (batch if batch._base is None else batch._base)
    assert vmap(lambda x: x.as_strided((0,), (7,)))(batch).shape == (5, 0)


@pytest.mark.parametrize(
    ("window", "words"),
    [
        (
            ((3,), (1,), 1),
            r"some memory in range \[1, 4\].*some memory in range \[0, 3\]. This is not supported inside of vmap",
        ),
        (((2,), (3,), 0), r"in range \[0, 4\]"),
        (((1, 1), (1,), 0), r"same length! Got size \[1, 1\] and stride \[1\]"),
    ],
)
def test_as_strided_beyond_an_example_is_refused(window, words):
    with pytest.raises(RuntimeError, match=words):
        vmap(lambda x: x.as_strided(*window))(torch.rand(5, 3))
    with pytest.raises(RuntimeError, match="`tensor` has no storage"):
        vmap(lambda x: x.as_strided((1,), (1,)))(torch.rand(5, 0))


def test_different_random_numbers_also_of_a_tensor_without_batch_dimension():
    shared = torch.full((20,), 0.5)
    for draw in (torch.bernoulli, torch.poisson, lambda p: torch.multinomial(p, 5), lambda p: torch.normal(p, p)):
        examples = vmap(lambda x, draw=draw: draw(shared) + 0 * x, randomness="different")(torch.zeros(3, 1))
        assert examples.unique(dim=0).shape[0] == 3
    with pytest.raises(RuntimeError, match="different inplace randomness on an unbatched tensor"):
        vmap(lambda x: shared.bernoulli_() + x, randomness="different")(torch.zeros(3, 1))
    with pytest.raises(RuntimeError, match="calling out variants"):
        vmap(lambda x: torch.rand(20, out=shared) + x, randomness="same")(torch.zeros(3, 1))


def test_distributions_validate_all_examples():
    places = torch.tensor([0.0, 1.0])
    assert_close(vmap(lambda x: torch.distributions.Normal(x, 1.0).log_prob(x))(places), torch.full((2,), -0.9189385))
    drawn = vmap(lambda x: torch.distributions.Categorical(logits=x).sample(), randomness="different")(
        torch.zeros(4, 3)
    )
    assert drawn.shape == (4,)
    with pytest.raises(ValueError, match="Expected parameter scale"):
        vmap(lambda x: torch.distributions.Normal(torch.zeros(2), x))(torch.tensor([[1.0, 1.0], [1.0, -1.0]]))


def test_truth_of_a_whole_batch():
    for values, every, some in (([1, 1], True, True), ([1, 0], False, True), ([0, 0], False, False)):
        seen = []
        vmap(lambda x, seen=seen: seen.extend((torch._is_all_true(x), torch.ops.aten._is_any_true(x))) or x)(
            torch.tensor(values, dtype=torch.bool)
        )
        assert [bool(each) for each in seen] == [every, some]


def test_histograms_of_examples():
    counts, edges = vmap(lambda x: torch.histogram(x, 2, range=(0.0, 2.0)))(torch.tensor([[0.5, 1.5], [1.2, 1.8]]))
    assert counts.tolist() == [[1.0, 1.0], [0.0, 2.0]]
    assert edges.tolist() == [[0.0, 1.0, 2.0]] * 2


def test_data_set_inside_a_transform_is_refused():
    x, captured = torch.rand(2), torch.rand(2)

    def set_data(x, of=lambda x: x):
        of(x).data = torch.zeros(2)
        return x.sum()

    for of in (lambda x: x, lambda x: x * 2, lambda x: torch.ones(2)):
        with pytest.raises(RuntimeError, match=r"mutating directly with `.data` inside functorch transform"):
            grad(lambda x, of=of: set_data(x, of))(x)
        with pytest.raises(RuntimeError, match=r"mutating directly with `.data` inside functorch transform"):
            jvp(lambda x, of=of: set_data(x, of), (x,), (x,))
    assert grad(lambda x: set_data(x, lambda _: captured))(x).tolist() == [1.0, 1.0]
    assert captured.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("name", "function", "args"),
    [
        ("masked_fill.Tensor", torch.masked_fill, (torch.ones(2, 3), torch.ones(2, 3) > 0, torch.ones(2))),
        ("take", torch.take, (torch.ones(2, 3), torch.zeros(2, 2, dtype=torch.long))),
        ("addmm_", torch.Tensor.addmm_, (torch.ones(2, 3, 3),) * 3),
        ("max_unpool2d", torch.nn.functional.max_unpool2d, (torch.ones(2, 1, 2, 2), torch.zeros(2, 1, 2, 2).long(), 2)),
    ],
)
def test_operators_that_pytorch_applies_to_one_example_after_another_are_refused_on_request(name, function, args):
    functorch = torch._C._functorch
    in_dims = tuple(0 if isinstance(arg, torch.Tensor) else None for arg in args)
    functorch._set_vmap_fallback_enabled(False)
    try:
        assert not functorch._is_vmap_fallback_enabled()
        with pytest.raises(RuntimeError, match=f"aten::{name} hit the vmap fallback which is currently disabled"):
            vmap(function, in_dims)(*args)
        assert_close(vmap(lambda x: x.masked_fill(x > 0, 2.0).add_(1))(torch.ones(2, 3)), torch.full((2, 3), 3.0))
    finally:
        functorch._set_vmap_fallback_enabled(True)
    vmap(function, in_dims)(*[arg.clone() if isinstance(arg, torch.Tensor) else arg for arg in args])


def test_levels_of_tensors_that_leave_their_transform():
    level, left = torch._C._functorch.dlevel, []
    grad(
        lambda x: (left.append(x.sin()), grad(lambda y: left.extend((level(y), level(x), level(left[0]))) or y)(x))[1]
    )(torch.tensor(0.5))
    assert left[1:] == [2, 1, 1]
    assert (level(left[0]), level(left[0].sum()), level(torch.ones(2))) == (-1, 0, 0)


def test_copies_and_changes_by_strides_read_the_memory_of_the_batch():
    batch = torch.arange(30.0).reshape(3, 2, 5).movedim(-1, 0).transpose(1, 2)  # no example is contiguous
    size, stride = (3, 2), (10, 5)
    assert_close(vmap(lambda x: torch.as_strided_copy(x, size, stride))(batch), batch.transpose(1, 2))
    total = vmap(grad(lambda x: torch.as_strided_copy(x, size, stride).pow(2).sum()))(batch)
    assert_close(total, 2 * batch)
    written = vmap(lambda x: torch.as_strided_scatter(x, torch.ones(size), size, stride))(batch)
    assert_close(written, torch.ones_like(batch))
    with pytest.raises(RuntimeError, match="can access memory outside of `tensor`"):
        vmap(lambda x: torch.as_strided_copy(x, size, (10, 50)))(batch)


def test_tolerances_with_dimensions_belong_to_each_example():
    matrices = torch.arange(12.0).reshape(2, 2, 3)
    tolerances = torch.tensor([0.0, 1.0, 100.0])
    ranks = vmap(lambda x: torch.linalg.matrix_rank(x, atol=tolerances))(matrices)
    assert ranks.tolist() == [torch.linalg.matrix_rank(x, atol=tolerances).tolist() for x in matrices]
    for function in (torch.linalg.matrix_rank, torch.linalg.pinv):
        for tolerance in (tolerances, tolerances[0]):
            with pytest.raises(RuntimeError, match=r"2 (or more )?dimensions"):
                vmap(lambda x: function(x, atol=tolerance))(torch.eye(3))  # noqa: B023


def test_new_memory_has_as_many_strides_as_sizes():
    with pytest.raises(RuntimeError, match=r"dimensionality of sizes \(1\) must match dimensionality of strides \(0\)"):
        vmap(lambda x: x.new_empty_strided((2,), ()))(torch.ones(3))
