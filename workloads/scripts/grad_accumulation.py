# Truth (tests/system/test_training_scripts.py reads it):
#   steps 32                      2 epochs of 16 micro-batches
#   optimizer_steps 8             every fourth
#   epochs 2
#   samples 128
#   phases data_loading forward backward gradient optimizer
#   absent evaluation checkpoint
#   larger backward 1 optimizer
"""Gradient accumulation: an effective batch of 16 with room for 4."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

ACCUMULATE = 4
torch.manual_seed(3)

x = torch.randn(64, 32, 64)
y = torch.randint(0, 4, (64,))
loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)


class GRUClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(64, 48, batch_first=True)
        self.out = nn.Linear(48, 4)

    def forward(self, x):
        _, h = self.rnn(x)
        return self.out(h[-1])


model = GRUClassifier()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 4, gamma=0.5)

for epoch in range(2):
    running = 0.0
    optimizer.zero_grad()
    for i, (inputs, labels) in enumerate(loader, start=1):
        loss = criterion(model(inputs), labels) / ACCUMULATE
        loss.backward()
        running += loss.item()
        if i % ACCUMULATE == 0:
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.5)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            print(f"epoch {epoch} update {i // ACCUMULATE}: loss {running:.6f} norm {norm:.6f}")
            running = 0.0
