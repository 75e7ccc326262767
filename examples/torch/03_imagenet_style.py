"""Classification in the manner of ImageNet scripts: meters, a global best_acc1, own checkpoints.

Checkpoints are written after every epoch; --resume PATH continues from one of them.
"""

import argparse
import shutil
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser(description="Training on generated textures")
parser.add_argument("-a", "--arch", default="convnet", choices=("convnet", "mlp"))
parser.add_argument("--epochs", default=6, type=int, help="number of total epochs to run")
parser.add_argument("--start-epoch", default=0, type=int, help="epoch number (for restarts)")
parser.add_argument("-b", "--batch-size", default=64, type=int)
parser.add_argument("--lr", "--learning-rate", default=0.05, type=float, dest="lr")
parser.add_argument("--momentum", default=0.9, type=float)
parser.add_argument("--wd", "--weight-decay", default=1e-4, type=float, dest="weight_decay")
parser.add_argument("-p", "--print-freq", default=5, type=int)
parser.add_argument("--resume", default="", type=str, help="path to a checkpoint")
parser.add_argument("-e", "--evaluate", action="store_true", help="evaluate and leave")
parser.add_argument("--seed", default=7, type=int)
parser.add_argument("--out", default=Path("out/03_imagenet_style"), type=Path)

best_acc1 = 0.0


class AverageMeter:
    """Computes and stores the average and current value."""

    def __init__(self, name, fmt=".3f"):
        self.name = name
        self.fmt = fmt
        self.val = self.sum = self.avg = 0.0
        self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count

    def __str__(self):
        return f"{self.name} {self.val:{self.fmt}} ({self.avg:{self.fmt}})"


class ProgressMeter:
    """Prints a group of meters on one line."""

    def __init__(self, num_batches, meters, prefix=""):
        self.num_batches = num_batches
        self.meters = meters
        self.prefix = prefix

    def display(self, batch):
        width = len(str(self.num_batches))
        print(f"{self.prefix}[{batch:{width}d}/{self.num_batches}]", *self.meters, sep="\t")


def make_textures(count, rng):
    """Gratings of ten kinds (five directions, two frequencies) in noise."""
    labels = rng.integers(10, size=count)
    ys, xs = np.mgrid[0:20, 0:20] / 20.0
    angle = (labels % 5) * np.pi / 5 + rng.normal(0, 0.08, size=count)
    frequency = np.where(labels < 5, 3.0, 5.5) + rng.normal(0, 0.3, size=count)
    phase = rng.uniform(0, 2 * np.pi, size=count)
    along = np.cos(angle)[:, None, None] * xs + np.sin(angle)[:, None, None] * ys
    images = np.sin(2 * np.pi * frequency[:, None, None] * along + phase[:, None, None])
    images = images + rng.normal(0, 2.2, size=images.shape)
    data = torch.tensor(images, dtype=torch.float32).unsqueeze(1)
    return TensorDataset(data, torch.tensor(labels))


def create_model(arch):
    if arch == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(400, 256), nn.ReLU(), nn.Linear(256, 10))
    return nn.Sequential(
        nn.Conv2d(1, 24, 5, padding=2, bias=False),
        nn.BatchNorm2d(24),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(24, 48, 3, padding=1, bias=False),
        nn.BatchNorm2d(48),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(48 * 4, 10),
    )


