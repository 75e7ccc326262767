"""Plans: checkpoints leave out what is not needed, and runs stay exact; a wrong plan is caught."""

from __future__ import annotations

import ast
import json
import os
import textwrap
from pathlib import Path

import pytest
import test_traps

from conftest import Runner
from detrain.analysis.analyse import analyse_script
from detrain.capture.anchors import is_field
from detrain.instrument.find import find_training
from detrain.instrument.rewrite import rewrite
from detrain.plan import Plan, PlanCut, PlanItem, PlanLevel, encode_plan
from detrain.testing import WarmProcess

pytestmark = pytest.mark.slow

OPTIONS = ("--save-every", "3", "--digest-every", "2", "--seed", "1")

HEAD = """
import os, random, threading, time
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
x = torch.randn(24, 4)
y = x.sum(1, keepdim=True)
data = TensorDataset(x, y)
model = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.01)
def update(a, b):
    loss = nn.functional.mse_loss(model(a), b)
    opt.zero_grad(); loss.backward(); opt.step()
    return loss.item()
"""

ONE = ("__main__:<module>:0",)
TWO = ("__main__:<module>:0", "__main__:<module>:0.0")


def item(place, action, **more):
    return PlanItem(place if "/" in place or place == "gradients" else f"__main__/{place}", action,
                    "as a test has it", **more)  # fmt: skip


def plan(loops, last, outer=None, head=None):
    """A plan of one cut; the loops around it need `outer`, or everything if that is None.

    With `head`, another cut is at the head of the outermost loop.
    """
    around = [
        PlanLevel(loop, tuple(item(place, "restore") for place in outer or ()), outer is None)
        for loop in loops[:-1]
    ]
    cuts = [PlanCut((*around, PlanLevel(loops[-1], tuple(last))))]
    if head is not None:
        cuts.append(PlanCut((PlanLevel(loops[0], tuple(head)),)))
    return Plan(tuple(cuts))


@pytest.fixture(scope="module")
def warm():
    with pytest.MonkeyPatch.context() as patch:
        here = str(Path(__file__).parent)
        patch.setenv("PYTHONPATH", os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]))
        with WarmProcess(["torch._dynamo", "numpy", "given_plan"]) as process:
            yield process


class Bench:
    """A program with its plan, run whole and killed, each in a folder of its own."""

    def __init__(self, warm, folder):
        self.warm, self.folder, self.script = warm, folder, folder / "job.py"

    def write(self, text, given, head=HEAD):
        self.script.write_text(head + textwrap.dedent(text))
        self.script.with_suffix(".plan").write_bytes(encode_plan(given))
        return self

    def run(self, name, *options, crash=None, code=0):
        runner = Runner(self.warm, self.folder / name)
        ended = runner.run(self.script, "it", *OPTIONS, *options, crash=crash)
        assert ended.code == code, ended.stderr
        self.said = ended.stderr
        return runner

    def kill(self, step, *options):
        """Kill a run after a step and resume it."""
        self.run(f"kill{step}", *options, crash=f"step={step}", code=-9)
        return self.run(f"kill{step}", *options)

    def is_exact(self, *steps):
        """Whole, without the plan, and killed at these steps: everything is equal."""
        whole = self.run("whole")
        expected = whole.show("it")
        assert expected["checkpoints"]
        plain = self.run("plain", "--no-plan")
        assert plain.log("it") == whole.log("it")
        assert plain.show("it")["state_digest"] == expected["state_digest"]
        for step in steps:
            killed = self.kill(step)
            found = killed.show("it")
            assert any(found["resumes"]), step
            assert found["diverged_at"] is None, step
            assert killed.log("it") == whole.log("it"), step
            assert found["state_digest"] == expected["state_digest"], step
            assert found["trace_digest"] == expected["trace_digest"], step
        return whole, plain


@pytest.fixture
def bench(warm, tmp_path):
    return Bench(warm, tmp_path)


def manifest(runner, number=-1):
    path = sorted((runner.root / "it" / "checkpoints").glob("*.json"))[number]
    return json.loads(path.read_bytes())["body"]


def saved_bytes(runner):
    return sum(each["bytes"] for each in runner.show("it")["checkpoints"])


