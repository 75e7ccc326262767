"""Runs in an S3 store: a real server, real processes, machines that come and go.

A machine here is a cache and a key of its own.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from moto.server import ThreadedMotoServer

from detrain.checkpoint.manifest import decode_manifest
from detrain.checkpoint.objects import Objects

pytestmark = pytest.mark.slow

OPTIONS = ("--save-every", "4", "--digest-every", "4", "--keep", "2")


@pytest.fixture(scope="module")
def server():
    made = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    made.start()
    host, port = made.get_host_and_port()
    yield f"http://{host}:{port}"
    made.stop()


@pytest.fixture
def store(server, tmp_path, monkeypatch):
    """Access to the bucket of a test."""
    for name, value in {
        "AWS_ENDPOINT_URL": server, "AWS_ACCESS_KEY_ID": "it", "AWS_SECRET_ACCESS_KEY": "it",
        "AWS_DEFAULT_REGION": "us-east-1", "DETRAIN_BEAT": "0.5",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    bucket = f"bucket-{tmp_path.name.lower().replace('_', '-')[:40]}{os.getpid()}"
    objects = Objects(f"s3://{bucket}/runs")
    objects._fs.mkdir(bucket)
    return objects


class Machine:
    """A machine: what it has is in a folder of its own; the store is everybody's."""

    def __init__(self, runner, name, store):
        self.runner, self.store, self.name = runner, store, name
        self.cache = runner.folder.parent / f"{runner.folder.name}-{name}"
        self.env = {
            "DETRAIN_CACHE": str(self.cache), "DETRAIN_KEY": str(self.cache) + "-key",
            "DETRAIN_RUNS": store.address, "DETRAIN_CRASH_AT": "",
            **{k: v for k, v in os.environ.items() if k.startswith(("AWS_", "DETRAIN_BEAT"))},
        }  # fmt: skip

    def __call__(self, *argv, **env):
        return self.runner(*argv, env={**self.env, **env})

    def run(self, program, *options, crash="", args=()):
        script = self.runner.folder / f"{program}.py"
        if not script.exists():
            from conftest import PROGRAMS

            script.write_text((PROGRAMS / f"{program}.py").read_text())
        return self("run", "--name", "it", *OPTIONS, *options, script, *args,
                    DETRAIN_CRASH_AT=crash)  # fmt: skip

    def show(self):
        found = self("show", "it", "--json")
        assert found.code == 0, found.stderr
        return json.loads(found.stdout)


@pytest.fixture
def machine(runner, store):
    return lambda name: Machine(runner, name, store)


def until(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.1)


def steps_in(store):
    names = [name.rpartition("/")[2] for name in store.list("it/checkpoints")]
    return [int(name[:-5]) for name in names if name[0] == "0" and name.endswith(".json")]


def is_released(store):
    try:
        return json.loads(store.read("it/lease.json"))["released"]
    except FileNotFoundError:
        return False


@pytest.fixture(scope="module")
def whole(warm, tmp_path_factory):
    from conftest import Runner

    runner = Runner(warm, tmp_path_factory.mktemp("whole"))
    assert runner.run("two_level", "whole", *OPTIONS).code == 0
    return runner.show("whole"), runner.log("whole")


def test_a_killed_run_goes_on_on_a_fresh_machine(machine, store, whole):
    first, second = machine("first"), machine("second")
    ended = first.run("two_level", crash="step=18")
    assert ended.code == -9, ended.stderr
    until(lambda: is_released(store))  # what was committed is brought away all the same
    found = first.show()
    assert (found["status"], found["checkpoints"][-1]["step"]) == ("interrupted", 16)
    ended = second.run("two_level")
    assert ended.code == 0, ended.stderr
    assert "going on from step 16" in ended.stderr
    found = second.show()
    assert found["state_digest"] == whole[0]["state_digest"]
    assert found["trace_digest"] == whole[0]["trace_digest"]
    assert found["status"] == "complete"
    assert first.show() == found  # the first machine sees what the store has
    assert second("log", "it").stdout.encode() == whole[1]
    assert "complete" in first("runs").stdout
    # A complete run is not begun again by the machine that was left behind.
    assert "complete" in first("run", "--resume", "it", first.runner.folder / "two_level.py").stderr


