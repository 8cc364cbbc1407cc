"""Scans along one dimension: the extremum so far and its last index; sums of integers and exponentials; complex scans."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy
from numpy import ndarray

from ....codegen.llvm.elementary_power import logaddexp
from ....codegen.llvm.language import *
from ....codegen.llvm.launch import launch
from ....codegen.llvm.vectors import first_lanes
from ...memory.copying import contiguous

_LINES = 4
"""Rows that are gone along together, if there are so many: in each, every element waits for the one before."""

_TILE = 256
"""Columns that are gone down together."""


@loops
def takes_over(x: T, best: T, MAXIMUM: Static) -> boolean:
    """Whether an element takes the place of the extremum so far: if it is as good, or NaN."""
    if x.type.kind == "f":
        return (not (x < best) if MAXIMUM else not (x > best)) & ((best == best) | (x != x))
    return x >= best if MAXIMUM else x <= best


@loops(explicit=True, plain=True)
def extremum_rows(
    values: Pointer[T], places: Pointer[i64], x: Pointer[T], rows: Int, n: Int, MAXIMUM: Static, LINES: Static,
    start: Int, stop: Int,
) -> None:  # fmt: skip
    """The extrema so far in rows of `n` elements; the last group of rows may lie over the one before, to write the same again."""
    best = local(T, LINES)
    place = local(i64, LINES)
    for group in range(start, stop):
        first = minimum(group * LINES, rows - LINES) * n
        for LINE in unrolled(LINES):
            best[LINE] = x[first + LINE * n]
            place[LINE] = 0
        for i in range(n):
            for LINE in unrolled(LINES):
                here = first + (LINE * n + i)
                element = x[here]
                taken = takes_over(element, best[LINE], MAXIMUM)
                best[LINE] = element if taken else best[LINE]
                place[LINE] = i if taken else place[LINE]
                values[here] = best[LINE]
                places[here] = place[LINE]


@loops(explicit=True)
def extremum_line(
    values: Pointer[T], places: Pointer[i64], x: Pointer[T], rows: Int, n: Int, MAXIMUM: Static, W: Static,
    start: Int, stop: Int,
) -> None:  # fmt: skip
    """The extrema so far in one row after another; most runs of `W` elements have none that takes over."""
    for row in range(start, stop):
        first = row * n
        best = x[first]
        place = i64(0)
        i = Int(0)
        while i < n:
            width = minimum(n - i, W)
            found = True
            if width == W:
                found = reduce_or(takes_over(load(x + (first + i), W), broadcast(best, W), MAXIMUM))
            if found:
                for k in range(i, i + width):
                    element = x[first + k]
                    taken = takes_over(element, best, MAXIMUM)
                    best = element if taken else best
                    place = k if taken else place
                    values[first + k] = best
                    places[first + k] = place
            else:
                store(values + (first + i), broadcast(best, W))
                store(places + (first + i), broadcast(place, W))
            i += width


@loops
def column_tile(piece: Int, inner: Int) -> tuple[Int, Int, Int]:
    """The matrix that a tile of columns belongs to, its first column, and how many it has."""
    tiles = (inner + _TILE - 1) // _TILE
    outer = piece // tiles
    first = (piece - outer * tiles) * _TILE
    return outer, first, minimum(inner - first, _TILE)


@loops(explicit=True, plain=True)
def extremum_columns(
    values: Pointer[T], places: Pointer[i64], x: Pointer[T], n: Int, inner: Int, MAXIMUM: Static, W: Static,
    start: Int, stop: Int,
) -> None:  # fmt: skip
    """From (outer, n, inner): the extrema so far of columns, `_TILE` of them side by side."""
    for piece in range(start, stop):
        outer, first, width = column_tile(piece, inner)
        for i in range(n):
            here = (outer * n + i) * inner + first
            before = here - (inner if i > 0 else 0)
            j = 0
            while j + W <= width:
                element = load(x + (here + j), W)
                best = load((values if i > 0 else x) + (before + j), W)
                taken = takes_over(element, best, MAXIMUM)
                store(values + (here + j), where(taken, element, best))
                if i > 0:
                    store(places + (here + j), where(taken, broadcast(i, W), load(places + (before + j), W)))
                else:
                    store(places + (here + j), vector(i64, W)(0))
                j += W
            while j < width:
                number = x[here + j]
                last = values[before + j] if i > 0 else number
                better = takes_over(number, last, MAXIMUM)
                values[here + j] = number if better else last
                places[here + j] = i if better else (places[before + j] if i > 0 else 0)
                j += 1


@loops(explicit=True, plain=True)
def sum_rows(out: Pointer[i64], x: Pointer[T], n: Int, start: Int, stop: Int) -> None:
    """The sums so far in rows of `n` integers."""
    for row in range(start, stop):
        total = i64(0)
        for i in range(n):
            total = total + i64(x[row * n + i])
            out[row * n + i] = total


@loops(explicit=True, plain=True)
def sum_columns(out: Pointer[i64], x: Pointer[T], n: Int, inner: Int, W: Static, start: Int, stop: Int) -> None:
    """From (outer, n, inner): the sums so far of columns of integers, `_TILE` of them side by side."""
    for piece in range(start, stop):
        outer, first, width = column_tile(piece, inner)
        for i in range(n):
            here = (outer * n + i) * inner + first
            j = 0
            while j + W <= width:
                element = vector(i64, W)(load(x + (here + j), W))
                store(out + (here + j), element + load(out + (here + j - inner), W) if i > 0 else element)
                j += W
            while j < width:
                number = i64(x[here + j])
                out[here + j] = number + out[here + j - inner] if i > 0 else number
                j += 1


@loops(explicit=True, plain=True)
def scan_pairs(
    out: Pointer[T],
    x: Pointer[T],
    rows: Int,
    n: Int,
    PRODUCT: Static,
    REVERSED: Static,
    LINES: Static,
    start: Int,
    stop: Int,
) -> None:
    """The sums or products so far in rows of `n` complex numbers, or from their ends on; groups of rows as in `extremum_rows`."""
    PAIR = vector(f64, 2)
    totals = local(PAIR, LINES)
    signs = PAIR(lanes(i64, 2)) * 2 - 1
    for group in range(start, stop):
        first = minimum(group * LINES, rows - LINES) * n
        for LINE in unrolled(LINES):
            totals[LINE] = shuffle(PAIR(lanes(i64, 2)), PAIR(0), [1, 0] if PRODUCT else [2, 2])
        for i in range(n):
            for LINE in unrolled(LINES):
                here = (first + (LINE * n + (n - 1 - i if REVERSED else i))) * 2
                element, total = PAIR(load(x + here, 2)), totals[LINE]
                if PRODUCT:
                    crossed = shuffle(total, total, [1, 0]) * shuffle(element, element, [1, 1])
                    totals[LINE] = total * shuffle(element, element, [0, 0]) + crossed * signs
                else:
                    totals[LINE] = total + element
                store(out + here, vector(T, 2)(totals[LINE]))


@loops(explicit=True, plain=True)
def exponential_rows(
    out: Pointer[T], x: Pointer[T], rows: Int, n: Int, LINES: Static, start: Int, stop: Int
) -> None:  # fmt: skip
    """The logarithms of sums of exponentials so far in `LINES` rows at once, in float64; the last ones lie over those before."""
    part = local(T, LINES)
    for group in range(start, stop):
        first = minimum(group * LINES, rows - LINES) * n
        total = vector(f64, LINES)(f64(0))
        for i in range(n):
            for LINE in unrolled(LINES):
                part[LINE] = x[first + (LINE * n + i)]
            element = vector(f64, LINES)(load(part, LINES))
            total = logaddexp(total, element) if i > 0 else element
            store(part, vector(T, LINES)(total))
            for LINE in unrolled(LINES):
                out[first + (LINE * n + i)] = part[LINE]


@loops(explicit=True, plain=True)
def exponential_columns(
    out: Pointer[T], x: Pointer[T], n: Int, inner: Int, W: Static, start: Int, stop: Int
) -> None:  # fmt: skip
    """From (outer, n, inner): the same of columns, `_TILE` of them side by side."""
    totals = local(f64, _TILE)
    for piece in range(start, stop):
        outer, first, width = column_tile(piece, inner)
        for i in range(n):
            here = (outer * n + i) * inner + first
            for j in range(0, width, W):
                there = first_lanes(width - j, W)
                total = vector(f64, W)(load(x + (here + j), W, there))
                if i > 0:
                    total = logaddexp(load(totals + j, W), total)
                store(totals + j, total)
                store(out + (here + j), vector(T, W)(total), there)


@functools.lru_cache(64)
def _extremum(kind: Any, maximum: bool, lines: int, width: int) -> Any:
    if lines == 1:
        return extremum_line.compiled(T=kind, MAXIMUM=maximum, W=width)
    if lines:
        return extremum_rows.compiled(T=kind, MAXIMUM=maximum, LINES=lines)
    return extremum_columns.compiled(T=kind, MAXIMUM=maximum, W=width)


@functools.lru_cache(32)
def _sum(kind: Any, rows: bool, width: int) -> Any:
    return sum_rows.compiled(T=kind) if rows else sum_columns.compiled(T=kind, W=width)


def extremum(x: ndarray, dim: int, maximum: bool) -> Any:
    """The extrema so far along `dim`, and where they were last attained. NotImplemented if no loop exists for it."""
    kind = u8 if x.dtype.kind == "b" else type_of(x.dtype)
    if kind is None or kind.storage_only or not x.size:
        return NotImplemented
    x = contiguous(x)
    values, places = numpy.empty(x.shape, x.dtype), numpy.empty(x.shape, numpy.int64)
    arrays = address(values), address(places), address(x)
    rows, n = math.prod(x.shape[:dim]), x.shape[dim]
    if math.prod(x.shape[dim + 1 :]) == 1:
        lines = min(rows, _LINES)
        function = _extremum(kind, maximum, lines, HOST.vector_bytes // 8)
        launch(function, -(-rows // lines), lines * n * 4 * (x.itemsize + 8), *arrays, rows, n)
    else:
        _run(_extremum(kind, maximum, 0, HOST.vector_bytes // 8), x, dim, *arrays)
    return values, places


def integer_sum(x: ndarray, dim: int) -> Any:
    """The sums so far along `dim` in int64. NotImplemented if no loop exists for it."""
    kind = u8 if x.dtype.kind == "b" else type_of(x.dtype)
    if kind is None or kind.kind == "f" or not x.size:
        return NotImplemented
    x = contiguous(x)
    out = numpy.empty(x.shape, numpy.int64)
    outer, n = math.prod(x.shape[:dim]), x.shape[dim]
    if math.prod(x.shape[dim + 1 :]) == 1:
        launch(_sum(kind, True, 1), outer, n * 2 * (x.itemsize + 8), address(out), address(x), n)
    else:
        _run(_sum(kind, False, HOST.vector_bytes // 8), x, dim, address(out), address(x))
    return out


def complex_scan(x: ndarray, dim: int, product: bool, reverse: bool) -> Any:
    """The sums or products of complex numbers so far along `dim`, the last, or from its end on, carried in complex128."""
    if not x.size or math.prod(x.shape[dim + 1 :]) != 1:
        return NotImplemented
    x = contiguous(x)
    out = numpy.empty(x.shape, x.dtype)
    n = x.shape[dim]
    rows = x.size // n
    lines = min(rows, _LINES)
    function = _scan(type_of(x.real.dtype), product, reverse, lines)
    launch(function, -(-rows // lines), lines * n * 4 * x.itemsize, address(out), address(x), rows, n)
    return out


@functools.lru_cache(32)
def _scan(kind: Any, product: bool, reverse: bool, lines: int) -> Any:
    return scan_pairs.compiled(T=kind, PRODUCT=product, REVERSED=reverse, LINES=lines)


@functools.lru_cache(16)
def _exponential(kind: Any, lines: int, width: int) -> Any:
    return exponential_rows.compiled(T=kind, LINES=lines) if lines else exponential_columns.compiled(T=kind, W=width)


def logcumsumexp(x: ndarray, dim: int) -> Any:
    """The logarithms of the sums of exponentials so far along `dim`. NotImplemented if no loop exists for it."""
    if x.dtype.char not in "fd" or not x.size:
        return NotImplemented
    kind, width = type_of(x.dtype), HOST.vector_bytes // 8
    x = contiguous(x)
    out = numpy.empty(x.shape, x.dtype)
    rows, n = math.prod(x.shape[:dim]), x.shape[dim]
    if math.prod(x.shape[dim + 1 :]) == 1:
        lines = 2 * width if rows >= 2 * width else 1  # each element waits for the one before
        function = _exponential(kind, lines, width)
        launch(function, -(-rows // lines), lines * n * 64, address(out), address(x), rows, n)
    else:
        _run(_exponential(kind, 0, width), x, dim, address(out), address(x))
    return out


def _run(function: Any, x: ndarray, dim: int, *arrays: int) -> None:
    """Call a function that goes down columns."""
    outer, n, inner = math.prod(x.shape[:dim]), x.shape[dim], math.prod(x.shape[dim + 1 :])
    pieces, width = outer * -(-inner // _TILE), min(inner, _TILE)
    launch(function, pieces, n * width * 2 * (x.itemsize + 8), *arrays, n, inner)
