"""One loop trains two objects in turn, each with data of its own."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Job:
    def __init__(self, data):
        self.data = data
        self.model = nn.Linear(4, 1)
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.seen = 0

    def epoch(self):
        for (x,) in DataLoader(self.data, 6, shuffle=True):
            loss = self.model(x).pow(2).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.seen += 1
            print(self.seen, loss.item())


jobs = Job(TensorDataset(torch.randn(24, 4))), Job(TensorDataset(torch.randn(30, 4)))
for epoch in range(3):
    for job in jobs:
        job.epoch()
