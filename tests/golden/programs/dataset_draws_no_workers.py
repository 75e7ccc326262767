"""A data set that draws in `__getitem__`, loaded in the main process: nothing to warn of."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Noisy(Dataset):
    def __init__(self, count):
        self.rows = torch.randn(count, 4)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index] * random.random()


torch.manual_seed(0)
random.seed(0)
loader = DataLoader(Noisy(64), batch_size=8, shuffle=True, num_workers=0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for batch in loader:
        optimizer.zero_grad()
        model(batch).mean().backward()
        optimizer.step()
