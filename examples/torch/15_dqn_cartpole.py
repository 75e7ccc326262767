"""Deep Q-learning with a replay memory on a hand-written cart-pole, at module level.

Two generators draw: python's random (exploration, replay) and the environment's own numpy one.
"""

import argparse
import math
import random
from collections import deque, namedtuple
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser(description="DQN")
parser.add_argument("--episodes", type=int, default=48)
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--gamma", type=float, default=0.98)
parser.add_argument("--lr", type=float, default=2e-3)
parser.add_argument("--eps-start", type=float, default=0.9)
parser.add_argument("--eps-end", type=float, default=0.03)
parser.add_argument("--eps-decay", type=float, default=400, help="in environment steps")
parser.add_argument("--target-update", type=int, default=100, help="in environment steps")
parser.add_argument("--max-steps", type=int, default=100, help="length of an episode")
parser.add_argument("--seed", type=int, default=3)
parser.add_argument("--out", type=Path, default=Path("out/15_dqn_cartpole"))
args = parser.parse_args()
args.out.mkdir(parents=True, exist_ok=True)

random.seed(args.seed)
torch.manual_seed(args.seed)

Transition = namedtuple("Transition", ("state", "action", "reward", "next_state", "done"))


class CartPole:
    """A pole on a cart that is pushed to the left or to the right, by Euler's method."""

    gravity, mass_cart, mass_pole, half_length = 9.8, 1.0, 0.1, 0.5
    force, tau = 10.0, 0.02
    limit_x, limit_theta = 2.4, 12 * math.pi / 180

    def __init__(self, seed, max_steps):
        self.rng = np.random.default_rng(seed)
        self.max_steps = max_steps
        self.state = np.zeros(4)
        self.steps = 0

    def reset(self):
        self.state = self.rng.uniform(-0.05, 0.05, size=4)
        self.steps = 0
        return self.state.astype(np.float32)

    def step(self, action):
        _, x_dot, theta, theta_dot = self.state
        force = self.force if action == 1 else -self.force
        total_mass = self.mass_cart + self.mass_pole
        moment = self.mass_pole * self.half_length
        cos, sin = math.cos(theta), math.sin(theta)
        push = (force + moment * theta_dot**2 * sin) / total_mass
        theta_acc = (self.gravity * sin - cos * push) / (
            self.half_length * (4.0 / 3.0 - self.mass_pole * cos**2 / total_mass)
        )
        x_acc = push - moment * theta_acc * cos / total_mass
        self.state = self.state + self.tau * np.array([x_dot, x_acc, theta_dot, theta_acc])
        self.steps += 1
        fallen = abs(self.state[0]) > self.limit_x or abs(self.state[2]) > self.limit_theta
        return self.state.astype(np.float32), 1.0, fallen, self.steps >= self.max_steps


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque(maxlen=capacity)

    def push(self, *values):
        self.memory.append(Transition(*values))

    def sample(self, batch_size):
        return random.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self, n_observations=4, n_actions=2, hidden=96):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(n_observations, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, n_actions),
        )

    def forward(self, x):
        return self.layers(x)


def select_action(state):
    fraction = math.exp(-steps_done / args.eps_decay)
    if random.random() < args.eps_end + (args.eps_start - args.eps_end) * fraction:
        return random.randrange(2)
    with torch.no_grad():
        return policy_net(torch.from_numpy(state)).argmax().item()


def optimize_model():
    """One step on a batch of remembered transitions; its loss, or None while there are too few."""
    if len(memory) < 2 * args.batch_size:
        return None
    batch = Transition(*zip(*memory.sample(args.batch_size), strict=True))
    states = torch.from_numpy(np.stack(batch.state))
    next_states = torch.from_numpy(np.stack(batch.next_state))
    actions = torch.tensor(batch.action).unsqueeze(1)
    rewards = torch.tensor(batch.reward)
    running = 1.0 - torch.tensor(batch.done, dtype=torch.float32)

    values = policy_net(states).gather(1, actions).squeeze(1)
    with torch.no_grad():
        choice = policy_net(next_states).argmax(1, keepdim=True)
        next_values = target_net(next_states).gather(1, choice).squeeze(1)
    loss = F.smooth_l1_loss(values, rewards + args.gamma * running * next_values)

    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(policy_net.parameters(), 10.0)
    optimizer.step()
    return loss.item()


env = CartPole(args.seed, args.max_steps)
policy_net = DQN()
target_net = DQN()
target_net.load_state_dict(policy_net.state_dict())
optimizer = torch.optim.AdamW(policy_net.parameters(), lr=args.lr, amsgrad=True)
memory = ReplayMemory(2000)

steps_done = 0
updates = 0
episode_durations = []
best_mean = 0.0

for episode in range(args.episodes):
    state = env.reset()
    done = False
    losses = []
    while not done:
        action = select_action(state)
        next_state, reward, fallen, truncated = env.step(action)
        done = fallen or truncated
        memory.push(state, action, reward, next_state, fallen)
        state = next_state
        steps_done += 1

        loss = optimize_model()
        if loss is not None:
            losses.append(loss)
            updates += 1
        if steps_done % args.target_update == 0:
            target_net.load_state_dict(policy_net.state_dict())

    episode_durations.append(env.steps)
    mean_loss = sum(losses) / len(losses) if losses else float("nan")
    mean_duration = sum(episode_durations[-10:]) / len(episode_durations[-10:])
    if episode % 4 == 3:
        print(
            f"episode {episode + 1:3d}: duration {env.steps:3d}, mean of ten {mean_duration:.1f}, "
            f"loss {mean_loss:.6f}, updates {updates}"
        )
    if episode >= 9 and mean_duration > best_mean:
        best_mean = mean_duration
        torch.save(policy_net.state_dict(), args.out / "policy_best.pt")

print(f"Complete: {steps_done} steps, {updates} updates, best mean duration {best_mean:.1f}")
torch.save({"durations": episode_durations, "net": policy_net.state_dict()}, args.out / "last.pt")
