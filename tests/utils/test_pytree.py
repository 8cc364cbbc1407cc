"""Nested containers: flattening, unflattening, and classes that users register."""

import dataclasses
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

import adjoint as torch
import adjoint.utils._pytree as pytree

Pair = namedtuple("Pair", "x y")


class Box:
    def __init__(self, value, label):
        self.value, self.label = value, label


VALUES = [
    1, None, (1, (2, 3)), [1, {"b": 2, "a": 3}], OrderedDict(b=1, a=2), defaultdict(list, a=1), deque([1, 2], 5),
    Pair(1, [2]), (), [], torch.Size([2, 3]),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_what_is_taken_apart_can_be_put_together(value):
    leaves, spec = pytree.tree_flatten(value)
    assert pytree.tree_unflatten(leaves, spec) == value
    assert spec.num_leaves == len(leaves) == len(pytree.tree_leaves(value))
    assert spec == pytree.tree_structure(value)
    with pytest.raises(ValueError, match="the spec refers to a pytree"):
        spec.unflatten([*leaves, 1])


def test_transforms_take_what_users_register():
    pytree.register_pytree_node(Box, lambda box: ([box.value], box.label), lambda items, label: Box(*items, label))
    try:
        with pytest.raises(ValueError, match="is already registered"):
            pytree.register_pytree_node(Box, lambda box: ([], None), lambda items, label: Box(1, label))
        found = torch.func.grad(lambda box: (box.value**2).sum())(Box(torch.ones(2), "k"))
        assert (found.label, found.value.tolist()) == ("k", [2.0, 2.0])
        assert torch.vmap(lambda box: box.value + 1)(Box(torch.ones(2), "k")).tolist() == [2.0, 2.0]
    finally:
        pytree._deregister_pytree_node(Box)


def test_other_structures_are_refused():
    with pytest.raises(ValueError, match="Node type mismatch"):
        pytree.tree_map(lambda x, y: x, (1, 2), [1, 2])
    with pytest.raises(ValueError, match="Node arity mismatch"):
        pytree.tree_map(lambda x, y: x, (1, 2), (1,))
    with pytest.raises(ValueError, match="Node keys mismatch"):
        pytree.tree_map(lambda x, y: x, {"a": 1}, {"b": 1})
    with pytest.raises(ValueError, match="Node context mismatch"):
        pytree.tree_map(lambda x, y: x, Pair(1, 2), namedtuple("Other", "x y")(1, 2))


@pytest.mark.parametrize("tree", VALUES, ids=repr)
def test_structures_are_written_and_read(tree):
    pytree._register_namedtuple(Pair, serialized_type_name="pairs.Pair")
    spec = pytree.tree_structure(tree)
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec


def test_structures_that_cannot_be_written_are_refused():
    kind = type("Lid", (), {})
    pytree.register_pytree_node(kind, lambda lid: ([], None), lambda items, context: kind())
    try:
        with pytest.raises(NotImplementedError, match="No registered serialization name"):
            pytree.treespec_dumps(pytree.tree_structure(kind()))
    finally:
        pytree._deregister_pytree_node(kind)
    with pytest.raises(ValueError, match="Unknown protocol 7"):
        pytree.treespec_dumps(pytree.tree_structure([1]), 7)
    with pytest.raises(NotImplementedError, match=r"Deserializing a\.B"):
        pytree.treespec_loads('[1, {"type": "a.B", "context": "null", "children_spec": []}]')
    with pytest.raises(ValueError, match="must be None or registered"):
        pytree.register_pytree_node(kind, None, None, to_dumpable_context=str)


def test_fields_of_dataclasses_that_are_none_belong_to_the_structure():
    @dataclasses.dataclass
    class Batch:
        x: int
        y: int | None = 0
        size: int = 3

    pytree.register_dataclass(Batch, drop_field_names=["size"])
    leaves, structure = pytree.tree_flatten(Batch(1, None, 5))
    assert (leaves, structure.context) == ([1], [["x"], ["y"]])
    assert pytree.tree_unflatten([7], structure) == Batch(7, None)
    assert pytree.keystr(pytree.tree_flatten_with_path(Batch(1, None))[0][0][0]) == ".x"
