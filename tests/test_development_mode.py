"""In Python's development mode, a program with all kinds of work causes no warning, open file or memory error."""

import os
import subprocess
import sys
import textwrap

import pytest

PROGRAM = textwrap.dedent(
    """
    import gc, io, tempfile
    from pathlib import Path
    import adjoint as torch
    from adjoint import func, nn
    from adjoint.utils.checkpoint import checkpoint
    from adjoint.utils.data import DataLoader, TensorDataset

    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Dropout(0.1), nn.Linear(18, 3))
    recurrent = nn.LSTM(5, 3, batch_first=True)
    optimizer = torch.optim.AdamW([*model.parameters(), *recurrent.parameters()])
    data = TensorDataset(torch.randn(8, 1, 5, 5), torch.arange(8) % 3)
    for workers in (0, 1):
        for x, target in DataLoader(data, batch_size=4, num_workers=workers):
            optimizer.zero_grad()
            hidden = checkpoint(model, x, use_reentrant=False) + recurrent(x[:, 0])[0].mean(1)
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                loss = nn.functional.cross_entropy(hidden, target)
            loss.backward()
            optimizer.step()
    with torch.autograd.detect_anomaly(check_nan=True):
        func.vmap(func.grad(lambda x: (x.sin() * x).sum()))(torch.ones(3, 4))
    with torch.profiler.profile() as profile:
        torch.linalg.svd(torch.randn(4, 4)).S.sum()
    with tempfile.TemporaryDirectory() as folder:
        torch.save(model.state_dict(), Path(folder) / "model.pt")
        model.load_state_dict(torch.load(Path(folder) / "model.pt", mmap=True))
    gc.collect()
    """
)


@pytest.mark.thorough
def test_a_program_is_clean_in_development_mode():
    warning = "ignore:Anomaly Detection has been enabled:UserWarning"
    command = [sys.executable, "-X", "dev", "-W", "error", "-W", warning, "-c", PROGRAM]
    environment = {**os.environ, "PYTHONMALLOC": "debug"}
    found = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert found.returncode == 0, found.stderr
    assert found.stderr == ""