LOOPS = """
    for epoch in range(4):
        for a, b in DataLoader(data, 6, shuffle=True):
            wide = model[0](a).detach().repeat(1, 500)
            total = wide.sum().item()
            if epoch == 0:
                early = torch.randn(3)
            print(epoch, total, update(a, b))
"""
DEAD = [item(name, "drop") for name in ("a", "b", "wide", "total", "early")]


def test_dead_names_are_not_saved(bench):
    whole, plain = bench.write(LOOPS, plan(TWO, DEAD, (), DEAD)).is_exact(5, 7, 11, 13)
    assert saved_bytes(whole) < saved_bytes(plain) / 5
    roots = {name for name, _ in manifest(whole)["levels"][-1]["state"]["tree"]["roots"]}
    assert "__main__/model" in roots
    assert not roots & {each.place for each in DEAD}


def test_an_object_is_found_again_through_a_name_that_is_dead(bench):
    # The lock can't be made anew: `current` must become the net that setup built.
    text = """
        class Net:
            def __init__(self):
                self.lock, self.w = threading.Lock(), torch.randn(4, 1)
        nets = [Net(), Net()]
        current = None
        for step in range(14):
            if step == 0:
                current = nets[1]
            current.w += 0.1 * x[step, :, None]
            print(step, current.w.sum().item(), update(x, y))
    """
    whole, _ = bench.write(text, plan(ONE, [item("nets", "drop")])).is_exact(5, 10)
    tree = manifest(whole)["levels"][-1]["state"]["tree"]
    assert [name for name, _ in tree["dead"]] == ["__main__/nets"]


WRONG = {
    "a name of a module": """
        kept = torch.zeros(1)
        for step in range(14):
            kept = kept + update(x, y)
            print(step, kept.item())
    """,
    "a global name, in a function": """
        kept = 0.0
        def add():
            global kept
            kept = kept + update(x, y)
        for step in range(14):
            add()
            print(step)
        print(kept)
    """,
    "a name that is deleted": """
        kept = x
        for step in range(14):
            del kept
            print(step, update(x, y))
            kept = x * step
    """,
}


@pytest.mark.parametrize("how", WRONG)
def test_a_live_name_that_the_plan_drops_is_kept(bench, how):
    bench.write(WRONG[how], plan(ONE, [item("kept", "drop")]))
    bench.run("whole")
    line = next(i for i, text in enumerate(bench.script.read_text().splitlines(), 1)
                if text.strip().startswith(("kept = kept +", "del kept")))  # fmt: skip
    assert f"{bench.script}:{line} reads it" in bench.said
    assert "the checkpoint of step 3 is not kept: __main__/kept was left out" in bench.said
    assert "step 4 is not kept" not in bench.said
    whole = bench.run("whole2")
    for step in (6, 9, 10):
        killed = bench.kill(step)
        assert any(killed.show("it")["resumes"])
        assert killed.log("it") == whole.log("it")
        assert killed.show("it")["state_digest"] == whole.show("it")["state_digest"]


def test_variables_of_functions_are_watched_too(bench):
    text = """
        def main():
            seen, total = torch.zeros(1), 0.0
            def add(value):
                nonlocal total
                total += value
            for step in range(14):
                add(update(x, y))
                seen = seen + step
                print(step, total, seen)
        main()
    """
    names = [item(f"__main__:main/{name}", "drop") for name in ("seen", "total")]
    bench.write(text, plan(("__main__:main:0",), names))
    whole = bench.run("whole")
    assert "__main__:main/seen was left out" in bench.said
    assert "__main__:main/total was left out" in bench.said
    assert bench.kill(9).log("it") == whole.log("it")


def test_what_was_learned_of_a_plan_outlives_a_kill(bench):
    text = """
        kept = torch.zeros(1)
        for step in range(20):
            if step in (3, 19):
                print(kept)
            if step == 1:
                kept = torch.ones(1)
            print(step, update(x, y))
    """
    bench.write(text, plan(ONE, [item("kept", "drop")]))
    whole = bench.run("whole")
    assert manifest(whole)["kept"] == {ONE[0]: ["__main__/kept"]}
    for step in (8, 17):
        bench.run("it", crash=f"step={step}", code=-9)
    assert bench.run("it").log("it") == whole.log("it")
    assert "is not kept" not in bench.said


