"""`exec` and `globals()` in the setup, as configuration files do: the loop is as ever."""

import torch
from torch import nn

rate = 0.1
steps = 20
names = [k for k, v in globals().items() if not k.startswith("_") and isinstance(v, (int, float))]
exec(open("config.py").read())
config = {k: globals()[k] for k in names}
torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=rate)
for batch in torch.randn(steps, 8, 4):
    optimizer.zero_grad()
    loss = model(batch).mean()
    loss.backward()
    optimizer.step()
print(config)
