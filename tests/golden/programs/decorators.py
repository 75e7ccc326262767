"""A decorator of the project that counts calls, and one of a library."""

import functools

import torch
from torch import nn

calls = {}


def counted(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        calls[function.__name__] = calls.get(function.__name__, 0) + 1
        return function(*args, **kwargs)

    return inner


@counted
def update(model, optimizer, batch):
    optimizer.zero_grad()
    model(batch).mean().backward()
    optimizer.step()


@torch.no_grad()
def evaluate(model, batch):
    return model(batch).mean().item()


torch.manual_seed(0)
net = nn.Linear(4, 1)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for batch in torch.randn(20, 8, 4):
    update(net, sgd, batch)
    print(evaluate(net, batch))
print(calls)
