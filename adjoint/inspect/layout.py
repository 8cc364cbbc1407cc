"""Layout: boxes in ranks, edges that lead downward, with few crossings and bends.

The method is the layered layout of Sugiyama, Tagawa and Toda (1981): break cycles, assign a rank to each box, route
long edges through the intermediate ranks, order each rank by the medians of its neighbours, and choose horizontal
positions as Brandes and Köpf (2002) do. Blocks are separated by longest paths. The module does not depend on the
meaning of boxes, and uses no recursion. The page uses the same steps in `page/layout.js`, and a test compares both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from typing import Literal

SWEEPS = 12
DOOR_GAP = 8.0
LANES = 20_000
"""Long edges take at most this many places in ranks. Beyond this limit, the longest edges are straight lines."""


@dataclass(slots=True)
class Box:
    """A box to be placed, with its extent around its axis and its line. The boxes of a rank share one line.

    A box with a `pin` has the first or the last rank. Such a rank contains only pinned boxes: the doors of a frame. The
    main path is straight and starts at a box with a high `start`. A `low` box is placed at the bottom of a tall rank.
    """

    left: float
    right: float
    above: float
    below: float
    pin: Literal["", "first", "last"] = ""
    start: float = 0.0
    low: bool = False
    x: float = 0.0
    y: float = 0.0
    rank: int = 0


@dataclass(slots=True)
class Edge:
    """An edge between two boxes, given by their numbers.

    `width` is the space that the edge takes in a rank that it crosses.

    Edges with the same source and `trunk` are branches of one edge. They share lanes as far as possible.
    """

    source: int
    target: int
    width: float = 12.0
    trunk: str | None = None
    lanes: list[float] = field(default_factory=list)
    """The x position of the edge in each of the ranks between source and target."""


@dataclass(slots=True)
class Layout:
    """The total size, and the top and bottom of each rank."""

    width: float
    height: float
    bands: list[tuple[float, float]]


def place(boxes: Sequence[Box], edges: Sequence[Edge], column_gap: float = 36.0, rank_gap: float = 44.0) -> Layout:
    """Set `x`, `y` and `rank` of each box, and `lanes` of each edge. The upper left corner of the picture is (0, 0)."""
    if not boxes:
        return Layout(0.0, 0.0, [])
    pairs = acyclic(len(boxes), [(edge.source, edge.target) for edge in edges])
    for box, rank in zip(boxes, pinned(boxes, ranks(len(boxes), pairs)), strict=True):
        box.rank = rank
    graph = _Threaded(boxes, edges, pairs)
    order(graph)
    xs = positions(graph, column_gap)
    for box, x in zip(boxes, xs, strict=False):
        box.x = x
    for edge, lane, (source, target) in zip(edges, graph.chains, pairs, strict=True):
        edge.lanes = [xs[place] for place in (lane if (edge.source, edge.target) == (source, target) else lane[::-1])]
    left = min([box.x - box.left for box in boxes] + [x - e.width / 2 for e in edges for x in e.lanes])
    right = max([box.x + box.right for box in boxes] + [x + e.width / 2 for e in edges for x in e.lanes])
    for box in boxes:
        box.x -= left
    for edge in edges:
        edge.lanes = [x - left for x in edge.lanes]
    bands = _bands(boxes, edges, rank_gap)
    return Layout(right - left, bands[-1][1], bands)


def acyclic(count: int, edges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the edges. Edges that close a cycle are reversed."""
    edges = list(edges)
    leaving: list[list[int]] = [[] for _ in range(count)]
    entered = [0] * count
    for number, (source, target) in enumerate(edges):
        leaving[source].append(number)
        entered[target] += 1
    state = bytearray(count)  # 0 not seen, 1 on the path, 2 done
    turned = set()
    for start in sorted(range(count), key=lambda box: entered[box] > 0):
        if state[start]:
            continue
        state[start] = 1
        path = [(start, iter(leaving[start]))]
        while path:
            box, rest = path[-1]
            for number in rest:
                target = edges[number][1]
                if state[target] == 1:
                    turned.add(number)
                elif state[target] == 0:
                    state[target] = 1
                    path.append((target, iter(leaving[target])))
                    break
            else:
                state[box] = 2
                path.pop()
    return [(t, s) if number in turned else (s, t) for number, (s, t) in enumerate(edges)]


