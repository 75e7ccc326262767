"""One class of meters, for time and for loss: the one is not compared, the other is."""

import time

import torch
from torch import nn


class AverageMeter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.val = 0
        self.sum = 0
        self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n

    @property
    def avg(self):
        return self.sum / self.count


torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batch_time = AverageMeter()
losses = AverageMeter()
end = time.time()
for batch in torch.randn(20, 8, 4):
    optimizer.zero_grad()
    loss = model(batch).pow(2).mean()
    loss.backward()
    optimizer.step()
    losses.update(loss.item(), len(batch))
    batch_time.update(time.time() - end)
    end = time.time()
    print(losses.avg, batch_time.avg)
