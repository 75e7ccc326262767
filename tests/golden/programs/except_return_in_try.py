"""The `try` ends in a return, the handler reads what only the loop changes."""

import torch
from torch import nn


def train(model, optimizer, batches):
    history = []
    worst = 0.0
    try:
        for batch in batches:
            optimizer.zero_grad()
            loss = model(batch).sum()
            loss.backward()
            optimizer.step()
            history.append(loss.item())
            worst = loss.item() * 2
        return 0.0
    except RuntimeError:
        print(history)
        return worst


torch.manual_seed(0)
net = nn.Linear(4, 1)
train(net, torch.optim.SGD(net.parameters(), lr=0.1), [torch.randn(2, 4) for _ in range(8)])
