"""The questions that DETrain asks of a framework. No adapter, and no framework, is imported here.

Python's own random numbers and numpy answer the same questions, so that the rest of DETrain knows
no difference. Every method is called on the thread that runs the program's loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from detrain.rng import Address, Fill
    from detrain.state import ArrayFacts

__all__ = [
    "ArrayView",
    "Filled",
    "Follower",
    "Framework",
    "Glance",
    "LiveLeaf",
    "Positioned",
    "Still",
]


class ArrayView(msgspec.Struct, frozen=True):
    """A live array as the walk needs it; the fields are those of `state.ArrayFacts`.

    `memory` is equal for two arrays exactly if they look into one memory. `fields` are further
    objects that belong to the array: its gradient, attributes that a program hung on it.
    """

    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    memory: object
    memory_bytes: int
    offset: int = 0
    strides: tuple[int, ...] | None = None
    device: str = "cpu"
    requires_grad: bool = False
    graph: bool = False
    fields: Mapping[str, Any] = {}


class LiveLeaf(msgspec.Struct, frozen=True, eq=False):
    """An array of the program, as it is in memory now."""

    name: str
    framework: Framework
    array: Any
    nbytes: int
    dtype: str
    shape: tuple[int, ...]


class Filled(NamedTuple):
    """An array that is to be given some content; see `Framework.fill`."""

    array: Any
    facts: ArrayFacts
    data: memoryview


class Glance(Protocol):
    """What one look at some arrays gave. It keeps none of them alive."""

    def is_same(self, arrays: Sequence[Any]) -> bool:
        """Whether as many arrays have the classes and `view`s of the ones that were looked at.

        Of `fields`, it is only asked whether there are any; which memory an array lies in is asked
        by the address of its first element.
        """


@runtime_checkable
class Positioned(Protocol):
    """An iterator that can be moved forward without producing what it passes over."""

    by_index: bool
    """Whether passing over is exact and free. If not, items are produced and thrown away."""

    def origin(self) -> str:
        """Where generators of its own stood when the iterator was made."""

    def advance(self, count: int, origin: str) -> None:
        """Pass over the next `count` items of an iteration that was begun at `origin`."""

    def order(self) -> str:
        """A digest of which items were passed or produced so far, in order; "" if not known."""

    def generators(self) -> list[Any]:
        """Generators of its own, which move with it."""

    def owner(self) -> Any:
        """What it iterates over: a loader."""


class Still(Protocol):
    """Arrays that the program is not expected to change before its next update."""

    @property
    def addresses(self) -> Mapping[str, int]:
        """Where the bytes of each lie, in C order, by the names of leaves."""

    def prepare(self) -> bool:
        """They are about to be copied, at a time when `begin` has not been called, or `end` has.

        The same arrays must lie where they lay when they were found. False if something may change
        them by now that nobody would see: then it has to be asked anew which are still.
        """

    def begin(self, settle: Callable[[], None]) -> None:
        """Call `settle`, once, before anything changes one of them that `changed` would not see."""

    def changed(self) -> set[str]:
        """The names of those that were changed since `prepare`. Any thread may ask."""

    def end(self) -> None:
        """No longer. Called by `settle` itself, too."""


class Follower(Protocol):
    """What makes the global generators of one framework follow addresses; see `following`."""

    name: str
    """The framework's."""

    asked: int
    """How many seeds were asked for at this address, by generators that are made without one."""

    def begin(self) -> None:
        """Remember where the generators stand."""

    def follow(self, address: Address, words: memoryview) -> None:
        """Begin anew, with these 312 words of 64 bits; what is asked of the system, likewise."""

    def end(self) -> None:
        """Put the generators back where they stood at `begin`."""


class Mapped(NamedTuple):
    """Bytes in the pages of a file, which are mapped privately."""

    data: memoryview
    copy: Callable[[memoryview], None]
    """Copies them, and sees to it that they are the right ones: so far that may not be known. Any
    thread may call it."""