def test_every_checkpoint_is_watched_on_request(bench):
    text = """
        kept = torch.zeros(1)
        for step in range(20):
            if step == 9:
                print(kept)
            print(step, update(x, y))
            kept = torch.full((1,), float(step))
    """
    bench.write(text, plan(ONE, [item("kept", "drop")]))
    bench.run("once")
    assert "was left out" not in bench.said
    bench.run("always", "--audit")
    assert "the checkpoint of step 9 is not kept: __main__/kept was left out" in bench.said


def test_gradients_that_are_cleared_are_not_saved(bench):
    text = """
        for step in range(14):
            print(step, update(x, y))
    """
    whole, plain = bench.write(text, plan(ONE, [item("gradients", "drop")])).is_exact(5, 8, 10)
    assert "saved from now on" not in bench.said
    parameters = sum(4 * n for n in (4 * 64, 64, 64, 1))
    for one, other in zip(
        *(each.show("it")["checkpoints"] for each in (whole, plain)), strict=True
    ):
        assert other["bytes"] - one["bytes"] >= parameters


ACCUMULATED = {
    "by an optimizer": "if step % 4 == 3: opt.step(); opt.zero_grad()",
    "by hand": """if step % 4 == 3:
                for p in model.parameters():
                    p.data.add_(p.grad, alpha=-0.01)
                    p.grad = None""",
    "in place": "opt.step(); opt.zero_grad(set_to_none=False)",
}


@pytest.mark.parametrize("how", ACCUMULATED)
def test_gradients_that_are_used_again_are_saved(bench, how):
    text = f"""
        for step in range(22):
            nn.functional.mse_loss(model(x), y).backward()
            {ACCUMULATED[how]}
            print(step, model[0].weight.sum().item())
    """
    bench.write(text, plan(ONE, [item("gradients", "drop")]))
    whole = bench.run("whole")
    assert bench.said.count("gradients cleared before they are used") == 1
    for step in (8, 10, 13, 18):
        killed = bench.kill(step)
        assert any(killed.show("it")["resumes"])
        assert killed.log("it") == whole.log("it")
        assert killed.show("it")["state_digest"] == whole.show("it")["state_digest"]


# A generator's backward pass adds to the gradients of its critic, which are cleared before they
# are used. Each of these looks at them in between.
SEEN = {
    "not at all": "",
    "clipped together": """
            nn.utils.clip_grad_norm_([*model.parameters(), *critic.parameters()], 0.1)""",
    "read": """
            opt.param_groups[0]["lr"] = critic.weight.grad.sum().item() * 0.01""",
    "by a hook": """
            opt.param_groups[0]["lr"] = seen.get("sum", 0) * 0.01""",
    "by a closure": """
            copt.step(lambda: critic(y).mean().backward())""",
    "through a list": """
            opt.param_groups[0]["lr"] = sum(held).sum().item() * 0.01""",
    "through a view": """
            opt.param_groups[0]["lr"] = float(other.sum()) * 0.01""",
    "by scripted code": """
            opt.param_groups[0]["lr"] = total(critic.weight) * 0.01""",
}
SEEN_BY = {
    "by a hook": """
        seen = {}
        def keep(p): seen["sum"] = p.grad.sum().item()
        critic.weight.register_post_accumulate_grad_hook(keep)""",
    "through a list": "held = [torch.zeros(1, 1)]",
    "through a view": "other = torch.zeros(1)",
    "by scripted code": """
        @torch.jit.script
        def total(p: torch.Tensor) -> float:
            gradient = p.grad
            return 0.0 if gradient is None else gradient.sum().item()""",
}
HELD_BY = {
    "through a list": "held = [critic.weight.grad]",
    "through a view": "other = critic.weight.grad.view(-1)",
}


@pytest.mark.parametrize("how", SEEN)
def test_gradients_that_are_added_to_and_cleared_unseen_are_not_saved(bench, how):
    text = f"""
        critic = nn.Linear(1, 1)
        copt = torch.optim.SGD(critic.parameters(), lr=0.05)
        {SEEN_BY.get(how, "")}
        for step in range(14):
            opt.zero_grad()
            made = model(x)
            loss = -critic(made).mean()
            loss.backward()
            {SEEN[how]}
            opt.step()
            copt.zero_grad()
            (critic(made.detach()).mean() - critic(y).mean()).pow(2).backward()
            copt.step()
            {HELD_BY.get(how, "")}
            print(step, loss.item(), model[0].weight.sum().item())
    """
    bench.write(text, plan(ONE, [item("gradients", "drop")]))
    whole, plain = bench.is_exact(8, 13)
    bench.run("again")
    if how == "not at all":
        assert "saved from now on" not in bench.said
        assert saved_bytes(whole) < saved_bytes(plain)
    else:
        assert bench.said.count("gradients cleared before they are used") == 1


