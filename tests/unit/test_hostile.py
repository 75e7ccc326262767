"""Hand-made hostile checkpoints: what each of them tries is shown to be refused."""

from __future__ import annotations

import math
import os
import struct
import subprocess

import msgspec
import numpy as np
import pytest
import torch

from detrain.capture.forms import FORMS
from detrain.capture.restore import restore
from detrain.capture.sound import check_tree
from detrain.capture.walk import walk
from detrain.checkpoint.format import read_arrays
from detrain.checkpoint.manifest import (
    Borrowed,
    Manifest,
    SavedLevel,
    SavedLoop,
    SavedState,
    decode_manifest,
    encode_manifest,
)
from detrain.checkpoint.regular import check_own_files
from detrain.checkpoint.store import LocalStore
from detrain.errors import DamagedCheckpoint, DetrainError, ResumeMismatch
from detrain.state import ArrayFacts, Node, StateTree
from detrain.trace.log import EMPTY

DIGEST = "0" * 32


def tree(*nodes):
    return StateTree((("it", 0),), nodes, tuple(f"it{i}" for i in range(len(nodes))))


def manifest(**changes):
    state = SavedState(tree(Node("list", "builtins:list")), {}, "1.safetensors", 8, {})
    state_changes = {k: changes.pop(k) for k in list(changes) if k in state.__struct_fields__}
    state = msgspec.structs.replace(state, **state_changes)
    levels = (SavedLevel("site", changes.pop("iteration", 0), "", "", "", (), state),)
    return msgspec.structs.replace(Manifest(3, 1.0, (), levels, EMPTY, {}), **changes)


def test_a_good_manifest_is_read():
    good = manifest(output={"stdout": 3}, files={"/a/b": 1}, borrowed={}, digests={"x": DIGEST})
    assert decode_manifest(encode_manifest(good), "it.json") == good


def test_what_is_written_is_the_whole_manifest_whatever_was_written_before():
    """Parts that are those of the manifest before are not made into text again."""
    nodes = (Node("list", "builtins:list", items=(("i", "1"),)), Node("dict", text="é"))
    first = manifest(tree=StateTree((("it", 0),), nodes, ("a", "b"), (("r", 1),), (("d", 1),)))
    again = manifest(tree=StateTree((("it", ("i", "2")),), nodes, ("a", "c")))
    other = manifest(tree=StateTree((("it", 0),), (nodes[1], nodes[0]), ("a", "b")))
    state = first.levels[0].state
    loops = (SavedLoop("one", "", None), SavedLoop("two", "", again.levels[0].state))
    nested = msgspec.structs.replace(
        first,
        finished=loops,
        levels=(SavedLevel("site", 1, "", "", "", loops, state), *other.levels),
    )
    for each in (first, again, other, nested, first, manifest(), other):
        plain = msgspec.json.encode(each, order="deterministic")
        assert plain in encode_manifest(each)
        assert decode_manifest(encode_manifest(each), "it.json") == each


