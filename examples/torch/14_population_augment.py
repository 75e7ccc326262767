"""Population-based training that learns an augmentation policy: models trained in turns of rounds.

After every round the worst member copies the best one and perturbs its policy; images are
augmented in worker processes, from a loader that is made anew for each member and round.
"""

import argparse
import copy
import json
import random
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, Dataset


def shift(image, magnitude):
    reach = round(4 * magnitude)
    dy, dx = np.random.randint(-reach, reach + 1, size=2)
    return torch.roll(image, (int(dy), int(dx)), dims=(1, 2))


def noise(image, magnitude):
    return image + 0.5 * magnitude * torch.randn_like(image)


def contrast(image, magnitude):
    return image * (1.0 + magnitude * random.uniform(-0.9, 0.9))


def cutout(image, magnitude):
    side = 1 + round(6 * magnitude)
    top, left = torch.randint(0, image.size(1) - side + 1, (2,)).tolist()
    image = image.clone()
    image[:, top : top + side, left : left + side] = 0.0
    return image


OPERATIONS = {"shift": shift, "noise": noise, "contrast": contrast, "cutout": cutout}


class Policy:
    """For each operation, the probability and the magnitude with which it is applied."""

    def __init__(self):
        self.table = {name: [random.random(), random.random()] for name in OPERATIONS}

    def __call__(self, image):
        for name, (probability, magnitude) in self.table.items():
            if random.random() < probability:
                image = OPERATIONS[name](image, magnitude)
        return image

    def explore(self):
        for values in self.table.values():
            for i in range(2):
                if random.random() < 0.2:
                    values[i] = random.random()
                else:
                    values[i] = min(1.0, max(0.0, values[i] + random.choice((-0.15, 0.15))))


class AugmentedDigits(Dataset):
    def __init__(self, images, labels, policy=None):
        self.images, self.labels, self.policy = images, labels, policy

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = self.images[index]
        if self.policy is not None:
            image = self.policy(image)
        return image, self.labels[index]


class Member:
    """One model of the population with its optimizer, learning rate and policy."""

    def __init__(self, number):
        self.number = number
        self.model = nn.Sequential(
            nn.Conv2d(1, 16, 3, stride=2, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(32 * 16, 10),
        )
        self.lr = 10 ** random.uniform(-2.5, -1.0)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=self.lr, momentum=0.9)
        self.policy = Policy()
        self.score = 0.0

    def train_round(self, images, labels, args):
        dataset = AugmentedDigits(images, labels, self.policy)
        loader = DataLoader(
            dataset, batch_size=args.batch_size, shuffle=True, num_workers=args.num_workers
        )
        self.model.train()
        total = 0.0
        for step, (inputs, targets) in enumerate(loader, start=1):
            loss = F.cross_entropy(self.model(inputs), targets)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
            if step % 4 == 0:
                print(f"  member {self.number} step {step}: loss {loss.item():.5f}")
        return total / len(loader)

    @torch.no_grad()
    def evaluate(self, images, labels):
        self.model.eval()
        self.score = 100.0 * (self.model(images).argmax(1) == labels).float().mean().item()
        return self.score

    def exploit(self, other):
        self.model.load_state_dict(copy.deepcopy(other.model.state_dict()))
        self.optimizer.load_state_dict(copy.deepcopy(other.optimizer.state_dict()))
        self.policy = copy.deepcopy(other.policy)
        self.lr = other.lr

    def explore(self):
        self.lr *= random.choice((0.8, 1.25))
        for group in self.optimizer.param_groups:
            group["lr"] = self.lr
        self.policy.explore()


def main():
    parser = argparse.ArgumentParser(description="Population-based augmentation")
    parser.add_argument("--population", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--num-workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--out", type=Path, default=Path("out/14_population_augment"))
    args = parser.parse_args()

    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16.0
    images = F.interpolate(images, size=(16, 16), mode="bilinear", align_corners=False)
    labels = torch.tensor(digits.target)
    train_images, train_labels = images[:512], labels[:512]
    valid_images, valid_labels = images[512:1112], labels[512:1112]
    test_images, test_labels = images[1112:], labels[1112:]

    args.out.mkdir(parents=True, exist_ok=True)
    population = [Member(number) for number in range(args.population)]
    schedule = []
    for round_number in range(args.rounds):
        for member in population:
            mean = member.train_round(train_images, train_labels, args)
            score = member.evaluate(valid_images, valid_labels)
            print(
                f"round {round_number} member {member.number}: "
                f"lr {member.lr:.5f} loss {mean:.5f} valid {score:.2f}%"
            )

        ranking = sorted(population, key=lambda member: member.score, reverse=True)
        best, worst = ranking[0], ranking[-1]
        schedule.append({"round": round_number, "score": best.score, **best.policy.table})
        (args.out / "schedule.json").write_text(json.dumps(schedule, indent=2))
        print(f"round {round_number} done: best is member {best.number} with {best.score:.2f}%")
        if round_number < args.rounds - 1:
            worst.exploit(best)
            worst.explore()
            print(f"  member {worst.number} takes over from member {best.number}")

    winner = max(population, key=lambda member: member.score)
    print(f"test accuracy of member {winner.number}: ", end="")
    print(f"{winner.evaluate(test_images, test_labels):.2f}%")
    torch.save(winner.model.state_dict(), args.out / "winner.pt")


if __name__ == "__main__":
    main()
