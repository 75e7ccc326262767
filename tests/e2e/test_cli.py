"""What a person types and sees."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from conftest import PROGRAMS

pytestmark = pytest.mark.slow

OPTIONS = ("--save-every", "5")

SIMPLE = """
import sys
import detrain
done = []
for i in detrain.loop(range(int(sys.argv[1])), done=done):
    done.append(i * i)
    print("square", i, i * i)
print("sum", sum(done))
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "job.py"
    path.write_text(SIMPLE)
    return path


def test_the_same_line_resumes_and_otherwise_starts_anew(runner, script):
    def type_it(crash=""):
        options = (*OPTIONS, "--seed", "3")
        return runner("run", *options, script, "30", env={"DETRAIN_CRASH_AT": crash})

    assert type_it("step:12").code == -9
    assert type_it().code == 0
    assert type_it().code == 0
    listed = json.loads(runner("runs", "--json").stdout)
    assert [run["name"] for run in listed] == ["job-1", "job-2"]
    assert [run["resumes"] for run in listed] == [[10], []]
    assert {run["status"] for run in listed} == {"complete"}
    assert listed[0]["state_digest"] == listed[1]["state_digest"]
    assert listed[0]["trace_digest"] == listed[1]["trace_digest"]
    assert listed[0]["argv"] == ["30"]
    assert runner("log", "job-1").stdout == runner("log", "job-2").stdout
    assert runner("runs").stdout.count("complete") == 2


def test_other_arguments_are_another_run(runner, script):
    assert runner("run", *OPTIONS, script, "30", env={"DETRAIN_CRASH_AT": "step:12"}).code == -9
    assert runner("run", *OPTIONS, script, "20", env={"DETRAIN_CRASH_AT": ""}).code == 0
    assert runner.show("job-1")["status"] == "interrupted"
    assert runner.show("job-2")["status"] == "complete"


def test_fresh_and_resume(runner, script):
    assert runner.run(script, "one", *OPTIONS, crash="step:12", args=["30"]).code == -9
    assert runner("run", *OPTIONS, "--fresh", script, "30", env={"DETRAIN_CRASH_AT": ""}).code == 0
    assert runner.show("one")["status"] == "interrupted"
    assert runner("run", *OPTIONS, "--resume", "one", script, "30").code == 0
    assert runner.show("one")["resumes"] == [10]
    done = runner("run", "--resume", "one", script, "30")
    assert done.code == 2
    assert "nothing to resume" in done.stderr
    unknown = runner("run", "--resume", "two", script, "30")
    assert "no run named 'two'" in unknown.stderr
    assert "one" in unknown.stderr


def test_everything_after_the_script_is_the_scripts(runner, tmp_path):
    script = tmp_path / "echo.py"
    script.write_text("import sys; print(sys.argv[1:], __name__, sys.path[0])")
    done = runner("run", script, "--name", "x", "--fresh", "--", "-v")
    assert done.stdout == f"['--name', 'x', '--fresh', '--', '-v'] __main__ {tmp_path}\n"
    assert "no training loop was found" in done.stderr


def test_a_failing_script_leaves_its_traceback_and_its_exit_code(runner, tmp_path):
    script = tmp_path / "bad.py"
    script.write_text(
        "import detrain\nfor i in detrain.loop(range(9), x=[]):\n    if i == 4:\n"
        "        raise RuntimeError('no more')\n"
    )
    done = runner.run(script, "bad")
    assert done.code == 1
    assert "RuntimeError: no more" in done.stderr
    found = runner.show("bad")
    assert (found["status"], found["exit_code"], found["steps"]) == ("failed", 1, 4)
    assert found["traceback"].splitlines()[1].endswith('bad.py", line 4, in <module>')
    assert "RuntimeError" in runner("show", "bad").stdout
    script.write_text("import sys; sys.exit(7)")
    assert runner.run(script, "seven").code == 7
    assert runner.show("seven")["exit_code"] == 7


def test_a_changed_script_is_refused_until_it_is_accepted(runner, script):
    assert runner.run(script, "it", *OPTIONS, crash="step:12", args=["30"]).code == -9
    script.write_text(SIMPLE.replace("square", "SQUARE"))
    refused = runner.run(script, "it", *OPTIONS, args=["30"])
    assert refused.code == 2
    assert "the text of job.py" in refused.stderr
    assert "--accept-changes" in refused.stderr
    done = runner.run(script, "it", *OPTIONS, "--accept-changes", args=["30"])
    assert done.code == 0
    log = runner.log("it").decode()
    assert "square 9 81" in log
    assert "SQUARE 10 100" in log


