"""A dictionary whose entries live as long as their keys."""

import weakref

import pytest

import adjoint as torch
from adjoint._runtime.weak_keys import WeakKeys


class Key:
    """A class whose instances can be weakly referenced."""


def test_entries_live_as_long_as_their_keys():
    entries, first, second = WeakKeys(), Key(), Key()
    entries[first], entries[second] = 1, 2
    entries[first] = 3
    assert (len(entries), entries[first], entries.get(second), first in entries) == (2, 3, 2, True)
    assert list(entries) == [first, second]
    del first
    assert len(entries) == 1
    assert entries.pop(second, None) == 2
    assert entries.pop(second, None) is None
    entries.setdefault(second, []).append(1)
    del second
    assert len(entries) == 0


def test_a_dictionary_dies_without_the_collector_and_before_its_keys():
    entries, key, value = WeakKeys(), Key(), Key()
    entries[key] = value
    held = weakref.ref(value)
    del value
    assert held() is not None
    del entries
    assert held() is None


def test_cleared_entries_are_not_forgotten_twice():
    entries, key = WeakKeys(), Key()
    entries[key] = 1
    entries.clear()
    del key
    assert not entries


def test_dictionaries_by_identity():
    """`torch.utils.weak` compares keys by identity, even if `==` compares the values of the keys."""
    weak = torch.utils.weak
    x, y = torch.ones(2), torch.ones(2)
    names = weak.WeakIdKeyDictionary({x: "x"})
    names[y] = "y"
    assert names[x] == "x"
    assert names[y] == "y"
    assert list(names.copy().values()) == ["x", "y"]
    assert 3 not in names
    assert weak.WeakIdRef(x) == weak.WeakIdRef(x) != weak.WeakIdRef(y)
    reference = weak.TensorWeakRef(x)
    assert reference() is x
    del x
    assert len(names) == 1
    assert reference() is None
    with pytest.raises(KeyError):
        names[torch.ones(2)]
    with pytest.raises(AssertionError, match="expected torch\\.Tensor"):
        weak.TensorWeakRef(3)
