"""Molecules and graphs as the text that the program reads."""
import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np

CHUNK = 1024  # records in a piece of text

def listed(records: Any) -> Any:
    """The records of a list, a Series, an array, a table of one column, or an iterator."""
    if isinstance(records, (str, bytes)):
        raise ValueError("one text is no list of molecules: put it into a list")
    if hasattr(records, "to_numpy") or isinstance(records, np.ndarray):
        records = np.asarray(records, dtype=object)
        if records.ndim != 1 and records.shape[1:] != (1,):
            raise ValueError(f"an array of shape {records.shape}; want a column of molecules or graphs")
        records = records.ravel()
    return records

def missing(value: Any) -> bool:
    return value is None or type(value).__name__ == "NAType" or isinstance(value, float) and value != value

def encode(records: Iterable[Any], targets: Sequence[Sequence[str]] = ()) -> tuple[str, Iterator[bytes]]:
    """The format of the records, and their text in pieces.

    targets are further columns y0, y1 and so on; every record has its number, from 0, as row.
    """
    rest = iter(records)
    head = list(islice(rest, CHUNK))
    numbered = enumerate(chain(head, rest))
    names = [f"y{k}" for k in range(len(targets))]
    if isinstance(next((r for r in head if not missing(r)), ""), str):
        rows = ([i, smiles(i, r), *(t[i] for t in targets)] for i, r in numbered)
        return "csv", table(chain([["row", "smiles", *names]], rows))
    known = ({"row": i} | graph(i, r) | {name: t[i] for name, t in zip(names, targets)} for i, r in numbered)
    return "jsonl", (json.dumps(keys).encode() + b"\n" for keys in known)

def table(rows: Iterator[list[Any]]) -> Iterator[bytes]:
    while piece := list(islice(rows, CHUNK)):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(piece)
        yield text.getvalue().encode("utf-8", "replace")

def smiles(i: int, record: Any) -> str:
    if not isinstance(record, str) and not missing(record):
        raise TypeError(f"record {i} is of type {type(record).__name__}, where the first one is a text")
    return record if isinstance(record, str) else ""

def graph(i: int, record: Any) -> dict[str, Any]:
    """The keys of a line of JSON Lines, without edges if there is no record."""
    if missing(record):
        return {}
    if hasattr(record, "edge_index"):  # torch_geometric.data.Data
        keys = {"nodes": record.num_nodes, "edges": record.edge_index.t().tolist(),
                "directed": getattr(record, "is_directed", bool)()}
        return keys if record.x is None else keys | {"attributes": record.x.tolist()}
    if hasattr(record, "adjacency"):  # networkx.Graph
        number = {node: k for k, node in enumerate(record.nodes)}
        keys = {"nodes": len(number), "edges": [[number[a], number[b]] for a, b in record.edges()],
                "directed": record.is_directed()}
        for key, name in (("label", "labels"), ("attributes", "attributes")):
            if values := [np.asarray(data[key]).tolist() for _, data in record.nodes(data=True) if key in data]:
                keys[name] = values
        return keys
    if type(record) not in (tuple, list) or len(record) != 2:
        raise TypeError(f"record {i} is of type {type(record).__name__}; want SMILES, networkx graphs, PyG's Data, "
                        "or pairs of edges and features")
    edges, features = np.asarray(record[0], dtype=np.int64), np.asarray(record[1])
    name = {0: "nodes", 1: "labels", 2: "attributes"}.get(features.ndim, "")
    if not name or features.ndim < 2 and features.dtype.kind not in "iu":
        raise ValueError(f"record {i}: features of shape {features.shape} and type {features.dtype}; "
                         "want whole numbers [nodes], numbers [nodes×width], or the number of nodes")
    return {"edges": edges.reshape(-1, 2).tolist(), name: features.tolist()}
