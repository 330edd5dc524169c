"""Trains three maps by the agent's `fit` for the task xpysom-quality, and writes their weights to `maps.json`."""

import json
import sys

import numpy as np
from sklearn.datasets import load_digits

sys.path.insert(0, ".")

from fit import fit

digits = load_digits().data / 16
train = digits[np.random.RandomState(0).permutation(len(digits))[:1200]]
maps = [np.asarray(fit(train, seed).get_weights()).tolist() for seed in (101, 102, 103)]
with open("maps.json", "w") as file:
    json.dump(maps, file)
