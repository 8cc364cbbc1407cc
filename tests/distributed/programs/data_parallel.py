"""`DistributedDataParallel` compared with one process on the whole batch, and special cases."""

import contextlib
import copy
import json
import pickle
import tempfile
import warnings
from pathlib import Path

import pytest
from checking import run_checks

import adjoint as torch
import adjoint.distributed as dist
from adjoint import nn
from adjoint.distributed.algorithms import Join, ddp_comm_hooks
from adjoint.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from adjoint.nn.parallel import DistributedDataParallel

STEPS = 50


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.Flatten(), nn.Linear(64, 3))

    def forward(self, x):
        return self.layers(x)

    inputs = (1, 8, 8)


class Recurrent(nn.Module):
    inputs = (5, 4)

    def __init__(self):
        super().__init__()
        self.layer, self.out = nn.LSTM(4, 6, batch_first=True), nn.Linear(6, 3)

    def forward(self, x):
        return self.out(self.layer(x)[0][:, -1])


class Transformer(nn.Module):
    inputs = (5, 8)

    def __init__(self):
        super().__init__()
        self.layer, self.out = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), nn.Linear(8, 3)

    def forward(self, x):
        return self.out(self.layer(x).mean(1))


def same_on_all_ranks(model):
    for name, parameter in model.named_parameters():
        everyone = [torch.empty_like(parameter) for _ in range(dist.get_world_size())]
        dist.all_gather(everyone, parameter.detach())
        assert all((each._array.tobytes() == everyone[0]._array.tobytes()) for each in everyone), name


def trained(rank, size, kind, accumulate=1, **options):
    """Return a model that all ranks have trained together, and a model that each rank has trained alone with all batches."""
    torch.manual_seed(rank)
    model = DistributedDataParallel(kind().double(), bucket_cap_mb=0.001, **options)
    alone = copy.deepcopy(model.module)
    generator = torch.Generator()
    generator.manual_seed(0)
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.05, momentum=0.9) for each in (model, alone)]
    loss = nn.CrossEntropyLoss()
    for _ in range(STEPS):
        for optimizer in optimizers:
            optimizer.zero_grad()
        for part in range(accumulate):
            x = torch.randn(4 * size, *kind.inputs, generator=generator, dtype=torch.float64)
            y = torch.randint(0, 3, (4 * size,), generator=generator)
            own = slice(4 * rank, 4 * rank + 4)
            if part < accumulate - 1:
                with model.no_sync():
                    loss(model(x[own]), y[own]).backward()
            else:
                loss(model(x[own]), y[own]).backward()
            loss(alone(x), y).backward()
        for optimizer in optimizers:
            optimizer.step()
    same_on_all_ranks(model)
    return model.module, alone


