"""The tests that the series adds to PyTorch, as PyTorch would run them."""

import os
import pathlib

import unittests
from harness import ParallelTest


class Series(ParallelTest):
    def test_series_tests(self):
        """Every test of the files that the series adds passes; none is skipped where there is mps."""
        folder = os.environ.get("MPSFORGE_SERIES_TESTS", "")  # mpsforge sets it for a host build
        paths = sorted(pathlib.Path(folder).glob("test_mps_*.py")) if folder else []
        if not paths:
            self.skipTest("needs the series' test files, which the sources of a host build of it have")
        for path in paths:
            tests = unittests.tests_in(unittests.load(path))
            for name, test in tests.items():
                end = unittests.Result()
                test.run(end)
                problem = [text.strip().splitlines()[-1] for _, text in end.errors + end.failures + end.skipped]
                if problem or not end.wasSuccessful():
                    self.counts.errors.append(f"{path.name}, {name}: {'; '.join(problem)}")
                self.counts.add(expected=1, operations=1, answers=1, values=1)
