"""Training in a generator function: the loop that asks for its items is the one to stop at."""

import torch
from torch import nn


def training(model, optimizer, batches):
    momentum = 0.0
    for batch in batches:
        optimizer.zero_grad()
        loss = (model(batch) * (1 + momentum)).mean()
        loss.backward()
        optimizer.step()
        momentum = 0.9 * momentum + loss.item()
        yield loss.item()


torch.manual_seed(0)
net = nn.Linear(4, 1)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
total = 0.0
for loss in training(net, sgd, torch.randn(20, 8, 4)):
    total += loss
print(total)
