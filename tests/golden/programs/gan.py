"""Two networks, two optimizers, noise drawn in the loop."""

import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Linear(2, 4)
critic = nn.Linear(4, 1)
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-4, betas=(0.5, 0.9))
opt_d = torch.optim.Adam(critic.parameters(), lr=1e-4, betas=(0.5, 0.9))
bce = nn.BCEWithLogitsLoss()
fixed_noise = torch.randn(8, 2)
losses = []
for epoch in range(3):
    for real in torch.randn(20, 8, 4):
        critic.zero_grad()
        fake = generator(torch.randn(8, 2))
        loss_d = bce(critic(real), torch.ones(8, 1)) + bce(critic(fake.detach()), torch.zeros(8, 1))
        loss_d.backward()
        opt_d.step()
        generator.zero_grad()
        loss_g = bce(critic(fake), torch.ones(8, 1))
        loss_g.backward()
        opt_g.step()
        losses.append((loss_d.item(), loss_g.item()))
    print(generator(fixed_noise).mean().item())
print(losses[-1])
