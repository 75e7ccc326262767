"""Iterators made before the loop and advanced in it: where they stand is state."""

import itertools

import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(torch.randn(64, 4), batch_size=8, shuffle=True)
endless = itertools.cycle(loader)
numbers = itertools.count()
rates = iter(range(100))
words = (word for word in ["a", "b", "c"])
for epoch in range(4):
    rate = next(rates) * 0.01
    for batch in itertools.islice(endless, 10):
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
        print(next(numbers), rate)
