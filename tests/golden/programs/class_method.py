"""Class methods get the class first; properties have setters that run."""

import torch
from torch import nn


class Trainer:
    made = 0

    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self._scale = 1.0
        self.sets = 0

    @classmethod
    def build(cls, width):
        cls.made = cls.made + 1
        return cls(nn.Linear(width, 1))

    @property
    def scale(self):
        return self._scale

    @scale.setter
    def scale(self, value):
        self.sets += 1
        self._scale = value * 2

    def step(self, row):
        self.optimizer.zero_grad()
        loss = (self.model(row) * self.scale).sum()
        loss.backward()
        self.optimizer.step()
        self.scale = loss.item()


torch.manual_seed(0)
trainer = Trainer.build(4)
for row in torch.randn(8, 4):
    trainer.step(row)
print(trainer.sets, Trainer.made)
