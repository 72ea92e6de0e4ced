"""Plain tensor operations by many threads: the basic and stress tests of the field reports."""

import operations
from harness import ParallelTest


class Tensors(ParallelTest):
    def test_basic(self):
        self.parallel(operations.Tensors)

    def test_stress(self):
        self.parallel(operations.Tensors)

    def test_large(self):
        self.parallel(operations.LargeTensors, tolerance=1e-3, cases=2)
