#!/usr/bin/env python3
"""Writes ../elements.txt, masses and radii of the elements as RDKit has them (release 2026.09.1).

    python3 make_elements.py
"""
import os

from rdkit import Chem

HEADER = """# Symbol, standard atomic weight, mass of the most common isotope, bond radius (RB0, Angstrom) and
# masses of the isotopes, in daltons, as RDKit 2026.09.1 has them. Written by testdata/make_elements.py.
"""

table = Chem.GetPeriodicTable()
here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "..", "elements.txt"), "w") as f:
    f.write(HEADER)
    for z in range(1, 119):
        isotopes = ["%d:%r" % (n, table.GetMassForIsotope(z, n)) for n in range(1, 400) if table.GetMassForIsotope(z, n) > 0]
        f.write("%s %r %r %r %s\n" % (table.GetElementSymbol(z), table.GetAtomicWeight(z), table.GetMostCommonIsotopeMass(z),
                                      table.GetRb0(z), " ".join(isotopes)))
