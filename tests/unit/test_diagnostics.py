"""Diagnostics as values, their codes, and the comments that speak to DETrain."""

from __future__ import annotations

import pytest

from detrain.analysis.codes import CODES, SEVERITIES, is_known, longest_match
from detrain.analysis.diagnostics import Diagnostic, loop_lines, suppressions
from detrain.analysis.program import Span
from detrain.analysis.select import Selection, in_order, shown, unknown_selectors


def found(line, code="DT301"):
    return Diagnostic(code, "it is so", Span(line))


def hidden(source, code="DT301"):
    silenced = suppressions(source)
    lines = range(1, source.count("\n") + 2)
    return [line for line in lines if silenced.hide(found(line, code))]


def test_codes_say_what_they_must():
    assert list(CODES) == sorted(CODES)
    for code, about in CODES.items():
        assert about.code == code
        assert about.severity in SEVERITIES
        assert not about.title.endswith(".")
        assert about.title[0].islower()
        assert about.why.endswith(".")
        assert about.fix.endswith(".")
        assert about.page == f"docs/diagnostics/{code}.md"


def test_a_diagnostic_has_the_advice_of_its_code_unless_it_has_its_own():
    plain = found(3)
    assert plain.severity == "warning"
    assert plain.advice == CODES["DT301"].fix
    assert Diagnostic("DT301", "it is so", Span(3), fix="Do this.").advice == "Do this."


@pytest.mark.parametrize("selector", ["DT", "DT3", "DT30", "DT301"])
def test_beginnings_of_codes_are_known(selector):
    assert is_known(selector)


@pytest.mark.parametrize("selector", ["", "D", "DT8", "DT399", "DT3011", "E501", "DT3*", " DT3"])
def test_other_text_is_no_code(selector):
    assert not is_known(selector)


def test_the_closest_selector_counts():
    assert longest_match("DT301", ("DT", "DT30", "DT4")) == 4
    assert longest_match("DT301", ("DT4",)) == 0
    assert longest_match("DT301", ()) == 0


def test_a_comment_silences_its_line():
    source = "a = now()\nb = now()  # detrain: ignore\nc = now()\n"
    assert hidden(source) == [2]
    assert hidden(source, "DT101") == [2]


def test_a_comment_with_codes_silences_these():
    source = "a = now()  # detrain: ignore[DT101, DT3]  as we want it\n"
    assert hidden(source, "DT301") == [1]
    assert hidden(source, "DT101") == [1]
    assert hidden(source, "DT102") == []


@pytest.mark.parametrize(
    "comment",
    ["#detrain:ignore", "# noqa: E501 # detrain: ignore", "# detrain: ignore [dt301]",
     "# detrain: ignore[DT301", "# detrain: ignore, the clock is meant"],
)  # fmt: skip
def test_ways_to_write_it(comment):
    assert hidden(f"a = now()  {comment}\n") == [1]


@pytest.mark.parametrize(
    "comment", ["# detrain ignore", "# detrain: ignored", "# detrain: ignore-file", "# ignore"]
)
def test_what_is_not_it(comment):
    assert hidden(f"a = now()  {comment}\n") == []


def test_text_is_no_comment():
    assert hidden('a = "# detrain: ignore"\n') == []


def test_a_statement_of_several_lines():
    first = "f(  # detrain: ignore\n  a,\n  b,\n)\ng()\n"
    last = "f(\n  a,\n  b,\n)  # detrain: ignore\ng()\n"
    within = "f(\n  a,  # detrain: ignore\n  b,\n)\ng()\n"
    continued = "x = a + \\\n  b  # detrain: ignore\ng()\n"
    text = 'f("""\none\n""")  # detrain: ignore\ng()\n'
    assert hidden(first) == hidden(last) == [1, 2, 3, 4]
    assert hidden(within) == [2]
    assert hidden(continued) == [1, 2]
    assert hidden(text) == [1, 2, 3]


def test_a_loop_is_silenced_by_its_header_only():
    assert hidden("for x in y:  # detrain: ignore\n    f(x)\n") == [1]
    assert hidden("for x in y:\n    f(x)  # detrain: ignore\n") == [2]


def test_a_comment_alone_on_a_line_speaks_of_what_follows():
    assert hidden("a()\n# detrain: ignore\n\n# why\nb(\n  1)\nc()\n") == [5, 6]
    assert hidden("if x:\n    # detrain: ignore\n    b()\nc()\n") == [3]


def test_a_comment_at_the_end_of_a_file_speaks_of_nothing():
    assert hidden("a()\n# detrain: ignore") == [2]
    assert hidden("# detrain: ignore") == [1]
    assert hidden("") == []