def check_training_is_that_of_one_process(rank, size):
    for kind in (Convolutions, Recurrent, Transformer):
        model, alone = trained(rank, size, kind)
        for mine, whole in zip(model.parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(mine, whole, rtol=1e-8, atol=1e-10)


def check_options(rank, size):
    for options in (
        {"gradient_as_bucket_view": True},
        {"static_graph": True},
        {"find_unused_parameters": True},
        {"accumulate": 3},
        {"accumulate": 2, "gradient_as_bucket_view": True},
    ):
        model, alone = trained(rank, size, Convolutions, **options)
        for mine, whole in zip(model.parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(mine, whole, rtol=1e-8, atol=1e-10)


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x, both=False):
        return self.b(self.a(x)) if both else self.a(x)


def check_unused_parameters(rank, size):
    model = DistributedDataParallel(Two())
    model(torch.ones(1, 2)).sum().backward()
    with pytest.raises(RuntimeError, match=r"did not receive grad for rank \d: 2 3\n.*b\.weight, b\.bias"):
        model(torch.ones(1, 2))
    for options in ({"find_unused_parameters": True}, {"static_graph": True}):
        model = DistributedDataParallel(Two(), **options)
        for _ in range(3):
            model(torch.ones(1, 2)).sum().backward()
        assert model.module.b.weight.grad is None
        assert model.module.a.weight.grad.tolist() == [[3.0, 3.0]] * 2
    model = DistributedDataParallel(Two(), find_unused_parameters=True)
    for _ in range(2):
        model.zero_grad()
        model(torch.ones(1, 2), both=rank == 0).sum().backward()
    mean = model.module.b.bias.grad
    assert mean.tolist() == [1 / size] * 2  # only one rank has used the parameter


class Outputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared, self.a, self.b, self.never = (nn.Linear(2, 2) for _ in range(4))

    def forward(self, x):
        x = self.shared(x)
        return {"a": self.a(x), "others": (self.b(x), x.detach())}


def check_outputs_that_the_loss_does_not_use(rank, size):
    model = DistributedDataParallel(Outputs(), find_unused_parameters=True)
    for _ in range(3):
        model(torch.ones(1, 2))["a"].sum().backward()
    assert {name for name, each in model.module.named_parameters() if each.grad is None} == {
        "b.weight", "b.bias", "never.weight", "never.bias"
    }  # fmt: skip
    assert model.module.a.bias.grad.tolist() == [3.0, 3.0]
    model.zero_grad()
    out = model(torch.ones(1, 2))
    (out["a"] if rank else out["others"][0]).sum().backward()  # ranks use different outputs
    assert model.module.b.bias.grad.tolist() == [1 / size] * 2
    assert model.module.a.bias.grad.tolist() == [(size - 1) / size] * 2
    same_gradients(model)


def same_gradients(model):
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            everyone = [torch.empty_like(parameter) for _ in range(dist.get_world_size())]
            dist.all_gather(everyone, parameter.grad)
            assert all(torch.equal(each, everyone[0]) for each in everyone), name


def check_second_backward_and_shared_parameters(rank, size):
    model = DistributedDataParallel(nn.Linear(1, 1, bias=False))
    y = model(torch.ones(1, 1) * (rank + 1)).sum()
    y.backward(retain_graph=True)
    mean = (size + 1) / 2
    assert model.module.weight.grad.item() == mean
    y.backward()
    assert model.module.weight.grad.item() == mean + rank + 1
    layer = nn.Linear(2, 2)
    model = DistributedDataParallel(nn.Sequential(layer, layer))
    model(torch.ones(1, 2) * rank).sum().backward()
    same_on_all_ranks(model)
    embedding = DistributedDataParallel(nn.Embedding(5, 2))
    embedding(torch.tensor([rank])).sum().backward()
    assert embedding.module.weight.grad[:size].tolist() == [[1 / size] * 2] * size


class Bag(nn.Module):
    def __init__(self, sparse):
        super().__init__()
        self.words, self.out = nn.Embedding(9, 3, sparse=sparse), nn.Linear(6, 2)

    def forward(self, x, only_out=False):
        words = torch.ones(len(x), 2, 3, dtype=torch.float64) if only_out else self.words(x)
        return self.out(words.flatten(1))


def check_sparse_gradients(rank, size):
    for options in ({}, {"gradient_as_bucket_view": True}, {"find_unused_parameters": True}, {"static_graph": True}):
        torch.manual_seed(3)
        dense = Bag(False).double()
        sparse = copy.deepcopy(dense)
        sparse.words.sparse = True
        models = [DistributedDataParallel(each, **options) for each in (dense, sparse)]
        for step in range(4):
            x = torch.tensor([[rank, step], [rank + step, 8]])
            for model in models:
                with contextlib.nullcontext() if step != 2 else model.no_sync():
                    model(x, only_out="find_unused_parameters" in options and rank == 0).pow(2).mean().backward()
                if step != 2:
                    assert model.module.words.weight.grad.is_sparse == (model is models[1])
                    torch.optim.SGD(model.parameters(), lr=0.1).step()
                    model.zero_grad()
        for mine, whole in zip(sparse.parameters(), dense.parameters(), strict=True):
            torch.testing.assert_close(mine, whole)
        same_on_all_ranks(models[1])


def check_sparse_gradients_of_a_hook_and_where_none_are_expected(rank, size):
    model = DistributedDataParallel(nn.Embedding(9, 3, sparse=True))
    model.register_comm_hook(None, default_hooks.allreduce_hook)
    model(torch.tensor([rank, 8])).sum().backward()
    expected = [1 / size] * size + [0.0] * (8 - size) + [1.0]
    assert model.module.weight.grad.to_dense()[:, 0].tolist() == expected
    model = DistributedDataParallel(nn.Embedding(9, 3))
    model.module.sparse = True
    with pytest.raises(RuntimeError, match="Expected variable to have dense gradient: parameter 'weight'"):
        model(torch.tensor([rank, 8])).sum().backward()


def check_different_models(rank, size):
    with pytest.raises(RuntimeError, match=r"params\[0\] in this process with sizes \[3, 2\].*'weight' is \[3, 2\]"):
        DistributedDataParallel(nn.Linear(2, 2 + min(rank, 1)))
    with pytest.raises(
        RuntimeError, match=r"Rank 0 has 2 params, while rank 1 has inconsistent 4 params: 1\.bias, 1\.weight"
    ):
        DistributedDataParallel(nn.Sequential(*(nn.Linear(2, 2) for _ in range(1 + min(rank, 1)))))
    with pytest.raises(RuntimeError, match="doesn't have any parameter that requires a gradient"):
        DistributedDataParallel(nn.ReLU())


def check_buffers(rank, size):
    torch.manual_seed(rank)
    model = DistributedDataParallel(nn.BatchNorm1d(2))
    for _ in range(3):
        model(torch.randn(4, 2))
    model.eval()
    model(torch.ones(4, 2))
    everyone = [torch.empty(2) for _ in range(size)]
    dist.all_gather(everyone, model.module.running_mean)
    assert all(torch.equal(each, everyone[0]) for each in everyone)


def check_copies(rank, size):
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(3, 2))
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        x = torch.ones(4, 3) * (rank + 1)
        model.zero_grad()
        for each in (model, other):
            each(x).square().sum().backward()
        assert other.module.weight is not model.module.weight
        assert torch.equal(other.module.weight.grad, model.module.weight.grad)
    group = dist.new_group(range(size))
    with pytest.raises(RuntimeError, match="only supported when using DDP with the default process group"):
        copy.deepcopy(DistributedDataParallel(nn.Linear(2, 2), process_group=group))


