#!/usr/bin/env python3
"""Writes small state_dicts of Hu et al.'s GNNs of molecules and proteins, in both forms of
torch.save and as safetensors, and chem.json: what the GNN of molecules makes of ethanol
and benzene. Made with PyTorch 1.13.

    python3 make_pth.py
"""
import json
import sys

import torch
from safetensors.torch import save_file

sys.path.insert(0, "../../../specmatch/testdata")
import encoders

torch.manual_seed(5)
for name, a in [("chem", {"kind": "chemgin", "hidden": 3, "layers": 2}), ("bio", {"kind": "biogin", "hidden": 3, "layers": 2, "center": True})]:
    module = encoders.build(a, encoders)
    for m in module.modules():
        if isinstance(m, torch.nn.BatchNorm1d):
            m.running_mean.normal_()
            m.running_var.uniform_(0.5, 2)
    state = module.eval().state_dict()
    torch.save(state, f"{name}.pth")
    torch.save(state, f"{name}-legacy.pth", _use_new_zipfile_serialization=False)
    save_file(state, f"{name}.safetensors")
    if name == "chem":
        c, o = (6 - 1) * 3, (8 - 1) * 3  # categories: 3·(atomic number - 1) + chirality tag
        single, aromatic = 0, 3 * 3  # 3·type of bond + direction
        edges, labels = [], []
        for bonds, label, first in [([(0, 1), (1, 2)], single, 0), ([(i, (i + 1) % 6) for i in range(6)], aromatic, 3)]:
            for i, j in bonds:
                edges += [(first + i, first + j), (first + j, first + i)]
                labels += [label, label]
        x = torch.nn.functional.one_hot(torch.tensor([c, c, o] + 6 * [c]), 360).double()
        graphs = encoders.Graphs(torch.tensor([3, 6]), torch.tensor(edges).T, torch.tensor(labels), x)
        with torch.no_grad():
            h = module.double()(graphs)
        with open("chem.json", "w") as f:
            json.dump({"CCO": h[0].tolist(), "c1ccccc1": h[1].tolist()}, f)
            f.write("\n")
