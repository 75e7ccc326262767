"""GradScaler, OneCycle schedule, an EMA copy, python and numpy randomness, best-model copies,
two loops in one epoch (the second is a validation loop), early stopping by break."""

import copy
import random
from collections import deque

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm

import detrain

with detrain.run(seed=11) as run:
    rng = np.random.default_rng(3)
    x = torch.from_numpy(rng.normal(size=(96, 6)).astype("float32"))
    y = x[:, :1] * 2 - x[:, 1:2] ** 2
    order = torch.Generator().manual_seed(5)
    loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True, generator=order)
    valid = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8)
    model = torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.Tanh(), torch.nn.Linear(12, 1))
    ema = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=12 * 5)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=7)
    book = {"losses": deque(maxlen=9), "best": None, "seen": set()}
    everything = {
        "model": model, "ema": ema, "optimizer": optimizer, "scheduler": scheduler,
        "scaler": scaler, "book": book, "rng": rng,
    }  # fmt: skip
    best_loss, patience = float("inf"), 0
    for epoch in run.loop(range(5), **everything):
        if random.random() < 0.5:
            print(
                "epoch", epoch, "with luck", f"{random.gauss(0, 1):.6f}", f"{np.random.rand():.6f}"
            )
        for i, (a, b) in run.loop(enumerate(tqdm(loader, disable=True)), **everything):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = torch.nn.functional.mse_loss(model(a + rng.normal() * 0.01), b)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
            with torch.no_grad():
                for slow, fast in zip(ema.parameters(), model.parameters(), strict=True):
                    slow.lerp_(fast, 0.1)
            book["losses"].append(loss.item())
            book["seen"].add(f"{i % 3}-{epoch}")
            run.record(loss=loss.item(), scale=scaler.get_scale())
        total = 0.0
        for a, b in run.loop(valid, **everything):
            with torch.no_grad():
                total += torch.nn.functional.mse_loss(ema(a), b).item()
        print(f"epoch {epoch} valid {total:.8f} lr {scheduler.get_last_lr()[0]:.6f}")
        if total < best_loss:
            best_loss, patience = total, 0
            book["best"] = copy.deepcopy(model.state_dict())
        else:
            patience += 1
            if patience == 3:
                print("stopped early")
                break
    model.load_state_dict(book["best"])
    print("best", best_loss, list(book["losses"]), sorted(book["seen"]))
