"""Fields in slots, and a property that counts how often it is asked."""

import torch
from torch import nn

torch.manual_seed(0)


class Job:
    __slots__ = ("_count", "data", "model", "step")

    def __init__(self):
        self.data = torch.randn(24, 4)
        self.model = nn.Linear(4, 1)
        self._count = 0
        self.step = 0

    @property
    def scaled(self):
        self._count += 1
        return self.data * self._count


job = Job()
opt = torch.optim.SGD(job.model.parameters(), lr=0.1)
for _ in range(20):
    loss = job.model(job.scaled).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    job.step += 1
    print(job.step, loss.item())
