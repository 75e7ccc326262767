from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detrain.state import decode_scalar, encode_scalar

PLAIN = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.complex_numbers(),
    st.text(), st.binary(), st.text(st.characters(categories=["Cs", "L"])),
)  # fmt: skip


@given(PLAIN)
def test_constants_come_back_exactly(value):
    again = decode_scalar(encode_scalar(value))
    assert type(again) is type(value)
    assert repr(again) == repr(value)


def test_integers_of_any_size():
    for value in (2**63 - 1, 2**63, -(2**63), 2**20000 + 1):
        assert decode_scalar(encode_scalar(value)) == value


def test_unknown_tags_are_refused():
    with pytest.raises(ValueError, match="unknown constant tag"):
        decode_scalar(("python", "__import__('os')"))