def test_a_file_that_can_not_be_parsed_is_not_silenced():
    assert hidden("x = = 1  # detrain: ignore\n", "DT901") == []
    assert hidden("x = = 1  # detrain: ignore\n", "DT301") == [1]


def test_two_comments_add_up():
    source = "# detrain: ignore[DT101]\na()  # detrain: ignore[DT301]\n"
    assert hidden(source, "DT101") == hidden(source, "DT301") == [2]


@pytest.mark.parametrize("rest", ["f(\n", "  x = 1\n y = 2\n", '"""', "\x00", "x = $\n"])
def test_a_broken_file_is_read_as_far_as_it_can_be(rest):
    assert hidden("a = now()  # detrain: ignore\n" + rest)[0] == 1


def test_unknown_codes_are_reported_where_they_stand():
    source = "é = now()  # détail # detrain: ignore[DT301, DT999,  Q1]\n"
    silenced = suppressions(source, "train.py")
    assert silenced.hide(found(1))
    assert [each.code for each in silenced.unknown] == ["DT902", "DT902"]
    assert [each.message for each in silenced.unknown] == [
        "there is no 'DT999'",
        "there is no 'Q1'",
    ]
    line = source.encode()
    spans = [each.span for each in silenced.unknown]
    assert [line[span.column : span.end_column] for span in spans] == [b"DT999", b"Q1"]
    assert {span.file for span in spans} == {"train.py"}


def test_empty_brackets_silence_nothing():
    silenced = suppressions("a = now()  # detrain: ignore[]\n")
    assert not silenced.hide(found(1))
    assert "missing" in silenced.unknown[0].message


def test_marked_loops():
    source = (
        "while going():  # detrain: loop\n    step()\n"
        "# detrain: loop\nfor x in (\n  a, b\n):\n    step()\n"
        "for x in y:  # detrain: loops\n    step()\n"
    )
    assert loop_lines(source) == {1, 4, 5, 6}


def test_what_is_shown_by_itself():
    plain = Selection()
    assert plain.includes("DT301")
    assert plain.includes("DT904")
    assert not plain.includes("DT903")


def test_selecting_leaves_the_rest_out_but_not_what_the_check_says_of_itself():
    chosen = Selection(select=("DT3", "DT903"))
    assert chosen.includes("DT301")
    assert chosen.includes("DT903")
    assert not chosen.includes("DT101")
    assert chosen.includes("DT901")
    assert not Selection(select=("DT3",), ignore=("DT901",)).includes("DT901")


def test_the_closer_selector_wins_and_ignoring_wins_when_equal():
    assert not Selection(ignore=("DT3",)).includes("DT301")
    assert Selection(select=("DT301",), ignore=("DT3",)).includes("DT301")
    assert not Selection(select=("DT3",), ignore=("DT301",)).includes("DT301")
    assert not Selection(select=("DT3",), ignore=("DT3",)).includes("DT301")


@pytest.mark.parametrize("pattern", ["tests/*", "tests", "tests/", "test_*.py", "*/test_a.py"])
def test_codes_are_ignored_by_file(pattern):
    chosen = Selection(by_file=((pattern, ("DT3",)),), root="/code")
    assert not chosen.includes("DT301", "/code/tests/test_a.py")
    assert chosen.includes("DT101", "/code/tests/test_a.py")
    assert chosen.includes("DT301", "/code/train.py")


def test_diagnostics_are_shown_in_order_and_once():
    both = [
        Diagnostic("DT301", "b", Span(9, file="b.py")),
        Diagnostic("DT301", "a", Span(10, file="a.py")),
        Diagnostic("DT101", "a", Span(9, file="a.py")),
    ]
    expected = (both[2], both[1], both[0])
    assert shown([*both, *both], {"a.py": "", "b.py": ""}, Selection()) == expected
    assert in_order(reversed(both)) == expected


def test_what_a_comment_silences_is_not_shown_and_its_unknown_codes_are():
    source = "a = now()  # detrain: ignore[DT301, DT999]\n"
    both = [
        Diagnostic("DT301", "a", Span(1, file="a.py")),
        Diagnostic("DT105", "a", Span(1, file="a.py")),
    ]
    left = shown(both, {"a.py": source}, Selection())
    assert [each.code for each in left] == ["DT105", "DT902"]
    assert [each.code for each in shown(both, {"a.py": source}, Selection(ignore=("DT9",)))] == [
        "DT105"
    ]


def test_a_diagnostic_without_source_is_shown():
    unread = Diagnostic("DT901", "it has no text", Span(0, file="a.py"))
    assert shown([unread], {}, Selection()) == (unread,)


def test_unknown_selectors():
    assert unknown_selectors(("DT3", "X", "DT999", "X")) == ("X", "DT999")
