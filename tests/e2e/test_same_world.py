"""The world that a resumed program sees is that of its first attempt."""

from __future__ import annotations

import textwrap

import pytest

pytestmark = pytest.mark.slow

OPTIONS = ("--save-every", "3", "--seed", "1", "--digest-every", "2")

MODEL = """
import os, sys
import torch
from torch import nn
torch.manual_seed(0)
x = torch.randn(24, 4)
y = x.sum(1, keepdim=True)
model = nn.Linear(4, 1)
opt = torch.optim.Adam(model.parameters(), lr=0.01)
def update(a=x, b=y):
    loss = nn.functional.mse_loss(model(a), b)
    opt.zero_grad(); loss.backward(); opt.step()
    return loss.item()
"""


@pytest.fixture
def script(runner):
    def write(text):
        path = runner.folder / "job.py"
        path.write_text(MODEL + textwrap.dedent(text))
        return path

    return write


def killed_and_resumed(runner, script, between=lambda: None, env=None):
    """Kill a run after its seventh step, change the world, go on; gives what the run printed."""
    command = ("run", "--name", "it", *OPTIONS, script)
    ended = runner(*command, env={"DETRAIN_CRASH_AT": "step:7"})
    assert ended.code == -9, ended.stderr
    between()
    ended = runner(*command, env={"DETRAIN_CRASH_AT": "", **(env or {})})
    assert ended.code == 0, ended.stderr
    found = runner.show("it")
    assert found["resumes"] == [3]
    assert found["diverged_at"] is None
    return runner.log("it").decode().splitlines()


def test_the_environment_answers_as_the_first_time(runner, script):
    lines = killed_and_resumed(
        runner,
        script("""
            rate = float(os.environ.get("JOB_RATE", "0.5"))
            asked = os.getenv("JOB_RATE"), "JOB_RATE" in os.environ
            for step in range(10):
                update()
            print(rate, *asked, os.environ.get("JOB_RATE"))
        """),
        env={"JOB_RATE": "0.25"},
    )
    assert lines == ["0.5 None False 0.25"]


def test_secrets_are_not_kept(runner, script):
    job = script("""
        token, rate = os.environ.get("JOB_TOKEN"), os.environ.get("JOB_RATE")
        known = len(token)
        del token
        for step in range(10):
            update()
    """)
    env = {"JOB_TOKEN": "hunter2", "JOB_RATE": "a-rate-of-0.25", "DETRAIN_CRASH_AT": ""}
    assert runner("run", "--name", "it", *OPTIONS, job, env=env).code == 0
    kept = [path.read_bytes() for path in (runner.root / "it").rglob("*") if path.is_file()]
    assert any(b"a-rate-of-0.25" in content for content in kept)
    assert not any(b"hunter2" in content for content in kept)


@pytest.mark.parametrize("count", [5, 900])
def test_directories_answer_as_the_first_time(runner, script, count):
    folder = runner.folder / "data"
    folder.mkdir()
    for number in range(count):
        (folder / f"{number}.txt").write_text("x")

    def between():
        for number in range(0, count, 2):
            (folder / f"{number}.txt").rename(folder / f"{number}.tmp")
        for number in range(0, count, 2):
            (folder / f"{number}.tmp").rename(folder / f"{number}.txt")
        (folder / "new.txt").touch()

    lines = killed_and_resumed(
        runner,
        script("""
            import glob, pathlib
            def ways():
                return (
                    os.listdir("data"), glob.glob("data/*.txt"),
                    [str(p) for p in pathlib.Path("data").iterdir()],
                    [e.name for e in os.scandir("data")], list(os.walk("data"))[0][2],
                )
            first = ways()
            for step in range(10):
                update()
            for names, later in zip(first, ways()):
                print(len(names), len(later))
        """),
        between,
    )
    assert [line.split()[0] for line in lines] == [str(count)] * 5
    assert [line.split()[1] for line in lines] == [str(count + 1)] * 5


def test_tensorboard_goes_on_with_its_file(runner, script):
    job = script("""
        from torch.utils.tensorboard import SummaryWriter
        writer = SummaryWriter()
        writer.add_text("arguments", "some")
        for step in range(10):
            writer.add_scalar("loss", update(), step)
        writer.close()
    """)
    killed_and_resumed(runner, job)
    (file,) = (runner.folder / "runs").rglob("events*")
    found = _scalars(file)
    assert [step for step, _ in found] == list(range(10))
    for path in (runner.folder / "runs").rglob("*"):
        if path.is_file():
            path.unlink()
    assert runner("run", "--name", "whole", *OPTIONS, job).code == 0
    (file,) = (runner.folder / "runs").rglob("events*")
    assert found == _scalars(file)


def _scalars(file):
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    events = list(EventFileLoader(str(file)).Load())
    assert sum(event.HasField("file_version") for event in events) == 1
    assert sum(value.tag.startswith("arguments") for e in events for value in e.summary.value) == 1
    return [
        (event.step, value.tensor.float_val[0])
        for event in events
        for value in event.summary.value
        if value.tag == "loss"
    ]


