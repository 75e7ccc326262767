"""State and model of the project."""

from torch import nn

seed = 0
rate = 0.1
epochs = 3
phase = 0
best = None
last = None


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.layer(x)


def remember(loss):
    global best
    if best is None or loss < best:
        best = loss
