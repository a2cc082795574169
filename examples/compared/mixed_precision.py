"""A convolutional network learns in mixed precision: products in float16, sums and losses in
float32, with a loss that is scaled as far up as the gradients allow."""

import torch
import torch.nn.functional as F
from torch import nn

from support import classes, numbers, same_parameters


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 32, 3, padding=1)
        self.second = nn.Conv2d(32, 64, 3, padding=1)
        self.head = nn.Linear(64, 10)

    def forward(self, images):
        x = F.max_pool2d(F.relu(self.first(images)), 2)
        return self.head(F.relu(self.second(x)).mean(dim=(2, 3)))


model = Classifier()
same_parameters(model)
images = torch.from_numpy(numbers((32, 3, 16, 16), "images"))
labels = torch.from_numpy(classes((32,), "labels", 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scaler = torch.amp.GradScaler("cpu")
for step in range(12):
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(images)
        loss = F.cross_entropy(logits, labels)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(f"step {step} loss {loss.item():.8g} scale {scaler.get_scale():g}")
