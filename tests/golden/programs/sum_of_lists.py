"""Layers come together in a list that is replaced by a sum of lists; each trains by itself."""

import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.inner = nn.Linear(size, size)
        self.opt = torch.optim.SGD(self.inner.parameters(), lr=0.1)

    def fit(self, x):
        for _ in range(10):
            loss = self.inner(x).pow(2).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        return self.inner(x).detach()


class Net:
    def __init__(self, count):
        self.layers = []
        for _ in range(count):
            self.layers = self.layers + [Layer(4)]

    def fit(self, x):
        for layer in self.layers:
            x = layer.fit(x)


net = Net(3)
net.fit(torch.randn(8, 4))
print([layer.inner.weight.sum().item() for layer in net.layers])
