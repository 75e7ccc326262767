"""A checkpoint as others read it: the same names and bits as the program's own state_dict."""

from __future__ import annotations

import json

import pytest
import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import load_file

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:torch.distributed is disabled:UserWarning"),
]

PROGRAM = """
import torch

class Config:
    def __init__(self):
        self.hidden, self.names = 4, ["a", "b"]

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.config = Config()
        self.body = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
        self.head = torch.nn.Linear(4, 3)
        self.head.weight = torch.nn.Parameter(self.body[0].weight.detach().T.clone())
        self.register_buffer("scale", torch.ones(1) * 2)
        self.register_buffer("passing", torch.ones(1), persistent=False)

    def forward(self, x):
        return self.head(self.body(x)) * self.scale * self.passing

torch.manual_seed(1)
model = Net()
other = torch.nn.Linear(3, 1)
groups = [{"params": model.parameters()}, {"params": other.parameters(), "lr": 1e-2}]
optimizer = torch.optim.Adam(groups)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)
losses = []
for step in range(8):
    if step == 6:
        torch.save({"model": model.state_dict(), "other": other.state_dict(),
                    "optimizer": optimizer.state_dict(), "losses": list(losses),
                    "scheduler": scheduler.state_dict()}, "own.pt")
    loss = other(model(torch.randn(5, 3))).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    losses.append(loss.item())
"""


def same(left, right):
    if isinstance(left, torch.Tensor):
        return left.dtype == right.dtype and torch.equal(left, right)
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right


@pytest.fixture(scope="module")
def done(warm, tmp_path_factory):
    from conftest import Runner

    runner = Runner(warm, tmp_path_factory.mktemp("export"))
    (runner.folder / "train.py").write_text(PROGRAM)
    ended = runner("run", "--name", "it", "--save-every", "3", "--seed", "1",
                   runner.folder / "train.py")  # fmt: skip
    assert ended.code == 0, ended.stderr
    own = torch.load(runner.folder / "own.pt", weights_only=True)
    return runner, own


def export(runner, *argv):
    ended = runner("export", "it", "--step", "6", *argv)
    assert ended.code == 0, ended.stderr
    return ended.stdout


def test_one_module(done):
    runner, own = done
    export(runner, "--object", "model", "--to", "one.safetensors")
    found = load_file(runner.folder / "one.safetensors")
    assert sorted(found) == sorted(own["model"])
    assert same(dict(found), dict(own["model"]))


def test_several_modules_and_state_dicts(done):
    runner, own = done
    export(runner, "--to", "all.pt")
    found = torch.load(runner.folder / "all.pt", weights_only=True)
    named = {f"model.{k}": v for k, v in own["model"].items()}
    named |= {f"other.{k}": v for k, v in own["other"].items()}
    assert list(found) == list(named)
    assert same(dict(found), named)
    assert "is there already" in runner("export", "it", "--to", "all.pt").stderr
    assert "there are: model, other" in runner(
        "export", "it", "--to", "x.pt", "--object", "modell").stderr  # fmt: skip


def test_everything(done):
    runner, own = done
    said = export(runner, "--all", "--to", "everything.pt")
    found = torch.load(runner.folder / "everything.pt", weights_only=True)
    for name in ("model", "other", "optimizer", "losses"):
        assert same(found[name], own[name]), name
    plain = {key: found["scheduler"][key] for key in ("last_epoch", "_last_lr", "step_size")}
    assert plain == {key: own["scheduler"][key] for key in plain}
    assert "of step 6" in said
    export(runner, "--all", "--to", "everything.safetensors")
    arrays = load_file(runner.folder / "everything.safetensors")
    sums = sorted(tensor.double().sum().item() for tensor in own["model"].values())
    assert set(sums) <= {tensor.double().sum().item() for tensor in arrays.values()}


def test_a_folder_for_torch_distributed_checkpoint(done):
    runner, own = done
    export(runner, "--object", "model", "--to", "folder")
    found = {name: torch.zeros_like(tensor) for name, tensor in own["model"].items()}
    dcp.load(found, checkpoint_id=runner.folder / "folder", no_dist=True)
    assert same(found, dict(own["model"]))


def test_a_folder_for_model_hubs(done):
    runner, own = done
    export(runner, "--object", "model", "--to", "net-hf")
    assert same(dict(load_file(runner.folder / "net-hf" / "model.safetensors")), dict(own["model"]))
    config = json.loads((runner.folder / "net-hf" / "config.json").read_text())
    assert config == {"hidden": 4, "names": ["a", "b"]}


def test_the_newest_one_is_taken(done):
    runner, _ = done
    assert "of step 6" in runner("export", "it", "--to", "n.pt").stdout
    assert "there are: 3, 6" in runner("export", "it", "--to", "m.pt", "--step", "4").stderr
