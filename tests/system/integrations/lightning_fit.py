"""A Lightning fit with Sonde's callback, from either package: what the test reads is the
last line. 2 epochs of 10 batches of 4, validation of 3 batches each."""

import importlib
import json
import logging
import sys
import warnings

import torch
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
package = importlib.import_module(sys.argv[1])
logging.getLogger(package.__name__).setLevel(logging.ERROR)
loggers = importlib.import_module(f"{sys.argv[1]}.loggers")
import sonde  # noqa: E402
from sonde.integrations.lightning import SondeCallback, SondeProfiler  # noqa: E402


class Model(package.LightningModule):
    def __init__(self, lr=0.1):
        super().__init__()
        self.save_hyperparameters()
        self.net = torch.nn.Linear(8, 1)

    def _register_sharded_tensor_state_dict_hooks_if_available(self):
        """Not available: Debian's torch 1.13 has a data class that 3.11 refuses."""

    def training_step(self, batch, index):
        loss = (self.net(batch[0]) - batch[1]).square().mean()
        if sys.argv[2:3] == ["fail"] and index == 5:
            raise RuntimeError("the model's own mistake")
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, index):
        self.log("val_loss", (self.net(batch[0]) - batch[1]).square().mean())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.hparams.lr)


def loader(count):
    data = TensorDataset(torch.randn(count, 8), torch.randn(count, 1))
    return DataLoader(data, batch_size=4)


csv = loggers.CSVLogger(".", name="csv", version="0")
options = dict(
    max_epochs=2, logger=csv, log_every_n_steps=1, gradient_clip_val=1.0,
    enable_progress_bar=False, enable_model_summary=False, accelerator="cpu",
)  # fmt: skip
if sys.argv[2:3] == ["profiler"]:
    with sonde.session(output="run", enable_performance_monitoring=False) as subject:
        trainer = package.Trainer(profiler=SondeProfiler(), **options)
        trainer.fit(Model(), loader(40), loader(12))
    report = subject.report()
else:
    callback = SondeCallback(output="run", enable_performance_monitoring=False)
    trainer = package.Trainer(callbacks=[callback], **options)
    try:
        trainer.fit(Model(), loader(40), loader(12))
    except RuntimeError as error:
        print(error)
    report = callback.report
print(json.dumps(report.to_dict()))
