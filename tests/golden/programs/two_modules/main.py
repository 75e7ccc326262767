"""A project of two modules: one has the state, the other the loop."""

import settings
import torch
from settings import Model, remember

torch.manual_seed(settings.seed)
model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=settings.rate)
for epoch in range(settings.epochs):
    settings.phase = epoch
    for batch in torch.randn(20, 8, 4):
        optimizer.zero_grad()
        loss = model(batch).mean()
        loss.backward()
        optimizer.step()
        remember(loss.item())
        settings.last = loss.item()
print(settings.best, settings.phase)
