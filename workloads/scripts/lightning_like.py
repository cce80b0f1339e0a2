# Truth (tests/system/test_training_scripts.py reads it):
#   steps 20                      2 epochs of 10 batches
#   optimizer_steps 20
#   epochs 2
#   samples 320
#   phases data_loading forward backward gradient optimizer evaluation checkpoint
#   larger backward 1 forward
"""A trainer of one's own in the style of Lightning: modules with hooks, callbacks."""
import io
from dataclasses import dataclass, field
from typing import List

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class LightModule(nn.Module):
    trainer = None

    def training_step(self, batch, batch_idx):
        raise NotImplementedError

    def validation_step(self, batch, batch_idx):
        raise NotImplementedError

    def configure_optimizers(self):
        raise NotImplementedError

    def on_before_backward(self, loss):
        pass

    def on_after_backward(self):
        pass


class Callback:
    def on_fit_start(self, trainer, module): ...
    def on_train_batch_end(self, trainer, module, loss): ...
    def on_validation_end(self, trainer, module, metrics): ...


class ModelCheckpoint(Callback):
    def __init__(self):
        self.best = float("inf")
        self.buffer = None

    def on_validation_end(self, trainer, module, metrics):
        if metrics["val_loss"] < self.best:
            self.best = metrics["val_loss"]
            self.buffer = io.BytesIO()
            torch.save({"state": module.state_dict(), "epoch": trainer.epoch}, self.buffer)


class ProgressPrinter(Callback):
    def on_train_batch_end(self, trainer, module, loss):
        if trainer.global_step % 5 == 0:
            print(f"step {trainer.global_step}: loss {loss:.6f}")

    def on_validation_end(self, trainer, module, metrics):
        print(f"epoch {trainer.epoch}: " + ", ".join(f"{k} {v:.6f}" for k, v in metrics.items()))


@dataclass
class Trainer:
    max_epochs: int = 1
    callbacks: List[Callback] = field(default_factory=list)
    global_step: int = 0
    epoch: int = 0

    def call(self, hook, *args):
        for callback in self.callbacks:
            getattr(callback, hook)(self, self.module, *args)

    def fit(self, module, train_loader, val_loader):
        self.module = module
        module.trainer = self
        optimizer = module.configure_optimizers()
        self.call("on_fit_start")
        for self.epoch in range(self.max_epochs):
            module.train()
            for batch_idx, batch in enumerate(train_loader):
                self.optimize(optimizer, batch, batch_idx)
            self.validate(module, val_loader)

    def optimize(self, optimizer, batch, batch_idx):
        def closure():
            optimizer.zero_grad(set_to_none=True)
            loss = self.module.training_step(batch, batch_idx)
            self.module.on_before_backward(loss)
            loss.backward()
            self.module.on_after_backward()
            return loss

        loss = optimizer.step(closure)
        self.global_step += 1
        self.call("on_train_batch_end", loss.item())

    @torch.no_grad()
    def validate(self, module, loader):
        module.eval()
        losses = [module.validation_step(b, i) for i, b in enumerate(loader)]
        self.call("on_validation_end", {"val_loss": torch.stack(losses).mean().item()})


class AutoEncoder(LightModule):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv1d(1, 24, 9), nn.ReLU(), nn.Conv1d(24, 24, 9), nn.ReLU())
        self.decoder = nn.Sequential(nn.ConvTranspose1d(24, 24, 9), nn.ReLU(), nn.ConvTranspose1d(24, 1, 9))

    def forward(self, x):
        return self.decoder(self.encoder(x))

    def training_step(self, batch, batch_idx):
        (x,) = batch
        return nn.functional.mse_loss(self(x), x)

    def validation_step(self, batch, batch_idx):
        (x,) = batch
        return nn.functional.mse_loss(self(x), x)

    def on_after_backward(self):
        nn.utils.clip_grad_norm_(self.parameters(), 1.0)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


if __name__ == "__main__":
    torch.manual_seed(7)
    waves = torch.sin(torch.linspace(0, 60, 160 * 256)).view(160, 1, 256)
    train = DataLoader(TensorDataset(waves), batch_size=16, shuffle=True)
    val = DataLoader(TensorDataset(waves[:32]), batch_size=16)
    trainer = Trainer(max_epochs=2, callbacks=[ModelCheckpoint(), ProgressPrinter()])
    trainer.fit(AutoEncoder(), train, val)
