"""A generator held by a data set is copied to every worker."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Noisy(Dataset):
    def __init__(self, count):
        self.rows = torch.randn(count, 4)
        self.rng = np.random.default_rng(7)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index] * self.rng.random()


torch.manual_seed(0)
loader = DataLoader(Noisy(64), batch_size=8, num_workers=2)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in loader:
    optimizer.zero_grad()
    model(batch).mean().backward()
    optimizer.step()
