"""Captures for backends that are functions: graphs of the calls that the function makes, as `torch.fx` modules.

A backend receives a graph and example inputs, as in PyTorch, and returns the function that runs in place of the graph. The
conditions on the call are those of other programs.
"""

from __future__ import annotations

import inspect
import operator
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import adjoint as torch

from ..aten.calls import call_of_operator
from ..dispatch.plan import Call
from ..dispatch.source import compile_source, indented
from ..random import default_generator
from ..tape.versions import shared_counter
from ..tensor import Tensor
from ..transforms import tree
from .backward import tensors_of
from .body import Body
from .conditions import Check, Structure, head
from .errors import BackendCompilerFailed
from .expectations import MISSED, draws
from .followed import FOLLOWED, answered, applied, checkpointed, checkpointed_in_parts, functional, unseen
from .known import is_constant
from .observer import Observer
from .options import graph_break
from .program import Reference
from .recorder import CallRecorder, Condition, Effect, Piece
from .stores import Setting
from .symbols import Symbol, symbols_in
from .tracer import Stop, Tracer, is_true
from .transforms import is_transform
from .variant import NAMES, Variant, Written

FOLLOWABLE = (functional, checkpointed, checkpointed_in_parts, answered)
"""The functions of this package that call functions of the user, and whose calls become nodes."""

MOST_ELEMENTS = 1000
"""The maximum number of elements of a tensor that a graph contains as numbers."""


class GraphTracer(Tracer):
    """Records the operators that are not part of a recorded call."""

    def __init__(self, program: Any, branches: bool = False) -> None:
        super().__init__(program, branches)
        self.recorder = CallRecorder(self.stop)

    def handle(self, call: Call, proceed: Callable[[], Any]) -> Any:
        """Run the operator."""
        with self.recorder.within():
            result = super().handle(call, proceed)
        if not self.recorder.depth and self.reason is None:
            overload, args, kwargs = call_of_operator(call.op, call.given, call.out, call.in_place)
            self.recorder.record("call_function", overload, tuple(args), kwargs, result)
        return result

    def constant(self, array: Any, leaf: Tensor | None = None) -> None:
        """Record a new array whose elements are computed from numbers."""
        super().constant(array, leaf)
        if array.size <= MOST_ELEMENTS:
            self.recorder.constants[id(array)] = array

    def truth(self, tensor: Tensor, by_library: bool = False) -> bool | None:
        """Return the truth of a tensor, at which one graph ends and another begins."""
        instructions = self.program.instructions
        if (
            by_library  # within a recorded call
            or self.reason is not None
            or not self.branches
            or tensor.numel() != 1
            or self.program.changes
            or any(map(draws, instructions))
            or any(isinstance(each, Effect) for each in self.recorder.nodes)
        ):
            return None
        truth, recorder = is_true(tensor._array), self.recorder
        try:
            number = recorder.known(tensor).number
        except Stop:
            return None
        recorder.end(Condition(number, truth))
        return truth

    def size(self, tensor: Tensor, dim: int) -> Any:
        """Return the size of a dimension, or a symbol."""
        size = super().size(tensor, dim)
        if isinstance(size, Symbol):
            self.recorder.sizes.setdefault(size.value, (tensor, dim))
        return size

    def element(self, tensor: Tensor) -> Any:
        """Return None, because graphs do not contain elements."""
        return None

    def expect(self, function: Any, operands: list[Any], result: bool, by_library: bool = False) -> bool:
        """Return False, because conditions on numbers are not recorded."""
        return False


