# Truth (tests/system/test_training_scripts.py reads it):
#   steps 39                      no loader: between the 40 steps of the first optimizer
#   optimizer_steps 80            two of them each time
#   phases forward backward optimizer
#   absent data_loading evaluation checkpoint
"""Factorise a rating matrix: embeddings with SparseAdam, the rest with Adam, no loader."""
import torch
import torch.nn as nn


class Factors(nn.Module):
    def __init__(self, users, items, dim=16):
        super().__init__()
        self.users = nn.Embedding(users, dim, sparse=True)
        self.items = nn.Embedding(items, dim, sparse=True)
        self.head = nn.Sequential(nn.Linear(2 * dim, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, user, item):
        both = torch.cat([self.users(user), self.items(item)], dim=-1)
        return self.head(both).squeeze(-1)


torch.manual_seed(5)
model = Factors(500, 300)
sparse = torch.optim.SparseAdam([model.users.weight, model.items.weight], lr=1e-2)
dense = torch.optim.Adam(model.head.parameters(), lr=1e-3)

for iteration in range(40):
    user = torch.randint(0, 500, (64,))
    item = torch.randint(0, 300, (64,))
    rating = ((user + item) % 5).float()
    loss = nn.functional.mse_loss(model(user, item), rating)
    sparse.zero_grad()
    dense.zero_grad()
    loss.backward()
    sparse.step()
    dense.step()
    if iteration % 10 == 9:
        print(f"iteration {iteration + 1}: rmse {loss.sqrt().item():.6f}")
