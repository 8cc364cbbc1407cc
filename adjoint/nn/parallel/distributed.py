"""`DistributedDataParallel` runs one model in several processes, each with a part of the batch.

Backward averages gradients.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from typing import Any

import adjoint as torch

from ..modules.module import Module
from ..modules.sparse import Embedding, EmbeddingBag
from .gradient_buckets import Reducer

__all__ = ["DistributedDataParallel"]

FIRST_BUCKET = 1 << 20
"""The number of bytes of the first bucket. It is small, so that communication begins early."""

BUCKET_MB = 4.0

EMBEDDINGS = (Embedding, EmbeddingBag)
"""The modules that may produce sparse gradients."""


class DistributedDataParallel(Module):
    """Wraps `module`. The parameters of all processes stay equal, because each step uses the average of all gradients.

    Args:
        module: the model, which becomes the attribute `module`. Keys of the state dict therefore begin with `module.`.
        device_ids, output_device, dim: these must be None, None and 0, because only CPUs exist.
        broadcast_buffers: whether each forward starts with the buffers of the first process; True if None.
        init_sync: whether to compare the parameters of all processes, and to use the values of the first process.
        process_group: the group of processes; all processes if None.
        bucket_cap_mb: the size of a bucket of gradients in MiB; 4 if None, because MPI calls cost little.
        find_unused_parameters: whether a backward may skip parameters. In this case, the graph is searched after each
            forward.
        check_reduction: has no effect, as in PyTorch.
        gradient_as_bucket_view: whether `.grad` is a part of the memory that is reduced. This avoids a copy of all
            gradients.
        static_graph: whether all steps use the same parameters, each as often as in the first step.
        device_mesh: a mesh of one dimension to use instead of `process_group`.

    Raises:
        RuntimeError: if no parameter requires a gradient, or if the models of the processes differ. The error names the
            parameter.

    Backward computes the gradients of the mean of all losses. `no_sync()` accumulates gradients without
    communication. `join()` lets processes have different numbers of batches.
    """

    _active_ddp_module: DistributedDataParallel | None = None

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        *,
        device_mesh: Any = None,
    ) -> None:
        super().__init__()
        self._join_config = torch.distributed.algorithms.join._JoinConfig.construct_disabled_join_config()
        if device_ids or output_device is not None:
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device GPU "
                f"modules or CPU modules, but got device_ids {device_ids}, output_device {output_device}, and module parameters "
                f"{ {parameter.device for parameter in module.parameters()} }."
            )
        if not any(parameter.requires_grad for _, parameter in module.named_parameters()):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."
            )
        if device_mesh is not None:
            if process_group is not None:
                raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
            if device_mesh.ndim != 1:
                raise RuntimeError(f"Only 1D device mesh is supported, but got {device_mesh}.")
            process_group = device_mesh.get_group(0)
        self.process_group = process_group if process_group is not None else torch.distributed.group.WORLD
        if self.process_group is None:
            raise ValueError(
                "Default process group has not been initialized, please make sure to call init_process_group."
            )
        self.module = module
        self.dim, self.device_ids, self.output_device = dim, None, None
        self.broadcast_buffers = broadcast_buffers is not False
        self.bucket_bytes_cap = int((BUCKET_MB if bucket_cap_mb is None else bucket_cap_mb) * 1024 * 1024)
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self._comm_hooks: list[tuple[Any, Any]] = []
        self._divide_by_initial_world_size = True
        self._first_bucket_bytes = self.bucket_bytes_cap
        if bucket_cap_mb is None:
            self._first_bucket_bytes = min(FIRST_BUCKET, self.bucket_bytes_cap)
        if init_sync:
            names, parameters = zip(*self._synchronized_parameters(), strict=True)
            self._check_same_model(list(names), list(parameters))
            self._broadcast(self._model_tensors(), 0)
        self._make_reducer()

    def _make_reducer(self) -> None:
        names, parameters = zip(*self._synchronized_parameters(), strict=True)
        self.reducer = Reducer(
            list(names),
            list(parameters),
            set(self._sparse_names()),
            self.process_group,
            self.bucket_bytes_cap,
            self._first_bucket_bytes,
            self.find_unused_parameters,
            self.gradient_as_bucket_view,
            self.static_graph,
        )

    def __getstate__(self) -> dict[str, Any]:
        if self.process_group is not torch.distributed.group.WORLD:
            raise RuntimeError(
                "DDP Pickling/Unpickling are only supported when using DDP with the default process group. That is, when you "
                "have called init_process_group and have not passed process_group argument to DDP constructor"
            )
        return {**self.__dict__, "process_group": None, "reducer": None, "_comm_hooks": []}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.process_group = torch.distributed.distributed_c10d._get_default_group()
        self._make_reducer()

    # --- the same model everywhere ----------------------------------------------------------------------------------

    def _synchronized_parameters(self) -> Iterator[tuple[str, Any]]:
        """Return the parameters whose gradients are averaged, by name."""
        for name, parameter in self.module.named_parameters():
            if parameter.requires_grad and name not in self.parameters_to_ignore:
                yield name, parameter

    def _sparse_names(self) -> Iterator[str]:
        """Return the names of the parameters whose gradients are sparse."""
        sparse = {id(each.weight) for each in self.module.modules() if isinstance(each, EMBEDDINGS) and each.sparse}
        return (name for name, parameter in self._synchronized_parameters() if id(parameter) in sparse)

    def _broadcast_each_forward(self) -> list[Any]:
        return [buffer for name, buffer in self.module.named_buffers() if name not in self.parameters_to_ignore]

    def _model_tensors(self) -> list[Any]:
        """Return all parameters, including frozen parameters, and all buffers."""
        named = self.module.named_parameters()
        parameters = [parameter for name, parameter in named if name not in self.parameters_to_ignore]
        return [*parameters, *self._broadcast_each_forward()]

    def _check_same_model(self, names: list[str], parameters: list[Any]) -> None:
        """Compare the parameters with the first process. If one process differs, all processes raise the error."""
        own = [[name, tuple(each.shape), str(each.dtype)] for name, each in zip(names, parameters, strict=True)]
        models: list[Any] = [None] * self.process_group.size()
        torch.distributed.all_gather_object(models, own, self.process_group)
        for rank, model in enumerate(models):
            if len(model) != len(models[0]):
                known = {name for name, _, _ in models[0]} ^ {name for name, _, _ in model}
                raise RuntimeError(
                    f"DDP expects same model across all ranks, but Rank 0 has {len(models[0])} params, while rank {rank} has "
                    f"inconsistent {len(model)} params: {', '.join(sorted(known))}"
                )
            for number, (mine, first) in enumerate(zip(model, models[0], strict=True)):
                if mine[1:] != first[1:]:
                    raise RuntimeError(
                        f"[{rank}]: params[{number}] in this process with sizes {list(mine[1])} appears not to match sizes of "
                        f"the same param in process 0: {mine[0]!r} is {list(mine[1])} of {mine[2]} on rank {rank}, and "
                        f"{first[0]!r} is {list(first[1])} of {first[2]} on rank 0."
                    )

    def _broadcast(self, tensors: list[Any], root: int) -> None:
        for tensor in tensors:
            torch.distributed.broadcast(tensor.detach(), group=self.process_group, group_src=root)

    # --- forward ----------------------------------------------------------------------------------------------------

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module. The backward of the result averages gradients."""
        synchronizes = torch.is_grad_enabled() and self.require_backward_grad_sync
        self._before_forward(synchronizes)
        output = self.module(*inputs, **kwargs)
        self.require_forward_param_sync = synchronizes
        if not synchronizes:
            return output
        first_of_static = self.static_graph and self.reducer.uses is None
        searched = tensors_in(output) if self.find_unused_parameters and not self.static_graph else None
        self.reducer.expect(searched)
        return _through_sink(self.reducer, output) if first_of_static or searched is not None else output

    def _before_forward(self, synchronizes: bool) -> None:
        if self.reducer.expecting and self.reducer.arrived and synchronizes:
            self.reducer.check_finished()
        join = torch.distributed.algorithms.Join
        work = join.notify_join_context(self)
        if work is not None and not self._divide_by_initial_world_size:
            self.reducer.divisor = lambda: int(work.result()[0].item())
        if synchronizes:
            self.reducer.rebuild()
        if self._synchronizes_buffers():
            self._broadcast(self._broadcast_each_forward(), 0)
        if self._join_config.enable:
            self._announce_synchronization(synchronizes)

    def _synchronizes_buffers(self) -> bool:
        return bool(self.require_forward_param_sync and self.broadcast_buffers and self._broadcast_each_forward())

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """A context in which each process accumulates its gradients. The first backward after the context averages them."""
        former = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = former

    def train(self, mode: bool = True) -> DistributedDataParallel:
        """Set training mode."""
        super().train(mode)
        return self

    def scatter(self, inputs: Any, kwargs: Any, device_ids: Any) -> Any:
        """Return the arguments unchanged, because only one device exists."""
        return (inputs,), (kwargs,)

    # --- communication hooks ----------------------------------------------------------------------------------------

    def register_comm_hook(self, state: Any, hook: Any) -> None:
        """Let `hook(state, bucket)` reduce the gradients of each bucket instead of averaging them.

        Args:
            state: an object for the hook, such as a group or a `PowerSGDState`.
            hook: a function of the state and a `torch.distributed.GradBucket`. The hook returns a future of a tensor
                like the bucket's buffer.
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        parameters = inspect.signature(hook).parameters
        annotation = parameters["bucket"].annotation
        accepted = (inspect.Parameter.empty, torch.distributed.GradBucket, Any)
        if not (annotation in accepted or isinstance(annotation, str)):
            raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
        if self._comm_hooks:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self._comm_hooks.append((hook, state))
        self.reducer.set_hook(state, hook)

    def _register_builtin_comm_hook(self, comm_hook_type: Any) -> None:
        hooks = torch.distributed.algorithms.ddp_comm_hooks.default_hooks
        names = {"ALLREDUCE": hooks.allreduce_hook, "FP16_COMPRESS": hooks.fp16_compress_hook}
        self.register_comm_hook(self.process_group, names[comm_hook_type.name])

    def _set_static_graph(self) -> None:
        self.static_graph = self.reducer.static = True

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Module, params_and_buffers_to_ignore: Any) -> None:
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore

    # --- uneven inputs ----------------------------------------------------------------------------------------------

    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Any:
        """Return a context in which processes may have different numbers of batches; see `torch.distributed.algorithms.Join`.

        Args:
            divide_by_initial_world_size: whether to divide gradients by the number of all processes, or by the number
                of processes that still have inputs.
            enable: whether the context has any effect.
            throw_on_early_termination: whether all processes raise an error when the first process has no more inputs.
        """
        return torch.distributed.algorithms.Join(
            [self], enable, throw_on_early_termination, divide_by_initial_world_size=divide_by_initial_world_size
        )

    def join_hook(self, **kwargs: Any) -> Any:
        """Return the hook that lets a process without inputs take part in the collectives of this module."""
        return _shadow(self, kwargs.get("divide_by_initial_world_size", True))

    @property
    def join_device(self) -> Any:
        """The CPU."""
        return torch.device("cpu")

    @property
    def join_process_group(self) -> Any:
        """Return the group over which gradients are averaged."""
        return self.process_group

    def _announce_synchronization(self, synchronizes: bool) -> bool:
        """In a `Join`, send to the processes without inputs whether backward will average gradients."""
        flag = torch.tensor([int(synchronizes)])
        torch.distributed.all_reduce(flag, group=self.process_group)
        return bool(flag.item())


def _shadow(module: DistributedDataParallel, divide_by_initial_world_size: bool) -> Any:
    """Return the `JoinHook` of `module`. `torch.distributed` is imported on first use."""
    module._divide_by_initial_world_size = divide_by_initial_world_size
    if not divide_by_initial_world_size:
        module.reducer.divisor = lambda: 1
    else:
        module.reducer.divisor = None

    class Shadow(torch.distributed.algorithms.JoinHook):  # type: ignore[misc]
        def main_hook(self) -> None:
            module.reducer.rebuild()
            if module._synchronizes_buffers():
                module._broadcast(module._broadcast_each_forward(), 0)
            synchronizes = module._announce_synchronization(False)
            module.require_forward_param_sync = synchronizes
            if synchronizes:
                module.reducer.shadow()

        def post_hook(self, is_last_joiner: bool) -> None:
            rank = torch.tensor([torch.distributed.get_rank(module.process_group) if is_last_joiner else -1])
            torch.distributed.all_reduce(rank, torch.distributed.ReduceOp.MAX, module.process_group)
            module._broadcast(module._model_tensors(), int(rank.item()))
            module.reducer.divisor = None

    return Shadow()


def tensors_in(output: Any) -> Iterator[Any]:
    """Return the tensors in a result, which may contain tuples, lists, dicts and dataclasses to any depth."""
    if isinstance(output, torch.Tensor):
        yield output
    elif isinstance(output, (tuple, list)):
        for each in output:
            yield from tensors_in(each)
    elif isinstance(output, dict):
        yield from tensors_in(list(output.values()))
    elif hasattr(output, "__dataclass_fields__"):
        yield from tensors_in(list(vars(output).values()))


def _through_sink(reducer: Reducer, output: Any) -> Any:
    """Return the result unchanged. A backward through it reaches all parameters that it depends on, and no others."""
    tree: Any = torch.utils._pytree
    flat, structure = tree.tree_flatten(output)
    differentiable = [
        number for number, each in enumerate(flat) if isinstance(each, torch.Tensor) and each.requires_grad
    ]
    passed = _Sink.apply(reducer, *(flat[number] for number in differentiable))
    for number, each in zip(differentiable, passed if isinstance(passed, tuple) else (passed,), strict=True):
        flat[number] = each
    return tree.tree_unflatten(flat, structure)


class _Sink(torch.autograd.Function):
    """The identity, whose node runs before the nodes of the model in backward."""

    @staticmethod
    def forward(ctx: Any, reducer: Reducer, *tensors: Any) -> Any:
        ctx.set_materialize_grads(False)
        ctx.reducer = reducer
        return tensors

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if ctx.reducer.static:  # even if the backward contains other backwards
            torch.autograd.Variable._execution_engine.queue_callback(ctx.reducer.reduce_late)
        return None, *grads
