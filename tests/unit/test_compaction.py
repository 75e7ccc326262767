"""Compacted checkpoints are the same checkpoints, and nothing that one needs is ever removed."""

from __future__ import annotations

import random
import threading

import msgspec
import pytest

from detrain.checkpoint.commit import (
    Lent,
    collect,
    load_newest,
    manifest_steps,
    publish,
    read_checkpoint,
    retire,
    save_state,
)
from detrain.checkpoint.compaction import compact
from detrain.checkpoint.format import ArrayBytes
from detrain.checkpoint.manifest import (
    Borrowed,
    Manifest,
    Packed,
    SavedLevel,
    SavedLoop,
    decode_manifest,
    encode_manifest,
)
from detrain.checkpoint.reading import verified_arrays
from detrain.checkpoint.retention import Retention
from detrain.checkpoint.snapshot import Snapshot
from detrain.checkpoint.sound import MOST_LAYERS, MOST_TIMES
from detrain.checkpoint.store import LocalStore
from detrain.errors import DamagedCheckpoint
from detrain.state import StateTree
from detrain.trace.log import EMPTY

SIZE = 40_000
FIXED = random.Random(9).randbytes(SIZE)


def arrays_of(step):
    """One that changes a little with each step, one that stays, one that is small."""
    moved = bytearray(random.Random(0).randbytes(SIZE))
    for at in range(0, SIZE, 50):
        moved[at] = step
    return {"moves": bytes(moved), "stays": FIXED, "small": bytes([step]) * 100}


def snapshot(arrays):
    made = (ArrayBytes(name, "uint8", (len(data),), data) for name, data in arrays.items())
    return Snapshot(StateTree((), (), ()), tuple(made), {})


def manifest(step, state, *others, finished=()):
    levels = (SavedLevel("site", 0, "", "", "", (), each) for each in (*others, state))
    return Manifest(step, 0.0, finished, tuple(levels), EMPTY, {})


def commit(store, step, **more):
    state = save_state(store, snapshot({**arrays_of(step), **more}), f"{step:08d}")
    publish(store, manifest(step, state))
    return state


def content(store, step):
    state = read_checkpoint(store, step).levels[-1].state
    return {name: bytes(data) for name, data in verified_arrays(store, state).items()}


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path)


@pytest.fixture
def history(store):
    for step in range(1, 9):
        commit(store, step)
    return store


def test_all_but_the_newest_are_the_same_in_less_room(history):
    raw = [history.read(f"{step:010d}.json") for step in (7, 8)]
    done = compact(history, 2, alone=True)
    assert done.steps == [1, 2, 3, 4, 5, 6]
    assert done.troubles == []
    for step in range(1, 9):
        assert content(history, step) == arrays_of(step)
    assert [history.read(f"{step:010d}.json") for step in (7, 8)] == raw
    assert done.after < 0.6 * done.before
    packed = [name for name in history.names() if name.endswith("-packed.safetensors")]
    plain = [name for name in history.names() if name.endswith(".safetensors")]
    assert (len(packed), len(plain)) == (6, 8)
    assert load_newest(history, lambda error, _: pytest.fail(str(error))).step == 8


def test_layers_are_few_and_unchanged_arrays_lie_in_one_place(history):
    compact(history, 1, alone=True)
    states = [read_checkpoint(history, step).levels[-1].state for step in range(1, 8)]
    assert [len(state.packed["moves"].layers) for state in states] == [1, 2, 3, 4, 1, 2, 3]
    assert MOST_LAYERS == 4
    assert len({state.packed["stays"] for state in states}) == 1
    assert all("small" not in state.packed for state in states)


def test_small_arrays_stay_where_they_are(store):
    for step in range(1, 4):
        state = save_state(store, snapshot({"small": bytes([step]) * 100}), f"{step}")
        publish(store, manifest(step, state))
    before = store.names()
    assert compact(store, 1, alone=True).steps == []
    assert store.names() == [*before, "compaction.lock"]


def test_to_compact_again_changes_nothing(history):
    compact(history, 2, alone=True)
    before = {name: history.read(name) for name in history.names()}
    assert compact(history, 2, alone=True).steps == []
    assert {name: history.read(name) for name in history.names()} == before
    commit(history, 9)
    assert compact(history, 2, alone=True).steps == [7]
    assert [content(history, step) for step in range(1, 10)] == [
        arrays_of(step) for step in range(1, 10)
    ]


