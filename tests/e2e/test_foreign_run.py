"""A run that came from somebody else never changes a file that is not its own."""

from __future__ import annotations

import json

import pytest

from detrain.checkpoint.manifest import decode_manifest, encode_manifest

pytestmark = pytest.mark.slow

PROGRAM = """
import sys, torch
torch.manual_seed(0)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(12):
    loss = model(torch.randn(4, 2)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for path in sys.argv[1:]:
        with open(path, "a") as log:
            log.write(f"{step} {loss.item()!r}\\n")
"""
OPTIONS = ("--name", "it", "--save-every", "4", "--seed", "1")


@pytest.fixture
def place(runner, tmp_path_factory):
    runner.folder.mkdir(exist_ok=True)
    (runner.folder / "train.py").write_text(PROGRAM)
    outside = tmp_path_factory.mktemp("outside")
    (outside / "precious").write_text("precious\n" * 100)
    return runner, outside


def run(runner, *args, options=(), **env):
    return runner("run", *OPTIONS, *options, runner.folder / "train.py", *args, env=env)


def killed(runner, *args):
    ended = run(runner, *args, DETRAIN_CRASH_AT="step=10")
    assert ended.code == -9, ended.stderr
    return runner.root / "it"


def expected(runner, *args):
    """What the program writes if nothing happens to it."""
    assert runner("run", "--seed", "1", "--name", "whole", runner.folder / "train.py", *args,
                  env={"DETRAIN_CRASH_AT": ""}).code == 0  # fmt: skip


def other_key(runner):
    return str(runner.folder.parent / "another-key")


def test_files_below_the_working_folder_are_cut_back_for_anybody(place):
    runner, _ = place
    killed(runner, "log.txt")
    again = run(runner, "log.txt", DETRAIN_CRASH_AT="", DETRAIN_KEY=other_key(runner))
    assert again.code == 0, again.stderr
    assert [line.split()[0] for line in (runner.folder / "log.txt").read_text().splitlines()] == [
        str(step) for step in range(12)
    ]


def test_files_elsewhere_only_for_who_wrote_them(place):
    runner, outside = place
    target = outside / "log.txt"
    killed(runner, target)
    before = target.read_text()
    again = run(runner, target, DETRAIN_CRASH_AT="", DETRAIN_KEY=other_key(runner))
    assert again.code == 2
    assert str(target) in again.stderr
    assert "--trust-files" in again.stderr
    assert target.read_text() == before
    crash = {"DETRAIN_CRASH_AT": "step=11", "DETRAIN_KEY": other_key(runner)}
    assert run(runner, target, options=["--trust-files"], **crash).code == -9
    crash["DETRAIN_CRASH_AT"] = ""  # who was trusted once is believed from then on
    assert run(runner, target, **crash).code == 0
    mine = target.read_text()
    target.unlink()
    expected(runner, target)
    assert target.read_text() == mine


def plant(run, entry):
    """Put an entry at the end of the journal, as whoever made the run could have."""
    with (run / "files.jsonl").open("a") as journal:
        journal.write(json.dumps(entry) + "\n")


@pytest.mark.parametrize("how", ["remove", "cut", "replace", "show", "rename", "above"])
def test_a_planted_journal_touches_nothing(place, how):
    runner, outside = place
    folder = killed(runner, "log.txt")
    precious = outside / "precious"
    (folder / "aside").mkdir(exist_ok=True)
    (folder / "aside" / "77").write_text("evil")
    plant(folder, {
        "remove": {"path": str(precious), "born": True},
        "cut": {"path": str(precious), "length": 3},
        "replace": {"path": str(precious), "emptied": True, "aside": 77},
        "show": {"path": str(runner.folder / "config.txt"), "removed": True, "aside": 77},
        "rename": {"path": str(precious), "source": str(outside / "moved")},
        "above": {"path": f"{runner.folder}/../{outside.name}/precious", "born": True},
    }[how])  # fmt: skip
    again = run(runner, "log.txt", DETRAIN_CRASH_AT="")
    assert again.code == 2, again.stderr
    assert "journal" in again.stderr
    assert precious.read_text() == "precious\n" * 100
    assert sorted(path.name for path in outside.iterdir()) == ["precious"]
    assert not (runner.folder / "config.txt").exists()


def test_a_planted_length_cuts_nothing(place):
    runner, outside = place
    folder = killed(runner, "log.txt")
    for path in (folder / "checkpoints").glob("*.json"):
        manifest = decode_manifest(path.read_bytes(), path.name)
        manifest.files[str(outside / "precious")] = 3
        path.write_bytes(encode_manifest(manifest))
    again = run(runner, "log.txt", DETRAIN_CRASH_AT="")
    assert again.code == 2
    assert str(outside / "precious") in again.stderr
    assert (outside / "precious").read_text() == "precious\n" * 100


@pytest.mark.parametrize(
    "name", ["stdout.log", "trace.jsonl", "owner.json", "checkpoints", "aside"]
)
def test_a_link_in_the_run_leads_nowhere(place, name):
    runner, outside = place
    folder = killed(runner, "log.txt")
    path = folder / name
    if path.exists():
        path.rename(folder / "kept")
    path.symlink_to(outside / "precious" if "." in name else outside)
    again = run(runner, "log.txt", DETRAIN_CRASH_AT="")
    assert again.code == 2
    assert f"{name}: expected" in again.stderr
    assert (outside / "precious").read_text() == "precious\n" * 100
    assert sorted(path.name for path in outside.iterdir()) == ["precious"]


def test_a_length_beyond_the_trace_is_damage(place):
    runner, _ = place
    folder = killed(runner, "log.txt")
    for path in (folder / "checkpoints").glob("*.json"):
        manifest = decode_manifest(path.read_bytes(), path.name)
        manifest.output["stdout"] = 1 << 40
        path.write_bytes(encode_manifest(manifest))
    again = run(runner, "log.txt", DETRAIN_CRASH_AT="")
    assert again.code == 2
    assert "stdout.log: is 0 bytes long" in again.stderr
    assert (folder / "stdout.log").stat().st_size == 0
