# truth: startup_bound
# about: the text is tokenised anew at the start of every run, though it never changes
# gain: none
# needs: torch
import collections

import torch
from torch.utils.data import DataLoader, TensorDataset


def tokenise(lines):
    counts = collections.Counter()
    for line in lines:
        for word in line.lower().replace(",", " ").split():
            counts[word] += 1
    index = {w: i for i, (w, _) in enumerate(counts.most_common(1000))}
    return [[index.get(w, 0) for w in line.lower().replace(",", " ").split()][:16] for line in lines]


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    lines = [f"the {i % 101} quick, brown fox {i % 13} jumps over {i % 997} lazy dogs, again" for i in range(400_000)]
    rows = torch.tensor([r + [0] * (16 - len(r)) for r in tokenise(lines)][:3000])
    loader = DataLoader(TensorDataset(rows.float(), rows[:, 0] % 10), batch_size=32, shuffle=True)
    model = torch.nn.Sequential(torch.nn.Linear(16, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    for _ in range(2):
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