def ranks(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Return a rank for each box, so that every edge leads downward.

    A box is as low as its uses allow, unless more edges lead up than down.
    """
    before: list[list[int]] = [[] for _ in range(count)]
    after: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        if source != target:
            before[target].append(source)
            after[source].append(target)
    waiting = [len(targets) for targets in after]
    from_end = [box for box in range(count) if not waiting[box]]
    rank = [0] * count
    for box in from_end:
        rank[box] = min((rank[target] for target in after[box]), default=0) - 1
        for source in before[box]:
            waiting[source] -= 1
            if not waiting[source]:
                from_end.append(source)
    for box in reversed(from_end):
        if before[box] and len(before[box]) > len(after[box]):
            rank[box] = max(rank[source] for source in before[box]) + 1
    first = min(rank)
    return [number - first for number in rank]


def pinned(boxes: Sequence[Box], rank: list[int]) -> list[int]:
    """Return the ranks with pinned boxes before and after all others."""
    if not any(box.pin for box in boxes):
        return rank
    free = [number for box, number in zip(boxes, rank, strict=True) if not box.pin] or [0]
    first, last = min(free), max(free)
    begin = 1 if any(box.pin == "first" for box in boxes) else 0
    places = {"first": 0, "last": last - first + 1 + begin}
    return [places.get(box.pin, number - first + begin) for box, number in zip(boxes, rank, strict=True)]


class _Threaded:
    """The graph with a place in each rank for every long edge. The boxes come first, followed by these places."""

    def __init__(self, boxes: Sequence[Box], edges: Sequence[Edge], pairs: Sequence[tuple[int, int]]) -> None:
        self.boxes = len(boxes)
        self.left = [box.left for box in boxes]
        self.right = [box.right for box in boxes]
        self.rank = [box.rank for box in boxes]
        self.above: list[list[int]] = [[] for _ in boxes]
        self.below: list[list[int]] = [[] for _ in boxes]
        self.chains: list[list[int]] = [[] for _ in edges]
        lanes = 0
        by_length = sorted(range(len(edges)), key=lambda e: self.rank[pairs[e][1]] - self.rank[pairs[e][0]])
        threaded = set()
        trunks: dict[tuple[int, str], list[int]] = {}
        for number in by_length:
            lanes += max(self.rank[pairs[number][1]] - self.rank[pairs[number][0]] - 1, 0)
            if lanes <= LANES:
                threaded.add(number)
        for number, (edge, (source, target)) in enumerate(zip(edges, pairs, strict=True)):
            if source == target or number not in threaded:
                continue
            trunk: list[int] = []
            if edge.trunk is not None and source == edge.source:
                trunk = trunks.setdefault((source, edge.trunk), trunk)
            previous, first = source, self.rank[source] + 1
            for rank in range(first, self.rank[target]):
                if rank - first == len(trunk):
                    trunk.append(self._lane(rank))
                    self._join(previous, trunk[-1])
                previous = trunk[rank - first]
                self.left[previous] = self.right[previous] = max(self.left[previous], edge.width / 2)
                self.chains[number].append(previous)
            self._join(previous, target)
        self.main = self._main_path([box.start for box in boxes])
        self.order: list[list[int]] = [[] for _ in range(max(self.rank) + 1)]
        self.position = [0] * len(self.rank)

    def _lane(self, rank: int) -> int:
        self.left.append(0.0)
        self.right.append(0.0)
        self.rank.append(rank)
        self.above.append([])
        self.below.append([])
        return len(self.rank) - 1

    def _join(self, upper: int, lower: int) -> None:
        self.below[upper].append(lower)
        self.above[lower].append(upper)

    def _main_path(self, starts: list[float]) -> list[int]:
        """Return the lower place that continues the main path of each place, or -1.

        The edge to this place lies on a longest path from a start and on a longest path to an end.
        """
        count = len(self.rank)
        depth = [starts[place] if place < self.boxes else -inf for place in range(count)]
        height = [0] * count
        by_rank = sorted(range(count), key=self.rank.__getitem__)
        for place in by_rank:
            if self.above[place]:
                longest = max(depth[other] for other in self.above[place])
                depth[place] = max(depth[place], longest + (place < self.boxes))
        for place in reversed(by_rank):
            if self.below[place]:
                height[place] = max(height[other] for other in self.below[place]) + (place < self.boxes)
        upper = [max(near, key=depth.__getitem__, default=-1) for near in self.above]
        lower = [max(near, key=height.__getitem__, default=-1) for near in self.below]
        return [below if below >= 0 and upper[below] == place else -1 for place, below in enumerate(lower)]

    def arrange(self, order: list[list[int]]) -> None:
        """Set the order of every rank."""
        self.order = order
        for row in order:
            for position, place in enumerate(row):
                self.position[place] = position


def order(graph: _Threaded) -> None:
    """Order every rank. Start with a traversal from the end, sweep by medians, and keep the order with the fewest crossings."""
    graph.arrange(_walk_order(graph))
    best, crossings = [row[:] for row in graph.order], _crossings(graph)
    for sweep in range(SWEEPS):
        if crossings == 0:
            break
        _sweep(graph, downward=sweep % 2 == 0)
        if (now := _crossings(graph)) < crossings:
            best, crossings = [row[:] for row in graph.order], now
    graph.arrange(best)


def _walk_order(graph: _Threaded) -> list[list[int]]:
    rows: list[list[int]] = [[] for _ in graph.order]
    seen = bytearray(len(graph.rank))
    for end in sorted(range(len(graph.rank)), key=lambda place: -graph.rank[place]):
        if seen[end]:
            continue
        stack = [end]
        while stack:
            place = stack.pop()
            if seen[place]:
                continue
            seen[place] = 1
            rows[graph.rank[place]].append(place)
            stack += reversed(graph.above[place])
    return rows


def _sweep(graph: _Threaded, downward: bool) -> None:
    rows = graph.order if downward else graph.order[::-1]
    beside = graph.above if downward else graph.below
    for row in rows[1:]:
        keys = [_median(sorted(graph.position[other] for other in beside[place])) for place in row]
        free = [number for number, key in enumerate(keys) if key is not None]
        by_key = sorted(free, key=lambda number: keys[number] or 0.0)
        moved = row[:]
        for slot, number in zip(free, by_key, strict=True):  # places without neighbours keep their positions
            moved[slot] = row[number]
        row[:] = moved
        for position, place in enumerate(row):
            graph.position[place] = position


def _median(positions: list[int]) -> float | None:
    """Return the weighted median of Gansner and others (1993), which prefers the side with closer positions."""
    count = len(positions)
    if count == 0:
        return None
    middle = count // 2
    if count % 2:
        return float(positions[middle])
    if count == 2:
        return (positions[0] + positions[1]) / 2
    left, right = positions[middle - 1] - positions[0], positions[-1] - positions[middle]
    if left + right == 0:
        return (positions[middle - 1] + positions[middle]) / 2
    return (positions[middle - 1] * right + positions[middle] * left) / (left + right)


def _crossings(graph: _Threaded) -> int:
    """Return the number of crossings between adjacent ranks. A Fenwick tree counts the inversions of the lower ends."""
    total = 0
    for upper, lower in pairwise(graph.order):
        tree, seen = [0] * (len(lower) + 1), 0
        for place in upper:
            ends = sorted(graph.position[other] for other in graph.below[place])
            for end in ends:
                left, at = 0, end + 1
                while at:
                    left += tree[at]
                    at &= at - 1
                total += seen - left
            for end in ends:
                seen, at = seen + 1, end + 1
                while at <= len(lower):
                    tree[at] += 1
                    at += at & -at
    return total


def positions(graph: _Threaded, gap: float) -> list[float]:
    """Return an x position for every place: the average of the middle two of four extreme layouts, with long edges straight."""
    conflicts = _conflicts(graph)
    layouts = []
    for downward in (True, False):
        for leftward in (True, False):
            root, blocks = _align(graph, conflicts, downward, leftward)
            layouts.append((_compact(graph, root, blocks, gap, leftward), leftward))
    spans = []
    for xs, _ in layouts:
        lowest = min(x - left for x, left in zip(xs, graph.left, strict=True))
        highest = max(x + right for x, right in zip(xs, graph.right, strict=True))
        spans.append((highest - lowest, lowest, highest))
    _, low, high = min(spans)
    moved = []
    for (xs, leftward), (_, lowest, highest) in zip(layouts, spans, strict=True):
        shift = low - lowest if leftward else high - highest
        moved.append([x + shift for x in xs])
    return [sum(sorted(four)[1:3]) / 2 for four in zip(*moved, strict=True)]


def _conflicts(graph: _Threaded) -> set[tuple[int, int]]:
    """Return the segments that cross a more important segment: the main path, or a lane of a long edge.

    That segment must stay straight.
    """

    def is_main(above: int, place: int) -> bool:
        return graph.main[above] == place

    def is_lane(above: int, place: int) -> bool:
        return above >= graph.boxes and place >= graph.boxes

    found: set[tuple[int, int]] = set()
    for keeps in (is_main, is_lane):
        for row_number, row in enumerate(graph.order[1:], start=1):
            upper = graph.order[row_number - 1]
            low, scanned = 0, 0
            for number, place in enumerate(row):
                inner = next((above for above in graph.above[place] if keeps(above, place)), None)
                if inner is None and number < len(row) - 1:
                    continue
                high = len(upper) if inner is None else graph.position[inner]
                for other in row[scanned : number + 1]:
                    for above in graph.above[other]:
                        at = graph.position[above]
                        if (at < low or at > high) and not keeps(above, other) and not is_main(above, other):
                            found.add((above, other))
                scanned, low = number + 1, high
    return found


def _align(
    graph: _Threaded, conflicts: set[tuple[int, int]], downward: bool, leftward: bool
) -> tuple[list[int], list[list[int]]]:
    """Join places and their median neighbours to vertical blocks. Return the root of each block, and the rows."""
    count = len(graph.rank)
    root, following = list(range(count)), list(range(count))
    rows = graph.order if downward else graph.order[::-1]
    rows = rows if leftward else [row[::-1] for row in rows]
    beside = graph.above if downward else graph.below
    side = 1 if leftward else -1
    partner = graph.main
    if downward:
        partner = [-1] * count
        for above, below in enumerate(graph.main):
            if below >= 0:
                partner[below] = above
    taken = {other for other in partner if other >= 0}
    for row in rows[1:]:
        reached = -1.0 if leftward else -inf
        for place in row:
            near = [partner[place]] if partner[place] >= 0 else [o for o in beside[place] if o not in taken]
            near.sort(key=lambda other: side * graph.position[other])
            if not near:
                continue
            middle = (len(near) - 1) / 2
            for other in dict.fromkeys((near[int(middle)], near[int(middle + 0.5)])):
                segment = (other, place) if downward else (place, other)
                at = side * graph.position[other]
                if following[place] == place and at > reached and segment not in conflicts:
                    following[other] = place
                    following[place] = root[place] = root[other]
                    reached = at
    return root, rows


def _compact(graph: _Threaded, root: list[int], rows: list[list[int]], gap: float, leftward: bool) -> list[float]:
    """Move blocks to one side as far as the preceding boxes allow, and then back into free space."""
    count = len(root)
    before: list[dict[int, float]] = [{} for _ in range(count)]
    after: list[dict[int, float]] = [{} for _ in range(count)]
    for row in rows:
        for first, second in pairwise(row):
            room = gap + (
                graph.right[first] + graph.left[second] if leftward else graph.left[first] + graph.right[second]
            )
            one, two = root[first], root[second]
            before[two][one] = after[one][two] = max(before[two].get(one, 0.0), room)
    waiting = [len(blocks) for blocks in before]
    sequence = [place for place in range(count) if root[place] == place and not waiting[place]]
    xs = [0.0] * count
    for block in sequence:
        for other in after[block]:
            xs[other] = max(xs[other], xs[block] + after[block][other])
            waiting[other] -= 1
            if not waiting[other]:
                sequence.append(other)
    for block in reversed(sequence):
        if after[block]:
            xs[block] = max(xs[block], min(xs[other] - room for other, room in after[block].items()))
    sign = 1 if leftward else -1
    return [sign * xs[root[place]] for place in range(count)]


def _bands(boxes: Sequence[Box], edges: Sequence[Edge], gap: float) -> list[tuple[float, float]]:
    """Compute the top and bottom of each rank.

    The gap between two ranks is larger if edges run far sideways, and is small at doors.
    """
    count = max(box.rank for box in boxes) + 1
    above, below, far = [0.0] * count, [0.0] * count, [0.0] * count
    for box in boxes:
        above[box.rank] = max(above[box.rank], box.above)
        below[box.rank] = max(below[box.rank], box.below)
    for edge in edges:
        start, end = boxes[edge.source], boxes[edge.target]
        stops = [start.x, *edge.lanes, end.x]
        upper = min(start.rank, end.rank)
        if start.rank > end.rank:
            stops.reverse()
        for number, (here, there) in enumerate(pairwise(stops)):
            far[upper + number] = max(far[upper + number], abs(here - there))
    doors = {"first": 0, "last": count - 2}
    near = {doors[box.pin] for box in boxes if box.pin}
    bands, y = [], 0.0
    for rank in range(count):
        bands.append((y, y + above[rank] + below[rank]))
        least = DOOR_GAP if rank in near and far[rank] < 1 else gap * 0.6 if rank in near else gap
        y = bands[-1][1] + least + min(far[rank] * 0.06, gap)
    for box in boxes:
        box.y = bands[box.rank][0] + above[box.rank]
        if box.low and below[box.rank] > 3 * box.below:
            box.y = bands[box.rank][1] - box.below
    return bands
