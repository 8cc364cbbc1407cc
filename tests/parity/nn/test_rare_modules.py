"""PyTorch's modules that few programs use: Sobol sequences, gradients of convolutions, recurrent layers as functions, ..."""

import io
import mmap

import numpy
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("scipy")

import adjoint

LIBRARIES = torch, adjoint


def outcomes(function):
    """Return the results of both libraries, or their errors."""
    found = []
    for library in LIBRARIES:
        try:
            value = function(library)
        except Exception as error:
            value = type(error).__name__, str(error)
        found.append(value.numpy() if hasattr(value, "numpy") else value)
    return found


def tensors(library, value):
    if isinstance(value, numpy.ndarray):
        return library.from_numpy(value.copy())
    return type(value)(tensors(library, item) for item in value) if isinstance(value, list | tuple) else value


# --- Sobol sequences


@pytest.mark.parametrize("scramble", [False, True])
@pytest.mark.parametrize("dimension", [1, 2, 40])
def test_sobol_points_are_pytorchs(dimension, scramble):
    engines = {library: library.quasirandom.SobolEngine(dimension, scramble, seed=3) for library in LIBRARIES}
    steps = [
        lambda engine, library: engine.draw(),
        lambda engine, library: engine.draw(7),
        lambda engine, library: engine.draw_base2(3),
        lambda engine, library: engine.draw_base2(4),
        lambda engine, library: engine.fast_forward(100).quasi,
        lambda engine, library: engine.draw(3, dtype=library.float64),
        lambda engine, library: engine.draw(2, out=library.empty(0)),
        lambda engine, library: engine.draw(0),
        lambda engine, library: engine.draw(-1),
        lambda engine, library: engine.reset().fast_forward(5).draw(2),
        lambda engine, library: repr(engine),
        lambda engine, library: engine.sobolstate,
    ]
    for step in steps:
        expected, found = outcomes(lambda library, step=step: step(engines[library], library))
        assert getattr(found, "dtype", None) == getattr(expected, "dtype", None)
        assert numpy.array_equal(found, expected)


def test_scrambling_without_a_seed_draws_from_the_default_generator():
    def points(library):
        library.manual_seed(0)
        return library.cat([library.quasirandom.SobolEngine(4, True).draw(5), library.rand(1, 4)])

    expected, found = outcomes(points)
    assert numpy.array_equal(found, expected)


def test_a_sequence_has_at_most_so_many_dimensions():
    for dimension in (0, 21202):
        expected, found = outcomes(lambda library, dimension=dimension: library.quasirandom.SobolEngine(dimension))
        assert found == expected


# --- gradients of convolutions


