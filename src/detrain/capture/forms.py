"""Which form an object has. What no form claims is refused: unknown state is never skipped."""

from __future__ import annotations

import argparse
import contextvars
import enum
import functools
import io
import logging
import random
import re
import struct
import threading
import types
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

from detrain.capture import values
from detrain.capture.arrays import ArrayForm, ComposedForm, FoundArray, GeneratorForm
from detrain.capture.containers import (
    DequeForm,
    DictForm,
    FrozenSetForm,
    ListForm,
    SetForm,
    TupleForm,
)
from detrain.capture.form import Form, type_name
from detrain.capture.held import HeldGenerator
from detrain.capture.hidden import hidden_base
from detrain.capture.iterators import ITERATORS, HeldForm, IteratorForm, PositionForm
from detrain.capture.objects import (
    NAMED,
    EnumForm,
    MethodForm,
    NamedForm,
    ObjectForm,
    OpaqueForm,
    PartialForm,
    StandingForm,
    StateDictForm,
    ValueForm,
)
from detrain.capture.outcomes import OUTCOMES, OutcomeForm, has_outcome
from detrain.errors import UncapturableState
from detrain.frameworks import find

if TYPE_CHECKING:
    from detrain.frameworks.base import Framework

__all__ = ["FORMS", "form_of", "is_standing"]

FORMS: dict[str, Form] = {
    form.name: form
    for form in (
        ArrayForm(),
        ComposedForm(),
        DequeForm(),
        DictForm(),
        EnumForm(),
        FrozenSetForm(),
        GeneratorForm(),
        ListForm(),
        MethodForm(),
        NamedForm(),
        ObjectForm(),
        OpaqueForm(),
        OutcomeForm(),
        PartialForm(),
        HeldForm(),
        IteratorForm(),
        PositionForm(),
        SetForm(),
        StandingForm(),
        StateDictForm(),
        TupleForm(),
        ValueForm(),
    )
}
"""By the name that a node carries."""

_BY_TYPE: dict[type, Form] = {
    list: FORMS["list"],
    dict: FORMS["dict"],
    tuple: FORMS["tuple"],
    set: FORMS["set"],
    frozenset: FORMS["frozenset"],
    types.FunctionType: FORMS["named"],
    types.BuiltinFunctionType: FORMS["named"],
    types.MethodType: FORMS["method"],
    HeldGenerator: FORMS["held"],
}

_BY_CLASS: tuple[tuple[Any, Form], ...] = (
    (enum.Enum, FORMS["enum"]),
    (functools.partial, FORMS["partial"]),
    (list, FORMS["list"]),
    (dict, FORMS["dict"]),
    (tuple, FORMS["tuple"]),
    (deque, FORMS["deque"]),
    (frozenset, FORMS["frozenset"]),
    (set, FORMS["set"]),
)

_STANDING: tuple[type, ...] = (
    types.ModuleType,
    weakref.ref,
    logging.Logger,
    logging.Handler,
    io.IOBase,
    type(threading.Lock()),
    type(threading.RLock()),
    threading.local,
    threading.Event,
    threading.Condition,
    re.Pattern,
    types.CodeType,
    types.FrameType,
    types.TracebackType,
    types.MappingProxyType,
    types.CellType,
    types.GenericAlias,
    types.UnionType,
    contextvars.ContextVar,
    random.SystemRandom,
    struct.Struct,
    functools._lru_cache_wrapper,
    argparse.ArgumentParser,
)

# Whole libraries whose objects show or report, or belong to the process.
_STANDING_MODULES = frozenset(
    {
        "tqdm", "logging", "tensorboard", "tensorboardX", "wandb", "matplotlib", "rich",
        "multiprocessing", "concurrent", "subprocess", "socket", "_csv", "csv", "typing",
        "importlib", "contextlib", "weakref", "_weakref", "_weakrefset", "ctypes", "_ctypes",
        "asyncio", "queue", "_queue", "_thread", "tempfile", "zipfile", "_io",
    }
)  # fmt: skip

# Libraries whose objects have fields, with what those fields don't show further down.
_OPAQUE = frozenset({"pandas", "polars", "pyarrow", "PIL"})