def check_hooks(rank, size):
    def averaged(hook=None, state=None, steps=3):
        torch.manual_seed(0)
        model = DistributedDataParallel(nn.Sequential(nn.Linear(30, 20), nn.Linear(20, 3)), bucket_cap_mb=0.001)
        if hook is not None:
            model.register_comm_hook(state, hook)
        for step in range(steps):
            model.zero_grad()
            torch.manual_seed(size * step + rank)
            model(torch.randn(8, 30)).square().sum().backward()
        same_on_all_ranks(model)
        return torch.cat([parameter.grad.reshape(-1) for parameter in model.parameters()])

    plain = averaged()
    scale = plain.abs().max()
    assert torch.allclose(averaged(default_hooks.allreduce_hook), plain, rtol=1e-5, atol=1e-5 * scale)
    assert torch.allclose(averaged(default_hooks.fp16_compress_hook), plain, atol=2e-3 * scale)
    assert torch.allclose(averaged(default_hooks.bf16_compress_hook), plain, atol=2e-2 * scale)
    wrapped = default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook)
    assert torch.allclose(averaged(wrapped), plain, atol=2e-3 * scale)
    for hook in (powerSGD_hook.powerSGD_hook, powerSGD_hook.batched_powerSGD_hook):
        state = powerSGD_hook.PowerSGDState(None, 30, start_powerSGD_iter=2, min_compression_rate=0)
        exact = averaged(hook, state, 4) - averaged(steps=4)
        assert exact.abs().max() < 1e-3 * scale  # matrices with few columns and full rank have exact results
        state = powerSGD_hook.PowerSGDState(None, 1, start_powerSGD_iter=2, min_compression_rate=1)
        averaged(hook, state, 5)
        assert state.error_dict
        state = powerSGD_hook.PowerSGDState(None, 30, start_powerSGD_iter=2, min_compression_rate=0)
        compressed = averaged(default_hooks.fp16_compress_wrapper(hook), state, 4)
        assert torch.allclose(compressed, averaged(steps=4), atol=5e-3 * scale)
        everyone = [torch.empty_like(compressed) for _ in range(size)]
        dist.all_gather(everyone, compressed)
        assert all(torch.equal(each, compressed) for each in everyone)
    model = DistributedDataParallel(nn.Linear(2, 2))
    ddp_comm_hooks.register_ddp_comm_hook(ddp_comm_hooks.DDPCommHookType.BF16_COMPRESS, model)
    with pytest.raises(RuntimeError, match="can only be called once"):
        model.register_comm_hook(None, default_hooks.allreduce_hook)


