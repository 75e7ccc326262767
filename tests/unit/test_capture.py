"""Objects to a tree and back into other objects: identity, aliases, types, exact content."""

from __future__ import annotations

import collections
import copy
import dataclasses
import datetime
import enum
import functools
import pathlib
import random
import threading
from array import array

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from detrain.capture.frames import bind, is_plain, plain_variables
from detrain.capture.hidden import hidden_base
from detrain.capture.restore import restore
from detrain.capture.walk import walk
from detrain.checkpoint.snapshot import digest_snapshot, take
from detrain.errors import ResumeMismatch, UncapturableState


class Color(enum.Enum):
    RED = 1


@dataclasses.dataclass
class Point:
    x: float
    y: object = None


class Slotted:
    __slots__ = ("__secret", "a")

    def __init__(self, a):
        self.a, self.__secret = a, [a]

    def secret(self):
        return self.__secret


Pair = collections.namedtuple("Pair", "left right")


def captured(**roots):
    walked = walk(roots)
    snapshot = take(walked.tree, walked.leaves)
    data = {a.name: memoryview(bytearray(a.data)) for a in snapshot.arrays}
    return snapshot, data


def again(value, live):
    """Capture `value`, restore it into `live`; gives what stands for it then."""
    snapshot, data = captured(it=value)
    return restore(snapshot.tree, {"it": live}, data.__getitem__)["it"]


def digest(value):
    walked = walk({"it": value})
    return digest_snapshot(take(walked.tree, walked.leaves))


PLAIN = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()),
    lambda inner: st.one_of(
        st.lists(inner),
        st.dictionaries(st.text(), inner),
        st.tuples(inner, inner),
        st.lists(inner).map(collections.deque),
        st.frozensets(st.integers()),
        st.sets(st.text()),
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), PLAIN), st.dictionaries(st.text(), PLAIN))
def test_plain_data_is_restored_in_place(value, live):
    found = again(copy.deepcopy(value), live)
    assert found is live
    assert found == value
    assert digest(found) == digest(value)


NUMBERS = st.one_of(st.none(), st.booleans(), st.integers())


@given(
    st.lists(st.one_of(NUMBERS, st.tuples(NUMBERS, NUMBERS)), min_size=32, max_size=60),
    st.lists(st.integers(), max_size=40),
)
def test_long_lists_of_numbers_are_restored_in_place(value, live):
    found = again(value, live)
    assert found is live
    assert repr(found) == repr(value)
    assert digest(found) == digest(value)
    assert digest([*value[:-1], 1 << 70]) != digest([*value[:-1], 2 << 70])


def test_a_long_list_with_an_integer_of_any_size():
    value = [1 << 20_000] * 40
    assert again(value, []) == value


def test_identity_is_kept():
    shared = [1, 2]
    value = {"a": shared, "b": shared, "t": (shared, 3)}
    live_list: list[int] = []
    live = {"a": live_list, "b": [9], "t": (0,)}
    again(value, live)
    assert live["a"] is live_list
    assert live["b"] is live_list
    assert live["t"][0] is live_list
    assert live_list == [1, 2]


def test_sets_list_their_elements_as_before_or_it_is_said():
    draw = random.Random(5)
    exact = 0
    for _ in range(100):
        value: set[int] = set()
        for _ in range(draw.randrange(200)):
            value.add(draw.randrange(1000))
            if draw.random() < 0.4 and value:
                value.discard(draw.choice(sorted(value)))
        notes: list[str] = []
        snapshot, data = captured(it=value)
        live = {"it": set(range(5))}
        found = restore(snapshot.tree, live, data.__getitem__, note=notes.append)["it"]
        assert found == value
        assert (list(found) == list(value)) == (not notes)
        exact += not notes
    assert 0 < exact < 100


def test_cycles():
    value: dict[str, object] = {"name": "loop"}
    value["self"] = value
    live: dict[str, object] = {}
    again(value, live)
    assert live["self"] is live


