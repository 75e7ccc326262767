"""Cycle-consistent translation between two picture domains: four networks, three optimizers.

Module level; a replay buffer of generated images draws with python's random, loaders are zipped.
"""

import argparse
import itertools
import random
from pathlib import Path

import torch
import torch.nn as nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser(description="CycleGAN on generated pictures")
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--decay-epoch", type=int, default=3, help="epoch to start lr decay from")
parser.add_argument("--batch-size", type=int, default=8)
parser.add_argument("--lr", type=float, default=1e-3)
parser.add_argument("--lambda-cycle", type=float, default=10.0)
parser.add_argument("--lambda-identity", type=float, default=5.0)
parser.add_argument("--seed", type=int, default=123)
parser.add_argument("--out", type=Path, default=Path("out/07_cyclegan"))
args = parser.parse_args()
args.out.mkdir(parents=True, exist_ok=True)

random.seed(args.seed)
torch.manual_seed(args.seed)

SIZE = 16


class Squares(Dataset):
    """Bright squares on a dark ground; `striped` squares make up the other domain."""

    def __init__(self, count, striped):
        self.images = torch.full((count, 3, SIZE, SIZE), -0.8)
        stripes = (torch.arange(SIZE) // 2 % 2).float() * 1.4 - 0.7
        for image in self.images:
            side = int(torch.randint(6, 11, ()))
            top, left = torch.randint(0, SIZE - side + 1, (2,)).tolist()
            patch = stripes[:side].expand(3, side, side) if striped else torch.rand(3, 1, 1)
            image[:, top : top + side, left : left + side] = patch

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index] + 0.05 * torch.randn(3, SIZE, SIZE)


class ReplayBuffer:
    """Keeps the last generated images and hands out old ones half of the time."""

    def __init__(self, max_size=30):
        self.max_size = max_size
        self.data = []

    def push_and_pop(self, batch):
        result = []
        for image in batch.detach():
            if len(self.data) < self.max_size:
                self.data.append(image.clone())
                result.append(image)
            elif random.uniform(0, 1) > 0.5:
                index = random.randrange(self.max_size)
                result.append(self.data[index].clone())
                self.data[index] = image.clone()
            else:
                result.append(image)
        return torch.stack(result)


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, padding_mode="reflect"),
            nn.InstanceNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1, padding_mode="reflect"),
            nn.InstanceNorm2d(channels),
        )

    def forward(self, x):
        return x + self.body(x)


def make_generator(width=16):
    return nn.Sequential(
        nn.Conv2d(3, width, 4, stride=2, padding=1),
        nn.InstanceNorm2d(width),
        nn.ReLU(),
        Residual(width),
        Residual(width),
        nn.ConvTranspose2d(width, 3, 4, stride=2, padding=1),
        nn.Tanh(),
    )


def make_discriminator(width=16):
    return nn.Sequential(
        nn.Conv2d(3, width, 4, stride=2, padding=1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(width, width * 2, 4, stride=2, padding=1),
        nn.InstanceNorm2d(width * 2),
        nn.LeakyReLU(0.2),
        nn.Conv2d(width * 2, 1, 3, padding=1),
    )


def decay(epoch):
    start = args.decay_epoch
    return 1.0 - max(0, epoch - start) / max(1, args.epochs - start)


loader_a = DataLoader(Squares(160, striped=False), batch_size=args.batch_size, shuffle=True)
loader_b = DataLoader(Squares(176, striped=True), batch_size=args.batch_size, shuffle=True)

netG_A2B, netG_B2A = make_generator(), make_generator()
netD_A, netD_B = make_discriminator(), make_discriminator()

criterion_gan = nn.MSELoss()
criterion_cycle = nn.L1Loss()
criterion_identity = nn.L1Loss()

optimizer_G = torch.optim.Adam(
    itertools.chain(netG_A2B.parameters(), netG_B2A.parameters()), lr=args.lr, betas=(0.5, 0.999)
)
optimizer_D_A = torch.optim.Adam(netD_A.parameters(), lr=args.lr, betas=(0.5, 0.999))
optimizer_D_B = torch.optim.Adam(netD_B.parameters(), lr=args.lr, betas=(0.5, 0.999))
schedulers = [LambdaLR(opt, decay) for opt in (optimizer_G, optimizer_D_A, optimizer_D_B)]

fake_a_buffer = ReplayBuffer()
fake_b_buffer = ReplayBuffer()

for epoch in range(args.epochs):
    sum_g = sum_d = 0.0
    for i, (real_a, real_b) in enumerate(zip(loader_a, loader_b, strict=False)):
        # Generators: fool both discriminators, come back after a round trip, keep what is right
        optimizer_G.zero_grad()
        fake_b = netG_A2B(real_a)
        fake_a = netG_B2A(real_b)
        pred_b, pred_a = netD_B(fake_b), netD_A(fake_a)
        loss_gan = criterion_gan(pred_b, torch.ones_like(pred_b))
        loss_gan = loss_gan + criterion_gan(pred_a, torch.ones_like(pred_a))
        loss_cycle = criterion_cycle(netG_B2A(fake_b), real_a)
        loss_cycle = loss_cycle + criterion_cycle(netG_A2B(fake_a), real_b)
        loss_identity = criterion_identity(netG_A2B(real_b), real_b)
        loss_identity = loss_identity + criterion_identity(netG_B2A(real_a), real_a)
        loss_g = loss_gan + args.lambda_cycle * loss_cycle + args.lambda_identity * loss_identity
        loss_g.backward()
        optimizer_G.step()

        # Discriminators: real against replayed images
        optimizer_D_A.zero_grad()
        pred_real, pred_fake = netD_A(real_a), netD_A(fake_a_buffer.push_and_pop(fake_a))
        loss_d_a = criterion_gan(pred_real, torch.ones_like(pred_real))
        loss_d_a = 0.5 * (loss_d_a + criterion_gan(pred_fake, torch.zeros_like(pred_fake)))
        loss_d_a.backward()
        optimizer_D_A.step()

        optimizer_D_B.zero_grad()
        pred_real, pred_fake = netD_B(real_b), netD_B(fake_b_buffer.push_and_pop(fake_b))
        loss_d_b = criterion_gan(pred_real, torch.ones_like(pred_real))
        loss_d_b = 0.5 * (loss_d_b + criterion_gan(pred_fake, torch.zeros_like(pred_fake)))
        loss_d_b.backward()
        optimizer_D_B.step()

        sum_g += loss_g.item()
        sum_d += loss_d_a.item() + loss_d_b.item()
        if i % 5 == 0:
            print(
                f"[{epoch + 1}/{args.epochs}][{i}] G: {loss_g.item():.5f} "
                f"(gan {loss_gan.item():.5f}, cycle {loss_cycle.item():.5f}, "
                f"identity {loss_identity.item():.5f}) "
                f"D_A: {loss_d_a.item():.5f} D_B: {loss_d_b.item():.5f}"
            )

    for scheduler in schedulers:
        scheduler.step()
    lr = optimizer_G.param_groups[0]["lr"]
    print(f"epoch {epoch + 1}: G {sum_g / (i + 1):.5f} D {sum_d / (i + 1):.5f} next lr {lr:.6f}")
    torch.save({"a": real_a, "a2b": fake_b.detach()}, args.out / f"translated_{epoch + 1}.pt")
    for name, net in (("A2B", netG_A2B), ("B2A", netG_B2A)):
        torch.save(net.state_dict(), args.out / f"netG_{name}.pth")
