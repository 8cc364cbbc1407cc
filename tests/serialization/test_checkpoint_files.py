"""Checkpoints: loaded objects equal saved objects, PyTorch's files can be read, and no file runs code."""

import argparse
import collections
import copyreg
import io
import pickle
import struct
import sys
import warnings
import zipfile
from collections import OrderedDict, deque
from pathlib import Path

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import adjoint as torch
from adjoint.kernels.memory.storage import strided
from adjoint.serialization import rebuild

pytestmark = pytest.mark.filterwarnings("ignore:the file names")

DATA = Path(__file__).parents[1] / "data"
FORMATS = pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
DTYPES = (
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64,
    torch.bool, torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128,
)  # fmt: skip


def saved(obj, **options):
    file = io.BytesIO()
    torch.save(obj, file, **options)
    return io.BytesIO(file.getvalue())


def round_trip(obj, zipped=True, **options):
    return torch.load(saved(obj, _use_new_zipfile_serialization=zipped), **options)


def assert_same(result, expected):
    assert type(result) is type(expected)
    assert result.dtype is expected.dtype and result.shape == expected.shape and result.stride() == expected.stride()
    assert result.requires_grad == expected.requires_grad
    assert result.is_conj() == expected.is_conj() and result.is_neg() == expected.is_neg()
    assert result.numpy(force=True).tobytes() == expected.numpy(force=True).tobytes()


# ---------------------------------------------------------------------------------------------------------------------
# Round trips


@FORMATS
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype(dtype, zipped):
    tensor = torch.tensor([[0, 1, 2], [3, 0, 1]]).to(dtype)
    assert_same(round_trip(tensor, zipped), tensor)


@FORMATS
def test_views_keep_strides_and_offsets(zipped):
    grid = torch.arange(12.0).reshape(3, 4)
    views = [grid, grid[1], grid.t(), grid[:, ::2], grid[:, :1], grid[2:, 1:3], grid[0, 0], grid[:0]]
    result = round_trip(views, zipped)
    for loaded, view in zip(result, views, strict=True):
        assert_same(loaded, view)
        assert loaded.storage_offset() == view.storage_offset()


@FORMATS
def test_tensors_that_share_a_storage_share_it_again(zipped):
    grid = torch.zeros(3, 4)
    loaded = round_trip({"grid": grid, "row": grid[1], "parameter": torch.nn.Parameter(grid[2])}, zipped)
    loaded["grid"].fill_(5)
    assert loaded["row"].tolist() == [5.0] * 4
    assert loaded["parameter"].tolist() == [5.0] * 4
    assert loaded["grid"].untyped_storage() == loaded["row"].untyped_storage()


def test_the_same_tensor_twice_is_one_tensor():
    tensor = torch.ones(2)
    first, second = round_trip([tensor, tensor])
    assert first is second


def test_expanded_tensors_save_their_storage_once():
    expanded = torch.ones(1, 2).expand(1000, 2)
    file = saved(expanded)
    assert file.getbuffer().nbytes < 2000
    assert_same(torch.load(file), expanded)


def test_loaded_memory_is_independent_of_the_saved():
    tensor = torch.ones(2)
    loaded = round_trip(tensor)
    loaded.fill_(3)
    assert tensor.tolist() == [1.0, 1.0]


@FORMATS
def test_zero_dimensional_and_empty(zipped):
    for tensor in (torch.tensor(3), torch.tensor(2.5, dtype=torch.bfloat16), torch.empty(0), torch.empty(0, 3)):
        assert_same(round_trip(tensor, zipped), tensor)


def test_storages_themselves():
    tensor = torch.tensor([1.0, 2.0])
    storage, loaded = round_trip([tensor.storage(), tensor])
    assert storage.tolist() == [1.0, 2.0]
    assert storage == loaded.untyped_storage()
    assert round_trip(tensor.untyped_storage()).tolist() == tensor.untyped_storage().tolist()


@FORMATS
def test_parameters_and_leaves(zipped):
    frozen = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    noted = torch.nn.Parameter(torch.ones(2))
    noted.note = {"kept": [1]}
    values = [torch.nn.Parameter(torch.ones(2)), frozen, noted, torch.ones(2, requires_grad=True)]
    loaded = round_trip(values, zipped)
    for result, value in zip(loaded, values, strict=True):
        assert_same(result, value)
        assert result.is_leaf
    assert loaded[2].note == {"kept": [1]}


def test_a_computed_tensor_is_loaded_as_a_leaf():
    loaded = round_trip(torch.ones(2, requires_grad=True) * 2)
    assert loaded.is_leaf and loaded.requires_grad


def test_gradients_are_not_saved_and_hooks_give_a_warning():
    tensor = torch.ones(2, requires_grad=True)
    tensor.sum().backward()
    tensor.register_hook(lambda grad: grad)
    with pytest.warns(UserWarning, match="will not be serialized"):
        loaded = round_trip(tensor)
    assert loaded.grad is None


PLAIN = [
    None, True, False, 0, -1, 255, 256, 65536, -(2**31), 2**70, -(2**300), 1.5, float("inf"), 1 - 2j,
    "", "text", "é\ud800\n", b"", b"\x00\xff", bytearray(b"ab"), (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4),
    [], [1, [2, [3]]], {}, {"a": {1: (2,)}}, set(), {1, "a"}, OrderedDict([("b", 1), ("a", 2)]),
    collections.Counter("aab"), torch.Size([2, 3]), torch.Size([]), torch.float32, torch.bool, torch.device("cpu"),
    torch.device("cuda:1"), torch.strided,
]  # fmt: skip


@FORMATS
@pytest.mark.parametrize("protocol", [1, 2, 3, 4, 5])
def test_plain_data(protocol, zipped):
    loaded = torch.load(saved(PLAIN, pickle_protocol=protocol, _use_new_zipfile_serialization=zipped))
    assert loaded == PLAIN
    assert [type(value) for value in loaded] == [type(value) for value in PLAIN]


def test_nan_and_negative_zero_keep_their_bits():
    assert struct.pack("d", round_trip(-0.0)) == struct.pack("d", -0.0)
    bits = torch.tensor([float("nan"), -0.0, float("-inf")])
    assert_same(round_trip(bits), bits)


def test_recursive_containers():
    cycle = [1]
    cycle.append(cycle)
    loaded = round_trip(cycle)
    assert loaded[1] is loaded


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False)
        | st.text()
        | st.binary()
        | st.complex_numbers(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner, inner),
        max_leaves=20,
    )
)
@pytest.mark.thorough
def test_any_nesting_of_plain_data(value):
    assert repr(round_trip(value)) == repr(value)


