"""A small convolutional network on scikit-learn's handwritten digits, with DETrain's explicit API.

    detrain run examples/digits.py --epochs 6

Kill it at any time and type the same line again.
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import detrain


def load():
    images, labels = load_digits(return_X_y=True)
    x = torch.tensor(images, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16
    y = torch.tensor(labels)
    return TensorDataset(x[:1500], y[:1500]), (x[1500:], y[1500:])


def build():
    return nn.Sequential(
        nn.Conv2d(1, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(),
        nn.Conv2d(24, 48, 3, padding=1), nn.BatchNorm2d(48), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.3), nn.Linear(48 * 16, 10),
    )  # fmt: skip


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        found = (model(x).argmax(1) == y).float().mean().item()
    model.train()
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--lr", type=float, default=2e-3)
    args = parser.parse_args()

    with detrain.run(seed=7, save_every=20) as run:
        train, test = load()
        loader = DataLoader(train, batch_size=32, shuffle=True)
        model = build()
        optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)

        best = 0.0
        for epoch in run.loop(range(args.epochs), model=model, scheduler=scheduler):
            total = 0.0
            for x, y in run.loop(loader, model=model, optimizer=optimizer):
                x = x + 0.05 * torch.randn_like(x)  # a different noise at every step
                loss = nn.functional.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item()
                run.record(loss=loss)
            scheduler.step()
            best = max(best, accuracy(model, *test))
            print(f"epoch {epoch}: loss {total / len(loader):.6f}, best accuracy {best:.4f}")


if __name__ == "__main__":
    main()
