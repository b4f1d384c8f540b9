"""Predictors that the program has."""
import csv
import io
from itertools import islice
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from . import records, tool


class Predictor:
    """Predicts by models in the program, or by files, without a fit.

    Parameters
    ----------
    name : str, default "admet"
        The predictors: "admet" for all endpoints of absorption, metabolism and toxicity, or one of them, such as
        "admet:herg". ``specmatch inspect -model admet`` lists them. A model file, an ensemble or the directory of
        a run of ``specmatch finetune`` is taken, too.
    n_jobs : int, default all cores
        Threads.
    """

    def __init__(self, name: str = "admet", n_jobs: int | None = None) -> None:
        self.name = name
        self.n_jobs = n_jobs

    def predict(self, X: Any, level: float | None = None, distance: bool = False) -> dict[str, NDArray[np.float64]]:
        """Predictions of molecules, by column; NaN for one that cannot be read.

        Parameters
        ----------
        X : list, array, Series or table of one column
            SMILES, or molecules of RDKit.
        level : float, optional
            Probability of the intervals or sets to add, such as 0.9.
        distance : bool, default False
            Whether to add the distances to the training molecules.

        Returns
        -------
        dict of str to numpy.ndarray of float64
            A column for each endpoint, which ``pandas.DataFrame`` takes.
        """
        data = list(records.listed(X))
        if not data:
            return {name: column[:0] for name, column in self.predict([None], level, distance).items()}
        form, text = records.encode(data)
        flags = tool.flags(in_="-", format=form, id="row", model=self.name, out="-", level=level, distance=distance)
        columns: dict[str, NDArray[np.float64]] = {}
        try:
            with tool.running(["predict", *flags], text, self.n_jobs, first=records.FIRST[form]) as stdout:
                rows = csv.reader(io.TextIOWrapper(cast(Any, stdout), "utf-8", newline=""))
                # The header is there even if no record can be used; after other errors it is not.
                columns = {name: np.full(len(data), np.nan) for header in islice(rows, 1) for name in header[1:]}
                for row in rows:
                    for column, value in zip(columns.values(), row[1:]):
                        column[int(row[0])] = float(value)
        except tool.SpecmatchError as e:
            if not tool.none_usable(str(e)):
                raise
        return columns
