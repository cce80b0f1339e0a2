"""A Flask service that watches its own latency.

pip install flask sonde
flask --app flask_server run
curl localhost:5000/report
"""

import time

from flask import Flask, jsonify

import sonde

violations = []
monitor = sonde.requests(sla_s=0.2, on_violation=violations.append)

app = Flask(__name__)
app.wsgi_app = monitor.wsgi(app.wsgi_app)


@app.get("/predict")
def predict():
    with sonde.zone("model", phase="forward"):
        prediction = 4.2
    return jsonify(prediction=prediction)


@app.get("/slow")
def slow():
    time.sleep(0.3)
    return jsonify(prediction=None)


@app.get("/report")
def report():
    return jsonify(monitor.report())
