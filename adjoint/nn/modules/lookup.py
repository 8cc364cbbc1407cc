"""Finding members of a module by dotted names, and printing them. The methods of `Module` describe the errors."""

from __future__ import annotations

from typing import Any

import adjoint as torch

from ..parameter import Parameter


def submodule(module: Any, target: str) -> Any:
    """Return the submodule with the dotted name `target`."""
    if target == "":
        return module
    for part in target.split("."):
        module = _attribute(module, part)
        if not isinstance(module, torch.nn.Module):
            raise AttributeError(f"`{part}` is not an nn.Module")
    return module


def replace_submodule(root: Any, target: str, module: Any, strict: bool) -> None:
    """Replace the submodule of `root` with the dotted name `target` by `module`."""
    if target == "":
        raise ValueError("Cannot set the submodule without a target name!")
    parent_name, _, name = target.rpartition(".")
    if not isinstance(module, torch.nn.Module):
        raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
    parent = root.get_submodule(parent_name)
    if strict:
        _attribute(parent, name)
    if hasattr(parent, name) and not isinstance(getattr(parent, name), torch.nn.Module):
        raise AttributeError(f"`{name}` is not an nn.Module")
    setattr(parent, name, module)


def parameter(root: Any, target: str) -> Parameter:
    """Return the parameter with the dotted name `target`."""
    module_path, _, name = target.rpartition(".")
    found = _attribute(root.get_submodule(module_path), name)
    if not isinstance(found, Parameter):
        raise AttributeError(f"`{name}` is not an nn.Parameter")
    return found


def buffer(root: Any, target: str) -> torch.Tensor:
    """Return the buffer with the dotted name `target`."""
    module_path, _, name = target.rpartition(".")
    module = root.get_submodule(module_path)
    found: torch.Tensor = _attribute(module, name)
    if name not in module._buffers:
        raise AttributeError(f"`{name}` is not a buffer")
    return found


def _attribute(module: Any, name: str) -> Any:
    if not hasattr(module, name):
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    return getattr(module, name)


def printed(module: Any) -> str:
    """Return the printed form of `module`: its name, its `extra_repr`, and its submodules."""
    extra = module.extra_repr()
    lines = extra.split("\n") if extra else []
    if not module._modules and len(lines) <= 1:
        return f"{module._get_name()}({extra})"
    for name, inner in module._modules.items():
        lines.append(f"({name}): {indented(repr(inner))}")
    return f"{module._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


def unusual(module: Any, **usual: Any) -> str:
    """Return `, name=value` for each attribute that differs from its usual value, for an `extra_repr`."""
    shown = {name: getattr(module, name) for name in usual}
    return "".join(f", {name}={value}" for name, value in shown.items() if value != usual[name])


def indented(text: str) -> str:
    """Return `text` with all lines except the first indented by two spaces."""
    return text.replace("\n", "\n  ")
