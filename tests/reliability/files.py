"""Calls of `save` that replace a checkpoint. In all cases, the path contains the complete old or the complete new checkpoint."""

from __future__ import annotations

import os
import random
import resource
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from . import Outcome, experiment
from ._children import in_child
from ._library import library as torch


def checkpoint(version: int, length: int) -> dict[str, Any]:
    """Return a checkpoint in which all parts contain the checkpoint's number."""
    return {"version": version, "weights": [torch.full((length,), float(version)) for _ in range(4)], "end": version}


def flaw(path: Path, versions: range) -> str | None:
    """Return the defects of the checkpoint at `path`, which should be one of `versions`, and of its folder."""
    try:
        loaded = torch.load(path)
    except Exception as error:
        return f"the checkpoint cannot be read: {type(error).__name__}: {str(error)[:80]}"
    version = loaded["version"]
    if not (loaded["end"] == version and all(bool((part == version).all()) for part in loaded["weights"])):
        return "the checkpoint has parts of two versions"
    if version not in versions:
        return f"the checkpoint is of version {version}, not of {versions}"
    left = {each.name for each in path.parent.iterdir()} - {"checkpoint.pt", "link.pt"}
    return f"left behind: {len(left)} files" if left else None


def place(folder: str, chance: random.Random) -> tuple[Path, Path]:
    """Save version 0. Return the path for the next version, which is the path of the file or of a link to the file."""
    path, link = Path(folder, "checkpoint.pt"), Path(folder, "link.pt")
    torch.save(checkpoint(0, 100), path)
    if chance.random() < 0.3:
        link.symlink_to(path.name)
        return path, link
    return path, path


def killed_while_saving(count: int, seed: int) -> Iterator[str | None]:
    """Kill processes that save one checkpoint after another."""
    chance = random.Random(seed)
    for _ in range(count):
        with tempfile.TemporaryDirectory() as folder:
            path, target = place(folder, chance)
            length, zipped = chance.choice([10, 1000, 100_000]), chance.random() < 0.7
            ready, started = os.pipe()
            child = os.fork()
            if child == 0:
                _save_until_killed(target, length, zipped, started)
            os.close(started)
            os.read(ready, 1)
            os.close(ready)
            time.sleep(chance.uniform(0, 0.03))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            yield flaw(path, range(10**6))


def _save_until_killed(target: Path, length: int, zipped: bool, started: int) -> None:
    with suppress(BaseException):
        os.write(started, b"+")
        for version in range(1, 10**6):
            torch.save(checkpoint(version, length), target, _use_new_zipfile_serialization=zipped)
    os._exit(1)


def full_while_saving(count: int, seed: int) -> Iterator[str | None]:
    """Save to a disk that has space for only some of the bytes."""
    chance = random.Random(seed)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    for _ in range(count):
        with tempfile.TemporaryDirectory() as folder:
            path, target = place(folder, chance)
            new, zipped = checkpoint(1, chance.choice([100, 10_000])), chance.random() < 0.7
            torch.save(new, Path(folder, "size"), _use_new_zipfile_serialization=zipped)
            size = Path(folder, "size").stat().st_size
            Path(folder, "size").unlink()
            resource.setrlimit(resource.RLIMIT_FSIZE, (chance.randrange(size), resource.RLIM_INFINITY))
            try:
                torch.save(new, target, _use_new_zipfile_serialization=zipped)
                said: str | None = "no error"
            except RuntimeError as error:
                said = None if "has not been changed" in str(error) else f"an unclear error: {error}"
            except BaseException as error:
                said = f"raises {type(error).__name__}: {error}"
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
            yield said or flaw(path, range(1))


def in_children(tries: Callable[[int, int], Iterator[str | None]], count: int) -> Outcome:
    """Make `count` tries, several in each child."""
    outcome = Outcome()
    for start in range(0, count, 50):
        found, end = in_child(lambda: tries(min(50, count - start), start), patience=120)  # noqa: B023
        for failure in [*found, *([end] if end else [])]:
            outcome.note(failure)
    return outcome


@experiment("killed-saves", tries=1000, short=20)
def killed_saves(count: int) -> Outcome:
    """Kill processes that replace a checkpoint, at random moments: only a complete checkpoint remains."""
    return in_children(killed_while_saving, count)


@experiment("full-disks", tries=1000, short=20)
def full_disks(count: int) -> Outcome:
    """Replace a checkpoint on a full disk: `save` raises a clear error, and only the old checkpoint remains."""
    return in_children(full_while_saving, count)
