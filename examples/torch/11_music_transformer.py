"""A music transformer with relative attention on tunes it makes up; it never seeds anything.

The batches come from a generator function and the learning rate from a hand-written Noam object.
"""

import argparse
import math
import random
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F

SCALE = (0, 2, 4, 5, 7, 9, 11)
NOTE_NAMES = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")
LOWEST, PITCHES = 55, 30
HOLD, BAR, START = PITCHES, PITCHES + 1, PITCHES + 2
VOCABULARY = PITCHES + 3


def compose(bars=6):
    """A random walk on a major scale; every third bar repeats the one before."""
    degree = random.randrange(5, 10)
    key = random.randrange(5)
    tune, bar = [START], []
    for number in range(bars):
        if number % 3 != 2:
            bar = []
            while len(bar) < 7:
                degree = min(13, max(0, degree + random.choice((-2, -1, -1, 1, 1, 2))))
                octave, step = divmod(degree, 7)
                bar.append(key + 12 * octave + SCALE[step])
                if random.random() < 0.3:
                    bar.append(HOLD)
            bar = bar[:7]
        tune += [*bar, BAR]
    return tune


def minibatches(tunes, batch_size):
    """One pass over the tunes in random order, as inputs and targets."""
    order = list(range(len(tunes)))
    random.shuffle(order)
    for first in range(0, len(order) - batch_size + 1, batch_size):
        batch = tunes[order[first : first + batch_size]]
        yield batch[:, :-1], batch[:, 1:]


class RelativeAttention(nn.Module):
    """Causal attention with a learned embedding of the distance between two positions."""

    def __init__(self, dim, heads, max_len):
        super().__init__()
        self.heads, self.max_len = heads, max_len
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.distance = nn.Parameter(0.1 * torch.randn(max_len, dim // heads))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        # Row i of `relative` holds distances t-1 … 0; shifting it lines them up with the keys
        relative = q @ self.distance[self.max_len - t :].t()
        relative = F.pad(relative, (1, 0)).view(b, self.heads, t + 1, t)[:, :, 1:]
        scores = (q @ k.transpose(-2, -1) + relative) / math.sqrt(d // self.heads)
        future = torch.ones(t, t, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(future, float("-inf")).softmax(dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(b, t, d))


class Layer(nn.Module):
    def __init__(self, dim, heads, max_len, dropout):
        super().__init__()
        self.attention = RelativeAttention(dim, heads, max_len)
        self.feed_forward = nn.Sequential(
            nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim)
        )
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        x = x + self.dropout(self.attention(self.norm1(x)))
        return x + self.dropout(self.feed_forward(self.norm2(x)))


class MusicTransformer(nn.Module):
    def __init__(self, dim=64, heads=4, layers=2, max_len=64, dropout=0.1):
        super().__init__()
        self.max_len = max_len
        self.embedding = nn.Embedding(VOCABULARY, dim)
        self.layers = nn.ModuleList(Layer(dim, heads, max_len, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, VOCABULARY)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))

    @torch.no_grad()
    def sample(self, length, temperature=0.9):
        self.eval()
        tokens = torch.tensor([[START]])
        for _ in range(length):
            logits = self(tokens[:, -self.max_len :])[:, -1] / temperature
            logits[:, START] = float("-inf")
            tokens = torch.cat([tokens, torch.multinomial(logits.softmax(-1), 1)], dim=1)
        return tokens[0, 1:].tolist()


class NoamOpt:
    """Drives an optimizer with the schedule of the transformer paper."""

    def __init__(self, model_size, factor, warmup, optimizer):
        self.model_size = model_size
        self.factor = factor
        self.warmup = warmup
        self.optimizer = optimizer
        self._step = 0
        self._rate = 0.0

    def step(self):
        self._step += 1
        self._rate = self.rate()
        for group in self.optimizer.param_groups:
            group["lr"] = self._rate
        self.optimizer.step()

    def rate(self):
        scale = min(self._step**-0.5, self._step * self.warmup**-1.5)
        return self.factor * self.model_size**-0.5 * scale

    def zero_grad(self):
        self.optimizer.zero_grad()


def spell(tokens):
    names = {HOLD: "-", BAR: "|"}
    return " ".join(names[t] if t in names else NOTE_NAMES[(LOWEST + t) % 12] for t in tokens)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--tunes", type=int, default=640)
    parser.add_argument("--warmup", type=int, default=40)
    parser.add_argument("--out", type=Path, default=Path("out/11_music_transformer"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)

    tunes = torch.tensor([compose() for _ in range(args.tunes)])
    held_out, tunes = tunes[:32], tunes[32:]
    model = MusicTransformer()
    adam = torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9)
    opt = NoamOpt(model_size=64, factor=0.25, warmup=args.warmup, optimizer=adam)

    for epoch in range(1, args.epochs + 1):
        model.train()
        total, batches = 0.0, 0
        for inputs, targets in minibatches(tunes, args.batch_size):
            opt.zero_grad()
            loss = F.cross_entropy(model(inputs).transpose(1, 2), targets, label_smoothing=0.05)
            loss.backward()
            opt.step()
            total += loss.item()
            batches += 1
            if batches % 7 == 0:
                print(f"epoch {epoch} batch {batches}: loss {loss.item():.5f} lr {opt._rate:.6f}")
        model.eval()
        with torch.no_grad():
            logits = model(held_out[:, :-1])
            valid = F.cross_entropy(logits.transpose(1, 2), held_out[:, 1:]).item()
        print(f"epoch {epoch}: train loss {total / batches:.5f}, valid loss {valid:.5f}")
        tune = spell(model.sample(32))
        print(f"  {tune}")
        (args.out / f"tune_{epoch:02d}.txt").write_text(tune + "\n")

    torch.save(model.state_dict(), args.out / "music_transformer.pt")


if __name__ == "__main__":
    main()
