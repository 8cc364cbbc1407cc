"""Sharded optimizers, parameters and checkpoints, compared with `DistributedDataParallel`."""

import contextlib
import copy
import gc
import itertools
import os
import tempfile
import weakref
from pathlib import Path

import pytest
from checking import run_checks

import adjoint as torch
import adjoint.distributed as dist
from adjoint import nn
from adjoint.distributed import checkpoint, init_device_mesh
from adjoint.distributed.algorithms import Join
from adjoint.distributed.checkpoint.state_dict import StateDictOptions
from adjoint.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard, register_fsdp_forward_method
from adjoint.distributed.optim import ZeroRedundancyOptimizer
from adjoint.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from adjoint.nn.parallel import DistributedDataParallel

STEPS = 10


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


WHOLE = StateDictOptions(full_state_dict=True)


def whole(model):
    return checkpoint.get_model_state_dict(model, options=WHOLE)


def check_zero_redundancy_with_uneven_inputs(rank, size):
    def trained(as_views):
        model = DistributedDataParallel(net(), gradient_as_bucket_view=as_views)
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=1e-2)
        with Join([model, optimizer]):
            train(model, optimizer, rank, size, range(2 + 2 * rank))
        return torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])

    own = trained(False)
    for value in (own, trained(True)):
        everyone = [torch.empty_like(value) for _ in range(size)]
        dist.all_gather(everyone, value)
        for each in everyone:
            torch.testing.assert_close(each, own, rtol=1e-9, atol=1e-11)