def test_steps_are_replayed_on_a_machine_that_has_never_seen_the_run(machine, store, whole):
    assert machine("first").run("two_level").code == 0
    there = {name: store.read(name) for name in store.list("it")}
    lines = whole[1].decode().splitlines()
    ended = machine("second")("replay", "it", "--steps", "35:36")
    assert ended.code == 0, ended.stderr
    assert "from its checkpoint of step 32" in ended.stderr
    assert "as recorded (1 state compared)" in ended.stderr
    assert ended.stdout.splitlines() == [x for x in lines if x.startswith(("  2 110 ", "  2 120 "))]
    assert {name: store.read(name) for name in store.list("it")} == there


def test_what_is_in_the_store_is_whole(machine, store, whole):
    first = machine("first")
    assert first.run("two_level").code == 0
    there = store.list("it")
    manifests = [name for name in there if name.endswith(".json") and "/0" in name]
    assert 1 <= len(manifests) <= 2
    named = {}
    for name in manifests:
        named |= decode_manifest(store.read(name), name).data_files()
    data = {n.rpartition("/")[2]: f.size for n, f in there.items() if n.endswith(".safetensors")}
    assert data == named
    assert {"it/run.json", "it/trace.jsonl", "it/stdout.log", "it/attempts.jsonl"} <= there.keys()
    assert not [name for name in there if "outbox" in name or name.endswith(("lock", ".staged"))]


def test_the_newest_one_is_taken_wherever_it_lies(machine, store, whole):
    first, second = machine("first"), machine("second")
    assert first.run("two_level", crash="step=10").code == -9
    until(lambda: is_released(store))
    ended = second.run("two_level", crash="step=22")  # further in the store than on the first
    assert ended.code == -9, ended.stderr
    until(lambda: is_released(store))
    ended = first.run("two_level", crash="step=26")
    assert "going on from step 20" in ended.stderr
    until(lambda: is_released(store))
    # The store forgets: the first machine has more than it.
    for name in store.list("it"):
        if name.startswith("it/checkpoints/"):
            store.remove([name])
    ended = first.run("two_level")
    assert ended.code == 0, ended.stderr
    assert "going on from step 24" in ended.stderr
    found = first.show()
    assert found["state_digest"] == whole[0]["state_digest"]
    assert found["trace_digest"] == whole[0]["trace_digest"]


SLOW = """
import time
import torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(400):
    loss = model(torch.randn(4, 2)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(0.1)
"""


def test_one_process_at_a_time(machine, store):
    first, second = machine("first"), machine("second")
    script = first.runner.folder / "slow.py"
    script.write_text(SLOW)
    command = ["run", "--name", "it", *OPTIONS, "--seed", "1", str(script)]
    env = {**os.environ, **first.env, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "detrain", *command], env=env, cwd=first.runner.folder,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until(lambda: steps_in(store))
        assert first.show()["status"] == "running"
        ended = second(*command)
        assert ended.code == 2
        assert f"in use by process {process.pid}" in ended.stderr
        assert process.poll() is None
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -9
        until(lambda: is_released(store))
        made = second("export", "it", "--to", "it.safetensors")
        assert made.code == 0, made.stderr
    finally:
        process.kill()
        process.wait()


def test_a_store_that_is_not_there_is_said(machine):
    first = machine("first")
    dead = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1"}
    from conftest import PROGRAMS

    ended = first("run", "--name", "it", PROGRAMS / "two_level.py", **dead)
    assert ended.code == 2
    assert "can't be reached" in ended.stderr
