"""The results of every collective agree with NumPy, for all dtypes, layouts and subgroups."""

import time

import numpy
import pytest
from checking import run_checks

import adjoint as torch
import adjoint.distributed as dist
from adjoint.distributed import ReduceOp

DTYPES = (
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64, torch.float16,
    torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128, torch.bool,
)  # fmt: skip
SHAPES = ((3,), (), (0,), (2, 3), (700_001,))


def value_of(rank, shape, dtype, seed=0):
    """Return the values of a rank: small integers, so that sums are exact in every dtype."""
    values = numpy.random.RandomState(100 * seed + rank).randint(0, 3, shape)
    return numpy.asarray(values).astype(dtype.numpy)


def tensor_of(rank, shape, dtype, seed=0):
    return torch.tensor(0, dtype=dtype) + torch.from_numpy(value_of(rank, shape, torch.int64, seed)).to(dtype)


def array_of(tensor):
    return tensor._array.astype(numpy.complex128 if tensor.is_complex() else numpy.float64)


UFUNCS = {
    ReduceOp.SUM: numpy.add, ReduceOp.PRODUCT: numpy.multiply, ReduceOp.MIN: numpy.minimum, ReduceOp.MAX: numpy.maximum,
    ReduceOp.BAND: numpy.bitwise_and, ReduceOp.BOR: numpy.bitwise_or, ReduceOp.BXOR: numpy.bitwise_xor,
}  # fmt: skip


def reduced(op, arrays):
    """Return NumPy's result in the dtype of the arrays."""
    held = arrays[0].dtype
    if op is ReduceOp.AVG:
        return sum(array.astype(numpy.complex128) for array in arrays) / len(arrays)
    if held.kind == "b":
        logical = {ReduceOp.SUM: ReduceOp.BOR, ReduceOp.PRODUCT: ReduceOp.BAND}
        return UFUNCS[logical.get(op, op)].reduce(arrays)
    return UFUNCS[op].reduce(arrays, dtype=held)


def is_supported(op, dtype):
    bits = op in (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)
    if dtype.is_complex:
        return op in (ReduceOp.SUM, ReduceOp.AVG)
    return not bits if dtype.is_floating_point else op is not ReduceOp.AVG


def check_all_reduce(rank, size):
    for dtype in DTYPES:
        for op in ReduceOp:
            if not is_supported(op, dtype):
                with pytest.raises((RuntimeError, ValueError)):
                    dist.all_reduce(torch.ones(2, dtype=dtype), op)
                continue
            for shape in SHAPES if dtype in (torch.float32, torch.bfloat16, torch.bool) else SHAPES[:-1]:
                tensor = tensor_of(rank, shape, dtype)
                assert dist.all_reduce(tensor, op) is None
                expected = reduced(op, [value_of(each, shape, dtype) for each in range(size)])
                numpy.testing.assert_allclose(
                    array_of(tensor), expected.astype(array_of(tensor).dtype), rtol=1e-2 * (dtype.itemsize < 4)
                )


def check_same_bits_on_all_ranks(rank, size):
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        for op in (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.MAX):
            torch.manual_seed(rank)
            tensor = torch.randn(300_001).to(dtype)
            tensor[rank] = float("nan")
            dist.all_reduce(tensor, op)
            everyone = [torch.empty_like(tensor) for _ in range(size)]
            dist.all_gather(everyone, tensor)
            bits = numpy.uint8
            assert all((each._array.view(bits) == tensor._array.view(bits)).all() for each in everyone)
            assert tensor[:size].isnan().all()


def check_ranks_that_run_ahead(rank, size):
    if rank:
        time.sleep(0.2)
    for number in range(50):
        tensor = torch.full((2 + number,), float(rank))
        dist.broadcast(tensor, 0)
        assert not tensor.any()
    works = [dist.all_reduce(torch.ones(1 + number), async_op=True) for number in range(50)]
    assert all(work.wait() and work.result()[0].sum() == size * (1 + n) for n, work in enumerate(works))


def check_strides(rank, size):
    for make in (lambda t: t.t(), lambda t: t[:, ::2], lambda t: t.flip(0), lambda t: t[1:]):
        tensor = make(torch.arange(24.0).reshape(4, 6) * (rank + 1))
        expected = make(torch.arange(24.0).reshape(4, 6)) * sum(range(1, size + 1))
        dist.all_reduce(tensor)
        assert torch.equal(tensor, expected)
        tensor = make(torch.full((4, 6), float(rank)))
        dist.broadcast(tensor, size - 1)
        assert (tensor == size - 1).all()


