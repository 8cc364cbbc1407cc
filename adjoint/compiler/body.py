"""The code that runs a program in place of a function. It is written when the program runs first."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..dispatch.source import compile_source, indented
from .backward import Gradients
from .expectations import with_effects
from .native import fused
from .program import Instruction, Program, Source
from .views import Tail


class Body(NamedTuple):
    """The code that runs a program.

    `steps`: the instructions that run, by their lines in the source. A program for any size has no such instructions.
    `origins`: the user's lines, by lines in the source.
    """

    source: str
    steps: dict[int, Instruction]
    origins: dict[int, tuple[str, int]]
    run: Any

    @classmethod
    def of(
        cls,
        program: Program,
        source: Source,
        wanted: set[int],
        saved: list[int],
        first_lines: list[str],
        effects: list[str],
        tail: Tail,
    ) -> Body:
        """Write the code for a program. `tail`: the lines that create the results."""
        kept = program.used(wanted | {each.number for each in program.gradients})
        forward = fused(program, program.instructions[: program.boundary], kept[: program.boundary], wanted)
        if program.seeds:
            source.namespace["gradients"] = Gradients(program, saved, source)
        source.run(forward, wanted | {*program.inputs, *program.numbers}, program.shapes)
        lines, positions = with_effects(forward, source.lines, effects, source.namespace)
        numbers = [len(first_lines) + 1 + position for position in positions]
        origins = {numbers[position]: line for position, line in source.origins.items()}
        written = cls.compiled([*first_lines, *indented([*lines, *tail.lines(program, source)])], source.namespace)
        return written._replace(steps=dict(zip(numbers, forward, strict=True)), origins=origins)

    @classmethod
    def compiled(cls, lines: list[str], namespace: dict[str, Any]) -> Body:
        """Compile the lines."""
        text = "\n".join(lines) + "\n"
        compile_source(text, "<adjoint compiled function>", namespace)
        return cls(text, {}, {}, namespace["run"])
