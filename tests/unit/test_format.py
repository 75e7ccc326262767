"""The data file is standard safetensors, and reading it trusts nothing."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from detrain.checkpoint.format import ArrayBytes, encode_header, read_arrays
from detrain.errors import DamagedCheckpoint

ARRAYS = {
    "weight": np.arange(6, dtype="float32").reshape(2, 3),
    "empty": np.zeros((0, 4), dtype="int64"),
    "flag": np.array([True, False]),
    "nought": np.array(2.5),
}


def write(path, arrays):
    listed = [
        ArrayBytes(name, array.dtype.str, array.shape, array.tobytes())
        for name, array in arrays.items()
    ]
    path.write_bytes(encode_header(listed) + b"".join(bytes(a.data) for a in listed))


def test_the_safetensors_package_reads_what_we_write(tmp_path):
    write(tmp_path / "a.safetensors", ARRAYS)
    found = load_file(tmp_path / "a.safetensors")
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        assert found[name].tobytes() == array.tobytes()
        assert found[name].shape == array.shape


def test_we_read_what_the_safetensors_package_writes(tmp_path):
    save_file(ARRAYS, tmp_path / "a.safetensors")
    found = read_arrays(tmp_path / "a.safetensors")
    assert {name: bytes(data) for name, data in found.items()} == {
        name: array.tobytes() for name, array in ARRAYS.items()
    }


def test_a_dtype_that_the_format_lacks_is_stored_as_bytes(tmp_path):
    write(tmp_path / "a.safetensors", {"c": np.array([1 + 2j])})
    assert load_file(tmp_path / "a.safetensors")["c"].tobytes() == np.array([1 + 2j]).tobytes()


@given(st.binary(max_size=64), st.integers(0, 400), st.integers(0, 255))
def test_altered_files_give_an_error_or_arrays_within_the_file(tmp_path_factory, tail, at, byte):
    path = tmp_path_factory.mktemp("fuzz") / "a.safetensors"
    write(path, ARRAYS)
    raw = bytearray(path.read_bytes())
    raw[min(at, len(raw) - 1)] = byte
    path.write_bytes(bytes(raw[: len(raw) - len(tail) % 9]) + tail)
    try:
        found = read_arrays(path)
    except DamagedCheckpoint as error:
        assert error.file == str(path)  # noqa: PT017
    else:
        assert sum(map(len, found.values())) <= path.stat().st_size


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cut off"),
        (struct.pack("<Q", 1 << 62) + b"{}", "claims"),
        (struct.pack("<Q", 2) + b"[]", "malformed"),
        (struct.pack("<Q", 2) + b"{}x", "follow"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, content, message):
    path = tmp_path / "bad.safetensors"
    path.write_bytes(content)
    with pytest.raises(DamagedCheckpoint, match=message):
        read_arrays(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DamagedCheckpoint, match="gone"):
        read_arrays(tmp_path / "gone.safetensors")