def check_fully_shard(rank, size):
    mesh = init_device_mesh("cpu", (size // 2, 2))
    for options, (kind, settings) in (
        ({}, OPTIMIZERS[0]),
        ({"reshard_after_forward": False}, OPTIMIZERS[1]),
        ({"mesh": mesh}, OPTIMIZERS[0]),
    ):
        reference = DistributedDataParallel(net(Untied))
        model = sharded(Untied, **options)
        assert isinstance(model, FSDPModule) and isinstance(model, Net)
        parts = sum(parameter.to_local().numel() for parameter in model.parameters())
        everything = sum(parameter.numel() for parameter in reference.parameters())
        assert sum(parameter.numel() for parameter in model.parameters()) == everything
        assert parts <= everything / (2 if options.get("mesh") else size) + 60
        one, many = kind(reference.parameters(), **settings), kind(model.parameters(), **settings)
        for step in range(STEPS):
            for trained, optimizer in ((reference, one), (model, many)):
                optimizer.zero_grad()
                (trained(batch(step, rank, size)) ** 2).mean().backward()
                norm = nn.utils.clip_grad_norm_(trained.parameters(), 0.1)
                optimizer.step()
                if trained is reference:
                    expected = norm
            torch.testing.assert_close(norm.full_tensor(), expected)
        close(whole(model), reference.module.state_dict())
        assert all(
            isinstance(state, DTensor) and state.to_local().shape == parameter.to_local().shape
            for parameter, held in many.state.items()
            for name, state in held.items()
            if name != "step" and state is not None
        )


def check_shared_parameters(rank, size):
    reference, model = DistributedDataParallel(net()), fully_shard(net())
    one, many = (torch.optim.SGD(each.parameters(), lr=0.1) for each in (reference, model))
    train(reference, one, rank, size)
    train(model, many, rank, size)
    close(whole(model), reference.module.state_dict())
    assert model.tied.weight is model.layers[0][0].weight


def check_states(rank, size):
    model, other = sharded(Untied), sharded(Untied)
    optimizer, another = (torch.optim.Adam(each.parameters(), lr=0.1) for each in (model, other))
    train(model, optimizer, rank, size, range(3))
    full = whole(model)
    state = checkpoint.get_optimizer_state_dict(model, optimizer, options=WHOLE)
    assert state["state"]["first.weight"]["exp_avg"].shape == (7, 5)
    one_has = StateDictOptions(full_state_dict=True, cpu_offload=True)
    assert list(checkpoint.get_model_state_dict(model, options=one_has)) == (list(full) if rank == 0 else [])
    from_one = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    checkpoint.state_dict.set_model_state_dict(other, full if rank == 0 else {}, options=from_one)
    checkpoint.state_dict.set_optimizer_state_dict(other, another, state if rank == 0 else {}, options=from_one)
    close(whole(other), full)
    for trained, its in ((model, optimizer), (other, another)):
        train(trained, its, rank, size, range(3, 5))
    close(whole(other), whole(model))
    flat = StateDictOptions(flatten_optimizer_state_dict=True)
    names = checkpoint.get_optimizer_state_dict(model, optimizer, options=flat)
    assert {"state.first.weight.exp_avg", "param_groups.first.weight.lr"} <= set(names)
    checkpoint.state_dict.set_optimizer_state_dict(other, another, names, options=flat)
    assert another.param_groups[0]["lr"] == 0.1
    alone = net(Untied)
    alone.load_state_dict(whole(model))
    x = batch(0, 0, 1)
    torch.testing.assert_close(model(x), alone(x))
    parts = model.state_dict()
    assert all(isinstance(each, DTensor) for each in parts.values())
    other.load_state_dict(parts)
    close(whole(other), whole(model))
    wrapped = DistributedDataParallel(alone)
    assert list(checkpoint.get_model_state_dict(wrapped)) == list(alone.state_dict())
    with pytest.raises(RuntimeError, match="Missing key"):
        checkpoint.state_dict.set_model_state_dict(model, {})


def check_parameters_are_gathered_for_the_call_alone(rank, size):
    model = sharded(Untied)
    y = model(batch(0, rank, size)).sum()
    rows = min(7, (rank + 1) * -(-7 // size)) - rank * -(-7 // size)
    assert model.first.weight.to_local().shape == (rows, 5) and model.first.weight.shape == (7, 5)
    y.backward()
    assert model.first.weight.grad.to_local().shape == (rows, 5)
    with pytest.raises(RuntimeError):
        model(torch.ones(2, 3, dtype=torch.float64))
    assert isinstance(model.first.weight, DTensor)
    model.unshard()
    assert type(model.first.weight) is nn.Parameter and isinstance(model.layers[0][0].weight, DTensor)
    model.reshard()
    handle = model.layers[0].unshard(async_op=True)
    handle.wait()
    assert type(model.layers[0][0].weight) is nn.Parameter
    model.layers[0].reshard()
    with pytest.raises(AssertionError, match="can only be applied to a module once"):
        fully_shard(model)
    with pytest.raises(ValueError, match="containers that do not implement forward"):
        fully_shard(nn.ModuleList([nn.Linear(2, 2)]))
    with pytest.raises(AssertionError, match="does not support deepcopy"):
        copy.deepcopy(model)


def gatherings(seen):
    return [call for call in seen.calls if call["call"] == "all_gather_into_tensor_coalesced"]


def check_what_is_gathered_when(rank, size):
    layers = [nn.Linear(40, 40) for _ in range(3)]
    for layer in layers:
        fully_shard(layer)
    model = fully_shard(nn.Sequential(*layers))
    for _ in range(2):
        with torch.inspect.communication(model) as seen:
            y = model(torch.ones(3, 40)).sum()
        assert len(gatherings(seen)) == 3
        with torch.inspect.communication(model) as seen:
            y.backward()
        assert len(gatherings(seen)) == 3  # first the last layer; then, during backward of a layer, the previous layer
        assert sum(call["call"] == "reduce_scatter_tensor_coalesced" for call in seen.calls) == 3
    layers[0].set_modules_to_forward_prefetch([layers[1], layers[2]])
    with torch.inspect.communication(model) as seen:
        layers[0](torch.ones(3, 40))
    assert len(gatherings(seen)) == 3
    model(torch.ones(3, 40)).sum().backward()
    model.set_reshard_after_forward(False)
    with torch.inspect.communication(model) as seen:
        model(torch.ones(3, 40)).sum().backward()
    assert len(gatherings(seen)) == 3


def check_gradients_are_reduced_when_they_are_to_be(rank, size):
    reference, model = DistributedDataParallel(net(Untied)), sharded(Untied)
    for synchronizes in (False, True):
        model.set_requires_gradient_sync(synchronizes)
        with contextlib.nullcontext() if synchronizes else reference.no_sync():
            (reference(batch(int(synchronizes), rank, size)) ** 2).mean().backward()
        (model(batch(int(synchronizes), rank, size)) ** 2).mean().backward()
        assert (model.first.weight.grad is None) is not synchronizes
    torch.testing.assert_close(model.first.weight.grad.full_tensor(), reference.module.first.weight.grad)
    stepped = []
    part = fully_shard(nn.Linear(3, 2))
    part.weight.register_post_accumulate_grad_hook(lambda parameter: stepped.append(parameter.grad.shape))
    part.set_gradient_divide_factor(2.0)
    part(torch.ones(4, 3)).sum().backward()
    assert torch.equal(part.bias.grad.full_tensor(), torch.full((2,), 4.0 * size / 2))
    assert stepped == [(2, 3)]


def check_mixed_precision(rank, size):
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32, output_dtype=torch.float64)
    seen = []
    model = nn.Linear(3, 5)
    model.register_forward_pre_hook(lambda module, given: seen.append((module.weight.dtype, given[0].dtype)))
    fully_shard(model, mp_policy=policy)
    model.register_forward_pre_hook(lambda module, given: seen.append((module.weight.dtype, given[0].dtype)))
    y = model(torch.ones(2, 3))
    assert seen[-1] == (torch.bfloat16, torch.bfloat16) and y.dtype == torch.float64
    y.sum().backward()
    assert model.weight.dtype == model.weight.grad.dtype == torch.float32
    assert torch.equal(model.weight.grad.full_tensor(), torch.full((5, 3), 2.0))


def check_other_methods_and_ignored_parameters(rank, size):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.kept = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(2))

        def score(self, x):
            return (self.weight * x).sum()

    model = Model()
    fully_shard(model, ignored_params={model.kept})
    register_fsdp_forward_method(model, "score")
    model.score(torch.arange(3.0)).backward()
    assert torch.equal(model.weight.grad.full_tensor(), torch.arange(3.0))
    assert type(model.kept) is nn.Parameter
    scalar = nn.Module()
    scalar.a = nn.Parameter(torch.tensor(1.0))
    with pytest.raises(ValueError, match="doesn't support scalar parameters"):
        fully_shard(scalar)


def check_tensors_in_parts(rank, size):
    mesh = init_device_mesh("cpu", (size,))
    whole = torch.arange(30.0).reshape(5, 6)
    for dim in (0, 1, -1):
        made = distribute_tensor(whole, mesh, [Shard(dim)])
        expected = whole.chunk(size, dim)
        if rank < len(expected):
            assert torch.equal(made.to_local(), expected[rank])
        assert made.shape == (5, 6) and made.numel() == 30 and len(made) == 5 and made.stride() == (6, 1)
        assert torch.equal(made.full_tensor(), whole)
        assert torch.equal(made.redistribute(placements=[Shard(0)]).full_tensor(), whole)
        assert made.redistribute(placements=[Replicate()]).to_local().shape == (5, 6)
        for function in (
            lambda x: x * 2 + x, lambda x: x.sum(), lambda x: x.max(), lambda x: x.norm(), lambda x: x.mean(), lambda x: x @ x.T,
            lambda x: torch.linalg.vector_norm(x, float("inf")), lambda x: x.sum(0), lambda x: x[1], lambda x: x.softmax(0),
            lambda x: x.float().clone().mul_(3), lambda x: torch.zeros_like(x),
        ):  # fmt: skip
            result = function(made)
            assert isinstance(result, DTensor)
            torch.testing.assert_close(result.full_tensor(), function(whole))
        for function in (
            torch.atan, torch.erfc, torch.special.i0e, torch.nn.functional.hardtanh, torch.nn.functional.relu,
            lambda x: x.atan2(x + 1), lambda x: torch.hypot(x, x), lambda x: x.clone().cosh_(), lambda x: x.clamp(2, 9) > 3,
            lambda x: x.isneginf(),
        ):  # fmt: skip
            result = function(made)
            assert result.placements == made.placements
            torch.testing.assert_close(result.full_tensor(), function(whole))
        assert torch.dist(made, made * 3).full_tensor() == torch.dist(whole, whole * 3)
    leaf = distribute_tensor(torch.nn.Parameter(whole.clone()), mesh, [Shard(0)])
    assert isinstance(leaf, torch.nn.Parameter) and leaf.requires_grad
    ((leaf * 3).sum() + leaf.full_tensor().pow(2).sum()).backward()
    assert isinstance(leaf.grad, DTensor)
    torch.testing.assert_close(leaf.grad.full_tensor(), 3 + 2 * whole)
    with pytest.raises(RuntimeError, match="got mixed"):
        leaf + torch.ones(5, 6)
    torch.nn.init.constant_(leaf, 4.0)
    assert torch.equal(leaf.full_tensor(), torch.full((5, 6), 4.0))
    torch.manual_seed(3)
    random = torch.nn.init.normal_(leaf).full_tensor()
    torch.manual_seed(3)
    assert torch.equal(random, torch.nn.init.normal_(torch.empty(5, 6)))
    total = DTensor.from_local(torch.ones(2) * (rank + 1), mesh, [Partial()])
    assert torch.equal(total.full_tensor(), torch.full((2,), size * (size + 1) / 2))
    grid = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("a", "b"))
    assert grid["b"].size() == size // 2 and grid["a"].get_local_rank() == grid.get_coordinate()[0] == rank // (
        size // 2
    )
    assert dist.get_process_group_ranks(grid.get_group("b")) == grid["b"].mesh.tolist()
    assert DistributedDataParallel(nn.Linear(2, 2), device_mesh=grid["a"]).process_group is grid.get_group("a")
    with pytest.raises(RuntimeError, match="Only 1D device mesh"):
        DistributedDataParallel(nn.Linear(2, 2), device_mesh=grid)
    both = distribute_tensor(whole, grid, [Shard(0), Shard(1)])
    assert torch.equal(both.full_tensor(), whole)
    with pytest.raises(KeyError, match="Invalid mesh_dim_name"):
        grid["c"]


