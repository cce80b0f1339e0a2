# Truth (tests/system/test_training_scripts.py reads it):
#   steps 20                      2 epochs of 10 batches
#   optimizer_steps 20
#   epochs 2
#   samples 320
#   phases data_loading forward backward gradient optimizer
#   absent evaluation checkpoint
"""Mixed precision: float16 with a GradScaler on CUDA, bfloat16 on CPU."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(11)
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    dtype = torch.float16 if cuda else torch.bfloat16
    data = TensorDataset(torch.randn(160, 128), torch.randn(160, 8))
    loader = DataLoader(data, batch_size=16, drop_last=True)
    model = nn.Sequential(nn.Linear(128, 256), nn.GELU(), nn.Linear(256, 8)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scaler = torch.cuda.amp.GradScaler(enabled=cuda)

    for epoch in range(2):
        total = 0.0
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device_type=device.type, dtype=dtype):
                output = model(x)
                loss = nn.functional.mse_loss(output.float(), y)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(loader):.6f}")


if __name__ == "__main__":
    import warnings

    warnings.filterwarnings("ignore", message=".*GradScaler.*")
    main()
