"""Communication hooks that average gradients, unchanged or compressed to half the bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import adjoint as torch

from ...collectives import all_reduce
from ...groups import default_group

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]

Hook = Callable[[Any, Any], Any]


def _averaged(process_group: Any, tensor: Any) -> Any:
    """Return the future of the average of `tensor`.

    The tensor is divided before the sum, so that half-precision sums do not overflow.
    """
    group = process_group if process_group is not None else default_group()
    tensor.div_(group.size())
    work: Any = all_reduce(tensor, group=group, async_op=True)
    return work.get_future().then(lambda done: done.value()[0])


def allreduce_hook(process_group: Any, bucket: Any) -> Any:
    """Average the gradients, as DistributedDataParallel does without a hook."""
    return _averaged(process_group, bucket.buffer())


def _compressed(process_group: Any, bucket: Any, dtype: Any) -> Any:
    buffer = bucket.buffer()

    def decompress(done: Any) -> Any:
        return buffer.copy_(done.value())

    return _averaged(process_group, buffer.to(dtype)).then(decompress)


def fp16_compress_hook(process_group: Any, bucket: Any) -> Any:
    """Average the gradients as float16."""
    return _compressed(process_group, bucket, torch.float16)


def bf16_compress_hook(process_group: Any, bucket: Any) -> Any:
    """Average the gradients as bfloat16."""
    return _compressed(process_group, bucket, torch.bfloat16)


def _wrapper(hook: Hook, dtype: Any) -> Hook:
    def compressed_hook(state: Any, bucket: Any) -> Any:
        buffer = bucket.buffer()
        bucket.set_buffer(buffer.to(dtype))

        def decompress(done: Any) -> Any:
            value = done.value()
            return buffer.copy_(value[0] if isinstance(value, list) else value)

        return hook(state, bucket).then(decompress)

    return compressed_hook


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """Return a hook that runs `hook` on the gradients as float16."""
    return _wrapper(hook, torch.float16)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """Return a hook that runs `hook` on the gradients as bfloat16."""
    return _wrapper(hook, torch.bfloat16)
