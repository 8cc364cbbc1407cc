"""PyTorch and adjoint read each other's checkpoints bit for bit."""

import io
import pickle
import warnings
import zipfile
from collections import Counter, OrderedDict

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

import adjoint
from tests.parity.conversion import from_array, to_array

FORMATS = pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
DTYPES = """
    uint8 int8 int16 int32 int64 uint16 uint32 uint64 bool float16 bfloat16 float32 float64 complex64 complex128
""".split()


def save(module, obj, **options):
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own storages are deprecated
        module.save(obj, file, **options)
    return file.getvalue()


def load(module, content, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return module.load(io.BytesIO(content), **options)


def describe(value):
    """Describe the value in terms that both libraries share."""
    if isinstance(value, (torch.Tensor, adjoint.Tensor)):
        plain = to_array(value)
        return {
            "type": type(value).__name__,
            "dtype": str(value.dtype),
            "shape": tuple(value.shape),
            "stride": value.stride(),
            "offset": value.storage_offset() if value.numel() else None,
            "storage": bytes(value.untyped_storage().tolist()),
            "bytes": plain.tobytes(),
            "requires_grad": value.requires_grad,
            "leaf": value.is_leaf,
            "attributes": dict(value.__dict__),
        }
    if isinstance(value, (dict, Counter)):
        return type(value).__name__, [(key, describe(item)) for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [describe(item) for item in value]
    return type(value).__name__, repr(value)


def pickled(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.read("archive/data.pkl")


@st.composite
def windows(draw):
    """Draw a storage and a tensor's window on it: (dtype, storage, offset, size, stride)."""
    dtype = draw(st.sampled_from(DTYPES))
    kind = getattr(adjoint, dtype).numpy
    length = draw(st.integers(0, 40))
    content = draw(st.binary(min_size=length * kind.itemsize, max_size=length * kind.itemsize))
    if dtype == "bool":
        content = bytes(byte & 1 for byte in content)
    size = tuple(draw(st.lists(st.integers(0, 3), max_size=4)))
    stride = tuple(draw(st.integers(0, 5)) for _ in size)
    last = sum((n - 1) * step for n, step in zip(size, stride, strict=True)) if 0 not in size else -1
    if last >= length:
        size, stride, last = (length,), (1,), length - 1
    offset = draw(st.integers(0, length - last - 1)) if last >= 0 else 0
    return dtype, content, offset, size, stride


def build(module, window):
    dtype, content, offset, size, stride = window
    storage = from_array(module, numpy.frombuffer(bytearray(content), getattr(adjoint, dtype).numpy))
    if 0 in size:
        return module.empty(size, dtype=getattr(module, dtype))
    return storage.as_strided(size, stride, offset)


@pytest.mark.thorough
@FORMATS
@settings(max_examples=150, deadline=None)
@given(window=windows())
def test_any_tensor_goes_both_ways(zipped, window):
    if not zipped and window[0] in ("uint16", "uint32", "uint64"):
        return  # PyTorch cannot read its own file in this case
    theirs, ours = build(torch, window), build(adjoint, window)
    expected = describe(theirs)
    assert describe(load(adjoint, save(torch, theirs, _use_new_zipfile_serialization=zipped))) == expected
    content = save(adjoint, ours, _use_new_zipfile_serialization=zipped)
    assert describe(load(torch, content, weights_only=True)) == expected
    assert describe(load(adjoint, content)) == expected
    if zipped:
        assert pickled(content) == pickled(save(torch, theirs))


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.binary(min_size=1)  # PyTorch cannot read a file that contains an empty object
    | st.complex_numbers(allow_nan=False)
    | st.builds(bytearray, st.binary(min_size=1)),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])) | st.integers(), inner)
        | st.dictionaries(st.text("abc"), inner).map(OrderedDict)
        | st.tuples(inner)
        | st.tuples(inner, inner)
        | st.tuples(inner, inner, inner, inner)
        | st.sets(st.integers(0, 9))
        | st.lists(st.sampled_from("abc")).map(Counter)
    ),
    max_leaves=20,
)


@pytest.mark.thorough
@settings(max_examples=150, deadline=None)
@given(value=PLAIN)
def test_any_plain_data_goes_both_ways(value):
    theirs, ours = save(torch, value), save(adjoint, value)
    assert pickled(ours) == pickled(theirs)
    assert describe(load(torch, ours, weights_only=True)) == describe(value)
    assert describe(load(adjoint, theirs)) == describe(value)


