"""Writes what the agent's `BorutaPy` yields for the task boruta-numpy to `results.json`. It judges nothing."""

import json
import sys

import numpy as np
import pandas as pd
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier

sys.path.insert(0, ".")

from boruta import BorutaPy


def selector(**options):
    forest = RandomForestClassifier(n_jobs=2, class_weight="balanced", max_depth=5)
    return BorutaPy(forest, n_estimators="auto", random_state=1, **options)


def error_of(act):
    try:
        act()
    except Exception as error:
        return "ValueError" if isinstance(error, ValueError) else type(error).__name__
    return ""


def sums(array):
    """The sum of each column, and the number of rows."""
    return [*np.asarray(array, dtype=float).sum(axis=0).tolist(), len(array)]


X = pd.read_csv("boruta/examples/test_X.csv", index_col=0).values
y = pd.read_csv("boruta/examples/test_y.csv", header=None, index_col=0).values.ravel()
fitted = selector().fit(X, y)
few = selector(max_iter=8).fit(X, y)
wine = load_wine()
one_step = selector(two_step=False, max_iter=20, perc=90, alpha=0.1).fit(wine.data, wine.target)
exact = {
    "features": int(fitted.n_features_),
    "ranking": np.asarray(fitted.ranking_).tolist(),
    "support": np.asarray(fitted.support_).tolist(),
    "weak": np.asarray(fitted.support_weak_).tolist(),
    "few iterations": np.asarray(few.support_).tolist(),
    "few iterations, weak": np.asarray(few.support_weak_).tolist(),
    "errors": [
        error_of(lambda: selector(perc=101).fit(X, y)),
        error_of(lambda: selector(alpha=2).fit(X, y)),
        error_of(lambda: selector().transform(X)),
    ],
}
transformed = {
    "transform": sums(fitted.transform(X)),
    "fit_transform": sums(selector().fit_transform(X, y)),
    "few iterations, weak": sums(few.transform(X, weak=True)),
}
results = {"exact": exact, "transformed": transformed, "one step": int(one_step.n_features_)}
with open("results.json", "w") as file:
    json.dump(results, file)
