"""Each example runs a few steps, and writes the files that its page shows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

FEW = {
    "digits": ("--epochs", "1"),
    "distributed_digits": ("--epochs", "1"),
    "character_transformer": ("--steps", "3"),
    "td_lambda": ("--episodes", "3", "--runs", "1"),
    "vae_digits": ("--epochs", "1"),
    "neural_ode": ("--steps", "2"),
    "physics_informed": ("--steps", "2"),
    "graph_attention": ("--steps", "2"),
    "diffusion": ("--steps", "2"),
    "checkpoint_round_trip": ("--steps", "2"),
}

WRITTEN = {"digits": "learning_curve.png", "distributed_digits": "distributed_digits.pt"}


def test_every_example_is_tested_and_has_a_page():
    scripts = {path.stem for path in (ROOT / "examples").glob("*.py")} - {"style"}
    assert scripts == set(FEW)
    pages = {path.stem.replace("-", "_") for path in (ROOT / "docs" / "examples").glob("*.md")} - {"index"}
    assert pages == scripts


@pytest.mark.thorough
@pytest.mark.parametrize("name", FEW)
def test_an_example_runs(name, tmp_path):
    for package in ("matplotlib", "sklearn", "tqdm"):
        pytest.importorskip(package)
    if name == "distributed_digits":
        pytest.importorskip("mpi4py")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / f"{name}.py"), *FEW[name], "--out", str(tmp_path)],
        env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / WRITTEN.get(name, f"{name}.png")).stat().st_size > 10_000
