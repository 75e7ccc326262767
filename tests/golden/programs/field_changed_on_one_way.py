"""A function that trains is called twice; only in one of the calls two names mean one object."""

import torch
from torch import nn

torch.manual_seed(0)


class Job:
    def __init__(self):
        self.data = torch.randn(24, 4)
        self.model = nn.Linear(4, 1)
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1)


def train(job, other):
    for step in range(10):
        loss = job.model(job.data).pow(2).mean()
        job.opt.zero_grad()
        loss.backward()
        job.opt.step()
        other.data = other.data * 0.9
        print(step, loss.item())


train(Job(), Job())
both = Job()
train(both, both)
