"""Loops for row programs.

They traverse each row in vectors, once for each reduction in the longest chain of dependent reductions.

The layout of a call (`calls`) contains the number of rows (or of groups of adjacent rows), the length of a row or of a
stretch of a part, the size of the dimensions after the row, and the number of rows in a block. If rows are `PARTED`, it
also contains the number of parts in a row, the number of stretches in a part, the distance between stretches, and the
number of rows after which the inputs with one value per part repeat.

Sums are accumulated lane by lane over runs of `RUN` vectors, and then the sums of the runs are added. This is about as
accurate as pairwise summation.
"""

from __future__ import annotations

from typing import Any

from .language import *
from .pointwise_loops import ExpressionLoops
from .row_plan import RowPlan

RUN = 64


@loops(noalias=False, explicit=True, plain=True)
def row_program(table: Pointer[i64], start: Int, stop: Int, PLAN: Static) -> None:
    """Compute the blocks from `start` to `stop`: single rows, or groups of adjacent rows."""
    W = PLAN.width
    layout = as_pointer(table[0], i64)
    units, length, inner, block = layout[0], layout[1], layout[2], layout[3]
    known = PLAN.begin(table, length, length * layout[4] * layout[5] if PLAN.parted else length)
    strips = (inner + (W - 1)) // W
    for unit in range(start * block, minimum(stop * block, units)):
        if PLAN.along:
            first_row = unit
            first = unit * length
            step = i64(1)
            lanes_left = length
        else:
            outer = unit // strips
            column = (unit - outer * strips) * W
            first_row = outer * inner + column
            first = outer * length * inner + column
            step = inner
            lanes_left = inner - column
            if PLAN.turned:
                first = i64(0)
                step = i64(W)
        current = PLAN.begin_row(known, first_row, lanes_left)
        sums = (PLAN.sums(known) + (unit // block) * length * PLAN.sums_bytes, length)
        for P in unrolled(PLAN.passes):
            totals = PLAN.places(P)
            runs = PLAN.places(P)
            PLAN.reset(P, totals)
            if PLAN.parted:
                parts, stretches, distance, period = layout[4], layout[5], layout[6], layout[7]
                for number in range(parts):
                    own = PLAN.begin_part(P, current, unit % period * parts + number, totals)
                    part = unit * parts + number
                    for stretch in range(stretches):
                        walk(
                            PLAN,
                            P,
                            own,
                            part * length + stretch * distance,
                            length,
                            step,
                            lanes_left,
                            sums,
                            totals,
                            runs,
                        )
                    PLAN.end_part(P, own, part, totals)
            else:
                walk(PLAN, P, current, first, length, step, lanes_left, sums, totals, runs)
            PLAN.end_pass(P, current, totals)
        PLAN.end_row(current, first_row, lanes_left)


@loops(noalias=False, explicit=True, plain=True)
def walk(
    PLAN: Static, P: Static, known: Any, first: Int, length: Int, step: Int, lanes_left: Int, sums: Any, totals: Any, runs: Any
) -> None:  # fmt: skip
    """Traverse elements that are `step` apart, in runs whose reductions are merged into `totals`."""
    W = PLAN.width
    position = i64(0)
    advance = W if PLAN.along else 1
    while position < length:
        PLAN.reset(P, runs)
        limit = minimum(length, position + RUN * advance)
        while position < limit:
            left = length - position if PLAN.along else lanes_left
            index = first + position * step
            if left >= W:
                PLAN.step(P, known, index, position, W, sums, runs)
            else:
                PLAN.step(P, known, index, position, left, sums, runs)
            position += advance
        PLAN.merge(P, totals, runs)


def row_kernel(name: str, plan: RowPlan, expression: str) -> CompiledFunction:
    """Compile the loops of a plan."""
    return ExpressionLoops(row_program, name, expression).compiled(PLAN=plan)
