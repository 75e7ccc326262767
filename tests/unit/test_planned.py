"""What a plan means for a loop that is running, and whether what it drops is read."""

from __future__ import annotations

import sys

import pytest

from detrain.analysis.merging import both_last
from detrain.plan import Plan, PlanCut, PlanItem, PlanLevel
from detrain.runtime.audit import Audit
from detrain.runtime.places import expand, get_place, join_place, set_place, split_place
from detrain.runtime.planned import Planned, Uncompared
from detrain.state import Node, StateTree
from detrain.trace.digest import digest_state


def item(place, action, **more):
    return PlanItem(place, action, "why", **more)


def planned(*levels, items=()):
    return Planned(Plan((PlanCut(levels),), items))


class TestPlanned:
    def test_a_cut_is_found_by_the_loops_around_it(self):
        plan = planned(PlanLevel("a"), PlanLevel("b", (item("m/x", "drop"),)))
        assert plan.cut(("a", "b")).dead == {"m/x"}
        for other in (("b",), ("a",), ("a", "a", "b"), ()):
            assert plan.cut(other) is None
        assert Planned(None).cut(("a", "b")) is None

    def test_two_cuts_of_one_loop_say_nothing(self):
        cut = PlanCut((PlanLevel("a", (item("m/x", "drop"),)),))
        assert Planned(Plan((cut, cut))).cut(("a",)) is None

    def test_only_whole_variables_are_left_out(self):
        items = (item("m/x", "drop"), item("m/y.z", "drop"), item("m/w[]", "rebuild"))
        found = planned(PlanLevel("a", items)).cut(("a",))
        assert (found.dead, found.rebuilt) == ({"m/x"}, frozenset())

    def test_and_fields_that_are_made_again(self):
        places = ("m:A.f/t.data", "m/t.part.data", "m/t.rows[].data", "m/t.other")
        items = (
            item("m/t", "restore"),
            *(item(place, "rebuild") for place in places),
            item("m/t.other.began", "restore"),
        )
        found = planned(PlanLevel("a", items)).cut(("a",))
        assert found.rebuilt == {"m:A.f/t.data", "m/t.part.data"}
        kept = found.keeping({"m/t.part.data"})
        assert (kept.rebuilt, kept.kept) == ({"m:A.f/t.data"}, {"m/t.part.data"})

    def test_a_field_that_changes_on_one_of_the_ways_is_saved(self):
        def way(*places):
            return PlanLevel("a", (item("m/t", "restore"), *(item(p, "rebuild") for p in places)))

        found = both_last(way("m/t.data", "m/t.more"), way("m/t.data"))
        assert {each.place for each in found.items} == {"m/t", "m/t.data"}

    @pytest.mark.parametrize("place", ["m/x", "m/x.field", "m/x[]"])
    def test_a_variable_of_which_a_part_is_needed_is_saved(self, place):
        for action in ("drop", "rebuild"):
            items = (item("m/x", action), item(place, "restore"), item("m/xy", action))
            found = planned(PlanLevel("a", items)).cut(("a",))
            assert found.dead | found.rebuilt == {"m/xy"}

    def test_items_of_the_plan_hold_at_every_cut(self):
        plan = planned(PlanLevel("a"), items=(item("gradients", "drop"),))
        assert plan.cut(("a",)).gradients

    def test_what_it_was_wrong_about_is_kept(self):
        items = (item("m/x", "drop"), item("m/y", "rebuild"), item("gradients", "drop"))
        found = planned(PlanLevel("a", items)).cut(("a",)).keeping({"m/x", "gradients"})
        assert (found.dead & {"m/x"}, found.rebuilt, found.gradients) == (set(), {"m/y"}, False)

    def test_a_loop_around_cuts_needs_what_any_of_them_needs(self):
        def cut(last, *places, full=False):
            needs = tuple(item(place, "restore") for place in places)
            return PlanCut((PlanLevel("a", needs, full), PlanLevel(last)))

        thin = (cut("b", "m/x"), cut("c", "m/y"))
        assert Planned(Plan(thin)).outer(("a",)) == ("m/x", "m/y")
        assert Planned(Plan((*thin, cut("d", full=True)))).outer(("a",)) is None
        assert Planned(Plan(thin)).outer(("b",)) is None
        assert Planned(Plan(thin)).outer(("a", "b")) is None


class TestUncompared:
    @pytest.mark.parametrize(
        ("place", "path", "covers", "reaches"),
        [
            ("m/t", "m/t", True, False),
            ("m/t", "m/t.began", True, False),
            ("m/t", "m/total", False, False),
            ("m/t.began", "m/t", False, True),
            ("m/t.began", "m/t.began", True, False),
            ("m/t.began", "m/t['began']", True, False),
            ("m/t[]", "m/t[12]", True, False),
            ("m/t[]", "m/t['a[0].b']", True, False),
            ("m/t[].x", "m/t[3].x", True, False),
            ("m/t[].x", "m/t[3].y", False, False),
            ("m:f/t", "m/t", False, False),
        ],
    )
    def test_places_and_paths(self, place, path, covers, reaches):
        found = Uncompared((place,))
        assert (found.covers(path), found.reaches(path)) == (covers, reaches)

    def test_a_digest_without_places(self):
        def digest(began, total, *places):
            node = Node("dict", keys=(("s", "began"), ("s", "total")),
                        items=(("f", began), ("f", total)))  # fmt: skip
            tree = StateTree((("m/t", 0), ("m/u", ("f", began))), (node,), ("m/t",))
            return digest_state(tree, {}, {}, places=Uncompared(places))

        assert digest("1", "1", "m/t.began", "m/u") == digest("2", "1", "m/t.began", "m/u")
        assert digest("1", "1", "m/t.began", "m/u") != digest("1", "2", "m/t.began", "m/u")
        assert digest("1", "1", "m/t.began") != digest("2", "1", "m/t.began")
        assert digest("1", "1", "m/t", "m/u") == digest("2", "2", "m/t", "m/u")


