"""A FastAPI service that watches its own latency.

pip install fastapi uvicorn sonde
uvicorn fastapi_server:app
curl localhost:8000/report
"""

import asyncio

from fastapi import FastAPI

import sonde

api = FastAPI()
monitor = sonde.requests(sla_s=0.2)


@api.get("/predict")
async def predict():
    with sonde.zone("model", phase="forward"):
        prediction = 4.2
    return {"prediction": prediction}


@api.get("/slow")
async def slow():
    await asyncio.sleep(0.3)
    return {"prediction": None}


@api.get("/report")
async def report():
    return monitor.report()


app = monitor.asgi(api)
