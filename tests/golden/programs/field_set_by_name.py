"""A callback sets a field whose name it holds."""

import torch
from torch import nn

torch.manual_seed(0)


class Shrink:
    def __init__(self, name):
        self.name = name

    def __call__(self, job):
        setattr(job, self.name, getattr(job, self.name) * 0.9)


class Job:
    def __init__(self, callbacks):
        self.data = torch.randn(24, 4)
        self.fixed = torch.randn(24, 4)
        self.model = nn.Linear(4, 1)
        self.callbacks = callbacks


job = Job([Shrink("data")])
opt = torch.optim.SGD(job.model.parameters(), lr=0.1)
for step in range(20):
    loss = job.model(job.data + job.fixed).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    for callback in job.callbacks:
        callback(job)
    print(step, loss.item())
