"""A BERT-like reader that marks answer spans in generated passages, with tqdm bars.

AdamW with two parameter groups, gradient accumulation and a linear warm-up and decay.
"""

import argparse
import random
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler, TensorDataset
from tqdm import tqdm

PAD, CLS, SEP = 0, 1, 2
KINDS = ("who", "when", "where", "what")
FIRST_QUESTION = 3
FIRST_FILLER, FILLERS = FIRST_QUESTION + len(KINDS), 12
FIRST_WORD, WORDS = FIRST_FILLER + FILLERS, 10
VOCABULARY = FIRST_WORD + WORDS * len(KINDS)
LENGTH = 28


def make_example(rng):
    """[CLS] question [SEP] passage [SEP]; the answer is the one phrase that is of its kind."""
    asked = rng.randrange(len(KINDS))
    tokens = [CLS, FIRST_QUESTION + asked, SEP]
    start = end = 0
    for kind in rng.sample(range(len(KINDS)), len(KINDS)):
        fillers = rng.randint(1, 3)
        tokens += [rng.randrange(FIRST_FILLER, FIRST_FILLER + FILLERS) for _ in range(fillers)]
        length = rng.randint(1, 3)
        if kind == asked:
            start, end = len(tokens), len(tokens) + length - 1
        first = FIRST_WORD + WORDS * kind
        tokens += [rng.randrange(first, first + WORDS) for _ in range(length)]
    tokens.append(SEP)
    types = [0] * 3 + [1] * (len(tokens) - 3)
    padding = LENGTH - len(tokens)
    return tokens + [PAD] * padding, types + [0] * padding, start, end


def make_dataset(count, seed):
    rng = random.Random(seed)
    columns = zip(*(make_example(rng) for _ in range(count)), strict=True)
    return TensorDataset(*(torch.tensor(column) for column in columns))