class GraphObserver(Observer):
    """Records the calls of functions of this package. `before`: copies of the inputs, by identity."""

    tracer: GraphTracer

    def __init__(self, tracer: GraphTracer, given: Structure, known: set[tuple[int, Any]]) -> None:
        super().__init__(tracer, given, known)
        self.recorder = tracer.recorder
        self.recorder.input_of = self.source_of
        self.before: dict[int, tuple[Tensor, Any, int]] = {}
        self.states = {id(default_generator): (default_generator, default_generator.get_state())}

    def source_of(self, tensor: Tensor) -> Any:
        """Return the source of a tensor that exists before the function runs."""
        for place, each in self.given.tensors:
            if each is tensor:
                return place
        return tensor if id(tensor) in self.before else None

    @property
    def given(self) -> Structure:
        """The structure of the arguments."""
        return self.stores.given

    def input(self, tensor: Tensor, kind: str, source: Any) -> None:
        """Make a tensor an input, and keep a copy of its elements."""
        super().input(tensor, kind, source)
        if not self.stopped and id(tensor) not in self.before and id(tensor) not in self.recorder.values:
            self.before[id(tensor)] = tensor, tensor._array.copy("K"), version_of(tensor)

    def copies(self) -> list[tuple[Tensor, Any]]:
        """Return the inputs with copies of their elements."""
        return [(tensor, tensor._array.copy("K")) for tensor, _, _ in self.before.values()]

    def restore(self) -> None:
        """Give the inputs, and the generators of random numbers, the states that they had before."""
        for tensor, array, version in self.before.values():
            if not same(tensor._array, array):
                tensor._array[...] = array
            if version_of(tensor) != version:
                shared_counter(tensor)[0] = version
        for generator, state in self.states.values():
            generator.set_state(state)

    def noted(self, op: str, target: Any, args: Any, kwargs: dict[str, Any], run: Callable[[], Any]) -> Any:
        """Return the result of `run`, and record it as one call."""
        if self.stopped or self.recorder.depth:
            return run()
        for each in (*args, *kwargs.values()):
            if isinstance(each, torch.Generator) and id(each) not in self.states:
                self.states[id(each)] = each, each.get_state()
        with self.recorder.within():
            result = run()
        if not self.stopped:
            self.recorder.record(op, target, args, kwargs, result)
        return result

    def called(self, function: Any, given: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a Python function."""
        if function is graph_break and self.ended(function, args, kwargs):
            return None
        if (way := FOLLOWED.get(function)) is applied:
            return self.noted(
                "call_function",
                given,
                args[1:],
                kwargs,
                lambda: super(GraphObserver, self).called(function, given, args, kwargs),
            )
        if (way is not None and way not in FOLLOWABLE) or (given is function and is_transform(function)):
            self.stop(f"{function.__qualname__} is called")
        return super().called(function, given, args, kwargs)

    def of_package(self, function: Any, given: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function of this package."""
        name = function.__name__
        if name in ("backward", "grad", "zero_grad", "requires_grad_"):
            self.stop(f"{name} is called")
        run = super().of_package
        if args and isinstance(args[0], Tensor) and getattr(type(args[0]), name, None) is function:
            return self.noted("call_method", name, args, kwargs, lambda: run(function, given, args, kwargs))
        return self.noted("call_function", given, args, kwargs, lambda: run(function, given, args, kwargs))

    def trusted(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function that reads only its arguments."""
        return self.noted(
            "call_function", function, args, kwargs, lambda: super(GraphObserver, self).trusted(function, args, kwargs)
        )

    def ended(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """End a graph at a call that the program repeats. Return False if that is impossible."""
        given = [*args, *kwargs.values()]
        if (
            self.stopped
            or not self.tracer.branches
            or not all(is_constant(each) or type(each) is Tensor for each in given)
        ):
            return False
        try:
            self.recorder.end(Effect(function, self.recorder.mapped(args), self.recorder.mapped(kwargs)))
        except Stop as error:
            self.stop(str(error))
        return True

    def built_in(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function that is not written in Python. `print` ends a graph, and the program prints too."""
        if function is not print or not self.ended(function, args, kwargs):
            return super().built_in(function, args, kwargs)
        with unseen(self):
            return print(*args, **kwargs)

    def arithmetic(self, name: str, left: Any, right: Any) -> Any:
        """Apply an operator to two values."""
        run = super().arithmetic
        return self.noted("call_function", getattr(operator, name), (left, right), {}, lambda: run(name, left, right))

    def comparison(self, name: str, left: Any, right: Any) -> Any:
        """Compare two values."""
        run = super().comparison
        return self.noted("call_function", getattr(operator, name), (left, right), {}, lambda: run(name, left, right))

    def element(self, value: Any, index: Any) -> Any:
        """`value[index]`."""
        run = super().element
        if not isinstance(value, Tensor):
            return run(value, index)
        return self.noted("call_function", operator.getitem, (value, index), {}, lambda: run(value, index))

    def attribute_of(self, value: Any, name: str) -> Any:
        """Read an attribute."""
        if isinstance(value, torch.optim.Optimizer) or (isinstance(value, Tensor) and name in ("grad", "data")):
            self.stop(f"the attribute {name} of an object of class {type(value).__name__} is read")
        if not isinstance(value, Tensor) or self.stopped or self.recorder.depth:
            return super().attribute_of(value, name)
        with self.recorder.within():
            found = super().attribute_of(value, name)
        if isinstance(found, Tensor) and found is not value:
            self.recorder.record("call_function", getattr, (value, name), {}, found)
        return found


class Backend:
    """A function that compiles graphs.

    `options`: keywords for it. `compiled`: its results, by the code of the graphs. `written`: the last capture.
    """

    written: WrittenGraphs
    tracer, observer = GraphTracer, GraphObserver

    def __init__(self, function: Any, options: dict[str, Any] | None = None) -> None:
        self.function, self.options = function, options or {}
        self.name = getattr(function, "__name__", type(function).__name__)
        self.compiled: dict[Any, Any] = {}

    def compile(self, module: Any, examples: list[Any]) -> Any:
        """Return the compiled form of a graph.

        Raises:
            torch._dynamo.exc.BackendCompilerFailed: if the function raises an error, or returns no function.
        """
        key = module.code, *[node.target for node in module.graph.nodes], str(facts_of(examples))
        if key not in self.compiled:
            try:
                made = self.function(module, examples, **self.options)
                if not callable(made):
                    raise AssertionError("compiler_fn did not return callable")
            except Exception as error:
                raise BackendCompilerFailed(self.name, error) from error
            self.compiled[key] = made
        return self.compiled[key]

    def finished(self, *capture: Any) -> Variant:
        """Return the variant that runs the compiled graphs. It has run once, and `first_result` is its result.

        The graphs themselves run first. The capture ends unless they give the results that the function has given.
        """
        self.written = written = WrittenGraphs(*capture)
        observer = written.observer
        after, results = observer.copies(), [each._array.copy("K") for each, _ in written.results.values()]
        generators = [each for each, _ in observer.states.values()]
        states = [each.get_state() for each in generators]
        modules = [None if each.is_empty else each.module(written.names) for each in written.pieces]
        observer.restore()
        found = written.run(modules, f"[{', '.join(f'r{number}' for _, number in written.results.values())}]")
        if not (
            all(same(one._array, other) for one, other in zip(found, results, strict=True))
            and all(same(each._array, array) for each, array in after)
            and all(torch.equal(each.get_state(), state) for each, state in zip(generators, states, strict=True))
        ):
            for each, array in after:
                each._array[...] = array
            for generator, state in zip(generators, states, strict=True):
                generator.set_state(state)
            raise Stop("the recorded calls do not give the same results")
        observer.restore()
        pairs = zip(modules, map(Piece.examples, written.pieces), strict=True)
        compiled = [None if module is None else self.compile(module, examples) for module, examples in pairs]
        variant = written.variant_of(compiled)
        variant.first_result = written.run(compiled, *written.tail())
        return variant


class GraphVariant(Variant):
    """A variant that runs compiled graphs. `first_result`: the result of the captured call."""

    first_result: Any


class WrittenGraphs(Written):
    """Writes the source of a variant that runs graphs. `leaves`: the parts of the result, and its structure."""

    observer: GraphObserver

    def __init__(self, *capture: Any) -> None:
        super().__init__(*capture)
        recorder = self.observer.recorder
        returned = tensors_of([self.result, self.observer.stores.values])
        numbers = {id(each): (each, recorder.known(each).number) for each in returned}
        self.results = {key: each for key, each in numbers.items() if each[1] not in recorder.inputs}
        self.pieces: list[Piece] = recorder.graphs([number for _, number in self.results.values()])
        self.names = names_of(self.function, recorder)
        self.leaves: tuple[list[Any], Any] = tree.tree_flatten(self.result)

    def apart(self) -> list[Check]:
        """Return no conditions. Graphs run on tensors, so that tensors may share memory."""
        return []

    def variant_of(self, functions: list[Any]) -> GraphVariant:
        """Return the variant that runs compiled graphs."""
        source, program = self.source, self.program
        checks = [*self.checks(), *self.loads()]
        first_lines = head(source, checks)
        source.namespace |= NAMES
        source.lines = []
        numeric = [each for each in program.instructions if is_numeric(program, each)]
        source.run(numeric, {*range(len(program.shapes))}, program.shapes)
        *stored, returned = self.tail()
        lines = [*source.lines, *self.calls(functions), *stored, f"return {returned}"]
        write = partial(Body.compiled, [*first_lines, *indented(lines)], source.namespace)
        kept = [check._replace(tensor=None) for check in checks]  # the tensors would keep arguments alive
        return GraphVariant(self.function, program, source.namespace, kept, write)

    def calls(self, functions: list[Any], effects: bool = True) -> list[str]:
        """Return the lines that call the compiled graphs, and perform the effects between them."""
        made = []
        for piece, compiled in zip(self.pieces, functions, strict=True):
            if not piece.is_empty:
                results = "".join(f"r{number}, " for number in piece.outputs)
                places = ", ".join(map(self.place, piece.inputs))
                made.append(f"{f'{results}= ' if results else ''}{self.source.constant(compiled)}({places})")
            if isinstance(piece.end, Condition):
                made += [f"if bool({self.place(piece.end.number)}) is not {piece.end.truth}:", "    return MISSED"]
            elif piece.end is not None and effects:
                given = f"*{self.source_of(piece.end.args)}, **{self.source_of(piece.end.kwargs)}"
                made.append(f"{self.source.constant(piece.end.function)}({given})")
        return made

    def source_of(self, value: Any) -> str:
        """Return the source of an argument."""
        if isinstance(value, Reference):
            return self.place(value.number)
        if type(value) is dict:
            return f"{{{', '.join(f'{key!r}: {self.source_of(each)}' for key, each in value.items())}}}"
        if type(value) in (list, tuple):
            return f"{self.source.constant(type(value))}(({''.join(f'{self.source_of(each)}, ' for each in value)}))"
        return self.source.constant(value)

    def place(self, number: int) -> str:
        """Return the source of a value of the graphs."""
        source, _ = self.observer.recorder.inputs.get(number, (f"r{number}", None))
        return source if isinstance(source, str) else self.source.constant(source)

    def tail(self) -> list[str]:
        """Return the lines that store, and the source of the result."""
        self.built_before = set()
        built = partial(self.built, constant=self.source.constant, prefix="r")
        returned = built(self.result)
        stored = self.observer.stores.lines(built, self.source.constant)
        return [f"result = {returned}", *stored, "result"]

    def run(self, functions: list[Any], *tail: str) -> Any:
        """Call graphs with the arguments of the capture, and return the result.

        The numbers are those that the function has computed. Values are not printed or appended to lists again.
        """
        symbols = symbols_in([self.result, self.observer.stores.values, *self.observer.recorder.tensors.values()])
        known = [f"v{each.value} = {self.source.constant(each.plain)}" for each in symbols]
        *stored, returned = [each for each in tail if ".append(" not in each]
        lines = [*known, *self.calls(functions, effects=False), *stored, f"return {returned}"]
        namespace = {**self.source.namespace, "MISSED": MISSED}
        compile_source("\n".join(["def run(args, kwargs):", *indented(lines)]) + "\n", "<adjoint graphs>", namespace)
        return namespace["run"](*self.given.arguments)


def version_of(tensor: Tensor) -> int:
    """Return the version of a tensor. Versions of inference tensors are not counted."""
    return 0 if tensor.is_inference() else tensor._version


def same(one: Any, other: Any) -> bool:
    """Return whether two arrays have the same bits."""
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def is_numeric(program: Any, instruction: Any) -> bool:
    """Return whether an instruction computes numbers from numbers, or stores numbers."""
    values = [*instruction.results, *instruction.reads()]
    numeric = all(each is not None and program.shapes[each] is None for each in values)
    return numeric and (bool(instruction.results) or isinstance(instruction.function, Setting))


def facts_of(examples: list[Any]) -> list[Any]:
    """Return the facts about example inputs that a compiled graph may depend on."""
    return [
        (each.dtype, each.shape, each.stride(), each.requires_grad) if isinstance(each, Tensor) else type(each)
        for each in examples
    ]


def names_of(function: Any, recorder: CallRecorder) -> dict[int, str]:
    """Return names for the inputs of graphs: the names of parameters of the function, and the paths of weights in modules."""
    called = function.forward if isinstance(function, torch.nn.Module) else function
    try:
        parameters = [*inspect.signature(called).parameters]
    except (TypeError, ValueError):
        parameters = []
    owners = {"L_self": getattr(called, "__self__", None)}
    if inspect.isfunction(called):
        seen = inspect.getclosurevars(called)
        owners |= {f"L_{name}": each for name, each in seen.nonlocals.items()}
        owners |= {f"G_{name}": each for name, each in seen.globals.items()}
    paths: dict[int, str] = {}
    for owner, value in reversed(owners.items()):
        paths[id(value)] = f"{owner}_"
        for path, module in value.named_modules() if isinstance(value, torch.nn.Module) else ():
            inner = "".join(f"_modules_{part}" for part in path.split(".") if part)
            for kind in ("parameters", "buffers"):
                found = vars(module)[f"_{kind}"].items()
                paths |= {id(each): f"{owner}{inner}_{kind}_{name}_" for name, each in found}
    names = {}
    for number, (place, _) in recorder.inputs.items():
        if not isinstance(place, str):
            names[number] = paths.get(id(place), f"G_tensor_{number}_")
        elif place.startswith("v"):
            names[number] = f"s{number}"
        else:
            first = re.match(r"args\[(\d+)\]", place)
            if first is not None and int(first[1]) < len(parameters):
                place = parameters[int(first[1])] + place[first.end() :]
            words = re.sub(r"\W+", "_", place.removeprefix("kwargs")).strip("_")
            names[number] = f"L_{words}_"
    return names
