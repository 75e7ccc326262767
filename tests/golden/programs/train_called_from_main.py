"""`main` calls `train` for each epoch, and `test` after it."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def train(args, model, loader, optimizer, epoch):
    model.train()
    for index, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        if index % args.log_interval == 0:
            print(epoch, index, loss.item())


def test(model, loader):
    model.eval()
    total = 0
    with torch.no_grad():
        for x, y in loader:
            total += F.mse_loss(model(x), y).item()
    print(total)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--log-interval", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64, 1)), batch_size=8)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(args.epochs):
        train(args, model, loader, optimizer, epoch)
        test(model, loader)


if __name__ == "__main__":
    main()
