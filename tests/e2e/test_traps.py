"""Programs that each made a prototype wrong or break once: exact, or refused with the reason."""

from __future__ import annotations

import textwrap

import pytest

pytestmark = pytest.mark.slow

OPTIONS = ("--save-every", "3", "--digest-every", "2", "--seed", "1")

HEAD = """
import itertools, os, random, sys, time
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
x = torch.randn(24, 4)
y = x.sum(1, keepdim=True)
data = TensorDataset(x, y)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 1))
opt = torch.optim.Adam(model.parameters(), lr=0.01)
def update(a, b):
    loss = nn.functional.mse_loss(model(a), b)
    opt.zero_grad(); loss.backward(); opt.step()
    return loss.item()
"""

TRAPS = {
    "walrus in while with else": """
        i = 0
        while (i := i + 1) < 12:
            print(i, update(x, y))
        else:
            print("else", i)
        print("end", i)
    """,
    "walrus in a for header": """
        for e in range(n := 4):
            for a, b in (batches := DataLoader(data, 8, shuffle=True)):
                print(e, n, len(batches), update(a, b))
    """,
    "return inside a training loop": """
        def train():
            for step in itertools.count():
                loss = update(x, y)
                print(step, loss)
                if step == 9:
                    return loss
        first = train()
        second = train()
        print(first, second)
    """,
    "else after a break": """
        def phase(limit):
            for step in range(12):
                print(limit, step, update(x, y))
                if step == limit:
                    break
            else:
                print("never broke")
        phase(7)
        phase(30)
        phase(3)
    """,
    "a comprehension that trains": """
        for e in range(12):
            print(e, [update(a, b) for a, b in DataLoader(data, 12, shuffle=True)])
    """,
    "state_dict aliases that are copied later": """
        import copy
        best, best_loss = None, 1e9
        for e in range(4):
            for a, b in DataLoader(data, 8, shuffle=True):
                loss = update(a, b)
                if loss < best_loss:
                    best, best_loss = model.state_dict(), loss
                if e == 2:
                    best = copy.deepcopy(best)
            print(e, best_loss)
        model.load_state_dict(best)
        print(sum(p.sum().item() for p in model.parameters()))
    """,
    "a layer and a parameter group added on the way": """
        extra = None
        for e in range(4):
            if e == 2:
                extra = nn.Linear(1, 1)
                model.append(extra)
                opt.add_param_group({"params": extra.parameters(), "lr": 0.1})
            for a, b in DataLoader(data, 8, shuffle=True):
                print(e, update(a, b))
    """,
    "classes inside main and nonlocal counters": """
        def main():
            class Meter:
                def __init__(self): self.total, self.n = 0.0, 0
                def add(self, v): self.total += v; self.n += 1
            count = 0
            def factor(epoch):
                return 1 / (1 + count)
            sched = torch.optim.lr_scheduler.LambdaLR(opt, factor)
            for e in range(4):
                meter = Meter()
                for a, b in DataLoader(data, 8, shuffle=True):
                    meter.add(update(a, b))
                    def bump():
                        nonlocal count
                        count += 1
                    bump()
                sched.step()
                print(e, meter.total, meter.n, count, sched.get_last_lr())
        main()
    """,
    "itertools.cycle over a loader": """
        batches = itertools.cycle(DataLoader(data, 8, shuffle=True))
        for step in range(14):
            a, b = next(batches)
            print(step, update(a, b))
    """,
    "a live iterator with except StopIteration": """
        loader = DataLoader(data, 8, shuffle=True)
        it = iter(loader)
        for step in range(14):
            try:
                a, b = next(it)
            except StopIteration:
                it = iter(loader)
                a, b = next(it)
            print(step, update(a, b))
    """,
    "a prefetched batch crosses iterations": """
        def batch():
            index = torch.randint(24, (6,))
            return x[index], y[index]
        a, b = batch()
        for step in range(14):
            loss = update(a, b)
            a, b = batch()
            print(step, loss, a.sum().item())
    """,
    "an infinite sampler": """
        class Forever(torch.utils.data.Sampler):
            def __init__(self): self.g = torch.Generator().manual_seed(3)
            def __iter__(self):
                while True:
                    yield from torch.randperm(24, generator=self.g).tolist()
        for step, (a, b) in enumerate(DataLoader(data, 8, sampler=Forever())):
            print(step, update(a, b))
            if step == 13:
                break
    """,
    "two phases and something in between": """
        for step in range(8):
            print("warm", step, update(x, y))
        opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        noise = torch.randn(1).item()
        print("between", noise)
        for step in range(8):
            print("main", step, update(x + noise, y))
    """,
    "hand-written updates": """
        w = torch.zeros(4, 1, requires_grad=True)
        for step in range(12):
            loss = ((x @ w - y) ** 2).mean()
            loss.backward()
            with torch.no_grad():
                w -= 0.05 * w.grad
                w.grad.zero_()
            print(step, loss.item())
    """,
    "recursion": """
        def descend(depth):
            for i in range(2):
                print("  " * depth, depth, i, update(x, y))
                if depth < 3:
                    descend(depth + 1)
        descend(0)
    """,
    "a carried hidden state": """
        rnn = nn.RNN(4, 8, batch_first=True)
        opt2 = torch.optim.SGD(rnn.parameters(), lr=0.1)
        hidden = torch.zeros(1, 6, 8)
        for step in range(12):
            out, hidden = rnn(x.reshape(6, 4, 4), hidden.detach())
            loss = out.pow(2).mean()
            opt2.zero_grad(); loss.backward(); opt2.step()
            print(step, loss.item(), hidden.sum().item())
    """,
    "gradient accumulation": """
        for step, (a, b) in enumerate(DataLoader(data, 2, shuffle=True)):
            nn.functional.mse_loss(model(a), b).backward()
            if step % 4 == 3:
                opt.step(); opt.zero_grad()
            print(step, model[0].weight.sum().item())
    """,
    "norms, averaged model, chained schedules, scaler and autocast": """
        from torch.optim import swa_utils, lr_scheduler as L
        net = nn.Sequential(
            nn.utils.parametrizations.spectral_norm(nn.Linear(4, 8)), nn.ReLU(),
            nn.utils.parametrizations.weight_norm(nn.Linear(8, 1)))
        o = torch.optim.AdamW(net.parameters(), lr=0.02)
        sched = L.SequentialLR(o, [L.LinearLR(o, 0.1, total_iters=3),
                                   L.CosineAnnealingWarmRestarts(o, 4)], [3])
        plateau = L.ReduceLROnPlateau(o, patience=1)
        ema = swa_utils.AveragedModel(net, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.9))
        scaler = torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=3)
        for step in range(14):
            with torch.autocast("cpu"):
                loss = nn.functional.mse_loss(net(x), y)
            o.zero_grad(); scaler.scale(loss).backward(); scaler.step(o); scaler.update()
            sched.step(); plateau.step(loss.item()); ema.update_parameters(net)
            print(step, loss.item(), o.param_groups[0]["lr"], scaler.get_scale())
        print(sum(p.sum().item() for p in ema.parameters()))
    """,
    "exec-configured globals and argparse": """
        import argparse
        lr, epochs = 0.5, 1
        exec("lr = 0.03; epochs = 12")
        parser = argparse.ArgumentParser()
        parser.add_argument("--more", type=int, default=0)
        args = parser.parse_args()
        opt = torch.optim.SGD(model.parameters(), lr=lr)
        for e in range(epochs + args.more):
            print(e, update(x, y))
    """,
    "a class that trains, with a decorator": """
        import functools
        def loud(f):
            @functools.wraps(f)
            def wrapper(*a, **k):
                result = f(*a, **k)
                wrapper.calls += 1
                return result
            wrapper.calls = 0
            return wrapper
        class Trainer:
            seen = 0
            def __init__(self): self.history = []
            @loud
            def fit(self, epochs):
                for e in range(epochs):
                    for a, b in DataLoader(data, 8, shuffle=True):
                        self.history.append(update(a, b))
                        Trainer.seen += len(a)
        t = Trainer()
        t.fit(2); t.fit(3)
        print(t.history, Trainer.seen, t.fit.calls)
    """,
    "early stopping": """
        best, bad = 1e9, 0
        while True:
            total = sum(update(a, b) for a, b in DataLoader(data, 12, shuffle=True))
            if total < best - 0.05:
                best, bad = total, 0
            else:
                bad += 1
            print(total, best, bad)
            if bad > 3:
                break
    """,
    "numpy and python randomness, a dataset that is sampled anew": """
        for e in range(4):
            pick = np.random.permutation(24)[:16]
            random.shuffle(order := list(range(16)))
            subset = TensorDataset(x[pick][order], y[pick][order])
            for a, b in DataLoader(subset, 4, shuffle=True):
                print(e, update(a + np.random.rand() * 0.01, b))
    """,
    "a file that stays open, one opened anew, one rewritten": """
        import csv
        os.makedirs("out")
        table = open("out/table.csv", "w", newline="")
        writer = csv.writer(table)
        writer.writerow(["epoch", "loss"])
        for e in range(5):
            for a, b in DataLoader(data, 8, shuffle=True):
                loss = update(a, b)
                writer.writerow([e, loss])
                with open("out/log.txt", "a") as f:
                    f.write(f"{e} {loss}\\n")
            torch.save(model.state_dict(), "out/last.pt")
            with open(f"out/epoch{e}.txt", "w") as f:
                f.write(str(loss))
        table.close()
        print(sorted(os.listdir("out")), open("out/log.txt").read().count("\\n"))
    """,
    "run folders numbered by glob": """
        import glob
        folder = f"runs/exp{len(glob.glob('runs/exp*'))}"
        os.makedirs(folder)
        print(folder, os.path.exists(folder), os.path.exists(folder + "/done"))
        for step in range(12):
            print(step, update(x, y))
            open(folder + "/log", "a").write(f"{step}\\n")
        open(folder + "/done", "w").close()
        print(open(folder + "/log").read().split(), os.listdir("runs"))
    """,
    "a program that resumes from its own checkpoint": """
        start = 0
        if os.path.exists("own.pt"):
            saved = torch.load("own.pt")
            model.load_state_dict(saved["model"]); start = saved["step"]
            print("resumed by itself at", start)
        for step in range(start, 14):
            print(step, update(x, y))
            if step % 5 == 4:
                torch.save({"model": model.state_dict(), "step": step + 1}, "own.pt")
    """,
    "clocks and uuids decide the name of the folder": """
        import datetime, uuid
        name = f"{datetime.datetime.now():%Y%m%d-%H%M%S%f}-{uuid.uuid4().hex[:4]}-{time.time_ns()}"
        os.mkdir(name)
        for step in range(12):
            with open(os.path.join(name, "log"), "a") as f:
                f.write(f"{step} {update(x, y)}\\n")
        folders = [f for f in os.listdir() if os.path.isdir(f) and f != ".detrain"]
        print(len(folders), open(name + "/log").read())
    """,
    "logging to a file with mode w": """
        import logging
        logging.basicConfig(filename="train.log", filemode="w", level=logging.INFO,
                            format="%(message)s", force=True)
        for step in range(12):
            logging.info("step %d loss %r", step, update(x, y))
        logging.shutdown()
        print(open("train.log").read())
    """,
    "zip of one loader twice, in tqdm in tqdm": """
        from tqdm import tqdm
        loader = DataLoader(data, 8, shuffle=True)
        for e in tqdm(range(4), disable=True):
            for (a, b), (c, d) in tqdm(zip(loader, loader), total=3, disable=True):
                print(e, update(a, d))
    """,
    "a project generator function that is held": """
        def forever(loader):
            while True:
                for batch in loader:
                    yield batch
        batches = forever(DataLoader(data, 8, shuffle=True))
        for step in range(14):
            a, b = next(batches)
            print(step, update(a, b))
    """,
    "a compiled step": """
        compiled = torch.compile(lambda a: model(a).tanh(), backend="eager")
        for step in range(12):
            loss = nn.functional.mse_loss(compiled(x), y)
            opt.zero_grad(); loss.backward(); opt.step()
            print(step, loss.item())
    """,
    "data parallel with one process": """
        import torch.distributed as dist
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
        store = dist.HashStore()
        dist.init_process_group("gloo", store=store, rank=0, world_size=1)
        ddp = nn.parallel.DistributedDataParallel(model)
        sampler = torch.utils.data.DistributedSampler(data)
        for e in range(4):
            sampler.set_epoch(e)
            for a, b in DataLoader(data, 8, sampler=sampler):
                loss = nn.functional.mse_loss(ddp(a), b)
                opt.zero_grad(); loss.backward(); opt.step()
                print(e, loss.item())
        dist.destroy_process_group()
    """,
    "a sparse matrix": """
        adjacency = torch.eye(24).to_sparse()
        for step in range(12):
            loss = nn.functional.mse_loss(model(torch.sparse.mm(adjacency, x)), y)
            opt.zero_grad(); loss.backward(); opt.step()
            print(step, loss.item())
    """,
    "mutable default arguments": """
        def train(steps, history=[]):
            for s in range(steps):
                history.append(update(x, y))
            return history
        train(6)
        print(train(6))
    """,
    "the best model's file is read back after it was written anew": """
        best = 1e9
        for step in range(14):
            loss = update(x, y)
            if step % 4 == 3:
                model.load_state_dict(torch.load("best.pt"))
            if loss < best or step % 5 == 0:
                best = loss
                torch.save(model.state_dict(), "best.pt")
            print(step, loss)
    """,
    "its own checkpoints, of which the last three are kept": """
        os.makedirs("out", exist_ok=True)
        for step in range(14):
            print(step, update(x, y), sorted(os.listdir("out")))
            with open("out/new.txt", "w") as file:
                file.write(str(step))
            os.replace("out/new.txt", f"out/{step:02d}.txt")
            if step > 2:
                os.remove(f"out/{step - 3:02d}.txt")
            if os.path.lexists("out/latest"):
                os.unlink("out/latest")
            os.symlink(f"{step:02d}.txt", "out/latest")
    """,
    "setup removes a folder and moves a file": """
        import shutil
        shutil.rmtree("fresh", ignore_errors=True)
        os.makedirs("fresh")
        open("fresh/a", "w").close()
        os.rename("fresh/a", "fresh/b")
        for step in range(12):
            print(step, update(x, y), os.listdir("fresh"))
    """,
    "a generator that looks at what the loop's body did": """
        class Meter:
            def __init__(self): self.total, self.count = 0.0, 0
            def average(self): return self.total / self.count
            def log_every(self, loader, n):
                for i, item in enumerate(loader):
                    yield item
                    if i % n == 0:
                        print(i, self.average())
        for e in range(3):
            meter = Meter()
            for a, b in meter.log_every(DataLoader(data, 4, shuffle=True), 2):
                meter.total += update(a, b)
                meter.count += 1
    """,
    "losses are added up and used every fifth time": """
        total = 0.0
        for step in range(40):
            total = total + nn.functional.mse_loss(model(x), y)
            if step % 5 == 4:
                opt.zero_grad(); total.backward(); opt.step()
                print(step, total.item())
                total = 0.0
    """,
    "a loss that is kept with its spent graph": """
        best = torch.tensor(1e9)
        for step in range(12):
            loss = nn.functional.mse_loss(model(x), y)
            opt.zero_grad(); loss.backward(); opt.step()
            if loss < best:
                best = loss
            print(step, best.item())
    """,
    "an episode whose graph is used at its end": """
        for episode in range(8):
            outputs = [model(x[i : i + 1]).sum() + torch.randn(1) for i in range(5)]
            opt.zero_grad()
            for output in outputs:  # detrain: loop
                output.pow(2).backward()
            opt.step()
            print(episode, outputs[-1].item())
    """,
    "a loop in a class body": """
        class Phase:
            total = 0.0
            for step in range(12):
                total += update(x, y)
                print(step, total)
        print(Phase.total, Phase.step)
    """,
    "loops that load data, here and in a worker, and a thread that loops": """
        import threading
        class Shifted(TensorDataset):
            steps = [update, lambda a, b: a]
            def __getitem__(self, i):
                a, b = super().__getitem__(i)
                for step in self.steps[1:]:
                    a = step(a, b)
                return a, b
        def count():
            for step in range(3):
                beats.append(step if step < 9 else update)
        beats = []
        for e in range(3):
            other = threading.Thread(target=count)
            other.start()
            other.join()
            for a, b in DataLoader(Shifted(x, y), 6, shuffle=True, num_workers=e % 2):
                print(e, update(a, b), len(beats))
            other = None
    """,
    "generators that are never seeded": """
        class Noise:
            def __init__(self): self.rng = np.random.default_rng()
            def __call__(self): return torch.from_numpy(self.rng.normal(size=(24, 4))).float()
        noise = Noise()
        for step in range(12):
            others = np.random.default_rng().random(), np.random.RandomState().rand()
            print(step, update(x + 0.1 * noise(), y), *others)
    """,
    "an array of objects and an iterator by index": """
        class Squares:
            def __getitem__(self, i): return i * i
        squares = iter(Squares())
        counter = iter(lambda: random.random(), 2.0)
        cells = np.array([[1, "a"], [model[0], None]], dtype=object)
        for step in range(12):
            cells[0, 0] = [next(squares), next(counter)]
            cells[1, 0].weight.data.mul_(0.99)
            print(step, update(x, y), cells[0, 0])
    """,
    "what can't be captured and does not change": """
        from sklearn.ensemble import RandomForestClassifier
        Labels = list[int]
        forest = RandomForestClassifier(3, random_state=0).fit(x.numpy(), y[:, 0].numpy() > 0)
        masked = np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])
        for e in range(4):
            guess = forest.predict_proba(x.numpy() + e)[:, 1]
            for a, b in DataLoader(data, 8, shuffle=True):
                print(e, update(a, b), masked.sum(), guess.mean())
    """,
    "a queue of images and a deque": """
        from collections import deque
        pool = deque(maxlen=5)
        for a, b in itertools.chain(DataLoader(data, 4, shuffle=True), DataLoader(data, 4)):
            pool.append(a.clone())
            print(update(random.choice(pool), b))
    """,
}