def check_tensors_that_require_grad(rank, size):
    leaf = torch.ones(2, requires_grad=True)
    dist.all_reduce(leaf)
    assert leaf.is_leaf
    assert leaf.tolist() == [size, size]
    result = torch.ones(2, requires_grad=True) * 2
    dist.all_reduce(result)
    assert result.tolist() == [2 * size] * 2
    assert result.grad_fn is not None


def check_broadcast_and_reduce(rank, size):
    for dtype in DTYPES:
        for root in range(size):
            tensor = tensor_of(rank, (2, 3), dtype)
            dist.broadcast(tensor, root)
            assert torch.equal(tensor, tensor_of(root, (2, 3), dtype))
            tensor = tensor_of(rank, (5,), dtype)
            dist.reduce(tensor, root)
            expected = reduced(ReduceOp.SUM, [value_of(each, (5,), dtype) for each in range(size)])
            own = value_of(rank, (5,), dtype)
            numpy.testing.assert_array_equal(
                array_of(tensor), (expected if rank == root else own).astype(array_of(tensor).dtype)
            )


def check_gathers(rank, size):
    for dtype in DTYPES:
        for shape in SHAPES[:-1]:
            own, expected = tensor_of(rank, shape, dtype), [tensor_of(each, shape, dtype) for each in range(size)]
            outputs = [torch.zeros(shape, dtype=dtype) for _ in range(size)]
            dist.all_gather(outputs, own)
            assert all(map(torch.equal, outputs, expected))
            joined = torch.zeros((size, *shape), dtype=dtype)
            dist.all_gather_into_tensor(joined, own)
            assert torch.equal(joined, torch.stack(expected))
            outputs = [torch.zeros(shape, dtype=dtype) for _ in range(size)] if rank == 1 else None
            dist.gather(own, outputs, dst=1)
            assert rank != 1 or all(map(torch.equal, outputs, expected))
            output = torch.zeros(shape, dtype=dtype)
            dist.scatter(output, expected if rank == 1 else None, src=1)
            assert torch.equal(output, own)
    outputs = [torch.zeros(2, 3).t() for _ in range(size)]
    dist.all_gather(outputs, torch.arange(6.0).reshape(3, 2) + rank)
    assert [each[0, 0].item() for each in outputs] == list(range(size))


def check_reduce_scatter(rank, size):
    for dtype in (torch.float32, torch.bfloat16, torch.int16, torch.bool, torch.complex64):
        for length in (3, 200_001):
            inputs = [[tensor_of(each, (length,), dtype, part) for part in range(size)] for each in range(size)]
            expected = reduced(ReduceOp.SUM, [inputs[each][rank]._array for each in range(size)])
            output = torch.zeros(length, dtype=dtype)
            dist.reduce_scatter(output, inputs[rank])
            numpy.testing.assert_array_equal(output._array, expected)
            output = torch.zeros(length, dtype=dtype)
            dist.reduce_scatter_tensor(output, torch.cat(inputs[rank]))
            numpy.testing.assert_array_equal(output._array, expected)
    output = torch.zeros(2)
    dist.reduce_scatter_tensor(output, torch.arange(2.0 * size), ReduceOp.AVG)
    assert output.tolist() == [2.0 * rank, 2.0 * rank + 1]


