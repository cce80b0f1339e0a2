# truth: collate_bound
# about: the batch is put together by assigning every trait of every plant into three tensors element by element, which costs far more than fetching the plants
# also: data_loading_bound preprocessing_bound
# cure: cured/orchid_crosses.py
# whatif: collate=660
# needs: torch numpy
"""Breeding programme, service "cross-score": germination rate of an orchid cross from its parents' recorded traits."""
import argparse
import logging
import time
from dataclasses import dataclass
from typing import Any, Dict, List, Tuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

logger = logging.getLogger("cross_score")


@dataclass(frozen=True)
class CrossScoreConfig:
    crosses: int = 6000
    trait_vocabulary: int = 900
    min_traits: int = 50
    max_traits: int = 70
    batch_size: int = 96
    num_workers: int = 2
    embedding: int = 24
    learning_rate: float = 3e-3
    steps: int = 300
    seed: int = 77


class CrossDataset(Dataset):
    """Crosses as the registry exports them: trait ids and measured values, a different number for each cross."""

    def __init__(self, config: CrossScoreConfig) -> None:
        rng = np.random.default_rng(config.seed)
        sizes = rng.integers(config.min_traits, config.max_traits + 1, config.crosses)
        self.ends = np.cumsum(sizes)
        self.starts = self.ends - sizes
        self.traits = rng.integers(1, config.trait_vocabulary, int(self.ends[-1]))
        self.values = rng.normal(size=int(self.ends[-1])).astype(np.float32)
        weight = rng.normal(size=config.trait_vocabulary)
        self.rates = np.add.reduceat(weight[self.traits] * self.values, self.starts).astype(np.float32) / 8

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, index: int) -> Dict[str, Any]:
        part = slice(self.starts[index], self.ends[index])
        return {"traits": self.traits[part], "values": self.values[part], "rate": float(self.rates[index])}


def merge_crosses(crosses: List[Dict[str, Any]]) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    """List of crosses -> trait ids, values, presence (all crosses x longest) and rates."""
    longest = max(len(cross["traits"]) for cross in crosses)
    traits = torch.zeros(len(crosses), longest, dtype=torch.long)
    values = torch.zeros(len(crosses), longest)
    present = torch.zeros(len(crosses), longest)
    for row, cross in enumerate(crosses):
        for column, (trait, value) in enumerate(zip(cross["traits"], cross["values"])):
            traits[row, column] = int(trait)
            values[row, column] = float(value)
            present[row, column] = 1.0
    rates = torch.tensor([cross["rate"] for cross in crosses])
    return traits, values, present, rates


class CrossScorer(nn.Module):
    def __init__(self, config: CrossScoreConfig) -> None:
        super().__init__()
        self.embed = nn.Embedding(config.trait_vocabulary, config.embedding)
        self.mix = nn.Sequential(nn.Linear(config.embedding, 48), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))

    def forward(self, traits: Tensor, values: Tensor, present: Tensor) -> Tensor:
        hidden = self.mix(self.embed(traits) * values.unsqueeze(-1)) * present.unsqueeze(-1)
        return self.head(hidden.sum(1) / present.sum(1, keepdim=True)).squeeze(-1)


class TrainingJob:
    def __init__(self, config: CrossScoreConfig) -> None:
        torch.manual_seed(config.seed)
        torch.set_num_threads(1)
        self.config = config
        dataset = CrossDataset(config)
        sampler = torch.utils.data.RandomSampler(dataset, replacement=True, num_samples=config.steps * config.batch_size)
        self.loader = DataLoader(dataset, batch_size=config.batch_size, sampler=sampler, collate_fn=merge_crosses,
                                 num_workers=config.num_workers)
        self.model = CrossScorer(config)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=config.learning_rate)
        self.loss = nn.SmoothL1Loss()

    def execute(self) -> None:
        self.model.train()
        started = time.perf_counter()
        total = 0.0
        for step, (traits, values, present, rates) in enumerate(self.loader, start=1):
            self.optimizer.zero_grad(set_to_none=True)
            loss = self.loss(self.model(traits, values, present), rates)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
            if step % 50 == 0:
                logger.info("step=%d mean_loss=%.4f", step, total / step)
        elapsed = time.perf_counter() - started
        logger.info("done steps=%d seconds=%.2f ms_per_step=%.2f", step, elapsed, 1e3 * elapsed / step)


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(name)s %(levelname)s %(message)s")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=CrossScoreConfig.steps)
    TrainingJob(CrossScoreConfig(steps=parser.parse_args().steps)).execute()


if __name__ == "__main__":
    main()
