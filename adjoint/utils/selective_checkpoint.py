"""Selective checkpointing.

A policy selects operations whose results are stored, so that the recomputation does not repeat them.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import adjoint as torch

__all__ = ["CheckpointPolicy", "SelectiveCheckpointContext", "create_selective_checkpoint_contexts"]


class CheckpointPolicy(enum.Enum):
    """The treatment of the result of an operation: the result is stored or recomputed.

    Results cannot be offloaded, because there is no other memory.
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_KEPT = (
    CheckpointPolicy.MUST_SAVE,
    CheckpointPolicy.PREFER_SAVE,
    CheckpointPolicy.MUST_CPU_OFFLOAD,
    CheckpointPolicy.PREFER_CPU_OFFLOAD,
)


class SelectiveCheckpointContext:
    """Information for a policy about the current run."""

    def __init__(self, *, is_recompute: bool) -> None:
        self.is_recompute = is_recompute


_Storage = dict[Any, list[Any]]
"""The stored results of a first run, in order, for each operation. None marks results to recompute."""


class _FirstRun:
    """The first run. It stores the results that the policy selects."""

    def __init__(self, policy: Callable[..., Any], storage: _Storage) -> None:
        self.policy, self.storage = policy, storage
        self.last: list[Any] | None = None

    def result(self, op: Any, args: tuple[Any, ...], compute: Callable[[], Any]) -> Any:
        """Compute the result, and store it if the policy selects it."""
        answer = self.policy(SelectiveCheckpointContext(is_recompute=False), op, *args)
        if isinstance(answer, bool):
            answer = CheckpointPolicy.MUST_SAVE if answer else CheckpointPolicy.PREFER_RECOMPUTE
        result = compute()
        self.last = [result, ()] if answer in _KEPT else None
        self.storage.setdefault(op, []).append(self.last)
        return result

    def made(self, outputs: Sequence[torch.Tensor]) -> None:
        """Record the versions of the stored results."""
        if self.last is not None:
            self.last[1] = tuple([(output.detach(), output._version) for output in outputs])
            self.last = None


class _Recomputation:
    """The recomputation. It returns the stored results."""

    def __init__(self, storage: _Storage, mutable: bool) -> None:
        self.storage, self.mutable = storage, mutable

    def result(self, op: Any, args: tuple[Any, ...], compute: Callable[[], Any]) -> Any:
        """Return the stored result, or a new result.

        Raises:
            RuntimeError: if the first run did not reach this operation, if this is a second recomputation, or if the
        stored result has been changed in place.
        """
        if op not in self.storage:
            raise RuntimeError(f"{op} encountered during backward, but not found in storage")
        if not self.storage[op]:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under selective "
                "activation checkpoint."
            )
        entry = self.storage[op].pop(0)
        if entry is None:
            return compute()
        result, outputs = entry
        if not self.mutable and any(output._version != version for output, version in outputs):
            raise RuntimeError("Tensor cached during selective activation checkpoint has been mutated")
        return result

    def made(self, outputs: Sequence[torch.Tensor]) -> None:
        """Do nothing."""


class _CachingTorchDispatchMode(torch.autograd.graph.caching_results):
    """The context of the first run, under PyTorch's name."""

    def __init__(self, policy_fn: Callable[..., Any], storage: _Storage, ac_graph_id: Any = None) -> None:
        super().__init__(_FirstRun(policy_fn, storage))
        self.policy_fn, self.storage = policy_fn, storage


class _CachedTorchDispatchMode(torch.autograd.graph.caching_results):
    """The context of the recomputation, under PyTorch's name."""

    def __init__(
        self, policy_fn: Callable[..., Any], storage: _Storage, allow_cache_entry_mutation: bool = False
    ) -> None:
        super().__init__(_Recomputation(storage, allow_cache_entry_mutation))
        self.storage = storage


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Callable[..., Any] | list[Any], allow_cache_entry_mutation: bool = False
) -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    """Return two contexts, for `checkpoint(context_fn=...)`, that store the results of selected operations.

    Args:
        policy_fn_or_list: the operations whose results are stored (such as `torch.ops.aten.mm.default`), or a function.
            The function is called as `policy(context, operation, *args)`. It returns a `CheckpointPolicy`, or a bool
            that tells whether to store the result.
        allow_cache_entry_mutation: whether stored results may be changed in place.

    Raises:
        TypeError: if the argument is any other object.
        ValueError: if the list contains other objects.

    >>> import functools
    >>> import adjoint as torch
    >>> from adjoint.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
    >>> keep = functools.partial(create_selective_checkpoint_contexts, [torch.ops.aten.mm.default])
    >>> x = torch.ones(2, 2, requires_grad=True)
    >>> checkpoint(lambda x: (x @ x).sigmoid(), x, use_reentrant=False, context_fn=keep).sum().backward()
    """
    policy: Callable[..., Any]
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not isinstance(op, torch.ops.OpOverload):
                advice = (
                    "Please update the OpOverloadPacket to a specific OpOverload.For example, if you have `torch.ops.aten.mm`, "
                    "change it to `torch.ops.aten.mm.default`."
                )
                raise ValueError(
                    f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}. "
                    f"{advice if isinstance(op, torch.ops.OpOverloadPacket) else ''}"
                )
        chosen = set(policy_fn_or_list)

        def policy(context: SelectiveCheckpointContext, op: Any, *args: Any) -> CheckpointPolicy:
            return CheckpointPolicy.MUST_SAVE if op in chosen else CheckpointPolicy.PREFER_RECOMPUTE

    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    storage: _Storage = {}
    cached = _CachedTorchDispatchMode(policy, storage, allow_cache_entry_mutation)
    return _CachingTorchDispatchMode(policy, storage), cached
