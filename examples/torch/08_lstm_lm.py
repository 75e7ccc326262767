"""An LSTM language model on generated text, its hidden state carried from chunk to chunk.

Functions work on module globals; the best model is saved whole and loaded again for the test.
"""

import argparse
import math
import random
from pathlib import Path

import torch
import torch.nn as nn

parser = argparse.ArgumentParser(description="Word-level LSTM language model")
parser.add_argument("--emsize", type=int, default=64)
parser.add_argument("--nhid", type=int, default=128)
parser.add_argument("--nlayers", type=int, default=2)
parser.add_argument("--lr", type=float, default=20.0)
parser.add_argument("--tolerance", type=float, default=0.02, help="less is a stall")
parser.add_argument("--clip", type=float, default=0.25)
parser.add_argument("--epochs", type=int, default=7)
parser.add_argument("--batch-size", type=int, default=20)
parser.add_argument("--bptt", type=int, default=20)
parser.add_argument("--dropout", type=float, default=0.2)
parser.add_argument("--seed", type=int, default=1111)
parser.add_argument("--log-interval", type=int, default=10)
parser.add_argument("--out", type=Path, default=Path("out/08_lstm_lm"))
args = parser.parse_args()
args.out.mkdir(parents=True, exist_ok=True)
save_path = args.out / "model.pt"

random.seed(args.seed)
torch.manual_seed(args.seed)


class Dictionary:
    def __init__(self):
        self.word2idx = {}
        self.idx2word = []

    def add_word(self, word):
        if word not in self.word2idx:
            self.idx2word.append(word)
            self.word2idx[word] = len(self.idx2word) - 1
        return self.word2idx[word]

    def __len__(self):
        return len(self.idx2word)


class Corpus:
    """Sentences of a small grammar in which verbs agree with subjects."""

    singular = ("the farmer", "a child", "the old sailor", "her sister", "my neighbour")
    plural = ("the birds", "two dogs", "many people", "the young painters", "his friends")
    verbs = (("sees", "see"), ("likes", "like"), ("finds", "find"), ("paints", "paint"))
    objects = ("a house", "the river", "some bread", "the blue boat", "an open door", "stones")
    endings = ("in the morning", "near the sea", "again", "when it rains", "without a word")

    def __init__(self, sentences):
        self.dictionary = Dictionary()
        self.train = self.tokenize(sentences)
        self.valid = self.tokenize(sentences // 8)
        self.test = self.tokenize(sentences // 8)

    def sentence(self):
        number = random.randrange(2)
        words = [random.choice((self.singular, self.plural)[number])]
        words.append(random.choice(self.verbs)[number])
        words.append(random.choice(self.objects))
        if random.random() < 0.4:
            words.append(random.choice(self.endings))
        return [*" ".join(words).split(), "<eos>"]

    def tokenize(self, sentences):
        ids = []
        for _ in range(sentences):
            ids.extend(self.dictionary.add_word(word) for word in self.sentence())
        return torch.tensor(ids)


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp, nhid, nlayers, dropout):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, nlayers, dropout=dropout)
        self.decoder = nn.Linear(nhid, ntoken)
        self.nhid, self.nlayers = nhid, nlayers
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.uniform_(self.decoder.weight, -0.1, 0.1)

    def forward(self, tokens, hidden):
        output, hidden = self.rnn(self.drop(self.encoder(tokens)), hidden)
        return self.decoder(self.drop(output)).flatten(0, 1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        shape = (self.nlayers, bsz, self.nhid)
        return weight.new_zeros(shape), weight.new_zeros(shape)


def batchify(data, bsz):
    """Cut the text into bsz columns, of which every row is a time step."""
    nbatch = data.size(0) // bsz
    return data[: nbatch * bsz].view(bsz, -1).t().contiguous()


def repackage_hidden(h):
    """The same hidden state, detached from its history."""
    return h.detach() if isinstance(h, torch.Tensor) else tuple(repackage_hidden(v) for v in h)


def get_batch(source, i):
    seq_len = min(args.bptt, len(source) - 1 - i)
    return source[i : i + seq_len], source[i + 1 : i + 1 + seq_len].reshape(-1)


def evaluate(data_source):
    model.eval()
    total_loss = 0.0
    hidden = model.init_hidden(eval_batch_size)
    with torch.no_grad():
        for i in range(0, data_source.size(0) - 1, args.bptt):
            data, targets = get_batch(data_source, i)
            output, hidden = model(data, hidden)
            total_loss += len(data) * criterion(output, targets).item()
    return total_loss / (len(data_source) - 1)


def train():
    model.train()
    total_loss = 0.0
    hidden = model.init_hidden(args.batch_size)
    for batch, i in enumerate(range(0, train_data.size(0) - 1, args.bptt)):
        data, targets = get_batch(train_data, i)
        hidden = repackage_hidden(hidden)
        model.zero_grad()
        output, hidden = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        with torch.no_grad():
            for p in model.parameters():
                p.add_(p.grad, alpha=-lr)

        total_loss += loss.item()
        if batch % args.log_interval == 0 and batch > 0:
            cur_loss = total_loss / args.log_interval
            print(
                f"| epoch {epoch:3d} | {batch:5d}/{len(train_data) // args.bptt:5d} batches "
                f"| lr {lr:05.2f} | loss {cur_loss:5.4f} | ppl {math.exp(cur_loss):8.3f}"
            )
            total_loss = 0.0


corpus = Corpus(sentences=4000)
ntokens = len(corpus.dictionary)
eval_batch_size = 10
train_data = batchify(corpus.train, args.batch_size)
val_data = batchify(corpus.valid, eval_batch_size)
test_data = batchify(corpus.test, eval_batch_size)

model = RNNModel(ntokens, args.emsize, args.nhid, args.nlayers, args.dropout)
criterion = nn.CrossEntropyLoss()

lr = args.lr
best_val_loss = None

# Ctrl-C stops the training early and goes on to the test
try:
    for epoch in range(1, args.epochs + 1):
        train()
        val_loss = evaluate(val_data)
        print("-" * 72)
        print(
            f"| end of epoch {epoch:3d} | valid loss {val_loss:5.4f} "
            f"| valid ppl {math.exp(val_loss):8.3f}"
        )
        print("-" * 72)
        if best_val_loss and val_loss > best_val_loss - args.tolerance:
            lr /= 4.0
        if not best_val_loss or val_loss < best_val_loss:
            torch.save(model, save_path)
            best_val_loss = val_loss
except KeyboardInterrupt:
    print("-" * 72)
    print("Exiting from training early")

model = torch.load(save_path, weights_only=False)
model.rnn.flatten_parameters()
test_loss = evaluate(test_data)
print(f"| End of training | test loss {test_loss:5.4f} | test ppl {math.exp(test_loss):8.3f}")
