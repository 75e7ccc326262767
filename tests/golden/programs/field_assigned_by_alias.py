"""A field is given a new value through another name of the object; the one beside it is not."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Job:
    def __init__(self, data, other):
        self.data, self.other = data, other
        self.model = nn.Linear(4, 1)
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def train(self):
        for epoch in range(4):
            for (x,) in DataLoader(self.data, 6, shuffle=True):
                loss = self.model(x).pow(2).mean() + self.other.sum() * 0
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                print(epoch, loss.item())
            swap(jobs[0], epoch)


def swap(one, epoch):
    one.data = TensorDataset(torch.randn(24, 4) + epoch)


job = Job(TensorDataset(torch.randn(24, 4)), torch.randn(3))
jobs = [job]
job.train()
