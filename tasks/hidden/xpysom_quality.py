"""Computes the errors of the maps in `maps.json` on digits that they were not trained on: `errors.json`."""

import json

import numpy as np
from sklearn.datasets import load_digits

digits = load_digits().data / 16
test = digits[np.random.RandomState(0).permutation(len(digits))[1200:]]
places = np.array([(row, column) for row in range(10) for column in range(10)])


def errors(weights):
    distances = np.linalg.norm(test[:, None] - weights.reshape(100, 64), axis=2)
    best, second = np.argsort(distances, axis=1)[:, :2].T
    apart = np.abs(places[best] - places[second]).max(axis=1) > 1
    return distances.min(axis=1).mean(), apart.mean()


with open("maps.json") as file:
    maps = np.array(json.load(file), dtype=float)
quantization, topographic = np.mean([errors(one) for one in maps], axis=0)
print(quantization, topographic)
with open("errors.json", "w") as file:
    json.dump({"quantization": quantization, "topographic": topographic}, file)