def check_all_to_all(rank, size):
    for dtype in DTYPES:
        outputs = [torch.zeros(2, dtype=dtype) for _ in range(size)]
        dist.all_to_all(outputs, [tensor_of(rank, (2,), dtype, part) for part in range(size)])
        assert all(torch.equal(each, tensor_of(other, (2,), dtype, rank)) for other, each in enumerate(outputs))
    output = torch.zeros(size)
    dist.all_to_all_single(output, torch.arange(float(size)) + 10 * rank)
    assert output.tolist() == [10.0 * other + rank for other in range(size)]
    sent = torch.arange(float(size * (size + 1) // 2)) + 100 * rank  # part i has i + 1 elements
    output = torch.zeros(size * (rank + 1))
    dist.all_to_all_single(output, sent, [rank + 1] * size, [part + 1 for part in range(size)])
    start = rank * (rank + 1) // 2
    assert output.tolist() == [100.0 * other + start + i for other in range(size) for i in range(rank + 1)]
    with pytest.raises(RuntimeError, match="Split sizes doesn't match total dim 0 size"):
        dist.all_to_all_single(torch.zeros(2 * size), torch.zeros(2 * size), [1] * size, [2] * size)


def check_messages(rank, size):
    following, before = (rank + 1) % size, (rank - 1) % size
    received = torch.zeros(3)
    works = [dist.irecv(received, before, tag=7), dist.isend(torch.full((3,), float(rank)), following, tag=7)]
    assert all(work.wait() for work in works)
    assert received.tolist() == [before] * 3
    received = torch.zeros(2, 3).t()
    operations = [
        dist.P2POp(dist.isend, torch.arange(6.0).reshape(3, 2) + rank, following),
        dist.P2POp(dist.irecv, received, before),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    assert received[0, 0] == before
    if rank == 0:
        senders = {dist.recv(torch.zeros(1)) for _ in range(size - 1)}
        assert senders == set(range(1, size))
    else:
        dist.send(torch.ones(1), 0)
    with pytest.raises(ValueError, match="destination rank should not be the same"):
        dist.send(torch.ones(1), rank)
    if rank == 1:
        dist.send(torch.ones(2), 0, tag=5)
        dist.send(torch.ones(4), 0, tag=6)
    if rank == 0:
        with pytest.raises(RuntimeError, match="rank 1 has sent 8 bytes"):
            dist.recv(torch.ones(3), 1, tag=5)
        with pytest.raises(RuntimeError, match="a rank has sent more"):
            dist.recv(torch.ones(3), 1, tag=6)


def check_several_at_once(rank, size):
    tensors = [torch.full((n,), float(rank)) for n in (3, 600_000, 2, 900_000)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    small = torch.ones(1)
    dist.all_reduce(small)
    assert small.item() == size
    for work in reversed(works):
        assert work.wait()
        assert work.is_completed()
        assert work.is_success()
    assert all((tensor == sum(range(size))).all() for tensor in tensors)
    future = dist.all_reduce(torch.ones(2), async_op=True).get_future().then(lambda done: done.value()[0] * 2)
    assert future.wait().tolist() == [2.0 * size] * 2
    dist.all_reduce_coalesced(tensors)
    dist.barrier(async_op=True).wait()


def check_groups(rank, size):
    assert dist.get_process_group_ranks(dist.group.WORLD) == list(range(size))
    even = dist.new_group(range(0, size, 2))
    last = dist.new_group([size - 1, 0])
    if rank % 2 == 0:
        tensor = torch.ones(1)
        dist.all_reduce(tensor, group=even)
        assert tensor.item() == (size + 1) // 2
        assert dist.get_rank(even) == rank // 2
        assert dist.get_global_rank(even, rank // 2) == rank
    else:
        assert even == dist.GroupMember.NON_GROUP_MEMBER
        assert dist.get_rank(even) == dist.get_world_size(even) == -1
        with pytest.warns(UserWarning, match=f"Running all_reduce on global rank {rank} which does not belong"):
            dist.all_reduce(torch.ones(1), group=even)
    if rank in (0, size - 1):
        tensor = torch.full((1,), float(rank))
        dist.broadcast(tensor, src=size - 1, group=last)
        assert tensor.item() == size - 1
        dist.broadcast(tensor, group_src=0, group=last)
        assert tensor.item() == size - 1
        outputs = [torch.zeros(1) for _ in range(2)]
        dist.all_gather(outputs, torch.full((1,), float(rank)), group=last)
        assert [each.item() for each in outputs] == [0, size - 1]
        if size > 2:
            with pytest.raises(ValueError, match="Global rank 1 is not part of group"):
                dist.broadcast(tensor, 1, group=last)
        dist.destroy_process_group(last)
    own, groups = dist.new_subgroups(1)
    assert dist.get_world_size(own) == 1
    assert len(groups) == size
    with pytest.raises(ValueError, match="Rank 99 is out of range"):
        dist.new_group([99])
    with pytest.raises(ValueError, match="duplicate"):
        dist.new_group([0, 0])


def check_arguments(rank, size):
    with pytest.raises(TypeError, match=r"Expected parameter `tensor` of type torch.Tensor"):
        dist.all_reduce([1.0])
    with pytest.raises(RuntimeError, match=rf"expected length {size}, got 1"):
        dist.all_gather([torch.ones(2)], torch.ones(2))
    with pytest.raises(RuntimeError, match=r"invalid tensor size at index 0 \(expected \(2\), got \(3\)\)"):
        dist.all_gather([torch.ones(3)] * size, torch.ones(2))
    with pytest.raises(ValueError, match="different dtypes"):
        dist.all_gather([torch.ones(2).double()] * size, torch.ones(2))
    with pytest.raises(ValueError, match="Must specify global_rank or group_rank"):
        dist.broadcast(torch.ones(2))
    with pytest.raises(ValueError, match=r"``scatter_list`` must be specified on source rank"):
        dist.scatter(torch.zeros(2), None, src=rank)
    with pytest.raises(ValueError, match=r"``gather_list`` must NOT be specified on non-destination ranks"):
        dist.gather(torch.zeros(2), [torch.zeros(2)] * size, dst=(rank + 1) % size)
    with pytest.raises(ValueError, match="trying to initialize the default process group twice"):
        dist.init_process_group()
    with pytest.raises(TypeError, match="must be a ReduceOp"):
        dist.all_reduce(torch.ones(1), "sum")


def check_objects(rank, size):
    objects = [None] * size
    dist.all_gather_object(
        objects, {"rank": rank, "tensor": torch.full((2,), float(rank)), "list": [1, None, "x"] * rank}
    )
    assert [each["rank"] for each in objects] == list(range(size))
    assert objects[1]["tensor"].tolist() == [1.0, 1.0]
    values = [rank, (rank, 2.5), torch.ones(rank + 1, dtype=torch.bfloat16)]
    dist.broadcast_object_list(values, src=1)
    assert values[:2] == [1, (1, 2.5)]
    assert values[2].shape == (2,)
    gathered = [None] * size if rank == 1 else None
    dist.gather_object(str(rank), gathered, dst=1)
    assert rank != 1 or gathered == list(map(str, range(size)))
    own = [None]
    dist.scatter_object_list(own, [{"to": each} for each in range(size)] if rank == 0 else None)
    assert own == [{"to": rank}]
    if rank == 0:
        dist.send_object_list([1, "two"], 1)
    if rank == 1:
        received = [None, None]
        assert dist.recv_object_list(received) == 0
        assert received == [1, "two"]
    dist.all_gather_object(objects, (numpy.float32(rank), numpy.arange(rank + 1)))
    assert all(type(one) is numpy.float32 and one == each for each, (one, _) in enumerate(objects))
    assert all(array.tolist() == list(range(each + 1)) for each, (_, array) in enumerate(objects))
    for other in (range(3), numpy.array([None]), numpy.array(["text"])):
        with pytest.raises(TypeError, match=r"can only travel as a pickle.*pass pickle=True"):
            dist.all_gather_object([None] * size, other)
    dist.all_gather_object(objects, range(rank), pickle=True)
    assert objects == [range(each) for each in range(size)]


def check_monitored_barrier(rank, size):
    dist.monitored_barrier()
    dist.monitored_barrier(wait_all_ranks=True)


def check_sparse_tensors(rank, size):
    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        own = torch.sparse_coo_tensor([[rank, 7, 7]], torch.tensor([[1, 2], [3, 4], [5, 6]], dtype=dtype), (9, 2))
        handle = dist.all_reduce(own, async_op=True)
        handle.wait()
        assert own.is_sparse and own.is_coalesced() and own.dtype == dtype and own._nnz() == size + 1
        assert own.to_dense().tolist() == [[1, 2]] * size + [[0, 0]] * (7 - size) + [[8 * size, 10 * size], [0, 0]]
    empty = torch.zeros(3, 2).to_sparse(1)
    dist.all_reduce(empty, ReduceOp.AVG)
    assert empty._nnz() == 0
    with pytest.raises(RuntimeError, match=r"SUM and ReduceOp\.AVG only"):
        dist.all_reduce(empty, ReduceOp.MAX)
    with pytest.raises(RuntimeError, match=r"layout torch\.sparse_coo, not torch\.sparse_csr"):
        dist.all_reduce(torch.eye(3).to_sparse_csr())


def check_functional(rank, size):
    import adjoint.distributed.nn.functional as functional

    def gradient(call):
        x = torch.arange(4.0, requires_grad=True)
        y = call(x)
        y = y if isinstance(y, tuple) else (y,)
        sum((each * (i + 1) * (rank + 1)).sum() for i, each in enumerate(y)).backward()
        return x.grad.tolist()

    total = size * (size + 1) / 2
    assert gradient(functional.all_reduce) == [total] * 4
    assert gradient(lambda x: functional.broadcast(x, 1)) == [total if rank == 1 else 0] * 4
    assert gradient(functional.all_gather) == [(rank + 1) * total] * 4
    assert gradient(functional.gather) == [rank + 1] * 4
    assert gradient(lambda x: functional.reduce(x, 0)) == [1] * 4
    parts = lambda x: [x * (i + 1) for i in range(size)]
    squares = sum((i + 1) ** 2 for i in range(size))
    assert gradient(lambda x: functional.scatter(parts(x))) == [squares if rank == 0 else 0] * 4
    assert gradient(lambda x: functional.reduce_scatter(torch.empty(4), parts(x))) == [squares] * 4
    assert gradient(lambda x: functional.all_to_all([torch.empty(4)] * size, parts(x))) == [(rank + 1) * squares] * 4
    assert sum(gradient(lambda x: functional.all_to_all_single(torch.empty(4), x))) == 4 / size * total
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad((functional.all_reduce(x) ** 3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert second.tolist() == [6.0 * size**3] * 2


if __name__ == "__main__":
    run_checks(globals())
