"""A session's report in MLflow's local file store; prints what MLflow then knows."""

import json
import os
import time

import mlflow

import sonde
from sonde.integrations.mlflow import log_report

mlflow.set_tracking_uri(f"file:{os.getcwd()}/mlruns")
with sonde.session(output="run", name="first", enable_performance_monitoring=False) as s:
    sonde.param("batch", 32)
    with sonde.zone("forward", phase="forward"):
        time.sleep(0.01)
    sonde.metric("top-1 (%)", 75)
try:
    log_report(s.report())
except RuntimeError as error:
    print(error)
with mlflow.start_run() as run:
    log_report(s.report(), step=7)
    log_report(s.report(), step=8)  # parameters are there already
client = mlflow.tracking.MlflowClient()
found = client.get_run(run.info.run_id)
files = [f.path for f in client.list_artifacts(run.info.run_id, "sonde")]
history = client.get_metric_history(run.info.run_id, "sonde/phase/forward_s")
print(json.dumps({
    "params": found.data.params, "metrics": found.data.metrics, "tags": found.data.tags,
    "files": files, "steps": [m.step for m in history],
}))  # fmt: skip
