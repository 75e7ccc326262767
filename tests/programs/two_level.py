"""Epochs around batches: dropout, a shuffled loader, augmentation in the main process, meters."""

import argparse

import torch
from torch.utils.data import DataLoader, TensorDataset

import detrain


class Meters:
    def __init__(self):
        self.total, self.count, self.history = 0.0, 0, []

    def add(self, value):
        self.total += value
        self.count += 1
        if self.count % 5 == 0:
            self.history.append(self.total / self.count)


def train(run, epoch, loader, model, optimizer, meters):
    seen = 0
    for x, y in run.loop(loader, model=model, optimizer=optimizer, meters=meters):
        x = x + 0.1 * torch.randn_like(x)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meters.add(loss.item())
        seen += len(x)
        run.record(loss=loss)
        print(f"  {epoch} {seen} {loss.item():.6f}")
    return seen


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    with detrain.run(seed=7) as run:
        x = torch.randn(120, 8)
        y = (x.sum(1) > 0).long() + (x[:, 0] > 1).long()
        loader = DataLoader(TensorDataset(x, y), batch_size=10, shuffle=True)
        model = torch.nn.Sequential(
            torch.nn.Linear(8, 16),
            torch.nn.BatchNorm1d(16),
            torch.nn.ReLU(),
            torch.nn.Dropout(0.2),
            torch.nn.Linear(16, 3),
        )
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.7)
        meters, best = Meters(), float("inf")
        for epoch in run.loop(range(args.epochs), scheduler=scheduler, meters=meters):
            noise = torch.rand(1).item()
            print(f"epoch {epoch} lr {optimizer.param_groups[0]['lr']:.6f} noise {noise:.6f}")
            seen = train(run, epoch, loader, model, optimizer, meters)
            scheduler.step()
            best = min(best, meters.total / meters.count)
            print(f"epoch {epoch}: {seen} samples, best {best:.8f}")
        print("weights", sum(p.double().sum().item() for p in model.parameters()), meters.history)


if __name__ == "__main__":
    main()
