"""ChromaDB on the experiments and questions that bench/store left in a folder.

    chroma.py DIR ROWS QUERIES SECONDS

Runs inside the virtual environment of tools/setup and prints one JSON object. Adding
stops after so many seconds: what was added by then is what is asked.
"""

import json
import os
import resource
import sys
import time
from pathlib import Path

os.environ["ANONYMIZED_TELEMETRY"] = "False"
import chromadb  # noqa: E402
import numpy as np  # noqa: E402

DIMS, BATCH = 256, 5000


def metadata(line: str) -> dict:
    record = json.loads(line)
    flat = {f"{k}.{n}": v for k in ("params", "metrics", "tags") for n, v in record[k].items()}
    return {**flat, "duration_s": record["duration_s"], "memory_peak_mb": record["memory_peak_mb"]}


def cpu() -> float:
    return time.process_time()


def add(collection, where: Path, rows: int, seconds: float) -> tuple[int, float, float]:
    vectors = np.memmap(where / "vectors.i8", np.int8).reshape(-1, DIMS)
    wall = used = 0.0
    done = 0
    with open(where / "metadata.jsonl") as file:
        while done < rows and wall < seconds:
            n = min(BATCH, rows - done)
            ids = [str(i) for i in range(done, done + n)]
            metas = [metadata(next(file)) for _ in range(n)]
            block = vectors[done : done + n].astype(np.float32)
            start, start_cpu = time.perf_counter(), cpu()
            collection.add(ids=ids, embeddings=block, metadatas=metas)
            wall += time.perf_counter() - start
            used += cpu() - start_cpu
            done += n
    return done, wall, used


def exact(where: Path, rows: int, question: dict) -> set[int]:
    """Ten nearest of the rows that were added, by comparing everything."""
    vectors = np.memmap(where / "vectors.i8", np.int8).reshape(-1, DIMS)[:rows].astype(np.int32)
    low = question["where"]["$and"][0]["metrics.accuracy"]["$gte"]
    batch = question["where"]["$and"][1]["params.batch"]
    keep = np.array([a >= low and b == batch for a, b in FACTS[:rows]])
    distance = ((vectors - vectors[question["row"]]) ** 2).sum(1)
    distance[~keep] = 1 << 30
    best = np.sort(distance)[:10]
    return set(np.nonzero(distance <= best[-1])[0].tolist()), int(min(10, keep.sum()))


def main() -> None:
    where, rows, queries = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    seconds = float(sys.argv[4])
    place = where / "chroma"
    client = chromadb.PersistentClient(str(place))
    collection = client.create_collection(
        "experiments", embedding_function=None, configuration={"hnsw": {"space": "l2"}}
    )
    done, add_wall, add_cpu = add(collection, where, rows, seconds)
    vectors = np.memmap(where / "vectors.i8", np.int8).reshape(-1, DIMS)
    with open(where / "metadata.jsonl") as file:
        for _ in range(done):
            m = metadata(next(file))
            FACTS.append((m["metrics.accuracy"], m["params.batch"]))
    walls, cpus, recalls, failed = [], [], [], 0
    with open(where / "queries.jsonl") as file:
        questions = [json.loads(line) for line in file]
    questions = [q for q in questions if q["row"] < done][:queries]
    for number, q in enumerate(questions):
        vector = vectors[q["row"]].astype(np.float32).tolist()
        start, start_cpu = time.perf_counter(), cpu()
        try:
            found = collection.query(
                query_embeddings=[vector], n_results=10, where=q["where"], include=["distances"]
            )["ids"][0]
        except Exception:  # few matches make HNSW give up
            failed += 1
            found = []
        walls.append(time.perf_counter() - start)
        cpus.append(cpu() - start_cpu)
        if number < 50:
            nearest, most = exact(where, done, q)
            recalls.append(sum(int(i) in nearest for i in found) / max(1, most))
    walls.sort()
    cpus.sort()
    answer = {
        "version": chromadb.__version__,
        "rows": done,
        "ingest_wall_s": add_wall,
        "ingest_cpu_s": add_cpu,
        "queries": len(walls),
        "p50_wall_ms": walls[len(walls) // 2] * 1e3 if walls else None,
        "p95_wall_ms": walls[len(walls) * 95 // 100] * 1e3 if walls else None,
        "p50_cpu_ms": cpus[len(cpus) // 2] * 1e3 if cpus else None,
        "recall": sum(recalls) / len(recalls) if recalls else None,
        "failed": failed,
        "disk_bytes": sum(p.stat().st_size for p in place.rglob("*") if p.is_file()),
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    print(json.dumps(answer))


FACTS: list = []
main()
