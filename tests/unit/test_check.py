"""`detrain check`: what is checked, what is shown, how it ends."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner

from detrain.analysis import analyse as analysing
from detrain.analysis.analyse import Analysis
from detrain.analysis.diagnostics import Diagnostic
from detrain.analysis.program import Span
from detrain.cli import commands
from detrain.cli.check import check_paths
from detrain.errors import UsageError

WORDS = {"clock": "DT301", "race": "DT203", "varies": "DT402", "unknown": "DT903"}


def analyse(script, search):
    """Finds words: the whole analysis that these tests need."""
    source = script.read_text()
    if "crash" in source:
        raise RuntimeError("it is too hard\nreally")
    found = [
        Diagnostic(code, f"the word is {word}", Span(number, 0, number, len(word), str(script)))
        for number, line in enumerate(source.split("\n"), 1)
        for word, code in WORDS.items()
        if word in line
    ]
    return Analysis(tuple(found), {str(script): source})


@pytest.fixture
def check(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(analysing, "analyse_script", analyse)

    def run(*argv, **files):
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(text)
        return CliRunner().invoke(commands, ["check", *argv])

    return run


def codes(result):
    return [each["code"] for each in json.loads(result.stdout)["diagnostics"]]


def test_nothing_found(check):
    done = check("a.py", a="x = 1\n")
    assert (done.exit_code, done.stdout) == (0, "All clear: nothing found in 1 file\n")


def test_warnings_and_errors_are_found(check):
    done = check("a.py", a="clock\nrace\n")
    assert done.exit_code == 1
    assert done.stdout.startswith("a.py:1:1: DT301 the clock reaches training state: the word is")
    assert done.stdout.endswith("Found 1 error and 1 warning in 1 file\n")
    assert "\x1b" not in done.stdout


def test_notes_alone_are_no_failure(check):
    done = check("a.py", a="varies\n")
    assert done.exit_code == 0
    assert "DT402" in done.stdout
    assert check("--severity", "note", "a.py").exit_code == 1


def test_what_counts_can_be_chosen(check):
    assert check("--severity", "error", "a.py", a="clock\n").exit_code == 0
    assert check("--severity", "error", "a.py", a="race\n").exit_code == 1
    assert check("--exit-zero", "a.py").exit_code == 0


def test_codes_are_selected_and_ignored(check):
    json_of = ("--format", "json")
    source = "clock\nrace\nvaries\nunknown\n"
    assert codes(check(*json_of, "a.py", a=source)) == ["DT301", "DT203", "DT402"]
    assert codes(check(*json_of, "--select", "DT3, dt203", "a.py")) == ["DT301", "DT203"]
    assert codes(check(*json_of, "--select", "DT3", "--select", "DT9", "a.py")) == [
        "DT301",
        "DT903",
    ]
    assert codes(check(*json_of, "--ignore", "DT2,DT4", "a.py")) == ["DT301"]


def test_comments_silence(check):
    done = check("a.py", a="clock  # detrain: ignore[DT301]\n")
    assert done.exit_code == 0
    done = check("a.py", a="clock  # detrain: ignore[DT999]\n")
    assert "a.py:1:26: DT902" in done.stdout
    assert "a.py:1:1: DT301" in done.stdout


def test_unknown_codes_in_options_are_said(check):
    done = check("--select", "DT3,DT777", "a.py", a="x\n")
    assert done.exit_code == 1
    assert done.stdout.startswith("DT902 an unknown code in a comment or an option: there is no ")
    assert "'DT777' (--select)" in done.stdout


def test_an_error_in_one_file_does_not_hide_the_others(check):
    done = check("a.py", "b.py", "c.py", a="crash\n", b="clock\n", c="x\n")
    assert done.exit_code == 1
    assert "a.py: DT904 note: the analysis gave up on a file: RuntimeError: it is too hard\n" in (
        done.stdout
    )
    assert "b.py:1:1: DT301" in done.stdout
    done = check("a.py", "c.py")
    assert done.exit_code == 0


def test_a_folder_means_its_programs(check, tmp_path):
    done = check(".", a="import b\nclock\n", b="clock\n", c="clock\n")
    assert [line.split(":")[0] for line in done.stdout.split("\n") if "DT301" in line] == [
        "a.py",
        "c.py",
    ]
    assert check().stdout == done.stdout


def test_an_empty_folder(check):
    done = check(".")
    assert (done.exit_code, done.stdout) == (0, "Nothing to check: no program was found\n")


def test_a_path_that_is_not_there(check):
    done = check("nowhere.py")
    assert isinstance(done.exception, UsageError)
    assert "nowhere.py" in str(done.exception)


def test_a_usage_error_ends_with_two(tmp_path):
    command = [sys.executable, "-m", "detrain", "check", "nowhere.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "detrain: there is no file or folder 'nowhere.py'\n"


def test_settings_of_the_project(check, tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        "[tool.detrain]\nignore = ['DT2']\nexclude = ['c.py']\n"
        "per-file-ignores = {'b.py' = ['DT3']}\n"
    )
    files = {"a": "clock\nrace\n", "b": "clock\n", "c": "clock\n"}
    done = check("--format", "json", ".", **files)
    assert [(each["file"], each["code"]) for each in json.loads(done.stdout)["diagnostics"]] == [
        ("a.py", "DT301")
    ]
    assert codes(check("--format", "json", "--ignore", "DT3", ".")) == ["DT203"]
    assert codes(check("--format", "json", "c.py")) == ["DT301"]


def test_unknown_codes_in_settings_are_shown_with_their_line(check, tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.detrain]\nignore = ['DT77']\n")
    done = check("a.py", a="x\n")
    assert "pyproject.toml:2:12: DT902" in done.stdout
    assert "2 | ignore = ['DT77']\n  |            ^^^^\n" in done.stdout


def test_bad_settings_are_a_usage_error(check, tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.detrain]\nselect = 3\n")
    done = check("a.py", a="x\n")
    assert isinstance(done.exception, UsageError)
    assert "pyproject.toml: tool.detrain.select: " in str(done.exception)


@pytest.mark.parametrize("kind", ["json", "sarif", "github", "text"])
def test_formats_on_the_screen_and_in_a_file(check, tmp_path, kind):
    shown = check("--format", kind, "a.py", a="clock\n")
    assert shown.exit_code == 1
    written = check("--format", kind, "--output", "report", "a.py")
    assert (written.exit_code, written.stdout) == (1, "")
    assert written.stderr == "Found 1 warning in 1 file\n"
    assert (tmp_path / "report").read_text() == shown.stdout


def test_a_terminal_gets_colours_and_whole_words(check, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "60"}.items():
        monkeypatch.setenv(name, value)
    coloured = check("a.py", a="clock\n").stdout
    assert "\x1b[1;33mDT301\x1b[0m" in coloured
    plain = re.sub("\x1b\\[[0-9;]*m", "", coloured)
    assert max(map(len, plain.split("\n"))) <= 60
    assert plain.split("\n")[:2] == [
        "a.py:1:1: DT301 the clock reaches training state: the word ",
        "is clock",
    ]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "33m" not in check("a.py").stdout


def test_a_file_that_can_not_be_written(check):
    done = check("--output", "nowhere/report", "a.py", a="x\n")
    assert isinstance(done.exception, UsageError)
    assert "'nowhere/report' can't be written: No such file or directory" in str(done.exception)


def test_one_file_named_twice_is_checked_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "/x:/y")
    (tmp_path / "sub").mkdir()
    file = tmp_path / "a.py"
    file.write_text("clock\n")
    asked = []

    def asking(script, search):
        asked.append((script, search))
        return analyse(script, search)

    paths = [file, file.relative_to(tmp_path), tmp_path / "sub" / ".." / "a.py", tmp_path]
    found = check_paths(paths, (), (), asking)
    assert asked == [(file, ("/x", "/y"))]
    assert len(found.diagnostics) == 1
