"""What a project says about its checks, and which of its files are programs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from detrain.analysis.settings import Settings, read_settings
from detrain.errors import UsageError
from detrain.instrument.scripts import find_scripts


def settings(folder, text):
    (folder / "pyproject.toml").write_text(text)
    return read_settings(folder)


def test_nothing_is_said(tmp_path):
    assert read_settings(tmp_path) == Settings()
    assert settings(tmp_path, "[project]\nname = 'x'\n") == Settings()
    assert settings(tmp_path, "tool = 3\n") == Settings()


def test_all_that_can_be_said(tmp_path):
    found = settings(
        tmp_path,
        """
        [tool.detrain]
        select = ["DT1", "DT3"]
        ignore = ["DT102"]
        exclude = ["third_party", "*_old.py"]
        per-file-ignores = { "tests/*" = ["DT101"] }
        """,
    )
    assert (found.select, found.ignore) == (("DT1", "DT3"), ("DT102",))
    assert found.by_file == (("tests/*", ("DT101",)),)
    assert found.root == str(tmp_path)
    assert found.unknown == ()
    assert found.excludes(tmp_path / "third_party" / "deep" / "a.py")
    assert found.excludes(tmp_path / "sub" / "train_old.py")
    assert not found.excludes(tmp_path / "train.py")


def test_the_nearest_file_that_has_the_table_counts(tmp_path):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    settings(tmp_path, "[tool.detrain]\nselect = ['DT1']\n")
    (inner / "pyproject.toml").write_text("[tool.other]\n")
    assert read_settings(inner).select == ("DT1",)
    (inner.parent / "pyproject.toml").write_text("[tool.detrain]\n")
    assert read_settings(inner).file == str(inner.parent / "pyproject.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.detrain]\nselct = []\n", "tool.detrain: object contains unknown field `selct`"),
        ("[tool.detrain]\nselect = 'DT1'\n", "tool.detrain.select: expected `array`, got `str`"),
        ("[tool.detrain]\nignore = [3]\n", "tool.detrain.ignore[0]: expected `str`, got `int`"),
        ("[tool]\ndetrain = 3\n", "tool.detrain: expected `object`, got `int`"),
        ("[tool.detrain\n", "can't be read: "),
    ],
)
def test_what_can_not_be_used_is_said_with_file_and_key(tmp_path, text, message):
    with pytest.raises(UsageError, match=re.escape(message)) as caught:
        settings(tmp_path, text)
    assert str(tmp_path / "pyproject.toml") in str(caught.value)


def test_unknown_codes_are_reported_where_they_stand(tmp_path):
    text = "[tool.detrain]\nselect = ['DT1', \"DT8\"]\nper-file-ignores = {'é' = ['Q']}\n"
    found = settings(tmp_path, text).unknown
    assert [each.message for each in found] == ["there is no 'DT8'", "there is no 'Q'"]
    spans = [each.span for each in found]
    lines = text.encode().split(b"\n")
    written = [lines[span.line - 1][span.column : span.end_column] for span in spans]
    assert written == [b"DT8", b"Q"]
    assert spans[0].file == str(tmp_path / "pyproject.toml")


def scripts(folder, files, excluded=lambda path: False):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return [str(each.relative_to(folder)) for each in find_scripts(folder, excluded)]


MAIN = "if __name__ == '__main__':\n    main()\n"


def test_a_file_that_another_imports_is_no_program(tmp_path):
    files = {
        "train.py": "import model\nfrom lib import data\nfrom lib.deep import far\n",
        "model.py": "x = 1\n",
        "lib/__init__.py": "",
        "lib/data.py": "from . import near\n",
        "lib/near.py": "",
        "lib/deep/far.py": "from ..near import x\n",
    }
    assert scripts(tmp_path, files) == ["train.py"]


def test_a_file_that_is_run_is_one_even_if_it_is_imported(tmp_path):
    files = {
        "eval.py": "from train import Model\nfrom pretrain import x\nfrom lib import y\n",
        "train.py": MAIN,
        "pretrain.py": "with x:\n    for b in data:\n        loss.backward()\n",
        "lib.py": "for name in names:\n    table[name] = 1\n",
    }
    assert scripts(tmp_path, files) == ["eval.py", "pretrain.py", "train.py"]


def test_a_file_that_imports_itself_is_a_program(tmp_path):
    assert scripts(tmp_path, {"train.py": "import train\n"}) == ["train.py"]


def test_a_program_below_that_imports_from_beside_itself(tmp_path):
    files = {
        "jobs/train.py": "import model\nimport shared.x\n",
        "jobs/model.py": "",
        "shared/x.py": "",
    }
    assert scripts(tmp_path, files) == ["jobs/train.py"]


def test_what_can_not_be_parsed_is_not_left_out(tmp_path):
    files = {"a.py": "def (\n", "b.py": "import a\n", "c.py": "\x00"}
    assert scripts(tmp_path, files) == ["a.py", "b.py", "c.py"]


def test_what_is_not_searched(tmp_path):
    files = {
        "train.py": "",
        "notes.txt": "",
        ".hidden/a.py": "",
        "__pycache__/a.py": "",
        "env/pyvenv.cfg": "",
        "env/lib/a.py": "",
        "third/a.py": "",
        "old.py": "",
    }
    names = ("third", "old.py")
    assert scripts(tmp_path, files, lambda path: path.name in names) == ["train.py"]


def test_packages_alone_are_no_programs(tmp_path):
    assert scripts(tmp_path, {"lib/__init__.py": "x = 1\n"}) == []
    assert scripts(tmp_path, {"lib/__main__.py": MAIN}) == ["lib/__main__.py"]
    assert find_scripts(Path(tmp_path / "nowhere"), lambda path: False) == []