class BertForQuestionAnswering(nn.Module):
    def __init__(self, hidden=64, layers=2, heads=4, dropout=0.05):
        super().__init__()
        self.word_embeddings = nn.Embedding(VOCABULARY, hidden, padding_idx=PAD)
        self.position_embeddings = nn.Embedding(LENGTH, hidden)
        self.token_type_embeddings = nn.Embedding(2, hidden)
        self.LayerNorm = nn.LayerNorm(hidden)
        layer = nn.TransformerEncoderLayer(
            hidden, heads, 2 * hidden, dropout, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.qa_outputs = nn.Linear(hidden, 2)

    def forward(self, input_ids, token_type_ids, start_positions=None, end_positions=None):
        positions = torch.arange(input_ids.size(1))
        x = self.word_embeddings(input_ids) + self.position_embeddings(positions)
        x = self.LayerNorm(x + self.token_type_embeddings(token_type_ids))
        x = self.encoder(x, src_key_padding_mask=input_ids == PAD)
        start_logits, end_logits = self.qa_outputs(x).unbind(dim=-1)
        if start_positions is None:
            return start_logits, end_logits
        loss = nn.functional.cross_entropy(start_logits, start_positions)
        return (loss + nn.functional.cross_entropy(end_logits, end_positions)) / 2


def get_linear_schedule_with_warmup(optimizer, warmup_steps, total_steps):
    def lr_lambda(step):
        if step < warmup_steps:
            return step / max(1, warmup_steps)
        return max(0.0, (total_steps - step) / max(1, total_steps - warmup_steps))

    return LambdaLR(optimizer, lr_lambda)


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def train(args, train_dataset, eval_dataset, model):
    sampler = RandomSampler(train_dataset)
    loader = DataLoader(train_dataset, sampler=sampler, batch_size=args.train_batch_size)
    t_total = len(loader) // args.gradient_accumulation_steps * args.num_train_epochs

    no_decay = ("bias", "norm1.weight", "norm2.weight", "LayerNorm.weight")
    named = list(model.named_parameters())
    grouped_parameters = [
        {
            "params": [p for n, p in named if not n.endswith(no_decay)],
            "weight_decay": args.weight_decay,
        },
        {"params": [p for n, p in named if n.endswith(no_decay)], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(grouped_parameters, lr=args.learning_rate)
    scheduler = get_linear_schedule_with_warmup(optimizer, args.warmup_steps, t_total)

    print("***** Running training *****")
    print(f"  Num examples = {len(train_dataset)}, total optimization steps = {t_total}")
    global_step = 0
    tr_loss, logging_loss = 0.0, 0.0
    model.zero_grad()
    for epoch in range(args.num_train_epochs):
        for step, batch in enumerate(tqdm(loader, desc=f"Epoch {epoch}")):
            model.train()
            input_ids, token_type_ids, start_positions, end_positions = batch
            loss = model(input_ids, token_type_ids, start_positions, end_positions)
            loss = loss / args.gradient_accumulation_steps
            loss.backward()
            tr_loss += loss.item()
            if (step + 1) % args.gradient_accumulation_steps == 0:
                nn.utils.clip_grad_norm_(model.parameters(), args.max_grad_norm)
                optimizer.step()
                scheduler.step()
                model.zero_grad()
                global_step += 1
                if global_step % args.logging_steps == 0:
                    mean = (tr_loss - logging_loss) / args.logging_steps
                    logging_loss = tr_loss
                    lr = scheduler.get_last_lr()[0]
                    tqdm.write(f"step {global_step}: loss {mean:.6f}, lr {lr:.6f}")
        results = evaluate(args, eval_dataset, model)
        print(f"epoch {epoch}: exact {results['exact']:.2f}, f1 {results['f1']:.2f}")
    return global_step, tr_loss / global_step


@torch.no_grad()
def evaluate(args, dataset, model):
    sampler = SequentialSampler(dataset)
    loader = DataLoader(dataset, sampler=sampler, batch_size=args.eval_batch_size)
    model.eval()
    exact, f1 = 0, 0.0
    for batch in tqdm(loader, desc="Evaluating", leave=False):
        input_ids, token_type_ids, starts, ends = batch
        start_logits, end_logits = model(input_ids, token_type_ids)
        predictions = (start_logits.argmax(1).tolist(), end_logits.argmax(1).tolist())
        rows = zip(*predictions, starts.tolist(), ends.tolist(), strict=True)
        for start, end, true_start, true_end in rows:
            exact += (start, end) == (true_start, true_end)
            common = min(end, true_end) - max(start, true_start) + 1
            if common > 0:
                f1 += 2 * common / (end - start + 1 + true_end - true_start + 1)
    return {"exact": 100.0 * exact / len(dataset), "f1": 100.0 * f1 / len(dataset)}


def main():
    parser = argparse.ArgumentParser(description="Question answering")
    parser.add_argument("--train-batch-size", type=int, default=32)
    parser.add_argument("--eval-batch-size", type=int, default=128)
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    parser.add_argument("--weight-decay", type=float, default=0.01)
    parser.add_argument("--gradient-accumulation-steps", type=int, default=2)
    parser.add_argument("--max-grad-norm", type=float, default=1.0)
    parser.add_argument("--num-train-epochs", type=int, default=4)
    parser.add_argument("--warmup-steps", type=int, default=20)
    parser.add_argument("--logging-steps", type=int, default=5)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--out", type=Path, default=Path("out/10_bert_qa"))
    args = parser.parse_args()

    set_seed(args.seed)
    model = BertForQuestionAnswering()
    train_dataset, eval_dataset = make_dataset(2560, seed=1), make_dataset(256, seed=2)
    global_step, tr_loss = train(args, train_dataset, eval_dataset, model)
    print(f" global_step = {global_step}, average loss = {tr_loss:.6f}")
    args.out.mkdir(parents=True, exist_ok=True)
    torch.save(model.state_dict(), args.out / "pytorch_model.bin")


if __name__ == "__main__":
    main()