class Framework(Protocol):
    """One framework's answers."""

    name: str
    """The top-level module whose import brings the framework in."""

    transparent: frozenset[str]
    """Fields left out when a part is named: `model.fc`, not `model._modules['fc']`."""

    @property
    def fast_words(self) -> Fill | None:
        """For the calling thread, a faster way to the numbers of an address than `rng.fill`."""

    @property
    def gradient(self) -> str:
        """The one of `ArrayView.fields` that holds a gradient that may be left out; "" if none."""

    def prepare(self) -> None:
        """Choose deterministic algorithms, and make the framework's loaders `Positioned`."""

    def have_one_stream(self) -> None:
        """From now on, have streams give what they give without workers; `release` undoes it."""

    def release(self) -> None:
        """Undo `prepare`."""

    def fingerprint(self) -> dict[str, str]:
        """What besides the program decides the bits: version, threads, instruction set."""

    def pin(self, fingerprint: Mapping[str, str]) -> None:
        """Set what can be set to what an earlier fingerprint says."""

    def decompose(self, obj: Any) -> dict[str, Any] | None:
        """An array that is no single memory (a sparse one) as its parts; None if `obj` is none."""

    def compose(self, parts: Mapping[str, Any], live: Any | None) -> Any:
        """Put such an array together again; into the live one if there is one."""

    def writers(self) -> list[tuple[Any, str]]:
        """Functions, as (owner, name), that take a path and write to it past Python's `open`."""

    def workers(self) -> set[int]:
        """The process numbers of those that only load data."""

    def is_standing(self, obj: Any) -> bool:
        """Whether an object is a part of the process, not of the program's state."""

    def iterator_state(self, obj: Any) -> tuple[Any, dict[str, Any]] | None:
        """A loader's iterator as its loader and its place in it; None if `obj` is none."""

    def set_iterator_state(self, obj: Any, state: Mapping[str, Any]) -> None:
        """Move a loader's iterator."""

    def new_iterator(self, owner: Any, state: Mapping[str, Any]) -> Any:
        """A loader's iterator that is where `state` says."""

    def watch_graph(self, obj: Any, used: Callable[[], None]) -> Callable[[], bool] | None:
        """Have `used` called if a backward pass goes through the graph of an array.

        Gives what ends the watch, and says whether the graph is still there; None if the array has
        no graph, or one that can't be used any more.
        """

    def watch_gradients(self, arrays: Iterable[Any], *, may_stay: bool) -> Callable[[], str]:
        """Watch the gradients that arrays have now, until what this gives is called.

        That says what was done with one of them instead of clearing it; "" if all were cleared
        before anything used them, or not touched at all if they `may_stay`.
        """

    def seeders(self) -> list[tuple[Any, str]]:
        """Functions, as (owner, name), by which programs seed global generators."""

    def seed(self, seed: int) -> None:
        """Seed the global generators."""

    def note_positions(self) -> Callable[[], dict[str, str]]:
        """Note where the global generators stand. What it gives puts that into text: the program
        need not wait for it, any thread may ask.
        """

    def stand(self) -> bytes:
        """Where the default generators that programs seed stand: quicker to get than all.

        The same wherever all positions are the same.
        """

    def reposition(self, positions: Mapping[str, str]) -> None:
        """Put the global generators where `positions` said they stood."""

    def generator_state(self, obj: Any) -> Any:
        """The state of a generator object as plain data; None if `obj` is none of its own."""

    def set_generator_state(self, obj: Any, state: Any) -> None:
        """Put a generator object into a state that `generator_state` gave."""

    def new_generator(self, kind: type[Any]) -> Any:
        """A generator object of that class, in any state."""

    def computes(self, obj: Any) -> bool:
        """Whether a function or class of the framework's only computes: no file, no process.

        A checkpoint may name such ones, and no others, where the program has not set them up.
        """

    def follower(self) -> Follower:
        """A new way to make the global generators follow addresses."""

    def is_generator(self, obj: Any) -> bool:
        """Whether an object is a generator of random numbers that can be put into a state."""

    def generator_at(self, address: Address) -> Any:
        """A new generator object at the first number of an address."""

    def rekey(self, obj: Any, address: Address, fill: Fill) -> None:
        """Put a generator object to the first number of an address."""

    def encode_value(self, obj: Any) -> str | None:
        """An immutable value of the framework (a dtype, a device) as text; None if it is none."""

    def decode_value(self, kind: str, text: str) -> Any:
        """The value that `encode_value` wrote; `kind` is its class as "module:name"."""

    def view(self, obj: Any) -> ArrayView | None:
        """Describe an array; None if `obj` is none of this framework's.

        `ValueError` with a reason if it is one whose content can't be captured.
        """

    def glance(self, arrays: Sequence[Any]) -> Glance | None:
        """Look at some arrays, if there is a way that is quicker than `view`; None if not."""

    def copy_out(self, obj: Any, into: memoryview) -> None:
        """Copy the bytes of an array, in C order, into a buffer of exactly that size."""

    def address(self, obj: Any) -> int | None:
        """Where the bytes of an array lie in memory, if they do, in C order."""

    def still(self, leaves: Iterable[LiveLeaf], objects: Sequence[Any]) -> Still | None:
        """Which of some arrays can be copied while the program goes on; None if none.

        `objects` are all that the program was seen to hold, these arrays and others among them.
        """

    def fill(self, obj: Any, facts: ArrayFacts, data: memoryview) -> None:
        """Give a live array the content, shape and flags of a captured one, in place."""

    def fill_all(self, arrays: Sequence[Filled]) -> None:
        """Fill several, with the interpreter free for as long as possible. Any thread may ask."""

    def create(
        self, kind: type[Any], facts: ArrayFacts, data: memoryview, shared: Any | None
    ) -> Any:
        """A new array for that content, which `fill` puts into it.

        `shared` is another one that looks into the same memory, if there is one.
        """

    def new_with(self, kind: type[Any], facts: ArrayFacts, data: memoryview) -> Any | None:
        """A new array with that content in it; None if `create` and `fill` have to make it."""

    def lodge(self, kind: type[Any], facts: ArrayFacts, mapped: Mapped) -> Any | None:
        """A new array in the memory of `mapped`; None if it has to have memory of its own.

        Nobody uses that memory any more, except to make further arrays of the same content: those
        get memory of their own. It will leave it: see `move_in`.
        """

    def move_in(self, objects: Iterable[Any]) -> list[Callable[[], None]]:
        """All `objects` are restored: have lodged arrays move to memory of their own.

        Those that can move while the program goes on do so; gives what moves the others, which is
        called before the program goes on. Any thread may call that.
        """

    def settle(self) -> None:
        """Wait until what moves while the program goes on has moved."""

    def set_field(self, obj: Any, name: str, value: Any) -> None:
        """Put back one of `ArrayView.fields`."""
