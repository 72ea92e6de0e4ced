"""Layers and models by many threads: one object shared by all of them, or one for each, made by its thread."""

import operations
from harness import ParallelTest


class Modules(ParallelTest):
    def test_linear(self):
        self.parallel(operations.Linear)

    def test_f_linear(self):
        self.parallel(operations.FunctionalLinear)

    def test_mlp(self):
        self.parallel(operations.MLP)

    def test_sequential(self):
        self.parallel(operations.Sequential)

    def test_conv1d(self):
        self.parallel(operations.Conv1d)

    def test_layer_norm(self):
        self.parallel(operations.LayerNorm)

    def test_softmax(self):
        self.parallel(operations.Softmax)

    def test_transformer(self):
        self.parallel(operations.Transformer)

    def test_linear_own(self):
        """Each thread creates its nn.Linear on the device."""
        self.parallel(operations.Linear, own=True)

    def test_sequential_own(self):
        """Each thread creates its nn.Sequential on the device."""
        self.parallel(operations.Sequential, own=True)
