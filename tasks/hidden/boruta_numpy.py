"""Hidden tests of the task boruta-numpy. Writes `results.json`: for each test, whether it passed."""

import json
import sys
import unittest

import numpy as np
import pandas as pd
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier

sys.path.insert(0, ".")

from boruta import BorutaPy


def selector(**options):
    forest = RandomForestClassifier(n_jobs=2, class_weight="balanced", max_depth=5)
    return BorutaPy(forest, n_estimators="auto", random_state=1, **options)


class Tests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        examples = "boruta/examples"
        cls.X = pd.read_csv(f"{examples}/test_X.csv", index_col=0).values
        cls.y = pd.read_csv(f"{examples}/test_y.csv", header=None, index_col=0).values.ravel()
        cls.fitted = selector().fit(cls.X, cls.y)

    def test_example(self):
        self.assertEqual(self.fitted.n_features_, 5)
        self.assertEqual(list(self.fitted.ranking_), [1, 1, 1, 1, 1, 3, 4, 6, 2, 5])

    def test_masks(self):
        self.assertEqual(self.fitted.support_.dtype, bool)
        self.assertEqual(list(np.flatnonzero(self.fitted.support_)), [0, 1, 2, 3, 4])
        self.assertEqual(self.fitted.support_weak_.dtype, bool)
        self.assertFalse(self.fitted.support_weak_.any())

    def test_transform(self):
        np.testing.assert_array_equal(self.fitted.transform(self.X), self.X[:, :5])
        again = selector().fit_transform(self.X, self.y)
        np.testing.assert_array_equal(again, self.X[:, :5])

    def test_weak_features(self):
        fitted = selector(max_iter=8).fit(self.X, self.y)
        weak = fitted.support_ | fitted.support_weak_
        np.testing.assert_array_equal(fitted.transform(self.X, weak=True), self.X[:, weak])

    def test_one_step_correction(self):
        wine = load_wine()
        fitted = selector(two_step=False, max_iter=20, perc=90, alpha=0.1).fit(wine.data, wine.target)
        self.assertGreater(fitted.n_features_, 8)

    def test_bad_arguments(self):
        for options in ({"perc": 101}, {"alpha": 2}):
            with self.assertRaises(ValueError):
                selector(**options).fit(self.X, self.y)

    def test_not_fitted(self):
        with self.assertRaises(ValueError):
            selector().transform(self.X)


class Result(unittest.TestResult):
    def startTestRun(self):
        self.passed = {}

    def startTest(self, test):
        super().startTest(test)
        self.passed[test.id().rpartition(".")[2]] = False

    def addSuccess(self, test):
        self.passed[test.id().rpartition(".")[2]] = True


if __name__ == "__main__":
    result = Result()
    result.startTestRun()
    unittest.defaultTestLoader.loadTestsFromTestCase(Tests)(result)
    for _, text in (*result.errors, *result.failures):
        print(text)
    with open("results.json", "w") as file:
        json.dump(result.passed, file)
