"""Threads, nested backwards, hooks, modes and exceptions together: no gradient is lost, and no state remains."""

import random
import threading
from typing import Any

import adjoint as torch
from adjoint.tape import modes

THREADS, ROUNDS = 6, 25


class Reentrant(torch.autograd.Function):
    """A function whose backward runs another backward. The inner backward may fail."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, fails: bool) -> torch.Tensor:
        ctx.fails = fails
        with torch.enable_grad():
            ctx.x = x.detach().requires_grad_()
            ctx.y = (ctx.x * ctx.x).sum()
        return ctx.y.detach()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        with torch.enable_grad():
            ctx.y.backward()
        if ctx.fails:
            raise ValueError("on purpose")
        return grad * ctx.x.grad, None


def test_everything_at_once() -> None:
    shared = torch.ones(3, requires_grad=True)
    hooked: list[int] = []
    queued: list[int] = []
    errors: list[BaseException] = []
    succeeded = [0] * THREADS
    queue = torch.autograd.Variable._execution_engine.queue_callback

    def hook(grad: torch.Tensor) -> None:
        hooked.append(1)
        queue(lambda: queued.append(1))

    def one_round(number: int, random_number: random.Random) -> None:
        fails = random_number.random() < 0.3
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
            y = shared * 2
            y.register_hook(hook)
            z = Reentrant.apply(y, fails)
            if random_number.random() < 0.5:
                with torch.no_grad():
                    assert not (shared * 2).requires_grad
            mode = torch.autograd.profiler.profile() if random_number.random() < 0.3 else torch.enable_grad()
            try:
                with mode:
                    z.backward()
                succeeded[number] += 1
                assert not fails
            except ValueError:
                assert fails

    def run(number: int) -> None:
        random_number = random.Random(number)
        try:
            for _ in range(ROUNDS):
                one_round(number, random_number)
                assert torch.is_grad_enabled()
                assert modes.STATE.task is None
                assert modes.STATE.saved_tensor_hooks == ()
        except BaseException as error:  # the waiting thread reports the error
            errors.append(error)

    gate = dict(modes.FLAGS.no_grad), dict(modes.FLAGS.special)  # these change if a thread does not leave a mode
    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    total = sum(succeeded)
    assert 0 < total < THREADS * ROUNDS
    assert len(hooked) == len(queued) == total
    # The derivative of (2 s)^2 is 8 s.
    assert shared.grad is not None
    assert shared.grad.tolist() == [8.0 * total] * 3
    assert (modes.FLAGS.no_grad, modes.FLAGS.special) == gate


def test_backwards_a_thousand_deep() -> None:
    class Deep(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.x = x.detach() - 1
            return ctx.x.clone()

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            if ctx.x >= 0:
                with torch.enable_grad():
                    Deep.apply(ctx.x.requires_grad_()).backward()
            return grad

    x = torch.tensor(1000.0, requires_grad=True)
    Deep.apply(x).backward()
    assert x.grad is not None
    assert x.grad.item() == 1.0


def test_a_mode_that_another_thread_has_left_since_changes_no_bit():
    from adjoint.dispatch import slow_path
    from adjoint.dispatch.declaration import OPERATORS

    x = torch.full((3, 4), 1.3817732)
    assert slow_path.call(OPERATORS["sum_all"], (x, None), None).item() == x.sum().item()
