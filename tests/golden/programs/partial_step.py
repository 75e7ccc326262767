"""A step with its model and optimizer bound by `functools.partial`."""

import functools

import torch
from torch import nn

count = 0


def step(model, optimizer, batch):
    global count
    count += 1
    optimizer.zero_grad()
    loss = model(batch).mean()
    loss.backward()
    optimizer.step()
    return loss


torch.manual_seed(0)
net = nn.Linear(4, 1)
update = functools.partial(step, net, torch.optim.SGD(net.parameters(), lr=0.1))
for batch in torch.randn(20, 8, 4):
    loss = update(batch)
print(count, loss.item())
