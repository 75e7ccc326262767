"""Neural collaborative filtering at module level; negatives are sampled anew for every epoch.

Hit ratio and NDCG are measured by ranking one held-out item of each user among 99 others.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser(description="NCF")
parser.add_argument("--lr", type=float, default=0.004)
parser.add_argument("--dropout", type=float, default=0.1)
parser.add_argument("--batch-size", type=int, default=384)
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--top-k", type=int, default=10)
parser.add_argument("--factor-num", type=int, default=16)
parser.add_argument("--num-layers", type=int, default=2)
parser.add_argument("--num-ng", type=int, default=4, help="negatives for each positive")
parser.add_argument("--out", type=Path, default=Path("out/12_ncf"))
args = parser.parse_args()

np.random.seed(2024)
torch.manual_seed(2024)

USERS, ITEMS, PER_USER = 300, 300, 16


class NCFData(Dataset):
    def __init__(self, positives, num_item, liked, num_ng=0, is_training=True):
        self.positives = positives
        self.num_item = num_item
        self.liked = liked
        self.num_ng = num_ng
        self.is_training = is_training
        self.samples = positives
        self.labels = [0] * len(positives)

    def ng_sample(self):
        assert self.is_training, "no need to sample when testing"
        negatives = []
        for user, _ in self.positives:
            for _ in range(self.num_ng):
                item = np.random.randint(self.num_item)
                while (user, item) in self.liked:
                    item = np.random.randint(self.num_item)
                negatives.append((user, item))
        self.samples = self.positives + negatives
        self.labels = [1] * len(self.positives) + [0] * len(negatives)

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, idx):
        user, item = self.samples[idx]
        return user, item, float(self.labels[idx])


class NCF(nn.Module):
    """The product of two embeddings beside a tower of layers over two others."""

    def __init__(self, user_num, item_num, factor_num, num_layers, dropout):
        super().__init__()
        wide = factor_num * 2 ** (num_layers - 1)
        self.embed_user_gmf = nn.Embedding(user_num, factor_num)
        self.embed_item_gmf = nn.Embedding(item_num, factor_num)
        self.embed_user_mlp = nn.Embedding(user_num, wide)
        self.embed_item_mlp = nn.Embedding(item_num, wide)
        layers = []
        for i in range(num_layers):
            size = factor_num * 2 ** (num_layers - i)
            layers += [nn.Dropout(dropout), nn.Linear(size, size // 2), nn.ReLU()]
        self.mlp = nn.Sequential(*layers)
        self.predict = nn.Linear(2 * factor_num, 1)
        for module in self.modules():
            if isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=0.1)

    def forward(self, user, item):
        gmf = self.embed_user_gmf(user) * self.embed_item_gmf(item)
        mlp = self.mlp(torch.cat([self.embed_user_mlp(user), self.embed_item_mlp(item)], dim=-1))
        return self.predict(torch.cat([gmf, mlp], dim=-1)).view(-1)


def generate_interactions():
    """Users like items near to them in a hidden space; the last one of each is held out."""
    taste = np.random.randn(USERS, 4)
    nature = np.random.randn(ITEMS, 4)
    score = taste @ nature.T + 0.5 * np.random.gumbel(size=(USERS, ITEMS))
    train, test, liked = [], [], set()
    for user in range(USERS):
        favourites = np.argsort(-score[user])[:PER_USER]
        np.random.shuffle(favourites)
        pairs = [(user, int(item)) for item in favourites]
        liked.update(pairs)
        train += pairs[:-1]
        others = np.setdiff1d(np.arange(ITEMS), favourites)
        test.append(pairs[-1])
        test += [(user, int(i)) for i in np.random.choice(others, 99, replace=False)]
    return train, test, liked


def metrics(model, test_loader, top_k):
    """The mean hit ratio and NDCG; the first item of every batch is the true one."""
    hits, ndcg = [], []
    with torch.no_grad():
        for user, item, _ in test_loader:
            _, indices = torch.topk(model(user, item), top_k)
            recommended = item[indices].tolist()
            truth = item[0].item()
            hits.append(truth in recommended)
            rank = recommended.index(truth) if truth in recommended else None
            ndcg.append(0.0 if rank is None else 1.0 / np.log2(rank + 2))
    return np.mean(hits), np.mean(ndcg)


train_data, test_data, liked_pairs = generate_interactions()
train_dataset = NCFData(train_data, ITEMS, liked_pairs, args.num_ng, is_training=True)
test_dataset = NCFData(test_data, ITEMS, liked_pairs, 0, is_training=False)
train_loader = DataLoader(train_dataset, batch_size=args.batch_size, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=100, shuffle=False)

model = NCF(USERS, ITEMS, args.factor_num, args.num_layers, args.dropout)
loss_function = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)

count, best_hr, best_ndcg, best_epoch = 0, 0.0, 0.0, -1
for epoch in range(args.epochs):
    model.train()
    epoch_loss = 0.0
    train_loader.dataset.ng_sample()
    for user, item, label in train_loader:
        model.zero_grad()
        prediction = model(user, item)
        loss = loss_function(prediction, label.float())
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item()
        count += 1
        if count % 10 == 0:
            print(f"update {count}: loss {loss.item():.6f}")

    model.eval()
    hr, ndcg = metrics(model, test_loader, args.top_k)
    print(f"epoch {epoch:03d}: loss {epoch_loss / len(train_loader):.6f}", end=" ")
    print(f"HR: {hr:.3f}\tNDCG: {ndcg:.3f}")
    if hr > best_hr:
        best_hr, best_ndcg, best_epoch = hr, ndcg, epoch
        args.out.mkdir(parents=True, exist_ok=True)
        torch.save(model.state_dict(), args.out / "NeuMF.pth")

print(f"End. Best epoch {best_epoch:03d}: HR = {best_hr:.3f}, NDCG = {best_ndcg:.3f}")
