"""The models of benchmarks/training/models.cpp, written in idiomatic PyTorch.

Each function returns (parameters, loss). `loss(small)` records one step. A small step calls the same operations on less
data, so that a process can load everything before its memory is measured.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


def of_module(module, *data):
    """For a module that computes a loss from a batch. A small batch is its first two entries."""

    def loss(small):
        return module(*(each[:2] if small else each for each in data))

    return list(module.parameters()), loss


class Classifier(nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x, labels):
        return F.cross_entropy(self.layers(x), labels)


def mlp():
    layers = [nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)]
    return of_module(Classifier(*layers), torch.randn(128, 784), torch.randint(10, (128,)))


def small_mlp():
    layers = [nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16)]
    return of_module(Classifier(*layers), torch.randn(16, 16), torch.randint(16, (16,)))


def conv():
    layers = [
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * 14 * 14, 10),
    ]
    return of_module(Classifier(*layers), torch.randn(64, 1, 28, 28), torch.randint(10, (64,)))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.query, self.key, self.value, self.output = (
            nn.Linear(width, width, bias=False) for _ in range(4))
        self.norm = nn.LayerNorm(width)
        self.enter = nn.Linear(width, 4 * width)
        self.leave = nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        batch, length, width = x.shape
        normal = self.attention_norm(x)
        q, k, v = (
            projection(normal).view(batch, length, self.heads, -1).transpose(1, 2)
            for projection in (self.query, self.key, self.value))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.output(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.leave(F.gelu(self.enter(self.norm(x))))


class Transformer(nn.Module):
    def __init__(self, tokens=256, context=256, width=384, heads=6, blocks=6):
        super().__init__()
        self.tokens = nn.Embedding(tokens, width)
        self.positions = nn.Parameter(torch.randn(context, width) / math.sqrt(width))
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(blocks)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, tokens, bias=False)

    def forward(self, tokens):
        x = self.blocks(self.tokens(tokens) + self.positions[:tokens.shape[1]])
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), tokens.flatten())


def gpt():
    return of_module(Transformer(), torch.randint(256, (8, 256)))


STEPS, BATCH, WIDTH = 200, 32, 256


def lstm():
    module = nn.LSTM(WIDTH, WIDTH)
    inputs = torch.randn(STEPS, BATCH, WIDTH)

    def loss(small):
        return module(inputs[:2] if small else inputs)[0].square().mean()

    return list(module.parameters()), loss


def rnn():
    inputs = torch.randn(STEPS, BATCH, WIDTH)
    from_input, from_hidden = (
        (torch.randn(WIDTH, WIDTH) / math.sqrt(WIDTH)).requires_grad_() for _ in range(2))
    bias = torch.zeros(WIDTH, requires_grad=True)

    def loss(small):
        h = torch.zeros(BATCH, WIDTH)
        outputs = []
        for x in inputs[:2] if small else inputs:
            h = torch.tanh(x @ from_input + h @ from_hidden + bias)
            outputs.append(h)
        return torch.stack(outputs).square().mean()

    return [from_input, from_hidden, bias], loss


def pde(cells=10_000, checkpointed=False):
    steps, interval, segment = 2000, 0.1, 45
    initial = torch.rand(cells, requires_grad=True)
    velocity = torch.tensor(0.5, requires_grad=True)
    diffusivity = torch.tensor(0.2, requires_grad=True)

    def advance(u, velocity, diffusivity, steps):
        for _ in range(steps):
            left, right = torch.roll(u, 1), torch.roll(u, -1)
            advected = velocity * (u - left)
            diffused = diffusivity * ((right - u * 2.0) + left)
            u = (u - advected * interval) + diffused * interval
        return u

    def loss(small):
        u = initial
        for done in range(0, segment if small else steps, segment):
            count = min(segment, steps - done)
            if checkpointed:
                u = checkpoint(advance, u, velocity, diffusivity, count, use_reentrant=True)
            else:
                u = advance(u, velocity, diffusivity, count)
        return u.square().mean()

    return [initial, velocity, diffusivity], loss


def pde_checkpointed():
    return pde(checkpointed=True)


def small_pde():
    return pde(cells=100)


def tiny():
    start, increment = (torch.ones(4, requires_grad=True) for _ in range(2))

    def loss(small):
        x = start
        for _ in range(2 if small else 1000):
            x = x + increment
        return x.sum()

    return [start, increment], loss
