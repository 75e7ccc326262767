"""Empty lists and lists of numbers, inside other containers, that the loop appends to."""

import torch
from torch import nn

nets = [nn.Linear(2, 1), nn.Linear(2, 1)]
opts = [torch.optim.SGD(net.parameters(), lr=0.1) for net in nets]
history = [[], []]
table = {"loss": [0.0], "unchanged": [1.0]}
rows = []
rows.append([])
more = [[] for _ in range(2)]
fixed = [[1, 2], [3]]
for step in range(10):
    x = torch.randn(3, 2)
    for net, opt, losses in zip(nets, opts, history):
        loss = net(x).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    table["loss"].append(loss.item())
    rows[0].append(step)
    for each in more:
        each.append(step)
print(history, table, rows, more, fixed)
