"""`SyncBatchNorm` in several processes gives the same results as one process with the batches of all processes."""

import copy

import pytest
from checking import run_checks

import adjoint as torch
import adjoint.distributed as dist
from adjoint import nn
from adjoint.nn.parallel import DistributedDataParallel

SHAPES = {
    "alike": lambda rank: (4, 3, 5),
    "uneven": lambda rank: (2 + 3 * rank, 3),
    "one empty": lambda rank: (3 * rank, 3, 2, 2),
}


def batches(shape, dtype=torch.float64):
    """Return the batches of all processes."""
    torch.manual_seed(0)
    return [
        (torch.randn(shape(rank), dtype=torch.float64) * (rank + 1) + 5 * rank).to(dtype)
        for rank in range(dist.get_world_size())
    ]


def kind_of(batch):
    return {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d}[batch.dim()]


def gathered(tensor):
    """Return the sum over all processes."""
    total = tensor.detach().clone()
    dist.all_reduce(total)
    return total


def check_values_gradients_and_statistics_are_those_of_the_whole_batch(rank, size):
    for name, shape in SHAPES.items():
        for momentum in (0.1, None):
            for options in ({}, {"affine": False}, {"track_running_stats": False}, {"bias": False}):
                everyone = batches(shape)
                whole_layer = kind_of(everyone[0])(3, momentum=momentum, dtype=torch.float64, **options)
                if whole_layer.weight is not None:
                    nn.init.uniform_(whole_layer.weight)
                layer = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(whole_layer))
                layer.to(torch.float64).load_state_dict(whole_layer.state_dict())
                for _ in range(2):
                    one_after_another(layer, whole_layer, everyone, (name, momentum, options))


def one_after_another(layer, whole_layer, everyone, about):
    own = everyone[dist.get_rank()].clone().requires_grad_()
    whole = torch.cat(everyone).requires_grad_()
    weights = torch.linspace(-1, 2, whole.numel(), dtype=torch.float64).reshape(whole.shape)
    sizes = [len(batch) for batch in everyone]
    result, expected = layer(own), whole_layer(whole)
    assert torch.allclose(result, expected.split(sizes)[dist.get_rank()]), about
    layer.zero_grad()
    whole_layer.zero_grad()
    (result.sin() * weights.split(sizes)[dist.get_rank()]).sum().backward()
    (expected.sin() * weights).sum().backward()
    assert torch.allclose(own.grad, whole.grad.split(sizes)[dist.get_rank()]), about
    for one, two in zip(layer.parameters(), whole_layer.parameters(), strict=True):
        assert torch.allclose(gathered(one.grad), two.grad), about
    for one, two in zip(layer.buffers(), whole_layer.buffers(), strict=True):
        assert torch.allclose(one, two), about


def check_second_derivatives(rank, size):
    everyone = batches(SHAPES["alike"])
    layer = nn.SyncBatchNorm(3, dtype=torch.float64)
    whole_layer = nn.BatchNorm1d(3, dtype=torch.float64)
    own = everyone[rank].clone().requires_grad_()
    whole = torch.cat(everyone).requires_grad_()
    second = []
    for one, x in ((layer, own), (whole_layer, whole)):
        (grad,) = torch.autograd.grad((one(x) ** 3).sum(), x, create_graph=True)
        second.append(torch.autograd.grad((grad**2).sum(), x)[0])
    assert torch.allclose(second[0], second[1].chunk(size)[rank])


def check_evaluation_and_groups_stay_with_their_processes(rank, size):
    everyone = batches(SHAPES["alike"])
    alone = [dist.new_group([each]) for each in range(size)][rank]
    layer, plain = nn.SyncBatchNorm(3, process_group=alone, dtype=torch.float64), nn.BatchNorm1d(3, dtype=torch.float64)
    assert torch.equal(layer(everyone[rank]), plain(everyone[rank]))
    layer = nn.SyncBatchNorm(3, dtype=torch.float64).eval()
    if rank == 0:  # no other process takes part
        assert torch.equal(layer(everyone[0]), nn.BatchNorm1d(3, dtype=torch.float64).eval()(everyone[0]))
    with pytest.raises(ValueError, match="expected at least 2D input"):
        layer.train()(torch.ones(3))


def check_half_types(rank, size):
    everyone = batches(SHAPES["alike"], torch.bfloat16)
    layer, whole_layer = nn.SyncBatchNorm(3), nn.BatchNorm1d(3)
    result = layer(everyone[rank])
    expected = whole_layer(torch.cat(everyone)).chunk(size)[rank]
    assert result.dtype is torch.bfloat16 and torch.allclose(result.float(), expected.float(), atol=2e-2)


def check_training_in_parallel_is_training_with_the_whole_batch(rank, size):
    torch.manual_seed(1)
    plain = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 2)).double()
    model = DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(plain)))
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.05) for each in (model, plain)]
    for _ in range(5):
        whole = torch.randn(4 * size, 1, 6, 6, dtype=torch.float64)
        for each, optimizer, batch in zip((model, plain), optimizers, (whole.chunk(size)[rank], whole), strict=True):
            optimizer.zero_grad()
            (each(batch) ** 2).mean().backward()
            optimizer.step()
    for one, two in zip(model.module.state_dict().values(), plain.state_dict().values(), strict=True):
        assert torch.allclose(one, two)


if __name__ == "__main__":
    run_checks(globals())
