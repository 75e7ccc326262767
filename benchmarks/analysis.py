"""Seconds that the analysis of a program takes, by its length.

    python benchmarks/analysis.py [--profile LINES]
    DETRAIN_SCRIPTS=/some/folder python benchmarks/analysis.py

Programs are generated: modules of models, data sets, helpers and a training function each, with the
calls of libraries that real ones have, and a script that trains with all of them. The folder of
DETRAIN_SCRIPTS, if it is there, has an `index.json` with a list of `name`, `script` and
`project_lines`; its programs are analysed too. The growth exponent is the slope of log seconds over
log lines: 1 is linear.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import math
import os
import platform
import pstats
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from detrain.analysis.analyse import analyse_script
from detrain.errors import DetrainError

SIZES = (250, 500, 1000, 2000, 4000)
RESULTS = Path(__file__).parent / "results" / "analysis.md"

HEAD = '''"""Part {n} of a generated program."""
import math
import random
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset
'''

PART = '''

class Samples{n}(Dataset):
    """Vectors with noise, normalised when they are asked for."""

    def __init__(self, count, width, noise=0.1):
        self.width = width
        self.noise = noise
        self.data = np.random.rand(count, width).astype(np.float32)
        self.targets = (self.data.sum(1) > width / 2).astype(np.int64)
        self.seen = {{}}

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        row = self.data[index] + self.noise * np.random.randn(self.width).astype(np.float32)
        if random.random() < 0.5:
            row = row[::-1].copy()
        self.seen[index] = self.seen.get(index, 0) + 1
        return torch.from_numpy(row), int(self.targets[index])


class Block{n}(nn.Module):
    """A residual block."""

    def __init__(self, width, dropout):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, 2 * width)
        self.outer = nn.Linear(2 * width, width)
        self.drop = nn.Dropout(dropout)
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        hidden = F.gelu(self.inner(self.norm(x)))
        return x + self.scale * self.drop(self.outer(hidden))


class Net{n}(nn.Module):
    """Blocks between an embedding and a head."""

    def __init__(self, width, depth, classes, dropout=0.1):
        super().__init__()
        self.embed = nn.Linear(width, 32)
        self.blocks = nn.ModuleList([Block{n}(32, dropout) for _ in range(depth)])
        self.head = nn.Linear(32, classes)
        self.calls = 0
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)

    def forward(self, x):
        self.calls += 1
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Meter{n}:
    """A running mean."""

    def __init__(self, name):
        self.name = name
        self.reset()

    def reset(self):
        self.total = 0.0
        self.count = 0

    def update(self, value, count=1):
        self.total += value * count
        self.count += count

    @property
    def mean(self):
        return self.total / max(self.count, 1)

    def __str__(self):
        return f"{{self.name}} {{self.mean:.4f}}"


def rate{n}(step, warmup, total, base):
    """Warm-up, then a cosine."""
    if step < warmup:
        return base * (step + 1) / warmup
    done = (step - warmup) / max(1, total - warmup)
    return base * 0.5 * (1 + math.cos(math.pi * done))


def mixed{n}(x, y, alpha):
    """Pairs of samples, blended."""
    share = np.random.beta(alpha, alpha)
    order = torch.randperm(x.size(0))
    blend = share * x + (1 - share) * x[order]
    return blend, y, y[order], share


@torch.no_grad()
def evaluate{n}(model, loader, device):
    """Loss and accuracy."""
    model.eval()
    loss, right, seen = Meter{n}("loss"), 0, 0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        out = model(x)
        loss.update(F.cross_entropy(out, y).item(), len(y))
        right += (out.argmax(1) == y).sum().item()
        seen += len(y)
    return {{"loss": loss.mean, "accuracy": right / max(seen, 1)}}


def train{n}(args, device, log):
    """Train one network."""
    train_set, test_set = Samples{n}(512, 16), Samples{n}(128, 16, noise=0.0)
    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=args.batch_size)
    model = Net{n}(16, args.depth, 2).to(device)
    groups = [
        {{"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": 0.01}},
        {{"params": [p for p in model.parameters() if p.dim() <= 1], "weight_decay": 0.0}},
    ]
    optimizer = torch.optim.AdamW(groups, lr=args.lr)
    best, history, step = 0.0, [], 0
    total = args.epochs * len(train_loader)
    for epoch in range(args.epochs):
        model.train()
        meter, started = Meter{n}("loss"), time.time()
        for i, (x, y) in enumerate(train_loader):
            for group in optimizer.param_groups:
                group["lr"] = rate{n}(step, args.warmup, total, args.lr)
            x, y = x.to(device), y.to(device)
            blend, y_a, y_b, share = mixed{n}(x, y, args.alpha)
            optimizer.zero_grad()
            out = model(blend)
            loss = share * F.cross_entropy(out, y_a) + (1 - share) * F.cross_entropy(out, y_b)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            meter.update(loss.item(), len(y))
            step += 1
            if i % args.log_every == 0:
                print(f"epoch {{epoch}} step {{step}} {{meter}}")
        scores = evaluate{n}(model, test_loader, device)
        history.append({{"epoch": epoch, "took": time.time() - started, **scores}})
        if scores["accuracy"] > best:
            best = scores["accuracy"]
            torch.save(model.state_dict(), args.out / "best{n}.pt")
        log(f"net {n} epoch {{epoch}}: {{scores}}")
    return model, history
'''

SCRIPT = '''"""A generated program that trains {count} networks."""
import argparse
import random
from pathlib import Path

import numpy as np
import torch
{imports}


def log(text):
    print(text, flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--warmup", type=int, default=10)
    parser.add_argument("--alpha", type=float, default=0.2)
    parser.add_argument("--log-every", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("out"))
    args = parser.parse_args()
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    args.out.mkdir(parents=True, exist_ok=True)
    results = {{}}
{calls}
    log(results)


if __name__ == "__main__":
    main()
'''


def generate(lines: int, folder: Path) -> tuple[Path, int]:
    """Write a program of about so many lines; gives its script and its length."""
    part = PART.count("\n") + HEAD.count("\n")
    count = max(1, round((lines - 35) / (part + 2)))
    for n in range(count):
        (folder / f"part{n}.py").write_text(HEAD.format(n=n) + PART.format(n=n))
    imports = "\n".join(f"from part{n} import train{n}" for n in range(count))
    calls = "\n".join(f"    results[{n}] = train{n}(args, device, log)" for n in range(count))
    script = folder / "train.py"
    script.write_text(SCRIPT.format(count=count, imports=imports, calls=calls))
    return script, sum(path.read_text().count("\n") for path in folder.glob("*.py"))


def timed(script: Path) -> float:
    """Processor seconds of an analysis; the best of two, as others may be at work too."""
    best = math.inf
    for _ in range(2):
        started = time.process_time()
        analyse_script(script, ())
        best = min(best, time.process_time() - started)
        if best > 5:
            break
    return best


def exponent(points: list[tuple[int, float]]) -> float:
    """The slope of log seconds over log lines, by least squares."""
    xs = [math.log(lines) for lines, _ in points]
    ys = [math.log(seconds) for _, seconds in points]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    above = sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True))
    return above / sum((a - x) ** 2 for a in xs)


def real(folder: Path) -> list[tuple[str, int, float | None]]:
    """The programs of a folder: name, lines, seconds or None if it is too large."""
    found: list[tuple[str, int, float | None]] = []
    for each in json.loads((folder / "index.json").read_text()):
        try:
            seconds: float | None = timed(Path(each["script"]))
        except DetrainError:
            seconds = None
        found.append((each["name"], each["project_lines"], seconds))
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--profile", type=int, metavar="LINES")
    chosen = parser.parse_args()
    console = Console()
    if chosen.profile:
        with tempfile.TemporaryDirectory() as folder:
            script, _ = generate(chosen.profile, Path(folder))
            with cProfile.Profile() as profile:
                analyse_script(script, ())
        pstats.Stats(profile).sort_stats("tottime").print_stats(35)
        return
    table = Table("lines", "seconds", "lines/s", box=None, pad_edge=False)
    points = []
    for size in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            script, lines = generate(size, Path(folder))
            points.append((lines, timed(script)))
        row = (f"{lines:,}", f"{points[-1][1]:.2f}", f"{lines / points[-1][1]:,.0f}")
        table.add_row(*row)
    console.print(table)
    console.print(f"growth exponent {exponent(points):.2f}")
    programs = []
    if (folder := Path(os.environ.get("DETRAIN_SCRIPTS", ""))).joinpath("index.json").is_file():
        programs = real(folder)
        summary(console, programs)
    write(points, programs)


def summary(console: Console, programs: list[tuple[str, int, float | None]]) -> None:
    """The slowest, and how many are fast."""
    done = [(lines, seconds) for _, lines, seconds in programs if seconds is not None]
    console.print(
        f"{len(programs)} real programs, {sum(n for n, _ in done):,} lines in "
        f"{sum(s for _, s in done):.1f} s; growth exponent "
        f"{exponent([(n, s) for n, s in done if n >= 100]):.2f}"
    )
    for name, lines, seconds in sorted(programs, key=lambda each: -(each[2] or math.inf))[:12]:
        took = "too large" if seconds is None else f"{seconds:.2f} s"
        console.print(f"  {took:>10}  {lines:>7,} lines  {name}")


def write(points: list[tuple[int, float]], programs: list[tuple[str, int, float | None]]) -> None:
    """The results as markdown; real programs as a sum."""
    lines = [
        "# Seconds of the analysis",
        "",
        f"By `python benchmarks/analysis.py`, processor seconds. {platform.system()} "
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}.",
        "",
        "| lines | seconds | lines/s |",
        "| ---: | ---: | ---: |",
        *(f"| {n:,} | {s:.2f} | {n / s:,.0f} |" for n, s in points),
        "",
        f"Growth exponent {exponent(points):.2f}.",
    ]
    done = sorted((n, s) for _, n, s in programs if s is not None)
    if done:
        thousand = [s / n * 1000 for n, s in done if n >= 300]
        lines += [
            "",
            f"{len(programs)} real programs ({sum(n for n, _ in done):,} lines): "
            f"{sum(s for _, s in done):.0f} s in all, "
            f"{sorted(thousand)[len(thousand) // 2]:.2f} s for 1,000 lines in the median, the "
            f"longest ({done[-1][0]:,} lines) {done[-1][1]:.1f} s; growth exponent "
            f"{exponent([(n, s) for n, s in done if n >= 100]):.2f}.",
        ]
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
