"""The index of all codes: `python -m detrain.report.index > docs/diagnostics/README.md`."""

from __future__ import annotations

from itertools import groupby

from detrain.analysis.codes import CODES

__all__ = ["code_index"]

_GROUPS = {
    "DT1": "Random numbers",
    "DT2": "Order",
    "DT3": "The world",
    "DT4": "Parallel changes and operations",
    "DT5": "State",
    "DT9": "The check itself",
}

_HEAD = """\
# Diagnostics

What [`detrain check`](../check.md) may say. A code never changes its meaning. Errors and warnings
make the exit code 1, notes don't.
"""


def code_index() -> str:
    """The page, in Markdown."""
    parts = [_HEAD]
    for group, codes in groupby(CODES.values(), key=lambda each: each.code[:3]):
        rows = "".join(
            f"| [{each.code}]({each.code}.md) | {each.severity} | {each.title} |\n"
            for each in codes
        )
        parts.append(
            f"## {_GROUPS[group]}\n\n| code | severity | what |\n| --- | --- | --- |\n{rows}"
        )
    return "\n".join(parts)


if __name__ == "__main__":
    print(code_index(), end="")
