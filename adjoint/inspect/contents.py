"""The contents of each group of a picture: shapes that enter and leave it, parameters, operations, and saved bytes."""

from __future__ import annotations

from collections.abc import Container, Iterator
from math import prod

from .model import Group, Snapshot, TensorBox

MOST_SHAPES = 3


def describe(picture: Snapshot, arguments: Container[str | None] = ()) -> None:
    """Assign the constants of `picture` to groups, and count the contents of each group.

    `arguments`: the `AccumulateGrad` nodes of leaves that are not parameters.
    """
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
        if tensors[key].kind == "intermediate" or tensors[key].node in arguments
        for place in places
        for group in around[place]
        if group not in around[of_tensor[key]]
    }
    called_with = _arguments(picture, tensors, arguments)
    modules = {group.id for group in picture.groups if group.kind == "module"}
    for tensor in picture.tensors:
        if tensor.node is None:
            common = _common(users.get(tensor.id, []), around)
            if tensor.id in called_with:
                around_each = {group: next(filter(modules.__contains__, around[group]), group) for group in common}
                common = tuple(group for group in common if around_each[group] in entered)
            tensor.group = of_tensor[tensor.id] = common[0] if common else None
    _count(picture, groups, home, around, arguments if modules else ())
    for tensor in picture.tensors:
        inside = around[of_tensor[tensor.id]]
        places = users.get(tensor.id, [])
        if tensor.dtype and (tensor.kind != "leaf" or tensor.node in arguments):
            for key in {group for place in places for group in around[place] if group not in inside}:
                _add(groups[key].takes, tensor)
        if tensor.kind == "intermediate" and (places or tensor.id in picture.roots):
            for key in inside:
                if tensor.id in picture.roots or any(key not in around[place] for place in places):
                    _add(groups[key].gives, tensor)


def _around(group: Group, groups: dict[str, Group]) -> Iterator[str]:
    """Return the group and its enclosing groups, the innermost first."""
    while True:
        yield group.id
        if group.parent is None:
            return
        group = groups[group.parent]


def _arguments(picture: Snapshot, tensors: dict[str, TensorBox], leaves: Container[str | None]) -> set[str]:
    """Return the constants that may be arguments of a model.

    A number is not an argument. A constant that an operation only combines with computed results, such as a mask, is
    not an argument either.
    """
    computed: dict[str, bool] = {}  # whether other constants took part: not so for the transpose of a weight
    found = set()
    for operation in picture.operations:
        constants = [key for key in operation.inputs if tensors[key].kind == "constant" and tensors[key].shape]
        from_others = any(computed.get(key) or tensors[key].node in leaves for key in operation.inputs)
        if not from_others:
            found.update(constants)
        computed.update(dict.fromkeys(operation.outputs, from_others or bool(constants)))
    return found


def _common(places: list[str | None], around: dict[str | None, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the groups that contain all places, the innermost first."""
    if not places:
        return ()
    common = around[places[0]]
    for place in places[1:]:
        common = tuple(group for group in common if group in around[place])
    return common


def _add(shapes: list[list[int]], tensor: TensorBox) -> None:
    if tensor.shape not in shapes and len(shapes) < MOST_SHAPES:
        shapes.append(tensor.shape)


def _count(
    picture: Snapshot,
    groups: dict[str, Group],
    home: dict[str, str],
    around: dict[str | None, tuple[str, ...]],
    arguments: Container[str | None],
) -> None:
    """Set the numbers of operations and parameters, and the saved bytes. Each storage and each leaf counts once in a group."""
    leaves = {tensor.node: prod(tensor.shape) for tensor in picture.tensors if tensor.kind == "leaf"}
    leaves = {node: size for node, size in leaves.items() if node not in arguments}
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
