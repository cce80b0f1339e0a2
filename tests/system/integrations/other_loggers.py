"""Sonde's numbers in loggers people have: tensorboardX, MLflow's module, logging."""

import json
import logging
import os
import sys

import mlflow
from tensorboardX import SummaryWriter

import sonde
from sonde.integrations import Sink, metrics_of

heard = []


class Records(logging.Handler):
    def emit(self, record):
        heard.append(record.sonde)


class Broken:
    def log(self, values):
        raise OSError("the disk is full")


log = logging.getLogger("experiment")
log.setLevel(logging.INFO)
log.addHandler(Records())
writer = SummaryWriter("tb")
mlflow.set_tracking_uri(f"file:{os.getcwd()}/mlruns")
called = []
with sonde.session(output="run", enable_performance_monitoring=False) as session:
    with Sink(log), Sink(called.append, prefix="x."), Sink(Broken()):
        with sonde.operation("evolve") as op:
            op.metrics["fitness"] = 0.5
            op.metrics["note"] = "text stays here"
    with sonde.operation("unheard"):
        pass
report = session.report()
Sink(writer).report(report, step=3)
writer.close()
with mlflow.start_run() as run:
    Sink(mlflow).report(report, step=4)
known = mlflow.tracking.MlflowClient().get_run(run.info.run_id).data.metrics
try:
    Sink(object())
except TypeError as error:
    print(error)
print(json.dumps({
    "heard": heard, "called": called, "mlflow": known, "metrics": metrics_of(report),
}))  # fmt: skip