@pytest.mark.parametrize("given_up", [[1], [1, 2, 3], [2, 4], [5]])
def test_what_others_are_packed_against_stays(history, given_up):
    """The base of a checkpoint is given up: its file is not."""
    compact(history, 2, alone=True)
    history.remove(f"{step:010d}.json" for step in given_up)
    collect(history, {})
    for step in manifest_steps(history):
        assert content(history, step) == arrays_of(step)
    history.remove(f"{step:010d}.json" for step in range(1, 8))
    collect(history, {})
    assert history.names() == ["0000000008.json", "00000008.safetensors", "compaction.lock"]


def test_states_that_several_checkpoints_name(store):
    outer = save_state(store, snapshot({"rows": FIXED[::-1]}), "outer")
    left = save_state(store, snapshot({"left": FIXED[:9000]}), "left")
    finished = (SavedLoop("before", "", left),)
    for step in range(1, 6):
        lent = Lent(outer.lends(), outer.files())
        state = save_state(store, snapshot({**arrays_of(step), "x": FIXED[::-1]}), f"{step}", lent)
        publish(store, manifest(step, state, outer, finished=finished))
    compact(store, 1, alone=True)
    assert {"outer.safetensors", "left.safetensors"} <= set(store.names())  # the newest has them
    commit(store, 6)
    compact(store, 1, alone=True)
    assert not {"outer.safetensors", "left.safetensors"} & set(store.names())
    for step in range(1, 6):
        found = read_checkpoint(store, step)
        assert bytes(verified_arrays(store, found.levels[0].state)["rows"]) == FIXED[::-1]
        assert bytes(verified_arrays(store, found.finished[0].exit)["left"]) == FIXED[:9000]
        assert content(store, step) == {**arrays_of(step), "x": FIXED[::-1]}


def test_a_run_that_goes_on_meanwhile(history):
    """The run retires by what it knows of its manifests, which were compacted since."""
    known = {step: read_checkpoint(history, step) for step in manifest_steps(history)}
    done = compact(history, 2, alone=False)
    assert done.steps == [1, 2, 3, 4, 5, 6]
    commit(history, 9)
    oldest = retire(history, Retention(last=2, every=3), lambda _: None, known)
    assert manifest_steps(history) == [3, 6, 8, 9]
    assert [content(history, step) for step in (3, 6, 8, 9)] == [
        arrays_of(step) for step in (3, 6, 8, 9)
    ]
    assert oldest == read_checkpoint(history, 3)
    assert "00000003.safetensors" not in history.names()


def test_a_checkpoint_that_is_given_up_meanwhile_stays_given_up(history):
    seen = []

    def reached(point):
        if point == "packed-verified":
            seen.append(point)
            if len(seen) == 2:
                history.remove(["0000000002.json"])
                retire(history, Retention(last=20), lambda _: None, {})

    assert compact(history, 2, reached, alone=False).steps == [1, 3, 4, 5, 6]
    assert 2 not in manifest_steps(history)
    collect(history, {})
    for step in (1, 3, 4, 5, 6, 7, 8):
        assert content(history, step) == arrays_of(step)
    assert not [name for name in history.names() if name.endswith(".packing")]


def test_runs_and_compactions_side_by_side(history):
    """Many times: a run publishes and retires while its older checkpoints are compacted."""
    stop, errors = threading.Event(), []

    def compacting():
        while not stop.is_set():
            errors.extend(compact(LocalStore(history.folder), 2, alone=False).troubles)

    thread = threading.Thread(target=compacting)
    thread.start()
    known: dict[int, Manifest] = {}
    for step in range(9, 40):
        known[step] = read_checkpoint(history, commit_step(history, step))
        retire(history, Retention(last=2, every=4), lambda _: None, known)
        for kept in manifest_steps(history)[-4:]:
            assert content(history, kept) == arrays_of(kept)
    stop.set()
    thread.join()
    compact(history, 2, alone=True)
    for step in manifest_steps(history):
        assert content(history, step) == arrays_of(step)
    assert not errors


def commit_step(store, step):
    commit(store, step)
    return step


def flip(path, near):
    """Alter an array of a file."""
    raw = bytearray(path.read_bytes())
    raw[raw.index(near) + 20] ^= 1
    path.write_bytes(raw)
    return bytes(raw)


def test_a_damaged_array_is_not_packed(history):
    path = history.folder / "00000003.safetensors"
    raw = flip(path, arrays_of(3)["moves"])
    before = history.read("0000000003.json")
    done = compact(history, 2, alone=True)
    assert done.steps == [1, 2, 4, 5, 6]
    assert "the checkpoint of step 3 stays as it is" in done.troubles[0]
    assert history.read("0000000003.json") == before
    assert path.read_bytes() == raw
    assert content(history, 4) == arrays_of(4)


def test_a_damaged_array_that_lies_elsewhere_too_is_mended(history):
    flip(history.folder / "00000003.safetensors", FIXED)
    with pytest.raises(DamagedCheckpoint):
        content(history, 3)
    compact(history, 2, alone=True)
    assert content(history, 3) == arrays_of(3)


