"""A thread that changes a global while the loop runs."""

import threading

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
stop = False


def listen():
    global stop
    input()
    stop = True


threading.Thread(target=listen, daemon=True).start()
for batch in torch.randn(2000, 8, 4):
    optimizer.zero_grad()
    model(batch).mean().backward()
    optimizer.step()
    if stop:
        break
