"""Mutated checkpoints never do anything but load or give a clear error.

`DETRAIN_FUZZ=10000` for the long profile.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

FUZZING = Path(__file__).with_name("fuzzing.py")
COUNT = int(os.environ.get("DETRAIN_FUZZ", "800"))


def fuzz(folder, seed, count):
    command = [sys.executable, "-W", "ignore", FUZZING, folder, str(seed), str(count)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(2))
def test_mutated_checkpoints(tmp_path, seed):
    ended = fuzz(tmp_path, seed, COUNT // 2)
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-4000:]
    counts = json.loads(ended.stdout.splitlines()[-1])
    assert sum(counts.values()) == COUNT // 2
    # The mutations are neither all caught at once nor all without effect.
    assert counts["DamagedCheckpoint"] > COUNT // 8
    assert counts["ResumeMismatch"] > COUNT // 40
    assert counts["unharmed"] > COUNT // 40
