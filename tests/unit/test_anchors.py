"""What is left out of a tree: anchors, digests of what is rebuilt, gradients."""

from __future__ import annotations

import functools
import gc
import random
import threading
from typing import ClassVar

import pytest
import torch

from detrain.capture.anchors import root_of
from detrain.capture.content import digest_live
from detrain.capture.restore import restore
from detrain.capture.walk import Aside, walk
from detrain.checkpoint.snapshot import digest_snapshot, take
from detrain.errors import ResumeMismatch, UncapturableState
from detrain.frameworks.torch.gradients import GradientWatch


class Net:
    def __init__(self, value):
        self.lock, self.w, self.name = (
            threading.Lock(),
            torch.full((3,), float(value)),
            f"net{value}",
        )


class Captured:
    """A walk with something aside, to be restored into another world."""

    def __init__(self, roots, **aside):
        self.walked = walk(roots, aside=Aside(**aside))
        self.tree = self.walked.tree
        self.snapshot = take(self.tree, self.walked.leaves)
        self.rebuilt = {leaf.name: digest_live(leaf.array) for leaf in self.walked.rebuilt}
        self.digest = digest_snapshot(self.snapshot)

    def into(self, live):
        data = {a.name: memoryview(bytearray(a.data)) for a in self.snapshot.arrays}
        return restore(self.tree, live, data.__getitem__, rebuilt=self.rebuilt)

    def text(self):
        return repr(self.tree)


class TestDead:
    def test_nothing_of_it_is_saved(self):
        big = {"rows": torch.ones(1000), "name": "hidden text", "n": 12345}
        found = Captured({"m/x": 1}, dead={"m/big": big})
        assert not found.walked.leaves
        assert found.tree.nodes == ()
        assert found.tree.dead == ()
        assert found.walked.left_out == 4000

    def test_the_way_to_a_saved_object_is_an_anchor(self):
        nets = [Net(0), Net(1)]
        found = Captured({"m/current": nets[1]}, dead={"m/nets": nets})
        assert "net0" not in found.text()
        live = [Net(5), Net(6)]
        restored = found.into({"m/current": None, "m/nets": live})
        assert restored == {"m/current": live[1]}
        assert live[1].name == "net1"
        assert torch.equal(live[1].w, nets[1].w)
        assert live[0].name == "net5"
        assert torch.equal(live[0].w, torch.full((3,), 5.0))

    def test_without_the_anchor_it_could_not_be_restored(self):
        nets = [Net(0), Net(1)]
        with pytest.raises(ResumeMismatch, match="lock"):
            Captured({"m/current": nets[1]}).into({"m/current": None, "m/nets": [Net(5), Net(6)]})

    def test_an_anchor_is_neither_filled_nor_bound(self):
        shared = [1, 2]
        holder = {"shared": shared, "gone": [3], "count": 7}
        found = Captured({"m/a": shared}, dead={"m/holder": holder})
        live = {"shared": [], "gone": [], "count": 0}
        restored = found.into({"m/a": None, "m/holder": live})
        assert live == {"shared": [1, 2], "gone": [], "count": 0}
        assert restored["m/a"] is live["shared"]
        assert "m/holder" not in restored

    def test_it_need_not_be_there_again(self):
        shared = [1, 2]
        found = Captured({"m/a": shared}, dead={"m/holder": {"shared": shared}})
        assert found.into({}) == {"m/a": [1, 2]}

    def test_what_can_not_be_captured_is_no_matter(self):
        running = (n for n in range(3))
        with pytest.raises(UncapturableState):
            walk({"m/it": [running]})
        assert Captured({}, dead={"m/it": [running]}).tree.nodes == ()

    def test_the_digest_does_not_know_of_it(self):
        shared = torch.ones(4)
        alone = Captured({"m/a": shared}).digest
        assert (
            Captured({"m/a": shared}, dead={"m/b": {"view": shared[1:], "it": shared}}).digest
            == alone
        )
        assert Captured({"m/a": shared + 1}, dead={"m/b": shared}).digest != alone