def check_join(rank, size):
    def after(steps, **options):
        model = DistributedDataParallel(nn.Linear(1, 1, bias=False))
        with model.join(**options):
            for _ in range(steps):
                model.zero_grad()
                model(torch.ones(1, 1) * (rank + 1)).sum().backward()
        return model.module.weight.grad.item()

    active = [each for each in range(size) if each >= rank]  # rank r has r + 1 batches, so higher ranks run longer
    assert after(rank + 1) == pytest.approx(sum(each + 1 for each in active) / size)
    assert after(rank + 1, divide_by_initial_world_size=False) == pytest.approx(
        sum(each + 1 for each in active) / len(active)
    )
    with pytest.raises(RuntimeError, match="exhausted"):
        after(2 + rank, throw_on_early_termination=True)
    torch.manual_seed(rank)
    model = DistributedDataParallel(nn.BatchNorm1d(3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Join([model]):
        for _ in range(3 + rank):
            optimizer.zero_grad()
            model(torch.randn(4, 3)).square().sum().backward()
            optimizer.step()
    same_on_all_ranks(model)


def check_checkpoint(rank, size):
    from adjoint.utils.checkpoint import checkpoint

    class Rematerialized(Two):
        def forward(self, x):
            return checkpoint(self.b, checkpoint(self.a, x, use_reentrant=True), use_reentrant=True)

    for options in ({}, {"static_graph": True}):
        model = DistributedDataParallel(Rematerialized(), **options)
        for _ in range(2):
            model.zero_grad()
            model(torch.ones(1, 2, requires_grad=True) * (rank + 1)).sum().backward()
        grads = [torch.empty(2, 2) for _ in range(size)]
        dist.all_gather(grads, model.module.a.weight.grad)
        assert all(torch.equal(each, grads[0]) for each in grads)


def check_communication_is_seen(rank, size):
    model = DistributedDataParallel(nn.Sequential(nn.Linear(300, 400), nn.ReLU(), nn.Linear(400, 3)), bucket_cap_mb=0.2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    nbytes = sum(parameter.nbytes for parameter in model.parameters())
    for _ in range(2):
        with torch.inspect.communication(model, optimizer) as seen:
            model(torch.ones(2, 300)).sum().backward()
        optimizer.step()
    reduced = [call for call in seen.calls if call["for"]]
    assert {call["for"] for call in reduced} == {f"bucket {row['bucket']}" for row in seen.parameters}
    assert sum(call["bytes"] for call in reduced) == nbytes
    assert all(0 <= call["waited"] <= call["took"] and 0 <= call["hidden"] <= 1 for call in seen.calls)
    assert all(row["came"] is not None and row["gradient"] == row["bytes"] for row in seen.parameters)
    mine = str(seen.calls)
    seen.gather()
    assert str(seen.calls) == mine
    assert [each.number for each in seen.gathered] == list(range(size))
    assert {row["rank"] for row in seen.ranks} == set(range(size))
    assert seen.ranks[0]["state"] == seen.ranks[0]["parameters"] == nbytes
    drawn = seen.svg(title="a < b")
    assert drawn.count("all_reduce_coalesced bucket 0: ") == size
    assert f">rank {size - 1}</text>" in drawn and "a &lt; b" in drawn
    with torch.inspect.communication() as nothing:
        dist.barrier()
    with pytest.raises(ValueError, match="there is no picture"):
        nothing.svg()


def check_profiles_show_collectives(rank, size):
    tensor = torch.ones(1000)
    with torch.profiler.profile() as profile:
        work = dist.all_reduce(tensor, async_op=True)
        (torch.ones(300, 300) @ torch.ones(300, 300)).sum()
        work.wait()
        dist.all_gather_object([None] * size, {"rank": rank})
        dist.reduce_scatter_tensor(torch.empty(3), torch.ones(3 * size))
    called = [event for event in profile.events() if event.communication is not None]
    assert [event.name for event in called] == ["mpi:all_reduce", "mpi:all_gather_object", "mpi:reduce_scatter_tensor"]
    first = called[0].communication
    assert (first.name, first.nbytes, first.ranks, first.complete) == ("all_reduce", 4000, list(range(size)), True)
    assert called[2].communication.nbytes == 12 * size
    assert called[0].self_cpu_time_total == 0
    assert all(event.communication_wait <= event.cpu_time_total for event in called)
    table = profile.key_averages().table()
    assert all(title in table for title in ("Comm bytes", "Comm wait", "Overlap"))
    with tempfile.TemporaryDirectory() as folder:
        profile.export_chrome_trace(f"{folder}/trace.json")
        events = json.loads(Path(folder, "trace.json").read_text())["traceEvents"]
    shown = next(event for event in events if event["name"] == "mpi:all_reduce")
    assert (shown["tid"], shown["args"]["Bytes"]) == ("communication, group 0", 4000)


if __name__ == "__main__":
    warnings.simplefilter("error")
    run_checks(globals())
