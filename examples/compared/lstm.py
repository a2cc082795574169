"""An LSTM learns to predict the next token of long sequences. Each step trains on a part of them
and hands its last state to the next step."""

import torch
import torch.nn.functional as F
from torch import nn

from support import classes, same_parameters


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(32, 64)
        self.lstm = nn.LSTM(64, 128)
        self.head = nn.Linear(128, 32)

    def forward(self, tokens, state):
        outputs, state = self.lstm(self.embed(tokens), state)
        return self.head(outputs), state


model = LanguageModel()
same_parameters(model)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
state = torch.zeros(1, 16, 128), torch.zeros(1, 16, 128)
for step in range(20):
    text = torch.from_numpy(classes((51, 16), f"text {step % 3}", 32))
    logits, state = model(text[:-1], state)
    state = tuple(part.detach() for part in state)
    loss = F.cross_entropy(logits.flatten(0, 1), text[1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    print(f"step {step} loss {loss.item():.8g}")