def test_options_that_decide_bits_are_part_of_a_run(runner, script):
    chosen = [*OPTIONS, "--one-stream"]
    assert runner.run(script, "it", *chosen, crash="step:12", args=["30"]).code == -9
    refused = runner.run(script, "it", *OPTIONS, "--unordered", args=["30"])
    assert refused.code == 2
    assert "they were --one-stream, they are --unordered" in refused.stderr
    assert runner.run(script, "it", *chosen, args=["30"]).code == 0


def test_a_second_process_is_refused_and_a_dead_one_is_not_feared(runner, tmp_path):
    script = tmp_path / "slow.py"
    script.write_text(
        "import detrain, time\nfor i in detrain.loop(range(600), x=[]):\n    time.sleep(0.05)\n"
    )
    command = [sys.executable, "-m", "detrain", "run", "--save-every", "5", str(script)]
    first = subprocess.Popen(command, cwd=runner.folder, stderr=subprocess.PIPE)
    trace = runner.root / "slow-1" / "trace.jsonl"
    deadline = time.monotonic() + 60
    while not trace.exists() or trace.read_bytes().count(b"\n") < 8:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert runner.show("slow-1")["status"] == "running"
    second = subprocess.run(command, cwd=runner.folder, capture_output=True, text=True)
    assert second.returncode == 2
    assert f"in use by process {first.pid}" in second.stderr
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert runner.show("slow-1")["status"] == "interrupted"
    script_done = script.read_text().replace("600", "200").replace("0.05", "0")
    script.write_text(script_done)
    command.insert(4, "--accept-changes")
    third = subprocess.run(command, cwd=runner.folder, capture_output=True, text=True)
    assert third.returncode == 0, third.stderr
    (resumed,) = runner.show("slow-1")["resumes"]
    assert resumed >= 5
    assert resumed % 5 == 0


def test_the_api_without_the_command(runner):
    """`python train.py` twice: the second goes on where the first was killed."""
    env = {**os.environ, "DETRAIN_RUNS": str(runner.root), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(PROGRAMS / "lbfgs.py")]
    whole = runner.run("lbfgs", "whole", "--save-every", "60s", "--digest-every", "100")
    assert whole.code == 0
    killed = subprocess.run(command, env={**env, "DETRAIN_CRASH_AT": "step:20"}, cwd=runner.folder)
    assert killed.returncode == -9
    done = subprocess.run(command, env=env, cwd=runner.folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = runner.show("lbfgs-1")
    assert found["status"] == "complete"
    assert found["state_digest"] == runner.show("whole")["state_digest"]
    assert found["trace_digest"] == runner.show("whole")["trace_digest"]
    assert runner.log("lbfgs-1") == runner.log("whole")


def test_a_program_that_hides_state_is_caught_when_steps_are_done_again(runner, tmp_path):
    script = tmp_path / "hidden.py"
    script.write_text(
        "import detrain\nclass Hidden: count = 0\nx = []\nwith detrain.run() as run:\n"
        "    for i in run.loop(range(20), x=x):\n        Hidden.count += 1\n"
        "        x.append(Hidden.count)\n        run.record(count=Hidden.count)\n"
    )
    assert runner.run(script, "it", *OPTIONS, crash="step:8").code == -9
    done = runner.run(script, "it", *OPTIONS)
    assert "step 6 did not come out as in the attempt before" in done.stderr
    assert runner.show("it")["diverged_at"] == 6
    assert "DIVERGED" in runner("show", "it").stdout


def test_a_checkpoint_is_kept_by_name(runner):
    options = ("--save-every", "3", "--keep", "1", "--keep-every", "10")
    assert runner.run("two_level", "it", *options, crash="step=8").code == -9
    assert runner("keep", "it", "6", "good").code == 0
    assert "there are: 6" in runner("keep", "it", "5").stderr
    assert runner.run("two_level", "it", *options).code == 0
    kept = {each["step"]: each["names"] for each in runner.show("it")["checkpoints"]}
    assert kept[6] == ["good"]
    assert set(kept) == {6, 12, 21, 30, max(kept)}
    assert "kept as 'good'" in runner("show", "it").stdout
    assert "there are: good" in runner("unkeep", "it", "6").stderr
    assert runner("unkeep", "it", "good").code == 0
    assert not any(each["names"] for each in runner.show("it")["checkpoints"])
