# truth: none
# about: a short run of a graph network on trail maps of equal size; batched matrix products all the way, over in about five seconds
# needs: torch
"""How long does it take to walk between the huts of a trail map? Message passing over crossings, maps of 48 crossings each."""
import time

import torch
from torch import nn

CROSSINGS = 48
MAPS = 1536
BATCH = 64
EPOCHS = 7


class Pass(nn.Module):
    """Each crossing hears from its neighbours, weighted by the trails between them."""

    def __init__(self, width):
        super().__init__()
        self.own = nn.Linear(width, width)
        self.heard = nn.Linear(width, width, bias=False)
        self.norm = nn.LayerNorm(width)

    def forward(self, nodes, trails):
        return nodes + torch.relu(self.norm(self.own(nodes) + torch.bmm(trails, self.heard(nodes))))


class TrailNet(nn.Module):
    def __init__(self, width=96, rounds=4):
        super().__init__()
        self.enter = nn.Linear(4, width)
        self.rounds = nn.ModuleList(Pass(width) for _ in range(rounds))
        self.leave = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, nodes, trails):
        nodes = self.enter(nodes)
        for one in self.rounds:
            nodes = one(nodes, trails)
        return self.leave(nodes.mean(dim=1)).squeeze(1)


def draw_maps():
    place = torch.rand(MAPS, CROSSINGS, 3)
    far = torch.cdist(place[:, :, :2], place[:, :, :2])
    reach = far.kthvalue(6, dim=2, keepdim=True).values
    trails = ((far <= reach) | (far <= reach.transpose(1, 2))).float()
    climb = (place[:, :, None, 2] - place[:, None, :, 2]).abs()
    hours = ((far + 0.5 * climb) * trails).sum(dim=(1, 2)) / trails.sum(dim=(1, 2))
    nodes = torch.cat([place, trails.sum(dim=2, keepdim=True) / 8], dim=2)
    return nodes, trails / trails.sum(dim=2, keepdim=True), (hours - hours.mean()) / hours.std()


def main():
    torch.manual_seed(13)
    nodes, trails, hours = draw_maps()
    model = TrailNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    steps = 0
    began = time.perf_counter()
    for epoch in range(EPOCHS):
        total = torch.zeros(())
        for maps in torch.randperm(MAPS).split(BATCH):
            loss = nn.functional.mse_loss(model(nodes[maps], trails[maps]), hours[maps])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.detach()
            steps += 1
        schedule.step()
        print(f"epoch {epoch}: loss {total.item() * BATCH / MAPS:.4f}")
    took = time.perf_counter() - began
    print(f"{steps} steps, {1000 * took / steps:.2f} ms each, {took:.2f} s")


if __name__ == "__main__":
    main()
