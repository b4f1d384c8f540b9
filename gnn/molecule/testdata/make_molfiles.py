#!/usr/bin/env python3
"""Writes molfiles, and what RDKit makes of them, for TestMolfiles.

    python3 make_molfiles.py SMILES OUT.json [MANY KIND ...]

SMILES has a molecule a line, and is molecules.txt for molfiles.json; OUT.json gets MANY of them, evenly
spaced (50). A molfile is of one of the kinds by turns, or, if kinds are named, there is one of each: V2000 and V3000,
drawn in two dimensions; aromatic, with aromatic bonds; 3D, in space with all hydrogens. For each there are its
SMILES, the molfile, whether RDKit reads the molecule of the SMILES from it ("same"), and what it
reads as in make_golden.py. Needs RDKit; molfiles.json was made with release 2026.09.1, its legacy perception of stereo.
"""
import json
import sys

import rdkit
from rdkit import Chem, RDLogger
from rdkit.Chem import AllChem

Chem.SetUseLegacyStereoPerception(True)
TYPES = {Chem.BondType.SINGLE: 0, Chem.BondType.DOUBLE: 1, Chem.BondType.TRIPLE: 2, Chem.BondType.AROMATIC: 3,
         Chem.BondType.QUADRUPLE: 4, Chem.BondType.DATIVE: 5}
DIRECTIONS = {Chem.BondDir.ENDUPRIGHT: 1, Chem.BondDir.ENDDOWNRIGHT: 2}


def write(mol, kind):
    mol = Chem.Mol(mol)
    if kind == "3D":
        mol = Chem.AddHs(mol)
        if AllChem.EmbedMolecule(mol, randomSeed=7, maxAttempts=20) != 0:
            return None
        return Chem.MolToMolBlock(mol)
    if kind == "aromatic":
        return Chem.MolToMolBlock(mol, kekulize=False)
    return Chem.MolToMolBlock(mol, forceV3000=kind == "V3000")


def describe(smiles, mol, block):
    out = {"smiles": smiles, "molfile": block}
    again = Chem.MolFromMolBlock(block)
    if again is None:
        out["rejected"] = True
        return out
    out["same"] = Chem.MolToSmiles(again) == Chem.MolToSmiles(mol)
    out["atoms"] = [[a.GetAtomicNum(), min(int(a.GetChiralTag()), 3), a.GetTotalNumHs(), int(a.GetIsAromatic())]
                    for a in again.GetAtoms()]
    out["bonds"] = [[b.GetBeginAtomIdx(), b.GetEndAtomIdx(), TYPES[b.GetBondType()], DIRECTIONS.get(b.GetBondDir(), 0)]
                    for b in again.GetBonds()]
    return out


def main():
    RDLogger.DisableLog("rdApp.*")
    with open(sys.argv[1]) as f:
        lines = [line.strip() for line in f]
    many = int(sys.argv[3]) if len(sys.argv) > 3 else 50
    lines = [s for s in lines if s and not s.startswith("# ")]
    mols = [(s, m) for s in lines for m in [Chem.MolFromSmiles(s)] if m is not None and m.GetNumAtoms()]
    mols = [mols[i * len(mols) // many] for i in range(min(many, len(mols)))]
    kinds = ["V2000", "V3000", "aromatic", "3D"]
    named = sys.argv[4:]
    out = []
    for i, (smiles, mol) in enumerate(mols):
        for kind in named or kinds[i % 4:i % 4 + 1]:
            try:
                block = write(mol, kind) or write(mol, "V2000")
            except Exception as e:
                print(smiles, kind, e)
                continue
            out.append(describe(smiles, mol, block))
    with open(sys.argv[2], "w") as f:
        f.write('{"rdkit": "%s", "molecules": [\n' % rdkit.__version__)
        f.write(",\n".join(json.dumps(m, separators=(",", ":")) for m in out))
        f.write("\n]}\n")


main()
