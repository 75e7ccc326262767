"""The codes of all diagnostics: what each says, how bad it is, why it matters, what to do.

A code never changes its meaning and is never used again for another one. The first digit says what
it is about: 1 random numbers, 2 order, 3 the world, 4 parallel changes and operations, 5 state, 9
the check itself. Each has a page in `docs/diagnostics`. What finds them lives elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

import msgspec

__all__ = ["CODES", "SEVERITIES", "Code", "Severity", "is_known", "longest_match"]

Severity = Literal["error", "warning", "note"]

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""Worst first."""


class Code(msgspec.Struct, frozen=True):
    """What all diagnostics of one code have in common.

    `always` codes speak of the check itself and need not be selected; `quiet` ones are only shown
    if they are.
    """

    code: str
    title: str
    severity: Severity
    why: str
    fix: str
    always: bool = False
    quiet: bool = False

    @property
    def page(self) -> str:
        """Where it is documented, in the project's folder."""
        return f"docs/diagnostics/{self.code}.md"


_ALL = (
    Code(
        "DT101",
        "random numbers are drawn from a generator that the program never seeds",
        "warning",
        "Without a seed the generator starts from entropy, so every run draws other numbers.",
        "Seed the generator before its first draw, with a number that is written down.",
    ),
    Code(
        "DT102",
        "a seed argument is never used",
        "warning",
        "Whoever passes the seed believes that the run is fixed by it, but nothing reads it.",
        "Give the seed to the generators that the program draws from, or remove the argument.",
    ),
    Code(
        "DT103",
        "a draw from a sequential generator in loader workers, threads or a parallel map",
        "warning",
        "Which sample gets which number depends on how many workers there are and on their "
        "timing, not on the sample.",
        "Draw in the main process, or make a generator for each sample from the seed, the epoch "
        "and the index.",
    ),
    Code(
        "DT104",
        "a generator held by a dataset is copied to every worker",
        "warning",
        "Every worker begins with the same copy: samples of different workers get equal numbers, "
        "and if workers are started for each epoch, so do all epochs.",
        "Make the generator inside `__getitem__`, from the seed, the epoch and the index.",
    ),
    Code(
        "DT105",
        "a generator is seeded from the clock or from entropy",
        "warning",
        "The seed is another one in every run and is not written down, so no run can be repeated.",
        "Use a fixed number, or an argument that has one as its default.",
    ),
    Code(
        "DT201",
        "the order of a set reaches training state",
        "warning",
        "The order of a set of text depends on the hash seed, which Python chooses anew in every "
        "process.",
        "Sort the set where it is iterated over: `sorted(names)`.",
    ),
    Code(
        "DT202",
        "the order of a directory listing reaches training state",
        "warning",
        "The file system lists names in an order of its own, which differs between machines and "
        "after a copy.",
        "Sort the listing: `sorted(os.listdir(folder))`, `sorted(folder.glob(pattern))`.",
    ),
    Code(
        "DT203",
        "results are taken in the order in which parallel work is done",
        "error",
        "The order depends on timing, and with it every sum of floating-point numbers, every batch "
        "and every update that is made from the results.",
        "Take the results in the order of the work: `executor.map`, `pool.imap`, or a list of "
        "futures, one after the other.",
    ),
    Code(
        "DT204",
        "the elements of an iterable dataset depend on the number of workers",
        "warning",
        "Each worker runs the stream for itself. Unless it is split, every element comes once from "
        "each; if it is split, batches come in another order for another number of workers.",
        "Use a dataset with `__getitem__` and `__len__`, or fix num_workers.",
    ),
    Code(
        "DT301",
        "the clock reaches training state",
        "warning",
        "A value that is computed from the time is another one in every run.",
        "Count steps or epochs instead of seconds, or keep the time out of what is trained.",
    ),
    Code(
        "DT302",
        "entropy or unique names reach training state",
        "warning",
        "uuid, secrets and os.urandom give other bits in every run, and no seed changes that.",
        "Draw from a seeded generator instead.",
    ),
    Code(
        "DT303",
        "the clock decides which way the training goes",
        "warning",
        "How many steps fit into a time depends on the load of the machine, so two runs train for "
        "another number of steps.",
        "Decide by a number of steps; let the clock decide only what is logged.",
    ),
    Code(
        "DT304",
        "uninitialised memory reaches training state",
        "warning",
        "`empty` gives memory as it is; what it holds depends on what was there before.",
        "Use `zeros`, or write every element before one is read.",
    ),
    Code(
        "DT401",
        "processes or threads change the same parameters without order",
        "error",
        "Each update reads parameters that others are writing, so the result depends on timing and "
        "no seed, recording or checkpoint can bring it back.",
        "Let one process update, and combine gradients in a fixed order.",
    ),
    Code(
        "DT402",
        "an operation whose result may differ from call to call",
        "note",
        "Its terms are summed in the order in which threads arrive, unless deterministic "
        "algorithms are on.",
        "Turn them on: `torch.use_deterministic_algorithms(True)`. `detrain run` does.",
    ),
    Code(
        "DT501",
        "training state is held in a live generator or iterator",
        "warning",
        "Where running code stands can't be captured, so a checkpoint can't hold it.",
        "Keep the position as a number, and make the iterator from it.",
    ),
    Code(
        "DT502",
        "training state is held where it can't be captured",
        "warning",
        "State inside C code or behind an open handle shows in no field, so a checkpoint would "
        "miss it.",
        "Hold the state in a variable or a field, and build the other object from it.",
    ),
    Code(
        "DT503",
        "training happens outside any loop that can be re-entered",
        "warning",
        "A run goes on at the head of a loop; where there is none, it starts over.",
        "Write the steps as a `for` or `while` loop of a function or of the script.",
    ),
    Code(
        "DT504",
        "the program's own checkpoint leaves out state that training carries",
        "warning",
        "A run that goes on from it starts parts of its state anew and takes another way.",
        "Save and load the missing parts too, or leave checkpoints to `detrain run`.",
    ),
    Code(
        "DT505",
        "the training loop is inside a library",
        "note",
        "DETrain re-enters loops of the program's own files; those of installed libraries are not "
        "touched.",
        "Write the loop in the program if the run is to go on in the midst of it.",
    ),
    Code(
        "DT901",
        "a file can't be parsed",
        "error",
        "What can't be read was not checked, and can't be run.",
        "Mend the syntax error.",
        always=True,
    ),
    Code(
        "DT902",
        "an unknown code in a comment or an option",
        "warning",
        "It silences or selects nothing, so it hides what it was written for.",
        "Correct the code; docs/diagnostics lists all of them.",
        always=True,
    ),
    Code(
        "DT903",
        "a call that the analysis doesn't know gets a conservative answer",
        "note",
        "What is passed to it counts as changed, so that more is saved than may be needed.",
        "Nothing needs to be done.",
        quiet=True,
    ),
    Code(
        "DT904",
        "the analysis gave up on a file",
        "note",
        "This file was not checked. That is an error in DETrain, not in the file.",
        "Report it, with the file if that is possible.",
        always=True,
    ),
)

CODES: dict[str, Code] = {each.code: each for each in _ALL}
"""By code, in order."""


def is_known(selector: str) -> bool:
    """Whether this is a code, or the beginning of one: `DT3` stands for all that begin with it."""
    is_spelled_so = re.fullmatch(r"DT\d*", selector) is not None
    return is_spelled_so and any(code.startswith(selector) for code in CODES)


def longest_match(code: str, selectors: Iterable[str]) -> int:
    """How many characters the closest selector of a code shares with it; 0 if none selects it."""
    return max((len(each) for each in selectors if code.startswith(each)), default=0)
