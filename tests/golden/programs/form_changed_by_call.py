"""The kind of parameters changes in the loop: the way reads it."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.size = 2
        self.fc = nn.Linear(4, 1)

    def forward(self, x):
        return self.fc(x)

    def start(self):
        weight = next(self.parameters())
        return weight.new_zeros(self.size)


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def train():
    hidden = net.start()
    for _ in range(4):
        optimizer.zero_grad()
        loss = net(torch.randn(2, 4).to(hidden.dtype)).sum() + hidden.sum()
        loss.backward()
        optimizer.step()


for epoch in range(3):
    train()
    print(epoch, net.fc.weight.sum().item())
    if epoch == 0:
        net.double()
