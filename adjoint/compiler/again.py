"""Second derivatives of compiled functions. The function runs again, as it ran before the effects of the call."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import adjoint as torch
from adjoint.optim.lr_scheduler import LRScheduler

from .._runtime.tracebacks import warn
from ..dispatch.source import compile_source
from ..optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks
from ..tape.versions import shared_counter
from ..tensor import Tensor
from .backward import tensors_of
from .expectations import MISSED, States, draws
from .known import Method, is_of_host, own_name
from .program import Constant
from .steps import Step
from .stores import Setting
from .tracer import Stop


class Again:
    """Runs a function again if the objects that it reads have not changed, and undoes its effects.

    `changed`: the sources of the tensors that it changes in place. `targets`, `keys`: the sources of the objects to which it
    stores, and the attributes or elements. `stored`: its last stores to other objects than gradients. `lists`: the lists to
    which it appends. `states`: the generators from which it draws, or None. `owners`: the objects whose methods the program
    calls, such as optimizers, and their arguments.
    `positions`: the positions of the results with history, or of a view of such a result, among the returned and stored
    tensors. `precision`: the dtype of autocast, or None if it is off. `variant`: a reference to the variant, which runs the
    code `unchanged` in later calls: the function itself, so that it runs only once.
    """

    variant: Any
    unchanged: str

    def __init__(self, written: Any) -> None:
        program, source, stores = written.program, written.source, written.observer.stores
        forward = program.instructions[: program.boundary]
        hosts = [each for each in forward if is_of_host(each)]
        settings = [each.function for each in hosts if isinstance(each.function, Setting)]
        called = [each.function for each in hosts if isinstance(each.function, (Method, Step))]
        self.owners = [owner for each in called for owner in (each.owner, *each.args)]
        if any(map(calls_user, self.owners)):
            raise Stop("a result keeps its graph, and a step calls functions of the user")
        clearing = [each for each in hosts if each.name in ("set_grad", "zero_grad")]
        leaves = [each.value for given in clearing for each in given.operands if isinstance(each, Constant)]
        leaves += [each.source for each in program.inputs.values() if each.kind == "grad"]
        inputs = {number: place_of(source, each) for number, each in program.inputs.items()}
        self.function, self.namespace, self.precision = written.function, source.namespace, written.observer.modes[-1]
        self.changed = [inputs[number] for number in program.changes]
        self.stored = [(each.target, each.key) for each in stores.made.values()]
        stored = [*self.stored, *[(each.target, each.key) for each in settings]]
        places = [each for each in stored if each[1] is not None]
        self.lists = [*{id(target): target for target, key in stored if key is None}.values()]
        self.targets = [*map(source.constant, [target for target, _ in places]), *map(source.tensor, leaves)]
        self.keys = [key for _, key in places] + ["_grad"] * len(leaves)
        self.states = States(forward) if any(map(draws, forward)) else None
        made = tensors_of([written.result, stores.values])
        known = {id(each._base): (position, True) for position, each in enumerate(made)}
        known |= {id(each): (position, False) for position, each in enumerate(made)}
        self.positions = [known[id(root)] for root in written.roots]
        self.reads = [
            (each, inputs[number]) for number, each in program.inputs.items() if number not in program.changes
        ]

    def lines(self, source: Any) -> list[str]:
        """Return the line that records how things are before the effects."""
        if not (self.changed or self.targets or self.lists or self.owners or self.states):
            return ["earlier = None"]
        drawn = "None" if self.states is None else "before"
        return [
            f"earlier = {source.constant(self)}.now([{', '.join(self.changed)}], [{', '.join(self.targets)}], {drawn})"
        ]

    def source(self, written: Any, watched: list[str]) -> str:
        """Return the source of what a node keeps.

        The versions of the tensors in `watched` are tested elsewhere. The elements of containers may be replaced.
        """
        reads = []
        for each, place in self.reads:
            reads += [f"{place}, "] if each.kind == "argument" and place.count("[") > 1 else []
            reads += [] if place in watched else [f"{place}._counter and {place}._counter[0], "]
        now = f"({''.join(reads)})"
        self.conditions = "\n".join([*written.conditions, f"    return {now}"])
        return f"({written.source.constant(self)}, args, kwargs, {now}, earlier)"

    def __call__(self, args: Any, kwargs: Any, before: tuple[Any, ...], earlier: Any) -> list[Any]:
        """Return the results with history. `earlier`: how things were before the effects of the call."""
        namespace = dict(self.namespace)
        compile_source(self.conditions, "<adjoint conditions>", namespace)
        with (
            self.undone(earlier),
            torch.enable_grad(),
            torch.autocast("cpu", self.precision, self.precision is not None),
        ):
            now = namespace["run"](args, kwargs)
            if type(now) is not tuple or not all(map(is_same, now, before)):
                raise RuntimeError(
                    "this gradient needs a compiled function again, but what the function reads has changed; call it without "
                    "torch.compile"
                )
            lengths = [*map(len, self.lists)]
            result = self.function(*args, **kwargs)
            added = [iter(each[length:]) for each, length in zip(self.lists, lengths, strict=True)]
            appended = {id(each): items for each, items in zip(self.lists, added, strict=True)}
            values = [next(appended[id(each)]) if key is None else value_at(each, key) for each, key in self.stored]
            found = tensors_of([result, values])
        if (variant := self.variant()) is not None and "unchanged" not in vars(variant):
            compile_source(self.unchanged, "<adjoint compiled function>", namespace)
            variant.unchanged = variant.run = namespace["run"]
            name = getattr(self.function, "__qualname__", type(self.function).__name__)
            warn(f"torch.compile runs {name} as it is: its gradients are recorded or batched", UserWarning)
        return [found[position]._base if of_base else found[position] for position, of_base in self.positions]

    # --- effects --------------------------------------------------------------------------------------------------------

    def now(self, tensors: list[Tensor], targets: list[Any], drawn: Any) -> Any:
        """Return how things are: tensors, their elements and versions, objects, what is stored there, random states, owners."""
        elements = [(each._array.copy("K"), shared_counter(each)[0]) for each in tensors]
        return tensors, elements, targets, [*map(value_at, targets, self.keys)], drawn, [*parts_of(self.owners)]

    def put(self, now: Any) -> None:
        """Restore how things were."""
        tensors, elements, targets, values, drawn, parts = now
        for tensor, (array, version) in zip(tensors, elements, strict=True):
            tensor._array[...], shared_counter(tensor)[0] = array, version
        for part, content in parts:
            if isinstance(part, Tensor):
                part._array[...], shared_counter(part)[0], part._grad = content
            else:
                part.clear()
                (part.extend if isinstance(part, list) else part.update)(content)
        for target, key, value in zip(targets, self.keys, values, strict=True):
            if value is not MISSED:
                (target.__setitem__ if type(target) is dict else partial(setattr, target))(key, value)
            elif value_at(target, key) is not MISSED:
                (target.__delitem__ if type(target) is dict else target.__delattr__)(key)
        if self.states is not None:
            self.states.restored(drawn)

    @contextmanager
    def undone(self, earlier: Any) -> Iterator[None]:
        """A context in which things are as they were before the effects of a call."""
        if earlier is None:
            yield
            return
        tensors, _, targets, *_ = earlier
        now, lengths = self.now(tensors, targets, self.states and self.states()), [*map(len, self.lists)]
        try:
            self.put(earlier)
            yield
        finally:
            self.put(now)
            for each, length in zip(self.lists, lengths, strict=True):
                del each[length:]


def calls_user(owner: Any) -> bool:
    """Return whether an optimizer, a schedule, a scaler or an averaged model calls functions of the user."""
    found = [type(owner)]
    for value in (*vars(owner).values(), _global_optimizer_pre_hooks, _global_optimizer_post_hooks):
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
        found += [each for each in parts if callable(each) and not isinstance(each, torch.nn.Module)]
    return not all(own_name(each.__module__).startswith("adjoint") for each in found)


def parts_of(owners: list[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the dictionaries, lists and tensors that objects contain, each with its content."""
    seen, values = set[int](), [*owners]
    while values:
        value = values.pop()
        if isinstance(value, (torch.optim.Optimizer, LRScheduler, torch.amp.GradScaler, torch.nn.Module)):
            value = vars(value)
        if not isinstance(value, (dict, list, Tensor)) or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, Tensor):
            yield value, (value._array.copy("K"), shared_counter(value)[0], value._grad)
            values.append(value._grad)
        else:
            yield value, copy.copy(value)
            values += value.values() if isinstance(value, dict) else value


def place_of(source: Any, given: Any) -> str:
    """Return the source of an input of a program, as a tensor."""
    if given.kind == "argument":
        return str(given.source)
    return f"{source.tensor(given.source)}{'._grad' * (given.kind == 'grad')}"


def value_at(target: Any, key: Any) -> Any:
    """Return an attribute of an object or an element of a dictionary, or MISSED."""
    return target.get(key, MISSED) if type(target) is dict else getattr(target, key, MISSED)


def is_same(one: Any, other: Any) -> bool:
    """Return whether two values are the same tensor, or the same version (0 and None are equal)."""
    return one is other or (type(one) is not Tensor and type(other) is not Tensor and (one or 0) == (other or 0))
