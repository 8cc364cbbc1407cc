"""Draw the text of random custom functions and of programs that apply them.

Run the programs with both libraries, and compare all visible state. A function may change its inputs, and save inputs and
outputs. It may return inputs, views of inputs or new tensors, and mark outputs in any combination. Its derivative may be correct,
missing or refused. A program applies the function to leaves, results and views in several modes. It changes tensors in place
before and after, and runs backward.
"""

import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from tests.parity.random_programs.comparison import Explained, Program, explanations

Choose = Callable[[Sequence[Any]], Any]

LEAVES = """
a = torch.tensor([[0.5, -1.0], [1.5, 0.25]], dtype=torch.float64, requires_grad=True)
b = torch.tensor([[2.0, 1.0], [-0.5, 0.75]], dtype=torch.float64, requires_grad=True)
c = torch.tensor([[1.25, -0.5], [0.75, 2.5]], dtype=torch.float64)
d = torch.tensor([[1, 2], [0, -1]])
""".strip().split("\n")

EXPLAINED = [
    Explained(
        "PyTorch changes inference tensors before it refuses to",
        "inference_mode",
        "",
        "Inplace update to inference tensor outside InferenceMode",
    ),
    Explained(
        "PyTorch counts that it writes the copy of an inference tensor", "inference_mode", "_version 0, expected 1"
    ),
    Explained("PyTorch counts that it adds to a gradient", r"NAME = torch.autograd.grad", "_version 0, expected 1"),
    Explained(
        "PyTorch finds tangents of a view when asked, also for views that a custom function has made in inference mode",
        "inference_mode",
        "tangent None, expected",
    ),
    Explained("PyTorch detaches views in inference mode", "inference_mode.*detach_", "Can't detach views in-place"),
    Explained(
        "two mistakes: PyTorch finds that memory overlaps, or that a view must not be changed, before shapes and modes",
        "",
        r"(size of tensor a|output with shape|Inplace update|more than one element).*"
        r"EXPECTED (RuntimeError: (unsupported operation|A view was|Output . of)|AssertionError)",
    ),
    Explained(
        "two mistakes: no jvp, and an inference tensor saved", "inference_mode", "EXPECTED NotImplementedError: .*jvp"
    ),
    Explained(
        "a node whose backward has failed has let go of what it saved",
        "Error$",
        "Trying to backward through the graph a second time",
    ),
    Explained("an internal error", "", "INTERNAL ASSERT FAILED|get_autograd_meta"),
    Explained("PyTorch warns for each place at which a tensor is returned", "mark_dirty", "^warned .*mark_dirty"),
    Explained("methods have the errors of functions here", r"_\((None|'text')?", "argument '.*must be Tensor, not"),
    Explained("exponentials of booleans in single precision", "> 0", r"\): \[.*, expected \["),
]

_SAID_ONCE = r"Using backward\(\) with create_graph=True|torch\.jit"
"""Warnings that a process gives once, independently of its programs."""

# Functions are applied to these tensors and to leaves.
_MADE = [
    *["a * 2", "b * a", "(a * 2).t()", "(b * 3)[0:2]", "(a * 2).view(-1).view(2, 2)", "a.view(2, 2)", "c.view(2, 2)"],
    *["c.clone()", "a.detach()", "c.t()", "(a * 2).unbind(0)[0]", "(b * 2).chunk(2)[0]", "a * 2 + c", "c * 2"],
]
_UNDER = ["with torch.no_grad(): ", "with torch.inference_mode(): ", "with torch.enable_grad(): "]

_STEPS = [
    *["{n} = {x} * 2", "{n} = {x} * {y}", "{n} = {x} + {y}", "{n} = {x}.clone()", "{n} = {x}.exp()"],
    *["{n} = {x}.view(-1)", "{n} = {x}.t()", "{n} = {x}[0:1]", "{n} = {x}.view_as({x})", "{n} = {x}.detach()"],
    *["{x}.mul_(2)", "{x}.add_({y})", "{x}[0] = 3", "{x}.copy_({y})", "{n} = {x} > 0", "{n} = {x}.sum()"],
    *["with torch.enable_grad(): {n} = {x} * {y}", "with torch.enable_grad(): {n} = {x}.view(-1)"],
    *["{n} = ({x} * 2).view(-1)", "{n} = {x}.expand(2, 2, 2)", "{n} = {x}.unbind(0)[0]", "{n} = {x}.requires_grad"],
]

