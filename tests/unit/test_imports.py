"""Importing DETrain imports no framework; and the check that says so can fail."""

from __future__ import annotations

import subprocess
import sys

FRAMEWORKS = ("torch", "numpy", "tensorflow", "jax", "keras")


def imported_by(*modules):
    code = (
        f"import {', '.join(modules)}, sys; print(*(m for m in {FRAMEWORKS} if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_importing_detrain_imports_no_framework():
    assert imported_by("detrain", "detrain.cli", "detrain.testing", "detrain.__main__") == []


def test_the_check_above_can_fail():
    assert "numpy" in imported_by("detrain", "detrain.frameworks.numpy")


def test_exported_names_are_frozen():
    import detrain

    assert sorted(detrain.__all__) == [
        "DamagedCheckpoint", "DetrainError", "Key", "Keyed", "Loop", "NewerFormat",
        "ProgramChanged", "ResumeMismatch", "Run", "RunLocked", "UncapturableState",
        "UnknownRun", "UsageError",
        "__version__", "key", "keyed", "loop", "run",
    ]  # fmt: skip
    assert all(hasattr(detrain, name) for name in detrain.__all__)
