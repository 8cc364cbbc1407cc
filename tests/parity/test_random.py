"""Random numbers and the generator's state, bit for bit against PyTorch, over seeds, sizes, types and parameters."""

import warnings

import ml_dtypes
import numpy
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from adjoint.kernels.create import random as kernels
from adjoint.kernels.create.random import Stream

pytestmark = pytest.mark.computed

torch = pytest.importorskip("torch")

BFLOAT16 = numpy.dtype(ml_dtypes.bfloat16)
FLOATING = ("float32", "float64", "float16", "bfloat16")
COMPLEX = ("complex64", "complex128")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8", "bool")
LONG_UNSIGNED = ("uint16", "uint32", "uint64")

seeds = st.integers(-(2**63), 2**64 - 1)
sizes = st.one_of(st.integers(0, 40), st.sampled_from((100, 624, 625, 1000, 2047, 2048, 4095, 33000)))
layouts = st.sampled_from(("contiguous", "contiguous", "transposed", "strided"))
positive = st.floats(1e-3, 1e3)
finite = st.one_of(st.sampled_from((0.0, 1.0, -1.0)), st.floats(-1e4, 1e4, allow_subnormal=False))
probabilities = st.floats(0.0, 1.0)


def over(*strategies, examples=100):
    """Decorate a test with a search over `strategies`, without a time limit, because the machine may be busy."""
    return lambda test: settings(deadline=None, max_examples=examples)(given(*strategies)(test))


def numpy_dtype(name):
    return BFLOAT16 if name == "bfloat16" else numpy.dtype(name)


def to_numpy(tensor):
    if tensor.dtype == torch.bfloat16:
        return tensor.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def torch_empty(n, name, layout):
    dtype = getattr(torch, name)
    if layout == "transposed":
        return torch.empty(3, n, dtype=dtype).t()
    return torch.empty(n, 2, dtype=dtype)[:, 0] if layout == "strided" else torch.empty(n, dtype=dtype)


def numpy_empty(n, name, layout):
    dtype = numpy_dtype(name)
    if layout == "transposed":
        return numpy.empty((3, n), dtype).T
    return numpy.empty((n, 2), dtype)[:, 0] if layout == "strided" else numpy.empty(n, dtype)