_GRADIENTS = [
    *["{g} * 2", "{g} * 2", "{g}", "{g}.sum() * torch.ones({s}, dtype=torch.float64)", "{g} * {v}", "{g} * {v} * 2"],
    *[
        "None",
        "{g}.view(-1).sum().expand({s})",
        "torch.ones({s}, dtype=torch.float64)",
        "{g}.mul_(2)",
        "{g}.detach() * 3",
    ],
]

_USES = [
    *[
        "{r} = {x} * 2",
        "{r} = {x}.view(-1)",
        "{r} = {x}[0]",
        "{r} = {x}.detach()",
        "{x}.mul_(2)",
        "{x}.view(-1).add_(1)",
    ],
    *["{x}.data.mul_(2)", "with torch.no_grad(): {x}.mul_(2)", "{x}.detach_()", "{x}.requires_grad_()", "{x}.zero_()"],
    *["{x}.register_hook(scale('hook {x}', 2))", "{x}.retain_grad()", "{x}.add_({y})", "{r} = {x} * {y}", "{x}.t_()"],
    *[
        "{x}.register_hook(watch('seen {x}'))",
        "{r} = {x}.grad_fn.next_functions and {x} * 3",
        "note({x}.grad_fn.name())",
    ],
    *["note([type(n).__name__ for n, _ in {x}.grad_fn.next_functions])", "note({x}.grad_fn.needs_input_grad)"],
    *["note({x}.grad_fn.saved_tensors)", "note({x}.grad_fn.metadata)", "{x}[0].mul_(3)", "{x}.t().mul_(3)"],
]

_BACKWARDS = [
    *["{x}.sum().backward()", "{x}.sum().backward(retain_graph=True)", "{x}.sum().backward(create_graph=True)"],
    *["{r}, = torch.autograd.grad({x}.sum(), [a], allow_unused=True); {r} = gradient({r})"],
    *["{r}, = torch.autograd.grad({x}.sum(), [{y}], retain_graph=True); {r} = gradient({r})"],
    "{r} = torch.autograd.grad({x}.sum(), [a], create_graph=True, allow_unused=True)[0]",
    "{r} = torch.autograd.grad(({x} * {x}).sum(), [a, b], create_graph=True, allow_unused=True)[0]",
    "({x} * {y}).sum().backward()",
    "torch.autograd.backward([{x}.sum(), {y}.sum()])",
]


