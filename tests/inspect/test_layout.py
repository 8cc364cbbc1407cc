"""The layout: ranks, lanes and positions of any graph."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjoint.inspect.layout import Box, Edge, Layout, acyclic, place, ranks


@st.composite
def graphs(draw, cyclic=False):
    count = draw(st.integers(1, 14))
    boxes = [
        Box(
            draw(st.integers(5, 90)),
            draw(st.integers(5, 90)),
            draw(st.sampled_from([0, 30])),
            draw(st.integers(20, 90)),
        )
        for _ in range(count)
    ]
    pairs = draw(st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=30))
    pairs = list(dict.fromkeys((a, b) if cyclic or a < b else (b, a) for a, b in pairs if a != b))
    return boxes, [Edge(a, b, 6.0, draw(st.sampled_from([None, "a", "b"]))) for a, b in pairs]


def overlap(one, two):
    return (
        one.x - one.left < two.x + two.right - 1e-6
        and two.x - two.left < one.x + one.right - 1e-6
        and one.y - one.above < two.y + two.below - 1e-6
        and two.y - two.above < one.y + one.below - 1e-6
    )


@pytest.mark.thorough
@settings(max_examples=150, deadline=None)
@given(graphs())
def test_nothing_overlaps_and_edges_go_down(graph):
    boxes, edges = graph
    layout = place(boxes, edges)
    assert not any(overlap(one, two) for one, two in combinations(boxes, 2))
    for box in boxes:
        assert box.x - box.left >= -1e-6
        assert box.x + box.right <= layout.width + 1e-6
        assert box.y - box.above >= -1e-6
        assert box.y + box.below <= layout.height + 1e-6
    for edge in edges:
        assert boxes[edge.source].rank < boxes[edge.target].rank
        assert len(edge.lanes) == boxes[edge.target].rank - boxes[edge.source].rank - 1


@pytest.mark.thorough
@settings(max_examples=100, deadline=None)
@given(graphs())
def test_lanes_pass_between_boxes(graph):
    boxes, edges = graph
    place(boxes, edges)
    for edge in edges:
        for number, x in enumerate(edge.lanes, start=boxes[edge.source].rank + 1):
            for box in boxes:
                if box.rank == number:
                    assert x + edge.width / 2 <= box.x - box.left or x - edge.width / 2 >= box.x + box.right


@pytest.mark.thorough
@settings(max_examples=100, deadline=None)
@given(graphs(cyclic=True))
def test_cycles_are_drawn_too(graph):
    boxes, edges = graph
    place(boxes, edges)
    assert not any(overlap(one, two) for one, two in combinations(boxes, 2))
    for edge in edges:
        assert boxes[edge.source].rank != boxes[edge.target].rank


def test_acyclic_turns_what_closes_a_cycle():
    assert acyclic(3, [(0, 1), (1, 2), (2, 0)]) == [(0, 1), (1, 2), (0, 2)]
    assert acyclic(2, [(0, 1)]) == [(0, 1)]


def test_leaves_stand_right_above_their_use():
    # 0 -> 1 -> 2 -> 3, and a leaf 4 that only 3 uses
    assert ranks(5, [(0, 1), (1, 2), (2, 3), (4, 3)]) == [0, 1, 2, 3, 2]


def test_a_second_end_does_not_sink_to_the_bottom():
    # 0 -> 1 -> 2 -> 3, and 4 computed from 0
    assert ranks(5, [(0, 1), (1, 2), (2, 3), (0, 4)]) == [0, 1, 2, 3, 1]


def test_a_chain_is_a_straight_line():
    boxes = [Box(60, 40, 20, 30) for _ in range(6)]
    place(boxes, [Edge(number, number + 1) for number in range(5)])
    assert len({box.x for box in boxes}) == 1


def test_a_long_edge_is_straight_between_its_ends():
    boxes = [Box(60, 40, 20, 30) for _ in range(7)]
    edges = [Edge(number, number + 1) for number in range(6)] + [Edge(0, 6)]
    place(boxes, edges)
    assert len(set(edges[-1].lanes)) == 1


def test_branches_of_one_trunk_share_their_lanes():
    boxes = [Box(60, 40, 20, 30) for _ in range(9)]
    edges = [Edge(number, number + 1) for number in range(8)]
    branches = [Edge(0, 4, trunk="a"), Edge(0, 8, trunk="a"), Edge(0, 6, trunk="b")]
    place(boxes, edges + branches)
    near, far, other = (edge.lanes for edge in branches)
    assert far[: len(near)] == near
    assert not any(one == two for one, two in zip(far, other, strict=False))


@pytest.mark.thorough
def test_no_graph_is_too_deep():
    count = 20_000
    boxes = [Box(50, 50, 20, 30) for _ in range(count)]
    assert place(boxes, [Edge(number, number + 1) for number in range(count - 1)]).width == 100


def test_layout_of_an_empty_graph():
    assert place([], []) == Layout(0.0, 0.0, [])


@pytest.mark.parametrize("crossed", [[(0, 3), (1, 2)], [(0, 5), (1, 4), (2, 3)]])
def test_crossings_that_need_not_be_are_undone(crossed):
    count = 1 + max(max(pair) for pair in crossed)
    boxes = [Box(20, 20, 10, 10) for _ in range(count)]
    place(boxes, [Edge(*pair) for pair in crossed])
    for (a, b), (c, d) in combinations(crossed, 2):
        assert (boxes[a].x - boxes[c].x) * (boxes[b].x - boxes[d].x) > 0
