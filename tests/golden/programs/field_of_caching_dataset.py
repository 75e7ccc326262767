"""A data set that keeps what it has made hangs on an object."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Cached(Dataset):
    def __init__(self):
        self.raw = torch.randn(24, 4)
        self.cache = {}

    def __len__(self):
        return 24

    def __getitem__(self, index):
        if index not in self.cache:
            self.cache[index] = self.raw[index] + torch.rand(4)
        return self.cache[index]


class Job:
    def __init__(self):
        self.loader = DataLoader(Cached(), 6, shuffle=True)
        self.model = nn.Linear(4, 1)


job = Job()
opt = torch.optim.SGD(job.model.parameters(), lr=0.1)
for epoch in range(4):
    for x in job.loader:
        loss = job.model(x).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(epoch, loss.item())
