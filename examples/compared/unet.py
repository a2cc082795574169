"""A U-Net learns to find discs in noise."""

import torch
import torch.nn.functional as F
from torch import nn

from support import discs, same_parameters


class Level(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.first_norm = nn.GroupNorm(4, outputs)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.second_norm = nn.GroupNorm(4, outputs)

    def forward(self, x):
        x = F.silu(self.first_norm(self.first(x)))
        return F.silu(self.second_norm(self.second(x)))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fine = Level(1, 16)
        self.coarse = Level(16, 32)
        self.bottom = Level(32, 64)
        self.coarse_up = Level(96, 32)
        self.fine_up = Level(48, 16)
        self.head = nn.Conv2d(16, 1, 1)
        self.upsample = nn.Upsample(scale_factor=2)

    def forward(self, images):
        fine = self.fine(images)
        coarse = self.coarse(F.max_pool2d(fine, 2))
        bottom = self.bottom(F.max_pool2d(coarse, 2))
        up = self.coarse_up(torch.cat([self.upsample(bottom), coarse], dim=1))
        return self.head(self.fine_up(torch.cat([self.upsample(up), fine], dim=1)))


def dice_loss(logits, masks):
    found = torch.sigmoid(logits)
    return 1 - 2 * (found * masks).sum() / (found.sum() + masks.sum())


model = UNet()
same_parameters(model)
images, masks = map(torch.from_numpy, discs(16, 32))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
for step in range(10):
    logits = model(images)
    dice = dice_loss(logits, masks)
    loss = F.binary_cross_entropy_with_logits(logits, masks) + dice
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.8g} dice {dice.item():.8g}")
