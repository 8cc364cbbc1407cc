"""The context that switches modes of a thread, and the modes of code outside a transform."""

import pytest

import adjoint as torch
from adjoint.tape import modes


def test_modes_have_other_values_within_the_block_and_their_own_afterwards():
    before = dict(vars(modes.STATE))
    with modes.switched(grad_enabled=False, view_replay=True):
        assert not torch.is_grad_enabled() and modes.STATE.view_replay
        with modes.switched(grad_enabled=True):
            assert torch.is_grad_enabled() and modes.STATE.view_replay
        assert not torch.is_grad_enabled()
    assert vars(modes.STATE) == before
    assert not (modes.FLAGS.no_grad or modes.FLAGS.special)


def test_an_error_within_the_block_restores_the_modes():
    before = dict(vars(modes.STATE))
    with pytest.raises(KeyError), modes.switched(inference=True, grad_enabled=False):
        raise KeyError
    assert vars(modes.STATE) == before


def test_a_mode_that_does_not_exist_is_an_error():
    before = dict(vars(modes.STATE))
    with pytest.raises(KeyError, match="unknown"), modes.switched(unknown=True):
        pass
    assert vars(modes.STATE) == before


def test_code_outside_a_transform_sees_neither_it_nor_those_within():
    seen = []

    def inner(x):
        levels = modes.STATE.interpreters
        seen.append(modes.run_outside(levels[0], lambda: (modes.STATE.interpreters, modes.STATE.transforms)))
        return x.sum() + len(levels)

    torch.vmap(torch.vmap(inner))(torch.ones(2, 3, 4))
    assert seen == [((), ())]