def main():
    global best_acc1
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    print(f"=> creating model '{args.arch}'")
    model = create_model(args.arch)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(
        model.parameters(), args.lr, momentum=args.momentum, weight_decay=args.weight_decay
    )
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.3)

    if args.resume:
        if Path(args.resume).is_file():
            print(f"=> loading checkpoint '{args.resume}'")
            checkpoint = torch.load(args.resume)
            args.start_epoch = checkpoint["epoch"]
            best_acc1 = checkpoint["best_acc1"]
            model.load_state_dict(checkpoint["state_dict"])
            optimizer.load_state_dict(checkpoint["optimizer"])
            scheduler.load_state_dict(checkpoint["scheduler"])
            print(f"=> loaded checkpoint '{args.resume}' (epoch {checkpoint['epoch']})")
        else:
            print(f"=> no checkpoint found at '{args.resume}'")

    rng = np.random.default_rng(0)
    train_dataset = make_textures(1600, rng)
    val_dataset = make_textures(500, rng)
    train_loader = DataLoader(train_dataset, batch_size=args.batch_size, shuffle=True)
    val_loader = DataLoader(val_dataset, batch_size=args.batch_size, shuffle=False)

    if args.evaluate:
        validate(val_loader, model, criterion, args)
        return

    args.out.mkdir(parents=True, exist_ok=True)
    for epoch in range(args.start_epoch, args.epochs):
        train(train_loader, model, criterion, optimizer, epoch, args)
        acc1 = validate(val_loader, model, criterion, args)
        scheduler.step()

        is_best = acc1 > best_acc1
        best_acc1 = max(acc1, best_acc1)
        state = {
            "epoch": epoch + 1,
            "arch": args.arch,
            "state_dict": model.state_dict(),
            "best_acc1": best_acc1,
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
        }
        save_checkpoint(state, is_best, args.out)
    print(f"=> best Acc@1 {best_acc1:.3f}")


def train(train_loader, model, criterion, optimizer, epoch, args):
    batch_time = AverageMeter("batch_time")
    data_time = AverageMeter("data_time")
    losses = AverageMeter("Loss", ".4e")
    top1 = AverageMeter("Acc@1", "6.2f")
    top5 = AverageMeter("Acc@5", "6.2f")
    progress = ProgressMeter(len(train_loader), [losses, top1, top5], f"Epoch: [{epoch}]")
    timing = ProgressMeter(len(train_loader), [batch_time, data_time], f"Epoch: [{epoch}]")

    model.train()
    end = time.time()
    for i, (images, target) in enumerate(train_loader):
        data_time.update(time.time() - end)

        output = model(images)
        loss = criterion(output, target)
        acc1, acc5 = accuracy(output, target, topk=(1, 5))
        losses.update(loss.item(), images.size(0))
        top1.update(acc1, images.size(0))
        top5.update(acc5, images.size(0))

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        batch_time.update(time.time() - end)
        end = time.time()
        if i % args.print_freq == 0:
            progress.display(i + 1)
            timing.display(i + 1)


def validate(val_loader, model, criterion, args):
    losses = AverageMeter("Loss", ".4e")
    top1 = AverageMeter("Acc@1", "6.2f")
    top5 = AverageMeter("Acc@5", "6.2f")
    progress = ProgressMeter(len(val_loader), [losses, top1, top5], prefix="Test: ")

    model.eval()
    with torch.no_grad():
        for i, (images, target) in enumerate(val_loader):
            output = model(images)
            acc1, acc5 = accuracy(output, target, topk=(1, 5))
            losses.update(criterion(output, target).item(), images.size(0))
            top1.update(acc1, images.size(0))
            top5.update(acc5, images.size(0))
            if i % args.print_freq == 0:
                progress.display(i + 1)
    print(f" * Acc@1 {top1.avg:.3f} Acc@5 {top5.avg:.3f} Loss {losses.avg:.6f}")
    return top1.avg


def accuracy(output, target, topk=(1,)):
    """The percentage of samples whose target is among the k highest outputs, for each k."""
    _, pred = output.topk(max(topk), dim=1)
    hits = pred.eq(target.unsqueeze(1))
    return [100.0 * hits[:, :k].any(dim=1).float().mean().item() for k in topk]


def save_checkpoint(state, is_best, directory):
    filename = directory / "checkpoint.pth.tar"
    torch.save(state, filename)
    if is_best:
        shutil.copyfile(filename, directory / "model_best.pth.tar")


if __name__ == "__main__":
    main()
