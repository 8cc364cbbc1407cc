"""Checkpoint folders that one process writes, and checkpoint folders in PyTorch's format."""

import os
import pickle

import pytest

import adjoint as torch
from adjoint import nn
from adjoint.distributed import checkpoint
from adjoint.distributed.checkpoint import format_utils
from adjoint.distributed.checkpoint.stateful import Stateful


def example(torch, value):
    return {
        "model": {"weight": torch.full((5, 3), value), "half": torch.full((2,), value, dtype=torch.bfloat16)},
        "optimizer": {"state": {0: {"step": torch.tensor(value)}}, "param_groups": [{"lr": value, "params": [0]}]},
        "list": [value, torch.full((2,), value), [value, {"x": value}]],
        "numbers": [value, value],
        "pair": (value, "a"),
        "text": str(value),
        "nothing": None,
    }


def same(found, expected):
    assert str(found) == str(expected)


def test_there_and_back(tmp_path):
    for value in (1.0, 2.0):  # the second file replaces the first file
        checkpoint.save(example(torch, value), checkpoint_id=tmp_path)
        assert len(list(tmp_path.iterdir())) == 2
    loaded = example(torch, 0.0)
    weight = loaded["model"]["weight"]
    checkpoint.load(loaded, checkpoint_id=tmp_path)
    same(loaded, example(torch, 2.0))
    assert loaded["model"]["weight"] is weight
    format_utils.dcp_to_torch_save(tmp_path, tmp_path / "whole.pt")
    whole = torch.load(tmp_path / "whole.pt")
    whole["optimizer"]["state"] = {0: whole["optimizer"]["state"].pop("0")}
    same(whole, example(torch, 2.0))
    format_utils.torch_save_to_dcp(tmp_path / "whole.pt", tmp_path / "again")
    checkpoint.load(loaded, storage_reader=checkpoint.FileSystemReader(tmp_path / "again"))


def test_objects_with_a_state(tmp_path):
    model, other = nn.Linear(3, 2), nn.Linear(3, 2)
    checkpoint.save({"model": model, "epoch": 3}, storage_writer=checkpoint.FileSystemWriter(tmp_path))
    loaded = {"model": other, "epoch": 0}
    checkpoint.load(loaded, checkpoint_id=tmp_path)
    assert torch.equal(model.weight, other.weight)
    assert loaded == {"model": other, "epoch": 3}


class App(Stateful):
    def __init__(self, model):
        self.model = model

    def state_dict(self):
        return {"model": self.model.state_dict()}

    def load_state_dict(self, state_dict):
        self.model.load_state_dict(state_dict["model"])


def test_classes_of_programs_that_are_stateful(tmp_path):
    saved, loaded = nn.Linear(2, 3), nn.Linear(2, 3)
    assert isinstance(saved, Stateful)
    assert not isinstance(saved.weight, Stateful)
    checkpoint.save({"app": App(saved)}, checkpoint_id=tmp_path)
    checkpoint.load({"app": App(loaded)}, checkpoint_id=tmp_path)
    assert torch.equal(loaded.weight, saved.weight)


@pytest.mark.parametrize(
    ("wanted", "error", "said"),
    [
        ({"other": torch.ones(1)}, RuntimeError, "Missing key in checkpoint state_dict: other."),
        (
            {"a": torch.ones(3)},
            ValueError,
            r"Size mismatch between saved torch.Size\(\[2\]\) and current: torch.Size\(\[3\]\) for a",
        ),
        ({"b": torch.ones(1)}, RuntimeError, "b is a tensor here, and a value in the checkpoint"),
    ],
)
def test_contents_that_do_not_fit(tmp_path, wanted, error, said):
    checkpoint.save({"a": torch.ones(2), "b": 3}, checkpoint_id=tmp_path)
    with pytest.raises(error, match=said):
        checkpoint.load(wanted, checkpoint_id=tmp_path)


def test_a_description_that_calls_is_refused(tmp_path):
    class Call:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "called"),)

    for content in (Call(), {"a": Call()}, [1]):
        (tmp_path / ".metadata").write_bytes(pickle.dumps(content))
        with pytest.raises(pickle.UnpicklingError, match=r"the \.metadata of a checkpoint"):
            checkpoint.load({}, checkpoint_id=tmp_path)
    assert not (tmp_path / "called").exists()


def test_a_description_that_leaves_its_folder_is_refused(tmp_path):
    checkpoint.save({"a": torch.ones(2)}, checkpoint_id=tmp_path / "inside")
    metadata = checkpoint.FileSystemReader(tmp_path / "inside").read_metadata()
    for place in metadata.storage_data.values():
        place.relative_path = "../outside"
    (tmp_path / "inside" / ".metadata").write_bytes(checkpoint.metadata.dump(metadata))
    with pytest.raises(RuntimeError, match="not in its folder"):
        checkpoint.load({"a": torch.ones(2)}, checkpoint_id=tmp_path / "inside")
