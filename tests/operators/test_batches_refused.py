"""An operator that refuses an example of a wrong rank or size also refuses a batch of such examples."""

import pytest

import adjoint as torch
from adjoint.operators import OPERATORS

from .samples import SAMPLES
from .test_every_operator import IN_PLACE_ONLY, apply, is_sparse

NAMES = [name for name in SAMPLES if name not in IN_PLACE_ONLY and not is_sparse(OPERATORS[name])]

# These operators accept no batches.
NEVER = ("dynamic shape", "differently shaped Tensor")


def others(tensor):
    """Return tensors with the same elements and other ranks or sizes."""
    yield tensor.unsqueeze(0).expand(2, *tensor.shape).clone()
    if tensor.dim():
        yield torch.cat([tensor, tensor], -1)
        yield tensor.reshape(-1).clone()
    if tensor.numel():
        yield tensor.reshape(-1)[0].clone()
    if tensor.dim() and tensor.shape[0]:
        yield tensor[0].clone()
    if tensor.dim() > 1:
        yield torch.cat([tensor, tensor], 0)


def refused(function, *args):
    """Return the error of a call, or None."""
    try:
        function(*args)
    except Exception as error:  # after any error, the operator must refuse the batch too
        return error
    return None


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_is_refused_as_one_example_is(name):
    for call in SAMPLES[name][:2]:
        args, kwargs, _ = call.build(call.complex_numbers == "only", requires_grad=False)
        tensors = [place for place, value in enumerate(args) if isinstance(value, torch.Tensor)]
        for place in tensors:
            for other in others(args[place]):
                given = [*args[:place], other, *args[place + 1 :]]
                alone = refused(apply, name, call, given, kwargs)
                if alone is None:
                    continue
                for places in ([place], tensors):
                    batched = refused(mapped, OPERATORS[name].function, given, kwargs, places)
                    assert batched is not None, f"{[tuple(given[p].shape) for p in tensors]}: {alone}"


def mapped(function, args, kwargs, places):
    def call(*examples):
        given = list(args)
        for place, example in zip(places, examples, strict=True):
            given[place] = example
        return function(*given, **kwargs)

    return torch.vmap(call, randomness="different")(*(torch.stack([args[place]] * 2) for place in places))


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_is_accepted_as_one_example_is(name):
    for call in SAMPLES[name][:3]:
        args, kwargs, _ = call.build(call.complex_numbers == "only", requires_grad=False)
        places = [place for place, value in enumerate(args) if isinstance(value, torch.Tensor)]
        if not places:
            continue
        error = refused(mapped, OPERATORS[name].function, args, kwargs, places[:1])
        assert error is None or any(never in str(error) for never in NEVER), error


def test_other_examples_are_checked_anew_and_nothing_is_changed_by_a_check():
    three, four = torch.rand(2, 3, 3), torch.rand(2, 3, 3, 3)
    assert torch.vmap(torch.trace)(three).shape == (2,)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="trace: expected a matrix, but got tensor with dim 3"):
            torch.vmap(torch.trace)(four)
    mean, var = torch.zeros(3), torch.ones(3)
    x = torch.rand(2, 4, 3)
    torch.vmap(lambda x, m, v: torch.nn.functional.batch_norm(x, m, v, training=True))(
        x, means := mean.expand(2, 3).clone(), var.expand(2, 3).clone()
    )
    torch.testing.assert_close(means, x.mean(1) * 0.1)
    state = torch.get_rng_state()
    torch.vmap(torch.linalg.qr)(three)
    assert torch.equal(state, torch.get_rng_state())
    singular = torch.zeros(2, 3, 3)
    with pytest.raises(torch.linalg.LinAlgError, match="Batch element 0"):
        torch.vmap(torch.linalg.inv)(singular)
