"""Keyboard interrupts at random moments: after each interrupt the library is unchanged, and the next step is correct."""

from __future__ import annotations

import contextlib
import io
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from opcode import opname
from types import FrameType
from typing import Any

import adjoint as torch
from adjoint import func, nn
from adjoint.autograd import forward_ad
from adjoint.utils._python_dispatch import TorchDispatchMode
from adjoint.utils.checkpoint import checkpoint
from adjoint.utils.data import DataLoader, TensorDataset

from . import Outcome, experiment
from ._children import in_child, now
from ._health import health, shared_model

F = nn.functional
WORK: dict[str, Callable[[], None]] = {}
"""The functions to interrupt, by name."""

FEW = 100
"""The number of tries in one child process."""


def work(function: Callable[[], None]) -> Callable[[], None]:
    """Register a function to be interrupted."""
    WORK[function.__name__] = function
    return function


def leaf(*shape: int) -> Any:
    """A tensor that requires grad."""
    return torch.linspace(-1, 1, max(1, __import__("math").prod(shape))).reshape(shape).requires_grad_()


@work
def forward() -> None:
    """A forward with a graph, and a forward without a graph."""
    x, w = leaf(4, 8), leaf(8, 8)
    for _ in range(20):
        y = torch.tanh(x @ w).softmax(-1)
        with torch.no_grad():
            y = (y * 2).sum()
        F.layer_norm(x, (8,)).relu().mean()


@work
def backward() -> None:
    """Backwards of all kinds."""
    x, w = leaf(4, 8), leaf(8, 8)
    for _ in range(10):
        torch.tanh(x @ w).sum().backward()
        (g,) = torch.autograd.grad((x * x * x).sum(), x, create_graph=True)
        g.sum().backward()
        torch.autograd.grad(x * 2, x, torch.eye(32).reshape(32, 4, 8), is_grads_batched=True)


@work
def optimizers() -> None:
    """Steps of optimizers."""
    w = leaf(8, 8)
    many = [
        torch.optim.SGD([w], 0.1, momentum=0.9),
        torch.optim.Adam([w]),
        torch.optim.AdamW([w]),
        torch.optim.RMSprop([w]),
    ]
    for _ in range(5):
        for optimizer in many:
            optimizer.zero_grad()
            (w * w).sum().backward()
            optimizer.step()

            def closure(optimizer: Any = optimizer) -> Any:
                optimizer.zero_grad()
                loss = (w * w).sum()
                loss.backward()
                return loss

            optimizer.step(closure)


@work
def data() -> None:
    """Batches from a loader."""
    loader = DataLoader(TensorDataset(torch.arange(32.0), torch.arange(32)), batch_size=4, shuffle=True)
    for _ in range(3):
        for x, _ in loader:
            x.sum()


@work
def modes() -> None:
    """Modes that are entered, left and nested, also modes that take effect in their constructors."""

    @torch.no_grad()
    def decorated(x: Any) -> Any:
        return x * 2

    @torch.no_grad()
    def generator(x: Any) -> Iterator[Any]:
        yield x * 2
        yield x * 3

    x = leaf(4)
    for _ in range(50):
        with torch.no_grad():
            x * 2
            with torch.enable_grad():
                x * 2
        with torch.inference_mode():
            x * 2
            with torch.inference_mode(False):
                x + 1
        with torch.set_grad_enabled(False):
            x * 2
        with torch.autograd.set_multithreading_enabled(False), torch.autograd.enforce_grad_layout_policy(False):
            x * 2
        decorated(x)
        for _ in generator(x):
            pass
        with torch.autograd.graph.disable_saved_tensors_hooks("no"):
            x * 2


@work
def devices() -> None:
    """Default devices, and overrides."""

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return function(*args, **(kwargs or {}))

    for _ in range(20):
        with torch.device("meta"):
            torch.ones(3) * 2
        with Mode(), Mode():
            torch.ones(3) * 2
        with torch._C.DisableTorchFunctionSubclass(), torch._C.DisableTorchFunction():
            torch.ones(3) * 2


@work
def hooks() -> None:
    """Hooks of tensors, nodes, modules, leaves and saved tensors."""
    x, module = leaf(4, 3), nn.Linear(3, 3)
    handles = [
        module.register_forward_hook(lambda *_: None),
        module.register_forward_pre_hook(lambda *_: None),
        module.register_full_backward_hook(lambda *_: None),
        module.weight.register_post_accumulate_grad_hook(lambda p: None),
        x.register_hook(lambda g: g * 1),
    ]
    graph = torch.autograd.graph
    for _ in range(8):
        with graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t * 1), graph.save_on_cpu():
            y = module(x).exp()
            y.register_hook(lambda g: None)
            y.grad_fn.register_prehook(lambda g: None)
            y.grad_fn.register_hook(lambda a, b: None)
        y.sum().backward()
        with graph.allow_mutation_on_saved_tensors():
            z = x.clone()
            loss = (z * z).sum()
            z.zero_()
            loss.backward()
        with graph.register_multi_grad_hook([x], lambda g: None):
            x.exp().sum().backward()
    for handle in handles:
        handle.remove()


