"""Exceptions in every user function that the library calls: the library's state is unchanged, and all tensors are freed."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import adjoint as torch
from adjoint import func, nn
from adjoint.utils.checkpoint import checkpoint, checkpoint_sequential
from adjoint.utils.data import DataLoader, Dataset, IterableDataset

from . import Outcome, experiment
from ._children import in_child
from ._health import health

F = nn.functional
Fragile = Callable[[Callable[..., Any]], Callable[..., Any]]
Watched = Callable[[Any], Any]
WORK: dict[str, Callable[[Fragile, Watched], None]] = {}
"""By name: a function that gives the library functions made `fragile`, and the tensors that it makes to `watched`."""


class Fault(Exception):
    """The exception that fragile functions raise."""


def work(function: Callable[[Fragile, Watched], None]) -> Callable[[Fragile, Watched], None]:
    """Register a function."""
    WORK[function.__name__] = function
    return function


def leaf(*shape: int) -> Any:
    """Return a tensor that requires grad."""
    return torch.ones(shape).mul(0.5).requires_grad_()


@work
def hooks_of_tensors(fragile: Fragile, watched: Watched) -> None:
    """Hooks of tensors, leaves and nodes."""
    x = watched(leaf(3))
    x.register_hook(fragile(lambda grad: grad * 2))
    x.register_post_accumulate_grad_hook(fragile(lambda leaf: None))
    y = watched(x.exp())
    y.register_hook(fragile(lambda grad: None))
    y.grad_fn.register_prehook(fragile(lambda grads: None))
    y.grad_fn.register_hook(fragile(lambda inputs, outputs: None))
    y.sum().backward()
    torch.autograd.grad((x * x).sum(), x, create_graph=True)
    handle = torch.autograd.graph.register_multi_grad_hook([x], fragile(lambda grads: None))
    try:
        (x * x).sum().backward()
    finally:
        handle.remove()  # the node and the leaf refer to each other


@work
def hooks_of_modules(fragile: Fragile, watched: Watched) -> None:
    """Hooks of modules: before and after, forward and backward, and of state dicts."""
    module = nn.Linear(3, 3)
    watched(module.weight)
    module.register_forward_pre_hook(fragile(lambda *_: None))
    module.register_forward_hook(fragile(lambda *_: None))
    module.register_full_backward_pre_hook(fragile(lambda *_: None))
    module.register_full_backward_hook(fragile(lambda *_: None))
    module.register_state_dict_pre_hook(fragile(lambda *_: None))
    module.register_load_state_dict_pre_hook(fragile(lambda *_: None))
    module.register_load_state_dict_post_hook(fragile(lambda *_: None))
    module(watched(leaf(2, 3))).sum().backward()
    module.load_state_dict(module.state_dict())
    module.apply(fragile(lambda part: None))


@work
def saved_tensors(fragile: Fragile, watched: Watched) -> None:
    """Packing and unpacking of saved tensors."""
    graph = torch.autograd.graph
    x = watched(leaf(4))
    # The packed value must not be the result itself, because the result refers to its node, which refers to the packed value.
    with graph.saved_tensors_hooks(fragile(lambda tensor: tensor.detach()), fragile(lambda packed: packed)):
        y = watched((x.exp() * x).tanh())
    torch.autograd.grad(y.sum(), x, create_graph=True)
    z = watched(x * x)
    z.grad_fn._raw_saved_self.register_hooks(fragile(lambda tensor: tensor), fragile(lambda packed: packed))
    z.sum().backward()


@work
def custom_functions(fragile: Fragile, watched: Watched) -> None:
    """The methods `forward`, `setup_context`, `backward`, `jvp` and `vmap` of custom functions."""

    class Scaled(torch.autograd.Function):
        generate_vmap_rule = False
        forward = staticmethod(fragile(lambda x: x * 2))

        @staticmethod
        @fragile
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        @fragile
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return watched(grad * 2 + 0 * x)

        @staticmethod
        @fragile
        def jvp(ctx: Any, tangent: Any) -> Any:
            return tangent * 2

        @staticmethod
        @fragile
        def vmap(info: Any, dims: Any, x: Any) -> Any:
            return x * 2, dims[0]

    x = watched(leaf(3))
    torch.autograd.grad(Scaled.apply(x).sum(), x, create_graph=True)
    func.jvp(Scaled.apply, (torch.ones(3),), (torch.ones(3),))
    func.vmap(Scaled.apply)(torch.ones(2, 3))
    func.grad(lambda x: Scaled.apply(x).sum())(torch.ones(3))


@work
def old_functions(fragile: Fragile, watched: Watched) -> None:
    """Custom functions whose forward takes the context, and custom functions that change their input in place."""

    class Changed(torch.autograd.Function):
        @staticmethod
        @fragile
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            ctx.kept = watched(x.detach().clone())
            return x.mul_(2)

        @staticmethod
        @fragile
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    x = watched(leaf(3))
    Changed.apply(x * 1).sum().backward()
    with torch.no_grad():
        Changed.apply(torch.ones(2))


@work
def recomputed_functions(fragile: Fragile, watched: Watched) -> None:
    """Checkpointed functions, in the first run and in the recomputation."""
    x, w = watched(leaf(3, 3)), watched(leaf(3, 3))
    function = fragile(lambda x: F.dropout(torch.tanh(x @ w), 0.5))
    for reentrant in (True, False):
        checkpoint(function, x, use_reentrant=reentrant).sum().backward()
    outer = fragile(lambda x: checkpoint(function, x, use_reentrant=False) * x)
    checkpoint(outer, x, use_reentrant=False).sum().backward()
    checkpoint_sequential([function, function, function], 2, x, use_reentrant=False).sum().backward()


@work
def transformed_functions(fragile: Fragile, watched: Watched) -> None:
    """Functions within transforms, also within nested transforms."""
    x = watched(torch.linspace(0, 1, 3))
    function = fragile(lambda x: watched(x.sin() * x).sum())
    wide = fragile(lambda x: watched(x.sin()))
    func.grad(function)(x)
    func.vmap(func.grad(function))(torch.ones(2, 3))
    func.jacrev(wide)(x)
    func.jacfwd(wide)(x)
    func.hessian(function)(x)
    func.vjp(wide, x)[1](x)
    func.jvp(wide, (x,), (x,))
    func.linearize(wide, x)[1](x)
    func.functionalize(fragile(lambda x: x.clone().add_(1)))(x)
    torch.autograd.functional.hessian(function, x)
    torch.autograd.functional.jacobian(wide, x, vectorize=True)
    torch.autograd.functional.jvp(wide, x, x)


@work
def modes(fragile: Fragile, watched: Watched) -> None:
    """Functions inside of contexts and decorators, and overrides."""

    class Mode(torch.overrides.TorchFunctionMode):
        @fragile
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return function(*args, **(kwargs or {}))

    x = watched(leaf(3))
    call = fragile(lambda: watched(x * 2))
    for context in (
        torch.no_grad(), torch.enable_grad(), torch.inference_mode(), torch.device("meta"), Mode(),
        torch.autograd.graph.save_on_cpu(), torch.autograd.forward_ad.dual_level(), torch.random.fork_rng(),
        torch.autograd.graph.allow_mutation_on_saved_tensors(), torch.autograd.graph.disable_saved_tensors_hooks("no"),
        torch.autograd.profiler.profile(), torch.autocast("cpu"), torch.inspect.recording(),
    ):  # fmt: skip
        with context:
            call()
    torch.no_grad()(call)()
    with torch.no_grad():
        list(fragile(lambda: iter([1]))())


@work
def subclasses(fragile: Fragile, watched: Watched) -> None:
    """Tensor subclasses that override functions."""

    class Tensor(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            call(function)
            return super().__torch_function__(function, types, args, kwargs or {})

    call = fragile(lambda function: None)
    x = watched(torch.ones(3).as_subclass(Tensor))
    (x * 2 + x).sum().item()
    torch.stack([x, x])


@work
def optimizers(fragile: Fragile, watched: Watched) -> None:
    """Closures and hooks of optimizers, and schedules."""
    w = watched(leaf(3))
    for optimizer in (
        torch.optim.SGD([w], 0.1, momentum=0.9),
        torch.optim.LBFGS([w], max_iter=3, line_search_fn="strong_wolfe"),
    ):
        optimizer.register_step_pre_hook(fragile(lambda *_: None))
        optimizer.register_step_post_hook(fragile(lambda *_: None))

        @fragile
        def closure(optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = watched((w * w).sum())
            loss.backward()
            return loss

        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, fragile(lambda step: 1.0))
        optimizer.step(closure)
        schedule.step()


class _Numbers(Dataset):
    """A dataset whose `__getitem__` is fragile."""

    def __init__(self, item: Callable[..., Any]) -> None:
        self.item = item

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> Any:
        return self.item(index)


class _Stream(IterableDataset):
    """An iterable dataset that is fragile."""

    def __init__(self, item: Callable[..., Any]) -> None:
        self.item = item

    def __iter__(self) -> Iterator[Any]:
        return (self.item(index) for index in range(4))


@work
def data(fragile: Fragile, watched: Watched) -> None:
    """Datasets, samplers and collate functions."""
    item = fragile(lambda index: watched(torch.ones(2) * index))
    collate = fragile(lambda items: watched(torch.stack(items)))
    for dataset in (_Numbers(item), _Stream(item)):
        for batch in DataLoader(dataset, batch_size=2, collate_fn=collate):
            batch.sum()


@work
def checks(fragile: Fragile, watched: Watched) -> None:
    """Functions in gradient checks and under anomaly detection."""
    x = watched(torch.ones(2, dtype=torch.float64).requires_grad_())
    function = fragile(lambda x: watched(x.sin()))
    torch.autograd.gradcheck(function, (x,))
    torch.autograd.gradgradcheck(function, (x,))


class _Text:
    """An object whose `__reduce__` is fragile."""

    def __init__(self, reduce: Callable[..., Any]) -> None:
        self.reduce = reduce

    def __reduce__(self) -> Any:
        return self.reduce()


@work
def files(fragile: Fragile, watched: Watched) -> None:
    """Objects that are saved, and `map_location`."""
    import io

    file = io.BytesIO()
    torch.save([watched(torch.ones(3)), _Text(fragile(lambda: (str, ())))], file)
    file = io.BytesIO()
    torch.save(torch.ones(3), file)
    file.seek(0)
    torch.load(file, map_location=fragile(lambda storage, location: storage))


class Calls:
    """A counter of the calls of fragile functions. The call with number `fatal` raises."""

    def __init__(self, fatal: int) -> None:
        self.fatal = fatal
        self.count = 0
        self.references: list[weakref.ref[Any]] = []

    def fragile(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function. The wrapper raises an error in the fatal call."""

        def wrapper(*args: Any, **names: Any) -> Any:
            self.count += 1
            if self.count == self.fatal:
                raise Fault
            return function(*args, **names)

        return wrapper

    def watched(self, tensor: Any) -> Any:
        """Watch a tensor that must be freed at the end of the work."""
        self.references.append(weakref.ref(tensor))
        return tensor

    def alive(self) -> int:
        """Return the number of watched tensors that are alive."""
        return sum(reference() is not None for reference in self.references)


