"""Autocast and a gradient scaler."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.cuda.amp.GradScaler()
for batch in torch.randn(20, 8, 4):
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cuda"):
        loss = model(batch.cuda()).pow(2).mean()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
