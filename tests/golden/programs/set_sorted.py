"""A set of words that is sorted first: nothing to warn of."""

import torch
from torch import nn

torch.manual_seed(0)
text = open("text.txt").read()
words = sorted(set(text.split()))
numbers = {word: number for number, word in enumerate(words)}
data = torch.tensor([numbers[word] for word in text.split()])
model = nn.Embedding(len(numbers), 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for row in data.split(8):
    optimizer.zero_grad()
    model(row).mean().backward()
    optimizer.step()
