"""A walk that is gone again gives what a fresh walk gives, whatever changed in between."""

from __future__ import annotations

import gc
import random
import weakref
from collections import OrderedDict, defaultdict
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from detrain.capture.again import Again
from detrain.capture.own import not_a_library
from detrain.capture.walk import Aside, Walked, walk
from detrain.frameworks.base import LiveLeaf


class Thing:
    """An object with fields."""

    shared: ClassVar[list[int]] = []
    number = 0.0

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


class Slotted:
    """An object with slots."""

    __slots__ = ("left", "right")

    def __init__(self, left: Any, right: Any) -> None:
        self.left, self.right = left, right


class World:
    """A program's variables, changed at random."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        torch.manual_seed(seed)
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
        self.optimizer = torch.optim.Adam(model.parameters())
        self.model = model
        self.train()
        self.names: dict[str, Any] = {
            "m/model": model,
            "m/optimizer": self.optimizer,
            "m/hidden": (torch.zeros(2), torch.ones(2)),
            "m/memory": np.arange(6.0),
            "m/table": defaultdict(list, {"a": [1, 2.5], "b": [torch.ones(1)]}),
            "m/thing": Thing(inner=Thing(number=1), items=[Thing(), {"x": 1}], kind=Thing),
            "m/slotted": Slotted([1], torch.zeros(3)),
            "m/dice": random.Random(seed),
            "m/generator": torch.Generator(),
            "m/ordered": OrderedDict(one=1, two=[2]),
            "m/few": {1, 2},
            "m/loss": torch.ones(1, requires_grad=True) * 2,
        }

    def train(self) -> None:
        self.optimizer.zero_grad()
        self.model(torch.randn(5, 3)).sum().backward()
        self.optimizer.step()

    def change(self) -> str:
        """Do one thing that programs do."""
        names, dice = self.names, self.dice
        thing, table, slotted = names["m/thing"], names["m/table"], names["m/slotted"]
        ways = {
            "train": self.train,
            "clear": self.optimizer.zero_grad,
            "number": lambda: setattr(thing.inner, "number", dice.random()),
            "same number": lambda: setattr(thing.inner, "number", float("1")),
            "hidden": lambda: names.update({"m/hidden": (torch.randn(2), names["m/hidden"][0])}),
            "both hidden": lambda: names.update({"m/hidden": (torch.randn(2), torch.randn(2))}),
            "other shape": lambda: names.update({"m/hidden": (torch.randn(3), torch.randn(2))}),
            "alias": lambda: names.update({"m/memory": names["m/memory"][1:]}),
            "memory": lambda: names.update({"m/memory": np.arange(6.0) + dice.random()}),
            "in place": lambda: names["m/memory"].__iadd__(1.0),
            "append number": lambda: table["a"].append(dice.random()),
            "append object": lambda: table["a"].append(Thing()),
            "append tensor": lambda: table["b"].append(torch.ones(2)),
            "shorten": lambda: table["b"].__delitem__(slice(1, None)),
            "new key": lambda: table.__setitem__(f"k{dice.randrange(4)}", [dice.random()]),
            "lose key": lambda: table.pop(f"k{dice.randrange(4)}", None),
            "reorder": lambda: names["m/ordered"].move_to_end("one"),
            "swap": lambda: slotted.__init__(slotted.right, [1]),
            "unswap": lambda: slotted.__init__([1], torch.zeros(3)),
            "share": lambda: setattr(thing, "items", [thing.inner, {"x": thing.inner}]),
            "part": lambda: setattr(thing, "inner", Thing(number=1)),
            "one memory": lambda: names.update({"m/hidden": torch.randn(4).split(2)}),
            "unshare": lambda: setattr(thing, "items", [Thing(), {"x": 1}]),
            "draw": lambda: names["m/dice"].random(),
            "draw a tensor": lambda: torch.rand(1, generator=names["m/generator"]),
            "class field": lambda: Thing.shared.append(1),
            "class number": lambda: setattr(Thing, "number", dice.random()),
            "class": lambda: setattr(thing.inner, "__class__", dice.choice([Thing, Other])),
            "graph": lambda: names.update({"m/loss": torch.ones(1, requires_grad=True) * 2}),
            "no graph": lambda: names.update({"m/loss": torch.ones(1)}),
            "data": lambda: setattr(self.model[0].weight, "data", torch.randn(4, 3)),
            "view": lambda: names.update({"m/slice": self.model[0].weight.detach()[1:]}),
            "no view": lambda: names.pop("m/slice", None),
            "frozen": lambda: self.model[0].bias.requires_grad_(dice.random() < 0.5),
            "hung on": lambda: setattr(self.model[0].bias, "note", dice.random()),
            "mode": lambda: self.model.train(dice.random() < 0.5),
            "lr": lambda: self.optimizer.param_groups[0].__setitem__("lr", dice.random()),
            "set": lambda: names["m/few"].add(dice.randrange(20)),
            "new variable": lambda: names.update({"m/new": dice.choice([1, [], Thing()])}),
            "resize": lambda: names["m/hidden"][1].resize_(dice.choice([2, 4])),
        }  # fmt: skip
        way = dice.choice(list(ways))
        ways[way]()
        return way


class Other(Thing):
    """Another class of the same layout."""


def parted(names: dict[str, Any], dice: random.Random) -> tuple[dict[str, Any], Aside]:
    """Most is saved; a few are left out, which mostly stay the same."""
    rebuilt, dead = {"m/table", "m/slotted"}, {"m/loss", "m/hidden"}
    if dice.random() < 0.1:
        rebuilt, dead = {"m/thing"}, {"m/table"}
    live = {name: each for name, each in names.items() if name not in rebuilt | dead}
    return live, Aside(
        rebuilt={name: names[name] for name in sorted(rebuilt)},
        held={"the iterable": names["m/dice"]},
        dead={name: names[name] for name in sorted(dead)},
        gradients=False,
    )


def compared(found: Walked, fresh: Walked) -> None:
    """Fail if two walks differ in anything."""
    assert found.tree == fresh.tree
    assert [leaf.name for leaf in found.leaves] == [leaf.name for leaf in fresh.leaves]
    assert [leaf.name for leaf in found.rebuilt] == [leaf.name for leaf in fresh.rebuilt]
    for one, other in (
        (found.leaves, fresh.leaves),
        (found.rebuilt, fresh.rebuilt),
        (found.graphs, fresh.graphs),
        (found.gradients, fresh.gradients),
    ):
        by_name = {leaf.name: leaf for leaf in other}
        assert {leaf.name for leaf in one} == by_name.keys()
        for leaf in one:
            if "state" not in leaf.name:  # what a generator says of itself is made for the walk
                assert leaf.array is by_name[leaf.name].array
            assert leaf.nbytes == by_name[leaf.name].nbytes
    assert found.contents == fresh.contents
    assert found.left_out == fresh.left_out
    for path, one, other in zip(found.met, found.alive, fresh.alive, strict=True):
        assert one is other or "state" in path
    parts = [leaf.name for leaf in (*found.firm, *found.loose)]
    assert sorted(parts) == sorted(leaf.name for leaf in found.leaves)
    by_name = {leaf.name: leaf for leaf in found.leaves}
    assert all(leaf is by_name[leaf.name] for leaf in (*found.firm, *found.loose))


def places(leaves: tuple[LiveLeaf, ...]) -> list[tuple[str, int, int | None, int]]:
    """Which arrays some leaves are, and where they lie."""
    return [(x.name, id(x.array), x.framework.address(x.array), x.nbytes) for x in leaves]


def skeleton(walked: Walked) -> list[tuple[str, str, str, Any]]:
    """What is saved, without constants, arrays and plain containers."""
    met = zip(walked.met, walked.tree.nodes, walked.alive, strict=False)
    plain = (torch.Tensor, np.ndarray, dict, list, tuple, set, frozenset)
    return [
        (path, node.form, node.type, None if isinstance(obj, plain) else obj)
        for path, node, obj in met
        if not node.anchor
    ]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("how", ["all", "planned", "held"])
def test_gone_again_it_gives_what_a_fresh_walk_gives(seed: int, how: str) -> None:
    """Where all is `held` by objects, no array is in a variable by itself."""
    world, again = World(seed), Again(not_a_library)
    kept = same = stood = 0
    last: list[tuple[str, str, str, Any]] = []
    firm: tuple[LiveLeaf, ...] = ()
    lay: list[Any] = []
    for _ in range(60):
        for _ in range(world.dice.randrange(3)):
            world.change()
        roots, aside = {"m/all": world.names} if how == "held" else world.names, Aside()
        if how == "planned":
            roots, aside = parted(world.names, world.dice)
        before = again._before
        found = again.walk(roots, aside)
        kept += again._before is before
        compared(found, walk(roots, not_a_library, aside))
        now = skeleton(found)
        if found.again:
            assert [each[:3] for each in now] == [each[:3] for each in last]
            assert all(one[3] is other[3] for one, other in zip(now, last, strict=True))
            same += 1
        if found.firm is firm:
            assert places(firm) == lay
            stood += 1
        last, firm, lay = now, found.firm, places(found.firm)
        del found
    assert kept > 20  # else nothing was tested
    assert same > 0
    assert stood > 0


@pytest.mark.parametrize("empty", [[], {}, set(), OrderedDict(), defaultdict(list)])
def test_what_was_empty_for_long_is_seen_to_be_filled(empty: Any) -> None:
    again, names = Again(not_a_library), {"m/empty": Thing(it=empty), "m/few": [1, 2]}
    for _ in range(3):
        again.walk(names)
    if isinstance(empty, dict):
        empty["a"] = 1
    elif isinstance(empty, set):
        empty.add(1)
    else:
        empty.append(1)
    compared(again.walk(names), walk(names))


def test_another_object_of_the_same_class_is_another():
    again, job = Again(not_a_library), Thing()
    names = {"m/job": job, "m/few": [1, 2]}
    found = [again.walk(names).again]
    job.count = 7
    found.append(again.walk(names).again)
    names["m/job"] = Thing()
    found.append(again.walk(names).again)
    found.append(again.walk(names).again)
    assert found == [False, True, False, True]


def test_memory_that_came_to_hold_another_array_is_seen():
    """An array lies where it lay, by its address, and shares its memory now with another one."""
    buffer = np.zeros(64, np.float32)
    inner, other = torch.from_numpy(buffer[16:32]), torch.zeros(8)
    holder = {"inner": inner, "other": other, "rest": [torch.ones(1)]}
    again = Again(not_a_library)
    for _ in range(3):
        compared(again.walk({"m/it": holder}), walk({"m/it": holder}))
    whole = torch.from_numpy(buffer)
    before = inner.data_ptr()
    inner.data, other.data = whole[16:32], whole[:8]
    assert inner.data_ptr() == before
    found = again.walk({"m/it": holder})
    compared(found, walk({"m/it": holder}))
    storages = {x.array.storage for x in found.tree.nodes if x.array and x.array.leaf != "m/rest"}
    assert len(storages) == 2  # one for both, and that of the rest


def test_arrays_that_stay_are_given_as_the_same_tuple_and_others_apart():
    again, model = Again(not_a_library), torch.nn.Linear(3, 2)
    names: dict[str, Any] = {"m/model": model, "m/batch": torch.zeros(4)}
    first = again.walk(names)
    assert [leaf.name for leaf in first.loose] == ["m/batch"]
    names["m/batch"] = torch.ones(4)
    second = again.walk(names)
    assert second.firm is first.firm
    assert second.loose[0].array is names["m/batch"]
    model.weight.data = torch.zeros(2, 3)
    third = again.walk(names)
    assert third.firm is not second.firm
    assert again.walk(names).firm is third.firm
    model.bias = torch.nn.Parameter(torch.zeros(2))
    assert again.walk(names).firm is not third.firm


@pytest.mark.parametrize("seed", range(4))
def test_where_little_changes_what_was_given_is_given_again(seed: int) -> None:
    """No array is in a variable by itself, and nothing is made anew for each walk."""
    dice, again, used = random.Random(seed), Again(not_a_library), 0
    firm: tuple[LiveLeaf, ...] = ()
    lay: list[Any] = []
    model = torch.nn.Linear(3, 2)
    thing = Thing(model=model, pair=[1, Thing()], rate=0.5, kept={"a": torch.ones(3)})
    names: dict[str, Any] = {"m/thing": thing, "m/step": 0}
    ways = [
        lambda: names.update({"m/step": dice.randrange(9)}),
        lambda: setattr(thing, "pair", [*thing.pair]),
        lambda: setattr(thing, "rate", dice.random()),
        lambda: setattr(model.weight, "data", torch.rand(2, 3)),
        lambda: setattr(model, "bias", torch.nn.Parameter(torch.zeros(2))),
        lambda: model.weight.sum().backward(),
        lambda: setattr(model.weight, "grad", None),
        lambda: thing.kept.update(a=model.weight.detach().sum() * torch.ones(3)),
        lambda: thing.kept.update(a=model.weight.sum() * torch.ones(3)),
        lambda: thing.kept.update(a=torch.ones(3)),
    ]
    for _ in range(80):
        if dice.random() < 0.4:
            dice.choice(ways)()
        before = again._before._given if again._before is not None else None
        found = again.walk(names)
        used += before is not None and found.alive is before.alive
        compared(found, walk(names))
        assert found.firm is not firm or places(firm) == lay
        firm, lay = found.firm, places(found.firm)
    assert 0 < used < 80


def test_a_class_of_python_s_own_needs_no_second_look() -> None:
    """And one of the program's does."""
    again = Again(not_a_library)
    names = {"m/table": defaultdict(dict, {"a": {"b": 1}}), "m/thing": Thing(kind=Thing)}
    for _ in range(3):
        again.walk(names)
    assert again._before is not None
    restless = {again._before._paths[i] for i in again._before._restless}
    assert not any("default_factory" in path for path in restless)
    Thing.shared.append(5)
    try:
        compared(again.walk(names), walk(names))
    finally:
        Thing.shared.clear()


def test_what_the_program_is_done_with_is_freed() -> None:
    again, names = Again(not_a_library), {"m/batch": torch.zeros(10), "m/rest": [torch.ones(1)]}
    again.walk(names)
    batch = weakref.ref(names["m/batch"])
    names["m/batch"] = torch.ones(10)
    gc.collect()
    assert batch() is None
    compared(again.walk(names), walk(names))
