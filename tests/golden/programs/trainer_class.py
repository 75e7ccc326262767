"""A trainer with all its state in fields."""

import torch
from torch import nn
from torch.utils.data import DataLoader


class Trainer:
    def __init__(self, model, loader):
        self.model = model
        self.loader = loader
        self.optimizer = torch.optim.AdamW(model.parameters())
        self.step = 0
        self.best = None

    def run(self, epochs):
        for epoch in range(epochs):
            loss = self.run_epoch()
            if self.best is None or loss < self.best:
                self.best = loss
            print(epoch, self.step, self.best)

    def run_epoch(self):
        total = 0.0
        for batch in self.loader:
            total += self.update(batch)
        return total

    def update(self, batch):
        self.optimizer.zero_grad()
        loss = self.model(batch).pow(2).mean()
        loss.backward()
        self.optimizer.step()
        self.step += 1
        return loss.item()


torch.manual_seed(0)
trainer = Trainer(nn.Linear(4, 1), DataLoader(torch.randn(64, 4), batch_size=8, shuffle=True))
trainer.run(3)
