from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest

from detrain.testing import WarmProcess

# Not the key of whoever runs the tests.
os.environ["DETRAIN_KEY"] = str(Path(tempfile.gettempdir()) / f"detrain-tests-{os.getuid()}-key")

PROGRAMS = Path(__file__).parent / "programs"

# They are read by the tests and never imported, whatever their names.
collect_ignore = ["golden/programs"]


@pytest.fixture(scope="session")
def warm():
    with WarmProcess(["torch._dynamo", "numpy", "tqdm"]) as process:
        yield process


class Runner:
    """Types `detrain` commands in a folder of its own."""

    def __init__(self, warm: WarmProcess, folder: Path) -> None:
        self.warm, self.folder = warm, folder
        self.root = folder / ".detrain"

    def __call__(self, *argv, env=None, kill_after=None):
        return self.warm.run([str(part) for part in argv], self.folder, env, kill_after)

    def run(self, program, name, *options, crash=None, kill_after=None, args=()):
        script = program if isinstance(program, Path) else PROGRAMS / f"{program}.py"
        env = {"DETRAIN_CRASH_AT": crash or ""}
        command = ["run", "--name", name, *options, script, *args]
        return self(*command, env=env, kill_after=kill_after)

    def show(self, name):
        found = self("show", name, "--json")
        assert found.code == 0, found.stderr
        return json.loads(found.stdout)

    def log(self, name):
        return (self.root / name / "stdout.log").read_bytes()


@pytest.fixture
def runner(warm, tmp_path):
    return Runner(warm, tmp_path)
