"""What can't be resumed exactly is said, with the line and what to do; it never goes on wrongly."""

from __future__ import annotations

import textwrap

import pytest

pytestmark = pytest.mark.slow

OPTIONS = ("--save-every", "3", "--digest-every", "2", "--seed", "1")


@pytest.fixture
def program(tmp_path):
    def write(text, name="job.py"):
        path = tmp_path / name
        path.write_text(textwrap.dedent(text))
        return path

    return write


def killed_and_resumed(runner, script, crash="step:8"):
    killed = runner.run(script, "it", *OPTIONS, crash=crash)
    assert killed.code == -9, killed.stderr
    return runner.run(script, "it", *OPTIONS)


def test_a_sampler_that_asks_the_system_in_the_midst_of_an_epoch(runner, program):
    script = program("""
        import detrain, random
        from torch.utils.data import DataLoader
        class Sampler:
            def __len__(self): return 12
            def __iter__(self): return (random.SystemRandom().randrange(20) for _ in range(12))
        x = []
        for b in detrain.loop(DataLoader(range(20), sampler=Sampler()), x=x):
            x.append(random.random())
    """)
    done = killed_and_resumed(runner, script)
    assert done.code == 1
    assert "the order of samples that the first attempt had" in done.stderr
    assert "line 8" in done.stderr
    assert "generator of its own" in done.stderr


@pytest.mark.parametrize("own", ["random", "random.Random(4)"])
def test_the_same_sampler_with_a_generator_is_exact(runner, program, own):
    script = program(f"""
        import detrain, random
        from torch.utils.data import DataLoader
        own = {own}
        class Sampler:
            def __len__(self): return 12
            def __iter__(self): return (own.randrange(20) for _ in range(12))
        x = []
        for b in detrain.loop(DataLoader(range(20), sampler=Sampler()), x=x):
            x.append(random.random() + b.item())
        print(x)
    """)
    assert killed_and_resumed(runner, script).code == 0
    assert runner.run(script, "whole", *OPTIONS).code == 0
    assert runner.log("it") == runner.log("whole")


def test_an_iterable_that_draws_between_its_items_is_exact(runner, program):
    script = program("""
        import detrain, random
        def walk():
            at = 0.0
            while at < 40:
                yield at
                at += random.random() * 3
        x = []
        for at in detrain.loop(walk(), x=x):
            x.append((at, random.random()))
        print(x)
    """)
    assert killed_and_resumed(runner, script).code == 0
    assert runner.show("it")["resumes"] == [6]
    assert runner.run(script, "whole", *OPTIONS).code == 0
    assert runner.log("it") == runner.log("whole")


def test_an_iterable_that_draws_at_its_start_is_exact(runner, program):
    script = program("""
        import detrain, random
        def shuffled():
            order = list(range(12))
            random.shuffle(order)
            yield from order
        x = []
        for at in detrain.loop(shuffled(), x=x):
            x.append((at, random.random()))
        print(x)
    """)
    assert killed_and_resumed(runner, script).code == 0
    assert runner.show("it")["resumes"] == [6]
    assert runner.run(script, "whole", *OPTIONS).code == 0
    assert runner.log("it") == runner.log("whole")


def test_an_iterable_that_depends_on_what_the_loop_does_is_refused(runner, program):
    script = program("""
        import detrain
        x = [0]
        def items():
            while x[-1] < 40:
                yield x[-1]
        for at in detrain.loop(items(), x=x):
            x.append(at + 2)
    """)
    done = killed_and_resumed(runner, script)
    assert done.code == 1
    assert "the data of the loop <module>#0 at line 7" in done.stderr


def test_a_way_that_depends_on_the_process(runner, program):
    script = program("""
        import detrain, random
        random.seed(open("/proc/self/stat").read())
        x = []
        for i in detrain.loop(range(12), x=x):
            x.append(random.random())
    """)
    done = killed_and_resumed(runner, script)
    assert done.code == 1
    assert "the random generators where they stood" in done.stderr
    assert "line 5" in done.stderr


def test_a_way_that_asks_the_clock_is_answered_as_the_first_time(runner, program):
    script = program("""
        import detrain, random, time
        seed = time.time_ns()
        random.seed(seed)
        x = []
        for i in detrain.loop(range(12), x=x):
            x.append(random.random())
        random.seed(seed)
        assert x == [random.random() for _ in x]
    """)
    done = killed_and_resumed(runner, script)
    assert done.code == 0, done.stderr
    assert runner.show("it")["resumes"] == [6]


def test_a_loop_that_the_program_does_not_meet_again(runner, program):
    script = program("""
        import detrain, pathlib
        flag = pathlib.Path("flag")
        def one(x):
            for i in detrain.loop(range(12), x=x): x.append(i)
        def two(x):
            for i in detrain.loop(range(12), x=x): x.append(i)
        first = not flag.exists()
        flag.touch()
        (one if first else two)([])
    """)
    done = killed_and_resumed(runner, script)
    assert done.code == 1
    assert "expected the loop one#0" in done.stderr
    assert "found the loop two#0" in done.stderr


def test_a_program_that_ends_before_it_is_back(runner, program):
    script = program("""
        import detrain, pathlib
        flag = pathlib.Path("flag")
        if not flag.exists():
            flag.touch()
            for i in detrain.loop(range(12), x=[]): pass
    """)
    done = killed_and_resumed(runner, script)
    assert done.code == 1
    assert "at the end of the program: expected the loop" in done.stderr
    assert runner.show("it")["status"] == "failed"


def test_enumerate_around_a_loop_is_refused(runner, program):
    script = program("""
        import detrain
        for i, x in enumerate(detrain.loop(range(12), x=[])):
            pass
    """)
    done = runner.run(script, "it")
    assert done.code == 1
    assert "line 3" in done.stderr
    assert "run.loop(enumerate(loader))" in done.stderr