def check_fully_shard_of_lists(rank, size):
    torch.manual_seed(0)
    reference = torch.nn.Sequential(*[torch.nn.Linear(6, 6, dtype=torch.double) for _ in range(4)])
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[torch.nn.Linear(6, 6, dtype=torch.double) for _ in range(4)])
    assert fully_shard([model[0], model[1]])[1] is model[1]
    fully_shard([model[2], model[3]])
    fully_shard(model)
    for step in range(3):
        for each, number, count in ((reference, 0, 1), (model, rank, size)):
            optimizer = torch.optim.SGD(each.parameters(), 0.1)
            torch.manual_seed(step)
            x = torch.randn(4 * size, 6, dtype=torch.double)[4 * size // count * number :][: 4 * size // count]
            optimizer.zero_grad()
            (each(x) ** 2).mean().backward()
            optimizer.step()
    close(whole(model), reference.state_dict())
    with pytest.raises(AssertionError, match="only be applied to a module once"):
        fully_shard([model[0]])


def check_no_cycle_keeps_a_sharded_module(rank, size):
    def used():
        model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
        for each in (*model, model):
            fully_shard(each)
        model[0].set_modules_to_backward_prefetch([model[1]])
        model[1].set_modules_to_forward_prefetch([model[0]])
        model(torch.ones(2, 3)).sum().backward()
        return model

    used()  # the first call creates the classes of sharded modules
    gc.collect()
    gc.disable()
    try:
        model = used()
        watched = [weakref.ref(each) for each in (*model.modules(), *model.parameters())]
        del model
        assert not any(each() is not None for each in watched)
    finally:
        gc.enable()


def check_products_of_dtensors(rank, size):
    mesh = init_device_mesh("cpu", (2, 2) if size == 4 else (size,))
    torch.manual_seed(0)
    values = [torch.randn(*shape, dtype=torch.double) for shape in ((3, 5, 6), (7, 6), (7,), (3, 5, 7))]
    expected = [value.clone().requires_grad_() for value in values[:3]]
    result = nn.functional.linear(*expected)
    (result * values[3]).sum().backward()

    def placed(dims):
        return itertools.product((Replicate(), *map(Shard, range(dims))), repeat=mesh.ndim)

    chosen = itertools.product(placed(3), placed(2), placed(1))
    for placements in itertools.islice(chosen, 0, None, 1 if size == 2 else 29):
        given = [
            distribute_tensor(value, mesh, where).requires_grad_()
            for value, where in zip(values, placements, strict=False)
        ]
        found = nn.functional.linear(*given)
        torch.testing.assert_close(found.full_tensor(), result)
        (found.full_tensor() * values[3]).sum().backward()
        for tensor, other in zip(given, expected, strict=True):
            torch.testing.assert_close(tensor.grad.full_tensor(), other.grad)
    line = init_device_mesh("cpu", (size,))
    x, w = (distribute_tensor(values[which], line, [Shard(1)]) for which in (1, 1))
    assert (x @ w.t()).placements == (Partial(),)
    assert (distribute_tensor(values[1], line, [Replicate()]) @ w.t()).full_tensor().shape == (7, 7)
    assert w.t().placements == (Shard(0),)
    torch.testing.assert_close((x @ w.t()).full_tensor(), values[1] @ values[1].t())


def check_async_save(rank, size):
    folder = [tempfile.mkdtemp() if rank == 0 else ""]
    dist.broadcast_object_list(folder, 0)
    state = {"w": [torch.full((100_000,), float(i)) for i in range(8)], "steps": [1, 2]}
    saving = checkpoint.async_save(state, checkpoint_id=folder[0])
    for each in state["w"]:
        each.fill_(-1.0)
    state["steps"].append(3)
    dist.all_reduce(torch.ones(1000))  # while the checkpoint is saved
    again = checkpoint.async_save(state, checkpoint_id=folder[0] + "/again")
    assert saving.done()
    read = {"w": [torch.zeros(100_000) for _ in range(8)], "steps": []}
    checkpoint.load(read, checkpoint_id=folder[0])
    assert again.done()
    assert [each.unique().tolist() for each in read["w"]] == [[float(i)] for i in range(8)]
    assert read["steps"] == [1, 2]
    last = size - 1
    failing = checkpoint.async_save(state, checkpoint_id="/proc/none" if rank == last else folder[0])
    with pytest.raises(checkpoint.CheckpointException, match=f"(?s)rank {last}: .*/proc/none") as raised:
        failing.result()
    assert list(raised.value.failures) == [last]
    checkpoint.load(read, checkpoint_id=folder[0])  # delete the earlier files
    assert read["steps"] == [1, 2]


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
        full = whole(model)
        if rank == 0:
            torch.save(full, Path(path) / "full")
        model, optimizer = sharded(Untied), None
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    states = checkpoint.get_state_dict(model, optimizer)
    loaded = {"model": states[0], "optimizer": states[1], "epoch": 0}
    checkpoint.load(loaded, checkpoint_id=path)
    checkpoint.set_state_dict(model, optimizer, model_state_dict=states[0], optim_state_dict=states[1])
    assert loaded["epoch"] == 5
    full = whole(model)
    for name, tensor in torch.load(Path(path) / "full").items():
        assert torch.equal(tensor, full[name])
    dist.barrier()
    same = torch.load(Path(path) / "after") if os.environ.get("RESUME") else None
    for step in range(5, 10):  # all ranks use the same batches, for any number of ranks
        optimizer.zero_grad()
        (model(batch(step, 0, 1)) ** 2).mean().backward()
        optimizer.step()
    full = whole(model)
    if same is not None:
        close(full, same)
    dist.barrier()
    if same is None and rank == 0:
        torch.save(full, Path(path) / "after")


run_checks(dict(globals()))