def everything(module):
    """Return every kind of object, created with `module`."""
    grid = module.arange(12.0).reshape(3, 4)
    noted = module.ones(2)
    noted.note = [1]
    parameter = module.nn.Parameter(module.ones(2))
    parameter.note = "x"
    return {
        "views": [grid, grid[1], grid.t(), grid[:, ::2], grid[0, 0], grid.expand(2, 3, 4)],
        "same": [grid, grid],
        "tensors": [module.tensor(3), module.empty(0, 3), module.tensor([1.5], requires_grad=True), noted],
        "parameters": [
            module.nn.Parameter(module.ones(2)),
            module.nn.Parameter(module.ones(2), requires_grad=False),
            parameter,
        ],
        "types": [
            module.float32,
            module.bool,
            module.Size([2, 3]),
            module.device("meta"),
            module.device("cuda:1"),
            module.strided,
        ],
        "integers": [module.ones(2, dtype=getattr(module, name)) for name in ("uint16", "uint32", "uint64", "int8")],
    }


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_objects_go_both_ways(protocol):
    theirs, ours = (
        save(torch, everything(torch), pickle_protocol=protocol),
        save(adjoint, everything(adjoint), pickle_protocol=protocol),
    )
    if protocol < 4:  # newer protocols also depend on the identity of strings
        assert pickled(ours) == pickled(theirs)
    assert describe(load(adjoint, theirs)) == describe(everything(torch))
    assert describe(load(torch, ours, weights_only=protocol == 2)) == describe(everything(torch))


def test_records_are_the_same(tmp_path):
    for module, name in ((torch, "theirs"), (adjoint, "ours")):
        (tmp_path / name).mkdir()
        module.save(everything(module), tmp_path / name / "my model.pth.tar")
    with (
        zipfile.ZipFile(tmp_path / "theirs/my model.pth.tar") as theirs,
        zipfile.ZipFile(tmp_path / "ours/my model.pth.tar") as ours,
    ):
        assert ours.namelist() == theirs.namelist()
        for name in theirs.namelist():
            if not name.endswith("serialization_id"):
                assert ours.read(name) == theirs.read(name), name


@pytest.mark.parametrize(
    "options", [{"mmap": True}, {"map_location": "cpu"}, {"pickle_module": pickle}, {"weights_only": False}], ids=str
)
def test_files_and_options(tmp_path, options):
    adjoint.save(everything(adjoint), tmp_path / "ours.pt")
    torch.save(everything(torch), tmp_path / "theirs.pt")
    assert describe(torch.load(tmp_path / "ours.pt", **options)) == describe(everything(torch))
    assert describe(adjoint.load(tmp_path / "theirs.pt", **options)) == describe(everything(torch))


def test_files_without_checksums():
    torch.serialization.set_crc32_options(False)
    try:
        content = save(torch, everything(torch))
    finally:
        torch.serialization.set_crc32_options(True)
    assert describe(load(adjoint, content)) == describe(everything(torch))


def test_storages():
    expected = torch.tensor([1.0, 2.0])
    loaded = load(adjoint, save(torch, expected.untyped_storage()))
    assert loaded.tolist() == expected.untyped_storage().tolist()
    loaded = load(torch, save(adjoint, adjoint.tensor([1.0, 2.0]).untyped_storage()), weights_only=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "TypedStorage is deprecated", UserWarning)  # PyTorch warns once in a process
        assert loaded.tolist() == expected.untyped_storage().tolist()


def test_pending_conjugation_and_negation():
    tensor = torch.tensor([1 + 2j, 3 - 1j])
    conjugate, plain = load(adjoint, save(torch, [tensor.conj(), tensor]))
    assert conjugate.tolist() == [1 - 2j, 3 + 1j] and plain.tolist() == [1 + 2j, 3 - 1j]
    negative = tensor.conj().imag
    assert negative.is_neg()
    assert load(adjoint, save(torch, negative)).tolist() == [-2.0, 1.0]


def trained(module, optimizer):
    module.manual_seed(0)
    model = module.nn.Sequential(
        module.nn.Linear(3, 4), module.nn.BatchNorm1d(4), module.nn.ReLU(), module.nn.Linear(4, 2)
    )
    step = optimizer(module.optim, model.parameters())
    for _ in range(2):
        step.zero_grad()
        model(module.arange(12.0).reshape(4, 3)).sum().backward()
        step.step()
    return model, step


@FORMATS
@pytest.mark.parametrize(
    "optimizer",
    [
        lambda optim, parameters: optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
        lambda optim, parameters: optim.Adam(parameters, lr=0.1, amsgrad=True),
        lambda optim, parameters: optim.AdamW(parameters, lr=0.1),
    ],
    ids=["SGD", "Adam", "AdamW"],
)
def test_a_training_continues_in_the_other_library(optimizer, zipped):
    for source, target in ((torch, adjoint), (adjoint, torch)):
        model, step = trained(source, optimizer)
        checkpoint = {"model": model.state_dict(), "optimizer": step.state_dict(), "epoch": 2}
        loaded = load(target, save(source, checkpoint, _use_new_zipfile_serialization=zipped), weights_only=True)
        assert describe(loaded["model"]) == describe(checkpoint["model"])
        assert list(loaded["model"]._metadata.items()) == list(model.state_dict()._metadata.items())
        other, other_step = trained(target, optimizer)
        other.load_state_dict(loaded["model"])
        other_step.load_state_dict(loaded["optimizer"])
        assert describe(other.state_dict()) == describe(checkpoint["model"])