def attempt(draw, source):
    """Return the result of `draw`, or the type and the first line of its exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return draw(source), None
        except (RuntimeError, ValueError, TypeError) as error:
            return None, (type(error), str(error).splitlines()[0])


def assert_same(seed, draw_torch, draw_kernel):
    """Assert that both libraries draw the same bits or raise the same error, and that the generators then have equal states."""
    generator, stream = torch.Generator(), Stream()
    generator.manual_seed(seed)
    stream.manual_seed(seed)
    if seed % 2:  # the generator stores one number of a pair of normal numbers
        torch.randn(1, generator=generator)
        kernels.normal_(stream, numpy.empty((1,), numpy.dtype(numpy.float32)))
    expected, expected_error = attempt(draw_torch, generator)
    found, error = attempt(draw_kernel, stream)
    assert error == expected_error
    if expected is not None:
        expected = to_numpy(expected)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert found.tobytes() == expected.tobytes()
    assert stream.get_state().tobytes() == generator.get_state().numpy().tobytes()


def check_in_place(seed, n, name, layout, draw_torch, draw_kernel):
    assert_same(
        seed,
        lambda generator: draw_torch(torch_empty(n, name, layout), generator),
        lambda stream: draw_kernel(stream, numpy_empty(n, name, layout)),
    )


@pytest.mark.thorough
@over(seeds, sizes, st.sampled_from(FLOATING + COMPLEX + ("int64",)))
def test_rand_and_randn(seed, n, name):
    dtype = getattr(torch, name)
    for draw_torch, draw_kernel in ((torch.rand, kernels.uniform_), (torch.randn, kernels.normal_)):
        assert_same(
            seed,
            lambda generator, draw=draw_torch: draw(n, dtype=dtype, generator=generator),
            lambda stream, draw=draw_kernel: draw(stream, numpy.empty((n,), numpy_dtype(name))),
        )


@over(seeds, sizes, st.sampled_from(FLOATING + COMPLEX), layouts, finite, finite)
def test_uniform(seed, n, name, layout, start, stop):
    check_in_place(
        seed, n, name, layout,
        lambda out, generator: out.uniform_(start, stop, generator=generator),
        lambda stream, out: kernels.uniform_(stream, out, start, stop),
    )  # fmt: skip


@pytest.mark.thorough
@over(seeds, sizes, st.sampled_from(FLOATING + COMPLEX), layouts, finite, st.floats(-0.1, 1e3, allow_subnormal=False))
def test_normal_in_place(seed, n, name, layout, mean, std):
    check_in_place(
        seed, n, name, layout,
        lambda out, generator: out.normal_(mean, std, generator=generator),
        lambda stream, out: kernels.normal_(stream, out, mean, std),
    )  # fmt: skip


@pytest.mark.thorough
@over(seeds, sizes, st.sampled_from(FLOATING), finite)
def test_normal_of_arrays(seed, n, name, number):
    dtype = getattr(torch, name)
    means, stds = torch.linspace(-2, 2, n).to(dtype), torch.linspace(0, 3, n).to(dtype)
    for mean, std in ((means, stds), (means, abs(number)), (number, stds), (means[:3, None], stds)):
        arrays = [to_numpy(given) if isinstance(given, torch.Tensor) else given for given in (mean, std)]
        assert_same(
            seed,
            lambda generator, mean=mean, std=std: torch.normal(mean, std, generator=generator),
            lambda stream, arrays=arrays: kernels.normal(stream, *arrays),
        )


limits = st.one_of(
    st.integers(-300, 300),
    st.integers(-(2**63), 2**63 - 1),
    st.builds(lambda power, offset: 2**power + offset, st.integers(0, 62), st.integers(-2, 2)),
    st.builds(lambda power, offset: -(2**power) + offset, st.integers(0, 62), st.integers(-2, 2)),
)


@pytest.mark.thorough
@over(seeds, sizes, st.sampled_from(FLOATING + INTEGERS + LONG_UNSIGNED + ("complex64",)), layouts, limits, limits)
def test_random_in_place(seed, n, name, layout, low, high):
    for bounds in ((), (low, None), (low, high), (0, high)):
        check_in_place(
            seed, n, name, layout,
            lambda out, generator, bounds=bounds: out.random_(*bounds, generator=generator),
            lambda stream, out, bounds=bounds: kernels.random_(stream, out, *bounds),
        )  # fmt: skip


@pytest.mark.thorough
@over(seeds, sizes, st.sampled_from(INTEGERS + FLOATING), limits, limits)
def test_randint(seed, n, name, low, high):
    assume(name != "bool")
    dtype = getattr(torch, name)
    assert_same(
        seed,
        lambda generator: torch.randint(low, high, (n,), dtype=dtype, generator=generator),
        lambda stream: kernels.random_(stream, numpy.empty((n,), numpy_dtype(name)), low, high),
    )


@over(
    seeds, st.one_of(sizes, st.sampled_from((65536, 65537, 100000))), st.sampled_from(INTEGERS + FLOATING), examples=50
)
def test_randperm(seed, n, name):
    dtype = getattr(torch, name)
    assert_same(
        seed,
        lambda generator: torch.randperm(n, dtype=dtype, generator=generator),
        lambda stream: kernels.randperm(stream, n, numpy_dtype(name)),
    )


@pytest.mark.thorough
@over(seeds, sizes, st.sampled_from(FLOATING + INTEGERS + ("complex64", "uint16")), layouts, st.floats(-0.1, 1.1))
def test_bernoulli_of_a_number(seed, n, name, layout, p):
    check_in_place(
        seed, n, name, layout,
        lambda out, generator: out.bernoulli_(p, generator=generator),
        lambda stream, out: kernels.bernoulli_(stream, out, p),
    )  # fmt: skip


@pytest.mark.thorough
@over(seeds, sizes, st.sampled_from(FLOATING), st.sampled_from(FLOATING + INTEGERS), layouts)
def test_bernoulli_of_an_array(seed, n, name, out_name, layout):
    p = torch.linspace(0, 1, n).to(getattr(torch, name))
    array = to_numpy(p)
    assert_same(
        seed,
        lambda generator: torch.bernoulli(p, generator=generator),
        lambda stream: kernels.bernoulli(stream, array),
    )
    column = (slice(None), None) if layout == "transposed" else slice(None)
    check_in_place(
        seed, n, out_name, layout,
        lambda out, generator: out.bernoulli_(p[column], generator=generator),
        lambda stream, out: kernels.bernoulli_(stream, out, array[column]),
    )  # fmt: skip


@over(seeds, sizes, st.sampled_from(FLOATING), probabilities)
def test_dropout(seed, n, name, p):
    x = torch.linspace(-3, 3, n).to(getattr(torch, name))

    def draw_torch(generator):
        with torch.random.fork_rng():
            torch.set_rng_state(generator.get_state())
            dropped = torch.nn.functional.dropout(x, p, True)
            generator.set_state(torch.get_rng_state())
        return dropped

    assert_same(
        seed,
        draw_torch,
        lambda stream: to_numpy(x) * kernels.dropout_mask(stream, numpy.empty(n, numpy_dtype(name)), p),
    )


@pytest.mark.thorough
@over(seeds, sizes, st.sampled_from(FLOATING + INTEGERS), layouts, st.floats(-1, 1e3), finite, probabilities)
@example(0, 100, "float32", "contiguous", 5e-324, 0.0, 0.0)
def test_functions_of_uniform_numbers(seed, n, name, layout, scale, center, p):
    for method, arguments in (
        ("exponential_", (scale,)),
        ("cauchy_", (center, scale)),
        ("log_normal_", (center / 1e3, scale / 1e2)),
        ("geometric_", (p,)),
    ):
        kernel = getattr(kernels, method)
        check_in_place(
            seed, n, name, layout,
            lambda out, generator, name=method, given=arguments: getattr(out, name)(*given, generator=generator),
            lambda stream, out, kernel=kernel, given=arguments: kernel(stream, out, *given),
        )  # fmt: skip


@pytest.mark.thorough
@over(seeds, st.integers(1, 500), st.integers(1, 3), st.sampled_from(FLOATING), st.data())
def test_multinomial(seed, n, rows, name, data):
    probs = (torch.rand(rows, n, generator=torch.Generator().manual_seed(n)) + 1e-3).to(getattr(torch, name))
    probs = probs[0] if rows == 1 else probs
    samples = data.draw(st.integers(1, n + 1))
    for replacement in (False, True):
        if not replacement and samples > 1 and _has_ties(seed, probs, samples):
            continue
        assert_same(
            seed,
            lambda generator, replacement=replacement: torch.multinomial(
                probs, samples, replacement, generator=generator
            ),
            lambda stream, replacement=replacement: kernels.multinomial(stream, to_numpy(probs), samples, replacement),
        )


def _has_ties(seed, probs, samples):
    """Return whether two categories have equal ranks, because PyTorch then orders them by an unstable sort."""
    generator = torch.Generator().manual_seed(seed)
    if seed % 2:
        torch.randn(1, generator=generator)
    ranks = probs / torch.empty_like(probs).exponential_(generator=generator)
    return any(len(row.unique()) < len(row) for row in ranks.reshape(-1, probs.shape[-1]))


@pytest.mark.thorough
@over(seeds, st.integers(0, 60), st.sampled_from(FLOATING), st.floats(0, 200))
def test_poisson(seed, n, name, largest):
    rate = torch.linspace(0, largest, n).to(getattr(torch, name))
    assert_same(
        seed,
        lambda generator: torch.poisson(rate, generator=generator),
        lambda stream: kernels.poisson(stream, to_numpy(rate)),
    )


@over(seeds, st.integers(0, 3000), st.integers(0, 3))
def test_states_are_exchanged_with_pytorch(seed, words, normals):
    generator, stream = torch.Generator(), Stream()
    generator.manual_seed(seed)
    torch.rand(words, generator=generator)
    torch.randn(normals, generator=generator)
    stream.set_state(generator.get_state().numpy())
    assert stream.initial_seed == generator.initial_seed()
    kernels.normal_(stream, numpy.empty((5,), numpy.dtype(numpy.float32)))
    kernels.uniform_(stream, numpy.empty((700,), numpy.dtype(numpy.float32)))
    torch.randn(5, generator=generator)
    torch.rand(700, generator=generator)
    other = torch.Generator()
    other.set_state(torch.from_numpy(stream.get_state()))
    assert torch.equal(other.get_state(), generator.get_state())


def test_a_million_normal_numbers_in_a_row():
    assert_same(
        2,
        lambda generator: torch.randn(2**20 + 3, generator=generator),
        lambda stream: kernels.normal_(stream, numpy.empty((2**20 + 3,), numpy.dtype(numpy.float32))),
    )
