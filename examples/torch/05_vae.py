"""A variational autoencoder written straight down at module level; it never seeds anything."""

import argparse
from pathlib import Path

import torch
import torch.utils.data
from sklearn.datasets import load_digits
from torch import nn, optim
from torch.nn import functional as F

parser = argparse.ArgumentParser(description="VAE on digits")
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--epochs", type=int, default=12)
parser.add_argument("--log-interval", type=int, default=8)
parser.add_argument("--out", type=Path, default=Path("out/05_vae"))
args = parser.parse_args()
args.out.mkdir(parents=True, exist_ok=True)

SIDE = 24


class VAE(nn.Module):
    def __init__(self, latent=12):
        super().__init__()
        self.fc1 = nn.Linear(SIDE * SIDE, 512)
        self.fc21 = nn.Linear(512, latent)
        self.fc22 = nn.Linear(512, latent)
        self.fc3 = nn.Linear(latent, 512)
        self.fc4 = nn.Linear(512, SIDE * SIDE)

    def encode(self, x):
        h = F.relu(self.fc1(x))
        return self.fc21(h), self.fc22(h)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + std * torch.randn_like(std)

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.flatten(1))
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon, x, mu, logvar):
    """Reconstruction error plus the divergence of the posterior from the standard normal."""
    bce = F.binary_cross_entropy(recon, x.flatten(1), reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce + kld


digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16.0
images = F.interpolate(images, size=(SIDE, SIDE), mode="bilinear", align_corners=False)
dataset = torch.utils.data.TensorDataset(images, torch.tensor(digits.target))
train_set = torch.utils.data.Subset(dataset, range(1500))
test_set = torch.utils.data.Subset(dataset, range(1500, len(dataset)))
train_loader = torch.utils.data.DataLoader(train_set, batch_size=args.batch_size, shuffle=True)
test_loader = torch.utils.data.DataLoader(test_set, batch_size=args.batch_size)

model = VAE()
optimizer = optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(1, args.epochs + 1):
    model.train()
    train_loss = 0.0
    for batch_idx, (data, _) in enumerate(train_loader):
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(data)
        loss = loss_function(recon_batch, data, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            print(
                f"Train Epoch: {epoch} [{batch_idx * len(data)}/{len(train_set)}]"
                f"\tLoss: {loss.item() / len(data):.6f}"
            )
    print(f"====> Epoch: {epoch} Average loss: {train_loss / len(train_set):.4f}")

    model.eval()
    test_loss = 0.0
    with torch.no_grad():
        for i, (data, _) in enumerate(test_loader):
            recon_batch, mu, logvar = model(data)
            test_loss += loss_function(recon_batch, data, mu, logvar).item()
            if i == 0:
                recon = recon_batch[:8].view(-1, 1, SIDE, SIDE)
                torch.save(torch.cat([data[:8], recon]), args.out / f"reconstruction_{epoch}.pt")
    print(f"====> Test set loss: {test_loss / len(test_set):.4f}")

    with torch.no_grad():
        sample = model.decode(torch.randn(16, 12)).view(16, 1, SIDE, SIDE)
        torch.save(sample, args.out / f"sample_{epoch}.pt")