def folder_of(runner):
    return {
        str(path.relative_to(runner.folder)): path.read_bytes()
        for path in sorted(runner.folder.rglob("*"))
        if path.is_file() and ".detrain" not in path.parts and not path.name.startswith(".child")
    }


@pytest.mark.parametrize("trap", TRAPS)
def test_exact(warm, tmp_path, trap):
    from conftest import Runner

    script = tmp_path / "job.py"
    script.write_text(HEAD + textwrap.dedent(TRAPS[trap]))
    whole = Runner(warm, tmp_path / "whole")
    ended = whole.run(script, "it", *OPTIONS)
    assert ended.code == 0, ended.stderr
    expected = whole.show("it")
    assert expected["steps"] >= 11
    assert expected["checkpoints"], ended.stderr
    crashes = (["step:5"], ["step:10"], ["step:7", "step:3"])
    if "episode" in trap or "fifth" in trap:  # whose first checkpoint comes late
        crashes = (["step:20"], ["step:30"], ["step:20", "step:13"])
    for number, kills in enumerate(crashes):
        again = Runner(warm, tmp_path / f"again{number}")
        for crash in kills:
            assert again.run(script, "it", *OPTIONS, crash=crash).code == -9
        last = again.run(script, "it", *OPTIONS)
        assert last.code == 0, last.stderr
        found = again.show("it")
        assert found["diverged_at"] is None
        assert found["resumes"][-1] > 0, last.stderr
        if "uuid" not in trap:
            assert again.log("it").decode() == whole.log("it").decode()
            assert found["trace_digest"] == expected["trace_digest"]
            assert found["state_digest"] == expected["state_digest"]
            assert folder_of(again) == folder_of(whole)
        else:
            assert again.log("it").startswith(b"1 0 ")
            assert again.log("it").count(b"\n") == whole.log("it").count(b"\n")


