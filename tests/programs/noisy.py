"""Trains on samples that are noise; the arguments are the workers and how they are started."""

import random
import sys

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Noisy(Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, index):
        return torch.randn(4) + random.random() + float(np.random.rand())


def main():
    workers, how = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None
    settings = {"num_workers": workers, "multiprocessing_context": how}
    loader = DataLoader(Noisy(), batch_size=4, shuffle=True, **settings)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        for x in loader:
            loss = model(x).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(loss.item())


if __name__ == "__main__":
    main()
