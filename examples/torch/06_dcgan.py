"""DCGAN on digits: two networks, two optimizers and lists of losses, all at module level."""

import argparse
import random
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser(description="DCGAN")
parser.add_argument("--niter", type=int, default=4, help="number of epochs to train for")
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--nz", type=int, default=32, help="size of the latent vector")
parser.add_argument("--ngf", type=int, default=16)
parser.add_argument("--ndf", type=int, default=16)
parser.add_argument("--lr", type=float, default=4e-4)
parser.add_argument("--beta1", type=float, default=0.5)
parser.add_argument("--manual-seed", type=int, default=999)
parser.add_argument("--out", type=Path, default=Path("out/06_dcgan"))
opt = parser.parse_args()
opt.out.mkdir(parents=True, exist_ok=True)

print("Random Seed:", opt.manual_seed)
random.seed(opt.manual_seed)
torch.manual_seed(opt.manual_seed)

nz, ngf, ndf = opt.nz, opt.ngf, opt.ndf
real_label = 0.9
fake_label = 0.0


def weights_init(m):
    """Start convolutions near zero and batch normalisations near one."""
    classname = m.__class__.__name__
    if "Conv" in classname:
        nn.init.normal_(m.weight, 0.0, 0.02)
    elif "BatchNorm" in classname:
        nn.init.normal_(m.weight, 1.0, 0.02)
        nn.init.zeros_(m.bias)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf * 4, 4, 1, 0, bias=False),
            nn.BatchNorm2d(ngf * 4),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 4, ngf * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ngf * 2),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 2, ngf, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ngf),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf, 1, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, noise):
        return self.main(noise)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(1, ndf, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf, ndf * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ndf * 2),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf * 2, ndf * 4, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ndf * 4),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf * 4, 1, 4, 1, 0, bias=False),
            nn.Sigmoid(),
        )

    def forward(self, image):
        return self.main(image).view(-1)


digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 8.0 - 1.0
images = F.interpolate(images, size=(32, 32), mode="bilinear", align_corners=False)
dataset = TensorDataset(images, torch.tensor(digits.target))
dataloader = DataLoader(dataset, batch_size=opt.batch_size, shuffle=True, drop_last=True)

netG = Generator()
netG.apply(weights_init)
netD = Discriminator()
netD.apply(weights_init)

criterion = nn.BCELoss()
fixed_noise = torch.randn(36, nz, 1, 1)
optimizerD = optim.Adam(netD.parameters(), lr=opt.lr, betas=(opt.beta1, 0.999))
optimizerG = optim.Adam(netG.parameters(), lr=opt.lr, betas=(opt.beta1, 0.999))

G_losses = []
D_losses = []
iters = 0

print("Starting Training Loop...")
for epoch in range(opt.niter):
    for i, data in enumerate(dataloader, 0):
        # (1) Update D: maximize log(D(x)) + log(1 - D(G(z)))
        netD.zero_grad()
        real = data[0]
        b_size = real.size(0)
        label = torch.full((b_size,), real_label)
        output = netD(real)
        errD_real = criterion(output, label)
        errD_real.backward()
        D_x = output.mean().item()

        noise = torch.randn(b_size, nz, 1, 1)
        fake = netG(noise)
        label.fill_(fake_label)
        output = netD(fake.detach())
        errD_fake = criterion(output, label)
        errD_fake.backward()
        D_G_z1 = output.mean().item()
        errD = errD_real + errD_fake
        optimizerD.step()

        # (2) Update G: maximize log(D(G(z)))
        netG.zero_grad()
        label.fill_(real_label)
        output = netD(fake)
        errG = criterion(output, label)
        errG.backward()
        D_G_z2 = output.mean().item()
        optimizerG.step()

        G_losses.append(errG.item())
        D_losses.append(errD.item())
        if i % 7 == 0:
            print(
                f"[{epoch}/{opt.niter}][{i}/{len(dataloader)}]\t"
                f"Loss_D: {errD.item():.4f}\tLoss_G: {errG.item():.4f}\t"
                f"D(x): {D_x:.4f}\tD(G(z)): {D_G_z1:.4f} / {D_G_z2:.4f}"
            )
        iters += 1

    with torch.no_grad():
        samples = netG(fixed_noise)
    torch.save(samples, opt.out / f"fake_samples_epoch_{epoch:03d}.pt")
    torch.save(netG.state_dict(), opt.out / f"netG_epoch_{epoch}.pth")
    torch.save(netD.state_dict(), opt.out / f"netD_epoch_{epoch}.pth")
    recent = slice(-len(dataloader), None)
    mean_d = sum(D_losses[recent]) / len(dataloader)
    mean_g = sum(G_losses[recent]) / len(dataloader)
    print(f"Epoch {epoch} done after {iters} iterations: D {mean_d:.5f}, G {mean_g:.5f}")
