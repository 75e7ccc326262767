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
    ArrayForm,
    ComposedForm,
    EnumForm,
    GeneratorForm,
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
        if framework.decompose(obj) is not None:
            return FORMS["composed"]
        if framework.generator_state(obj) is not None:
            return FORMS["generator"]
        try:
            if framework.view(obj) is not None:
                return FORMS["array"]
        except ValueError as error:
            action = f"Convert it, {_OUT_OF_REACH}"
            return OpaqueForm(UncapturableState(path, type_name(kind), str(error), action))
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
