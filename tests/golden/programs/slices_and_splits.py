"""Lists that come of slices and of `split` and `tolist` are lists: they change in place."""

import random

import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
words = "to be or not to be".split()
order = torch.randperm(10).tolist()
queue = [5, 4, 3, 2, 1, 0][2:]
for epoch in range(3):
    random.shuffle(words)
    for row in torch.randn(8, 4):
        optimizer.zero_grad()
        model(row).sum().backward()
        optimizer.step()
        order.append(order.pop(0))
        queue.append(queue.pop(0))
print(words, order, queue)
