"""Mutated checkpoints, loaded one after the other in a process that watches what is done.

Run as a script: `fuzzing.py FOLDER SEED COUNT`. A checkpoint of real objects is written, then
mutated and loaded COUNT times: it must come out as it was, or as a `DetrainError`. An audit hook
ends the process at once if anything else is done: a program started, a file written or removed,
code executed. The memory that it may have is limited. The last line of its output are the counts.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import importlib
import itertools
import json
import os
import random
import resource
import struct
import sys
import traceback
from pathlib import Path

import msgspec
import numpy as np
import torch

from detrain.capture.forms import FORMS
from detrain.capture.restore import restore
from detrain.capture.sound import check_tree
from detrain.capture.walk import walk
from detrain.checkpoint import packed_state
from detrain.checkpoint.commit import (
    Lent,
    collect,
    load_newest,
    publish,
    read_checkpoint,
    save_state,
)
from detrain.checkpoint.compaction import compact
from detrain.checkpoint.manifest import Manifest, SavedLevel, SavedLoop
from detrain.checkpoint.reading import verified_arrays
from detrain.checkpoint.snapshot import take
from detrain.checkpoint.store import LocalStore
from detrain.errors import DetrainError
from detrain.frameworks.find import reposition
from detrain.trace.digest import digest_text
from detrain.trace.log import TraceMark

MEMORY = 1 << 30
"""Bytes that loading may take on top of what the process has."""


class Phase(enum.Enum):
    warm = 1
    long = 2


@dataclasses.dataclass
class Meter:
    total: float = 0.5
    history: list = dataclasses.field(default_factory=list)


class Slotted:
    __slots__ = ("left", "right")


def count_up(start):
    yield from itertools.count(start)


def scale(x, by):
    return x * by


def make_world():
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    model(torch.randn(5, 4)).sum().backward()
    optimizer.step()
    slotted = Slotted()
    slotted.left, slotted.right = 1, {"a": (1, 2)}
    base = torch.arange(12.0)
    meter = Meter(history=[1.5, "text", None, 3 + 4j, b"bytes", 1 << 80])
    return {
        "model": model,
        "optimizer": optimizer,
        "scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 2),
        "meter": meter,
        "born": [Meter(), Phase.long, slotted, collections.deque([1, 2], maxlen=3)],
        "sets": [{1, 2, 3}, frozenset({"a", "b"}), collections.OrderedDict(a=1)],
        "maps": collections.defaultdict(list, {meter.total: [1], (1, 2): [2]}),
        "views": [base[2:6], base[::3], np.arange(10)[::-1], np.zeros((2, 0))],
        "odd": [np.array([None, "x"], dtype=object), torch.eye(3).to_sparse(), np.float32(2)],
        "random": [random.Random(1), np.random.default_rng(1), torch.Generator()],
        "calls": [functools.partial(scale, by=2), meter.history.append, scale, len],
        "iterators": [iter([1, 2, 3]), zip([1], [2], strict=False), map(scale, [1], [2])],
        "numbers": list(range(100)),
        "shared": torch.arange(1000.0),
        "values": [range(3), Path("x"), torch.float32, torch.Size([1]), slice(1, 2)],
        "array": [bytearray(b"abc"), memoryview],
    }


def save(store):
    made = make_world()
    del made["calls"][1]  # a method of a built-in
    walked = walk(made, owns)
    outer = walk({name: made[name] for name in ("meter", "numbers", "views", "shared")}, owns)
    first = save_state(store, take(outer.tree, outer.leaves), "00000001")
    lent = Lent(first.lends(), first.files())
    second = save_state(store, take(walked.tree, walked.leaves), "00000002", lent)
    assert second.borrowed
    loops = (SavedLoop("main#0", "", first), SavedLoop("main#1", "", None))
    levels = (
        SavedLevel("main#2", 3, "entry", "", "", loops, first, (("time.time", ("f", "1.5")),)),
        SavedLevel("main#2.0", 7, "entry", "{}", "00", (), second),
    )
    publish(
        store,
        Manifest(
            step=12, created=1.5, finished=loops, levels=levels, trace=TraceMark(4096, "00" * 16),
            output={"stdout": 10, "stderr": 0}, observed=(("os.getpid", ("i", "3")),), journal=2,
            files={"/nowhere/at/all": 3}, kept={"main#2": ("main/x",)},
        ),
    )  # fmt: skip


def compacted(store):
    """The same checkpoint, compacted: of small arrays, too."""
    walked = walk({"x": torch.ones(3)}, owns)
    state = save_state(store, take(walked.tree, walked.leaves), "00000003")
    later = read_checkpoint(store, 12)
    level = msgspec.structs.replace(later.levels[-1], state=state)
    publish(store, msgspec.structs.replace(later, step=13, levels=(level,), finished=()))
    packed_state.WORTH_PACKING = 8
    done = compact(store, 1, alone=False)
    assert done.steps == [12]
    assert not done.troubles
    store.remove(["0000000013.json"])
    collect(store, {})
    store.remove(["compaction.lock"])
    assert any(state.packed for state in read_checkpoint(store, 12).states())


def owns(filename):
    return filename == __file__


def load(store):
    """All that resuming does with a checkpoint, with the objects of a rebuilt program."""

    def check(manifest):
        for state in manifest.states():
            check_tree(state.tree, FORMS, state.file)

    manifest = load_newest(store, lambda error, step: None, check)
    if manifest is None:
        return
    for state in manifest.states():
        live = make_world()
        del live["born"][:], live["calls"][1]
        restore(
            state.tree,
            live,
            verified_arrays(store, state).__getitem__,
            lambda _: False,
            lambda _: None,
            state.rebuilt,
            owns,
        )
        try:
            reposition(state.positions)
        except (ValueError, TypeError, LookupError, RuntimeError) as error:
            raise DetrainError(str(error)) from error


# ---------------------------------------------------------------- mutations

NAMES = (
    "subprocess:Popen", "os:system", "posix:system", "builtins:exec", "builtins:eval",
    "builtins:open", "builtins:getattr", "tempfile:_TemporaryFileCloser", "shutil:rmtree",
    "io:FileIO", "_io:FileIO", "pathlib:Path.unlink", "torch.serialization:load", "pickle:loads",
    "torch:load", "numpy:load", "importlib:import_module", "__main__:scale", "__main__:count_up",
    "__main__:owns", "__main__:os.system", "torch.nn.functional:os.system", "builtins:list",
    "builtins:range", "fractions:Fraction", "decimal:Decimal", "itertools:product",
    "weakref:finalize", "multiprocessing.process:Process", "threading:Thread",
    "functools:partial", "collections:deque", "random:Random", "torch:Generator",
    "numpy.random._generator:Generator", "builtins:set", "builtins:frozenset",
)  # fmt: skip
TEXTS = (
    "", "../../../tmp/evil.safetensors", "/etc/passwd", "x/../../y", "\0", "a" * 5000,
    "1e999999999", "touch evil", "(" * 300, "-" * 2000 + "1", "[" + "1," * 500 + "]", "9" * 5000,
    "None", "nan", "0 1000000000000 1", "finished", "dead", "rebuilt", "held",
    "python", "numpy", "torch", "cpu", "meta", "object", "O",
    "[('a','O')]", "V99999999", "float64", "complex128", "bfloat16", "stdout",
    "00000001.safetensors", "00000002.safetensors", "0000000012.json",
)  # fmt: skip
NUMBERS = (
    -1, 0, 1, 2, 3, 7, 255, 1 << 20, 1 << 31, (1 << 31) - 1, 1 << 40, 1 << 61, 1 << 62, 1 << 63,
    (1 << 64) - 1, 1 << 64, 10**30, -(1 << 63), 0.5, -0.0, 1e308,
)  # fmt: skip
SCALARS = (
    ("s", "x"),
    ("i", "0x" + "f" * 4000),
    ("i", "nope"),
    ("f", "nan"),
    ("y", "!!"),
    ("?", ""),
)


def places(value, found, parent=None, key=None):
    """All (parent, key) in a JSON value; long texts are not entered."""
    stack = [(parent, key, value)]
    while stack:
        owner, at, each = stack.pop()
        if owner is not None:
            found.append((owner, at))
        if isinstance(each, dict):
            stack.extend((each, k, v) for k, v in each.items())
        elif isinstance(each, list):
            stack.extend((each, i, v) for i, v in enumerate(each))
    return found


def mutate(rng, body):
    spots = places(body, [])
    for _ in range(rng.choice((1, 1, 1, 2, 4, 12))):
        owner, key = rng.choice(spots)
        if (isinstance(owner, list) and key >= len(owner)) or (
            isinstance(owner, dict) and key not in owner
        ):
            continue
        old = owner[key]
        same = [s for s in spots if s[1] == key] if isinstance(key, str) else spots
        way = rng.random()
        if way < 0.1:
            del owner[key]
        elif way < 0.2:
            other, at = rng.choice(same)
            if (isinstance(other, dict) and at in other) or (
                isinstance(other, list) and at < len(other)
            ):
                owner[key] = other[at]
        elif way < 0.25 and isinstance(owner, list):
            owner.insert(key, old)
        elif way < 0.3 and isinstance(owner, dict):
            owner[rng.choice(TEXTS)] = old
        elif way < 0.33:
            deep = 0
            for _ in range(rng.choice((50, 20000))):
                deep = [deep]
            owner[key] = deep
        elif key == "form":
            owner[key] = rng.choice([*FORMS, "nothing"])
        elif isinstance(old, str) and ":" in old and way < 0.9:
            owner[key] = rng.choice(NAMES)
        elif isinstance(old, str):
            owner[key] = rng.choice(TEXTS + NAMES)
        elif isinstance(old, int | float):
            owner[key] = rng.choice(NUMBERS) if way < 0.7 else rng.randrange(60)
        elif isinstance(old, list) and len(old) == 2 and isinstance(old[0], str) and way < 0.7:
            owner[key] = rng.choice([*SCALARS, *range(60)])
        else:
            owner[key] = rng.choice([None, True, [], {}, "x", -1, [[]], {"": 0}])
    return body


def mutate_object(rng, body):
    """What still is a manifest, of objects that nobody had."""
    states = [level["state"] for level in body["levels"]]
    for _ in range(rng.choice((1, 1, 2, 5))):
        tree = rng.choice(states)["tree"]
        node = rng.choice(tree["nodes"])
        refs = [
            *range(len(tree["nodes"])),
            *map(list, SCALARS[:2]),
            ["i", "-1"],
            ["s", "touch evil"],
        ]
        way = rng.randrange(8)
        if way == 0:
            node["type"] = rng.choice(NAMES)
        elif way == 1:
            node["form"] = rng.choice(list(FORMS))
        elif way == 2:
            node["items"] = [rng.choice(refs) for _ in range(rng.randrange(6))]
        elif way == 3:
            name = rng.choice(["forward", "name", "delete", "file", "__defaults__", "<x>", "x"])
            node["fields"] = [*node.get("fields", []), [name, rng.choice(refs)]]
        elif way == 4:
            node["text"] = rng.choice(TEXTS + NAMES)
        elif way == 5 and "array" in node:
            key = rng.choice(["dtype", "framework", "offset", "storage_bytes", "storage", "device"])
            node["array"][key] = rng.choice(NUMBERS[:12] if key[0] in "os" else TEXTS)
        elif way == 6 and "array" in node:
            key = rng.choice(["shape", "strides"])
            node["array"][key] = [rng.choice(NUMBERS[:12]) for _ in range(rng.randrange(4))]
        else:
            gadget = {"form": rng.choice(list(FORMS)), "type": rng.choice(NAMES), "text": "python"}
            gadget["items"] = [rng.choice(refs) for _ in range(rng.randrange(6))]
            gadget["fields"] = [["name", ["s", "evil"]], ["delete", ["b", "1"]], ["file", 0]]
            node["items"] = [*node.get("items", []), len(tree["nodes"])]
            tree["nodes"].append(gadget)
            tree["paths"].append("gadget")
    return body


def dumps(value):
    """JSON, however deep."""
    try:
        return json.dumps(value).encode()
    except (RecursionError, ValueError):  # it holds itself
        return b"[" * 100_000


def reseal(path, change):
    raw = json.loads(path.read_bytes())
    body = dumps(change(raw["body"]))
    path.write_bytes(
        b'{"version":%d,"digest":"%s","body":%s}'
        % (raw["version"], digest_text(body).encode(), body)
    )


def scramble(rng, raw):
    """Bytes flipped, cut off, repeated."""
    raw = bytearray(raw)
    for _ in range(rng.choice((1, 1, 3, 20))):
        at = rng.randrange(len(raw)) if raw else 0
        way = rng.randrange(5)
        if way == 0 and raw:
            raw[at] ^= 1 << rng.randrange(8)
        elif way == 1:
            del raw[at:]
        elif way == 2:
            raw[at:at] = raw[at : at + rng.randrange(64)]
        elif way == 3:
            raw[at : at + 8] = struct.pack("<Q", rng.choice((0, 1 << 62, (1 << 64) - 1, 100)))
        else:
            raw[at : at + 1] = rng.choice(
                (b"NaN", b"-1", b"1e999", b"\xff", b'"', b"[", b"\\ud800")
            )
    return bytes(raw)


def harm(rng, folder, good):
    """One hostile checkpoint."""
    for name, raw in good.items():
        (folder / name).write_bytes(raw)
    manifest = folder / "0000000012.json"
    data = folder / rng.choice([name for name in good if name.endswith(".safetensors")])
    way = rng.random()
    if way < 0.4:
        reseal(manifest, lambda body: mutate_object(rng, body))
    elif way < 0.7:
        reseal(manifest, lambda body: mutate(rng, body))
    elif way < 0.75:
        manifest.write_bytes(scramble(rng, manifest.read_bytes()))
    else:
        raw = data.read_bytes()
        if way < 0.9:
            (length,) = struct.unpack("<Q", raw[:8])
            header = dumps(mutate(rng, json.loads(raw[8 : 8 + length])))
            raw = struct.pack("<Q", len(header)) + header + raw[8 + length :]
        else:
            raw = scramble(rng, raw)
        data.write_bytes(raw)

        def fits(body):
            text = json.dumps(body).replace(
                f'"bytes": {len(good[data.name])}', f'"bytes": {len(raw)}'
            )
            return json.loads(text)

        reseal(manifest, fits)


# ---------------------------------------------------------------- the watch

ALLOWED: set[str] = set()
FORBIDDEN = (
    "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty",
    "os.spawn", "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.truncate", "os.link",
    "os.symlink", "os.chmod", "os.kill", "shutil.rmtree", "shutil.move", "socket.connect", "exec",
    "pickle.find_class", "ctypes.dlopen", "marshal.loads", "os.putenv", "import",
)  # fmt: skip
watching = False


def audit(event, args):
    if not watching:
        return
    writes = (
        event == "open"
        and isinstance(args[2], int)
        and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    )
    if writes or event in FORBIDDEN:
        traceback.print_stack()
        print(f"FORBIDDEN {event} {args[:2]!r}", flush=True)
        os._exit(3)


def main(folder, seed, count):
    global watching
    folder = Path(folder)
    store = LocalStore(folder)
    save(store)
    if int(seed) % 2:
        compacted(store)
    good = {path.name: path.read_bytes() for path in folder.iterdir()}
    load(store)  # a good one: whatever is imported lazily is there now
    repr(torch.zeros(1, device="meta").copy_(torch.zeros(1)))  # and what torch does so itself
    importlib.import_module("torch._dynamo")
    sys.addaudithook(audit)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    counts = collections.Counter()
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        harm(rng, folder, good)
        watching = True
        try:
            load(store)
        except DetrainError as error:
            counts[type(error).__name__] += 1
        except BaseException as error:
            watching = False
            traceback.print_exc()
            print(f"UNCLEAR {seed} {number}: {error!r}", flush=True)
            os._exit(4)
        else:
            counts["unharmed"] += 1
        finally:
            watching = False
    print(json.dumps(counts))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
