"""Write the checkpoints in this folder with PyTorch: `python tests/data/make_checkpoints.py`.

Tests without PyTorch read these files. All files together have less than 20 kB.
"""

from collections import OrderedDict
from pathlib import Path

import torch

FOLDER = Path(__file__).parent


def everything():
    """Return every kind of data that PyTorch loads with `weights_only=True`."""
    grid = torch.arange(12.0).reshape(3, 4)
    with_attribute = torch.ones(2)
    with_attribute.note = "kept"
    return {
        **{str(dtype): torch.tensor([0, 1, 2]).to(dtype) for dtype in DTYPES},
        "grid": grid,
        "row": grid[1],
        "transposed": grid.t(),
        "every other": grid[:, ::2],
        "expanded": torch.ones(1, 3).expand(2, 3),
        "empty": torch.empty(0, 3),
        "zero dim": torch.tensor(7),
        "conjugate": torch.tensor([1 + 2j]).conj(),
        "parameter": torch.nn.Parameter(torch.tensor([1.5])),
        "frozen": torch.nn.Parameter(torch.tensor([2.5]), requires_grad=False),
        "leaf": torch.tensor([3.5], requires_grad=True),
        "attribute": with_attribute,
        "containers": [
            None,
            True,
            (1, 2**70, -3),
            {1, 2},
            OrderedDict(a=1.5),
            {"b": 1 - 2j},
            "é",
            b"\xff\x00",
            bytearray(b"x"),
        ],
        "types": [torch.Size([2, 3]), torch.float32, torch.device("cpu"), torch.device("cuda:1")],
    }


DTYPES = (
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64,
    torch.bool, torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128,
)  # fmt: skip


def model():
    """Return a small model with known weights."""
    layers = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    with torch.no_grad():
        for i, parameter in enumerate(layers.parameters()):
            parameter.copy_(torch.arange(float(parameter.numel())).reshape(parameter.shape) + i)
    return layers


def training():
    """Return a model and its optimizer after one step."""
    layers = model()
    optimizer = torch.optim.Adam(layers.parameters(), lr=0.5)
    layers(torch.eye(2)).square().sum().backward()
    optimizer.step()
    return {"model": layers.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}


def main():
    torch.save(everything(), FOLDER / "everything.pt")
    torch.save(training(), FOLDER / "training.pth")
    torch.save(torch.nn.Linear(1, 1), FOLDER / "whole_model.pt")
    grid = torch.arange(6.0).reshape(2, 3)
    torch.save({"grid": grid, "row": grid[1]}, FOLDER / "legacy.pth.tar", _use_new_zipfile_serialization=False)


if __name__ == "__main__":
    main()
