"""The outputs, final states and gradients of recurrent networks over packed sequences are PyTorch's."""

import numpy
import pytest

torch = pytest.importorskip("torch")

import adjoint

KINDS = ["RNN", "GRU", "LSTM"]
OPTIONS = [
    {},
    {"bidirectional": True},
    {"num_layers": 2},
    {"num_layers": 3, "bidirectional": True},
    {"bias": False},
    {"proj_size": 2, "num_layers": 2, "bidirectional": True},
]
LENGTHS = [[5, 3, 3, 1], [4, 4, 4], [1], [2, 5, 1, 5], [3, 6]]


def results(library, kind, options, lengths, batch_first, with_state, dtype="float64"):
    """Return all results and gradients of a pass over packed sequences, as arrays by name."""
    draw = numpy.random.default_rng(0)
    tensor = lambda *shape: library.tensor(draw.standard_normal(shape), dtype=getattr(library, dtype))
    model = getattr(library.nn, kind)(3, 4, batch_first=batch_first, **options).to(getattr(library, dtype))
    with library.no_grad():
        for parameter in model.parameters():
            parameter.copy_(tensor(*parameter.shape))
    rnn = library.nn.utils.rnn
    sequences = [tensor(length, 3).requires_grad_() for length in lengths]
    in_order = lengths == sorted(lengths, reverse=True)
    padded = rnn.pad_sequence(sequences, batch_first=batch_first)
    packed = rnn.pack_padded_sequence(padded, lengths, batch_first=batch_first, enforce_sorted=in_order)
    state = []
    if with_state:
        layers = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
        widths = [options.get("proj_size") or 4, 4][: 2 if kind == "LSTM" else 1]
        state = [tensor(layers, len(lengths), width).requires_grad_() for width in widths]
    given = (tuple(state) if kind == "LSTM" else state[0]) if state else None
    output, final = model(packed, given)
    final = final if kind == "LSTM" else (final,)
    unpacked, _ = rnn.pad_packed_sequence(output, batch_first=batch_first)
    sum((part * tensor(*part.shape)).sum() for part in (unpacked, *final)).backward()
    found = {"data": output.data, "batch_sizes": output.batch_sizes, "unpacked": unpacked}
    found.update({f"final {number}": part for number, part in enumerate(final)})
    leaves = {**dict(model.named_parameters()), **{f"sequence {i}": each for i, each in enumerate(sequences)}}
    leaves.update({f"state {i}": each for i, each in enumerate(state)})
    found.update({f"grad {name}": leaf.grad for name, leaf in leaves.items()})
    return {name: value.detach().numpy() for name, value in found.items()}


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_outputs_and_gradients(kind, options, lengths):
    if "proj_size" in options and kind != "LSTM":
        pytest.skip("only an LSTM has projections")
    for batch_first, with_state in ((False, False), (True, True)):
        ours = results(adjoint, kind, options, lengths, batch_first, with_state)
        theirs = results(torch, kind, options, lengths, batch_first, with_state)
        assert ours.keys() == theirs.keys()
        for name, expected in theirs.items():
            numpy.testing.assert_allclose(ours[name], expected, rtol=1e-9, atol=1e-11, err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_in_single_precision(kind):
    ours, theirs = (
        results(library, kind, {"num_layers": 2}, [7, 4, 4], False, True, "float32") for library in (adjoint, torch)
    )
    for name, expected in theirs.items():
        numpy.testing.assert_allclose(ours[name], expected, rtol=2e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize(
    "mistake",
    [
        lambda library, packed: library.nn.GRU(2, 4)(packed, library.zeros(1, 3, 4)[:, :1]),
        lambda library, packed: library.nn.GRU(2, 4)(packed._replace(sorted_indices=None), library.zeros(1, 3, 4)),
        lambda library, packed: library.nn.RNN(2, 4)(library.nn.utils.rnn.pack_sequence([library.zeros(3, 2, 2)])),
        lambda library, packed: library.nn.GRU(2, 4).double()(packed),
        lambda library, packed: library.nn.utils.rnn.pad_sequence(5),
        lambda library, packed: library.nn.utils.rnn.pack_padded_sequence(library.zeros(0, 0), []),
        lambda library, packed: library.nn.utils.rnn.pack_padded_sequence(library.zeros(0, 3), [1, 1, 1]),
        lambda library, packed: library.nn.utils.rnn.pack_padded_sequence(library.zeros(3, 0), [1]),
        lambda library, packed: library.nn.Linear(1, 1).to("cpu", copy=True),
    ],
)
def test_errors(mistake):
    messages = []
    for library in (adjoint, torch):
        packed = library.nn.utils.rnn.pack_sequence([library.zeros(3, 2), library.zeros(5, 2)], enforce_sorted=False)
        with pytest.raises((RuntimeError, ValueError, IndexError)) as caught:
            mistake(library, packed)
        messages.append((caught.type, str(caught.value).splitlines()[0]))
    assert messages[0][0] is messages[1][0]
    if messages[0][0] is not IndexError:
        assert messages[0] == messages[1]


def test_conversions():
    found = []
    for library in (adjoint, torch):
        packed = library.nn.utils.rnn.pack_sequence([library.ones(3), library.ones(2)])
        kinds = "byte char short int long half float double".split()
        found.append([str(getattr(packed, kind)().data.dtype) for kind in kinds])
    assert found[0] == found[1]
