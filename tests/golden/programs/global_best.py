"""`global best_acc` in a function that is called between epochs."""

import torch
from torch import nn

best_acc = 0.0
best_epoch = -1


def evaluate(model, epoch):
    global best_acc, best_epoch
    with torch.no_grad():
        accuracy = (model(torch.ones(8, 4)) > 0).float().mean().item()
    if accuracy > best_acc:
        best_acc = accuracy
        best_epoch = epoch
    return accuracy


torch.manual_seed(0)
net = nn.Linear(4, 1)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(5):
    for batch in torch.randn(20, 8, 4):
        sgd.zero_grad()
        net(batch).mean().backward()
        sgd.step()
    accuracy = evaluate(net, epoch)
    print(epoch, accuracy, best_acc)
print(best_epoch)
