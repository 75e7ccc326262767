"""The formats in which diagnostics are shown."""

from __future__ import annotations

from typing import Literal, get_args

from detrain.report.findings import Findings
from detrain.report.machine import as_github, as_json
from detrain.report.sarif import as_sarif
from detrain.report.text import text

__all__ = ["FORMATS", "Format", "render"]

Format = Literal["text", "json", "sarif", "github"]

FORMATS: tuple[Format, ...] = get_args(Format)


def render(findings: Findings, kind: Format, version: str) -> str:
    """Findings as plain text without colours; `version` is DETrain's."""
    if kind == "json":
        return as_json(findings)
    if kind == "sarif":
        return as_sarif(findings, version)
    return as_github(findings) if kind == "github" else text(findings).plain
