"""A copied chain of objects: which of them is read on the way is not told apart."""

import copy

import torch
from torch import nn


class Node:
    def __init__(self):
        self.value = 0.0
        self.next = None


torch.manual_seed(0)
first = Node()
first.next = Node()
state = copy.deepcopy(first)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(4):
    scale = state.next.value
    for _ in range(4):
        opt.zero_grad()
        loss = net(torch.randn(2, 4)).sum() * (1 + scale)
        loss.backward()
        opt.step()
        state.value += 1
        state.next.value += 0.5
    print(epoch, scale, net.weight.sum().item())
