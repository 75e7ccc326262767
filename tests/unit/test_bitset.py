"""Sets of numbered things behave as sets do."""

from __future__ import annotations

import random

from detrain.analysis.bitset import Numbering, closures


def test_they_behave_as_sets_do():
    draw, numbering = random.Random(0), Numbering()
    for _ in range(200):
        one = {draw.randrange(60) for _ in range(draw.randrange(30))}
        other = {draw.randrange(60) for _ in range(draw.randrange(30))}
        left, right = numbering.set(one), numbering.set(other)
        for found, expected in (
            (left | right, one | other),
            (left & right, one & other),
            (left - right, one - other),
            (left ^ right, one ^ other),
            (one - right, one - other),
            (left | other, one | other),
            (numbering.union([left, right]), one | other),
        ):
            assert found == expected
            assert set(found) == expected
            assert len(found) == len(expected)
            assert bool(found) == bool(expected)
        assert (left <= right) == (one <= other)
        assert left.isdisjoint(right) == one.isdisjoint(other)
        assert all(each in left for each in one)
        assert hash(left) == hash(numbering.set(sorted(one, reverse=True)))


def test_closures_of_graphs():
    draw = random.Random(0)
    for size in (1, 2, 5, 30):
        edges = [[draw.randrange(size) for _ in range(draw.randrange(3))] for _ in range(size)]
        numbering = Numbering()
        found = closures([numbering.set([n]) for n in range(size)], edges.__getitem__)
        for start in range(size):
            reached, todo = {start}, [start]
            while todo:
                new = set(edges[todo.pop()]) - reached
                reached |= new
                todo += new
            assert found[start] == reached
