"""A real process is killed at each step of a commit: the old checkpoint or the new one is there."""

from __future__ import annotations

import json

import pytest

from detrain.checkpoint.commit import load_newest, manifest_steps
from detrain.checkpoint.store import LocalStore
from detrain.testing import CRASH_POINTS

pytestmark = pytest.mark.slow

OPTIONS = ("--save-every", "4", "--digest-every", "4", "--keep", "2")
PUBLISHED = ("manifest-renamed", "manifest-durable", "manifests-retired", "data-collected")


@pytest.fixture(scope="module")
def whole(warm, tmp_path_factory):
    from conftest import Runner

    runner = Runner(warm, tmp_path_factory.mktemp("whole"))
    assert runner.run("two_level", "whole", *OPTIONS).code == 0
    return runner.show("whole"), runner.log("whole")


@pytest.mark.parametrize("point", CRASH_POINTS[1:])
def test_killed_at_a_point_of_the_commit(runner, whole, point):
    third = 3 if not point.startswith("data-") else 5  # an epoch's first commit writes two files
    killed = runner.run("two_level", "it", *OPTIONS, crash=f"{point}:{third}")
    assert killed.code == -9, killed.stderr
    store = LocalStore(runner.root / "it" / "checkpoints")
    steps = manifest_steps(store)
    newest = load_newest(store, lambda error, _: pytest.fail(str(error)))
    assert newest is not None
    assert newest.step == steps[-1]
    if not point.startswith("data-"):
        assert newest.step == (12 if point in PUBLISHED else 8)
    again = runner.run("two_level", "it", *OPTIONS)
    assert again.code == 0, again.stderr
    found = runner.show("it")
    assert found["resumes"] == [newest.step]
    assert found["state_digest"] == whole[0]["state_digest"]
    assert found["trace_digest"] == whole[0]["trace_digest"]
    assert runner.log("it") == whole[1]
    left = sorted(path.name for path in store.folder.iterdir())
    assert not [name for name in left if name.endswith(".staged")]
    assert len([name for name in left if name.endswith(".json")]) == 2


def newest_files(runner, name):
    folder = runner.root / name / "checkpoints"
    manifest = max(folder.glob("*.json"))
    data = json.loads(manifest.read_text())["body"]["levels"][-1]["state"]["file"]
    return manifest, folder / data


def flip(path):
    raw = bytearray(path.read_bytes())
    raw[-20] ^= 4
    path.write_bytes(bytes(raw))


def newer(path):
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "version": 99}))


DAMAGE = {
    "a flipped bit in the data": (1, flip, "was altered"),
    "a flipped bit in the manifest": (0, flip, "altered|not a whole manifest"),
    "data cut off": (1, lambda p: p.write_bytes(p.read_bytes()[:-7]), "bytes long"),
    "a torn manifest": (0, lambda p: p.write_bytes(p.read_bytes()[:90]), "not a whole manifest"),
    "no data": (1, lambda p: p.unlink(), "is missing"),
    "a newer format": (0, newer, "upgrade DETrain"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_named_and_the_checkpoint_before_is_used(runner, whole, damage):
    import re

    assert runner.run("two_level", "it", *OPTIONS, crash="step:18").code == -9
    which, harm, message = DAMAGE[damage]
    target = newest_files(runner, "it")[which]
    harm(target)
    again = runner.run("two_level", "it", *OPTIONS)
    assert again.code == 0, again.stderr
    assert re.search(message, again.stderr)
    assert target.name in again.stderr
    assert "Trying the one before" in again.stderr
    found = runner.show("it")
    assert found["resumes"] == [12]
    if which == 0 or target.exists():  # what could not be used is kept for inspection
        assert list(target.parent.glob("*.damaged"))
    assert found["state_digest"] == whole[0]["state_digest"]
    assert found["trace_digest"] == whole[0]["trace_digest"]


def test_if_all_are_damaged_nothing_is_thrown_away(runner):
    assert runner.run("two_level", "it", *OPTIONS, crash="step:18").code == -9
    folder = runner.root / "it" / "checkpoints"
    before = sorted(path.name for path in folder.iterdir())
    for path in folder.glob("*.safetensors"):
        flip(path)
    again = runner.run("two_level", "it", *OPTIONS)
    assert again.code == 2
    assert "was altered" in again.stderr
    assert "--fresh" in again.stderr
    assert sorted(path.name for path in folder.iterdir()) == before
    assert runner.show("it")["status"] == "interrupted"
