"""`torch.utils.module_tracker`: the modules whose calls are running."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import adjoint as torch
from adjoint._runtime.weak_keys import WeakKeys

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """A context that tracks the modules whose calls or backwards are running.

    `parents` is the set of their paths. The name of the outermost module is the name of its class. A child adds its
    name after a dot. "Global" is always in the set. `is_bw` tells whether backward is running.

    >>> import adjoint as torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 2))
    >>> with ModuleTracker() as tracker:
    ...     _ = model[0].register_forward_pre_hook(lambda *_: print(sorted(tracker.parents)))
    ...     _ = model(torch.ones(1, 2))
    ['Global', 'Sequential', 'Sequential.0']
    """

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._names: WeakKeys[torch.nn.Module, str] = WeakKeys()
        self._handles: list[Any] = []

    @property
    def is_bw(self) -> bool:
        """Whether this thread is in a backward pass."""
        return torch._C._current_graph_task_id() != -1

    def __enter__(self) -> ModuleTracker:
        hooks = torch.nn.modules.module
        self._handles = [
            hooks.register_module_forward_pre_hook(self._begin),
            hooks.register_module_forward_hook(self._end, always_call=True),
        ]
        return self

    def __exit__(self, *exception: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._leave_all()

    def _begin(self, module: torch.nn.Module, args: Any) -> None:
        self._enter(self._path(module))
        self._when_known(args, self._leave, module)

    def _end(self, module: torch.nn.Module, args: Any, result: Any) -> None:
        self._leave(self._path(module))
        self._when_known(result, self._enter_in_backward, module)

    def _enter(self, path: str) -> None:
        self.parents = self.parents | {path}

    def _enter_in_backward(self, path: str) -> None:
        self._enter(path)
        torch.autograd.Variable._execution_engine.queue_callback(self._leave_all)

    def _leave_all(self) -> None:
        self.parents = {"Global"}

    def _leave(self, path: str) -> None:
        self.parents = self.parents - {path}

    def _when_known(self, values: Any, change: Callable[[str], None], module: torch.nn.Module) -> None:
        """Change the set when backward has computed the gradients of these arguments or results."""
        tree: Any = torch.utils._pytree
        tensors = [each for each in tree.tree_leaves(values) if isinstance(each, torch.Tensor) and each.requires_grad]
        if tensors and not self.is_bw:
            path = self._path(module)
            self._handles.append(torch.autograd.graph.register_multi_grad_hook(tensors, lambda grads: change(path)))

    def _path(self, module: torch.nn.Module) -> str:
        if module not in self._names:
            for path, inner in module.named_modules(prefix=type(module).__name__):
                self._names[inner] = path
        return self._names[module]
