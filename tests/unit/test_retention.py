"""Which checkpoints are kept, as a rule and in a real store."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detrain.checkpoint.commit import (
    Lent,
    load_newest,
    manifest_steps,
    publish,
    retire,
    save_state,
)
from detrain.checkpoint.format import ArrayBytes
from detrain.checkpoint.manifest import Manifest, SavedLevel, SavedLoop
from detrain.checkpoint.protected import protect, protecting
from detrain.checkpoint.retention import Retention, garbage, retired
from detrain.checkpoint.snapshot import Snapshot
from detrain.checkpoint.store import LocalStore
from detrain.state import StateTree
from detrain.trace.log import EMPTY

STEPS = st.sets(st.integers(0, 500))
RULES = st.builds(Retention, st.integers(1, 6), st.none() | st.integers(1, 80))
NAMES = st.dictionaries(st.text(max_size=3), st.integers(0, 500), max_size=4)


@given(STEPS, st.integers(1, 10))
def test_the_last_ones_are_kept(steps, last):
    gone = retired(steps, Retention(last))
    kept = steps - set(gone)
    assert len(kept) == min(last, len(steps))
    assert not gone or max(gone) < min(kept)


@given(STEPS, RULES, NAMES)
def test_what_is_kept(steps, rule, names):
    gone = set(retired(steps, rule, names))
    assert gone <= steps
    assert gone.isdisjoint(names.values())
    assert gone.isdisjoint(sorted(steps)[-rule.last :])
    if rule.every is not None:
        for multiple in range(rule.every, 501, rule.every):
            window = [step for step in steps if multiple <= step < multiple + rule.every]
            assert not window or min(window) not in gone


@given(STEPS, RULES, NAMES)
def test_nothing_else_is_kept(steps, rule, names):
    kept = steps - set(retired(steps, rule, names))
    others = kept - set(names.values()) - set(sorted(steps)[-rule.last :])
    if rule.every is None:
        assert not others
    else:
        assert len({step // rule.every for step in others}) == len(others)


@given(STEPS, RULES, NAMES, STEPS)
def test_to_ask_again_changes_nothing_and_time_takes_no_place(steps, rule, names, later):
    kept = steps - set(retired(steps, rule, names))
    assert not retired(kept, rule, names)
    assert retired(steps, rule, names) == sorted(retired(steps, rule, names))
    if rule.every is not None and steps:
        ahead = {max(steps) + 1 + step for step in later}
        firsts = {
            min(s for s in steps if s // rule.every == window)
            for window in {step // rule.every for step in steps if step >= rule.every}
        }
        assert firsts.isdisjoint(retired(kept | ahead, rule, names))


@given(st.sets(st.text()), st.sets(st.text()))
def test_nothing_named_is_garbage(files, named):
    assert set(garbage(files, named)) == files - named


def snapshot(number, shared):
    data = {"own": bytes([number % 256]) * 2048, "shared": bytes([shared]) * 4096}
    made = (ArrayBytes(name, "uint8", (len(raw),), raw) for name, raw in data.items())
    return Snapshot(StateTree((), (), ()), tuple(made), {})


@settings(max_examples=8, deadline=None)
@given(
    epochs=st.lists(st.integers(1, 4), min_size=1, max_size=5),
    rule=st.builds(Retention, st.integers(1, 3), st.none() | st.integers(1, 5)),
    wanted=st.sets(st.integers(1, 12), max_size=2),
)
def test_all_that_a_kept_checkpoint_names_stays(tmp_path_factory, epochs, rule, wanted):
    """Levels that several checkpoints name, exit states, borrowed arrays: none is removed early."""
    store, step, number = LocalStore(tmp_path_factory.mktemp("store")), 0, 0
    finished: tuple[SavedLoop, ...] = ()
    known: dict[int, Manifest] = {}
    for epoch, steps in enumerate(epochs):
        number += 1
        outer = save_state(store, snapshot(number, epoch), f"{number:08d}")
        for _ in range(steps):
            step, number = step + 1, number + 1
            lent = Lent(outer.lends(), outer.files())
            inner = save_state(store, snapshot(number, epoch), f"{number:08d}", lent)
            assert inner.borrowed
            levels = (
                SavedLevel("outer", epoch, "", "", "", finished, outer),
                SavedLevel("inner", 0, "", "", "", (), inner),
            )
            publish(store, Manifest(step, 0.0, finished, levels, EMPTY, {}))
            if step in wanted:
                with protecting(store.folder):
                    protect(store.folder, {str(s): s for s in wanted if s <= step})
            retire(store, rule, lambda _: None, known)
            for each in manifest_steps(store):
                assert known[each].data_files().keys() <= set(store.names())
            assert {s for s in wanted if s <= step} <= set(manifest_steps(store))
        number += 1
        left = SavedLoop("phase", "", save_state(store, snapshot(number, 99), f"{number:08d}"))
        finished = (*finished, left)[-2:]
    assert load_newest(store, lambda error, _: pytest.fail(str(error))).step == step
    named = {file for manifest in known.values() for file in manifest.data_files()}
    unnamed = {n for n in store.names() if n.endswith(".safetensors")} - named
    assert unnamed <= {f"{number:08d}.safetensors"}  # the last exit state was never published