VALUES = [
    Color.RED,
    Point(1.5, [2]),
    Pair(1, "two"),
    collections.OrderedDict(b=1, a=2),
    collections.Counter("abca"),
    collections.defaultdict(list, {"k": [1]}),
    collections.deque([1, 2, 3], maxlen=3),
    pathlib.PurePosixPath("/tmp/x"),
    datetime.datetime(2024, 5, 6, 7, 8, 9, 10),
    datetime.timedelta(1, 2, 3),
    range(3, 30, 4),
    slice(None, 3),
    ...,
    frozenset({1, 2}),
    bytearray(b"abc"),
    array("d", [1.5, -0.0]),
    np.float32(0.1),
    np.arange(6).reshape(2, 3)[:, ::2],
    np.array([("a", 1)], dtype=[("name", "U4"), ("n", "<i4")]),
    np.dtype("float16"),
    torch.float16,
    torch.device("cpu"),
    torch.Size([2, 3]),
    torch.arange(6.0).reshape(2, 3).t(),
    torch.tensor([1.5, float("nan")], dtype=torch.bfloat16),
    torch.nn.Parameter(torch.ones(2), requires_grad=False),
    torch.eye(3).to_sparse(),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_objects_that_the_program_did_not_build_again_are_made(value):
    holder = {"it": value}
    live: dict[str, object] = {}
    again(holder, live)
    assert type(live["it"]) is type(value)
    assert digest(live) == digest(holder)


def test_slots_and_private_names():
    live = Slotted(0)
    again(Slotted(5), live)
    assert (live.a, live.secret()) == (5, [5])


def test_a_field_that_was_not_there_is_removed():
    live = Point(0)
    live.extra = 1
    again(Point(3.0), live)
    assert vars(live) == {"x": 3.0, "y": None}


@pytest.mark.parametrize(
    "make",
    [
        lambda: random.Random(1),
        lambda: np.random.default_rng(1),
        lambda: np.random.RandomState(1),
        lambda: np.random.Generator(np.random.Philox(1)),
        lambda: torch.Generator().manual_seed(1),
    ],
)
def test_generators_go_on_where_they_were(make):
    def draw(g):
        if isinstance(g, torch.Generator):
            return torch.rand(3, generator=g).tolist()
        return [g.random() for _ in range(3)]

    source, live = make(), make()
    draw(source)
    found = again(source, live)
    assert found is live
    assert draw(live) == draw(source)


class TestTorch:
    @pytest.mark.parametrize("count", [5, 50_000])
    def test_a_graph_over_a_tensor_that_was_restored_can_t_be_used_any_more(self, count):
        """What it saved of the tensor is not there any more, and torch must know."""
        walked = walk({"weight": torch.nn.Parameter(torch.ones(count))})
        data = {array.name: array.data for array in take(walked.tree, walked.leaves).arrays}
        weight = torch.nn.Parameter(torch.zeros(count))
        loss = weight.pow(2).sum()
        restore(walked.tree, {"weight": weight}, data.__getitem__)
        assert weight.eq(1).all()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()

    def test_modules_and_optimizers_are_filled_in_place(self):
        def build(seed):
            torch.manual_seed(seed)
            model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
            optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
            return model, optimizer

        def step(model, optimizer):
            optimizer.zero_grad()
            model(torch.ones(5, 3) * torch.arange(5.0)[:, None]).pow(2).sum().backward()
            optimizer.step()

        model, optimizer = build(1)
        for _ in range(3):
            step(model, optimizer)
        snapshot, data = captured(model=model, optimizer=optimizer)
        live_model, live_optimizer = build(2)
        parameters = [id(p) for p in live_model.parameters()]
        live = {"model": live_model, "optimizer": live_optimizer}
        restore(snapshot.tree, live, data.__getitem__)
        assert [id(p) for p in live_model.parameters()] == parameters
        assert set(map(id, live_optimizer.state)) == set(parameters)
        for _ in range(2):
            step(model, optimizer)
            step(live_model, live_optimizer)
        for a, b in zip(model.state_dict().values(), live_model.state_dict().values(), strict=True):
            assert torch.equal(a, b)

    def test_paths_are_as_people_write_them(self):
        walked = walk({"model": torch.nn.Sequential(torch.nn.Linear(1, 1))})
        assert [leaf.name for leaf in walked.leaves] == ["model.0.weight", "model.0.bias"]

    def test_views_of_one_memory_stay_so(self):
        whole = torch.zeros(6)
        live: dict[str, object] = {}
        again({"whole": whole, "part": whole[2:4], "same": whole.detach()}, live)
        live["part"].fill_(7)
        assert live["whole"].tolist() == [0, 0, 7, 7, 0, 0]
        assert live["same"].tolist() == [0, 0, 7, 7, 0, 0]

    def test_live_views_of_one_memory_do_not_stand_for_two(self):
        memory = torch.zeros(4)
        live = {"a": memory, "b": memory.view(4)}
        again({"a": torch.ones(4), "b": torch.full((4,), 2.0)}, live)
        assert live["a"].tolist() == [1] * 4
        assert live["b"].tolist() == [2] * 4

    def test_memory_layout_is_kept(self):
        value = torch.arange(16.0).reshape(1, 4, 2, 2).to(memory_format=torch.channels_last)
        live = {"it": torch.zeros(1, 4, 2, 2)}
        again({"it": value}, live)
        assert live["it"].stride() == value.stride()
        assert torch.equal(live["it"], value)

    def test_a_parameter_that_has_grown_keeps_its_identity(self):
        live = torch.nn.Parameter(torch.zeros(2))
        holder = {"p": live}
        again({"p": torch.nn.Parameter(torch.ones(3))}, holder)
        assert holder["p"] is live
        assert live.tolist() == [1, 1, 1]

    def test_gradients_are_state(self):
        value = torch.nn.Parameter(torch.ones(2))
        value.grad = torch.tensor([3.0, 4.0])
        live = {"p": torch.nn.Parameter(torch.zeros(2))}
        again({"p": value}, live)
        assert live["p"].grad.tolist() == [3, 4]
        again({"p": torch.nn.Parameter(torch.ones(2))}, live)
        assert live["p"].grad is None

    def test_a_graph_is_left_out_and_can_be_watched(self):
        weight = torch.ones(1, requires_grad=True)
        loss = (weight * 3).sum()
        (leaf,) = walk({"meters": {"loss": loss}}).graphs
        assert leaf.name == "meters['loss']"
        live = {"loss": None}
        again({"loss": loss}, live)
        assert live["loss"].item() == 3
        assert live["loss"].grad_fn is None
        used = []
        end = leaf.framework.watch_graph(loss, lambda: used.append(1))
        (loss * 2).backward(retain_graph=True)
        assert used == [1]
        end()
        (loss * 2).backward()
        assert used == [1]
        assert leaf.framework.watch_graph(weight, lambda: None) is None

    def test_iterators_over_loaders_go_on(self):
        from torch.utils.data import DataLoader

        from detrain.frameworks.torch import loader as adapter

        adapter.install()
        try:
            torch.manual_seed(1)
            loader = DataLoader(range(20), batch_size=3, shuffle=True)
            it = iter(loader)
            next(it)
            next(it)
            snapshot, data = captured(it=it, loader=loader, both=enumerate(it))
            rest = [batch.tolist() for batch in it]
            torch.manual_seed(9)
            other = DataLoader(range(20), batch_size=3, shuffle=True)
            live = {"it": iter(other), "loader": other}
            found = restore(snapshot.tree, live, data.__getitem__)
            assert found["it"] is live["it"]
            assert [batch.tolist() for batch in found["it"]] == rest
        finally:
            adapter.uninstall()


def test_closures_are_state():
    def counter():
        count = 0

        def bump():
            nonlocal count
            count += 1
            return count

        return bump

    source, live = counter(), counter()
    source()
    source()
    assert again({"f": source}, {"f": live})["f"] is live
    assert live() == 3


def test_bound_methods_and_partials():
    point = Point(1.0)
    live_point = Point(0.0)
    live = {"p": live_point}
    again({"p": point, "m": point.__eq__, "f": functools.partial(max, 3, key=abs)}, live)
    assert live["m"].__self__ is live_point
    assert live["f"](-5) == -5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: (i for i in range(3)), "position of running code"),
        (lambda: threading.main_thread(), "thread"),
        (lambda: __import__("zlib").compressobj(), "don't show"),
        (lambda: __import__("hashlib").sha256(), "don't show"),
    ],
)
def test_what_can_not_be_captured_is_refused_with_its_path(make, message):
    with pytest.raises(UncapturableState, match=message) as caught:
        walk({"state": {"it": [make()]}})
    assert caught.value.path == "state['it'][0]"