class TestRebuilt:
    def test_its_arrays_are_kept_as_digests(self):
        table = torch.arange(1000.0)
        found = Captured({"m/x": 1}, rebuilt={"m/data": {"table": table, "name": "rows"}})
        assert not found.walked.leaves
        assert list(found.rebuilt) == ["m/data['table']"]
        live = {"table": torch.arange(1000.0), "name": "rows"}
        assert found.into({"m/data": live}) == {"m/x": 1}

    @pytest.mark.parametrize(
        ("live", "reason"),
        [
            ({"table": torch.arange(1000.0) + 1}, "other content"),
            ({"table": torch.arange(1000.0).reshape(10, 100)}, "other content"),
            ({"table": torch.arange(1000)}, "found a Tensor"),
            ({"other": torch.arange(1000.0)}, "found nothing"),
            (None, "found a NoneType"),
        ],
    )
    def test_what_is_made_otherwise_is_a_mismatch(self, live, reason):
        found = Captured({}, rebuilt={"m/data": {"table": torch.arange(1000.0)}})
        with pytest.raises(ResumeMismatch, match=reason) as error:
            found.into({"m/data": live})
        assert error.value.where.startswith("m/data")
        assert "--no-plan" in error.value.action

    def test_a_name_that_is_missing_is_a_mismatch(self):
        with pytest.raises(ResumeMismatch, match="found nothing"):
            Captured({}, rebuilt={"m/data": torch.ones(2)}).into({})

    def test_arrays_that_a_loader_holds_too_are_not_saved(self):
        table = torch.arange(1000.0)
        loader = {"dataset": [table], "epoch": 3}
        found = Captured({}, rebuilt={"m/table": table}, held={"the loader": loader})
        assert not found.walked.leaves
        live = torch.arange(1000.0)
        restored = found.into({"m/table": live, "the loader": {"dataset": [live], "epoch": 0}})
        assert restored["the loader"]["epoch"] == 3
        assert restored["the loader"]["dataset"][0] is live

    def test_arrays_that_something_else_holds_are_saved(self):
        table = torch.arange(1000.0)
        found = Captured({"m/best": [table]}, rebuilt={"m/table": table})
        assert [leaf.name for leaf in found.walked.leaves] == ["m/best[0]"]

    def test_it_tells_which_object_is_which(self):
        # By its own name `current` would be matched with `first`, and fill that.
        first, second = {"w": torch.zeros(2)}, {"w": torch.ones(2)}
        found = Captured({"m/current": second}, rebuilt={"m/first": first, "m/second": second})
        one, two = {"w": torch.zeros(2)}, {"w": torch.ones(2)}
        restored = found.into({"m/current": one, "m/first": one, "m/second": two})
        assert restored["m/current"] is two
        assert torch.equal(one["w"], torch.zeros(2))

    def test_what_it_holds_must_stay_what_it_holds(self):
        model = [torch.zeros(2)]
        found = Captured({"m/model": model}, rebuilt={"m/a": {"it": model}, "m/b": {"it": model}})
        with pytest.raises(ResumeMismatch, match="two objects where there was one"):
            found.into({"m/model": None, "m/a": {"it": [0]}, "m/b": {"it": [0]}})

    def test_generators_and_sets_in_it_are_saved(self):
        source = {"random": random.Random(3), "seen": {1, 2}}
        found = Captured({}, rebuilt={"m/source": source})
        expected = source["random"].random()
        live = {"random": random.Random(4), "seen": set()}
        found.into({"m/source": live})
        assert live["random"].random() == expected
        assert live["seen"] == {1, 2}

    def test_a_change_of_a_constant_in_it_shows(self):
        options = {"deep": {"scale": 1.0}, "table": torch.ones(2)}

        def contents(**roots):
            return Captured(roots, rebuilt={"m/options": options}).walked.contents

        before = contents()
        assert contents(other=[1, 2, 3]) == before
        options["deep"]["scale"] = 2.0
        assert contents() != before


class Job:
    def __init__(self, data, count):
        self.count, self.data, self.more = count, data, [count]


