# truth: logging_stall
# about: for every line of the batch the loop formats and logs a message to two handlers, in every step, and that takes longer than learning from the batch
# cure: --tell-every 25
# whatif: logging=25
# needs: torch numpy
"""my first network: which department (light, sound, fly, stage) does a line in the prompt book call?"""
import argparse
import logging
import os
import tempfile
import time

import numpy as np
import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--tell-every", type=int, default=1)
args = parser.parse_args()

torch.manual_seed(3)
np.random.seed(3)

folder = tempfile.mkdtemp(prefix="prompt")
log = logging.getLogger("prompt_corner")
log.setLevel(logging.DEBUG)
log.propagate = False
formatter = logging.Formatter("%(asctime)s %(levelname)-7s %(name)s %(funcName)s:%(lineno)d  %(message)s")
for name in ("training.log", "debug.log"):
    handler = logging.FileHandler(os.path.join(folder, name))
    handler.setFormatter(formatter)
    log.addHandler(handler)

# make the prompt book: words are numbers, the department follows from which words come
departments = ["light", "sound", "fly", "stage"]
book = np.random.randint(4, 800, (12000, 10))
answer = np.random.randint(0, 4, 12000)
for i in range(len(book)):
    book[i, np.random.choice(10, 3, replace=False)] = 10 + 7 * answer[i] + np.random.randint(0, 7, 3)
book = torch.tensor(book)
answer = torch.tensor(answer)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(800, 32)
        self.read = nn.GRU(32, 48, batch_first=True)
        self.out = nn.Linear(48, 4)

    def forward(self, x):
        h, _ = self.read(self.words(x))
        return self.out(h.mean(1))


net = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
begin = time.time()
batch_size = 256

for step in range(args.steps):
    i = torch.randint(0, len(book), (batch_size,))
    x, y = book[i], answer[i]
    out = net(x)
    loss = criterion(out, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

    if step % args.tell_every == 0:
        p = torch.softmax(out.detach(), 1).numpy()
        log.info("step %d loss %.5f", step, loss.item())
        for k in range(batch_size):
            guess = p[k].argmax()
            log.debug("step %d line %d: said %s (%.3f), is %s  %s", step, i[k], departments[guess], p[k, guess],
                      departments[y[k]], "ok" if guess == y[k] else "WRONG")

    if step % 50 == 0:
        print("step", step, "loss", round(loss.item(), 4))

print("took %.2f s, cpu %.2f" % (time.time() - begin, time.process_time()))
logging.shutdown()
for name in os.listdir(folder):
    os.remove(os.path.join(folder, name))
os.rmdir(folder)
