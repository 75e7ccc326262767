"""A process that has imported a framework, and forks children that run `detrain` commands.

Importing a framework takes seconds, forking milliseconds. The warm process itself computes nothing,
so that its children start with no threads and with fresh generators. A child is a real process: it
can be killed with SIGKILL at any time.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Child", "WarmProcess"]


@dataclass(frozen=True)
class Child:
    """How a child ended: its exit code, negative for a signal, and what it printed."""

    code: int
    stdout: str
    stderr: str


_SERVE = "import sys; from detrain.testing import warm; warm.serve(sys.argv[1:])"


class WarmProcess:
    """Runs one command after the other; a context manager."""

    def __init__(self, imports: Sequence[str] = ()) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVE, *imports],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # Many small programs side by side: threads would only wait for each other.
            env={"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", **os.environ},
        )
        self._answer()  # waits until the imports are done

    def __enter__(self) -> WarmProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the warm process."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(timeout=30)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def run(
        self,
        argv: Sequence[str],
        cwd: Path,
        env: Mapping[str, str] | None = None,
        kill_after: float | None = None,
        timeout: float = 300.0,
    ) -> Child:
        """Run `detrain argv…` in a folder; SIGKILL it after that many seconds, if given."""
        cwd.mkdir(parents=True, exist_ok=True)
        out, err = cwd / ".child-stdout", cwd / ".child-stderr"
        for path in (out, err):
            path.write_text("")  # the child may be killed before it gets as far
        request = {
            "argv": list(argv),
            "cwd": str(cwd),
            "env": dict(env or {}),
            "stdout": str(out),
            "stderr": str(err),
        }
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        pid = int(self._answer()["pid"])
        timer = threading.Timer(timeout if kill_after is None else kill_after, _kill, [pid])
        timer.start()
        try:
            code = int(self._answer()["code"])
        finally:
            timer.cancel()
        return Child(code, out.read_text(errors="replace"), err.read_text(errors="replace"))

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the warm process ended with code {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def serve(imports: Sequence[str]) -> None:
    """The warm process: fork a child for each request, say its pid, then its exit code."""
    for name in imports:
        __import__(name)
    answers = os.fdopen(os.dup(1), "w")
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            answers.close()
            _child(request)
        print(json.dumps({"pid": pid}), file=answers, flush=True)
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        print(json.dumps({"code": code}), file=answers, flush=True)


def _search_path() -> list[str]:
    """The folders that the environment says modules are in, as the interpreter lists them."""
    folders = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return [str(Path(folder).absolute()) for folder in folders if folder]


def _child(request: Mapping[str, Any]) -> None:
    """The child: become a process of its own, run the command, leave without the parent's exit."""
    main = importlib.import_module("detrain.cli").main  # as the console script would
    for number, path in ((1, request["stdout"]), (2, request["stderr"])):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(handle, number)
        os.close(handle)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    before = _search_path()
    os.chdir(request["cwd"])
    os.environ.update(request["env"])
    if "PYTHONPATH" in request["env"]:
        sys.path[:] = [*_search_path(), *(each for each in sys.path if each not in before)]
    sys.argv = ["detrain", *request["argv"]]
    code = 1
    try:
        main()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