class TestFields:
    def captured(self, job, **more):
        return Captured(
            {"m/job": job, **more},
            rebuilt={"m/job.data": job.data},
            fields={id(job): {"data"}},
        )

    def test_a_field_is_left_out_and_stays(self):
        found = self.captured(Job([torch.arange(5.0)], 3))
        assert not found.walked.leaves
        assert list(found.rebuilt) == ["m/job.data[0]"]
        live = Job([torch.arange(5.0)], 0)
        data = live.data
        found.into({"m/job": live, "m/job.data": data})
        assert (live.count, live.more, live.data is data) == (3, [3], True)
        assert list(vars(live)) == ["count", "data", "more"]

    def test_one_that_is_made_otherwise_is_a_mismatch(self):
        found = self.captured(Job([torch.arange(5.0)], 3))
        live = Job([torch.arange(5.0) + 1], 0)
        with pytest.raises(ResumeMismatch, match="other content"):
            found.into({"m/job": live, "m/job.data": live.data})

    @pytest.mark.parametrize("there", [True, False])
    def test_one_that_is_not_made_is_a_mismatch(self, there):
        found = self.captured(Job([], 3))
        live = Job([], 0)
        data = live.data
        del live.data
        with pytest.raises(ResumeMismatch, match="found nothing") as error:
            found.into({"m/job": live} | ({"m/job.data": data} if there else {}))
        assert error.value.where == "m/job.data"

    def test_what_something_saved_holds_too_is_saved(self):
        job = Job([[1, 2], torch.arange(5.0)], 3)
        found = self.captured(job, **{"m/first": job.data[0]})
        live = Job([[], torch.arange(5.0)], 0)
        restored = found.into({"m/job": live, "m/job.data": live.data, "m/first": None})
        assert restored["m/first"] is live.data[0]
        assert live.data[0] == [1, 2]

    def test_where_it_leads_is_among_what_must_not_change(self):
        def contents(job, **more):
            return self.captured(job, **more).walked.contents

        job = Job([1], 3)
        before = contents(job)
        job.count = 4
        assert contents(job) == before
        job.data = [1]
        assert contents(job) == before
        other = [1]
        job.data = other
        assert contents(job, **{"m/other": other}) != before

    @pytest.mark.parametrize(
        ("path", "root"),
        [
            ("m/a.b", "m/a.b"),
            ("m/a.b.", "m/a.b"),
            ("m/a.b[0].c", "m/a.b"),
            ("m/a.b.c[1]", "m/a.b.c"),
            ("m/a.bc", "m/a"),
            ("m/d[0]", "m/d"),
        ],
    )
    def test_which_of_them_a_path_is_below(self, path, root):
        assert root_of(path, ["m/a.b", "m/a.b.c"]) == root


