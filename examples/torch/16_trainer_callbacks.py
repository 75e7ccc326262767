"""Regression with a Trainer class and callbacks: early stopping, an open CSV file, checkpoints.

A first phase trains with Adam on batches; a second fine-tunes with LBFGS and a closure.
"""

import argparse
import csv
from pathlib import Path

import torch
import torch.nn as nn
from sklearn.datasets import make_friedman1
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset


class Callback:
    def on_fit_begin(self, trainer):
        pass

    def on_batch_end(self, trainer, batch, loss):
        pass

    def on_epoch_end(self, trainer, logs):
        pass

    def on_phase_end(self, trainer):
        pass

    def on_fit_end(self, trainer):
        pass


class ProgressPrinter(Callback):
    def __init__(self, every):
        self.every = every

    def on_batch_end(self, trainer, batch, loss):
        if batch % self.every == 0:
            print(f"  [{trainer.phase}] epoch {trainer.epoch} batch {batch}: loss {loss:.6f}")

    def on_epoch_end(self, trainer, logs):
        numbers = ", ".join(f"{key} {value:.6f}" for key, value in logs.items())
        print(f"[{trainer.phase}] epoch {trainer.epoch}: {numbers}")


class HistoryWriter(Callback):
    """Appends a row for every epoch to a CSV file that stays open until the end."""

    def __init__(self, path):
        self.path = path
        self.file = None
        self.writer = None

    def on_fit_begin(self, trainer):
        self.file = self.path.open("w", newline="")
        self.writer = csv.writer(self.file)
        self.writer.writerow(["phase", "epoch", "train_loss", "valid_loss"])

    def on_epoch_end(self, trainer, logs):
        row = [trainer.phase, trainer.epoch]
        self.writer.writerow(row + [f"{value:.8f}" for value in logs.values()])
        self.file.flush()

    def on_fit_end(self, trainer):
        self.file.close()


class EarlyStopping(Callback):
    """Ends a phase once its validation loss has not improved for some epochs."""

    def __init__(self, phase, patience, min_delta=0.0):
        self.phase = phase
        self.patience = patience
        self.min_delta = min_delta
        self.best = float("inf")
        self.wait = 0

    def on_epoch_end(self, trainer, logs):
        if trainer.phase != self.phase:
            return
        self.wait += 1
        if logs["valid_loss"] < self.best - self.min_delta:
            self.best = logs["valid_loss"]
            self.wait = 0
        elif self.wait >= self.patience:
            print(f"early stopping after epoch {trainer.epoch}, best {self.best:.6f}")
            trainer.stop_phase = True


class Checkpoint(Callback):
    """Keeps the best weights in a file, from which each phase ends and the next one starts."""

    def __init__(self, path):
        self.path = path
        self.best = float("inf")

    def on_epoch_end(self, trainer, logs):
        if logs["valid_loss"] < self.best:
            self.best = logs["valid_loss"]
            state = {"model": trainer.model.state_dict(), "epoch": trainer.epoch}
            torch.save(state, self.path)

    def on_phase_end(self, trainer):
        state = torch.load(self.path)
        trainer.model.load_state_dict(state["model"])
        print(f"restored the weights of epoch {state['epoch']}")


class Trainer:
    def __init__(self, model, loss_fn, train_loader, valid_data, callbacks=()):
        self.model = model
        self.loss_fn = loss_fn
        self.train_loader = train_loader
        self.valid_data = valid_data
        self.callbacks = list(callbacks)
        self.epoch = 0
        self.phase = ""
        self.stop_phase = False

    def notify(self, event, *details):
        for callback in self.callbacks:
            getattr(callback, event)(self, *details)

    def fit(self, phases):
        """Run phases of the form (name, epoch method, number of epochs) one after the other."""
        self.notify("on_fit_begin")
        for phase, run_epoch, epochs in phases:
            self.phase = phase
            self.stop_phase = False
            for _ in range(epochs):
                self.epoch += 1
                train_loss = run_epoch()
                self.notify(
                    "on_epoch_end", {"train_loss": train_loss, "valid_loss": self.validate()}
                )
                if self.stop_phase:
                    break
            self.notify("on_phase_end")
        self.notify("on_fit_end")

    def batch_epoch(self, optimizer):
        self.model.train()
        total = 0.0
        for batch, (x, y) in enumerate(self.train_loader):
            optimizer.zero_grad()
            loss = self.loss_fn(self.model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
            self.notify("on_batch_end", batch, loss.item())
        return total / len(self.train_loader)

    def full_epoch(self, optimizer):
        self.model.train()
        x, y = self.train_loader.dataset.tensors

        def closure():
            optimizer.zero_grad()
            loss = self.loss_fn(self.model(x), y)
            loss.backward()
            return loss

        return optimizer.step(closure).item()

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        x, y = self.valid_data
        return self.loss_fn(self.model(x), y).item()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--adam-epochs", type=int, default=30)
    parser.add_argument("--lbfgs-epochs", type=int, default=10)
    parser.add_argument("--patience", type=int, default=3)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("out/16_trainer_callbacks"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)

    torch.manual_seed(args.seed)
    x, y = make_friedman1(n_samples=3000, noise=0.3, random_state=args.seed)
    x, y = 4.0 * x - 2.0, (y - y.mean()) / y.std()
    parts = train_test_split(x, y[:, None], test_size=0.2, random_state=args.seed)
    x_train, x_valid, y_train, y_valid = (torch.tensor(p, dtype=torch.float32) for p in parts)
    loader = DataLoader(TensorDataset(x_train, y_train), batch_size=64, shuffle=True)

    model = nn.Sequential(
        nn.Linear(10, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 1)
    )
    adam = torch.optim.Adam(model.parameters(), lr=3e-3)
    lbfgs = torch.optim.LBFGS(
        model.parameters(), lr=0.5, max_iter=12, history_size=10, line_search_fn="strong_wolfe"
    )
    callbacks = [
        ProgressPrinter(every=10),
        HistoryWriter(args.out / "history.csv"),
        Checkpoint(args.out / "best.pt"),
        EarlyStopping("adam", args.patience, min_delta=1e-3),
    ]
    trainer = Trainer(model, nn.MSELoss(), loader, (x_valid, y_valid), callbacks)
    trainer.fit(
        [
            ("adam", lambda: trainer.batch_epoch(adam), args.adam_epochs),
            ("lbfgs", lambda: trainer.full_epoch(lbfgs), args.lbfgs_epochs),
        ]
    )
    print(f"final validation loss {trainer.validate():.6f}")


if __name__ == "__main__":
    main()
