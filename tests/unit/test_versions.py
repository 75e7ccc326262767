"""Dictionaries that are seen to be unchanged by their numbers, and everything that changes one."""

from __future__ import annotations

import sys
from collections import OrderedDict, defaultdict

import pytest

from detrain.capture import sights, versions
from detrain.capture.sights import Together, look
from detrain.capture.versions import are_kept, versions_of
from detrain.state import Node

numbered = pytest.mark.skipif(sys.version_info >= (3, 13), reason="no numbers in this Python")


class Thing:
    def __init__(self):
        self.first, self.second = object(), object()


def held():
    """An object with fields, and dictionaries of all kinds."""
    return [
        Thing(),
        {"a": object(), "b": object()},
        defaultdict(list, a=[1], b=[2]),
        OrderedDict(a=[1], b=[2]),
    ]


def together(objects):
    nodes = [Node("object" if isinstance(each, Thing) else "dict", "") for each in objects]
    return Together([*zip(objects, map(look, objects, nodes), strict=True)])


def rename(mapping):
    mapping["c"] = mapping.pop("a")


CHANGES = {
    "a field is set": lambda objects: setattr(objects[0], "first", object()),
    "a field is deleted": lambda objects: delattr(objects[0], "second"),
    "a field is new": lambda objects: setattr(objects[0], "third", None),
    "all fields are others": lambda objects: setattr(objects[0], "__dict__", Thing().__dict__),
    "fields are in another order": lambda objects: setattr(
        objects[0], "__dict__", dict(reversed(objects[0].__dict__.items()))
    ),
    "an item is set": lambda objects: objects[1].update(a=object()),
    "a key is another": lambda objects: rename(objects[1]),
    "items are in another order": lambda objects: objects[1].update(a=objects[1].pop("a")),
    "a default is made": lambda objects: objects[2]["c"],
    "a factory is another": lambda objects: setattr(objects[2], "default_factory", dict),
    "the last is the first": lambda objects: objects[3].move_to_end("a"),
    "an item of an ordered one is set": lambda objects: objects[3].update(a=[1]),
    "one is cleared": lambda objects: objects[1].clear(),
}


@pytest.mark.parametrize("looks", [0, 1, 2])
@pytest.mark.parametrize("what", CHANGES)
def test_every_change_is_seen(what, looks):
    objects = held()
    them = together(objects)
    assert all(them.are_as_seen() for _ in range(looks))
    CHANGES[what](objects)
    assert not them.are_as_seen()
    assert not them.are_as_seen()


def test_what_is_as_it_was_again():
    objects = held()
    them = together(objects)
    assert them.are_as_seen()
    before = objects[0].first
    objects[0].first = None
    assert not them.are_as_seen()
    objects[0].first = before
    objects[0].__dict__ = dict(objects[0].__dict__)
    assert them.are_as_seen()
    assert them.are_as_seen()


@numbered
def test_where_nothing_was_changed_nothing_is_compared(monkeypatch):
    objects = held()
    them = together(objects)
    assert them.are_as_seen()
    compared = []
    monkeypatch.setattr(sights, "_values", lambda each: compared.append(each) or each.values())
    assert them.are_as_seen()
    assert compared == [objects[3]]  # an ordered one has no number that tells its order
    objects[1]["a"] = object()
    assert not them.are_as_seen()
    assert objects[1] in compared


def test_a_change_while_it_is_compared_is_seen_the_next_time(monkeypatch):
    objects = held()[:3]
    them = together(objects)

    def changed_by_another_thread(each):
        found = list(each.values())
        each[next(iter(each))] = object()
        return found

    with monkeypatch.context() as patch:
        patch.setattr(sights, "_values", changed_by_another_thread)
        assert them.are_as_seen()
    assert not them.are_as_seen()


@numbered
def test_numbers_are_where_they_are_looked_for(monkeypatch):
    assert are_kept()
    assert versions_of([OrderedDict()]) is None
    monkeypatch.setattr(versions, "_AT", 0)  # how many hold it: no number of changes
    are_kept.cache_clear()
    try:
        assert not are_kept()
        assert versions_of([{}]) is None
    finally:
        are_kept.cache_clear()


def test_without_numbers_all_is_compared(monkeypatch):
    monkeypatch.setattr(sights, "versions_of", lambda _: None)
    for change in CHANGES.values():
        objects = held()
        them = together(objects)
        assert them.are_as_seen()
        assert them.are_as_seen()
        change(objects)
        assert not them.are_as_seen()
