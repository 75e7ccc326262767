"""Reinforcement learning: a replay memory in a deque, samples drawn from it, a target network."""

import random
from collections import deque

import gymnasium as gym
import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)
env = gym.make("CartPole-v1")
policy = nn.Linear(4, 2)
target = nn.Linear(4, 2)
target.load_state_dict(policy.state_dict())
optimizer = torch.optim.Adam(policy.parameters())
memory = deque(maxlen=1000)
steps = 0
for episode in range(50):
    state, _ = env.reset(seed=episode)
    done = False
    while not done:
        if random.random() < 0.1:
            action = env.action_space.sample()
        else:
            action = policy(torch.tensor(state)).argmax().item()
        after, reward, ended, cut, _ = env.step(action)
        memory.append((state, action, reward, after))
        state = after
        done = ended or cut
        steps += 1
        if len(memory) >= 32:
            batch = random.sample(memory, 32)
            states = torch.tensor([row[0] for row in batch])
            loss = (policy(states).max(1)[0] - target(states).max(1)[0]).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if steps % 100 == 0:
            target.load_state_dict(policy.state_dict())