class Counter:
    """C state behind a `state_dict`: an iterator."""

    def __init__(self):
        self.at = 0

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


class CBacked(Counter, array):
    def __new__(cls):
        return array.__new__(cls, "d")


def test_c_state_behind_a_state_dict():
    assert hidden_base(CBacked) is not None
    source, live = CBacked(), CBacked()
    source.at = 5
    assert again(source, live) is live
    assert live.at == 5


def test_a_class_that_is_not_loaded_is_an_error_and_nothing_is_imported(monkeypatch):
    snapshot, data = captured(it={"p": Point(1.0)})
    monkeypatch.delattr(f"{__name__}.Point")
    with pytest.raises(ResumeMismatch, match="Point to be loaded"):
        restore(snapshot.tree, {"it": {}}, data.__getitem__)


def test_plain_variables_of_a_function_are_bound_again():
    def function():
        count, rows, thing = 1, [1], object()
        import sys

        frame = sys._getframe()
        before = plain_variables(frame)
        bind(frame, {"count": 5, "rows": [2, 3], "new": 1})
        return before, count, rows, thing

    before, count, rows, _ = function()
    assert set(before) == {"count", "rows"}
    assert (count, rows) == (5, [2, 3])


def test_what_is_plain():
    endless: list[object] = []
    endless.append(endless)
    assert is_plain({"a": [1, (2.0, "x")], "b": {None}})
    assert is_plain(endless)
    assert not is_plain([object()])
    assert not is_plain(np.float64(1))


