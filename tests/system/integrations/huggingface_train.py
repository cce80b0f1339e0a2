"""transformers.Trainer on a tiny BERT made here: 3 epochs of 6 batches of 4, two batches a
step, evaluated after each epoch, reported to W&B (offline) and MLflow (a folder)."""

import json
import os
import sys
import warnings

warnings.filterwarnings("ignore")
os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true", WANDB_DIR=os.getcwd())
os.environ.update(MLFLOW_TRACKING_URI=f"file:{os.getcwd()}/mlruns")
os.environ.update(HF_HUB_OFFLINE="1")

import torch  # noqa: E402
from transformers import (  # noqa: E402
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainingArguments,
    logging,
)

from sonde.integrations.huggingface import SondeCallback  # noqa: E402

logging.set_verbosity_error()


class Sentences(torch.utils.data.Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, index):
        words = torch.arange(6) + index % 5
        return {"input_ids": words, "labels": torch.tensor(index % 2)}


config = BertConfig(
    vocab_size=20, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
    intermediate_size=16, max_position_embeddings=8,
)  # fmt: skip
arguments = TrainingArguments(
    "out", num_train_epochs=3, per_device_train_batch_size=4, save_strategy="no",
    gradient_accumulation_steps=2, evaluation_strategy="epoch", logging_steps=3,
    report_to=sys.argv[1].split(","), disable_tqdm=True, use_cpu=True,
)  # fmt: skip
callback = SondeCallback(output="run", enable_performance_monitoring=False)
trainer = Trainer(
    BertForSequenceClassification(config), arguments, train_dataset=Sentences(),
    eval_dataset=Sentences(), callbacks=[callback],
)  # fmt: skip
trainer.train()
print(json.dumps(callback.report.to_dict()))
