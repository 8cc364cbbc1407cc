"""Optimizers, parameters and checkpoints that are shared out, against `DistributedDataParallel`."""

import copy
import os
import tempfile
from pathlib import Path

import pytest
from checking import run_checks

import adjoint as torch
import adjoint.distributed as dist
from adjoint import nn
from adjoint.distributed import checkpoint
from adjoint.distributed.fsdp import FSDPModule, fully_shard
from adjoint.distributed.optim import ZeroRedundancyOptimizer
from adjoint.nn.parallel import DistributedDataParallel

STEPS = 20


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(5, 7)
        self.layers = nn.ModuleList([nn.Sequential(nn.Linear(7, 7), nn.LayerNorm(7)) for _ in range(2)])
        self.tied, self.last = nn.Linear(7, 7), nn.Linear(7, 3, bias=False)
        self.layers[0][0].weight = self.tied.weight

    def forward(self, x):
        x = torch.tanh(self.first(x))
        for layer in self.layers:
            x = x + layer(x)
        return self.last(torch.tanh(self.tied(x)))


class Untied(Net):
    def __init__(self):
        super().__init__()
        self.layers[0][0].weight = nn.Parameter(self.tied.weight.detach().clone())


def batch(step, rank, size):
    torch.manual_seed(1000 + step)
    return torch.randn(4 * size, 5, dtype=torch.float64)[rank::size]


def train(model, optimizer, rank, size, steps=range(STEPS)):
    for step in steps:
        optimizer.zero_grad()
        (model(batch(step, rank, size)) ** 2).mean().backward()
        optimizer.step()


def net(kind=Net):
    torch.manual_seed(0)
    return kind().double()


def close(found, expected):
    assert found.keys() == expected.keys()
    for name in expected:
        torch.testing.assert_close(found[name], expected[name], rtol=1e-9, atol=1e-11)


OPTIMIZERS = [
    (torch.optim.Adam, {"lr": 1e-2}),
    (torch.optim.SGD, {"lr": 1e-2, "momentum": 0.9, "weight_decay": 1e-3}),
]


def check_zero_redundancy(rank, size):
    for kind, options in OPTIMIZERS:
        reference, shared = (DistributedDataParallel(net()) for _ in range(2))
        one = kind(reference.parameters(), **options)
        many = ZeroRedundancyOptimizer(shared.parameters(), kind, **options)
        schedules = [torch.optim.lr_scheduler.StepLR(each, 5) for each in (one, many)]
        for step in range(STEPS):
            for model, optimizer in ((reference, one), (shared, many)):
                train(model, optimizer, rank, size, [step])
            for schedule in schedules:
                schedule.step()
        close(shared.state_dict(), reference.state_dict())
        count = sum(len(group["params"]) for group in many.param_groups)
        assert len(many.optim.state) < count
        with pytest.raises(RuntimeError, match="Optimizer state has not been consolidated on this rank"):
            many.state_dict()
        many.consolidate_state_dict(to=0)
        held = [many.state_dict() if rank == 0 else None]
        dist.broadcast_object_list(held, 0)
        if rank == 0:
            expected = one.state_dict()
            assert held[0]["state"].keys() == expected["state"].keys()
            for number, state in expected["state"].items():
                close(dict(held[0]["state"][number].items()), dict(state))
        if rank == 0:
            again = ZeroRedundancyOptimizer(copy.deepcopy(shared.module).parameters(), kind, **options)
            again.load_state_dict(held[0])
            assert len(again.optim.state) == len(many.optim.state)
            assert again.param_groups[0]["lr"] == many.param_groups[0]["lr"]
            for old, new in zip(many.optim.state.values(), again.optim.state.values(), strict=True):
                close(dict(new), dict(old))


def sharded(kind=Net, **options):
    model = net(kind)
    for layer in model.layers:
        fully_shard(layer, **options)
    return fully_shard(model, **options)


