"""A field is deleted in the middle of training."""

import torch
from torch import nn

torch.manual_seed(0)


class Job:
    def __init__(self):
        self.warm = torch.randn(24, 4)
        self.fixed = torch.randn(24, 4)
        self.model = nn.Linear(4, 1)


job = Job()
opt = torch.optim.SGD(job.model.parameters(), lr=0.1)
for step in range(20):
    x = job.fixed + job.warm if hasattr(job, "warm") else job.fixed
    loss = job.model(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step == 7:
        del job.warm
    print(step, loss.item())
