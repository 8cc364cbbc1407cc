"""Files in other formats than PyTorch's, and files that the caller trusts."""

import io
import json
import pickle
import struct

import numpy
import pytest

import adjoint as torch

STATE = {
    "weight": torch.arange(6.0).reshape(2, 3),
    "transposed": torch.arange(6, dtype=torch.int16).reshape(2, 3).t(),
    "half": torch.tensor([1.5, -2.0], dtype=torch.float16),
    "nothing": torch.zeros(0, 3),
    "number": torch.tensor(7),
    "flags": torch.tensor([True, False]),
}


def same(one, two):
    assert list(one) == list(two)
    for name, tensor in two.items():
        assert one[name].dtype == tensor.dtype and torch.equal(one[name], tensor), name


@pytest.mark.parametrize("suffix", ["safetensors", "npz"])
def test_state_dicts_in_other_formats(tmp_path, suffix):
    path = tmp_path / f"state.{suffix}"
    torch.save(STATE, path)
    loaded = torch.load(path)
    same({name: loaded[name] for name in STATE}, STATE)
    with path.open("rb") as file:
        assert loaded.keys() == torch.load(file).keys()
    for wrong in ([1], {"a": 1}, {1: torch.ones(1)}):
        with pytest.raises(TypeError, match="a dict of tensors by name"):
            torch.save(wrong, path)
    same(torch.load(path), loaded)  # the file has not been changed


def test_bfloat16_in_safetensors_and_not_in_npz(tmp_path):
    state = {"a": torch.tensor([1.5, 2], dtype=torch.bfloat16)}
    torch.save(state, tmp_path / "a.safetensors")
    same(torch.load(tmp_path / "a.safetensors"), state)
    with pytest.raises(TypeError, match="cannot hold 'a' of"):
        torch.save(state, tmp_path / "a.npz")


def test_mapped_safetensors_do_not_change_the_file(tmp_path):
    path = tmp_path / "a.safetensors"
    torch.save(STATE, path)
    before = path.read_bytes()
    mapped = torch.load(path, mmap=True)
    mapped["weight"].mul_(2)
    assert path.read_bytes() == before
    same(torch.load(path), {name: STATE[name] for name in mapped})


def test_numpy_archives_go_both_ways(tmp_path):
    path = tmp_path / "a.npz"
    numpy.savez(path, a=numpy.asfortranarray(numpy.arange(6.0).reshape(2, 3)), b=numpy.arange(3, dtype=">i4"))
    same(
        torch.load(path),
        {"a": torch.arange(6.0, dtype=torch.float64).reshape(2, 3), "b": torch.arange(3, dtype=torch.int32)},
    )
    torch.save({"x": torch.ones(2, 1)}, path)
    assert numpy.load(path)["x"].shape == (2, 1)
    numpy.savez_compressed(path, a=numpy.zeros(100_000))
    with pytest.raises(RuntimeError, match="compressed"):
        torch.load(path)
    numpy.savez(path, a=numpy.array([None]))
    with pytest.raises(RuntimeError, match="numbers"):
        torch.load(path)


def safetensors(header, content=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return io.BytesIO(struct.pack("<Q", len(text)) + text + content)


def entry(shape, start, stop, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, stop]}


@pytest.mark.parametrize(
    ("header", "content"),
    [
        (b'{"a":', b""),
        (b"{" * 100_000, b""),
        (b'{"a":%b,"a":%b}' % ((b'{"dtype":"F32","shape":[1],"data_offsets":[0,4]}',) * 2), bytes(4)),
        ({"a": 1}, b""),
        ({"a": entry([1], 0, 4)}, b""),
        ({"a": entry([1], 0, 4)}, bytes(8)),
        ({"a": entry([2], 0, 4)}, bytes(4)),
        ({"a": entry([-1], 0, 4)}, bytes(4)),
        ({"a": entry([1.0], 0, 4)}, bytes(4)),
        ({"a": entry([10**30], 0, 4)}, bytes(4)),
        ({"a": entry([1] * 100, 0, 4)}, bytes(4)),
        ({"a": entry([1], 0, 4, "F31")}, bytes(4)),
        ({"a": entry([1], 0, 4, ["F32"])}, bytes(4)),
        ({"a": entry([1], 0, 4), "b": entry([1], 0, 4)}, bytes(4)),
        ({"a": entry([1], 4, 0)}, bytes(4)),
        ({"a": entry([1], 4, 8)}, bytes(8)),
    ],
)  # fmt: skip
def test_damaged_safetensors_are_refused(header, content):
    with pytest.raises(RuntimeError, match="the safetensors file cannot be read"):
        torch.load(safetensors(header, content))


class Anything:
    """A class that only a trusted file may contain."""

    def __init__(self):
        self.tensor = torch.ones(2)


@pytest.mark.parametrize("zipped", [True, False])
def test_trusted_files_hold_any_object(zipped):
    file = io.BytesIO()
    with pytest.warns(UserWarning, match="weights_only=False"):
        torch.save([torch.nn.Linear(2, 3), Anything()], file, _use_new_zipfile_serialization=zipped)
    with pytest.raises(pickle.UnpicklingError, match="weights_only=False"):
        torch.load(io.BytesIO(file.getvalue()))
    model, other = torch.load(io.BytesIO(file.getvalue()), weights_only=False)
    assert model(torch.ones(2)).shape == (3,)
    assert torch.equal(other.tensor, torch.ones(2))


def test_environment_forces_weights_only(monkeypatch):
    file = io.BytesIO()
    with pytest.warns(UserWarning, match="Anything"):
        torch.save(Anything(), file)

    def load(**options):
        return torch.load(io.BytesIO(file.getvalue()), **options)

    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(pickle.UnpicklingError):
        load(weights_only=False)
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "y")
    with pytest.raises(RuntimeError, match="Only one of"):
        load()
    monkeypatch.delenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD")
    with pytest.warns(UserWarning, match="forcing weights_only=False"):
        assert isinstance(load(), Anything)
    with pytest.raises(pickle.UnpicklingError):
        load(weights_only=True)