@work
def transforms() -> None:
    """Transforms of functions."""
    x = torch.linspace(0, 1, 3)

    def function(x: Any) -> Any:
        return (x.sin() * x).sum()

    for _ in range(2):
        func.grad(function)(x)
        func.vmap(func.grad(function))(torch.ones(4, 3))
        func.jacrev(torch.sin)(x)
        func.jacfwd(torch.sin)(x)
        func.hessian(function)(x)
        func.vjp(torch.sin, x)[1](x)
        func.jvp(torch.sin, (x,), (x,))
        func.linearize(torch.sin, x)[1](x)
        func.functionalize(lambda x: x.clone().add_(1))(x)
        func.vmap(lambda x: x.cumsum(0).unsqueeze(0))(torch.ones(4, 3))


@work
def functional() -> None:
    """Calls of a module with other parameters."""
    module = shared_model()
    given = {name: value.detach() * 2 for name, value in module.named_parameters()}
    for _ in range(40):
        func.functional_call(module, given, (torch.ones(3),))
    torch.autograd.functional.hessian(lambda x: (x**3).sum(), torch.ones(2))
    torch.autograd.functional.jacobian(torch.sin, torch.ones(2), vectorize=True)


@work
def forward_mode() -> None:
    """Dual tensors."""
    for _ in range(20):
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(torch.ones(3), torch.ones(3))
            forward_ad.unpack_dual(dual.sin() * dual)
        with forward_ad._set_fwd_grad_enabled(False):
            pass


@work
def recomputation() -> None:
    """Checkpointed functions."""
    x, w = leaf(4, 8), leaf(8, 8)
    for _ in range(3):
        for reentrant in (True, False):
            checkpoint(lambda x: F.dropout(torch.tanh(x @ w), 0.5), x, use_reentrant=reentrant).sum().backward()
        with (
            torch.utils.checkpoint.set_checkpoint_early_stop(False),
            torch.utils.checkpoint.set_checkpoint_debug_enabled(None),
        ):
            checkpoint(lambda x: torch.tanh(x @ w), x, use_reentrant=False).sum().backward()