def test_numbers_can_not_be_declared(runner, program):
    script = program("""
        import detrain
        best = 0.5
        for x in detrain.loop(range(12), best=best):
            pass
    """)
    done = runner.run(script, "it")
    assert "best=0.5: a float can't be restored in place" in done.stderr


def test_state_that_can_not_be_captured_is_refused_at_the_first_step(runner, program):
    script = program("""
        import detrain
        state = {"held": (i for i in range(3))}
        for x in detrain.loop(range(12), state=state):
            print("trained", x)
    """)
    done = runner.run(script, "it")
    assert done.code == 1
    assert "state['held'] is a builtins:generator" in done.stderr
    assert done.stdout == ""


BORN = """
    import os
    import torch

    class Job:
        pass

    torch.manual_seed(1)
    model = torch.nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    jobs = [Job()]
    {before}
    for step in range(24):
        {inside}
        loss = model(torch.randn(2, 3)).pow(2).sum() * len(jobs)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item(), jobs[-1].name("a", "b"))
"""
BEFORE = "jobs[0].name = os.path.join"
INSIDE = "jobs.append(Job()); jobs[-1].name = os.path.{}"


def test_what_a_resumed_run_could_not_make_is_said_when_it_is_saved(runner, program):
    inside = f"if step == 9: {INSIDE.format('relpath')}"
    script = program(BORN.format(before=BEFORE, inside=inside))
    dead = runner.run(script, "it", *OPTIONS, crash="step=20")
    assert dead.code == -9
    assert "no checkpoint can be taken: " in dead.stderr
    assert "jobs[1].name is posixpath:relpath, which is a function or class of a" in dead.stderr
    assert "(line 13)" in dead.stderr
    assert dead.stderr.count("no checkpoint can be taken") == 1
    assert max(each["step"] for each in runner.show("it")["checkpoints"]) < 10
    again = runner.run(script, "it", *OPTIONS)
    assert again.code == 0, again.stderr
    assert runner.run(script, "whole", *OPTIONS).code == 0
    assert runner.log("it") == runner.log("whole")


def test_what_it_finds_where_it_was_is_saved(runner, program):
    """The same function, which the program holds before the loop already."""
    inside = INSIDE.format("join")
    script = program(BORN.format(before=BEFORE, inside=inside))
    done = killed_and_resumed(runner, script, crash="step=20")
    assert done.code == 0, done.stderr
    assert "no checkpoint can be taken" not in done.stderr
    assert runner.show("it")["resumes"][0] > 10
    assert runner.run(script, "whole", *OPTIONS).code == 0
    assert runner.log("it") == runner.log("whole")


def test_undeclared_state_of_an_inner_loop_is_said(runner, program):
    script = program("""
        import detrain
        a, b = [], []
        for i in detrain.loop(range(3), a=a):
            if i == 0:
                for j in detrain.loop(range(4), b=b): b.append(j)
            for j in detrain.loop(range(9), a=a): a.append(j)
        print(a, b)
    """)
    done = killed_and_resumed(runner, script, crash="step:22")
    assert "'b', which the loop" in done.stderr
    assert "is not declared by the loop <module>#0 (line 7)" in done.stderr
    assert done.code == 0
    assert runner.run(script, "whole", *OPTIONS).code == 0
    assert runner.log("it") == runner.log("whole")


def test_a_changed_number_of_threads_is_pinned_and_another_version_is_refused(runner, program):
    script = program("""
        import detrain, torch
        x = []
        for i in detrain.loop(range(12), x=x):
            x.append(torch.get_num_threads())
        print(x)
    """)
    assert runner.run(script, "it", *OPTIONS, crash="step:8").code == -9
    attempts = runner.root / "it" / "attempts.jsonl"
    text = attempts.read_text()
    attempts.write_text(text.replace('"torch threads":"1"', '"torch threads":"2"'))
    done = runner.run(script, "it", *OPTIONS)
    assert done.code == 0, done.stderr
    assert runner.log("it").decode().startswith("[1, 1, 1, 1, 1, 1, 2, 2")
    assert runner.run(script, "other", *OPTIONS, crash="step:8").code == -9
    attempts = runner.root / "other" / "attempts.jsonl"
    attempts.write_text(attempts.read_text().replace('"numpy":"', '"numpy":"0.'))
    refused = runner.run(script, "other", *OPTIONS)
    assert refused.code == 1
    assert "numpy: it was 0." in refused.stderr
    assert "--accept-changes" in refused.stderr


def test_a_loop_in_a_loop_in_a_loop_with_breaks_and_returns(runner, program):
    script = program("""
        import detrain, random
        log = []
        def inner(run, k):
            for c in run.loop(range(5), log=log):
                log.append((k, c, random.random()))
                if random.random() < 0.2:
                    return c
            return -1
        with detrain.run() as run:
            total = 0
            for a in run.loop(range(3), log=log):
                for b in run.loop(["x", "y", "z"], log=log):
                    got = inner(run, (a, b))
                    total += got
                    if total > 25:
                        break
                print(a, b, total)
            print(total, len(log), log[-1])
    """)
    assert runner.run(script, "whole", *OPTIONS).code == 0
    steps = runner.show("whole")["steps"]
    for number, step in enumerate(range(4, steps, 5)):
        name = f"it-{number}"
        assert runner.run(script, name, *OPTIONS, crash=f"step:{step}").code == -9
        assert runner.run(script, name, *OPTIONS).code == 0
        assert runner.log(name) == runner.log("whole")
        assert runner.show(name)["state_digest"] == runner.show("whole")["state_digest"]