THIN = """
    class State: pass
    def train(epoch, noise, state):
        for a, b in DataLoader(data, 6, shuffle=True):
            state.best = min(state.best, update(a + 0.1 * noise, b))
            state.seen.append(epoch)
            print(epoch, noise.item(), state.scale, state.best)
    def main():
        state, history = State(), {"lr": [0.01], "drawn": 0}
        state.best, state.scale, state.seen = 1e9, 1.0, []
        for epoch in range(4):
            noise = torch.rand(1) * state.scale + history["drawn"]
            opt.param_groups[0]["lr"] = history["lr"][-1]
            model.train()
            train(epoch, noise, state)
            state.scale *= 0.7
            history["lr"].append(history["lr"][-1] * 0.9)
            history["drawn"] = random.random()
            print(epoch, state.seen, history)
    main()
"""
NESTED = ("__main__:main:0", "__main__:train:0")
NOISE = [item(f"__main__:{function}/noise", "rebuild") for function in ("main", "train")]


def test_a_loop_around_a_cut_restores_what_its_way_reads(bench):
    places = [f"__main__:main/{p}" for p in ("state.scale", "history.drawn", "history.lr[]")]
    whole, plain = bench.write(THIN, plan(NESTED, NOISE, outer=places)).is_exact(5, 7, 8, 13, 15)
    # Those of steps 12 and 15 were due at the head of the outer loop, and were then taken inside.
    for number in range(3):
        outer, full = (manifest(each, number)["levels"][0]["state"] for each in (whole, plain))
        assert outer["digests"] == {}
        assert full["digests"]


def test_a_list_of_a_thin_level_that_is_another_list_in_the_setup(bench):
    """In the rebuilt program `drawn` is `base`: what is put back there must not reach `base`."""
    text = """
        class Data:
            def __init__(self):
                self.base = [0.0, 1.0]
                self.drawn = self.base
            def draw(self):
                self.drawn = self.base + [random.random() for _ in self.base]
        data = Data()
        for epoch in range(4):
            before = len(data.drawn)
            data.draw()
            for step in range(5):
                print(epoch, step, before, sum(data.drawn), update(x, y))
    """
    loops = ("__main__:<module>:0", "__main__:<module>:0.0")
    given = plan(loops, [item("__main__/data", "rebuild")], outer=["__main__/data.drawn"])
    bench.write(text, given).is_exact(8, 13)


def test_a_thin_level_that_lacks_a_place_is_found_out(bench):
    # What the test above shows is due to its places.
    bench.write(THIN, plan(NESTED, NOISE, outer=["__main__:main/state.scale"]))
    bench.run("it", crash="step=13", code=-9)
    bench.run("it", code=1)
    assert "__main__:main/noise: expected the torch:Tensor that the program made" in bench.said


def test_a_place_that_is_not_there_makes_the_level_full(bench):
    whole, _ = bench.write(THIN, plan(NESTED, [], outer=["__main__:main/state.none"])).is_exact(13)
    assert manifest(whole)["levels"][0]["state"]["digests"]


REBUILT = """
    rows = [float(line) for line in open(os.path.dirname(__file__) + "/rows.txt")]
    table = torch.tensor(rows).repeat(4000).reshape(-1, 4)
    options = {"scale": 0.5}
    for epoch in range(4):
        for (a,) in DataLoader(TensorDataset(table), 4000, shuffle=True):
            print(epoch, update(a * options["scale"], a.sum(1, keepdim=True)))
            CHANGE
"""


def rebuilt(bench, change="pass"):
    (bench.folder / "rows.txt").write_text("\n".join(map(str, range(20))))
    names = [item(name, "rebuild") for name in ("table", "rows", "options")]
    dead = [item("a", "drop")]
    return bench.write(
        REBUILT.replace("CHANGE", change), plan(TWO, [*names, *dead], (), [*names, *dead])
    )


