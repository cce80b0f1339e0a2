# Truth (tests/system/test_training_scripts.py reads it):
#   steps 24                      2 epochs of 12 micro-batches
#   optimizer_steps 12            every second one
#   epochs 2
#   samples 192
#   workers 2                     a process each, per epoch
#   phases data_loading forward backward gradient optimizer evaluation
#   larger forward 1 optimizer
"""A trainer in the style of Hugging Face: arguments, callbacks, a collator, accumulation."""
import dataclasses
import json
from dataclasses import dataclass

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, Dataset


@dataclass
class TrainingArguments:
    per_device_train_batch_size: int = 8
    gradient_accumulation_steps: int = 2
    num_train_epochs: int = 2
    learning_rate: float = 3e-3
    max_grad_norm: float = 1.0
    logging_steps: int = 4
    dataloader_num_workers: int = 2
    seed: int = 42


@dataclass
class TrainerState:
    global_step: int = 0
    epoch: float = 0.0
    log_history: list = dataclasses.field(default_factory=list)


class TrainerCallback:
    def on_step_end(self, args, state): ...
    def on_epoch_end(self, args, state): ...
    def on_log(self, args, state, logs): ...


class PrinterCallback(TrainerCallback):
    def on_log(self, args, state, logs):
        print(json.dumps(logs))


class Reviews(Dataset):
    """Token lists of different lengths."""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.items = []
        for _ in range(n):
            length = int(torch.randint(8, 24, (1,), generator=g))
            ids = torch.randint(1, 100, (length,), generator=g)
            self.items.append({"input_ids": ids.tolist(), "label": int(ids.sum() % 2)})

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class DataCollatorWithPadding:
    def __call__(self, features):
        longest = max(len(f["input_ids"]) for f in features)
        ids = torch.zeros(len(features), longest, dtype=torch.long)
        for row, f in enumerate(features):
            ids[row, : len(f["input_ids"])] = torch.tensor(f["input_ids"])
        return {"input_ids": ids, "attention_mask": ids.ne(0), "labels": torch.tensor([f["label"] for f in features])}


class TinyBert(nn.Module):
    def __init__(self, vocab=100, d=64):
        super().__init__()
        self.embed = nn.Embedding(vocab, d, padding_idx=0)
        layer = nn.TransformerEncoderLayer(d, 4, 128, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.classifier = nn.Linear(d, 2)

    def forward(self, input_ids, attention_mask, labels=None):
        hidden = self.encoder(self.embed(input_ids), src_key_padding_mask=~attention_mask)
        logits = self.classifier(hidden[:, 0])
        output = {"logits": logits}
        if labels is not None:
            output["loss"] = nn.functional.cross_entropy(logits, labels)
        return output


class Trainer:
    def __init__(self, model, args, train_dataset, eval_dataset, data_collator, callbacks=()):
        self.model, self.args = model, args
        self.train_dataset, self.eval_dataset = train_dataset, eval_dataset
        self.data_collator = data_collator
        self.callbacks = list(callbacks)
        self.state = TrainerState()

    def log(self, logs):
        self.state.log_history.append(logs)
        for callback in self.callbacks:
            callback.on_log(self.args, self.state, logs)

    def get_train_dataloader(self):
        return DataLoader(
            self.train_dataset,
            batch_size=self.args.per_device_train_batch_size,
            shuffle=True,
            collate_fn=self.data_collator,
            num_workers=self.args.dataloader_num_workers,
        )

    def training_step(self, inputs):
        self.model.train()
        loss = self.model(**inputs)["loss"] / self.args.gradient_accumulation_steps
        loss.backward()
        return loss.detach()

    def train(self):
        args, loader = self.args, self.get_train_dataloader()
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=args.learning_rate)
        scheduler = LambdaLR(optimizer, lambda step: 1 / (1 + 0.1 * step))
        total = torch.tensor(0.0)
        for epoch in range(args.num_train_epochs):
            for step, inputs in enumerate(loader):
                total += self.training_step(inputs)
                if (step + 1) % args.gradient_accumulation_steps:
                    continue
                nn.utils.clip_grad_norm_(self.model.parameters(), args.max_grad_norm)
                optimizer.step()
                scheduler.step()
                self.model.zero_grad()
                self.state.global_step += 1
                if self.state.global_step % args.logging_steps == 0:
                    self.log({"loss": round(total.item(), 6), "step": self.state.global_step})
                    total -= total
            self.log(self.evaluate())

    def evaluate(self):
        loader = DataLoader(self.eval_dataset, batch_size=16, collate_fn=self.data_collator)
        self.model.eval()
        right = 0
        for inputs in loader:
            with torch.inference_mode():
                right += int(self.model(**inputs)["logits"].argmax(-1).eq(inputs["labels"]).sum())
        return {"eval_accuracy": right / len(self.eval_dataset)}


def main():
    args = TrainingArguments()
    torch.manual_seed(args.seed)
    trainer = Trainer(
        TinyBert(), args, Reviews(96, 0), Reviews(32, 1), DataCollatorWithPadding(), [PrinterCallback()]
    )
    trainer.train()


if __name__ == "__main__":
    main()
