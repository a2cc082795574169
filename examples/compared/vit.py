"""A vision transformer learns to classify images."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR

from support import classes, numbers, same_parameters


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm = nn.LayerNorm(width)
        self.enter = nn.Linear(width, 4 * width)
        self.leave = nn.Linear(4 * width, width)

    def forward(self, x):
        normal = self.attention_norm(x)
        x = x + self.attention(normal, normal, normal, need_weights=False)[0]
        return x + self.leave(F.gelu(self.enter(self.norm(x))))


class VisionTransformer(nn.Module):
    def __init__(self, width=96, patch=8, patches=16):
        super().__init__()
        self.embed = nn.Conv2d(3, width, patch, stride=patch)
        self.positions = nn.Parameter(torch.zeros(patches, width))
        self.blocks = nn.Sequential(*(Block(width, 4) for _ in range(4)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 10)

    def forward(self, images):
        tokens = self.embed(images).flatten(2).transpose(1, 2) + self.positions
        return self.head(self.norm(self.blocks(tokens)).mean(dim=1))


model = VisionTransformer()
same_parameters(model)
images = torch.from_numpy(numbers((32, 3, 32, 32), "images"))
labels = torch.from_numpy(classes((32,), "labels", 10))

optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.05)
warm_up, decay = LinearLR(optimizer, total_iters=5), CosineAnnealingLR(optimizer, 15)
schedule = SequentialLR(optimizer, [warm_up, decay], milestones=[5])
for step in range(20):
    logits = model(images)
    loss = F.cross_entropy(logits, labels, label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1)
    optimizer.step()
    schedule.step()
    accuracy = (logits.argmax(dim=1) == labels).float().mean()
    print(f"step {step} loss {loss.item():.8g} accuracy {accuracy.item():.8g}")