def struck(name: str, fatal: int) -> tuple[bool, str | None]:
    """Do the work with a fault in the call with number `fatal`.

    Return whether this call exists, and a description of the failure.
    """
    calls = Calls(fatal)
    lost: list[Any] = []
    sys.unraisablehook = lost.append
    came = False
    try:
        WORK[name](calls.fragile, calls.watched)
    except Fault:
        came = True
    except Exception as error:
        cause = error
        while cause is not None and not isinstance(cause, Fault):
            cause = cause.__cause__ or cause.__context__  # type: ignore[assignment]
        came = cause is not None
        wrong = None if came else f"raises {type(error).__name__}: {str(error)[:60]}"
        del error, cause
        if wrong is not None:
            return True, wrong
    if calls.count >= fatal and not came:
        return True, "the exception is lost"
    if lost:
        return True, f"ignored in {lost[0].object!r}"
    return came, None if not calls.alive() else f"{calls.alive()} tensors live"


def tries(name: str) -> Iterator[str | None]:
    """Put a fault into each call of a fragile function. For each fault, yield a description of the failure, or None."""
    WORK[name](lambda function: function, lambda tensor: tensor)  # the first run imports modules and fills caches
    gc.collect()
    gc.disable()
    ill, fatal, came = health(), 1, True
    while came:
        came, wrong = struck(name, fatal)
        wrong = wrong or ill()
        if came or wrong:
            yield None if wrong is None else f"{name}, call {fatal}: {wrong}"
        fatal += 1


@experiment("exceptions", tries=1, short=1)
def exceptions(rounds: int) -> Outcome:
    """An exception in each call of a user function: hooks, packing, custom functions, checkpoints, transforms, data ..."""
    outcome = Outcome()
    for _ in range(rounds):
        for name in WORK:
            found, end = in_child(lambda: tries(name), 60.0)  # noqa: B023
            for failure in found:
                outcome.note(failure)
            if end is not None:
                outcome.note(f"{name}: {end}")
    return outcome
