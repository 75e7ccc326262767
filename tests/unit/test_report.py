"""Findings as they are shown: text, JSON, SARIF, annotations."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest
from rich.cells import cell_len

from detrain.analysis.codes import CODES
from detrain.analysis.diagnostics import Diagnostic
from detrain.analysis.program import Span
from detrain.report.diagnostics import FORMATS, render
from detrain.report.excerpt import cut, visible
from detrain.report.findings import Findings, Position
from detrain.report.text import text

TRAIN = """\
import time

start = time.time()
for step in range(1000):
    rate = 0.1 / (1 + time.time() - start)
    for future in as_completed(
        futures
    ):
        total += future.result()
"""
DATA = "def files(folder):\n    return os.listdir(folder)\n"
ROOT = Path("/code")
SOURCES = {"/code/train.py": TRAIN, "/code/lib/data.py": DATA}


def at(needle, line, file="train.py", source=TRAIN):
    """The span of a piece of a line."""
    raw = source.split("\n")[line - 1].encode()
    begin = raw.index(needle.encode())
    return Span(line, begin, line, begin + len(needle.encode()), f"/code/{file}")


CLOCK = Diagnostic(
    "DT301",
    "`rate` is computed from the time",
    at("rate", 5),
    notes=((at("time.time()", 3), "the clock is read here"),),
)
ORDER = Diagnostic("DT203", "`total` adds up results", Span(6, 18, 8, 5, "/code/train.py"))
LISTING = Diagnostic(
    "DT202",
    "samples are taken as they are listed",
    at("range(1000)", 4),
    fix="Sort them.",
    notes=((at("os.listdir(folder)", 2, "lib/data.py", DATA), "the listing"),),
)
NOTE = Diagnostic("DT402", "", at("+", 5))
BROKEN = Diagnostic("DT901", "it is no UTF-8", Span(0, file="/code/bad file.py"))
OPTION = Diagnostic("DT902", "there is no 'X' (--select)", Span(0))


def findings(*diagnostics, sources=SOURCES, **more):
    return Findings(diagnostics, sources, len(sources), ROOT, **more)


def plain(*diagnostics, width=100, sources=SOURCES):
    return text(findings(*diagnostics, sources=sources), width).plain


def of_line(line, needle, *, width=100, notes=()):
    """How a diagnostic about a piece of a single line is shown: the line, and what is below it."""
    span = at(needle, 1, source=line)
    shown = plain(Diagnostic("DT301", "m", span), width=width, sources={"/code/train.py": line})
    rows = shown.split("\n")
    assert rows[1] == "  |"
    assert rows[2].startswith("1 | ")
    assert rows[3].startswith("  | ")
    return rows[2][4:], rows[3][4:]


def test_text_shows_where_what_and_what_to_do():
    assert plain(CLOCK) == textwrap.dedent("""\
        train.py:5:5: DT301 the clock reaches training state: `rate` is computed from the time
          |
        3 | start = time.time()
          |         ----------- the clock is read here
        …
        5 |     rate = 0.1 / (1 + time.time() - start)
          |     ^^^^
          = help: Count steps or epochs instead of seconds, or keep the time out of what is trained.

        Found 1 warning in 1 file
        """)


def test_text_of_several_lines_and_files():
    assert plain(LISTING, ORDER, NOTE) == textwrap.dedent("""\
        train.py:4:13: DT202 the order of a directory listing reaches training state: samples are taken as they are listed
          |
        4 | for step in range(1000):
          |             ^^^^^^^^^^^
         --> lib/data.py:2:12
          |
        2 |     return os.listdir(folder)
          |            ------------------ the listing
          = help: Sort them.

        train.py:6:19: DT203 error: results are taken in the order in which parallel work is done: `total` adds up results
          |
        6 |     for future in as_completed(
          |                   ^^^^^^^^^^^^^ to line 8
          = help: Take the results in the order of the work: `executor.map`, `pool.imap`, or a list of
                  futures, one after the other.

        train.py:5:21: DT402 note: an operation whose result may differ from call to call
          |
        5 |     rate = 0.1 / (1 + time.time() - start)
          |                     ^
          = help: Turn them on: `torch.use_deterministic_algorithms(True)`. `detrain run` does.

        Found 1 error, 1 warning and 1 note in 1 file
        """)  # noqa: E501


def test_marks_of_one_line_share_it():
    both = Diagnostic("DT301", "m", at("rate", 5), notes=((at("time.time()", 5), "asked"),))
    assert plain(both).split("\n")[1:5] == [
        "  |",
        "5 |     rate = 0.1 / (1 + time.time() - start)",
        "  |     ^^^^",
        "  |                       ----------- asked",
    ]


def test_adjacent_lines_have_no_gap_between_them():
    both = Diagnostic("DT301", "m", at("rate", 5), notes=((at("step", 4), "s"),))
    assert "…" not in plain(both)


def test_what_has_no_line_is_said_without_one():
    shown = plain(BROKEN, OPTION)
    assert shown.startswith("bad file.py: DT901 error: a file can't be parsed: it is no UTF-8\n")
    assert (
        "\nDT902 an unknown code in a comment or an option: there is no 'X' (--select)\n" in shown
    )
    assert "|" not in shown


def test_a_note_whose_file_is_not_known_is_kept():
    far = Diagnostic("DT301", "m", at("rate", 5), notes=((Span(7, 2, file="/x/y.py"), "from"),))
    assert "  = note: /x/y.py:7:3: from\n" in plain(far)


@pytest.mark.parametrize("span", [Span(99, 3, 99, 5, "/code/train.py"), Span(5, 3, file="/no.py")])
def test_a_place_that_is_not_there_is_no_error(span):
    for kind in FORMATS:
        assert render(findings(Diagnostic("DT301", "m", span)), kind, "1.0.0")


@pytest.mark.parametrize("column", [0, 7, 400])
def test_a_column_beyond_the_line(column):
    there = Diagnostic("DT301", "m", Span(1, column, file="/code/train.py"))
    assert plain(there, sources={"/code/train.py": "x = 1\n"}).count("^") == 1


def test_an_empty_line_can_be_marked():
    there = Diagnostic("DT301", "m", Span(2, 0, 2, 0, "/code/train.py"))
    assert "2 |\n  | ^\n" in plain(there)


def test_summaries():
    assert plain() == "All clear: nothing found in 2 files\n"
    assert plain(sources={}) == "Nothing to check: no program was found\n"
    assert plain(sources={"a": ""}) == "All clear: nothing found in 1 file\n"
    assert plain(ORDER, CLOCK, CLOCK).endswith("Found 1 error and 2 warnings in 1 file\n")
    assert plain(CLOCK, BROKEN).endswith("Found 1 error and 1 warning in 2 files\n")


@pytest.mark.parametrize(
    ("line", "needle"),
    [
        ("x = time.time()", "time.time()"),
        ("\tx =\ttime.time()", "time.time()"),
        ("ab\tx = time.time()", "time.time()"),
        ("鳥 = '鳥の声', time.time()", "time.time()"),
        ("名前 = 時()", "時()"),
        ("e\u0301te\u0301 = time.time()", "time.time()"),
        ("x = '🙂', time.time()", "time.time()"),
        ("x = '\x1b[31m', time.time()", "time.time()"),
        ("x = '\u202e', time.time()", "time.time()"),
        ("x = '\x0c', time.time()", "time.time()"),
    ],
)
def test_carets_stand_under_what_is_meant(line, needle):
    shown, carets = of_line(line, needle)
    before = shown[: shown.index(needle)]
    assert cell_len(carets) - carets.count("^") == cell_len(before)
    assert carets.count("^") == cell_len(needle)
    assert "\t" not in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize("width", [40, 60, 100])
@pytest.mark.parametrize("before", [0, 1, 30, 300])
@pytest.mark.parametrize("after", [0, 1, 30, 300])
@pytest.mark.parametrize("letter", ["a", "鳥"])
def test_long_lines_are_cut_around_what_is_meant(width, before, after, letter):
    line = letter * before + "<now()>" + letter * after
    shown, carets = of_line(line, "<now()>", width=width)
    assert cell_len(shown) <= width - 4
    assert shown.strip("…" + letter) == "<now()>"
    assert cell_len(shown[: shown.index("<")]) == carets.index("^")
    assert carets.count("^") == 7
    whole = cell_len(line) <= width - 4
    assert ("…" in shown) is not whole


def test_what_is_longer_than_the_line_is_cut_too():
    shown, carets = of_line("f(" + "x" * 500 + ")", "x" * 500, width=60)
    assert cell_len(shown) <= 56
    assert carets.strip() == "^" * len(carets.strip())
    assert len(carets) <= 56


def test_labels_that_have_no_room_stand_below():
    long = "because " * 30
    far = Diagnostic("DT301", "m", at("rate", 5), notes=((at("start", 5), long.strip()),))
    rows = plain(far, width=60).split("\n")
    assert max(len(row) for row in rows[1:]) <= 60
    assert " ".join(row[4:] for row in rows).count("because") == 30


def test_a_narrow_terminal_is_no_error():
    assert "^" in plain(CLOCK, ORDER, LISTING, width=1)


def test_text_can_not_steer_the_terminal():
    evil = Diagnostic("DT301", "\x1b[2J`x\r`", Span(1, 0, file="/code/\x1b[31m.py"), fix="\x07 y")
    shown = plain(evil)
    assert not set("\x1b\r\x07") & set(shown)
    assert visible("naïve 鳥 ok") == "naïve 鳥 ok"


def test_cut_leaves_short_lines_alone():
    assert cut("x = 1", 0, 1, 80) == cut("x = 1", 0, 1, 5)
    assert cut("x = 1", 0, 1, 5).whole


def test_positions_count_characters_from_one():
    line = "é = '鳥'; now()\n"
    there = findings(sources={"/code/train.py": line})
    span = at("now()", 1, source=line)
    assert there.position(span) == Position(1, 10, 1, 15)
    assert there.position(Span(1, 0, file="/code/train.py")) == Position(1, 1, 1, 2)
    assert there.position(Span(0)) is None


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_end_as_python_says(end):
    there = findings(sources={"a.py": f"x\x0c = 1{end}y{end}"})
    assert there.line("a.py", 1) == "x\x0c = 1"
    assert there.line("a.py", 2) == "y"
    assert there.line("a.py", 9) is None


def test_json():
    document = json.loads(render(findings(CLOCK, BROKEN, OPTION), "json", "1.0.0"))
    assert document["version"] == 1
    assert document["checked"] == 2
    assert document["counts"] == {"error": 1, "warning": 2, "note": 0}
    clock, broken, option = document["diagnostics"]
    assert clock == {
        "file": "train.py", "line": 5, "column": 5, "end_line": 5, "end_column": 9,
        "code": "DT301", "severity": "warning", "title": "the clock reaches training state",
        "message": "`rate` is computed from the time", "fix": CODES["DT301"].fix,
        "url": "docs/diagnostics/DT301.md",
        "notes": [{"file": "train.py", "line": 3, "column": 9, "end_line": 3, "end_column": 20,
                   "text": "the clock is read here"}],
    }  # fmt: skip
    assert (broken["file"], broken["line"], broken["end_column"]) == ("bad file.py", None, None)
    assert option["file"] is None
    assert set(clock) == set(broken) == set(option)


def test_an_address_of_the_documentation_is_used():
    there = findings(CLOCK, documentation="https://example.org/docs")
    document = json.loads(render(there, "json", "1.0.0"))
    expected = "https://example.org/docs/diagnostics/DT301.md"
    assert document["diagnostics"][0]["url"] == expected
    rules = json.loads(render(there, "sarif", "1.0.0"))["runs"][0]["tool"]["driver"]["rules"]
    assert all(rule["helpUri"].endswith(f"{rule['id']}.md") for rule in rules)


def sarif(*diagnostics):
    log = json.loads(render(findings(*diagnostics), "sarif", "1.2.3"))
    assert log["version"] == "2.1.0"
    assert log["$schema"].startswith("https://")
    (run,) = log["runs"]
    return run


def test_sarif_lists_every_code_as_a_rule():
    run = sarif()
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["semanticVersion"]) == ("detrain", "1.2.3")
    assert run["results"] == []
    assert [rule["id"] for rule in driver["rules"]] == list(CODES)
    for rule in driver["rules"]:
        assert rule["shortDescription"]["text"]
        assert rule["fullDescription"]["text"]
        assert rule["help"]["text"]
        assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note")
    # A relative address would not be valid.
    assert not any("helpUri" in rule for rule in driver["rules"])


def test_sarif_results_point_to_their_rules_and_places():
    run = sarif(CLOCK, ORDER, BROKEN, OPTION)
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    clock, order, broken, option = run["results"]
    assert clock["level"] == "warning"
    assert clock["message"]["text"].startswith("`rate` is computed from the time. Count steps")
    assert clock["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "train.py"},
                "region": {"startLine": 5, "startColumn": 5, "endLine": 5, "endColumn": 9},
            }
        }
    ]
    assert clock["relatedLocations"][0]["message"]["text"] == "the clock is read here"
    assert order["level"] == "error"
    assert order["locations"][0]["physicalLocation"]["region"]["endLine"] == 8
    assert "relatedLocations" not in order
    assert broken["locations"] == [
        {"physicalLocation": {"artifactLocation": {"uri": "bad%20file.py"}}}
    ]
    assert option["locations"] == []


def test_sarif_names_files_elsewhere_by_their_whole_address():
    run = sarif(Diagnostic("DT301", "m", Span(1, file="/else where/a.py")))
    physical = run["results"][0]["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"]["uri"] == "file:///else%20where/a.py"


def test_sarif_counts_as_it_says():
    assert sarif()["columnKind"] == "unicodeCodePoints"


def test_annotations():
    lines = render(findings(CLOCK, ORDER, NOTE, BROKEN, OPTION), "github", "1.0.0").splitlines()
    assert lines[0] == (
        "::warning title=DT301 the clock reaches training state,file=train.py,line=5,endLine=5,"
        "col=5,endColumn=9::`rate` is computed from the time. " + CODES["DT301"].fix
    )
    assert "col=" not in lines[1]
    assert lines[2].startswith("::notice ")
    assert lines[3].startswith("::error title=DT901 a file can't be parsed,file=bad file.py::")
    assert "file=" not in lines[4]


def test_annotations_are_escaped():
    evil = Diagnostic("DT301", "50%\n::error::x", Span(1, file="/code/a,b:c.py"))
    (line,) = render(findings(evil), "github", "1.0.0").splitlines()
    assert "file=a%2Cb%3Ac.py," in line
    assert "::50%25%0A::error::x. " in line


def test_the_same_findings_give_the_same_bytes():
    for kind in FORMATS:
        assert render(findings(CLOCK, ORDER), kind, "1") == render(
            findings(CLOCK, ORDER), kind, "1"
        )