def test_what_setup_makes_again_is_not_saved(bench):
    whole, plain = rebuilt(bench).is_exact(5, 8, 10)
    assert saved_bytes(whole) < 100_000 < saved_bytes(plain)
    assert list(manifest(whole)["levels"][-1]["state"]["rebuilt"]) == ["__main__/table"]


def test_what_setup_makes_otherwise_is_said(bench):
    rebuilt(bench).run("it", crash="step=8", code=-9)
    (bench.folder / "rows.txt").write_text("\n".join(map(str, range(1, 21))))
    bench.run("it", code=1)
    assert "__main__/table: expected the torch:Tensor that the program made" in bench.said
    assert "--no-plan" in bench.said


@pytest.mark.parametrize("change", ["options['scale'] += 0.1", "table[0] += 1"])
def test_what_is_changed_after_all_is_saved(bench, change):
    name = change.partition("[")[0]
    rebuilt(bench, change)
    whole = bench.run("whole")
    assert f"__main__/{name} changed in the loop" in bench.said
    for step in (7, 10, 11):
        assert bench.kill(step).log("it") == whole.log("it")


def test_an_alias_of_what_is_rebuilt_stays_one(bench):
    text = """
        first, second = {"w": torch.zeros(3)}, {"w": torch.ones(3)}
        current = first
        for step in range(14):
            if step == 1:
                current = second
            print(step, update(x, y), current["w"], first["w"], second["w"], current is second)
    """
    names = [item(name, "rebuild") for name in ("first", "second")]
    bench.write(text, plan(ONE, names)).is_exact(5, 8)
    assert "changed in the loop" not in bench.said


def test_a_generator_of_what_is_rebuilt_is_saved(bench):
    text = """
        class Source:
            def __init__(self): self.random, self.table = random.Random(3), torch.ones(500)
        source = Source()
        for step in range(14):
            print(step, update(x * source.random.random(), y))
    """
    bench.write(text, plan(ONE, [item("source", "rebuild")])).is_exact(5, 8)
    assert "changed in the loop" not in bench.said


def test_what_can_not_be_captured_may_be_dead(bench):
    text = """
        def numbers():
            yield from range(100)
        class Holder: pass
        holder = Holder()
        holder.it = (n for n in range(9))
        for step in range(14):
            print(step, update(x, y))
    """
    bench.write(text, plan(ONE, [item("holder", "drop")]))
    whole = bench.run("whole")
    assert whole.show("it")["checkpoints"]
    assert bench.kill(8).log("it") == whole.log("it")


HELD = {
    "by a hook of a tensor": "model[0].weight.register_hook(scale)",
    "by a method that is a hook": "model[0].weight.register_hook(scale.__call__)",
    "by a function that is a hook": "model[0].weight.register_hook(lambda grad: scale(grad))",
    "by a cache": "import functools; f = functools.lru_cache(scale.__call__); "
    "model[0].weight.register_hook(lambda grad: f(grad))",
}


@pytest.mark.parametrize("how", HELD)
def test_a_dead_name_of_an_object_that_is_in_use(bench, how):
    text = f"""
        class Scale:
            def __init__(self): self.count = 0
            def __call__(self, grad):
                self.count += 1
                return grad * (1 + self.count / 10)
        def main():
            scale, batch = Scale(), None
            {HELD[how]}
            for step, (a, b) in enumerate(DataLoader(data, 2, shuffle=True)):
                batch = torch.utils.data.dataloader.default_collate([{{"a": a}}])
                print(step, update(a, b))
        main()
    """
    names = [item(f"__main__:main/{name}", "drop") for name in ("scale", "a", "b", "batch")]
    whole, _ = bench.write(text, plan(("__main__:main:0",), names)).is_exact(5, 8)
    roots = {name for name, _ in manifest(whole)["levels"][-1]["state"]["tree"]["roots"]}
    assert "__main__:main/scale" in roots
    assert not roots & {"__main__:main/a", "__main__:main/batch"}


TIMED = """
    timer = {"began": 0.0, "at": []}
    total = 0.0
    for step in range(14):
        timer["began"] = time.perf_counter()
        timer["at"].append(time.perf_counter())
        total += update(x, y)
"""


