"""Adversarial training on digits: PGD from a random start, or the TRADES loss, and robust tests.

Each epoch is a function with an inner attack loop, which differentiates with torch.autograd.grad.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


@dataclass(frozen=True)
class Attack:
    """How far, in what steps and for how long an attacker may change an image."""

    epsilon: float
    step_size: float
    steps: int

    def project(self, x_adv, x):
        low, high = x - self.epsilon, x + self.epsilon
        return torch.min(torch.max(x_adv, low), high).clamp(0.0, 1.0)

    def pgd(self, model, x, y):
        """Climb the cross entropy, from a random place near x."""
        x_adv = self.project(x + torch.empty_like(x).uniform_(-self.epsilon, self.epsilon), x)
        for _ in range(self.steps):
            x_adv.requires_grad_()
            loss = F.cross_entropy(model(x_adv), y)
            (grad,) = torch.autograd.grad(loss, x_adv)
            x_adv = self.project(x_adv.detach() + self.step_size * grad.sign(), x)
        return x_adv

    def divergence(self, model, x):
        """Climb the divergence from the clean prediction, as TRADES does."""
        with torch.no_grad():
            clean = F.softmax(model(x), dim=1)
        x_adv = x + 0.001 * torch.randn_like(x)
        for _ in range(self.steps):
            x_adv.requires_grad_()
            loss = F.kl_div(F.log_softmax(model(x_adv), dim=1), clean, reduction="sum")
            (grad,) = torch.autograd.grad(loss, x_adv)
            x_adv = self.project(x_adv.detach() + self.step_size * grad.sign(), x)
        return x_adv


class SmallCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 24, 3, padding=1),
            nn.BatchNorm2d(24),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(
            nn.Flatten(), nn.Linear(24 * 6 * 6, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 10)
        )

    def forward(self, x):
        return self.classifier(self.features(x))


def adversarial_loss(args, model, attack, x, y):
    model.eval()
    if args.loss == "pgd":
        x_adv = attack.pgd(model, x, y)
        model.train()
        return F.cross_entropy(model(x_adv), y)
    x_adv = attack.divergence(model, x)
    model.train()
    logits = model(x)
    robust = F.kl_div(
        F.log_softmax(model(x_adv), dim=1), F.softmax(logits, dim=1), reduction="batchmean"
    )
    return F.cross_entropy(logits, y) + args.beta * robust


def train_epoch(args, model, loader, optimizer, attack, epoch):
    total = 0.0
    for batch_idx, (x, y) in enumerate(loader):
        loss = adversarial_loss(args, model, attack, x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        if batch_idx % args.log_interval == 0:
            print(f"epoch {epoch} [{batch_idx}/{len(loader)}] loss {loss.item():.6f}")
    return total / len(loader)


def evaluate(model, loader, attack):
    """The accuracies, in per cent, on clean images and under attack."""
    model.eval()
    clean = robust = 0
    for x, y in loader:
        x_adv = attack.pgd(model, x, y)
        with torch.no_grad():
            clean += (model(x).argmax(1) == y).sum().item()
            robust += (model(x_adv).argmax(1) == y).sum().item()
    total = len(loader.dataset)
    return 100.0 * clean / total, 100.0 * robust / total


def adjust_learning_rate(optimizer, epoch, lr):
    """A tenth of the rate from the fourth epoch on."""
    for group in optimizer.param_groups:
        group["lr"] = lr * (0.1 if epoch >= 4 else 1.0)


def make_loaders(batch_size):
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16.0
    images = F.interpolate(images, size=(12, 12), mode="bilinear", align_corners=False)
    labels = torch.tensor(digits.target)
    train_set = TensorDataset(images[:1440], labels[:1440])
    test_set = TensorDataset(images[1440:], labels[1440:])
    return (
        DataLoader(train_set, batch_size=batch_size, shuffle=True),
        DataLoader(test_set, batch_size=119),
    )


def main():
    parser = argparse.ArgumentParser(description="Adversarial training")
    parser.add_argument("--loss", choices=("pgd", "trades"), default="trades")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=80)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--step-size", type=float, default=0.03)
    parser.add_argument("--num-steps", type=int, default=5)
    parser.add_argument("--beta", type=float, default=3.0, help="weight of the TRADES term")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log-interval", type=int, default=4)
    parser.add_argument("--out", type=Path, default=Path("out/13_adversarial"))
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    train_loader, test_loader = make_loaders(args.batch_size)
    model = SmallCNN()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=2e-4)
    attack = Attack(args.epsilon, args.step_size, args.num_steps)
    test_attack = Attack(args.epsilon, args.step_size, 2 * args.num_steps)
    args.out.mkdir(parents=True, exist_ok=True)

    for epoch in range(1, args.epochs + 1):
        adjust_learning_rate(optimizer, epoch, args.lr)
        mean = train_epoch(args, model, train_loader, optimizer, attack, epoch)
        clean, robust = evaluate(model, test_loader, test_attack)
        print(f"==> epoch {epoch}: loss {mean:.6f}, clean {clean:.2f}%, robust {robust:.2f}%")
        torch.save(model.state_dict(), args.out / f"model-epoch{epoch}.pt")


if __name__ == "__main__":
    main()
