"""A field is written through the dictionary of the object."""

import torch
from torch import nn

torch.manual_seed(0)


class Job:
    def __init__(self):
        self.data = torch.randn(24, 4)
        self.fixed = torch.randn(24, 4)
        self.model = nn.Linear(4, 1)


job = Job()
opt = torch.optim.SGD(job.model.parameters(), lr=0.1)
for step in range(20):
    loss = job.model(job.data + job.fixed).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    vars(job)["data"] = job.data * 0.9
    print(step, loss.item())
