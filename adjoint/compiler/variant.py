"""One captured program of a function: the conditions under which it replaces the function, and the source that runs it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import Any

from numpy import may_share_memory

from adjoint.device import Size

from ..codegen.llvm.host import HOST
from ..dispatch.source import indented
from ..tape.edges import edge_of
from ..tape.inference_tensors import mark_inference
from ..tape.versions import counting, shared_counter
from ..tensor import Tensor
from .again import Again
from .backward import attach, gradients_of, tensors_of
from .body import Body
from .conditions import (
    CONDITION_NAMES,
    UNREADABLE,
    Check,
    Group,
    Structure,
    checks_of,
    head,
    mode_checks,
    overlap,
)
from .errors import Unsupported
from .expectations import EXPECT, MISSED, missed
from .extents import Differs, Folded, General
from .in_steps import profiled, timed
from .known import MUTABLE, is_constant, is_plain, shown, uncollected
from .objects import Fits, compile_deferred, identical, way_of
from .observer import Observer
from .program import Constant, Program, Reference, Source, made
from .program_text import literal
from .sized import Sized
from .symbols import Symbol, called, is_record, new_record, symbol, symbols_in, unwrapped
from .tracer import Stop, Tracer
from .views import Tail, bases_of, chain


class Variant:
    """A captured program as a function of the arguments. `program` prints as text, and `source` is the code that runs.

    `checks`: the conditions, in the order in which they are tested. `because`: the conditions of earlier programs that were not
    met when this program was captured. `signature`: for a program that computes no gradients, the requirements on the arguments
    and the result, as text. `returned`: the numbers of the values in the result. `example`: the program at the sizes of the
    capture. `sized`: the object that runs a program for any size. `replaced`: the variant whose sizes this variant
    serves too. `write`: a function that writes the code that runs.
    """

    sized: Sized | None = None
    replaced: Variant | None = None
    differences: tuple[str, ...] | list[str] = ()
    written: Body | None = None
    code_in_steps: Any = None

    def __init__(
        self, function: Any, program: Program, namespace: dict[str, Any], checks: list[Check], write: Callable[[], Body]
    ) -> None:
        self.function, self.program, self.checks, self.write = function, program, checks, write
        self.namespace, self.calls = namespace, 0
        self.because: list[str] = []
        self.signature: tuple[list[str], str] | None = None
        self.returned: list[int] = []
        self.example = program

    @property
    def body(self) -> Body:
        """The code that runs, which is written when the program runs first or is inspected."""
        with HOST.lock:  # two threads may run the program at once
            self.written = self.written or self.write()
        return self.written

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Write the source, compile the native functions, and run the program. Return MISSED if they cannot be compiled."""
        run = self.body.run
        if not compile_deferred(self.namespace):
            run = missed
        self.run = run  # type: ignore[method-assign]
        return run(args, kwargs)

    def at_sizes(self) -> list[Variant]:
        """Return a list of this variant and of the variants whose sizes it serves too."""
        return [self] if self.replaced is None else [self, *self.replaced.at_sizes()]

    def origins_of(self, code: Any) -> dict[int, tuple[str, int]] | None:
        """Return the user's lines for the lines of code, if the code belongs to this variant."""
        if code is self.body.run.__code__ or code is self.code_in_steps:
            return self.body.origins
        return None if self.sized is None else self.sized.origins.get(code)

    timed, profiled = timed, profiled

    def unmet(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Return the text of the first condition that a call does not meet."""
        names = {**self.namespace, "args": args, "kwargs": kwargs}
        for check in self.checks:
            try:
                exec(check.load, names)
                if check.condition and not eval(check.condition, names):
                    return check.reason(names)
            except UNREADABLE:
                return check.text
        if any(each.name == EXPECT for each in self.program.instructions):
            return "all branches that depend on tensors are taken as before"
        return (
            "another thread has changed what was read"
            if self.sized is None
            else "conditions on sizes have the same results"
        )


def captured(
    function: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    numbers: set[str],
    dims_of: Callable[[str, Tensor], frozenset[int]] | None = None,
    earlier: Iterable[Variant] = (),
    branches: bool = False,
    stored: set[tuple[int, Any]] | None = None,
    varies: Callable[[str, Any], bool] = lambda place, value: False,
    backend: Any = None,
) -> tuple[Any, Variant | None, str | None]:
    """Call `function`. Return its result, and either the variant that replaces the function or the reason for its absence.

    `numbers`: the places of arguments that are inputs of the program. `dims_of`: for the tensor at a place, the
    dimensions whose sizes may change in later calls. `earlier`: the existing variants. `branches`: whether
    conditions may depend on elements. `stored`: the places to which earlier captures have stored. New places are added.
    `backend`: the `graphs.Backend` that compiles graphs of the function, or None.
    """
    tracer = (Tracer if backend is None else backend.tracer)(program := Program(), branches)
    source = Source(program.place_of)
    given = Structure(source, numbers, varies)
    observer = (Observer if backend is None else backend.observer)(tracer, given, set() if stored is None else stored)
    given.arguments = args, kwargs
    given.read("args", args)
    given.read("kwargs", kwargs)
    if not all(is_plain(tensor) for _, tensor in given.tensors):
        return function(*args, **kwargs), None, None  # a later call may be captured
    for place, tensor in given.tensors:
        observer.input(tensor, "argument", place)
        number = program.by_tensor.get(id(tensor))  # None if it shares the array of another argument
        if dims_of is not None and number is not None and (dims := dims_of(place, tensor)):
            tracer.dims[number] = dims

    def symbolic(place: str, value: Any) -> Any:
        if place not in numbers:
            return value
        number = program.new_value(None)
        program.numbers[number] = place
        return symbol(value, tracer, number, frozenset({place}))

    args = tuple([symbolic(f"args[{index}]", each) for index, each in enumerate(args)])
    kwargs = {name: symbolic(f"kwargs[{name!r}]", each) for name, each in kwargs.items()}
    try:
        with uncollected():
            result = observer.run(function, args, kwargs)
    except BaseException:
        observer.without_symbols()
        raise
    tracer.fix_mixed()
    for each in symbols_in((*args, *kwargs.values(), *observer.stores.symbols)):
        if each.is_fixed:
            (place,) = each.roots
            given.numbers.discard(place)
            given.read(place, each.plain)
    observer.check(result)
    variant = None
    if tracer.reason is None:
        try:
            if any(tensor._edge is not given.edges[id(tensor)] for _, tensor in given.tensors):
                raise Stop("the history of an argument is changed")
            capture = function, tracer, observer, source, given, result
            variant = Written(*capture).variant(earlier) if backend is None else backend.finished(*capture)
        except Stop as error:
            tracer.reason = str(error)
    observer.without_symbols()
    reason, tracer.reason = tracer.reason, tracer.reason or "the capture is over"  # for what the observer is still in
    return unwrapped(result), variant, reason


class Written:
    """Writes the source of a variant that results from a capture.

    `results`: the tensors in the result that operators have made, by identity, with the numbers of their values. `detached`:
    tensors on the memory of an input or another result. `views`: the views of these tensors, with their bases. `roots`: the
    results with gradients. `freed`: whether their graph has been freed.
    """

    def __init__(
        self, function: Any, tracer: Tracer, observer: Observer, source: Source, given: Structure, result: Any
    ) -> None:
        self.function, self.tracer, self.observer = function, tracer, observer
        self.source, self.given, self.result = source, given, result
        self.program, self.arrays = tracer.program, tracer.arrays
        self.results: dict[int, tuple[Tensor, int]] = {}
        self.detached: dict[int, tuple[Tensor, Tensor]] = {}
        self.views: dict[int, tuple[Tensor, Tensor]] = {}
        self.roots: list[Tensor] = []
        self.targets: list[tuple[str, Tensor]] = []
        self.freed = False
        self.built_before: set[int] = set()
        self.conditions: list[str] = []
        self.general: General | None = None
        self.again: Again | None = None

    def find_results(self) -> None:
        """Find the tensors in the result, and append their backward."""
        tracer, program, results = self.tracer, self.program, self.results
        program.boundary = len(program.instructions)
        outputs = tensors_of([self.result, self.observer.stores.values])
        bases = bases_of(outputs, [each.tensor for each in program.inputs.values()])
        self.views = {id(each): (each, bases[id(each)]) for each in outputs if id(each) in bases}
        for tensor in sorted([*bases.values(), *outputs], key=lambda tensor: edge_of(tensor) is None):
            if id(tensor) in program.by_tensor or id(tensor) in results or id(tensor) in self.views:
                continue
            if type(tensor) is not Tensor or id(tensor._array) not in tracer.values:
                raise Stop("a result was not made by an operator")
            if id(tensor) in tracer.leaves:
                raise Stop("a result is a leaf that the function has made")
            viewed = [each.tensor for each in program.inputs.values()] + [each for each, _ in results.values()]
            shared = [each for each in viewed if tensor._counter is not None and each._counter is tensor._counter]
            whole = next((each for each in shared if each._array is tensor._array), None)
            if whole is not None and edge_of(tensor) is None and (tensor._base is None or tensor._base is whole._base):
                self.detached[id(tensor)] = tensor, whole
                continue
            number = tracer.values[id(tensor._array)]
            held = [tracer.arrays[each] for each in program.inputs]
            if any(overlap(tensor._array, array) for array in [*held, *(each._array for each, _ in results.values())]):
                raise Stop("a result has the memory of an argument or of another result")
            results[id(tensor)] = tensor, number
            if edge_of(tensor) is not None:
                self.roots.append(tensor)
        if self.roots:
            places = {id(each): place for place, each in self.given.tensors}
            self.targets, self.freed = gradients_of(tracer, self.roots, places)

    def variant(self, earlier: Iterable[Variant]) -> Variant:
        """Return the compiled variant. The variant serves any size if an earlier variant was the same program at other sizes."""
        self.find_results()
        self.chains = [chain(self.program, self.tracer, *each) for each in self.views.values()]
        self.program.result = self.description(self.result)
        replaced = next((each for each in earlier if self.generalize(each)), None) if self.tracer.dims else None
        source, program = self.source, self.program
        saved = program.saved() if program.seeds else []
        wanted = {number for _, number in self.results.values()} | set(saved)
        wanted |= {each.value for each in symbols_in([self.result, self.observer.stores.values])}
        gradients = [each.number for each in program.gradients]
        example = program
        if self.tracer.dims:
            sizes = self.general.sizes if self.general is not None else {}
            example = Folded(program, program.shapes, program.memory, sizes, {*wanted}).program_of(program)
        if replaced is None:
            program = self.program = example
        checks = [*self.checks(), *self.loads()]
        first_lines = head(source, checks)
        checks = [check._replace(tensor=None) for check in checks]  # the tensors would keep arguments alive
        mode = 3 + (self.observer.modes[-1] is not None)
        self.conditions = head(source, [checks[2], *checks[mode:]])  # without modes, except the default dtype
        source.namespace |= NAMES
        source.lines, source.origins = [], {}
        sized: Sized | None = None
        effects, tail = self.effects(), self.returned(saved)
        if self.general is not None:
            outputs = [self.numbers_of(each) for each in tensors_of(self.result)]
            targets = [target for _, target in self.targets]
            around, function = (effects, tail), self.function
            sized = Sized(self.general, program, source, wanted, saved, gradients, around, function, outputs, targets)
            lines = [*first_lines, *indented(self.dispatch(source.constant(sized.plans), source.constant(sized)))]
            write = partial(Body.compiled, lines, source.namespace)
        else:
            write = partial(Body.of, program, source, wanted, saved, first_lines, effects, tail)
        variant = Variant(self.function, program, source.namespace, checks, write)
        variant.example, variant.sized, variant.replaced = example, sized, replaced
        unchanged = [*first_lines, f"    return {source.constant(self.function)}(*args, **kwargs)"]
        if self.again is not None:
            self.again.variant, self.again.unchanged = weakref.ref(variant), "\n".join(unchanged)
        variant.differences = self.tracer.differences
        if not (self.roots or self.observer.stores):
            with suppress(Unsupported, Stop):
                self.built_before = set()
                variant.signature = self.signature_lines(), self.built(self.result, literal, "v")
                variant.returned = sorted(wanted)
        return variant

    def generalize(self, earlier: Variant) -> bool:
        """Make the program serve any size, if an earlier program was the same at other sizes."""
        try:
            if self.observer.stores:
                raise Differs("an attribute is set")
            general = General(earlier.example, self.tracer)
        except (Differs, LookupError) as error:
            self.tracer.differences.append(str(error))
            return False
        program = self.program
        self.general = general
        self.program = program.like(general.instructions, program.boundary, program.shapes, program.memory)
        return True

    def dispatch(self, plans: str, sized: str) -> list[str]:
        """Return the lines that run the plan for the sizes of the arguments."""
        given = "".join(f", v{number}" for number in (*self.program.numbers, *self.program.inputs))
        key = "".join(f"v{number}.shape, " for number in self.tracer.dims)
        return [
            f"plan = {plans}.get(({key}))",
            "if plan is None:",
            f"    return {sized}(({key}), args, kwargs{given})",
            f"return plan(args, kwargs{given})",
        ]

    def description(self, value: Any) -> Any:
        """Return a result as references and constants."""
        if isinstance(value, Symbol):
            return Constant(value.plain) if value.is_fixed else Reference(value.value)
        if isinstance(value, Tensor):
            if id(value) in self.results:
                return Reference(self.results[id(value)][1])
            number = self.program.by_tensor.get(id(value))
            if id(value) in self.detached or id(value) in self.views:
                number = self.tracer.values[id(value._array)]
            return Constant(value) if number is None else Reference(number)
        if isinstance(value, dict):
            return [Constant([*value]), *map(self.description, value.values())]
        if is_record(value):
            return [Constant(type(value)), self.description(vars(value))]
        return [*map(self.description, value)] if isinstance(value, (list, tuple)) else Constant(value)

    def signature_lines(self) -> list[str]:
        """Return the requirements on the arguments, as lines of a program's text."""
        if any(what == "keys" and {*map(type, keys[0])} - {str, int} for what, _, *keys in self.given.parts):
            raise Unsupported("a key is neither a string nor an integer")
        lines = [
            f"{what}({place!r}, {', '.join(map(literal, expected))})" for what, place, *expected in self.given.parts
        ]
        for place, tensor in self.given.tensors:
            array = tensor._array
            lines.append(f"tensor({place!r}, {tensor.dtype.name!r}, {literal(array.shape)}, {literal(array.strides)})")
        return lines

    def checks(self) -> list[Check]:
        """Return the conditions under which the program may replace the function, except the conditions on outside tensors."""
        source, given, program = self.source, self.given, self.program
        constant = source.constant
        checks = [
            *mode_checks(source, self.observer.modes),
            *given.checks,
        ]
        first: dict[int, str] = {}
        outer = {id(each.source) for each in program.inputs.values() if each.kind == "tensor"}
        for place, tensor in given.tensors:
            if id(tensor) in first or id(tensor) in outer:
                same = first.get(id(tensor), constant(tensor))
                checks.append(Check(f"{place} is {same}", f"{place} is a tensor that the function reads elsewhere too"))
                continue
            for earlier, other in given.tensors:
                if earlier in first.values() and other._array is tensor._array:
                    raise Stop("two arguments share memory")
            first[id(tensor)] = place
            checks += checks_of(source, place, tensor, self.fits(tensor), place)
        for condition, objects in self.observer.guards.values():
            text, way = condition.format(*map(shown, objects)), way_of(condition, objects)
            checks.append(Check(condition.format(*map(constant, objects)), text, way=way))
        for kind, found in self.observer.methods.items():
            names, kept = constant(attrgetter(*found, "__class__")), constant(identical([*found.values(), type(kind)]))
            text = f"methods of {kind.__name__} are unchanged: {', '.join(sorted(found))}"
            checks.append(Check(f"{kept}(*{names}({constant(kind)}))", text))
        for function, operands, result in self.tracer.outcomes:
            if any(each.roots & self.tracer.extents.keys() for each in symbols_in(operands)):
                continue  # it depends on sizes
            condition = f"{called(function, operands, constant)} is {constant(result)}"
            checks.append(Check(condition, f"{called(function, operands, shown)} is {shown(result)}"))
        for leaf in program.without_grad:
            checks.append(Check(f"{self.source.tensor(leaf)}._grad is None", f"{shown(leaf)}.grad is None"))
        return [*checks, *self.apart()]

    def fits(self, tensor: Tensor) -> Fits:
        """Return the condition on the array of an argument."""
        number = self.program.by_tensor[id(tensor)]
        sizes = () if self.general is None else self.general.forms[number].dims
        return Fits(tensor._array, frozenset([dim for dim, size in enumerate(sizes) if size < 0]))

    def loads(self) -> list[Check]:
        """Return the lines that load the inputs, with the conditions on outside tensors."""
        constant = self.source.constant
        outside = Group([each.tensor for each in self.program.inputs.values() if each.kind == "tensor"])
        checks = [Check("", "", f"v{number} = {place}") for number, place in self.program.numbers.items()]
        for number, each in self.program.inputs.items():
            if each.kind == "argument":
                checks.append(Check("", "", f"v{number} = {each.source}._array"))
                continue
            name = self.source.tensor(each.source)
            place = name if each.kind == "tensor" else f"{name}._grad"
            what = f"{shown(each.source)}{'.grad' * (each.kind == 'grad')}"
            checks += checks_of(self.source, place, each.tensor, Fits(each.tensor._array), what)
            checks.append(Check("", "", f"v{number} = {place}._array"))
            if self.roots and not self.freed and self.program.changes and each.kind == "tensor":
                same = constant(weakref.ref(each.tensor._array))
                condition = f"({same}() is {name}._array or {constant(outside)}.is_alone({name}))"
                checks.append(Check(condition, f"{what} shares no memory with others"))
        return checks

    def apart(self) -> list[Check]:
        """Return the conditions that a changed input has its own memory, which fused instructions and gradients rely on.

        Outside tensors do not share memory as long as they keep their arrays, so only arguments are tested.
        """
        inputs = {number: each for number, each in self.program.inputs.items() if each.kind != "grad"}
        changed = [number for number in inputs if number in self.program.changes]
        if not changed:
            return []
        arguments = {number: each for number, each in inputs.items() if each.kind == "argument"}
        outside = {number: each.tensor for number, each in inputs.items() if each.kind == "tensor"}
        group = Group([*outside.values()])
        if (
            self.roots
            and not self.freed
            and not all(group.is_alone(outside[number]) for number in changed if number in outside)
        ):
            raise Stop("a tensor that is changed shares its memory with another")
        checks = []
        for number, each in arguments.items():
            places = [other.source for key, other in arguments.items() if key < number and {key, number} & {*changed}]
            tensors = [tensor for other, tensor in outside.items() if number in changed or other in changed]
            apart = Group(tensors)
            if not apart.is_apart(
                each.tensor, *(self.program.inputs[key].tensor for key in arguments if inputs[key].source in places)
            ):
                raise Stop("an argument shares memory with a tensor that is changed")
            condition = apart.condition(self.source, [each.source, *places])
            checks.append(Check(condition, f"{each.source} shares no memory with changed tensors"))
        return checks

    def effects(self) -> list[str]:
        """Return the lines that count the changes of inputs, before an error can end the program or a gradient is dropped."""
        lines = []
        for number, count in self.program.changes.items():
            if not count:
                continue
            given = self.program.inputs[number]
            is_grad = given.kind == "grad"
            place = f"{self.source.tensor(given.source)}._grad" if is_grad else self.source.tensor(given.tensor)
            lines += [f"counter = counting({place})", "if counter is not None:", f"    counter[0] += {count}"]
        if not self.roots or self.freed:
            return lines
        self.again = Again(self)
        return [*self.again.lines(self.source), *lines]

    def numbers_of(self, tensor: Tensor) -> tuple[int | None, int | None]:
        """Return the numbers of the value of a result and of its base, or None where no instruction computes them."""
        base = self.views.get(id(tensor), (None, None))[1]
        if base is None:
            return self.results.get(id(tensor), (None, None))[1], None
        return self.tracer.values[id(tensor._array)], self.results.get(id(base), (None, None))[1]

    def returned(self, saved: list[int]) -> Tail:
        """Return the lines that create the results."""
        constant = self.source.constant
        leaves = [each.operands[0].value for each in self.program.instructions if each.name == "set_grad"]
        grads = {id(leaf._grad): f"{constant(leaf)}._grad" for leaf in leaves if leaf._grad is not None}
        lines = [
            f"shared_counter({constant(leaf)}._grad)[0] = {leaf._grad._version}"
            for leaf in dict.fromkeys(leaves)
            if leaf._grad is not None and leaf._grad._version
        ]
        for tensor, number in self.results.values():
            created = made(f"v{number}", self.program.shapes[number][1])  # type: ignore[index]
            lines.append(f"r{number} = {grads.get(id(tensor), created)}")
            if tensor.is_inference():
                lines.append(f"mark_inference(r{number})")
            elif tensor._version:
                lines.append(f"shared_counter(r{number})[0] = {tensor._version}")
        if self.roots:
            roots = [f"r{self.results[id(root)][1]}" for root in self.roots]
            places = [place or constant(target) for place, target in self.targets]
            # The memory of inputs and results must be unchanged when gradients are computed from it.
            watched = [
                each.source if each.kind == "argument" else constant(each.source)
                for each in self.program.inputs.values()
                if each.kind != "grad" and self.is_among(each.tensor._array, saved)
            ]
            watched += [f"r{number}" for tensor, number in self.results.values() if self.is_among(tensor._array, saved)]
            again = None if self.again is None else self.again.source(self, watched)
            values = ", ".join(f"v{number}" for number in saved)
            kept = f", ([{values}], gradients, [{', '.join(places)}], [{', '.join(watched)}], {again})"
            node = edge_of(self.roots[0])[0]
            origin = constant((node._code, node._lasti))
            lines.append(f"attach([{', '.join(roots)}], {origin}{'' if self.freed else kept})")
        views = [
            (chain, self.built(base, constant, "r"))
            for chain, (_, base) in zip(self.chains, self.views.values(), strict=True)
        ]
        last = [
            f"d{position} = {self.built(whole, constant, 'r')}.detach()"
            for position, (_, whole) in enumerate(self.detached.values())
        ]
        built = partial(self.built, constant=self.source.constant, prefix="r")
        returned = built(self.result)
        if stored := self.observer.stores.lines(built, constant):
            last += [f"result = {returned}", *stored, "return result"]
        else:
            last.append(f"return {returned}")
        return Tail(lines, views, last)

    def is_among(self, array: Any, numbers: list[int]) -> bool:
        """Return whether an array shares memory with one of the values with these numbers."""
        return any(may_share_memory(array, self.arrays[number]) for number in numbers if number in self.arrays)

    def built(self, value: Any, constant: Callable[[Any], str], prefix: str) -> str:
        """Return the source of a result. `constant` names other objects, and `prefix` begins the names of tensors."""
        if isinstance(value, Symbol):
            return f"v{value.value}" if not value.is_fixed else constant(value.plain)
        if isinstance(value, Tensor):
            if id(value) in self.results:
                return f"{prefix}{self.results[id(value)][1]}"
            for letter, others in (("d", self.detached), ("w", self.views)) if prefix == "r" else ():
                if id(value) in others:
                    return f"{letter}{[*others].index(id(value))}"
            given = next((place for place, tensor in self.given.tensors if tensor is value), None)
            if given is None and id(value) not in self.program.by_tensor:
                raise Stop("no operator created a result")
            return given or constant(value)
        if id(value) in self.given.containers:
            return self.given.containers[id(value)]
        if type(value) is Size and symbols_in(value):
            inner = "".join(f"{self.built(each, constant, prefix)}, " for each in value)
            return f"{constant(Size)}(({inner}))"
        if is_constant(value) or self.observer.is_outside(value):
            return constant(value)
        if (type(value) in MUTABLE or is_record(value)) and id(value) in self.built_before:
            raise Stop("a list or another object is in the result twice")
        self.built_before.add(id(value))
        if type(value) in (list, tuple):
            inner = "".join(f"{self.built(each, constant, prefix)}, " for each in value)
            return f"[{inner}]" if type(value) is list else f"({inner})"
        if type(value) is dict:
            return (
                "{"
                + ", ".join(
                    f"{self.built(key, constant, prefix)}: {self.built(each, constant, prefix)}"
                    for key, each in value.items()
                )
                + "}"
            )
        if isinstance(value, tuple) and (hasattr(value, "_make") or hasattr(value, "n_fields")):
            make = getattr(value, "_make", type(value))
            return f"{constant(make)}(({''.join(f'{self.built(each, constant, prefix)}, ' for each in value)}))"
        if is_record(value) and self.observer.is_inside(value):
            fields = ", ".join(f"{name!r}: {self.built(each, constant, prefix)}" for name, each in vars(value).items())
            return f"{constant(new_record)}({constant(type(value))}, {{{fields}}})"
        raise Stop("the result is an object that the function created")


NAMES = {
    **CONDITION_NAMES,
    **{each.__name__: each for each in (attach, counting, mark_inference, shared_counter)},
    "MISSED": MISSED,
}
"""The names that the source of a variant uses."""
