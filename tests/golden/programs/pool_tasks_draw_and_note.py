"""Tasks of a pool that draw and change a list take turns; those that don't draw come as they may."""

import random
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

seen, done = [], []


def drawing(task):
    seen.append(task)
    return random.random() + task


def noting(task):
    done.append(task)
    return task


random.seed(0)
torch.manual_seed(0)
model = nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
pool = ThreadPoolExecutor(2)
for step in range(5):
    noise = sum(pool.map(drawing, range(4))) + sum(pool.map(noting, range(4)))
    optimizer.zero_grad()
    (model(torch.ones(1, 1)) * noise * seen[-1] * done[-1]).sum().backward()
    optimizer.step()