class Slotted:
    __slots__ = ("a",)


class Thing:
    shared = 1

    def __init__(self):
        self.own, self.rows, self.slotted = [1], {"x": 2}, Slotted()
        self.slotted.a = 3

    @property
    def computed(self):
        return self.own


class TestPlaces:
    def test_a_place_is_a_variable_and_fields(self):
        place = "m:f.<locals>.g/log.rows[].x"
        assert split_place(place) == ("m:f.<locals>.g/log", ("rows", "[]", "x"))
        assert join_place(*split_place(place)) == place
        assert split_place("a.b/x") == ("a.b/x", ())

    def test_a_field_of_all_elements_is_one_of_each(self):
        things = {"a": [Thing(), Thing()], "b": (Thing(),)}
        found = [join_place("m/v", steps) for steps, _ in expand(things, ("[]", "[]", "own"))]
        assert found == ["m/v['a'][0].own", "m/v['a'][1].own", "m/v['b'][0].own"]
        set_place(things, ("['a']", "[1]", "own"), 5)
        assert [each for _, each in expand(things, ("['a']", "[]", "own"))][1] == 5

    @pytest.mark.parametrize("value", [{(1, 2): 3}, {"a.b": 3}, {1, 2}, iter([1])])
    def test_elements_without_plain_names_are_not_found(self, value):
        with pytest.raises(LookupError):
            list(expand(value, ("[]",)))

    @pytest.mark.parametrize("fields", [("own",), ("rows", "x"), ("slotted", "a")])
    def test_fields_are_found_and_set(self, fields):
        thing = Thing()
        set_place(thing, fields, 7)
        assert get_place(thing, fields) == 7

    @pytest.mark.parametrize("fields", [("shared",), ("computed",), ("none",), ("own", "x")])
    def test_what_is_no_field_of_its_own_is_not_found(self, fields):
        with pytest.raises(LookupError):
            get_place(Thing(), fields)


GLOBAL = 0


def reads_global():
    return GLOBAL


def watched(body, *names):
    """What the audit finds of these names of `body`, from where that calls its argument."""
    audit = Audit(lambda file: file == __file__)
    frames = {}

    def begin():
        frames["m:body"] = sys._getframe(1)
        frames["m"] = globals()
        assert audit.start(frames, {name if "/" in name else f"m:body/{name}" for name in names})

    try:
        body(begin)
    finally:
        found = audit.stop()
    assert sys.gettrace() is None
    return {
        read.place.rpartition("/")[2]: read.line - body.__code__.co_firstlineno for read in found
    }


@pytest.fixture(autouse=True)
def untraced():
    before = sys.gettrace()
    sys.settrace(None)
    yield
    sys.settrace(before)


class TestAudit:
    def test_a_read_before_a_write_is_found(self):
        def body(begin):
            x = y = z = 1
            begin()
            y = 2
            z = x + y
            print(z)

        assert watched(body, "x", "y", "z") == {"x": 4}

    def test_a_variable_of_another_call_is_another(self):
        def body(begin):
            x = 1
            begin()

            def other(x):
                return x

            x = other(3)
            print(x)

        assert watched(body, "x") == {}

    def test_deleting_is_reading(self):
        def body(begin):
            x = 1
            begin()
            del x

        assert watched(body, "x") == {"x": 3}

    def test_a_variable_that_an_inner_function_reads(self):
        def body(begin):
            x = 1

            def inner():
                return x

            begin()
            inner()
            x = 2

        assert watched(body, "x") == {"x": 4}

    def test_a_global_name_that_any_function_reads(self):
        def body(begin):
            begin()
            reads_global()

        audit = watched(body, "m/GLOBAL")
        assert list(audit) == ["GLOBAL"]

    def test_a_name_of_a_class_body_is_not_the_global_one(self):
        def body(begin):
            begin()

            class Inner:
                GLOBAL = 3

            return Inner, GLOBAL

        assert watched(body, "m/GLOBAL") == {"GLOBAL": 6}

    def test_names_with_long_arguments_are_seen(self):
        # From the 256th name on an instruction has its argument in two parts.
        names = [f"v{i}" for i in range(300)]
        text = ["def body(begin):", *(f"    {n} = 0" for n in names)]
        text += ["    begin()", "    v298 = 1", "    return v298, v299"]
        space = {}
        exec(compile("\n".join(text), __file__, "exec"), space)
        assert list(watched(space["body"], "v298", "v299")) == ["v299"]

    def test_it_gives_way_to_a_debugger(self):
        def tracer(*_):
            return None

        sys.settrace(tracer)
        assert not Audit(lambda _: True).start({}, {"m/x"})
        assert sys.gettrace() is tracer