@pytest.mark.parametrize("options", [{}, {"stride": 2, "padding": 1}, {"dilation": 2, "padding": 2, "groups": 2}])
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_gradients_of_convolutions(ndim, options):
    random = numpy.random.default_rng(0)
    input = random.standard_normal((2, 4, *(7,) * ndim))
    weight = random.standard_normal((6, 4 // options.get("groups", 1), *(3,) * ndim))
    output = getattr(torch, f"conv{ndim}d")(torch.from_numpy(input), torch.from_numpy(weight), **options)
    grad = random.standard_normal(tuple(output.shape))

    def to_input(library):
        function = getattr(library.nn.grad, f"conv{ndim}d_input")
        return function(input.shape, *tensors(library, [weight, grad]), **options)

    def to_weight(library):
        function = getattr(library.nn.grad, f"conv{ndim}d_weight")
        return function(library.from_numpy(input), weight.shape, library.from_numpy(grad), **options)

    for function in (to_input, to_weight):
        expected, found = outcomes(function)
        numpy.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_gradients_of_convolutions_refuse_other_sizes():
    weight, grad = adjoint.ones(3, 4, 3, 3), adjoint.ones(2, 3, 4, 4)
    with pytest.raises(RuntimeError, match="Expected 4-dimensional input for 4-dimensional weight"):
        adjoint.nn.grad.conv2d_input((4, 6, 6), weight, grad)
    with pytest.raises(RuntimeError, match="grad_output of shape"):
        adjoint.nn.grad.conv2d_input((2, 4, 7, 6), weight, grad)
    with pytest.raises(RuntimeError, match="channels"):
        adjoint.nn.grad.conv2d_input((2, 5, 6, 6), weight, grad)


# --- recurrent layers as functions


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("name", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
def test_recurrent_layers_as_functions(name, biases, bidirectional):
    random = numpy.random.default_rng(0)

    def array(*shape):
        return random.uniform(-0.5, 0.5, shape).astype("float32")

    gates, hidden, layers, directions = {"lstm": 4, "gru": 3}.get(name, 1), 4, 2, 1 + bidirectional
    params = []
    for layer in range(layers):
        for _ in range(directions):
            params += [array(gates * hidden, 3 if layer == 0 else hidden * directions), array(gates * hidden, hidden)]
            params += [array(gates * hidden), array(gates * hidden)] if biases else []
    state = array(layers * directions, 2, hidden)
    states = (state, array(layers * directions, 2, hidden)) if name == "lstm" else state
    options = (biases, layers, 0.0, False, bidirectional)
    packed = [array(6, 3), numpy.array([2, 2, 1, 1])]
    for arguments in ([array(5, 2, 3), states, params, *options, False], [array(2, 5, 3), states, params, *options, True],
                      [*packed, states, params, *options]):  # fmt: skip
        results = [
            [part.numpy() for part in getattr(library, name)(*tensors(library, arguments))] for library in LIBRARIES
        ]
        for expected, found in zip(*results, strict=True):
            numpy.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_recurrent_layers_refuse_other_arguments():
    """Some of these arguments make PyTorch write outside of its memory."""
    input, state, weights = adjoint.ones(5, 2, 3), adjoint.zeros(1, 2, 4), [adjoint.ones(16, 3), adjoint.ones(16, 4)]
    options = (False, 1, 0.0, False, False, False)
    with pytest.raises(RuntimeError, match="lstm expects two hidden states"):
        adjoint.lstm(input, [state], weights, *options)
    with pytest.raises(RuntimeError, match="expected 2 weights"):
        adjoint.gru(input, state, weights[:1], *options)
    with pytest.raises(RuntimeError, match="Expected hidden states of size"):
        adjoint.rnn_tanh(input, adjoint.zeros(1, 3, 4), weights, *options)
    with pytest.raises(TypeError, match=r"gru\(\) received an invalid combination of arguments"):
        adjoint.gru(input, state)


# --- groups of options


GROUPED = {
    "rows": ((8, 16), (3, 16, 24), [2, 5, 8]),
    "columns": ((3, 8, 16), (16, 24), [8, 8, 24]),
    "sums": ((8, 16), (16, 24), [0, 8, 16]),
    "each": ((3, 8, 16), (3, 16, 24), None),
}


@pytest.mark.parametrize("name", GROUPED)
def test_products_of_groups(name):
    first, second, ends = GROUPED[name]
    random = numpy.random.default_rng(0)
    a, b = random.standard_normal(first).astype("f4"), random.standard_normal(second).astype("f4")

    def product(library):
        offs = None if ends is None else library.tensor(ends, dtype=library.int32)
        return library.nn.functional.grouped_mm(*tensors(library, [a, b]), offs=offs)

    expected, found = outcomes(product)
    assert found.shape == expected.shape
    numpy.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_products_of_groups_have_gradients():
    a, b = (adjoint.randn(*shape, requires_grad=True) for shape in ((6, 4), (2, 4, 3)))
    result = adjoint.nn.functional.grouped_mm(a, b, offs=adjoint.tensor([2, 5], dtype=adjoint.int32))
    assert result[5:].eq(0).all()
    result.sum().backward()
    numpy.testing.assert_allclose(b.grad[1].numpy(), a[2:5].sum(0)[:, None].expand(4, 3).detach().numpy(), rtol=1e-5)


@pytest.mark.parametrize(
    "call",
    [
        lambda m, a, b, o: m.nn.functional.grouped_mm(a, b),
        lambda m, a, b, o: m.nn.functional.grouped_mm(a, b, offs=o.long()),
        lambda m, a, b, o: m.nn.functional.grouped_mm(a, b, offs=o[:2]),
        lambda m, a, b, o: m.nn.functional.grouped_mm(a, b, offs=o, bias=a),
        lambda m, a, b, o: m.nn.functional.grouped_mm(a, b[:, :8], offs=o),
        lambda m, a, b, o: m.nn.functional.grouped_mm(a[0], b, offs=o),
        lambda m, a, b, o: m.nn.functional.grouped_mm(a, b, offs=o, out_dtype=m.float16),
    ],
)
def test_products_of_groups_refuse(call):
    def run(library):
        offs = library.tensor([2, 5, 8], dtype=library.int32)
        return call(library, library.ones(8, 16), library.ones(3, 16, 24), offs)

    expected, found = outcomes(run)
    assert found == expected


# --- options of files


def test_unsafe_globals_of_a_checkpoint():
    names = []
    for library in LIBRARIES:
        file = io.BytesIO()
        with pytest.warns(UserWarning, match="refuses") if library is adjoint else io.StringIO():
            library.save({"a": library.ones(1), "b": io.BytesIO, "c": library.nn.Linear(1, 1)}, file)
        file.seek(0)
        found = set(library.serialization.get_unsafe_globals_in_checkpoint(file))
        file.seek(0)
        with library.serialization.safe_globals([library.nn.Linear]):
            names.append((found, library.serialization.get_unsafe_globals_in_checkpoint(file)))
    assert names[0] == names[1]
    expected, found = outcomes(lambda m: m.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(b"abc")))
    assert found == expected


def test_changes_reach_a_file_that_is_mapped_shared(tmp_path):
    path = tmp_path / "weights.pt"
    adjoint.save({"a": adjoint.ones(3)}, path)
    adjoint.load(path, mmap=True)["a"].add_(1)
    assert adjoint.load(path)["a"].tolist() == [1, 1, 1]
    with adjoint.serialization.set_default_mmap_options(mmap.MAP_SHARED):
        adjoint.load(path, mmap=True)["a"].add_(1)
    assert adjoint.load(path)["a"].tolist() == [2, 2, 2]
    for wrong in (
        lambda m: m.serialization.set_default_mmap_options(5),
        lambda m: m.serialization.set_default_load_endianness(1),
    ):
        expected, found = outcomes(wrong)
        assert found == expected


def test_return_types():
    for name in ("max", "sort", "linalg_svd", "topk", "frexp"):
        found, expected = (str(getattr(module.return_types, name)) for module in (adjoint, torch))
        assert found.replace("adjoint", "torch") == expected
    for name in ("max", "sort", "median", "cummax"):
        assert isinstance(getattr(adjoint.ones(2, 2), name)(0), getattr(adjoint.return_types, name))
    with pytest.raises(AttributeError):
        _ = adjoint.return_types.nothing


def test_factory_kwargs():
    for kwargs in (
        {"device": "cpu"},
        {"dtype": 1, "factory_kwargs": {"device": 2}},
        {"foo": 1},
        {"dtype": 1, "factory_kwargs": {"dtype": 1}},
        None,
    ):
        expected, found = outcomes(lambda library, kwargs=kwargs: library.nn.factory_kwargs(kwargs))
        assert found == expected
