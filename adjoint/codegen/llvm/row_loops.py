"""Loops for row programs and reductions.

They traverse each row in vectors, once for each reduction in the longest chain of dependent reductions.
Sums are accumulated lane by lane over runs of `RUN` vectors, and then the sums of the runs are added. This is about as
accurate as pairwise summation. If there are dimensions after the row, a tile of columns is processed in strips of one
vector, run by run, so that memory is read in order.
"""

from __future__ import annotations

from typing import Any

from .language import *
from .pointwise_loops import ExpressionLoops
from .row_plan import LAYOUT, RowPlan


@loops
def row_place(layout: list[Int], row: Int) -> Int:
    """Return the offset of a row in three dimensions: (inner size, inner step, middle size, middle step, outer step)."""
    inner, step, middle, middle_step, outer_step = layout
    line = row // inner
    return (row - line * inner) * step + (line % middle) * middle_step + (line // middle) * outer_step


@loops(noalias=False, explicit=True, plain=True)
def row_program(table: Pointer[i64], start: Int, stop: Int, PLAN: Static) -> None:
    """Compute the blocks from `start` to `stop`: single rows, chunks of rows, or groups of adjacent rows."""
    W = PLAN.width
    sizes = fields(table[0], LAYOUT)
    length, inner, chunk, tile, block = sizes.length, sizes.inner, sizes.chunk, sizes.tile, sizes.block
    known = PLAN.begin(table, length, length * sizes.parts * sizes.stretches if PLAN.parted else length)
    step = i64(1) if PLAN.along else i64(W) if PLAN.turned else sizes.step
    tiles = (inner + (tile - 1)) // tile
    chunks = (length + (chunk - 1)) // chunk
    for unit in range(start * block, minimum(stop * block, sizes.units)):
        line, column, begin, count, width = unit, i64(0), i64(0), length, inner
        if not PLAN.along:
            line = unit // tiles
            column = (unit - line * tiles) * tile
            width = minimum(inner - column, tile)
        row = line
        if PLAN.chunked:
            row = line // chunks
            begin = (line - row * chunks) * chunk
            count = minimum(length - begin, chunk)
        first = begin * step + column + (row_place(sizes.place, row) if PLAN.apart else row * sizes.outer_step)
        place = row * inner + column
        if PLAN.turned:
            first = i64(0)
            PLAN.turn(known, place, width, False)
        sums = (PLAN.sums(known) + (unit // block) * length * PLAN.sums_bytes, length)
        for P in unrolled(PLAN.passes):
            totals, runs = PLAN.places(P)
            for strip in PLAN.numbers(width):
                PLAN.reset(P, totals, strip)
            if PLAN.parted:
                current = PLAN.of_row(P, known, place, width, 0)
                for number in range(sizes.parts):
                    part = unit * sizes.parts + number
                    own = PLAN.begin_part(P, current, unit % sizes.period * sizes.parts + number, totals)
                    for stretch in range(sizes.stretches):
                        at = part * length + stretch * sizes.distance
                        walk(PLAN, P, own, place, at, length, step, width, sums, totals, runs)
                    PLAN.end_part(P, own, part, totals)
            else:
                walk(PLAN, P, known, place, first, count, step, width, sums, totals, runs)
                if PLAN.glued and begin + count == length:
                    rest = minimum(width, sizes.rest)
                    walk(PLAN, P, known, place, first + count * step, 1, step, rest, sums, totals, runs)
            PLAN.end_pass(P, known, totals)
        if PLAN.turned:
            PLAN.turn(known, place, width, True)
        for strip in PLAN.numbers(width):
            PLAN.end_row(known, place, line * inner + column, width, strip)


@loops(noalias=False, explicit=True, plain=True)
def walk(
    PLAN: Static, P: Static, known: Any, place: Int, first: Int, length: Int, step: Int, width: Int, sums: Any,
    totals: Any, runs: Any,
) -> None:  # fmt: skip
    """Traverse elements that are `step` apart, in runs whose reductions are merged into `totals`."""
    W = PLAN.width
    advance = W if PLAN.along else 1
    begun = i64(0)
    while begun < length:
        limit = minimum(length, begun + PLAN.run * advance)
        for strip in PLAN.numbers(width):
            current = PLAN.of_row(P, known, place, width, strip)
            if PLAN.merges:
                PLAN.reset(P, runs, 0)
            position = begun
            offset = PLAN.offset(strip, width)
            index = first + begun * step + offset
            left = limit - begun if PLAN.along else width - offset
            if left >= W:
                while position + (advance - 1) < limit:
                    PLAN.step(P, current, index, position, W, sums, runs)
                    position += advance
                    index += advance * step
            if PLAN.along:
                left = limit - position
            if PLAN.overlaps and left > 0 and length >= W:  # the last vector also contains elements before
                back = W - left
                PLAN.step(P, current, index - back, position - back, W, sums, runs, back)
                position = limit
            while position < limit:
                PLAN.step(P, current, index, position, left, sums, runs)
                position += advance
                index += advance * step
            if PLAN.merges:
                PLAN.merge(P, totals, strip, runs)
        begun = limit


def row_kernel(name: str, plan: RowPlan, expression: str) -> CompiledFunction:
    """Compile the loops of a plan."""
    return ExpressionLoops(row_program, name, expression).compiled(PLAN=plan)