class TestGradients:
    def model(self):
        model = torch.nn.Linear(3, 2)
        model(torch.ones(1, 3)).sum().backward()
        return model

    def test_they_are_left_out(self):
        model = self.model()
        assert len(walk({"m": model}).leaves) == 4
        found = Captured({"m": model}, gradients=False)
        assert [leaf.name for leaf in found.walked.leaves] == ["m.weight", "m.bias"]
        assert [leaf.name for leaf in found.walked.gradients] == ["m.weight", "m.bias"]
        live = self.model()
        found.into({"m": live})
        assert live.weight.grad is None

    @pytest.mark.filterwarnings("ignore:Using backward")
    @pytest.mark.parametrize(
        ("what", "verdict"),
        [
            ("zero backward step", ""),
            ("zero", ""),
            ("backward step zero", "updates parameters with it"),
            ("backward clear", ""),
            ("graph clear", ""),
            ("backward zero backward step", ""),
            ("backward model", ""),
            ("backward delete", ""),
            ("backward set", ""),
            ("backward", "still holds it"),
            ("graph", "still holds it"),
            ("backward fill", "still holds it"),
            ("backward read zero", "reads it"),
            ("graph read zero", "reads it"),
            ("backward private zero", "reads it"),
            ("read zero", "reads it"),
            ("zero read", ""),
            ("backward clip zero", "reads it"),
            ("step zero", "updates parameters with it"),
            ("fill backward step", "updates parameters with it"),
            ("", "still holds it"),
        ],
    )
    def test_what_becomes_of_them_is_seen(self, what, verdict):
        model = self.model()
        opt = torch.optim.SGD(model.parameters(), 0.1)

        def clear():
            for parameter in model.parameters():
                parameter.grad = None

        def loss():
            return model(torch.ones(1, 3)).pow(2).sum()

        acts = {
            "zero": opt.zero_grad,
            "fill": lambda: opt.zero_grad(set_to_none=False),
            "backward": lambda: loss().backward(),
            "graph": lambda: torch.autograd.backward(
                loss(), inputs=[*model.parameters()], create_graph=True
            ),
            "step": opt.step,
            "clear": clear,
            "model": model.zero_grad,
            "delete": lambda: [delattr(each, "grad") for each in model.parameters()],
            "set": lambda: [
                setattr(each, "grad", torch.ones_like(each)) for each in model.parameters()
            ],
            "read": lambda: model.weight.grad,
            "private": lambda: model.weight._grad,
            "clip": lambda: torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0),
        }
        watch = GradientWatch(model.parameters())
        gc.collect()
        for name in what.split():
            acts[name]()
        found = watch.end()
        assert found.partition(" (")[0] == verdict
        if verdict == "reads it":
            assert __file__ in found
        assert opt.step() is None  # its hook is gone
        assert "grad" not in torch.Tensor.__dict__

    HOLDERS: ClassVar = {
        "the gradient": lambda p: p.grad,
        "a view of it": lambda p: p.grad.view(-1),
        "an array over it": lambda p: p.grad.numpy(),
        "its memory": lambda p: p.grad.untyped_storage(),
        "a graph": lambda p: (p.grad * p).sum(),
    }

    @pytest.mark.parametrize("holder", HOLDERS)
    def test_an_addition_that_somebody_sees_is_a_use(self, holder):
        model = self.model()
        model(torch.ones(1, 3)).sum().backward()
        for held, verdict in ((True, "adds to it in a backward pass"), (False, "")):
            by = self.HOLDERS[holder](model.weight) if held else None
            watch = GradientWatch(model.parameters())
            model(torch.ones(1, 3)).sum().backward()
            model.zero_grad()
            assert watch.end() == verdict
            model(torch.ones(1, 3)).sum().backward()
            del by

    def test_hooks_are_seen_to_read_it(self):
        model = self.model()
        seen = []
        node = torch.autograd.graph.get_gradient_edge(model.weight).node
        hooks = [
            (model.weight.register_hook, seen.append, ""),
            (
                model.weight.register_post_accumulate_grad_hook,
                lambda p: seen.append(p.grad.sum()),
                "reads it",
            ),
            (node.register_hook, lambda *_: seen.append(model.weight.grad.sum()), "reads it"),
        ]
        for register, hook, verdict in hooks:
            model(torch.ones(1, 3)).sum().backward()
            seen.clear()
            handle = register(hook)
            watch = GradientWatch(model.parameters())
            model(torch.ones(1, 3)).sum().backward()
            model.zero_grad()
            assert watch.end().partition(" (")[0] == verdict
            assert len(seen) == 1
            handle.remove()

    def test_one_that_may_stay_must_not_be_touched(self):
        for touched, verdict in ((False, ""), (True, "still holds it")):
            model = self.model()
            watch = GradientWatch(model.parameters(), may_stay=True)
            if touched:
                model(torch.ones(1, 3)).sum().backward()
            assert watch.end() == verdict

    def test_two_may_watch_at_once(self):
        one, other = self.model(), self.model()
        first = GradientWatch(one.parameters())
        second = GradientWatch(other.parameters())
        one.zero_grad()
        assert first.end() == ""
        assert other.weight.grad is not None
        assert second.end().startswith("reads it")
        assert "grad" not in torch.Tensor.__dict__


def hidden(space):
    """The dead names of a namespace whose objects something unseen holds."""
    return walk({}, aside=Aside(dead=dict(space), namespaces=(space,))).hidden


class TestHolders:
    def test_an_object_that_only_its_name_holds_is_not_hidden(self):
        assert hidden({"m/net": Net(1), "m/more": [Net(2)], "m/pair": (Net(3),)}) == set()

    def test_an_object_that_a_hook_of_a_tensor_calls_is(self):
        tensor = torch.ones(1, requires_grad=True)
        space = {"m/net": Net(1), "m/other": Net(2)}
        tensor.register_hook(functools.partial(print, space["m/net"]))
        assert hidden(space) == {"m/net"}

    def test_what_a_loop_over_enumerate_has_given_is_not(self):
        items = enumerate(iter([Net(1), Net(2)]))
        space = dict(zip(["m/number", "m/net"], next(items), strict=True))
        assert hidden(space) == set()
        assert next(items)[0] == 1
