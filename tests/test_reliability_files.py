"""Short forms of the experiments on files, and tests of `save`. `python -m tests.reliability` runs the experiments in full."""

import os
import stat
import sys

import pytest

import adjoint as torch

if sys.platform != "linux":
    pytest.skip("the experiments kill and limit processes as Linux does", allow_module_level=True)

from tests.reliability import EXPERIMENTS, files, hostile_files

NAMES = ["killed-saves", "full-disks", "hostile-files", "changed-files"]
assert {EXPERIMENTS[name].run.__module__ for name in NAMES} == {files.__name__, hostile_files.__name__}


@pytest.mark.thorough
@pytest.mark.filterwarnings(
    "ignore:This process:DeprecationWarning"
)  # Python warns of forks in processes with threads, but the child needs no threads
@pytest.mark.parametrize("name", NAMES)
def test_everything_survives(name):
    experiment = EXPERIMENTS[name]
    outcome = experiment.run(experiment.short)
    # Two system calls name the new file and replace the old file. If a process is killed between them, both files exist. This
    # happens in one of a hundred tries if the first call takes long.
    between = outcome.failures.pop("left behind: 1 files", 0)
    assert not outcome.failures and outcome.survived + between == outcome.tried == experiment.short
    assert between <= (3 if name == "killed-saves" else 0)


def saved_in(folder):
    return sorted(path.name for path in folder.iterdir())


def interrupted(path, replacing, files):
    with replacing(path) as file:
        file.write(b"half")
        assert len(saved_in(path.parent)) == files and torch.load(path) == 1
        raise KeyboardInterrupt


@pytest.mark.parametrize("named", [False, True], ids=["without a name", "with a name"])
def test_a_path_names_the_old_file_until_the_new_one_is_whole(tmp_path, monkeypatch, named):
    from adjoint.serialization import replacement

    if named:
        monkeypatch.setattr(replacement, "_UNNAMED", None)
    path = tmp_path / "model.pt"
    torch.save(1, path)
    path.chmod(0o640)
    with pytest.raises(KeyboardInterrupt):
        interrupted(path, replacement.replacing, 1 + named)
    assert saved_in(tmp_path) == ["model.pt"] and torch.load(path) == 1
    torch.save(2, path)
    assert saved_in(tmp_path) == ["model.pt"] and torch.load(path) == 2
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_new_files_have_the_usual_permissions(tmp_path):
    torch.save(1, tmp_path / "model.pt")
    (tmp_path / "other").write_bytes(b"")
    assert (tmp_path / "model.pt").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_links_stay_links(tmp_path):
    (tmp_path / "there").mkdir()
    target, link, hard = tmp_path / "there" / "model.pt", tmp_path / "link.pt", tmp_path / "hard.pt"
    link.symlink_to(target)
    torch.save(1, link)
    hard.hardlink_to(target)
    torch.save(2, link)
    assert link.is_symlink() and torch.load(target) == 2 and torch.load(hard) == 1
    link.unlink()
    link.symlink_to(link)
    with pytest.raises(RuntimeError, match=r"failed opening file .*Too many levels of symbolic links"):
        torch.save(3, link)


def test_devices_and_pipes_are_written_to(tmp_path):
    torch.save(1, "/dev/null")
    with pytest.raises(RuntimeError, match=r"failed writing file /dev/full: .*No space left"):
        torch.save(1, "/dev/full")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        torch.save(1, pipe)
        assert os.read(reading, 4) == b"PK\x03\x04"
    finally:
        os.close(reading)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_permissions_are_asked_for(tmp_path):
    path = tmp_path / "model.pt"
    torch.save(1, path)
    tmp_path.chmod(0o500)  # the folder accepts no new files, so `save` overwrites the old file
    torch.save(2, path)
    tmp_path.chmod(0o700)
    path.chmod(0o400)
    with pytest.raises(RuntimeError, match="Permission denied"):
        torch.save(3, path)
    assert torch.load(path) == 2


def test_folders_and_impossible_names(tmp_path):
    for target, why in [
        (tmp_path, "Is a directory"),
        (tmp_path / "a\0b", "null (byte|character)"),
        (tmp_path / ("a" * 999), "too long"),
    ]:
        with pytest.raises(RuntimeError, match=f"PytorchStreamWriter failed opening file .*{why}"):
            torch.save(1, target)
    assert saved_in(tmp_path) == []


class Trickle:
    """A file that accepts a few bytes in each call, and fails after some calls."""

    def __init__(self, room):
        self.content, self.room = bytearray(), room

    def write(self, data):
        if len(self.content) >= self.room:
            raise OSError("full")
        self.content += data[:7]
        return len(data[:7])


@pytest.mark.parametrize("zipped", [True, False])
def test_files_that_take_a_part_of_what_they_are_given(zipped, tmp_path):
    trickle = Trickle(10**9)
    torch.save(torch.arange(5), trickle, _use_new_zipfile_serialization=zipped)
    (tmp_path / "model.pt").write_bytes(trickle.content)
    assert torch.load(tmp_path / "model.pt").tolist() == [0, 1, 2, 3, 4]
    broken = Trickle(50)
    with pytest.raises(OSError, match="full"):
        torch.save(torch.arange(5), broken, _use_new_zipfile_serialization=zipped)
    assert len(broken.content) < 60