REFUSED = [
    b"\x80\x02cposix\nsystem\nX\x01\x00\x00\x00a\x85R.",
    b"\x80\x02c__builtin__\neval\nX\x01\x00\x00\x00a\x85R.",
    b"\x80\x02c__main__\nModel\n)\x81.",
    b"\x80\x02X\x01\x00\x00\x00a)R.",
    b"\x80\x02}}b.",
    b"\x80\x02ccollections\nOrderedDict\n}b.",
    b"\x80\x02}K\x01a.",
    b"\x80\x02]K\x01K\x02s.",
    b"\x80\x02\x82\x01.",
    b"\x80\x02X\x01\x00\x00\x00aQ.",
]


@pytest.mark.parametrize("attack", REFUSED, ids=repr)
def test_refusals_have_the_same_words(attack):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", attack)
        archive.writestr("archive/version", "3\n")
    messages = []
    for module in (torch, adjoint):
        with pytest.raises(pickle.UnpicklingError) as refused:
            load(module, file.getvalue(), weights_only=True)
        messages.append(str(refused.value))
    theirs, ours = messages
    assert ours.startswith("Weights only load failed.") and theirs.startswith("Weights only load failed.")
    assert ours.partition("WeightsUnpickler error: ")[2] in theirs


def two_dtypes(module):
    """Return two tensors on the same memory."""
    tensor = module.ones(1, dtype=module.complex64)
    return [tensor, module.view_as_real(tensor)]


@pytest.mark.parametrize(
    "call",
    [
        lambda module: module.load(io.BytesIO(b"")),
        lambda module: module.load(5),
        lambda module: module.load("does not exist.pt"),
        lambda module: module.load(io.BytesIO(save(module, 1)), mmap=True),
        lambda module: module.load(io.BytesIO(save(module, 1)), weights_only=True, pickle_module=pickle),
        lambda module: module.load(io.BytesIO(save(module, module.ones(1))), map_location="cuda"),
        lambda module: module.load(io.BytesIO(save(module, module.ones(1))), map_location="foo"),
        lambda module: module.save(1, 5),
        lambda module: module.save(1, "does/not/exist.pt"),
        lambda module: module.save(1, io.BytesIO(), pickle_protocol=9),
        lambda module: save(module, two_dtypes(module)),
    ],
)  # fmt: skip
def test_errors_have_the_same_words(call):
    errors = []
    for module in (torch, adjoint):
        with pytest.raises(Exception) as raised:
            call(module)
        errors.append(raised.value)
    theirs, ours = errors
    assert type(ours) is type(theirs)
    assert str(theirs) in str(ours) or str(ours) in str(theirs)


@FORMATS
@pytest.mark.filterwarnings("ignore")
def test_whole_modules_and_optimizers_of_pytorch(zipped):
    nn = torch.nn
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv1d(3, 4, 3),
        nn.BatchNorm1d(4),
        nn.GELU(),
        nn.Flatten(),
        nn.Linear(8, 8),
        nn.TransformerEncoderLayer(8, 2, activation="gelu"),
    ).eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    content = save(torch, {"model": model, "optimizer": optimizer}, _use_new_zipfile_serialization=zipped)
    loaded = load(adjoint, content, weights_only=False)
    assert repr(loaded["model"]) == repr(model) and type(loaded["model"]) is adjoint.nn.Sequential
    inputs = torch.randn(2, 3, 4)
    for _ in range(2):
        ours, theirs = loaded["model"](from_array(adjoint, inputs.numpy())), model(inputs)
        numpy.testing.assert_allclose(to_array(ours), to_array(theirs), 1e-4, 1e-5)
        for outputs, step in ((ours, loaded["optimizer"]), (theirs, optimizer)):
            (outputs**2).sum().backward()
            step.step()
            step.zero_grad()


def outcome(function, *args):
    """Return the result of a call, or the type and the words of its error."""
    try:
        return function(*args)
    except Exception as error:
        return type(error).__name__, str(error)


def about_places(module):
    """Test `map_location`, the meta device, and checkpoints without elements."""
    places, x = module.serialization, module.arange(3.0)
    seen = [places.location_tag(x.untyped_storage()), outcome(places.location_tag, 3)]
    seen.append(outcome(places.default_restore_location, x.untyped_storage(), "nowhere"))
    places.register_package(1, lambda storage: "there", lambda storage, place: storage if place == "there" else None)
    try:
        seen.append(places.location_tag(x.untyped_storage()))
        file = save(module, x)
        seen.append(load(module, file).tolist())
    finally:
        places._package_registry.pop(0)
    seen.append(outcome(load, module, file))
    seen.append(load(module, file, map_location="cpu").tolist())
    seen.append(load(module, file, map_location="meta").is_meta)
    with places.skip_data():
        empty = save(module, {"x": x})
        seen.append(outcome(lambda: save(module, x, _use_new_zipfile_serialization=False)))
    seen.append(load(module, empty)["x"].tolist())
    with places.skip_data():
        seen.append(load(module, file, map_location="cpu").shape == (3,))
    return seen


def test_places_of_storages():
    assert about_places(adjoint) == about_places(torch)