def test_workers_that_import_the_script_again(runner, script):
    job = script("""
        from torch.utils.data import DataLoader, Dataset
        class Data(Dataset):
            def __len__(self): return 12
            def __getitem__(self, i): return x[i] * 2, y[i] * 2
        def main():
            for epoch in range(3):
                loader = DataLoader(Data(), 3, shuffle=True, num_workers=1,
                                    multiprocessing_context="spawn")
                for a, b in loader:
                    print(epoch, update(a, b))
        if __name__ == "__main__":
            main()
    """)
    lines = killed_and_resumed(runner, job)
    whole = runner("run", "--name", "whole", *OPTIONS, job)
    assert whole.code == 0, whole.stderr
    assert lines == runner.log("whole").decode().splitlines()
    assert runner.show("it")["state_digest"] == runner.show("whole")["state_digest"]


def test_names_with_the_time_in_them_are_no_difference(runner, script):
    job = script("""
        import time, uuid
        from datetime import datetime
        name = f"job__{int(time.time())}"
        other = datetime.now().strftime("%b%d_%H-%M-%S")
        third = "run-" + uuid.uuid4().hex
        stamp = int(time.time() * 1000)
        for step in range(10):
            update()
    """)
    digests = set()
    for name in ("a", "b"):
        assert runner("run", "--name", name, *OPTIONS, job).code == 0
        digests.add(runner.show(name)["state_digest"])
    assert len(digests) == 1
    changed = runner.folder / "changed.py"
    changed.write_text(job.read_text().replace("job__", "jobs__").replace("range(10)", "range(11)"))
    assert runner("run", "--name", "c", *OPTIONS, changed).code == 0
    assert runner.show("c")["state_digest"] not in digests


def test_loops_in_imported_modules(runner, script):
    package = runner.folder / "engine"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("from .inner.fit import fit as fit\n")
    (package / "inner" / "__init__.py").touch()
    (package / "inner" / "fit.py").write_text(
        textwrap.dedent("""
            from ..steps import Steps

            def fit(update, epochs):
                for epoch in range(epochs):
                    losses = [0.0]
                    for step in Steps(4):
                        losses.append(update())
                    print(epoch, losses)
        """)
    )
    (package / "steps.py").write_text(
        textwrap.dedent("""
            class Steps:
                def __init__(self, n): self.n = n
                def __iter__(self): return iter(range(self.n))
        """)
    )
    job = script("""
        import engine
        from engine import fit as begin
        begin(update, 2)
        print("between", model.weight.sum().item())
        engine.fit(update, 2)
    """)
    lines = killed_and_resumed(runner, job)
    assert runner("run", "--name", "whole", *OPTIONS, job).code == 0
    assert lines == runner.log("whole").decode().splitlines()
    assert runner.show("it")["state_digest"] == runner.show("whole")["state_digest"]
    assert runner.show("whole")["steps"] == 16


def test_bars_are_shown_as_they_ended(runner, script):
    job = script("""
        from tqdm import tqdm
        for epoch in range(3):
            bar = tqdm(range(5), file=sys.stdout, mininterval=0, bar_format="{desc} {n}/{total}")
            for step in bar:
                bar.set_description(f"epoch {epoch} loss {update():.6f}")
            print("done", epoch)
    """)
    killed_and_resumed(runner, job)
    found = runner("log", "it").stdout
    assert runner("run", "--name", "whole", *OPTIONS, job).code == 0
    assert found == runner("log", "whole").stdout
    assert len(found.splitlines()) == 6
    assert "epoch 2 loss" in found
    assert runner.log("whole").count(b"\r") > 10


def test_services_are_told_one_name_for_a_run(runner, script):
    job = script("""
        for step in range(10):
            update()
        print(os.environ["WANDB_RUN_ID"], os.environ["WANDB_RESUME"])
    """)
    (line,) = killed_and_resumed(runner, job)
    assert line.startswith("it-")
    assert line.endswith(" allow")
    mine = {"WANDB_RUN_ID": "mine", "WANDB_RESUME": "must", "DETRAIN_CRASH_AT": ""}
    assert runner("run", "--name", "other", *OPTIONS, job, env=mine).code == 0
    assert runner.log("other") == b"mine must\n"


def test_a_clock_that_decides_answers_again_as_it_did(runner, script):
    """Steps 4 to 7 are done twice: the second time they go the way that they went."""
    before = []

    def remember():
        before.extend(runner.log("it").decode().splitlines())

    lines = killed_and_resumed(
        runner,
        script("""
            import time
            for step in range(16):
                loss = update(x * (1 + time.perf_counter_ns() // 7 % 3))
                if time.perf_counter_ns() // 7 % 2:
                    loss = update()
                print(step, loss, time.perf_counter_ns())
        """),
        between=remember,
    )
    assert len(before) >= 7
    assert lines[: len(before)] == before
    assert len(lines) == 16