class Drawn:
    """A custom function as text."""

    def __init__(self, choose: Choose, name: str) -> None:
        self.choose = choose
        self.name = name
        self.inputs = ["x", "y", "z"][: choose([1, 1, 2, 2, 3])]
        self.names = list(self.inputs)
        self.separate = choose([False, False, True])
        self.several = choose([False, False, True, True])

    def some(self, options: list[str], sizes: Sequence[int] = (0, 0, 1, 1, 2)) -> list[str]:
        count = self.choose(sizes)
        return [self.choose(options) for _ in range(count)]

    def source(self) -> str:
        steps = [self.step(number) for number in range(self.choose([0, 1, 1, 2, 3]))]
        count = self.count = self.choose([1, 2, 2, 3]) if self.several else 1
        outputs = [self.output() for _ in range(count)]
        names = [f"o{number}" for number in range(count)]
        assigned = [f"{name} = {value}" for name, value in zip(names, outputs, strict=True)]
        returned = f"({', '.join(names)},)" if self.several else names[0]
        if self.several and not self.choose(range(12)):
            returned = f"[{', '.join(names)}]"
        arguments = ", ".join(self.inputs)
        marks = self.marks(outputs, names)
        lines = [f"class {self.name}(torch.autograd.Function):"]
        if not self.choose(range(6)):
            lines.append("    generate_vmap_rule = True")
        if self.separate:
            lines += _method(f"forward({arguments})", [*steps, *assigned, f"return {returned}"])
            unpack = f"{arguments}, = inputs"
            given = f"{', '.join(names)}, = output" if self.several else f"{names[0]} = output"
            lines += _method("setup_context(ctx, inputs, output)", [unpack, given, *marks])
        else:
            lines += _method(f"forward(ctx, {arguments})", [*steps, *assigned, *marks, f"return {returned}"])
        lines += self.backward(count)
        lines += self.jvp(count)
        return "\n".join(lines)

    def step(self, number: int) -> str:
        text = self.choose(_STEPS)
        line = text.format(n=f"s{number}", x=self.choose(self.names), y=self.choose(self.names))
        if "{n}" in text:
            self.names.append(f"s{number}")
        return str(line)

    def output(self) -> str:
        known = self.choose(self.names)
        return str(
            self.choose([known, known, known, f"{known} * 2", f"{known}.view(-1)", f"{known}.clone()", "None", "3"])
        )

    def marks(self, outputs: list[str], names: list[str]) -> list[str]:
        lines = []
        scope = [*self.inputs, *names] if self.separate else [*self.names, *names]
        saved = self.some([*scope, *self.inputs, *names], (0, 1, 1, 2))
        self.saved = len(saved)
        if saved:
            lines.append(f"ctx.save_for_backward({', '.join(saved)})")
            if self.choose([True, False]):
                lines.append(f"ctx.save_for_forward({', '.join(saved)})")
        changed = [name for name in self.inputs if name in outputs]
        if changed and self.choose([True, True, False]):
            lines.append(f"ctx.mark_dirty({', '.join(changed)})")
        elif not self.choose(range(10)):
            lines.append(f"ctx.mark_dirty({self.choose(scope)})")
        if not self.choose(range(4)):
            lines.append(f"ctx.mark_non_differentiable({', '.join(self.some([*names, *names, *scope], (1, 1, 2)))})")
        if not self.choose(range(5)):
            lines.append("ctx.set_materialize_grads(False)")
        return lines or ["pass"]

    def backward(self, count: int) -> list[str]:
        grads = [f"g{number}" for number in range(count)]
        lines = [f"note('{self.name} backward', {', '.join(grads)}, ctx.needs_input_grad)"]
        reads = self.saved and self.choose([True, True, False])
        if reads:
            lines.append("saved = ctx.saved_tensors")
        values = [f"saved[{number}]" for number in range(self.saved)] if reads else ["2"]
        if not self.choose(range(10)):
            lines.append("note('grad mode', torch.is_grad_enabled())")
        results = []
        for name in self.inputs:
            text = self.choose(_GRADIENTS)
            results.append(text.format(g=self.choose(grads), s="(2, 2)", v=self.choose(values), x=name))
        if not self.choose(range(15)):
            results = self.choose([results[1:] or ["None", "None"], [*results, "None"], [*results, results[0]]])
        returned = f"return {results[0]}" if len(results) == 1 else f"return {', '.join(results)}"
        if not self.choose(range(8)):
            lines.append("with torch.no_grad():")
            returned = "    " + returned
        elif not self.choose(range(8)):
            lines.append("with torch.enable_grad():")
            returned = "    " + returned
        decorators = ["@torch.autograd.function.once_differentiable"] if not self.choose(range(6)) else []
        name = "vjp" if not self.choose(range(20)) else "backward"
        return _method(f"{name}(ctx, {', '.join(grads)})", [*lines, returned], decorators)

    def jvp(self, count: int) -> list[str]:
        if self.choose([True, True, False]):
            return []
        tangents = [f"t{name}" for name in self.inputs]
        results = []
        for _ in range(count):
            one = self.choose(tangents)
            results.append(
                self.choose([f"{one} * 2", f"{one}", f"{one}.view(-1)", "None", f"{one}.clone()", f"{one}.mul_(2)"])
            )
        returned = f"return ({', '.join(results)},)" if self.several else f"return {results[0]}"
        return _method(f"jvp(ctx, {', '.join(tangents)})", [f"note('jvp', {', '.join(tangents)})", returned])