def test_built_in_iterators_go_on():
    import itertools

    for make in (
        lambda: iter([1, 2, 3, 4]),
        lambda: enumerate("abcd"),
        lambda: zip([1, 2, 3], "abc", strict=False),
        lambda: itertools.cycle([1, 2, 3]),
        lambda: itertools.count(5),
        lambda: iter(range(9)),
        lambda: itertools.islice(itertools.count(), 2, 9, 3),
    ):
        source = make()
        next(source)
        live: dict[str, object] = {}
        again({"it": source}, live)
        assert list(itertools.islice(live["it"], 2)) == list(itertools.islice(source, 2))


class Registry:
    total = 0
    seen: list[int] = []  # noqa: RUF012


def test_what_a_class_of_the_program_keeps_is_state():
    Registry.total, Registry.seen[:] = 5, [1, 2]
    snapshot, data = captured(kind=Registry)
    Registry.total, Registry.seen[:] = 0, []
    restore(snapshot.tree, {"kind": Registry}, data.__getitem__)
    assert (Registry.total, Registry.seen) == (5, [1, 2])


def test_a_new_view_of_memory_that_the_program_built_again_shares_it():
    model = torch.nn.Linear(2, 2)
    state = model.state_dict()
    snapshot, data = captured(a_state=state, model=model)
    live = torch.nn.Linear(2, 2)
    found = restore(snapshot.tree, {"model": live, "a_state": {}}, data.__getitem__)
    with torch.no_grad():
        live.weight.fill_(3)
    assert found["a_state"]["weight"].tolist() == [[3, 3], [3, 3]]


def test_what_only_the_program_can_define_is_left_out_by_every_name_that_it_has():
    def inside():
        return 1

    tree = walk({"m/one": inside, "m/other": inside}).tree
    left = restore(tree, {}, {}.__getitem__, optional=lambda _: True)
    assert left == {}