def test_timers_are_saved_and_not_compared(bench):
    places = [item(p, "restore", compared=False) for p in ("timer.began", "timer.at[]")]
    bench.write(TIMED, plan(ONE, places))
    traces = {bench.run(name).show("it")["trace_digest"] for name in ("a", "b")}
    traces.add(bench.kill(8).show("it")["trace_digest"])
    assert len(traces) == 1
    bench.write(TIMED, plan(ONE, []))
    traces = {bench.run(name).show("it")["trace_digest"] for name in ("c", "d")}
    assert len(traces) == 2


def test_other_floats_are_compared(bench):
    text = "\nshown = 0.0\nfor step in range(14):\n    update(x, y)\n    shown += {}\n"
    digests = set()
    for number in ("1.0", "2.0"):
        bench.write(text.format(number), plan(ONE, []))
        digests.add(bench.run(f"by{number}").show("it")["trace_digest"])
    assert len(digests) == 2


def test_a_function_that_is_there_twice_keeps_all(bench):
    text = """
        def descend(depth):
            mine = torch.full((2,), float(depth))
            if depth < 1:
                descend(depth + 1)
                return
            for step in range(14):
                print(step, update(x, y))
        descend(0)
    """
    names = [item("__main__:descend/mine", "drop")]
    whole, _ = bench.write(text, plan(("__main__:descend:0",), names)).is_exact(8)
    roots = [name for name, _ in manifest(whole)["levels"][-1]["state"]["tree"]["roots"]]
    assert sum(name.endswith("/mine") for name in roots) == 2


def plan_of_loops(text):
    """A plan for all loops of a module: what they bind to items is dead, gradients are cleared."""
    cuts = []

    def visit(body, loops):
        for each in body:
            header = getattr(each, "iter", None) or getattr(each, "test", None)
            texts = [c.value for c in ast.walk(header or ast.Pass()) if isinstance(c, ast.Constant)]
            sites = [c for c in texts if str(c).startswith("__main__:<module>:")]
            if isinstance(each, ast.For | ast.While) and sites:
                inside = (*loops, sites[0])
                target = ast.walk(getattr(each, "target", ast.Pass()))
                names = {node.id for node in target if isinstance(node, ast.Name)}
                items = [item(name, "drop") for name in (*sorted(names), "gradients")]
                cuts.extend(plan(inside, items).cuts)
                visit(each.body, inside)

    tree = ast.parse(text)
    visit(
        rewrite(tree, "__main__", find_training({"job.py": ast.parse(text)}).is_on_the_way).body, ()
    )
    return Plan(tuple(cuts))


# Those whose loops are not in functions.
PLANNED = {
    name: (textwrap.dedent(text), given)
    for name, text in test_traps.TRAPS.items()
    if (given := plan_of_loops(test_traps.HEAD + textwrap.dedent(text))).cuts
}


# All of them run with their own plans in test_traps; some here, with one that drops their items.
STRIDE = 1 if os.environ.get("DETRAIN_ALL_TRAPS") else 4


@pytest.mark.parametrize("trap", list(PLANNED)[::STRIDE])
def test_traps_with_a_plan(bench, trap):
    text, given = PLANNED[trap]
    bench.write(text, given, test_traps.HEAD)
    whole, killed = bench.run("whole"), bench.kill(8)
    expected, found = whole.show("it"), killed.show("it")
    assert killed.log("it") == whole.log("it")
    assert found["diverged_at"] is None
    assert found["state_digest"] == expected["state_digest"]
    assert found["trace_digest"] == expected["trace_digest"]


# Programs of tests/golden with objects whose fields hold data, and the fields that are left out.
FIELDS = {
    "field_assigned_by_alias": {"__main__:Job.train/self.other"},
    "field_changed_by_vars": set(),
    "field_set_by_name": set(),
    "field_changed_in_place": {"__main__/job.fixed"},
    "field_of_caching_dataset": set(),
    "field_deleted": set(),
    "field_of_slots": {"__main__/job.data"},
    "fields_share_memory": {"__main__/job.data", "__main__/job.view"},
    "field_of_two_objects": {"__main__:Job.epoch/self.data"},
}
GOLDEN = Path(__file__).parents[1] / "golden" / "programs"


def left_out(runner):
    """The fields that the newest checkpoint of a run has as made again by the program."""
    tree = manifest(runner)["levels"][-1]["state"]["tree"]
    return {name for name, _ in tree.get("rebuilt", []) if is_field(name)}