HOSTILE = {
    "a path out of the run": {"file": "../../1.safetensors"},
    "an absolute path": {"file": "/1.safetensors"},
    "another ending": {"file": "run.json"},
    "a lender outside": {
        "borrowed": {"x": Borrowed("../x.safetensors", 1, "x")}, "digests": {"x": DIGEST},
    },
    "a loan without digest": {"borrowed": {"x": Borrowed("x.safetensors", 1, "x")}},
    "two sizes": {"borrowed": {"x": Borrowed("1.safetensors", 9, "x")}, "digests": {"x": DIGEST}},
    "a negative size": {"bytes": -1},
    "a huge size": {"bytes": 1 << 63},
    "a negative step": {"step": -1},
    "a negative iteration": {"iteration": -1},
    "more iterations than can be": {"iteration": 1 << 40},
    "a negative length": {"output": {"stdout": -1}},
    "a negative journal": {"journal": -1},
    "another stream": {"output": {"../x": 1}},
    "a relative file": {"files": {"x": 1}},
    "a file above": {"files": {"/a/../b": 1}},
    "a negative length of a file": {"files": {"/a": -1}},
    "a digest that is none": {"digests": {"x": "zz"}},
    "a root that leads nowhere": {"tree": StateTree((("it", 7),), (), ())},
    "a negative reference": {"tree": tree(Node("list", items=(-1,)))},
    "objects without paths": {"tree": StateTree((), (Node("list"),), ())},
    "a field twice": {"tree": tree(Node("object", fields=(("a", 0), ("a", 0))))},
    "a root twice": {"tree": StateTree((("a", 0), ("a", 0)), (Node("list"),), ("",))},
    "an answer that is none": {"observed": (("time.time", ("f", "x")),)},
    "a constant that is none": {"tree": tree(Node("list", items=(("i", "x"),)))},
    "a negative shape": {
        "tree": tree(Node("array", array=ArrayFacts("torch", "float32", (-1, -4), "x", 0))),
    },
    "strides of another shape": {
        "tree": tree(
            Node("array", array=ArrayFacts("torch", "float32", (1,), "x", 0, strides=(1, 1)))
        ),
    },
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_a_manifest_that_says_what_none_can(what):
    raw = encode_manifest(manifest(**HOSTILE[what]))
    with pytest.raises(DamagedCheckpoint, match=r"it\.json: is not a manifest"):
        decode_manifest(raw, "it.json")


def test_one_file_for_two_states():
    one, other = manifest(digests={"x": DIGEST}), manifest(digests={"x": "1" * 32})
    both = msgspec.structs.replace(one, levels=one.levels + other.levels)
    with pytest.raises(DamagedCheckpoint, match="two states"):
        decode_manifest(encode_manifest(both), "it.json")


def test_deep_nesting_is_an_error_not_a_crash():
    for raw in (b"[" * 10**6, b'{"version":2,"digest":"","body":' + b'{"x":' * 10**6):
        with pytest.raises(DamagedCheckpoint, match=r"it\.json"):
            decode_manifest(raw, "it.json")


# ---------------------------------------------------------------- what a tree may make


def evil(marker):
    """Trees that would run a command, remove a file or write one, were they believed."""
    command = (("s", "touch"), ("s", str(marker)))
    shell = ("s", f"touch {marker}")
    system = Node("named", "posix:system")
    arguments = Node("tuple", "builtins:tuple", (shell,))
    closer = "tempfile:_TemporaryFileCloser"
    return {
        "a class that is called with items": [Node("frozenset", "subprocess:Popen", command)],
        "a class that is called": [Node("set", "subprocess:Popen")],
        "a class with a length": [Node("deque", "subprocess:Popen", text="3")],
        "a class that is a generator": [
            Node("generator", "subprocess:Popen", (("i", "0"),), text="python")
        ],
        "a call to take items from": [
            Node("held", "detrain.capture.held:HeldGenerator",
                 (1, 2, 3, ("i", "1"), 3)), system, arguments, Node("dict", "builtins:dict"),
        ],
        "a map of a function": [
            Node("iterator", "builtins:map", (1, 2), text="builtins:map"), system, arguments,
        ],
        "a partial": [
            Node("partial", "functools:partial", (1, 2, 3)), system, arguments,
            Node("dict", "builtins:dict"),
        ],
        "a function by way of a module": [Node("named", "torch.nn.functional:os.system")],
        "a function that evaluates": [Node("named", "builtins:eval")],
        "an object that cleans up": [
            Node("object", closer, fields=(
                ("name", ("s", str(marker))), ("delete", ("b", "1")), ("close_called", ("b", "0")),
                ("file", 1))),
            Node("object", "io:StringIO"),
        ],
        "a member of no enumeration": [Node("enum", "subprocess:Popen", text="communicate")],
        "a method for a class of a library": [
            Node("named", "torch.nn.modules.linear:Linear", fields=(("forward", 1),)),
            Node("named", "builtins:print"),
        ],
        "an import": [Node("named", "antigravity:webbrowser")],
    }  # fmt: skip


@pytest.mark.parametrize("what", list(evil("")))
def test_nothing_is_called_or_changed(what, tmp_path):
    marker = tmp_path / "marker"
    there = what == "an object that cleans up"
    if there:
        marker.write_text("mine")
    forward = torch.nn.Linear.forward
    nodes = evil(marker)[what]
    with pytest.raises(DetrainError):
        restore(tree(*nodes), {}, dict.__getitem__)
    assert marker.exists() == there
    assert torch.nn.Linear.forward is forward


def test_what_the_program_has_there_is_kept():
    live = {"it": [os.system, subprocess.Popen]}
    walked = walk(live)
    found = restore(walked.tree, {"it": [os.system, subprocess.Popen]}, dict.__getitem__)
    assert found["it"] == live["it"]


def test_what_computes_is_found_again():
    made = [torch.nn.functional.relu, torch.optim.SGD, math.sqrt, len, np.float32, dict]
    walked = walk({"it": made})
    assert restore(walked.tree, {"it": []}, dict.__getitem__)["it"] == made


def test_a_tuple_that_holds_itself():
    with pytest.raises(DamagedCheckpoint, match="holds itself"):
        restore(tree(Node("tuple", "builtins:tuple", (0,))), {}, dict.__getitem__)


@pytest.mark.parametrize(
    "node",
    [
        Node("nothing"),
        Node("array"),
        Node("list", array=ArrayFacts("torch", "float32", (), "x", 0)),
        Node("array", array=ArrayFacts("os", "float32", (), "x", 0)),
        Node("dict", items=(("i", "1"),)),
        Node("method", items=(0,)),
        Node("held", items=(0,)),
    ],
)
def test_a_node_that_no_form_makes(node):
    with pytest.raises(DamagedCheckpoint, match=r"some\.file: it0: expected"):
        check_tree(tree(node), FORMS, "some.file")


def array(**facts):
    plain = {"framework": "torch", "dtype": "float32", "shape": (2,), "leaf": "x", "storage": 0}
    kind = "numpy:ndarray" if facts.get("framework") == "numpy" else "torch:Tensor"
    return Node("array", kind, array=ArrayFacts(**{**plain, **facts}))


@pytest.mark.parametrize(
    "facts",
    [
        {"shape": (1 << 40,)},
        {"storage_bytes": 1 << 61},
        {"storage_bytes": 8, "strides": (1 << 40,)},
        {"storage_bytes": 8, "offset": 1},
        {"dtype": "float99"},
        {"dtype": "load"},
        {"device": "cuda:99"},
        {"framework": "numpy", "dtype": "O"},
        {"framework": "numpy", "dtype": "V99999999"},
        {"framework": "numpy", "dtype": "<f4", "shape": (1 << 40,)},
        {"framework": "numpy", "dtype": "<f4", "strides": (1 << 61,)},
        {"framework": "numpy", "dtype": "<f4", "strides": (4,), "storage_bytes": 1 << 61},
        {"framework": "numpy", "dtype": "[" * 1000},
    ],
)
def test_an_array_that_is_not_in_the_data(facts):
    with pytest.raises(ResumeMismatch, match="it0"):
        restore(tree(array(**facts)), {}, lambda _: memoryview(bytearray(8)))


def test_a_large_memory_that_is_hardly_used_takes_none():
    facts = {"storage_bytes": 1 << 33, "strides": (1 << 30,)}
    found = restore(tree(array(**facts)), {}, lambda _: memoryview(bytearray(b"\1" * 8)))["it"]
    assert found.untyped_storage().nbytes() == 1 << 33
    assert found.stride() == (1 << 30,)


@pytest.mark.parametrize(
    "node",
    [
        Node("value", "fractions:Fraction", text="1e999999999"),
        Node("iterator", "itertools:product", (1,), text="itertools:product"),
    ],
)
def test_numbers_that_would_take_all_memory(node):
    long = Node("value", "builtins:range", text="0 1000000000000 1")
    with pytest.raises(ResumeMismatch):
        restore(tree(node, long), {}, dict.__getitem__)


def test_a_generator_that_points_outside_of_itself():
    generator = np.random.Generator(np.random.MT19937(0))
    walked = walk({"it": generator})
    nodes = tuple(
        msgspec.structs.replace(
            node,
            items=tuple(
                ("i", "100000") if key == ("s", "pos") else item
                for key, item in zip(node.keys, node.items, strict=True)
            ),
        )
        if node.form == "dict"
        else node
        for node in walked.tree.nodes
    )
    assert nodes != walked.tree.nodes
    changed = msgspec.structs.replace(walked.tree, nodes=nodes)
    arrays = {leaf.name: memoryview(bytearray(leaf.array.tobytes())) for leaf in walked.leaves}
    with pytest.raises(ResumeMismatch, match="expected 0 to 624"):
        restore(changed, {"it": generator}, arrays.__getitem__)


# ---------------------------------------------------------------- files


def test_a_header_with_a_negative_shape(tmp_path):
    header = b'{"a":{"dtype":"F32","shape":[-1,-2],"data_offsets":[0,8]}}'
    path = tmp_path / "a.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
    with pytest.raises(DamagedCheckpoint, match="lies at"):
        read_arrays(path)


def test_empty_arrays_of_any_shape_are_read(tmp_path):
    header = b'{"a":{"dtype":"F32","shape":[5,0],"data_offsets":[0,0]}}'
    path = tmp_path / "a.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    assert read_arrays(path).keys() == {"a"}


@pytest.mark.parametrize("how", ["link", "pipe", "folder", "sparse"])
def test_what_is_no_file_is_not_read(tmp_path, how):
    store = LocalStore(tmp_path / "store")
    path = store.folder / "0000000001.json"
    if how == "link":
        (tmp_path / "outside").write_text("secret")
        path.symlink_to(tmp_path / "outside")
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "folder":
        path.mkdir()
    else:
        path.touch()
        os.truncate(path, 1 << 42)
    with pytest.raises(DamagedCheckpoint, match="expected"):
        store.read(path.name)
    path.rename(store.folder / "1.safetensors")
    if how != "sparse":
        with pytest.raises(DamagedCheckpoint, match="expected a file"):
            store.arrays("1.safetensors", 6)


@pytest.mark.parametrize("name", ["stdout.log", "checkpoints", "aside", "checkpoints/1.json"])
def test_a_run_with_a_link_in_it_is_not_touched(tmp_path, name):
    run, outside = tmp_path / "run", tmp_path / "outside"
    (run / "checkpoints").mkdir(parents=True)
    outside.mkdir()
    check_own_files(run, "checkpoints")
    path = run / name
    if path.is_dir():
        path.rmdir()
    path.symlink_to(outside)
    with pytest.raises(DamagedCheckpoint, match="link"):
        check_own_files(run, "checkpoints")
