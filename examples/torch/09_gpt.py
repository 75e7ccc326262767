"""A small GPT at module level: `while True`, random batches from a memory-mapped token file.

Gradients are accumulated, the next batch is prefetched, settings are `--name=value` globals.
"""

import math
import random
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
from torch.nn import functional as F

# -----------------------------------------------------------------------------
out = "out/09_gpt"
eval_interval = 20
eval_iters = 4
log_interval = 4
gradient_accumulation_steps = 2
batch_size = 8
block_size = 48
n_layer = 2
n_head = 4
n_embd = 64
dropout = 0.1
learning_rate = 3e-3
min_lr = 3e-4
weight_decay = 0.1
grad_clip = 1.0
warmup_iters = 8
max_iters = 100
seed = 1337
# -----------------------------------------------------------------------------
for arg in sys.argv[1:]:
    key, _, value = arg.lstrip("-").partition("=")
    globals()[key] = type(globals()[key])(value)
# -----------------------------------------------------------------------------

out_dir = Path(out)
out_dir.mkdir(parents=True, exist_ok=True)


def prepare(filename, sentences, text_seed):
    """Write a file of byte tokens: little sums and their results, one to a line."""
    rng = random.Random(text_seed)
    lines = []
    for _ in range(sentences):
        a, b = rng.randrange(100), rng.randrange(100)
        sign = rng.choice("+-")
        lines.append(f"{a} {sign} {b} = {a + b if sign == '+' else a - b}\n")
    text = "".join(lines).encode()
    np.frombuffer(text, dtype=np.uint8).astype(np.uint16).tofile(filename)


for number, (split, size) in enumerate((("train", 20000), ("val", 2000))):
    if not (out_dir / f"{split}.bin").exists():
        prepare(out_dir / f"{split}.bin", size, number)

torch.manual_seed(seed)
ctx = torch.autocast(device_type="cpu", dtype=torch.bfloat16)
tokens_per_iter = gradient_accumulation_steps * batch_size * block_size
print(f"tokens per iteration will be: {tokens_per_iter:,}")


def get_batch(split):
    # A fresh map for every batch, or the pages read would never be given back
    data = np.memmap(out_dir / f"{split}.bin", dtype=np.uint16, mode="r")
    ix = torch.randint(len(data) - block_size, (batch_size,)).tolist()
    rows = [torch.from_numpy(data[i : i + block_size + 1].astype(np.int64)) for i in ix]
    return torch.stack([row[:-1] for row in rows]), torch.stack([row[1:] for row in rows])


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd)
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        self.ln_2 = nn.LayerNorm(n_embd)
        self.mlp = nn.Sequential(
            nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd)
        )
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.c_attn(self.ln_1(x)).split(c, dim=2)
        q, k, v = (z.view(b, t, n_head, c // n_head).transpose(1, 2) for z in (q, k, v))
        y = F.scaled_dot_product_attention(
            q, k, v, dropout_p=dropout if self.training else 0.0, is_causal=True
        )
        x = x + self.drop(self.c_proj(y.transpose(1, 2).reshape(b, t, c)))
        return x + self.drop(self.mlp(self.ln_2(x)))


class GPT(nn.Module):
    def __init__(self, vocab_size=128):
        super().__init__()
        self.wte = nn.Embedding(vocab_size, n_embd)
        self.wpe = nn.Embedding(block_size, n_embd)
        self.drop = nn.Dropout(dropout)
        self.h = nn.ModuleList(Block() for _ in range(n_layer))
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, vocab_size, bias=False)
        self.lm_head.weight = self.wte.weight
        for name, p in self.named_parameters():
            if p.dim() >= 2:
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * n_layer) if "c_proj" in name else 0.02)

    def forward(self, idx, targets):
        x = self.drop(self.wte(idx) + self.wpe(torch.arange(idx.size(1))))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
        return logits, loss


@torch.no_grad()
def estimate_loss():
    losses = {}
    model.eval()
    for split in ("train", "val"):
        values = torch.zeros(eval_iters)
        for k in range(eval_iters):
            X, Y = get_batch(split)
            with ctx:
                _, loss = model(X, Y)
            values[k] = loss.item()
        losses[split] = values.mean()
    model.train()
    return losses


def get_lr(it):
    if it < warmup_iters:
        return learning_rate * (it + 1) / (warmup_iters + 1)
    decay_ratio = min(1.0, (it - warmup_iters) / (max_iters - warmup_iters))
    return min_lr + 0.5 * (1.0 + math.cos(math.pi * decay_ratio)) * (learning_rate - min_lr)


iter_num = 0
best_val_loss = 1e9
model = GPT()
print(f"number of parameters: {sum(p.numel() for p in model.parameters()):,}")
scaler = torch.amp.GradScaler("cpu", enabled=False)
matrices = [p for p in model.parameters() if p.dim() >= 2]
vectors = [p for p in model.parameters() if p.dim() < 2]
groups = [
    {"params": matrices, "weight_decay": weight_decay},
    {"params": vectors, "weight_decay": 0.0},
]
optimizer = torch.optim.AdamW(groups, lr=learning_rate, betas=(0.9, 0.95))

X, Y = get_batch("train")  # the very first batch
t0 = time.time()
local_iter_num = 0
while True:
    lr = get_lr(iter_num)
    for param_group in optimizer.param_groups:
        param_group["lr"] = lr

    if iter_num % eval_interval == 0:
        losses = estimate_loss()
        print(f"step {iter_num}: train loss {losses['train']:.4f}, val loss {losses['val']:.4f}")
        if losses["val"] < best_val_loss:
            best_val_loss = losses["val"]
            if iter_num > 0:
                checkpoint = {
                    "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "iter_num": iter_num,
                    "best_val_loss": best_val_loss,
                }
                print(f"saving checkpoint to {out_dir.name}")
                torch.save(checkpoint, out_dir / "ckpt.pt")

    for _micro_step in range(gradient_accumulation_steps):
        with ctx:
            logits, loss = model(X, Y)
            loss = loss / gradient_accumulation_steps
        X, Y = get_batch("train")  # prefetch while the model is busy
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)

    t1 = time.time()
    dt, t0 = t1 - t0, t1
    if iter_num % log_interval == 0:
        lossf = loss.item() * gradient_accumulation_steps
        print(f"iter {iter_num}: loss {lossf:.6f}, lr {lr:.6f}")
        if local_iter_num >= 5:
            print(f"iter {iter_num}: time {dt * 1000:.2f} ms per iter")
    iter_num += 1
    local_iter_num += 1
    if iter_num > max_iters:
        break

print(f"best val loss {best_val_loss:.4f}")
