"""A vision transformer with mixup, label smoothing, clipping, warm-up and a hand-made EMA copy.

The whole training is one module-level loop over steps inside a loop over epochs.
"""

import argparse
import copy
import math
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset, random_split

parser = argparse.ArgumentParser(description="ViT on digits")
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--lr", type=float, default=2e-3)
parser.add_argument("--warmup-steps", type=int, default=20)
parser.add_argument("--mixup", type=float, default=0.4, help="alpha of the beta distribution")
parser.add_argument("--ema-decay", type=float, default=0.95)
parser.add_argument("--clip", type=float, default=1.0)
parser.add_argument("--out", type=Path, default=Path("out/04_vit_mixup"))
args = parser.parse_args()

torch.manual_seed(0)
np.random.seed(0)


class Attention(nn.Module):
    def __init__(self, dim, heads, dropout):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        batch, tokens, dim = x.shape
        qkv = self.qkv(x).view(batch, tokens, 3, self.heads, dim // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        attention = (q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))).softmax(dim=-1)
        out = self.dropout(attention) @ v
        return self.proj(out.transpose(1, 2).reshape(batch, tokens, dim))


class Block(nn.Module):
    def __init__(self, dim, heads, dropout):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attention = Attention(dim, heads, dropout)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(
            nn.Linear(dim, 2 * dim), nn.GELU(), nn.Dropout(dropout), nn.Linear(2 * dim, dim)
        )

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    def __init__(self, image=16, patch=4, dim=64, depth=3, heads=4, classes=10, dropout=0.1):
        super().__init__()
        self.patchify = nn.Conv2d(1, dim, kernel_size=patch, stride=patch)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.position = nn.Parameter(0.02 * torch.randn(1, (image // patch) ** 2 + 1, dim))
        self.blocks = nn.Sequential(*[Block(dim, heads, dropout) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        x = self.patchify(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1)
        x = self.blocks(x + self.position)
        return self.head(self.norm(x[:, 0]))


def warmup_cosine(step):
    if step < args.warmup_steps:
        return (step + 1) / args.warmup_steps
    progress = (step - args.warmup_steps) / max(1, total_steps - args.warmup_steps)
    return 0.5 * (1.0 + math.cos(math.pi * progress))


@torch.no_grad()
def update_ema():
    for average, value in zip(ema_model.parameters(), model.parameters(), strict=True):
        average.mul_(args.ema_decay).add_(value, alpha=1.0 - args.ema_decay)


@torch.no_grad()
def evaluate(net):
    net.eval()
    correct = sum((net(x).argmax(1) == y).sum().item() for x, y in test_loader)
    return 100.0 * correct / len(test_set)


digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 8.0 - 1.0
images = F.interpolate(images, size=(16, 16), mode="bicubic", align_corners=False)
dataset = TensorDataset(images, torch.tensor(digits.target))
train_set, test_set = random_split(dataset, [1472, len(dataset) - 1472])
train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True, drop_last=True)
test_loader = DataLoader(test_set, batch_size=128)

model = ViT()
ema_model = copy.deepcopy(model).requires_grad_(False)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.05)
total_steps = args.epochs * len(train_loader)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, warmup_cosine)
args.out.mkdir(parents=True, exist_ok=True)

global_step = 0
for epoch in range(args.epochs):
    model.train()
    running_loss = 0.0
    for inputs, targets in train_loader:
        lam = np.random.beta(args.mixup, args.mixup)
        partner = torch.randperm(len(inputs))
        mixed = lam * inputs + (1.0 - lam) * inputs[partner]

        logits = model(mixed)
        loss = lam * criterion(logits, targets) + (1.0 - lam) * criterion(logits, targets[partner])

        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        grad_norm = nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()
        scheduler.step()
        update_ema()

        running_loss += loss.item()
        global_step += 1
        if global_step % 10 == 0:
            lr = scheduler.get_last_lr()[0]
            print(
                f"step {global_step:4d}/{total_steps} | loss {loss.item():.5f} | "
                f"lam {lam:.3f} | norm {grad_norm:.4f} | lr {lr:.6f}"
            )
    print(
        f"epoch {epoch + 1}: loss {running_loss / len(train_loader):.5f}, "
        f"accuracy {evaluate(model):.2f}%, with EMA {evaluate(ema_model):.2f}%"
    )

torch.save({"model": model.state_dict(), "ema": ema_model.state_dict()}, args.out / "vit.pt")
