"""Runs inside the virtual environment of tools/setup: what ChromaDB says.

Reads {"records": [...], "filters": [[where, where_document], ...]} and prints a list of
the ids that match each, or {"error": …} for what ChromaDB refuses.
"""

import json
import sys

import chromadb


def main():
    task = json.load(sys.stdin)
    client = chromadb.EphemeralClient()
    collection = client.create_collection("records", embedding_function=None)
    records = task["records"]
    collection.add(
        ids=[r["id"] for r in records],
        embeddings=[[float(i), 1.0] for i in range(len(records))],
        metadatas=[r["metadata"] or None for r in records],
        documents=[r["document"] for r in records],
    )
    answers = []
    for where, document in task["filters"]:
        try:
            found = collection.get(where=where, where_document=document, include=[])
            answers.append(sorted(found["ids"]))
        except Exception as error:  # its errors have many classes
            answers.append({"error": str(error)[:200]})
    json.dump(answers, sys.stdout)


main()
