"""Findings as SARIF 2.1.0, the exchange format of static analysis.

All codes are listed as rules, so that a result's rule is found at the same place in every report.
Advice is part of a result's text: SARIF's own fixes would have to be edits.
"""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from detrain.analysis.codes import CODES, Code
from detrain.analysis.diagnostics import Diagnostic
from detrain.analysis.program import Span
from detrain.report.findings import Findings

__all__ = ["as_sarif"]

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_INDEX = {code: index for index, code in enumerate(CODES)}


def as_sarif(findings: Findings, version: str) -> str:
    """A log of one run of DETrain of this version."""
    driver = {
        "name": "detrain",
        "semanticVersion": version,
        "rules": [_rule(each, findings) for each in CODES.values()],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(each, findings) for each in findings.diagnostics],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(code: Code, findings: Findings) -> dict[str, Any]:
    rule = {
        "id": code.code,
        "shortDescription": {"text": code.title},
        "fullDescription": {"text": code.why},
        "help": {"text": f"{code.why} {code.fix} See {findings.url(code)}."},
        "defaultConfiguration": {"level": code.severity, "enabled": not code.quiet},
    }
    # Only an address that stands for itself is allowed here.
    return {**rule, "helpUri": findings.url(code)} if findings.documentation else rule


def _result(diagnostic: Diagnostic, findings: Findings) -> dict[str, Any]:
    said = f"{diagnostic.message or diagnostic.about.title}. {diagnostic.advice}"
    result: dict[str, Any] = {
        "ruleId": diagnostic.code,
        "ruleIndex": _INDEX[diagnostic.code],
        "level": diagnostic.severity,
        "message": {"text": said},
        "locations": [_location(diagnostic.span, findings)] if diagnostic.span.file else [],
    }
    related = [
        {"id": number, **_location(span, findings), "message": {"text": text}}
        for number, (span, text) in enumerate(diagnostic.notes, 1)
        if span.file
    ]
    return {**result, "relatedLocations": related} if related else result


def _location(span: Span, findings: Findings) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(findings.path(span.file))}}
    position = findings.position(span)
    if position is not None:
        physical["region"] = {
            "startLine": position.line,
            "startColumn": position.column,
            "endLine": position.end_line,
            "endColumn": position.end_column,
        }
    return {"physicalLocation": physical}


def _uri(path: str) -> str:
    """Relative to where the check ran; the whole address of what lies elsewhere."""
    return PurePath(path).as_uri() if PurePath(path).is_absolute() else quote(path)
