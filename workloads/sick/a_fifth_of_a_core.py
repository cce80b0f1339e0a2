# truth: cpu_throttled
# about: the container may use a fifth of a core; the kernel stops the program for the rest of every tenth of a second
# quota: 0.2
# cure: --as-it-is
# needs: torch root cgroup
import torch


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.randn(256, 256), torch.randint(10, (256,))
    for _ in range(250):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