@work
def taking_over() -> None:
    """Modes below autograd."""

    class PassOn(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    x = leaf(4, 3)
    with PassOn():
        y = (x * 2).tanh()
        with PassOn():
            y = y + torch.ones(3)
        y.sum().backward()
    torch.func.grad(lambda x: x.sin().sum())(x)


@work
def saving() -> None:
    """Checkpoint files."""
    module, optimizer = nn.Linear(8, 8), None
    optimizer = torch.optim.Adam(module.parameters())
    for _ in range(3):
        file = io.BytesIO()
        torch.save({"model": module.state_dict(), "optimizer": optimizer.state_dict()}, file)
        file.seek(0)
        module.load_state_dict(torch.load(file)["model"])


@work
def profiles() -> None:
    """Profiles."""
    x = leaf(3)
    for _ in range(3):
        with torch.autograd.profiler.profile() as profile, torch.autograd.profiler.record_function("mine"):
            F.linear(x, torch.rand(2, 3)).sum().backward()
        profile.key_averages()
        with torch.profiler.profile() as profile:
            x.double().sum().backward()


@work
def inspection() -> None:
    """Pictures, traces and explanations of graphs."""
    x = leaf(3)
    for _ in range(2):
        y = (x.exp() * x).sum()
        str(torch.inspect.graph(y))
        torch.inspect.trace_backward(y)
        torch.inspect.explain(y) if hasattr(torch.inspect, "explain") else None


@work
def anomalies() -> None:
    """Anomaly detection and gradient checks."""
    x = leaf(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(5):
            with torch.autograd.detect_anomaly():
                (x * x).sum().backward()
            with torch.autograd.set_detect_anomaly(True):
                (x * x).sum().backward()
    torch.autograd.gradcheck(torch.sin, (leaf(2).double().detach().requires_grad_(),))


@work
def functions() -> None:
    """Custom functions."""

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2 + 0 * ctx.saved_tensors[0]

    x = leaf(4)
    for _ in range(20):
        Double.apply(x).sum().backward()


@work
def generators() -> None:
    """Random numbers."""
    generator = torch.Generator()
    for _ in range(20):
        with torch.random.fork_rng():
            torch.manual_seed(1)
            torch.rand(100)
        F.dropout(torch.ones(50), 0.5)
        torch.randn(7, generator=generator)
        torch.randperm(20)


@work
def large() -> None:
    """Kernels in several threads."""
    x, w = leaf(256, 1024), leaf(1024, 64)
    optimizer = torch.optim.Adam([x])
    for _ in range(3):
        F.gelu(x).softmax(-1).matmul(w).sum().backward()
        (x * x).sum()
        optimizer.step()


@work
def loss_scaling() -> None:
    """Other contexts that change settings."""
    for _ in range(20):
        with torch.autocast("cpu") if hasattr(torch, "autocast") else contextlib.nullcontext():
            torch.ones(3) * 2
        with torch.no_grad(), warnings.catch_warnings():
            torch.nn.utils.clip_grad_norm_([leaf(3)], 1.0)
        with torch.autograd._unsafe_preserve_version_counter(torch.ones(3)):
            pass


class Strike:
    """A signal handler that raises as Python's handler does, and records where the signal arrived."""

    def __init__(self) -> None:
        self.frames: list[tuple[str, str, int, str]] = []

    def __call__(self, number: int, frame: FrameType | None) -> None:
        while frame is not None and frame.f_code is not struck.__code__:
            code = frame.f_code
            instruction = opname[code.co_code[frame.f_lasti]]
            self.frames.append(
                (pathlib.Path(code.co_filename).name, code.co_qualname, frame.f_lineno or 0, instruction)
            )
            frame = frame.f_back
        raise KeyboardInterrupt

    def __str__(self) -> str:
        """The innermost frames at the interrupt."""
        return " < ".join(
            f"{name}:{line} {function} {instruction}" for name, function, line, instruction in self.frames[:4]
        )


def struck(function: Callable[[], None], delay: float) -> tuple[bool, str | None]:
    """Interrupt `function()` after `delay` seconds.

    Return whether the interrupt came before the end, and a description of the failure.
    """
    lost: list[Any] = []
    sys.unraisablehook = lost.append
    try:
        signal.setitimer(signal.ITIMER_REAL, delay)
        function()
    except KeyboardInterrupt:
        return True, f"ignored in {lost[0].object!r}" if lost else None
    except BaseException as error:
        return True, f"raises {type(error).__name__}: {str(error)[:80]}"
    try:
        missed = signal.getitimer(signal.ITIMER_REAL)[0] > 0
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        return False, None
    if not missed:
        return True, f"lost in {lost[0].object!r}" if lost else "lost"
    return False, None


def tries(name: str, count: int, seed: int) -> Iterator[str | None]:
    """Interrupt the work of this name `count` times.

    For each interrupt, yield a description of the failure, or None. Stop after a failure.
    """
    function, chance = WORK[name], random.Random(seed)
    function()
    duration = 1.0
    for _ in range(3):
        start = now()
        function()
        duration = min(duration, now() - start)
    ill = health()
    while count:
        signal.signal(signal.SIGALRM, strike := Strike())
        hit, wrong = struck(function, chance.uniform(1e-6, duration))
        if wrong is None:
            wrong = ill()
        if hit or wrong:
            count -= 1
            yield None if wrong is None else f"{name}: {wrong}; struck at {strike}"
        if wrong:
            return


@experiment("interrupts", tries=5000, short=40)
def interrupts(count: int) -> Outcome:
    """Interrupt forward, backward, optimizers, loaders, modes, hooks, transforms, profiles ..., at random moments."""
    outcome, seed = Outcome(), 0
    with tempfile.TemporaryDirectory():
        while outcome.tried < count:
            for name in WORK:
                left = min(FEW, -(-count // len(WORK)), count - outcome.tried)
                while left > 0:
                    seed += 1
                    found, end = in_child(lambda: tries(name, left, seed), 60.0)  # noqa: B023
                    if end is not None:
                        found = [*found, f"{name}: {end}"]
                        left = 0
                    for failure in found:
                        outcome.note(failure)
                    left -= max(len(found), 1)
    return outcome


@experiment("interrupts under load", tries=5000, short=0)
def interrupts_under_load(count: int) -> Outcome:
    """Interrupts with a busy loop on each processor, so that interrupts come late, and threads wait for each other."""
    loop = [sys.executable, "-c", "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"]
    busy = [subprocess.Popen(loop) for _ in range(os.cpu_count() or 1)]
    try:
        return interrupts(count)
    finally:
        for each in busy:
            each.kill()
            each.wait()
