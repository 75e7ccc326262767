"""Tasks of pools draw the same for any workers, chunks and kind of pool, and after a kill."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PROGRAMS = Path(__file__).parent.parent / "programs"

SETTINGS = (
    ("threads", "4", "1"),
    ("processes", "1", "1"),
    ("processes", "4", "3"),
    ("pool", "2", "1"),
    ("imap", "4", "2"),
    ("threadpool", "3", "2"),
    ("thread imap", "1", "1"),
)


def digests(runner, name, *args, options=()):
    done = runner.run(PROGRAMS / "pooled.py", name, *options, args=args)
    assert done.code == 0, done.stderr
    lines = dict(line.split() for line in runner.log(name).splitlines())
    return lines[b"tasks"], lines[b"own"]


def test_one_digest_for_all_kinds_of_pools_workers_and_chunks(runner):
    found = {
        setting: digests(runner, f"run{number}", *setting, "fork", "torch")
        for number, setting in enumerate(SETTINGS)
    }
    assert len(set(found.values())) == 1, found
    # The main process draws what it draws without any task.
    assert digests(runner, "none", "none", "1", "1", "fork", "torch")[1] == found[SETTINGS[0]][1]


def test_the_program_s_seeds_rule_unless_one_is_typed(runner):
    setting = ("threads", "2", "1", "fork")
    found = digests(runner, "plan", *setting)
    assert digests(runner, "no-plan", *setting, options=("--no-plan",)) == found
    typed = [digests(runner, f"seed{n}", *setting, options=("--seed", n)) for n in ("1", "2")]
    assert len({found, *typed}) == 3


def test_workers_that_are_spawned_draw_what_forked_ones_do(runner):
    forked = digests(runner, "forked", "processes", "2", "2", "fork")
    assert digests(runner, "spawned", "processes", "2", "2", "spawn") == forked


def test_plain_python_has_another_digest_for_each_setting():
    found = set()
    for setting in (("processes", "1", "1"), ("processes", "3", "2"), ("pool", "2", "1")):
        command = [sys.executable, PROGRAMS / "pooled.py", *setting, "fork"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        found.add(done.stdout.splitlines()[0])
    assert len(found) == 3


def test_a_pool_that_lives_across_checkpoints_is_resumed_exactly(runner):
    program = PROGRAMS / "prefetching.py"
    options = ("--save-every", "1", "--digest-every", "1", "--seed", "4")
    for kind, workers, step in (("processes", "3", 4), ("threads", "2", 7)):
        args = (kind, workers)
        assert runner.run(program, kind, *options, args=args).code == 0
        name = f"{kind}-killed"
        killed = runner.run(program, name, *options, crash=f"step={step}", args=args)
        assert killed.code == -9, killed.stderr
        assert runner.run(program, name, *options, args=args).code == 0
        shown = runner.show(name)
        assert (shown["resumes"], shown["diverged_at"]) == ([step - 2], None)
        assert shown["state_digest"] == runner.show(kind)["state_digest"]
        assert runner.log(name) == runner.log(kind)
    assert runner.log("processes") == runner.log("threads")


ORDER = """
    import time
    from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, as_completed, wait
    from multiprocessing import Pool

    def late(number):
        time.sleep(0.2 - 0.06 * number)
        return number

    def main():
        found = []
        with Pool(4) as pool:
            print(list(pool.imap_unordered(late, range(4))))
            for number in range(4):
                pool.apply_async(late, (number,), callback=found.append)
            pool.close()
            pool.join()
        print(found)
        with ProcessPoolExecutor(4) as pool:
            print([f.result() for f in as_completed({pool.submit(late, n) for n in range(4)})])
            todo = {pool.submit(late, n) for n in range(4)}
            while todo:
                done, todo = wait(todo, return_when=FIRST_COMPLETED)
                print([f.result() for f in done])

    if __name__ == "__main__":
        main()
"""


def test_results_come_in_the_order_of_submission_or_as_they_are_done(runner, tmp_path):
    program = tmp_path / "order.py"
    program.write_text(textwrap.dedent(ORDER))
    assert runner.run(program, "ordered").code == 0
    every = b"[0, 1, 2, 3]\n" * 3
    assert runner.log("ordered") == every + b"[0]\n[1]\n[2]\n[3]\n"
    assert runner.run(program, "unordered", "--unordered").code == 0
    assert runner.log("unordered") != runner.log("ordered")