@pytest.mark.parametrize("name", FIELDS)
def test_fields_that_nothing_changes_are_not_saved(bench, name):
    text = (GOLDEN / f"{name}.py").read_text()
    bench.write("", Plan(), text).write("", analyse_script(bench.script, ()).plan, text)
    whole, _ = bench.is_exact(8, 13)
    assert "saved from now on" not in bench.said
    assert left_out(whole) == FIELDS[name]


# What a plan may be wrong about: fields that these programs change.
WRONG_FIELDS = {
    "field_assigned_by_alias": (
        ("__main__:Job.train:0", "__main__:Job.train:0.0"),
        "__main__:Job.train/self.data",
    ),
    "field_changed_by_vars": (ONE, "__main__/job.data"),
    "field_set_by_name": (ONE, "__main__/job.data"),
    "field_changed_in_place": (ONE, "__main__/job.data"),
    "field_of_caching_dataset": (TWO, "__main__/job.loader"),
}
# A live name, and the loop that is running, hold these: they are saved with what holds them.
HELD_TOO = {"field_changed_in_place", "field_of_caching_dataset"}


@pytest.mark.parametrize("name", WRONG_FIELDS)
def test_a_field_that_is_changed_after_all_is_saved(bench, name):
    loops, field = WRONG_FIELDS[name]
    bench.write("", plan(loops, [item(field, "rebuild")]), (GOLDEN / f"{name}.py").read_text())
    whole, _ = bench.is_exact(8, 13)
    bench.run("again")
    assert (f"{field} changed in the loop" in bench.said) == (name not in HELD_TOO)
    assert (field in left_out(whole)) == (name in HELD_TOO)


def test_a_field_that_is_gone_is_left_as_it_was_found(bench):
    text = (GOLDEN / "field_deleted.py").read_text()
    bench.write("", plan(ONE, [item("job.warm", "rebuild")]), text)
    whole, _ = bench.is_exact(5, 8, 13)
    assert not left_out(whole)
    assert left_out(bench.run("early", crash="step=8", code=-9)) == {"__main__/job.warm"}


def test_a_field_that_setup_makes_otherwise_is_said(bench):
    text = (GOLDEN / "field_changed_in_place.py").read_text()
    text = text.replace("self.fixed = ", "self.fixed = float(open('../scale.txt').read()) * ")
    bench.write("", plan(ONE, [item("job.fixed", "rebuild")]), text)
    (bench.folder / "scale.txt").write_text("1")
    bench.run("it", crash="step=8", code=-9)
    (bench.folder / "scale.txt").write_text("2")
    bench.run("it", code=1)
    assert "__main__/job.fixed: expected the" in bench.said
    assert "other content" in bench.said


ALIASED = """
    class Job:
        def __init__(self):
            self.data, self.seen = torch.randn(24, 4), 0
    def train(self, again):
        for step in range(20):
            print(step, update(self.data, y))
            if step == 7:
                again.data = self.data * 0.5
    job = Job()
    train(job, job)
"""


def test_a_field_is_saved_by_all_its_names(bench):
    places = ("__main__/job.data", "__main__:train/again.data", "__main__:train/self.data")
    given = plan(("__main__:train:0",), [item(place, "rebuild") for place in places])
    whole, _ = bench.write(ALIASED, given).is_exact(5, 11, 18)
    assert not left_out(whole)


def test_a_plan_of_a_real_program(bench):
    # Digits: what is left is the parameters and the optimizer's two averages of each.
    example = Path(__file__).parents[2] / "examples" / "torch" / "01_mnist_cnn.py"
    sets = ("train_set", "test_set", "test_loader")
    made = [f"main/{name}" for name in ("args", "train_loader", "device", *sets)]
    made += [f"train/{name}" for name in ("args", "train_loader", "device")]
    dead = [f"train/{name}" for name in ("data", "target", "output", "loss", "batch_idx")]
    rebuilt = [item(f"__main__:{name}", "rebuild") for name in made]
    dropped = [item(f"__main__:{name}", "drop") for name in dead]
    last = [*rebuilt, *dropped, item("gradients", "drop")]
    given = plan(("__main__:main:0", "__main__:train:0"), last, (), rebuilt)
    whole, plain = bench.write("", given, example.read_text()).is_exact(20, 61, 92)
    assert saved_bytes(whole) < saved_bytes(plain) / 4
