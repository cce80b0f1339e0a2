# truth: collate_bound
# about: the collate function builds the dense visit-by-code table of a batch as nested Python lists, number by number, which costs far more than fetching the patients
# also: data_loading_bound preprocessing_bound
# cure: cured/ward_visits.py
# whatif: collate=48
# needs: torch numpy
"""Will a patient come back to the ward within a month? A recurrent model over the codes of the visits so far."""
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CODES = 600
VISITS = 24
BATCH = 64
STEPS = 180


class Patients(Dataset):
    """Each patient: one array of code numbers for each visit, the days between visits, and the outcome."""

    def __init__(self, count):
        dice = np.random.default_rng(61)
        self.patients = []
        for _ in range(count):
            visits = int(dice.integers(18, VISITS + 1))
            illness = int(dice.integers(12))
            codes = [(illness * 50 + dice.integers(0, 150, size=int(dice.integers(2, 9)))) % CODES for _ in range(visits)]
            gaps = dice.exponential(30, size=visits).astype(np.float32)
            self.patients.append((codes, gaps, float(illness < 6 and gaps[-1] < 40)))

    def __len__(self):
        return len(self.patients)

    def __getitem__(self, index):
        return self.patients[index]


def put_together(patients):
    longest = max(len(codes) for codes, _, _ in patients)
    table, gaps, lengths, outcomes = [], [], [], []
    for codes, days, outcome in patients:
        rows = []
        for visit in range(longest):
            row = [0.0] * CODES
            if visit < len(codes):
                found = set(int(code) for code in codes[visit])
                for code in range(CODES):
                    if code in found:
                        row[code] = 1.0 / len(found)
            rows.append(row)
        table.append(rows)
        gaps.append([float(days[visit]) / 30 if visit < len(codes) else 0.0 for visit in range(longest)])
        lengths.append(len(codes))
        outcomes.append(outcome)
    return torch.tensor(table), torch.tensor(gaps).unsqueeze(2), torch.tensor(lengths), torch.tensor(outcomes)


class Return(nn.Module):
    def __init__(self):
        super().__init__()
        self.visit = nn.Linear(CODES + 1, 48)
        self.story = nn.GRU(48, 48, batch_first=True)
        self.answer = nn.Linear(48, 1)

    def forward(self, table, gaps, lengths):
        states, _ = self.story(torch.relu(self.visit(torch.cat([table, gaps], dim=2))))
        last = states[torch.arange(len(lengths)), lengths - 1]
        return self.answer(last).squeeze(1)


def main():
    torch.manual_seed(62)
    torch.set_num_threads(1)
    patients = Patients(BATCH * STEPS // 2)
    loader = DataLoader(patients, batch_size=BATCH, shuffle=True, num_workers=2, persistent_workers=True, collate_fn=put_together)
    model = Return()
    optimizer = torch.optim.NAdam(model.parameters(), lr=2e-3)
    began = time.perf_counter()
    for epoch in range(2):
        heard = []
        for table, gaps, lengths, outcomes in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(table, gaps, lengths), outcomes)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            heard.append(loss.detach())
        print(f"epoch {epoch}: loss {torch.stack(heard).mean().item():.4f}")
    took = time.perf_counter() - began
    print(f"{STEPS} steps, {1000 * took / STEPS:.2f} ms each, {took:.2f} s")


if __name__ == "__main__":
    main()