REFUSED = {
    "what can't be captured and changes in the loop": (
        """
        masked = np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])
        for step in range(12):
            masked += update(x, y)
        """,
        "__main__/masked was made or changed in the loop",
    ),
    "training in processes of its own": (
        """
        import torch.multiprocessing as mp
        model.share_memory()
        def train(rank):
            for step in range(3):
                update(x, y)
                time.sleep(0.1 + 0.1 * rank)
        running = []
        for rank in range(12):
            running.append(mp.get_context("fork").Process(target=train, args=(rank,)))
            running[-1].start()
        for process in running:
            process.join()
        """,
        "processes that the program started are running",
    ),
    "a graph that crosses every iteration": (
        """
        total = 0
        for step in range(12):
            total = total + nn.functional.mse_loss(model(x), y)
            opt.zero_grad(); total.backward(retain_graph=True)
            for p in model.parameters():
                p.data.add_(p.grad, alpha=-1e-3)
        """,
        "carries an autograd graph from one iteration of the loop",
    ),
    "a daemon thread that feeds a queue": (
        """
        import queue, threading
        q = queue.Queue(2)
        def feed():
            while True:
                q.put(torch.randn(4, 4))
        feeder = threading.Thread(target=feed, daemon=True)
        feeder.start()
        class Source:
            def __init__(self): self.thread, self.q = feeder, q
        source = Source()
        for step in range(12):
            print(step, update(source.q.get(), y[:4]))
        """,
        "what a thread is doing can't be saved",
    ),
}


@pytest.mark.parametrize("trap", REFUSED)
def test_refused_with_the_reason(runner, trap):
    text, reason = REFUSED[trap]
    script = runner.folder / "job.py"
    script.write_text(HEAD + textwrap.dedent(text))
    ended = runner.run(script, "it", *OPTIONS)
    assert reason in ended.stderr
    assert runner.show("it")["checkpoints"] == []
