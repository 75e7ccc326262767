"""A comprehension that calls the model; its variable is its own."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = "kept"
for step in range(10):
    outputs = [model(x) for x in torch.randn(4, 8, 4)]
    optimizer.zero_grad()
    loss = sum(output.mean() for output in outputs)
    loss.backward()
    optimizer.step()
print(x)
