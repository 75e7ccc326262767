"""Which arrays are written again, and which lie in a file already."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from detrain.checkpoint.lending import WORTH_A_FILE, WORTH_BORROWING, part
from detrain.checkpoint.manifest import Borrowed

BIG = WORTH_A_FILE


def place(file, size, name="x"):
    return Borrowed(file, size, name)


def test_a_file_lends_if_half_of_it_is_borrowed():
    lent = {"d1": place("old", 3 * BIG)}
    assert part({"a": "d1"}, {"a": 2 * BIG}, lent).borrowed == {"a": lent["d1"]}
    found = part({"a": "d1"}, {"a": BIG}, lent)
    assert (found.borrowed, found.lasting) == ({}, {"a"})


def test_a_file_that_is_named_anyway_lends_everything():
    lent = {"d1": place("old", 1000 * BIG)}
    assert part({"a": "d1"}, {"a": 4096}, lent, {"old"}).borrowed == {"a": lent["d1"]}


def test_little_that_lasts_is_written_again():
    lent = {"d1": place("old", BIG)}
    found = part({"a": "d1"}, {"a": 4096}, lent)
    assert (found.borrowed, found.lasting) == ({}, frozenset())


def test_an_array_that_two_names_have_counts_once():
    lent = {"d1": place("old", 3 * BIG)}
    found = part({"a": "d1", "b": "d1"}, {"a": BIG, "b": BIG}, lent)
    assert found.lasting == {"a", "b"}


arrays = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=2),
    st.tuples(st.sampled_from("pqrstu"), st.integers(0, 4 * BIG)),
)


@given(arrays, st.dictionaries(st.sampled_from("pqrstu"), st.sampled_from(["f1", "f2", "f3"])))
def test_no_file_is_kept_for_less_than_half_of_it(arrays, places):
    # Equal bytes have equal digests and sizes.
    sizes = dict(arrays.values())
    whole = {"f1": 3 * BIG, "f2": BIG, "f3": 9 * BIG}
    lent = {digest: place(file, whole[file]) for digest, file in places.items()}
    digests = {name: digest for name, (digest, _) in arrays.items()}
    found = part(digests, {name: sizes[digest] for name, digest in digests.items()}, lent)
    assert found.borrowed.keys() | found.lasting <= digests.keys()
    assert not found.borrowed.keys() & found.lasting
    for file in {each.file for each in found.borrowed.values()}:
        used = {digests[n] for n, each in found.borrowed.items() if each.file == file}
        assert 2 * sum(sizes[digest] for digest in used) >= whole[file]
    for name in found.borrowed.keys() | found.lasting:
        assert sizes[digests[name]] >= WORTH_BORROWING
        assert digests[name] in lent
