"""Imported by a warm process: `detrain run` takes the plan that lies beside the script."""

from __future__ import annotations

import importlib

from detrain.plan import decode_plan

module = importlib.import_module("detrain.cli.run")


def plan_of(project):
    path = project.script.with_suffix(".plan")
    return decode_plan(path.read_bytes()) if path.exists() else None


module.plan_of = plan_of
