# truth: logging_stall
# about: a trace of the norm of every row of every weight and gradient goes line by line through a flushing log handler in every step
# cure: --trace-every 50
# whatif: logging=50
# needs: torch
"""Part-of-speech tagger, a small transformer on made-up sentences."""
import argparse
import logging
import os
import tempfile

import torch
from torch import nn

log = logging.getLogger("tagger")


class Tagger(nn.Module):
    def __init__(self, words=2000, tags=17, dim=64, layers=2):
        super().__init__()
        self.words = nn.Embedding(words, dim)
        self.places = nn.Parameter(torch.randn(1, 40, dim) * 0.02)
        layer = nn.TransformerEncoderLayer(dim, 4, 128, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.out = nn.Linear(dim, tags)

    def forward(self, ids):
        return self.out(self.encoder(self.words(ids) + self.places[:, : ids.shape[1]]))


def trace(model, step, loss):
    log.info("step %d loss %.5f", step, loss.item())
    for name, p in model.named_parameters():
        if p.dim() < 2 or "words" in name or "places" in name:
            continue
        sizes = p.detach().norm(dim=1).tolist()
        grads = p.grad.norm(dim=1).tolist()
        for row, (size, grad) in enumerate(zip(sizes, grads)):
            log.debug("step %d %s[%d] |w|=%.6e |g|=%.6e", step, name, row, size, grad)


def setup_log(path):
    handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    log.propagate = False
    return handler


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trace-every", type=int, default=1)
    parser.add_argument("--steps", type=int, default=300)
    args = parser.parse_args()
    torch.manual_seed(1)
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    with tempfile.TemporaryDirectory() as folder:
        handler = setup_log(os.path.join(folder, "train.log"))
        for step in range(args.steps):
            ids = torch.randint(0, 2000, (8, 20))
            tags = ids % 17
            optimizer.zero_grad()
            loss = criterion(model(ids).reshape(-1, 17), tags.reshape(-1))
            loss.backward()
            optimizer.step()
            if step % args.trace_every == 0:
                trace(model, step, loss)
        handler.close()
    print(f"final loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
