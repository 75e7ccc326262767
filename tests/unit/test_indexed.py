"""Which streams can be indexed, and that they then give the elements that they always give."""

# ruff: noqa: PTH123, SIM115, UP028
# Streams are written here as people write them.

from __future__ import annotations

import importlib
import itertools
import json
import math
import random
from functools import partial
from itertools import islice

import numpy as np
import pytest

from detrain.frameworks import indexed
from detrain.frameworks.effects import reach

COUNT = 10
SEEN = []


class Stream:
    """What all of them have: data, and work that notes for which elements it is done."""

    def __init__(self, path=""):
        self.data, self.path = list(range(COUNT)), path
        self.transform = None

    def work(self, item):
        return [item, item * item]


class Loop(Stream):
    def __iter__(self):
        for item in self.data:
            yield self.work(item)


class Split(Stream):
    def __iter__(self):
        lo, hi = 0, math.ceil(COUNT / 1)
        for index in range(lo, min(hi, COUNT)):
            item = self.data[index]
            if self.transform is not None:
                item = self.transform(item)
            yield self.work(item)


class Strided(Stream):
    def __iter__(self):
        for index, item in enumerate(self.data):
            if index % 3 == 1:
                continue
            item = item + 1
            yield self.work(item)


class Nested(Stream):
    def __iter__(self):
        for first in range(3):
            if first != 1:
                for second in range(first, 5):
                    pair = first, second
                    yield pair


class Lines(Stream):
    def __iter__(self):
        with open(self.path) as file:
            for line in islice(file, 1, None, 2):
                line = line.strip()
                yield json.loads(line)


class Shuffled(Stream):
    def __iter__(self):
        order = np.random.permutation(len(self.data)).tolist()
        for index in order[1:]:
            yield self[index]

    def __getitem__(self, index):
        return self.data[index]


class Endless(Stream):
    def __iter__(self):
        while True:
            yield self.sample()

    def sample(self):
        return random.random()


class Counted(Stream):
    def __iter__(self):
        number = 0
        while number < 7:
            yield self.work(number)
            number += 1


class Summing(Stream):
    def __iter__(self):
        total = 0
        for item in self.data:
            total = total + item
            yield self.work(total)


class Mapped(Stream):
    def __iter__(self):
        return map(self.work, itertools.islice(self.data, 1, None))


class Expression(Stream):
    def __iter__(self):
        return (self.work(item) for item in self.data if item % 2)


class Iterated(Stream):
    def __iter__(self):
        if self.path:
            return iter(self.data)
        return iter(range(4))


class HandedOn(Stream):
    def __iter__(self):
        yield from map(partial(self.work), self.data)


class Calling(Stream):
    def __init__(self, path=""):
        super().__init__(path)
        self.transform = abs

    def __iter__(self):
        for item in self.data:
            yield self.transform(item)


INDEXED = (Loop, Split, Strided, Nested, Lines, Shuffled, Endless, Counted, Summing, Mapped,
           Expression, Iterated, HandedOn, Calling)  # fmt: skip


@pytest.mark.parametrize("kind", INDEXED)
def test_the_wanted_elements_are_those_that_always_come(kind, tmp_path):
    path = tmp_path / "lines"
    path.write_text("".join(f"[{n}]\n" for n in range(COUNT)))
    make = indexed.maker(kind(str(path)), reach(kind(str(path))))
    assert make is not None
    plain = _elements(iter(kind(str(path))))
    assert _elements(make(lambda: True)) == plain
    for every, first in itertools.product((2, 3), (0, 1)):
        numbers = itertools.count()
        found = _elements(make(lambda: next(numbers) % every == first))  # noqa: B023
        if kind is not Endless:
            assert found == plain[first::every]


def _elements(stream):
    np.random.seed(1)
    random.seed(1)
    return [element for element, _ in zip(stream, range(30), strict=False)]


def test_what_is_not_wanted_is_not_made():
    class Failing(Stream):
        def __iter__(self):
            for item in self.data:
                yield 7 / (item == 7)

    make = indexed.maker(Failing(), reach(Failing()))
    assert make is not None
    numbers = itertools.count()
    assert list(make(lambda: next(numbers) == 7)) == [7]
    with pytest.raises(ZeroDivisionError):
        list(make(lambda: True))


