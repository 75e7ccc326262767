"""What a field holds is changed in place, through a dictionary that holds it too."""

import torch
from torch import nn

torch.manual_seed(0)


class Job:
    def __init__(self):
        self.data = torch.randn(24, 4)
        self.fixed = torch.randn(24, 4)
        self.model = nn.Linear(4, 1)


def decay(values):
    values.mul_(0.9)


job = Job()
held = {"it": job.data}
opt = torch.optim.SGD(job.model.parameters(), lr=0.1)
for step in range(20):
    loss = job.model(job.data + job.fixed).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    decay(held["it"])
    print(step, loss.item())
