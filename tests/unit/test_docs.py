"""The documentation and the program say the same."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from detrain.analysis.codes import CODES
from detrain.analysis.diagnostics import Diagnostic
from detrain.analysis.program import Span
from detrain.analysis.settings import read_settings
from detrain.report.diagnostics import render
from detrain.report.findings import Findings
from detrain.report.index import code_index

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted((DOCS / "diagnostics").glob("DT*.md"))
CHECK = (DOCS / "check.md").read_text()


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def mentioned(folder, pattern):
    return {
        code: path
        for path in sorted(folder.rglob(pattern))
        for code in re.findall(r"\bDT\d{3}\b", path.read_text())
    }


def test_every_code_has_a_page_and_every_page_a_code():
    assert [page.stem for page in PAGES] == list(CODES)
    assert all((ROOT / about.page).is_file() for about in CODES.values())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_says_what_the_code_says(page):
    about, text = CODES[page.stem], page.read_text()
    first, _, severity, *_ = text.split("\n")
    assert first == f"# {about.code}: {about.title}"
    assert severity == f"*{about.severity}*"
    assert about.fix in " ".join(text.split())
    parts = ["Example", "Fix", "Under `detrain run`", "To silence it"]
    assert re.findall("^## (.*)$", text, re.MULTILINE) == parts
    assert max(map(len, text.split("\n"))) <= 100


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_are_python(page):
    bad, good = blocks(page.read_text(), "python")
    ast.parse(good)
    if page.stem == "DT901":
        with pytest.raises(SyntaxError):
            ast.parse(bad)
    else:
        ast.parse(bad)


def test_codes_that_are_mentioned_exist():
    known = {"DT999", "DT3001"}  # examples of codes that there are not
    in_source = mentioned(ROOT / "src", "*.py")
    in_docs = mentioned(DOCS, "*.md")
    assert {"DT301", "DT902"} <= in_source.keys()
    assert {code: str(path) for code, path in in_source.items() if code not in CODES} == {}
    unknown = {code: str(path) for code, path in in_docs.items() if code not in CODES}
    assert unknown.keys() <= known


def test_the_index_is_that_of_the_codes():
    # python -m detrain.report.index > docs/diagnostics/README.md
    assert (DOCS / "diagnostics" / "README.md").read_text() == code_index()


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def example():
    source = (
        "import time\n\nstart = time.time()\nfor step in range(1000):\n"
        "    rate = 0.1 / (1 + time.time() - start)\n"
    )
    found = Diagnostic(
        "DT301",
        "`rate` is computed from the time",
        Span(5, 4, 5, 8, "train.py"),
        notes=((Span(3, 8, 3, 19, "train.py"), "the clock is read here"),),
    )
    return Findings((found,), {"train.py": source}, 1)


def test_the_examples_of_output_are_what_is_shown():
    (shown,) = blocks(CHECK, "text")
    assert shown == "$ detrain check train.py\n" + render(example(), "text", "1.0.0")
    assert blocks(CHECK, "json") == [render(example(), "json", "1.0.0")]


def test_the_example_of_settings_can_be_used(tmp_path):
    (settings,) = blocks(CHECK, "toml")
    (tmp_path / "pyproject.toml").write_text(settings)
    read = read_settings(tmp_path)
    assert (read.ignore, read.unknown) == (("DT102",), ())