def test_state_dicts_of_model_and_optimizer():
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.5)
    model(torch.randn(4, 2)).sum().backward()
    optimizer.step()
    loaded = round_trip({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    assert loaded["model"]._metadata == model.state_dict()._metadata
    other = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    other.load_state_dict(loaded["model"])
    for name, value in model.state_dict().items():
        assert_same(other.state_dict()[name], value)
    again = torch.optim.Adam(other.parameters())
    again.load_state_dict(loaded["optimizer"])
    assert again.state_dict()["param_groups"] == optimizer.state_dict()["param_groups"]
    for key, value in optimizer.state_dict()["state"][0].items():
        assert_same(again.state_dict()["state"][0][key], value)


# ---------------------------------------------------------------------------------------------------------------------
# Files


@pytest.mark.parametrize("extension", [".pt", ".pth", ".pwf", ".pth.tar", ""])
@pytest.mark.parametrize("options", [{}, {"pickle_module": pickle}], ids=["", "pickle_module"])
@FORMATS
def test_paths_and_extensions(tmp_path, extension, options, zipped):
    path = tmp_path / ("model" + extension)
    torch.save({"w": torch.ones(2)}, str(path), _use_new_zipfile_serialization=zipped, **options)
    assert torch.load(path, **options)["w"].tolist() == [1.0, 1.0]
    with path.open("rb") as file:
        assert torch.load(file, **options)["w"].tolist() == [1.0, 1.0]


def test_the_records_are_where_pytorch_looks_for_them(tmp_path):
    path = tmp_path / "my model.pth.tar"
    torch.save([torch.ones(3), torch.zeros(5, dtype=torch.int8)], path)
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        names = [
            "data.pkl", ".format_version", ".storage_alignment", "byteorder", "data/0", "data/1", "version",
            ".data/serialization_id",
        ]  # fmt: skip
        assert archive.namelist() == ["my model.pth/" + name for name in names]
        for info in archive.infolist():
            name_length, extra_length = struct.unpack_from("<HH", content, info.header_offset + 26)
            assert (info.header_offset + 30 + name_length + extra_length) % 64 == 0


def test_the_same_object_makes_the_same_file():
    value = {"w": torch.ones(3)}
    assert saved(value).getvalue() == saved(value).getvalue()


def test_to_a_file_that_can_only_be_written():
    class Pipe:
        content = b""

        def write(self, data):
            self.content += bytes(data)

    pipe = Pipe()
    torch.save(torch.ones(2), pipe)
    assert torch.load(io.BytesIO(pipe.content)).tolist() == [1.0, 1.0]


def test_from_a_file_that_knows_only_the_essentials():
    class File:
        def __init__(self, content):
            inner = io.BytesIO(content)
            self.read, self.readline, self.seek, self.tell = inner.read, inner.readline, inner.seek, inner.tell

    for zipped in (True, False):
        content = saved(torch.arange(5), _use_new_zipfile_serialization=zipped).getvalue()
        assert torch.load(File(content)).tolist() == [0, 1, 2, 3, 4]


def test_legacy_files_in_a_row():
    file = io.BytesIO()
    torch.save(torch.ones(2), file, _use_new_zipfile_serialization=False)
    torch.save(torch.ones(3), file, _use_new_zipfile_serialization=False)
    file.seek(0)
    assert [torch.load(file).numel(), torch.load(file).numel()] == [2, 3]
    assert file.read() == b""


def test_mapped_into_memory(tmp_path):
    path = tmp_path / "model.pt"
    grid = torch.arange(6.0).reshape(2, 3)
    torch.save([grid, grid[1], torch.empty(0)], path)
    whole, row, empty = torch.load(path, mmap=True)
    assert_same(whole, grid)
    assert row.storage_offset() == 3 and empty.shape == (0,)
    whole.fill_(9)
    assert row.tolist() == [9.0, 9.0, 9.0]
    assert_same(torch.load(path)[0], grid)
    path_again = tmp_path / "again.pt"
    torch.save(whole, path_again)
    with zipfile.ZipFile(path_again) as archive:
        assert archive.getinfo("again/data/0").file_size == 24


def test_a_path_is_needed_to_map():
    with pytest.raises(ValueError, match="f must be a file path in order to use the mmap argument"):
        torch.load(saved(1), mmap=True)


def test_only_archives_can_be_mapped(tmp_path):
    torch.save(1, tmp_path / "a.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="mmap can only be used with files saved with"):
        torch.load(tmp_path / "a.pt", mmap=True)


@pytest.mark.parametrize(
    "where",
    ["cpu", torch.device("cpu"), {"cuda:0": "cpu"}, lambda storage, location: storage, lambda storage, location: None],
)
def test_map_location(where):
    assert round_trip(torch.ones(2), map_location=where).tolist() == [1.0, 1.0]


def test_map_location_is_told_the_device_of_each_storage():
    seen = []
    value = torch.ones(4)
    round_trip(
        [value, value[1:], torch.zeros(1)], map_location=lambda storage, where: seen.append((storage.nbytes(), where))
    )
    assert seen == [(16, "cpu"), (4, "cpu")]


def test_what_was_on_another_device_needs_a_map_location():
    content = archive(tensor_pickle(location="cuda:0"), {"0": FOUR})
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device"):
        torch.load(io.BytesIO(content))
    for where in ("cpu", {"cuda:0": "cpu"}, lambda storage, location: storage):
        assert torch.load(io.BytesIO(content), map_location=where).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    with pytest.raises(RuntimeError, match=r"don't know how to restore data location of .* \(tagged with nowhere\)"):
        torch.load(saved(torch.ones(1)), map_location="nowhere")


def test_numbers_of_a_machine_of_the_other_byte_order():
    content = archive(tensor_pickle(), {"0": struct.pack(">4f", 1, 2, 3, 4)}, byteorder="big")
    assert torch.load(io.BytesIO(content)).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    pickled = tensor_pickle("torch\nComplexFloatStorage", count=2, size=(2,), stride=(1,))
    content = archive(pickled, {"0": struct.pack(">4f", 1, 2, 3, 4)}, byteorder="big")
    assert torch.load(io.BytesIO(content)).tolist() == [1 + 2j, 3 + 4j]


# ---------------------------------------------------------------------------------------------------------------------
# PyTorch's own files


@pytest.mark.parametrize("options", [{}, {"mmap": True}, {"weights_only": False}, {"weights_only": True}], ids=str)
def test_everything_that_pytorch_saves(options):
    loaded = torch.load(DATA / "everything.pt", **options)
    for dtype in DTYPES:
        tensor = loaded[str(dtype)]
        assert tensor.dtype is dtype
        assert tensor.tolist() == ([False, True, True] if dtype is torch.bool else [0, 1, 2])
    grid = torch.arange(12.0).reshape(3, 4)
    for name, view in {
        "grid": grid, "row": grid[1], "transposed": grid.t(), "every other": grid[:, ::2],
        "expanded": torch.ones(1, 3).expand(2, 3), "empty": torch.empty(0, 3), "zero dim": torch.tensor(7),
        "conjugate": torch.tensor([1 + 2j]).conj(), "parameter": torch.nn.Parameter(torch.tensor([1.5])),
        "frozen": torch.nn.Parameter(torch.tensor([2.5]), requires_grad=False),
        "leaf": torch.tensor([3.5], requires_grad=True),
    }.items():  # fmt: skip
        assert_same(loaded[name], view)
    assert loaded["row"].storage_offset() == 4
    assert loaded["row"].untyped_storage() == loaded["grid"].untyped_storage() == loaded["transposed"].untyped_storage()
    assert loaded["attribute"].note == "kept"
    expected = [
        None,
        True,
        (1, 2**70, -3),
        {1, 2},
        OrderedDict(a=1.5),
        {"b": 1 - 2j},
        "é",
        b"\xff\x00",
        bytearray(b"x"),
    ]
    assert loaded["containers"] == expected
    assert [type(value) for value in loaded["containers"]] == [type(value) for value in expected]
    assert loaded["types"] == [torch.Size([2, 3]), torch.float32, torch.device("cpu"), torch.device("cuda:1")]


def test_pytorch_checkpoint_continues_a_training():
    checkpoint = torch.load(DATA / "training.pth")
    assert checkpoint["epoch"] == 3
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    model.load_state_dict(checkpoint["model"])
    assert model[1].num_batches_tracked.item() == 1
    optimizer = torch.optim.Adam(model.parameters())
    optimizer.load_state_dict(checkpoint["optimizer"])
    assert optimizer.param_groups[0]["lr"] == 0.5
    before = model[0].weight.detach().clone()
    model(torch.eye(2)).square().sum().backward()
    optimizer.step()
    assert optimizer.state_dict()["state"][0]["step"].item() == 2
    assert not torch.equal(model[0].weight, before)


def test_pytorch_legacy_file():
    loaded = torch.load(DATA / "legacy.pth.tar")
    assert loaded["grid"].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert loaded["row"].untyped_storage() == loaded["grid"].untyped_storage()


# ---------------------------------------------------------------------------------------------------------------------
# No code is run


@pytest.mark.parametrize("weights_only", [True, None])
def test_whole_models_are_refused_with_advice(weights_only):
    with pytest.raises(pickle.UnpicklingError) as refused:
        torch.load(DATA / "whole_model.pt", weights_only=weights_only)
    message = str(refused.value)
    assert message.startswith("Weights only load failed.")
    assert "Unsupported global: GLOBAL torch.nn.modules.linear.Linear was not an allowed global by default" in message
    assert "torch.serialization.add_safe_globals([torch.nn.modules.linear.Linear])" in message
    assert "state_dict()" in message


@FORMATS
def test_saving_what_will_be_refused_gives_a_warning(zipped):
    model = torch.nn.Linear(2, 2)
    with pytest.warns(UserWarning, match=r"names torch\.nn\.modules\.linear\.Linear, which `load` refuses") as warned:
        saved([model, model], _use_new_zipfile_serialization=zipped)
    assert len(warned) == 1 and warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        saved([model.state_dict(), numpy.ones(2), deque()], _use_new_zipfile_serialization=zipped)
        with torch.serialization.safe_globals([torch.nn.Linear]):
            saved(model, _use_new_zipfile_serialization=zipped)


CALLS = []


def record(*args):
    CALLS.append(args)


class Malicious:
    def __init__(self, function, *args):
        self.function, self.args = function, args

    def __reduce__(self):
        return self.function, self.args


@pytest.mark.parametrize(
    "options",
    [{}, {"weights_only": True}, {"pickle_module": pickle}],
    ids=lambda options: "-".join(map(str, options)) or "default",
)
@pytest.mark.parametrize("protocol", [1, 2, 3, 4, 5])
@FORMATS
def test_functions_are_not_called(options, protocol, zipped):
    CALLS.clear()
    for value in (
        Malicious(record, 1),
        {"a": [Malicious(record, 1)]},
        Malicious(eval, "record(1)"),
        Malicious(getattr, 1, "real"),
    ):
        file = saved(value, pickle_protocol=protocol, _use_new_zipfile_serialization=zipped)
        with pytest.raises(pickle.UnpicklingError, match="was not an allowed global by default"):
            torch.load(file, **options)
    assert CALLS == []


@pytest.mark.parametrize("options", [{"weights_only": True}, {"pickle_module": pickle}], ids=["weights", "plain data"])
def test_system_modules_are_blocked_even_if_allowed(options):
    import os

    file = saved(Malicious(os.rmdir, "nowhere"))
    with (
        torch.serialization.safe_globals([os.rmdir]),
        pytest.raises(pickle.UnpicklingError, match=r"\.rmdir whose module"),
    ):
        torch.load(file, **options)


def test_explicit_weights_only_with_a_pickle_module():
    with pytest.raises(RuntimeError, match="Can not safely load weights when explicit pickle_module is specified"):
        torch.load(saved(1), weights_only=True, pickle_module=pickle)


START = b"\x80\x02"
ATTACKS = {
    "call of a string": b"X\x01\x00\x00\x00a)R.",
    "call of a dtype": b"ctorch\nfloat32\n)R.",
    "call of a storage type": b"ctorch\nFloatStorage\n)R.",
    "call of a class that was made a value": b"ctorch\nTensor\n)R.",
    "call of what was memoized": b"}q\x00h\x00)R.",
    "new object of a class that is a value": b"ctorch\nTensor\n)\x81.",
    "new object with keywords": b"ctorch\nTensor\n)}\x92.",
    "new object of a function": b"c_codecs\nencode\n)\x81.",
    "state for a class": b"ccollections\nOrderedDict\n}X\x01\x00\x00\x00aK\x01sb.",
    "state for a function": b"ctorch._utils\n_rebuild_tensor_v2\n}X\x01\x00\x00\x00aK\x01sb.",
    "state for a dict": b"}}b.",
    "state that is no dict": b"ccollections\nOrderedDict\n)RK\x01b.",
    "state with keys that are no strings": b"ccollections\nOrderedDict\n)R}K\x01K\x01sb.",
    "items for a list": b"]K\x01K\x02s.",
    "items for a tuple": b")(K\x01K\x02u.",
    "elements for a dict": b"}K\x01a.",
    "elements for a class": b"ccollections\nOrderedDict\nK\x01a.",
    "members for a list": b"](K\x01\x90.",
    "attribute of an allowed module": b"\x8c\x0bcollections\x8c\x16OrderedDict.__init__.x\x93.",
    "attribute by dots": b"ctorch\nTensor.__init__\n.",
    "extension registry": b"\x82\x01.",
    "instance": b"(iposix\nsystem\n.",
    "object": b"(ccollections\nOrderedDict\no.",
    "text persistent id": b"P0\n.",
    "number as persistent id": b"K\x01Q.",
    "out of band buffer": b"\x97.",
    "global of numbers": b"K\x01K\x02\x93.",
    "arguments that are a list": b"ccollections\nOrderedDict\n]R.",
    "bytearray of a length": b"c__builtin__\nbytearray\n\x8a\x05\x00\x00\x00\x00\x10\x85R.",
    "bytes of a length": b"c__builtin__\nbytes\n\x8a\x05\x00\x00\x00\x00\x10\x85R.",
    "encoding by another codec": b"c_codecs\nencode\nX\x01\x00\x00\x00aX\x03\x00\x00\x00hex\x86R.",
    "set of text": b"c__builtin__\nset\nX\x01\x00\x00\x00a\x85R.",
    "nothing": b".",
    "mark as result": b"(.",
    "missing mark": b"K\x01t.",
    "missing memo": b"h\x05.",
    "memo of nothing": b"q\x05.",
    "odd items": b"}(K\x01u.",
    "no number": b"Iabc\n.",
    "text that is no text": b"X\x01\x00\x00\x00\xff.",
    "newer protocol": b"\x80\x63N.",
}


@pytest.mark.parametrize("options", [{"weights_only": True}, {"pickle_module": pickle}], ids=["weights", "plain data"])
@pytest.mark.parametrize("attack", ATTACKS)
def test_hostile_pickles_are_refused(attack, options):
    ordered_dict_before = dict(vars(OrderedDict))
    with pytest.raises(pickle.UnpicklingError):
        torch.load(io.BytesIO(archive(START + ATTACKS[attack], {})), **options)
    assert dict(vars(OrderedDict)) == ordered_dict_before


@pytest.mark.parametrize(
    "pickled",
    [
        b"", b"]K\x01", b"ccollections", b"I12", b"\x95\x01", b"X\xff\xff\xff\x7fab", b"\x8b\xff\xff\xff\x7f\x01",
        b"\x8d\xff\xff\xff\xff\xff\xff\xff\x7fab", b"\x8e\xff\xff\xff\xff\xff\xff\xff\xffa",
        b"\x96\xff\xff\xff\xff\xff\xff\xff\x7fab",
    ],
)  # fmt: skip
@pytest.mark.parametrize("zipped", [True, False])
def test_lengths_that_the_pickle_is_too_short_for(pickled, zipped):
    content = archive(START + pickled, {}) if zipped else legacy(START + pickled)
    with pytest.raises(EOFError):
        torch.load(io.BytesIO(content))


def test_huge_memo_keys_cost_nothing():
    assert torch.load(io.BytesIO(archive(START + b"K\x07r\xff\xff\xff\x7fj\xff\xff\xff\x7f\x86.", {}))) == (7, 7)


@pytest.mark.skipif(
    sys.platform == "wasi", reason="the stack of WebAssembly is too small for CPython to free so deep a list"
)
def test_deep_nesting_needs_no_recursion():
    loaded = torch.load(io.BytesIO(archive(START + b"]" * 100_000 + b"a" * 99_999 + b".", {})))
    assert isinstance(loaded, list)


def packages():
    return {name.partition(".")[0] for name in sys.modules}


def load_damaged(content):
    """Load a file that may be refused. Assert that loaded tensors lie within their storages, and that no package was imported."""
    before = packages()
    try:
        loaded = torch.load(io.BytesIO(content))
    except (pickle.UnpicklingError, EOFError, RuntimeError):
        loaded = None
    except ValueError as error:
        if not str(error).startswith("Unknown endianness type"):
            raise
        loaded = None
    assert packages() == before
    for tensor in tensors_of(loaded):
        last = tensor.storage_offset() + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
        stored = tensor.untyped_storage().nbytes() // tensor.element_size()
        assert not tensor.numel() or 0 <= tensor.storage_offset() <= last < stored
    return loaded


def tensors_of(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple, set, dict)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from tensors_of(each)


@given(st.binary(max_size=60))
def test_random_bytes_as_a_pickle_do_nothing_bad(noise):
    load_damaged(archive(START + noise, {}))


def test_what_is_not_damaged_has_tensors_to_look_at():
    assert [*tensors_of(load_damaged(GRID_ARCHIVE))]


@given(st.data())
def test_damaged_files_raise_or_load(data):
    content = bytearray((DATA / "legacy.pth.tar").read_bytes() if data.draw(st.booleans()) else GRID_ARCHIVE)
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    load_damaged(bytes(content))


# ---------------------------------------------------------------------------------------------------------------------
# Allowing classes


class Config:
    def __init__(self, rate):
        self.rate = rate

    def __eq__(self, other):
        return self.rate == other.rate


class Slotted:
    __slots__ = ("value",)


class Restored:
    def __setstate__(self, state):
        self.state = state

    def __getstate__(self):
        return {"kept": 1}


class Names(list):
    pass


Pair = collections.namedtuple("Pair", "first second")


class Special(torch.Tensor):
    pass


@pytest.fixture(autouse=True)
def no_safe_globals_left():
    yield
    torch.serialization.clear_safe_globals()


def test_classes_that_are_allowed():
    slotted = Slotted()
    slotted.value = 3
    values = {
        "config": Config(0.1),
        "slotted": slotted,
        "restored": Restored(),
        "names": Names("ab"),
        "pair": Pair(1, 2),
    }
    file = saved(values)
    with pytest.raises(pickle.UnpicklingError, match=r"add_safe_globals\(\[.*Config\]\)"):
        torch.load(file)
    with torch.serialization.safe_globals([Config, Slotted, Restored, Names, Pair]):
        file.seek(0)
        loaded = torch.load(file)
    assert loaded["config"] == Config(0.1) and loaded["slotted"].value == 3 and loaded["restored"].state == {"kept": 1}
    assert type(loaded["names"]) is Names and loaded["names"] == ["a", "b"]
    assert type(loaded["pair"]) is Pair and loaded["pair"] == (1, 2)
    assert torch.serialization.get_safe_globals() == []
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError):
        torch.load(file)


def test_safe_globals_add_up_and_are_restored():
    torch.serialization.add_safe_globals([Config])
    with torch.serialization.safe_globals([Pair, Config]):
        assert torch.serialization.get_safe_globals() == [Config, Pair]
    assert torch.serialization.get_safe_globals() == [Config]
    torch.serialization.clear_safe_globals()
    assert torch.serialization.get_safe_globals() == []


def test_pytorch_models_when_their_classes_are_allowed():
    with torch.serialization.safe_globals([torch.nn.Linear]):
        loaded = torch.load(DATA / "whole_model.pt")
    assert type(loaded) is torch.nn.Linear and loaded.weight.shape == (1, 1)


def test_a_class_allowed_under_another_name():
    pickled = START + b"cold.place\nOldConfig\n)\x81}X\x04\x00\x00\x00rateK\x05sb."
    with torch.serialization.safe_globals([(Config, "old.place.OldConfig")]):
        assert torch.load(io.BytesIO(archive(pickled, {}))).rate == 5


def test_subclasses_of_tensor():
    tensor = torch.ones(2).as_subclass(Special)
    tensor.note = 1
    file = saved(tensor)
    with pytest.raises(pickle.UnpicklingError, match="Special was not an allowed global"):
        torch.load(file)
    file.seek(0)
    with torch.serialization.safe_globals([Special]):
        loaded = torch.load(file)
    assert type(loaded) is Special and loaded.tolist() == [1.0, 1.0] and loaded.note == 1


def test_whole_models_when_their_classes_are_allowed():
    file = saved(torch.nn.Linear(2, 3))
    with torch.serialization.safe_globals([torch.nn.Linear]):
        loaded = torch.load(file)
    assert isinstance(loaded, torch.nn.Linear)
    assert loaded(torch.ones(1, 2)).shape == (1, 3)


MORE_DATA = [
    frozenset([1]), slice(1, None, 2), range(3), range(5, 1, -2), deque([1, 2], 5), deque(),
    collections.defaultdict(list, {1: [2]}), argparse.Namespace(lr=0.1, layers=[1, 2]), int, list,
    numpy.float64(1.5), numpy.int32(3), numpy.bool_(True), numpy.dtype("f4"),
]  # fmt: skip


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize("options", [{"weights_only": False}, {"pickle_module": pickle}], ids=["trusted", "plain data"])
def test_more_plain_data_without_weights_only(protocol, options):
    file = saved(MORE_DATA, pickle_protocol=protocol)
    assert torch.load(file, **options) == MORE_DATA
    array = numpy.arange(6.0, dtype=numpy.float32).reshape(2, 3)
    for value in (array, array.T, array[:0], numpy.array(3), array > 2):
        loaded = torch.load(saved(value, pickle_protocol=protocol), **options)
        assert loaded.dtype == value.dtype and loaded.shape == value.shape and (loaded == value).all()
    file.seek(0)
    if protocol == 2:
        with pytest.raises(pickle.UnpicklingError, match="frozenset"):
            torch.load(file, weights_only=True)


@pytest.mark.parametrize(
    "value",
    [
        numpy.array([object()]), numpy.array(["text"]), numpy.zeros(2, "i4,f8"), numpy.dtype("i4,f8"), numpy.dtype("O"),
        collections.defaultdict(print),
        Malicious(range, 10, "a"), Malicious(deque, range(3)), Malicious(frozenset, range(3)),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_data_that_is_not_plain_is_refused(value):
    with pytest.raises(pickle.UnpicklingError):
        torch.load(saved(value), pickle_module=pickle)


# ---------------------------------------------------------------------------------------------------------------------
# Storages with wrong descriptions

FOUR = struct.pack("<4f", 1, 2, 3, 4)


def text(value):
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def data(value):
    return pickle.dumps(value, 2)[2:-1]


def tensor_pickle(
    storage_type="torch\nFloatStorage", key="0", location="cpu", count=4, offset=0, size=(2, 2), stride=(2, 1),
    function="torch._utils\n_rebuild_tensor_v2", tag="storage",
):  # fmt: skip
    """Write the description of a tensor in a file, with arbitrary values."""
    storage = b"(" + data(tag) + b"c" + storage_type.encode() + b"\n" + data(key) + data(location) + data(count) + b"tQ"
    rest = data(offset) + data(size) + data(stride) + data(False) + b"ccollections\nOrderedDict\n)R"
    return START + b"c" + function.encode() + b"\n(" + storage + rest + b"tR."


def archive(pickled, storages, byteorder="little", version="3\n", **more):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        out.writestr("archive/data.pkl", pickled)
        out.writestr("archive/byteorder", byteorder)
        for key, content in storages.items():
            out.writestr(f"archive/data/{key}", content)
        out.writestr("archive/version", version)
        for name, content in more.items():
            out.writestr(f"archive/{name}", content)
    return file.getvalue()


def legacy(pickled, rest=b""):
    head = [0x1950A86A20F9469CFC6C, 1001, {"little_endian": True, "protocol_version": 1001, "type_sizes": {}}]
    return b"".join(pickle.dumps(each, 2) for each in head) + pickled + rest


GRID_ARCHIVE = archive(tensor_pickle(), {"0": FOUR})

LIES = {
    "size": ({"size": (3, 3), "stride": (3, 1)}, "out of bounds for storage of size 16"),
    "stride": ({"stride": (200, 1)}, "out of bounds for storage of size 16"),
    "huge stride": ({"stride": (2**62, 1)}, "overflowed|out of bounds"),
    "offset": ({"offset": 2}, "out of bounds for storage of size 16"),
    "huge offset": ({"offset": 2**70, "size": (1, 1)}, "Storage size calculation overflowed"),
    "negative offset": ({"offset": -1, "size": (1, 1)}, "invalid storage offset -1"),
    "negative size": ({"size": (-1, 1)}, "numel: integer multiplication overflow"),
    "negative stride": ({"stride": (-1, 1)}, "Storage size calculation overflowed"),
    "lengths": ({"size": (2,)}, r"unequal size length \(1\) and stride length \(2\)"),
    "overflow": ({"size": (2**62, 2**62), "stride": (0, 0)}, "integer multiplication overflow"),
    "overflow of empty": ({"size": (0, 2**62, 2**62), "stride": (0, 0, 0)}, "Stride calculation overflowed"),
    "dimensions": ({"size": (1,) * 65, "stride": (1,) * 65}, "64 dimensions"),
    "storage larger than its record": ({"count": 400}, r"record size \(16 bytes\) does not match expected size"),
    "storage smaller than its record": ({"count": 2}, r"record size \(16 bytes\) does not match expected size"),
    "negative storage": ({"count": -4}, "does not match expected size"),
    "storage that is missing": ({"key": "7"}, "file not found"),
    "storage elsewhere": ({"key": "../version"}, "file not found"),
    "storage of no type": ({"storage_type": "torch\nfloat32"}, "invalid storage"),
    "storage of a class": ({"storage_type": "torch\nTensor"}, "invalid storage"),
    "count that is no number": ({"count": "4"}, "invalid storage"),
    "key that is no text": ({"key": 0}, "invalid storage"),
    "location that is no text": ({"location": 0}, "invalid storage"),
    "tag": ({"tag": "module"}, "Unknown saved id type"),
}


@pytest.mark.parametrize("lie", LIES)
def test_nothing_outside_a_storage_is_read(lie):
    changes, message = LIES[lie]
    with pytest.raises(RuntimeError, match=message):
        torch.load(io.BytesIO(archive(tensor_pickle(**changes), {"0": FOUR})))


@pytest.mark.parametrize(
    "changes", [{"offset": True}, {"size": (2.0, 2)}, {"size": [2, 2]}, {"stride": (True, 1)}, {"size": 4}], ids=str
)
def test_sizes_must_be_integers(changes):
    with pytest.raises(pickle.UnpicklingError, match="the pickle is corrupt: TypeError"):
        torch.load(io.BytesIO(archive(tensor_pickle(**changes), {"0": FOUR})))


def test_an_untyped_storage_has_no_dtype_to_rebuild_with():
    with pytest.raises(pickle.UnpicklingError, match="expected a typed storage"):
        torch.load(io.BytesIO(archive(tensor_pickle("torch.storage\nUntypedStorage", count=16), {"0": FOUR})))


def test_one_storage_under_two_types():
    first, second = tensor_pickle(), tensor_pickle("torch\nIntStorage")
    with pytest.raises(RuntimeError, match="named with two types"):
        torch.load(io.BytesIO(archive(first[:-1] + second[2:-1] + b"\x86.", {"0": FOUR})))


def legacy_tensor(**changes):
    return tensor_pickle(**changes).replace(b"tQ", b"NtQ")


TWO_LARGE = START + legacy_tensor(count=80)[2:-1] + legacy_tensor(count=80, key="1")[2:]
LEGACY_LIES = {
    "storage larger than the file": (legacy_tensor(count=2**40), b"", "larger than the file"),
    "storages larger than the file": (TWO_LARGE, b"", "larger than the file"),
    "short storage": (legacy_tensor(), pickle.dumps(["0"], 2) + struct.pack("<q", 4) + FOUR[:7], "file read failed"),
    "no storage": (legacy_tensor(), pickle.dumps(["0"], 2), "file read failed"),
    "other count": (legacy_tensor(), pickle.dumps(["0"], 2) + struct.pack("<q", 3) + FOUR, "wrong byte size"),
    "other keys": (legacy_tensor(), pickle.dumps(["1"], 2) + struct.pack("<q", 4) + FOUR, "does not match"),
    "keys that are no list": (legacy_tensor(), pickle.dumps("0", 2) + struct.pack("<q", 4) + FOUR, "does not match"),
    "out of bounds": (legacy_tensor(offset=3), b"", "out of bounds"),
    "tag": (legacy_tensor(tag="module"), b"", "Unknown saved id type"),
}  # fmt: skip


@pytest.mark.parametrize("lie", LEGACY_LIES)
def test_legacy_files_that_lie(lie):
    pickled, rest, message = LEGACY_LIES[lie]
    with pytest.raises(RuntimeError, match=message):
        torch.load(io.BytesIO(legacy(pickled, rest)))


def test_legacy_file_by_hand():
    rest = pickle.dumps(["0"], 2) + struct.pack("<q", 4) + FOUR
    assert torch.load(io.BytesIO(legacy(legacy_tensor(), rest))).tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_views_of_storages_in_very_old_files():
    view = b"(" + data("1") + data(1) + data(2) + b"ttQ"
    pickled = tensor_pickle(size=(2,), stride=(1,)).replace(b"tQ", view)
    rest = pickle.dumps(["0"], 2) + struct.pack("<q", 4) + FOUR
    loaded = torch.load(io.BytesIO(legacy(pickled, rest)))
    assert loaded.shape == (2,)
    outside = pickled.replace(view, b"(" + data("1") + data(3) + data(2) + b"ttQ")
    with pytest.raises(RuntimeError, match="out of bounds"):
        torch.load(io.BytesIO(legacy(outside, rest)))


# ---------------------------------------------------------------------------------------------------------------------
# Damaged archives


def test_empty_and_missing_files(tmp_path):
    with pytest.raises(EOFError):
        torch.load(io.BytesIO(b""))
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "nothing.pt")


@pytest.mark.parametrize("length", [4, 300, -30])
def test_cut_archives(length):
    with pytest.raises(
        RuntimeError,
        match=r"PytorchStreamReader failed reading zip archive: failed finding central directory\. The file is truncated",
    ):
        torch.load(io.BytesIO(saved(torch.ones(20)).getvalue()[:length]))


def test_files_of_another_kind():
    for content in (b"garbage garbage", b"\x76NUMPY\x01\x00", b"nothing"):
        with pytest.raises(pickle.UnpicklingError, match="Unsupported operand"):
            torch.load(io.BytesIO(content))
    with pytest.raises(RuntimeError, match="Invalid magic number; corrupt file"):
        torch.load(io.BytesIO(pickle.dumps(3)))
    framed = pickle.dumps({"a": [1, 2]}, 4)
    with pytest.raises(pickle.UnpicklingError, match="Unsupported operand 149"):
        torch.load(io.BytesIO(framed))
    with pytest.raises(RuntimeError, match="Invalid magic number; corrupt file"):
        torch.load(io.BytesIO(framed), weights_only=False)
    with pytest.raises(RuntimeError, match="Invalid protocol version: 7"):
        torch.load(io.BytesIO(pickle.dumps(0x1950A86A20F9469CFC6C) + pickle.dumps(7)))


def test_zip_archives_of_another_kind():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        out.writestr("readme.txt", "")
    file.seek(0)
    with pytest.raises(RuntimeError, match=r"file in archive is not in a subdirectory: readme\.txt"):
        torch.load(file)


def zip_of(**records):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        for name, content in records.items():
            out.writestr("archive/" + name, content)
    file.seek(0)
    return file


def test_versions():
    with pytest.raises(RuntimeError, match=r'Expected hasRecord\("version"\) to be true'):
        torch.load(zip_of(**{"data.pkl": START + b"N."}))
    for version in (b"11", b"99999999999", b"new", b""):
        with pytest.raises(RuntimeError, match="maximum supported version for reading is 10"):
            torch.load(zip_of(**{"data.pkl": START + b"N.", "version": version}))
    assert torch.load(zip_of(**{"data.pkl": START + b"N.", ".data/version": b"3"})) is None


def test_byte_orders():
    with pytest.raises(ValueError, match="Unknown endianness type: middle"):
        torch.load(io.BytesIO(archive(tensor_pickle(), {"0": FOUR}, byteorder="middle")))


def test_programs_are_refused():
    with pytest.raises(RuntimeError, match="TorchScript archives"):
        torch.load(io.BytesIO(archive(START + b"N.", {}, **{"constants.pkl": b""})))


def test_compressed_archives_are_refused():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("archive/version", "3")
        out.writestr("archive/data.pkl", START + b"N.")
        out.writestr("archive/data/0", bytes(4 * 10**7))
    file.seek(0)
    with pytest.raises(RuntimeError, match=r"records overlap|compressed"):
        torch.load(file)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("archive/version", "3" * 50)
        out.writestr("archive/readme", bytes(100), zipfile.ZIP_STORED)
    file.seek(0)
    with pytest.raises(RuntimeError, match="it is compressed"):
        torch.load(file)


def test_records_that_share_their_bytes_are_refused():
    """Thousands of directory entries for one record would let a small file contain much data."""
    content = archive(START + b"N.", {str(i): bytes(1000) for i in range(3)})
    with zipfile.ZipFile(io.BytesIO(content)) as out:
        offsets = [info.header_offset for info in out.infolist()]
        directory = out.start_dir
    changed = bytearray(
        content[: offsets[3]] + content[directory:]
    )  # remove the last storages, but keep their directory entries
    end = changed.rindex(b"PK\x05\x06")
    struct.pack_into("<I", changed, end + 16, offsets[3])
    for offset in offsets[3:]:
        position = changed.index(struct.pack("<I", offset), offsets[3])
        struct.pack_into("<I", changed, position, offsets[2])
    with pytest.raises(RuntimeError, match=r"overlap|no header found|central directory"):
        torch.load(io.BytesIO(bytes(changed)))


def test_a_record_whose_header_is_elsewhere():
    content = bytearray(GRID_ARCHIVE)
    with zipfile.ZipFile(io.BytesIO(GRID_ARCHIVE)) as out:
        offset = out.getinfo("archive/data/0").header_offset
    content[offset : offset + 4] = b"XXXX"
    with pytest.raises(RuntimeError, match="no header found"):
        torch.load(io.BytesIO(bytes(content)))
    content = bytearray(GRID_ARCHIVE)
    struct.pack_into("<H", content, offset + 28, 60_000)
    with pytest.raises(RuntimeError, match="file read failed"):
        torch.load(io.BytesIO(bytes(content)))


# ---------------------------------------------------------------------------------------------------------------------
# Wrong calls


def test_files_that_cannot_be_sought():
    class Stream(io.RawIOBase):
        def readable(self):
            return True

    with pytest.raises(io.UnsupportedOperation, match=r"You can only torch\.load from a file that is seekable"):
        torch.load(Stream())
    with pytest.raises(AttributeError, match=r"'int' object has no attribute 'seek'\. You can only torch\.load from"):
        torch.load(5)


def test_unknown_arguments():
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'foo'"):
        torch.load(saved(1), foo=1)
    with pytest.raises(TypeError, match="not callable"):
        torch.load(saved(torch.ones(1)), map_location=5)
    with pytest.raises(TypeError, match="must return a storage or None"):
        torch.load(saved(torch.ones(1)), map_location=lambda storage, location: 5)


def test_saving_to_nothing():
    for target in (5, {}, None):
        with pytest.raises(
            AttributeError, match=r"expected 'f' to be string, path, or a file-like object with a 'write' attribute"
        ):
            torch.save(1, target)
    with pytest.raises(RuntimeError, match=r"Parent directory .*nowhere does not exist"):
        torch.save(1, "nowhere/model.pt")


@pytest.mark.parametrize("protocol", [0, 6, 99])
def test_protocols(protocol):
    with pytest.raises(ValueError, match="pickle protocol"):
        torch.save(torch.ones(1), io.BytesIO(), pickle_protocol=protocol)


@FORMATS
def test_an_object_that_cannot_be_pickled_leaves_the_file_unchanged(tmp_path, zipped):
    path = tmp_path / "model.pt"
    torch.save(torch.ones(2), path)
    for bad in (lambda: 0, open, (i for i in "ab")):
        if bad is open:
            continue
        with pytest.raises((pickle.PicklingError, TypeError, AttributeError)):
            torch.save([torch.ones(3), bad], path, _use_new_zipfile_serialization=zipped)
    assert torch.load(path).tolist() == [1.0, 1.0]


def test_one_memory_with_two_dtypes():
    tensor = torch.ones(3, dtype=torch.complex64)
    for zipped in (True, False):
        with pytest.raises(
            RuntimeError, match="Cannot save multiple tensors or storages that view the same data as different types"
        ):
            torch.save([tensor, torch.view_as_real(tensor)], io.BytesIO(), _use_new_zipfile_serialization=zipped)


def test_byte_strings_of_python_2():
    content = archive(START + b"U\x02\xc3\xa9.", {})
    assert torch.load(io.BytesIO(content)) == "é"
    assert torch.load(io.BytesIO(content), encoding="latin1") == "Ã©"
    assert torch.load(io.BytesIO(content), encoding="bytes") == b"\xc3\xa9"


# ---------------------------------------------------------------------------------------------------------------------
# Arrays


ORDERS = {
    "C": numpy.arange(24.0).reshape(2, 3, 4),
    "Fortran": numpy.asfortranarray(numpy.arange(24.0).reshape(2, 3, 4)),
    "permuted": numpy.arange(24.0).reshape(2, 3, 4).transpose(1, 0, 2),
    "permuted owner": numpy.arange(24.0).reshape(2, 3, 4).transpose(1, 0, 2).copy(order="K"),
    "part": numpy.arange(24.0).reshape(2, 3, 4)[:, 1:, ::2],
    "zero dimensions": numpy.array(1.5),
    "empty": numpy.zeros((2, 0, 3)),
    "reversed": numpy.arange(6)[::-1],
    "broadcast": numpy.broadcast_to(numpy.arange(3.0), (4, 3)),
}


@pytest.mark.parametrize("order", ORDERS)
def test_arrays_are_taken_apart_and_made_again(order):
    array = ORDERS[order]
    root, offset, size, stride = rebuild.split_array(array)
    again = strided(root, size, stride, offset, array.dtype)
    assert again.dtype == array.dtype and again.shape == array.shape and (again == array).all()
    if order not in ("reversed", "empty"):
        assert again.strides == array.strides and numpy.shares_memory(again, array)


@pytest.mark.parametrize("protocol", range(6))
def test_tensors_pickled_together_share_their_memory_again(protocol):
    base = torch.arange(6.0)
    first, second, alias = pickle.loads(pickle.dumps([base[1:], base[::2], base.detach()], protocol))
    first[1] = 100
    assert second.tolist() == [0.0, 100.0, 4.0] and alias[2] == 100 and base[2] == 2


def test_ordered_dictionaries_are_pickled_without_copyreg(monkeypatch) -> None:
    """`copyreg._slotnames` can lose interrupts. Without this function, the pickle is the same."""
    state = torch.nn.Linear(2, 2).state_dict()
    assert vars(state)  # `_metadata`
    monkeypatch.setattr(copyreg, "_slotnames", None)
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    loaded = torch.load(file)
    assert type(loaded) is OrderedDict
    assert loaded._metadata == state._metadata
    assert list(loaded) == list(state)


# ---------------------------------------------------------------------------------------------------------------------
# Several objects in one file

SEVERAL = {
    "small": {"i": 1, "t": torch.arange(3)},
    "large": {"big": torch.arange(50_000), "shared": [torch.ones(3)] * 2},
    "archive as bytes": torch.tensor(list(b"PK\x05\x06" * 30), dtype=torch.uint8),
}
SEQUENCES = ["small large", "large small", "small small", "large small large", "small archive-as-bytes small"]


@pytest.mark.parametrize("order", SEQUENCES)
@pytest.mark.parametrize("forms", [(True,), (False,), (True, False)])
@pytest.mark.parametrize("prefix", [0, 1, 64, 100_000])
@pytest.mark.parametrize("rest", [b"", bytes(70_000), b"PK\x05\x06" + bytes(60)])
def test_objects_in_one_file_are_loaded_in_turn(order, forms, prefix, rest, tmp_path):
    path = tmp_path / "several.pt"
    names = [name.replace("-", " ") for name in order.split()]
    places = []
    with path.open("wb") as file:
        file.write(b"x" * prefix)
        for number, name in enumerate(names):
            places.append(file.tell())
            torch.save(SEVERAL[name], file, _use_new_zipfile_serialization=forms[number % len(forms)])
        file.write(rest)
    with path.open("rb") as file:
        file.seek(prefix)
        assert [repr(torch.load(file)) for _ in names] == [repr(SEVERAL[name]) for name in names]
        for place, name in zip(places[::-1], names[::-1], strict=True):
            file.seek(place)
            assert repr(torch.load(file)) == repr(SEVERAL[name])
        if not rest:
            file.seek(0, 2)
            with pytest.raises(EOFError):
                torch.load(file)
    if prefix == 0:
        assert repr(torch.load(path)) == repr(SEVERAL[names[0]])
        if forms[0]:
            assert repr(torch.load(path, mmap=True)) == repr(SEVERAL[names[0]])


def test_single_records_are_read_and_written() -> None:
    file = io.BytesIO()
    torch.save(torch.ones(2), file)
    file.seek(0)
    assert torch.serialization._is_zipfile(file)
    with torch.serialization._open_zipfile_reader(file) as reader:
        assert reader.has_record("byteorder") and not reader.has_record("none")
        assert reader.get_record(".format_version") == b"1"
        assert "data/0" in reader.get_all_records()
        position = reader.get_record_offset("data/0")
    assert file.getvalue()[position : position + 8] == bytes(torch.ones(2).numpy())
    copy = io.BytesIO()
    with torch.serialization._open_zipfile_writer(copy) as writer:
        writer.write_record("a/b", b"1234", 3)
        writer.write_record_metadata("c", 4)
    copy.seek(0)
    with torch.serialization._open_zipfile_reader(copy) as reader:
        assert (reader.get_record("a/b"), reader.get_record("c")) == (b"123", bytes(4))


def test_open_files_are_flushed(tmp_path: Path) -> None:
    path = tmp_path / "file.pt"
    with path.open("wb") as file:
        torch.save(torch.ones(2), file)
        assert torch.load(path).tolist() == [1.0, 1.0]
    target = torch.ones(2)
    target.write = "not a function"
    with pytest.raises(TypeError, match="has no callable attribute 'write'"):
        torch.save(1, target)


def test_a_pickle_module_loads_trusted_files() -> None:
    class Refusing(pickle.Unpickler):
        def load(self) -> None:
            raise RuntimeError("refused")

    class Module:
        Unpickler = Refusing

    file = io.BytesIO()
    torch.save(torch.ones(2), file)
    file.seek(0)
    with pytest.raises(RuntimeError, match="refused"):
        torch.load(file, pickle_module=Module, weights_only=False)


def test_empty_storages_may_have_several_types() -> None:
    empty = torch.tensor([], dtype=torch.int8)
    other = torch.TypedStorage(wrap_storage=empty.untyped_storage(), dtype=torch.float64, _internal=True)
    file = io.BytesIO()
    torch.save([empty, other], file)
    file.seek(0)
    assert [each.dtype for each in torch.load(file)] == [torch.int8, torch.float64]


class WithState(torch.Tensor):
    """A class that saves more than its elements."""

    def __getstate__(self) -> tuple[str, dict[str, object]]:
        return "state", self.__dict__

    def __setstate__(self, state: tuple[str, dict[str, object]]) -> None:
        self.loaded, self.__dict__ = state[0], {**state[1], "loaded": state[0]}


def test_subclasses_save_and_load_their_own_state() -> None:
    tensor = torch.ones(2).as_subclass(WithState)
    tensor.label = "t"
    file = io.BytesIO()
    with torch.serialization.safe_globals([WithState]):
        torch.save(tensor, file)
        file.seek(0)
        loaded = torch.load(file)
    assert (loaded.label, loaded.loaded, loaded.tolist()) == ("t", "state", [1.0, 1.0])