def test_what_would_be_referred_to_is_read_first(history):
    """A packed array that was damaged since is not taken for one that is whole."""
    compact(history, 2, alone=True)
    state = read_checkpoint(history, 1).levels[-1].state
    layer = bytes(history.arrays(state.file, state.bytes)["stays"])
    flip(history.folder / state.file, layer[100:200])
    commit(history, 9)
    done = compact(history, 2, alone=True)
    assert done.steps == []
    assert "the checkpoint of step 7 stays as it is" in done.troubles[0]
    assert content(history, 7) == arrays_of(7)


def test_a_damaged_base_is_found(history):
    compact(history, 2, alone=True)
    path = history.folder / "00000001-packed.safetensors"
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 0x10
    path.write_bytes(raw)
    with pytest.raises(DamagedCheckpoint):
        content(history, 3)


def test_one_at_a_time(history):
    inside = []

    def reached(point):
        if point == "packed-synced" and not inside:
            inside.append(compact(history, 2, alone=False))

    assert compact(history, 2, reached, alone=True).steps
    assert inside[0].steps == []


def changed(store, **packed):
    found = read_checkpoint(store, 2)
    state = found.levels[-1].state
    new = msgspec.structs.replace(
        state, packed={**state.packed, "moves": msgspec.structs.replace(
            state.packed["moves"], **packed)},
    )  # fmt: skip
    level = msgspec.structs.replace(found.levels[-1], state=new)
    return msgspec.structs.replace(found, levels=(level,))


PLACE = Borrowed("00000001-packed.safetensors", 1, "moves")
LIES = {
    "a size that no file holds": ({"size": 1 << 40}, "bytes in"),
    "a negative size": ({"size": -1}, "expected a count"),
    "no layer": ({"layers": ()}, "lies in 0 layers"),
    "many layers": ({"layers": (PLACE,) * (MOST_LAYERS + 1)}, "lies in 5 layers"),
    "odd elements": ({"width": 3}, "elements of 3 bytes"),
    "a path": ({"layers": (Borrowed("../x.safetensors", SIZE, "x"),)}, "not the name"),
    "two sizes of a file": (
        {"layers": (PLACE, Borrowed("00000001-packed.safetensors", 2 * SIZE, "moves"))},
        "bytes in|in one place",
    ),
}


@pytest.mark.parametrize("what", LIES)
def test_a_manifest_that_lies_is_refused_before_anything_is_unpacked(history, what):
    compact(history, 2, alone=True)
    lie, message = LIES[what]
    raw = encode_manifest(changed(history, **lie))
    with pytest.raises(DamagedCheckpoint, match=message):
        decode_manifest(raw, "it")


def test_many_arrays_in_one_small_file_are_refused(history):
    """Each could be as large as the file allows; all together they can't."""
    compact(history, 2, alone=True)
    found = read_checkpoint(history, 2)
    state = found.levels[-1].state
    layer = state.packed["moves"].layers[-1]
    most = MOST_TIMES * layer.bytes
    many = {f"a{n}": Packed(most - n, 1, (layer,)) for n in range(9)}
    lie = msgspec.structs.replace(
        state,
        packed=many,
        digests={**dict.fromkeys(many, "0" * 32), **state.digests},
    )
    level = msgspec.structs.replace(found.levels[-1], state=lie)
    raw = encode_manifest(msgspec.structs.replace(found, levels=(level,)))
    with pytest.raises(DamagedCheckpoint, match="are packed in files of"):
        decode_manifest(raw, "it")


@pytest.mark.parametrize(
    ("lie", "message"),
    [
        ({"layers": (Borrowed("00000004-packed.safetensors", 0, "moves"),)}, "altered|unpacked"),
        ({"layers": (Borrowed("00000004-packed.safetensors", 0, "none"),)}, "missing|only one"),
        ({"layers": (Borrowed("00000008.safetensors", 0, "moves"),)}, "unpacked|cut off|only one"),
        ({"size": SIZE - 1}, "holds more"),
        ({"size": SIZE + 1}, "cut off"),
        ({"width": 4}, "altered"),
    ],
)  # fmt: skip
def test_layers_that_are_others_are_found(history, lie, message):
    compact(history, 2, alone=True)
    if "layers" in lie:
        layer = lie["layers"][0]
        size = (history.folder / layer.file).stat().st_size
        own = read_checkpoint(history, 2).levels[-1].state.packed["moves"].layers[-1]
        lie = {"layers": (Borrowed(layer.file, size, layer.name), own)}
    publish(history, changed(history, **lie))
    with pytest.raises(DamagedCheckpoint, match=message):
        content(history, 2)
