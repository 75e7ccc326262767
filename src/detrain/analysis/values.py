"""What the front end knows of a value: where it is kept, what it depends on, what it may be.

A *tag* is one thing that a value may be; a value without tags may be anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from detrain.analysis.program import FORM, Place
from detrain.analysis.scopes import Scope

__all__ = [
    "DEFINITIONS", "NOTHING", "SCALAR", "UNKNOWN", "Class", "Tag", "Tags", "Value",
]  # fmt: skip

Tag = tuple[str, ...]
"""("scalar",); ("lib", absolute name); ("made", absolute name of what was called);
("function" | "bound" | "generator", key); ("class" | "instance" | "held", key); ("module", name);
("sequence", key of its elements); ("iterates", "pairs"); ("iterator",); ("workers", how many);
("trains",); ("unknown",)."""

Tags = frozenset[Tag]

NOTHING: Tags = frozenset()
SCALAR: Tags = frozenset({("scalar",)})
UNKNOWN: Tags = frozenset({("unknown",)})
DEFINITIONS = frozenset({"lib", "module", "class", "function"})


@dataclass(frozen=True)
class Value:
    """The value of an expression. One with a `place` is the object there; another is made of what
    it `reads`.
    """

    place: Place | None = None
    reads: tuple[Place, ...] = ()
    tags: Tags = NOTHING

    @property
    def all_reads(self) -> tuple[Place, ...]:
        """What using the value looks at."""
        if self.place is None:
            return self.reads if len(self.reads) < 2 else tuple(dict.fromkeys(self.reads))
        return tuple(dict.fromkeys((self.place, *self.reads))) if self.reads else (self.place,)

    @property
    def is_scalar(self) -> bool:
        """Whether it surely is a number, a text or the like, which can't change in place."""
        return self.tags == SCALAR

    @property
    def is_list(self) -> bool:
        """Whether it surely is a list, a tuple or a dictionary of Python's, kept somewhere."""
        is_kept = self.place is not None and not self.reads
        return is_kept and bool(self.tags) and all(tag[0] == "sequence" for tag in self.tags)

    @property
    def form(self) -> Place | None:
        """What is read of it to know its shape and type, if it surely is a parameter of a model."""
        is_parameter = self.tags == {("made", "torch.nn.Parameter")}
        return (*self.place, FORM) if is_parameter and self.place is not None else None

    @property
    def is_definition(self) -> bool:
        """Whether it surely is a function, a class or a module."""
        return bool(self.tags) and all(tag[0] in DEFINITIONS for tag in self.tags)

    def of(self, kind: str) -> tuple[str, ...]:
        """The keys of its tags of one kind."""
        tags = self.tags
        if len(tags) == 1:  # most often
            (tag,) = tags
            return tag[1:] if tag[0] == kind else ()
        return tuple(sorted([tag[1] for tag in tags if tag[0] == kind])) if tags else ()


@dataclass(eq=False)
class Class:
    """A class of the project, with what it inherits from in the project and in libraries."""

    scope: Scope
    bases: list[str] = field(default_factory=list)
    libraries: list[str] = field(default_factory=list)
    methods: dict[str, Scope] = field(default_factory=dict)
    setters: dict[str, Scope] = field(default_factory=dict)
    decorators: dict[str, set[str]] = field(default_factory=dict)
    """By method: "property", "staticmethod", "classmethod" and the like."""
    annotated: list[str] = field(default_factory=list)
    is_data: bool = False

    def described(self) -> tuple[object, ...]:
        """All that is known of it, as it is now."""
        lists = tuple(self.bases), tuple(self.libraries), tuple(self.annotated), self.is_data
        return *lists, dict(self.methods), dict(self.setters), dict(self.decorators)
