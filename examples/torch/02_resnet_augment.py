"""A small ResNet on generated shapes; the dataset augments in __getitem__, in worker processes.

The augmentation draws from three generators (torch, numpy, random); the epoch is a closure.
"""

import argparse
import random
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CLASSES = ("disc", "ring", "square", "frame", "cross", "diamond")
SIZE = 24


def draw_shape(kind, rng):
    """One RGB image of a shape in a random colour, at a random place, on a noisy ground."""
    ys, xs = np.mgrid[0:SIZE, 0:SIZE]
    cy, cx = rng.uniform(9, 15, size=2)
    radius = rng.uniform(5, 8)
    dy, dx = np.abs(ys - cy), np.abs(xs - cx)
    if kind in ("disc", "ring"):
        distance = np.hypot(dy, dx)
    elif kind in ("square", "frame"):
        distance = np.maximum(dy, dx)
    elif kind == "diamond":
        distance = dy + dx
    else:
        distance = np.where(np.minimum(dy, dx) < 1.8, np.maximum(dy, dx), 99.0)
    mask = distance < radius
    if kind in ("ring", "frame"):
        mask &= distance > radius - 2.5
    image = rng.normal(0.0, 0.1, size=(3, SIZE, SIZE)) + rng.uniform(-0.4, 0.4, size=(3, 1, 1))
    image += mask * rng.choice((-1.0, 1.0)) * rng.uniform(0.6, 1.2, size=(3, 1, 1))
    return image.astype(np.float32)


class ShapesDataset(Dataset):
    def __init__(self, count, seed, augment):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(len(CLASSES), size=count)
        self.images = np.stack([draw_shape(CLASSES[k], rng) for k in self.labels])
        self.augment = augment

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = torch.from_numpy(self.images[index])
        if self.augment:
            image = nn.functional.pad(image, (3, 3, 3, 3))
            top, left = torch.randint(0, 7, (2,)).tolist()
            image = image[:, top : top + SIZE, left : left + SIZE]
            if random.random() < 0.5:
                image = image.flip(-1)
            image = image * np.float32(np.random.uniform(0.8, 1.2))
        return image, int(self.labels[index])


class BasicBlock(nn.Module):
    def __init__(self, in_planes, planes, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(in_planes, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.shortcut = nn.Identity()
        if stride != 1 or in_planes != planes:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_planes, planes, 1, stride, bias=False), nn.BatchNorm2d(planes)
            )

    def forward(self, x):
        out = torch.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return torch.relu(out + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self, blocks=(1, 1, 1), width=12, num_classes=6):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()
        )
        stages = []
        planes = width
        for stage, repeats in enumerate(blocks):
            out_planes = width * 2**stage
            for block in range(repeats):
                stride = 2 if stage > 0 and block == 0 else 1
                stages.append(BasicBlock(planes, out_planes, stride))
                planes = out_planes
        self.stages = nn.Sequential(*stages)
        self.fc = nn.Linear(planes, num_classes)

    def forward(self, x):
        x = self.stages(self.stem(x))
        return self.fc(x.mean(dim=(2, 3)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=48)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--num-workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--out", type=Path, default=Path("out/02_resnet_augment"))
    args = parser.parse_args()

    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    train_loader = DataLoader(
        ShapesDataset(768, seed=1, augment=True),
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=args.num_workers,
        drop_last=True,
    )
    test_loader = DataLoader(
        ShapesDataset(300, seed=2, augment=False), batch_size=100, num_workers=args.num_workers
    )

    net = ResNet()
    print(f"==> {sum(p.numel() for p in net.parameters())} parameters")
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(
        net.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4, nesterov=True
    )
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)
    args.out.mkdir(parents=True, exist_ok=True)
    best_acc = 0.0

    def run_epoch(loader, training):
        net.train(training)
        total_loss, correct, total = 0.0, 0, 0
        with torch.set_grad_enabled(training):
            for step, (inputs, targets) in enumerate(loader, start=1):
                outputs = net(inputs)
                loss = criterion(outputs, targets)
                if training:
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                total_loss += loss.item() * len(targets)
                correct += (outputs.argmax(1) == targets).sum().item()
                total += len(targets)
                if training and step % 4 == 0:
                    print(f"  step {step:3d}/{len(loader)}  loss {total_loss / total:.4f}")
        return total_loss / total, 100.0 * correct / total

    for epoch in range(args.epochs):
        print(f"Epoch {epoch}  lr {scheduler.get_last_lr()[0]:.5f}")
        train_loss, train_acc = run_epoch(train_loader, training=True)
        test_loss, test_acc = run_epoch(test_loader, training=False)
        scheduler.step()
        print(f"  train loss {train_loss:.4f} acc {train_acc:.2f}%")
        print(f"  test  loss {test_loss:.4f} acc {test_acc:.2f}%")
        if test_acc > best_acc:
            best_acc = test_acc
            torch.save({"net": net.state_dict(), "acc": best_acc}, args.out / "ckpt.pth")
    print(f"Best accuracy: {best_acc:.2f}%")


if __name__ == "__main__":
    main()
