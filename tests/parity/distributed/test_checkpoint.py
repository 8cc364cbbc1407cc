"""Checkpoint folders: each library reads folders that the other library has written."""

import pytest

import adjoint
from adjoint.distributed import checkpoint
from tests.distributed.test_checkpoint import example, same

torch = pytest.importorskip("torch")


@pytest.fixture
def theirs():
    return pytest.importorskip("torch.distributed.checkpoint")


@pytest.mark.filterwarnings("ignore")
def test_each_library_reads_files_of_the_other(theirs, tmp_path):
    checkpoint.save(example(adjoint, 2.5), checkpoint_id=tmp_path / "ours")
    loaded = example(torch, 0.0)
    theirs.load(loaded, checkpoint_id=tmp_path / "ours", no_dist=True)
    same(loaded, example(torch, 2.5))
    theirs.save(example(torch, 1.5), checkpoint_id=tmp_path / "theirs", no_dist=True)
    found = example(adjoint, 0.0)
    checkpoint.load(found, checkpoint_id=tmp_path / "theirs")
    same(found, example(adjoint, 1.5))


@pytest.mark.filterwarnings("ignore")
def test_names_in_folders_are_the_same(theirs, tmp_path):
    state = {
        "a": [1, 2],
        "b": [{"p": 1}],
        "c": [[1, [2]]],
        "d": {},
        "e": {"f": [], "g": ()},
        "h": {3: None},
        "i": (1, [2]),
    }
    checkpoint.save(state, checkpoint_id=tmp_path / "ours")
    theirs.save(state, checkpoint_id=tmp_path / "theirs", no_dist=True)
    ours, its = (checkpoint.FileSystemReader(tmp_path / name).read_metadata() for name in ("ours", "theirs"))
    assert ours.state_dict_metadata == its.state_dict_metadata
    assert ours.planner_data == its.planner_data
