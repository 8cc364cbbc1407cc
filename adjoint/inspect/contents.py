"""What each group of a picture holds: shapes that enter and leave it, parameters, operations, saved bytes."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from .model import Group, Snapshot, TensorBox

MOST_SHAPES = 3


def describe(picture: Snapshot) -> None:
    """Place the constants of `picture` in groups, and count what each group holds."""
    groups = {group.id: group for group in picture.groups}
    home = {key: group.id for group in picture.groups for key in group.nodes}
    around = {None: ()} | {group.id: tuple(_around(group, groups)) for group in picture.groups}
    tensors = {tensor.id: tensor for tensor in picture.tensors}
    of_tensor = {tensor.id: home.get(tensor.node or "") for tensor in picture.tensors}
    users: dict[str, list[str | None]] = {}
    for operation in picture.operations:
        for key in operation.inputs:
            users.setdefault(key, []).append(home.get(operation.node or ""))
    entered = {
        group
        for key, places in users.items()
        if tensors[key].kind == "intermediate"
        for place in places
        for group in around[place]
        if group not in around[of_tensor[key]]
    }
    for tensor in picture.tensors:
        if tensor.node is None:
            tensor.group = of_tensor[tensor.id] = _place(users.get(tensor.id, []), around, entered)
    _count(picture, groups, home, around)
    for tensor in picture.tensors:
        inside = around[of_tensor[tensor.id]]
        places = users.get(tensor.id, [])
        if tensor.dtype:
            for key in {group for place in places for group in around[place] if group not in inside}:
                _add(groups[key].takes, tensor)
        if tensor.kind == "intermediate" and (places or tensor.id in picture.roots):
            for key in inside:
                if tensor.id in picture.roots or any(key not in around[place] for place in places):
                    _add(groups[key].gives, tensor)


def _around(group: Group, groups: dict[str, Group]) -> Iterator[str]:
    """The group and those around it, the innermost first."""
    while True:
        yield group.id
        if group.parent is None:
            return
        group = groups[group.parent]


def _place(places: list[str | None], around: dict[str | None, tuple[str, ...]], entered: set[str]) -> str | None:
    """The group of a constant: the innermost that holds all its users and that a result enters."""
    if not places:
        return None
    common = around[places[0]]
    for place in places[1:]:
        common = tuple(group for group in common if group in around[place])
    return next((group for group in common if group in entered), None)


def _add(shapes: list[list[int]], tensor: TensorBox) -> None:
    if tensor.shape not in shapes and len(shapes) < MOST_SHAPES:
        shapes.append(tensor.shape)


def _count(
    picture: Snapshot, groups: dict[str, Group], home: dict[str, str], around: dict[str | None, tuple[str, ...]]
) -> None:
    """Set the numbers of operations and parameters, and the saved bytes; each storage and each leaf counts once in a group."""
    leaves = {tensor.node: prod(tensor.shape) for tensor in picture.tensors if tensor.kind == "leaf"}
    held: dict[str, set[str]] = {key: set() for key in groups}
    used: dict[str, set[str]] = {key: set() for key in groups}
    for node in picture.nodes:
        storages = [saved.storage for saved in node.saved if saved.storage and saved.storage in picture.storages]
        ends = [target for target, _ in node.next if target and target in leaves]
        for key in around[home.get(node.id)]:
            groups[key].operations += not node.accumulate
            held[key].update(storages)
            used[key].update(ends)
    for key, group in groups.items():
        group.bytes = sum(picture.storages[storage] for storage in held[key])
        group.parameters = sum(leaves[leaf] for leaf in used[key])