class Carrying(Stream):
    def __iter__(self):
        last = 0
        for item in self.data:
            element = self.work(item + last)
            last = element[0]
            yield element


class Reading(Stream):
    def __iter__(self):
        for _ in self.data:
            yield self.record()

    def record(self):
        self.place = getattr(self, "place", 0) + 1
        return self.place


class FromAFile(Stream):
    def __init__(self, path=""):
        super().__init__(path)
        self.file = open(__file__)

    def __iter__(self):
        for _ in self.data:
            yield self.file.fileno()


class FromAnIterator(Stream):
    def __init__(self, path=""):
        super().__init__(path)
        self.source = iter(self.data)

    def __iter__(self):
        for _ in range(4):
            yield self.work(sum(self.source))


class Buffered(Stream):
    def __iter__(self):
        buffer = []
        for item in self.data:
            buffer.append(item)
            if len(buffer) < 3:
                continue
            yield buffer.pop(random.randrange(3))


class HeavyBelow(Stream):
    def __iter__(self):
        for item in self.parsed():
            yield item

    def parsed(self):
        return (self.work(item) for item in self.data)


class HeavyBefore(Stream):
    def __iter__(self):
        items = map(self.work, self.data)
        for item in islice(items, 0, None, 1):
            yield item


class DrawingToChoose(Stream):
    def __iter__(self):
        for item in self.data:
            if random.random() < 0.5:
                continue
            yield item


class TwoPerTurn(Stream):
    def __iter__(self):
        for item in self.data:
            yield item
            yield -item


class Itself(Stream):
    def __iter__(self):
        return self

    def __next__(self):
        raise StopIteration


class Noticing(Stream):
    def __iter__(self):
        for item in self.data:
            SEEN.append(item)
            yield item


class Helped(Stream):
    def __init__(self, path=""):
        super().__init__(path)
        seen = self.seen = {}

        def remember(item):
            seen[item] = len(seen)
            return seen[item]

        self.helpers = [remember]

    def __iter__(self):
        for item in self.data:
            yield self.helpers[0](item)


class Other:
    """Not held by any of them: its effects are nobody's."""

    def __getitem__(self, index):
        SEEN.append(index)


def remembering(item):
    SEEN.append(item)
    return item


class ByGlobal(Stream):
    def __iter__(self):
        for item in self.data:
            yield self.through(item)

    def through(self, item):
        return remembering(item)


class Elsewhere(Stream):
    def __init__(self, path=""):
        super().__init__(path)
        self.inner = Loop()

    def __iter__(self):
        for item in self.inner:
            yield self.work(item)


class Private(Stream):
    def __iter__(self):
        self.__order = self.data
        for item in self.__order:
            yield item


class Late(Stream):
    def __iter__(self):
        self.transform = (self.work(item) for item in self.data)
        for item in self.transform:
            yield item


@pytest.mark.parametrize(
    "kind",
    [Carrying, Reading, FromAFile, FromAnIterator, Buffered, HeavyBelow, HeavyBefore,
     DrawingToChoose, TwoPerTurn, Itself, Noticing, Helped, ByGlobal, Elsewhere, Private, Late],
)  # fmt: skip
def test_what_may_be_otherwise_is_not_touched(kind):
    made = kind()
    assert indexed.maker(made, reach(made)) is None
    if kind is FromAFile:
        made.file.close()


def test_text_that_is_not_what_runs_is_not_used(tmp_path, monkeypatch):
    text = (
        "class Stream:\n    def __iter__(self):\n        for n in range(4):\n            yield n\n"
    )
    (tmp_path / "stream_on_disk.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("stream_on_disk")
    (tmp_path / "stream_on_disk.py").write_text(text.replace("4", "5"))
    assert indexed.maker(module.Stream(), reach(module.Stream())) is None


def test_whether_a_stream_asks_for_its_worker():
    def init(worker):
        return get_worker_info().id  # noqa: F821

    found = reach(Loop())
    methods = [code for each in Loop.__mro__ for code in found.functions.get(each.__name__, ())]
    assert not found.uses("get_worker_info", *methods)
    assert found.uses("get_worker_info", init.__code__)