def check_fully_shard(rank, size):
    for options in ({}, {"reshard_after_forward": False}):
        for kind, settings in OPTIMIZERS:
            reference = DistributedDataParallel(net(Untied))
            model = sharded(Untied, **options)
            assert isinstance(model, FSDPModule) and isinstance(model, Net)
            parts = sum(parameter.numel() for parameter in model.parameters())
            whole = sum(parameter.numel() for parameter in reference.parameters())
            assert parts <= -(-whole // size) + 20
            one, many = kind(reference.parameters(), **settings), kind(model.parameters(), **settings)
            train(reference, one, rank, size)
            train(model, many, rank, size)
            close(model.full_state_dict(), reference.module.state_dict())
            assert all(
                state.numel() <= -(-49 // size)
                for held in many.state.values()
                for state in held.values()
                if state is not None
            )


def check_shared_parameters(rank, size):
    reference, model = DistributedDataParallel(net()), fully_shard(net())
    one, many = (torch.optim.SGD(each.parameters(), lr=0.1) for each in (reference, model))
    train(reference, one, rank, size)
    train(model, many, rank, size)
    close(model.full_state_dict(), reference.module.state_dict())
    assert model.tied.weight is model.layers[0][0].weight


def check_full_state(rank, size):
    model, other = sharded(Untied), sharded(Untied)
    train(model, torch.optim.SGD(model.parameters(), lr=0.1), rank, size)
    full = model.full_state_dict()
    other.load_full_state_dict(full)
    close(other.full_state_dict(), full)
    alone = net(Untied)
    alone.load_state_dict(full)
    x = batch(0, 0, 1)
    torch.testing.assert_close(model(x), alone(x))


def check_parameters_are_gathered_for_the_call_alone(rank, size):
    model = sharded(Untied)
    y = model(batch(0, rank, size)).sum()
    assert model.first.weight.shape == (-(-35 // size),)
    y.backward()
    assert model.first.weight.grad.shape == model.first.weight.shape
    with pytest.raises(RuntimeError):
        model(torch.ones(2, 3, dtype=torch.float64))
    assert model.first.weight.shape == (-(-35 // size),)


def check_what_is_saved_for_backward(rank, size):
    for reshard in (True, False):
        model = fully_shard(
            nn.Sequential(nn.Linear(40, 30), nn.Tanh(), nn.Linear(30, 20)).double(), reshard_after_forward=reshard
        )
        gathered = []
        for sharding in model._sharded.shardings.values():
            sharding.gather = lambda part, old=sharding.gather, gathered=gathered: gathered.append(1) or old(part)
        y = model(torch.ones(3, 40, dtype=torch.float64)).sum()
        assert len(gathered) == 4
        y.backward()
        assert len(gathered) == (5 if reshard else 4)  # the first weight is needed for the gradient of the input alone


def check_checkpoint(rank, size):
    folder = [tempfile.mkdtemp() if rank == 0 else ""]
    dist.broadcast_object_list(folder, 0)
    path = os.environ.get("CHECKPOINT") or folder[0]
    model = sharded(Untied)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    if not os.environ.get("RESUME"):
        train(model, optimizer, rank, size, range(5))
        states = checkpoint.get_state_dict(model, optimizer)
        checkpoint.save({"model": states[0], "optimizer": states[1], "epoch": 5}, checkpoint_id=path)
        full = model.full_state_dict()
        if rank == 0:
            torch.save(full, Path(path) / "full")
        model, optimizer = sharded(Untied), None
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    states = checkpoint.get_state_dict(model, optimizer)
    loaded = {"model": states[0], "optimizer": states[1], "epoch": 0}
    checkpoint.load(loaded, checkpoint_id=path)
    checkpoint.set_state_dict(model, optimizer, model_state_dict=states[0], optim_state_dict=states[1])
    assert loaded["epoch"] == 5
    full = model.full_state_dict()
    for name, tensor in torch.load(Path(path) / "full").items():
        assert torch.equal(tensor, full[name])
    dist.barrier()
    same = torch.load(Path(path) / "after") if os.environ.get("RESUME") else None
    for step in range(5, 10):  # the same batches on all ranks, however many there are
        optimizer.zero_grad()
        (model(batch(step, 0, 1)) ** 2).mean().backward()
        optimizer.step()
    full = model.full_state_dict()
    if same is not None:
        close(full, same)
    dist.barrier()
    if same is None and rank == 0:
        torch.save(full, Path(path) / "after")


run_checks(dict(globals()))
