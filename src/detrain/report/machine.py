"""Findings for machines: JSON, and annotations of GitHub's workflows.

The JSON (docs/check.md has an example) only ever gains fields within a version.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from detrain.analysis.codes import SEVERITIES
from detrain.analysis.diagnostics import Diagnostic
from detrain.analysis.program import Span
from detrain.report.findings import Findings

__all__ = ["VERSION", "as_github", "as_json"]

VERSION = 1


def as_json(findings: Findings) -> str:
    """A document with a version, counts and all diagnostics."""
    counts = findings.counts()
    document = {
        "version": VERSION,
        "checked": findings.checked,
        "counts": {each: counts[each] for each in SEVERITIES},
        "diagnostics": [_entry(each, findings) for each in findings.diagnostics],
    }
    return json.dumps(document, indent=2) + "\n"


def _entry(diagnostic: Diagnostic, findings: Findings) -> dict[str, Any]:
    return {
        **_place(diagnostic.span, findings),
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "title": diagnostic.about.title,
        "message": diagnostic.message,
        "fix": diagnostic.advice,
        "url": findings.url(diagnostic.about),
        "notes": [{**_place(span, findings), "text": text} for span, text in diagnostic.notes],
    }


def _place(span: Span, findings: Findings) -> dict[str, Any]:
    """File and position; what is not known is null."""
    unknown = dict.fromkeys(("line", "column", "end_line", "end_column"))
    position = findings.position(span)
    return {
        "file": findings.path(span.file) or None,
        **(unknown if position is None else asdict(position)),
    }


def as_github(findings: Findings) -> str:
    """A workflow command for each diagnostic, which GitHub shows beside the line."""
    return "".join(_command(each, findings) + "\n" for each in findings.diagnostics)


def _command(diagnostic: Diagnostic, findings: Findings) -> str:
    level = {"error": "error", "warning": "warning", "note": "notice"}[diagnostic.severity]
    position = findings.position(diagnostic.span)
    fields = {"title": f"{diagnostic.code} {diagnostic.about.title}"}
    if diagnostic.span.file:
        fields["file"] = findings.path(diagnostic.span.file)
    if position is not None:
        fields |= {"line": str(position.line), "endLine": str(position.end_line)}
        # Columns of a place that spans several lines are refused.
        if position.line == position.end_line:
            fields |= {"col": str(position.column), "endColumn": str(position.end_column)}
    listed = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in fields.items())
    said = ". ".join(filter(None, (diagnostic.message, diagnostic.advice)))
    return f"::{level} {listed}::{_escaped(said)}"


def _escaped(text: str, further: str = "") -> str:
    """What would end a command, or a field of it, as the number of its character."""
    return "".join(f"%{ord(each):02X}" if each in "%\r\n" + further else each for each in text)
