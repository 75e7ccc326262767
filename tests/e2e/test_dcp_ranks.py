"""torch.distributed.checkpoint over a store, by several ranks: real processes that talk by gloo."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest
import torch
import torch.distributed.checkpoint as dcp

from detrain.checkpoint.store import LocalStore
from detrain.frameworks.torch.dcp import StoreReader

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:torch.distributed is disabled:UserWarning"),
]

RANK = """
import signal, sys, os
from pathlib import Path
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard, distribute_tensor
from detrain.checkpoint.store import LocalStore
from detrain.frameworks.torch.dcp import StoreReader, StoreWriter
from detrain.testing import Fault, faulty

folder, rank, world = Path(sys.argv[1]), *map(int, sys.argv[2:4])
dist.init_process_group(
    "gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=world
)
mesh = init_device_mesh("cpu", (world,))
store = LocalStore(folder / "store")
torch.manual_seed(0)
WHOLE = {
    "even": torch.randn(6, 4),
    "uneven": torch.randn(5, 3),
    "half": torch.randn(7).bfloat16(),
    "tiny": torch.randn(1, 2),
}

def parts(axis, blank):
    return {
        name: distribute_tensor(
            torch.zeros_like(each) if blank else each, mesh, [Shard(axis if each.dim() > 1 else 0)]
        )
        for name, each in WHOLE.items()
    }

def state(axis, blank):
    plain = {"step": 0, "note": None} if blank else {"step": 11, "note": ("a", 2.5)}
    both = torch.zeros(9) if blank else torch.arange(9.0)
    return {"parts": parts(axis, blank), "both": both, **plain}

def check(found):
    for name, each in WHOLE.items():
        assert torch.equal(found["parts"][name].full_tensor(), each), name
    assert torch.equal(found["both"], torch.arange(9.0))
    assert (found["step"], found["note"]) == (11, ("a", 2.5))

def trained(steps):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Linear(5, 3))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    train(model, optimizer, steps)
    return model, optimizer

def train(model, optimizer, steps):
    for step in range(steps):
        data = torch.randn(4, 6, generator=torch.Generator().manual_seed(step))
        model(data).pow(2).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

def bits(model):
    return {name: each.full_tensor() for name, each in model.state_dict().items()}
"""


def together(folder, body, world=2):
    """Run a program by so many ranks; gives their exit codes and what they said."""
    script = folder / "ranks.py"
    script.write_text(RANK + textwrap.dedent(body) + "\ndist.destroy_process_group()\n")
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen(
            [sys.executable, script, folder, str(rank), str(world)],
            env=env, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )
        for rank in range(world)
    ]  # fmt: skip
    said = [rank.communicate(timeout=200)[1] for rank in ranks]
    return [rank.returncode for rank in ranks], "\n".join(said)


def check_alone(folder):
    """Load it here, without any other rank."""
    torch.manual_seed(0)
    parts = {
        "even": torch.randn(6, 4),
        "uneven": torch.randn(5, 3),
        "half": torch.randn(7).bfloat16(),
        "tiny": torch.randn(1, 2),
    }
    found = {"parts": {name: torch.zeros_like(each) for name, each in parts.items()}, "note": None}
    store = LocalStore(folder / "store")
    dcp.load(found, storage_reader=StoreReader(store, "0000000011"), no_dist=True)
    assert found["note"] == ("a", 2.5)
    assert all(torch.equal(found["parts"][name], each) for name, each in parts.items())


SAVE = 'dcp.save(state(0, blank=False), storage_writer=StoreWriter(store, "0000000011"))'
LOAD = """
found = state({axis}, blank=True)
dcp.load(found, storage_reader=StoreReader(store, "0000000011"))
check(found)
"""
NAMES = ["0000000011-0.safetensors", "0000000011-1.safetensors", "0000000011.dcp.json"]


def test_what_ranks_save_others_load(tmp_path):
    """By as many ranks, cut in the other direction, and by one."""
    codes, said = together(tmp_path, SAVE + LOAD.format(axis=1))
    assert codes == [0, 0], said
    assert LocalStore(tmp_path / "store").names() == NAMES
    check_alone(tmp_path)


def test_fsdp_goes_on_to_the_same_bits(tmp_path):
    codes, said = together(
        tmp_path,
        """
        model, optimizer = trained(3)
        parts = dict(zip(("model", "optimizer"), get_state_dict(model, optimizer)))
        dcp.save(parts, storage_writer=StoreWriter(store, "it"))
        train(model, optimizer, 2)
        other, its = trained(1)
        parts = dict(zip(("model", "optimizer"), get_state_dict(other, its)))
        dcp.load(parts, storage_reader=StoreReader(store, "it"))
        set_state_dict(
            other, its, model_state_dict=parts["model"], optim_state_dict=parts["optimizer"]
        )
        train(other, its, 2)
        expected, found = bits(model), bits(other)
        assert expected.keys() == found.keys()
        assert all(torch.equal(expected[name], found[name]) for name in expected)
        """,
    )
    assert codes == [0, 0], said


def test_a_rank_that_fails_publishes_nothing(tmp_path):
    """An error of one rank's disk, then a rank that is killed: the checkpoint before stays."""
    codes, said = together(
        tmp_path,
        SAVE
        + """
import contextlib, errno
broken = faulty(folder / "store", Fault("fsync", errno=errno.EIO)) if rank == 1 else None
try:
    with broken or contextlib.nullcontext():
        dcp.save(state(0, blank=False), storage_writer=StoreWriter(store, "0000000012"))
except dcp.CheckpointException as error:
    assert "Input/output error" in str(error), error
else:
    raise AssertionError("it was saved")
found = state(1, blank=True)
dcp.load(found, storage_reader=StoreReader(store, "0000000011"))
check(found)
dist.barrier()
if rank == 1:
    store.put = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
dcp.save(state(0, blank=False), storage_writer=StoreWriter(store, "0000000013"))
""",
    )
    assert codes[1] == -9, said
    assert codes[0] != 0, said
    names = LocalStore(tmp_path / "store").names()
    assert [name for name in names if name.endswith(".json")] == ["0000000011.dcp.json"]
    check_alone(tmp_path)
