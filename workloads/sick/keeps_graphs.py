# truth: memory_leak
# about: the history keeps every output with its graph, so nothing of any step is ever freed
# gain: none
# needs: torch
# options: --interval 0.25
import torch


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.Tanh(), torch.nn.Linear(2048, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    history = []
    for _ in range(500):
        x = torch.randn(64, 512)
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        history.append(loss)


if __name__ == "__main__":
    main()
