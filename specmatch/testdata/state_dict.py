#!/usr/bin/env python3
"""Embeds graphs with the model of a model file, in PyTorch.

    python3 state_dict.py MODEL.safetensors GRAPHS.json

builds the encoder that the file's card describes, loads the file into it with
strict=True, and writes the embeddings as JSON. Where PyTorch Geometric is
installed it does so a second time with its layers, and fails unless both agree.
TestStateDict compares with the embeddings of package specmatch. Needs PyTorch and
safetensors.
"""
import json
import sys

import torch
from safetensors import safe_open
from safetensors.torch import load_file

import encoders

namespaces = [encoders]
try:
    import torch_geometric.nn
    namespaces.append(torch_geometric.nn)
except ImportError:
    pass


def read_graphs(path):
    with open(path) as f:
        graphs = json.load(f)
    nodes = torch.tensor([g["nodes"] for g in graphs])
    first = nodes.cumsum(0) - nodes
    edges = [torch.tensor(g["edges"]).reshape(-1, 2) + n for g, n in zip(graphs, first)]
    labels = torch.tensor([label for g in graphs for label in g["labels"] or []], dtype=torch.long)
    x = torch.tensor([row for g in graphs for row in g["x"]], dtype=torch.float64)
    return encoders.Graphs(nodes, torch.cat(edges).T, labels, x)


def main(path, graphs):
    with safe_open(path, "pt") as f:
        card = json.loads(f.metadata()["specmatch_model"])
    state, embeddings = load_file(path), []
    for layers in namespaces:
        module = encoders.build(card["encoder"], layers)
        if "head" in card:
            module.predictor = torch.nn.Linear(*reversed(state["predictor.weight"].shape))
        module = module.double().eval()
        module.load_state_dict(state, strict=True)
        with torch.no_grad():
            embeddings.append(module(read_graphs(graphs)))
        torch.testing.assert_close(embeddings[-1], embeddings[0])
    print(json.dumps({"layers": len(embeddings), "embeddings": embeddings[0].flatten().tolist()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
