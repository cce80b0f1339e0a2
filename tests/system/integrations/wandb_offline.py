"""A session's report in an offline W&B run; prints the metrics."""

import json
import os
import time

os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true", WANDB_DIR=os.getcwd())

import wandb  # noqa: E402

import sonde  # noqa: E402
from sonde.integrations.wandb import log_report  # noqa: E402

with sonde.session(output="run", enable_performance_monitoring=False) as session:
    for _ in range(3):
        sonde.step(samples=8)
        with sonde.zone("forward", phase="forward"):
            time.sleep(0.01)
    sonde.metric("accuracy", 0.75)
try:
    log_report(session.report())
except RuntimeError as error:
    print(error)
run = wandb.init(project="sonde")
metrics = log_report(session.report())
print(json.dumps({"metrics": metrics, "summary": dict(run.summary)}, default=str))
run.finish()