_REFUSED: tuple[tuple[tuple[type, ...], str, str], ...] = (
    (
        (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType),
        "the position of running code can't be saved",
        "Make it where it is looped over, or keep a position and make it anew",
    ),
    (
        (threading.Thread,),
        "what a thread is doing can't be saved",
        "End it before the loop, or make it anew in each iteration",
    ),
)


_OUT_OF_REACH = "or keep it where the loop does not reach it: in a function that has returned"


def is_standing(obj: Any) -> bool:
    """Whether an object is a part of the process, not of the program's state."""
    kind = type(obj)
    module = kind.__module__
    if isinstance(obj, OUTCOMES):
        return not has_outcome(obj)
    if isinstance(obj, _STANDING) or module.partition(".")[0] in _STANDING_MODULES:
        return True
    if isinstance(obj, threading.Thread) and not obj.is_alive():
        return True  # it does nothing any more
    if module.startswith("detrain.world"):  # the streams that stand before the program's
        return True
    return any(framework.is_standing(obj) for framework in find.loaded())


def form_of(obj: Any, path: str, frameworks: tuple[Framework, ...]) -> Form:
    """The form of an object; `UncapturableState` if it has none."""
    kind = type(obj)
    known = _BY_TYPE.get(kind)
    if known is not None:
        return known
    before, found = _seen_before.get(kind, ((), FORMS["object"]))
    if before is frameworks or before == frameworks:
        return found
    framework = _arrays_of.get(kind)
    if framework is not None and framework in frameworks:
        return _array_form(obj, framework, path) or _form_of(obj, kind, path, frameworks)
    form = _form_of(obj, kind, path, frameworks)
    if isinstance(form, FoundArray):
        _arrays_of[kind] = form.framework
    elif form is FORMS["object"] or any(form is each for _, each in _BY_CLASS):
        # All questions that lead here are asked of the class.
        _seen_before[kind] = frameworks, form
    return form


_seen_before: weakref.WeakKeyDictionary[type[Any], tuple[tuple[Framework, ...], Form]] = (
    weakref.WeakKeyDictionary()
)
"""Forms of classes that were met: the walk meets the same few again and again."""
_arrays_of: weakref.WeakKeyDictionary[type[Any], Framework] = weakref.WeakKeyDictionary()
"""Whose arrays the objects of a class are."""


def _array_form(obj: Any, framework: Framework, path: str) -> Form | None:
    """The form of an array of a framework; None if it is none."""
    if framework.decompose(obj) is not None:
        return FORMS["composed"]
    try:
        view = framework.view(obj)
    except ValueError as error:
        action = f"Convert it, {_OUT_OF_REACH}"
        return OpaqueForm(UncapturableState(path, type_name(type(obj)), str(error), action))
    return None if view is None else FoundArray(framework, view)


def _form_of(obj: Any, kind: type[Any], path: str, frameworks: tuple[Framework, ...]) -> Form:
    if values.encode(obj) is not None:
        return FORMS["value"]
    if isinstance(obj, NAMED):
        return FORMS["named"]
    if kind in ITERATORS:
        return FORMS["iterator"]
    for framework in frameworks:
        if framework.iterator_state(obj) is not None:
            return FORMS["position"]
        if framework.is_standing(obj):
            return FORMS["standing"]
        if framework.encode_value(obj) is not None:
            return FORMS["value"]
        if framework.generator_state(obj) is not None:
            return FORMS["generator"]
        form = _array_form(obj, framework, path)
        if form is not None:
            return form
    for cls, form in _BY_CLASS:
        if isinstance(obj, cls):
            return form
    if is_standing(obj):
        return FORMS["standing"]
    if isinstance(obj, OUTCOMES):
        return FORMS["outcome"]
    for classes, reason, action in _REFUSED:
        if isinstance(obj, classes):
            raise UncapturableState(path, type_name(kind), reason, action)
    hidden = kind if kind.__module__.partition(".")[0] in _OPAQUE else hidden_base(kind)
    if hidden is None:
        return FORMS["object"]
    if hasattr(obj, "state_dict") and hasattr(obj, "load_state_dict"):
        return FORMS["state_dict"]
    reason = f"{type_name(hidden)} keeps state that its fields don't show"
    action = f"Give it state_dict() and load_state_dict(), {_OUT_OF_REACH}"
    return OpaqueForm(UncapturableState(path, type_name(kind), reason, action))