def _method(head: str, body: list[str], decorators: Sequence[str] = ()) -> list[str]:
    lines = ["    @staticmethod", *("    " + each for each in decorators), f"    def {head}:"]
    return lines + ["        " + line for line in body]


def drawn_program(choose: Choose) -> list[str]:
    """Draw the lines of a program. The first four lines create leaves."""
    function = Drawn(choose, "Drawn")
    lines = [*LEAVES, function.source()]
    tensors = ["a", "b", "c"]
    number = 0

    def fresh() -> str:
        nonlocal number
        number += 1
        return f"t{number}"

    for _ in range(choose([1, 1, 2])):
        name = fresh()
        lines.append(f"{choose(['', '', '', '', *_UNDER])}{name} = {choose(_MADE)}")
        tensors += [name, name]
    if not choose(range(6)):
        lines.append("modes.enter(torch.autograd.forward_ad.dual_level())")
        name = fresh()
        lines.append(
            f"{name} = torch.autograd.forward_ad.make_dual({choose(tensors)}, torch.ones(2, 2, dtype=torch.float64))"
        )
        tensors += [name, name, name]
    for _ in range(choose([1, 1, 1, 2])):
        arguments = [choose([*tensors, *(["d"] if not choose(range(10)) else [])]) for _ in function.inputs]
        if not choose(range(15)):
            arguments[0] = choose(["2.0", "None", "'text'"])
        call = f"Drawn.apply({', '.join(arguments)})"
        if function.several:
            name = fresh()
            results = [fresh() for _ in range(function.count)]
            lines.append(f"{choose(['', '', '', '', '', *_UNDER])}{name} = {call}")
            lines += [f"{each} = {name}[{position}]" for position, each in enumerate(results)]
            tensors += results
        else:
            name = fresh()
            lines.append(f"{choose(['', '', '', '', '', *_UNDER])}{name} = {call}")
            tensors += [name, name]
    for _ in range(choose([1, 2, 3, 4])):
        kind = choose([_USES, _USES, _BACKWARDS])
        recent = tensors[-4:]
        name = fresh()
        line = choose(kind).format(r=name, x=choose(recent), y=choose(tensors))
        if kind is _USES and not line.startswith("with") and not choose(range(10)):
            line = choose(_UNDER) + line
        lines.append(line)
        if line.partition(": ")[2].startswith(name) or line.startswith(name):
            tensors.append(name)
    return lines


def difference_of(seed: Choose) -> tuple[Program, str, list[Explained]] | None:
    """Return a program, the first difference, and its explanations, or None if no difference exists."""
    program = Program(seed)
    try:
        for line in drawn_program(seed):
            difference = step(program, line)
            if difference:
                return program, difference, explanations(program, difference, EXPLAINED)
    finally:
        program.actual.close()
        program.expected.close()
    return None


def step(program: Program, line: str) -> str | None:
    """Run a line with both libraries, and return the difference of errors, warnings and visible state."""
    program.lines.append(line)
    code = compile(line, "<program>", "exec")
    error, warned = _run(program.actual, code)
    expected_error, expected_warned = _run(program.expected, code)
    one, two = (None if each is None else f"{type(each).__name__}: {each}" for each in (error, expected_error))
    if expected_error is not None:
        program.lines[-1] += f"  # {type(expected_error).__name__}"
        program.errors += repr(expected_error)
    if _said(one) != _said(two) and not (one and two and _said(one).startswith(_said(two).rstrip())):
        return f"raised {one}\nEXPECTED {two}"
    if warned != expected_warned:
        return f"warned {warned}, expected {expected_warned}"
    return program.compare_values() or program.compare_logs() or program.compare_graphs()


def _run(run: Any, code: Any) -> tuple[Exception | None, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        error = run.step(code)
    words = [f"{each.category.__name__}: {' '.join(str(each.message).split()[:6])}" for each in caught]
    return error, [each for each in words if not re.search(_SAID_ONCE, each)]


def _said(error: str | None) -> str:
    """Return the text of an error without addresses and the name of the library."""
    return re.sub("0x[0-9a-f]+", "0x", (error or "").replace("adjoint.", "torch."))
