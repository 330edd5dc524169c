"""The grader of the task xpysom-quality: trains three maps by the agent's `fit`, and writes `errors.json`."""

import json
import os
import sys

import numpy as np
from sklearn.datasets import load_digits

sys.path.insert(0, ".")

from fit import fit

digits = load_digits().data / 16
order = np.random.RandomState(0).permutation(len(digits))
train, test = digits[order[:1200]], digits[order[1200:]]
maps = [fit(train, seed) for seed in (101, 102, 103)]
errors = {
    "quantization": float(np.mean([som.quantization_error(test) for som in maps])),
    "topographic": float(np.mean([som.topographic_error(test) for som in maps])),
}
print(errors)
with open("errors.json", "w") as file:
    json.dump(errors, file)
sys.stdout.flush()
# What `fit.py` has left to be done at the end is not done.
os._exit(0)
