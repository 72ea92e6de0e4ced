"""The operations that threads do. Each is complete, so that mpsforge repro can put it into a file of its own.

An operation is made for a device, has inputs for each case on the CPU, and gives one tensor.
"""

import torch
from harness import numbers, settle


class Tensors:
    """Plain tensor operations: randn, mm, relu."""

    def __init__(self, device):
        self.weight = numbers(1, 64, 64).to(device)

    def inputs(self, case):
        return [numbers(10 + case, 64, 64)]

    def __call__(self, x):
        torch.randn(64, 64, device=x.device)  # of no use but to be made while others compute
        return torch.relu(torch.mm(x, self.weight))


class LargeTensors:
    """One product of large matrices."""

    size = 1024

    def __init__(self, device):
        self.weight = numbers(1, self.size, self.size).to(device)

    def inputs(self, case):
        return [numbers(10 + case, self.size, self.size)]

    def __call__(self, x):
        return torch.relu(torch.mm(x, self.weight)) / self.size


class Linear:
    """nn.Linear."""

    def __init__(self, device):
        self.module = settle(torch.nn.Linear(64, 128, device=device))

    def inputs(self, case):
        return [numbers(10 + case, 32, 64)]

    def __call__(self, x):
        return self.module(x)


class FunctionalLinear:
    """torch.nn.functional.linear."""

    def __init__(self, device):
        self.weight, self.bias = numbers(1, 128, 64).to(device) / 8, numbers(2, 128).to(device)

    def inputs(self, case):
        return [numbers(10 + case, 32, 64)]

    def __call__(self, x):
        return torch.nn.functional.linear(x, self.weight, self.bias)


class MLP:
    """Two layers, written out."""

    def __init__(self, device):
        self.first = settle(torch.nn.Linear(64, 128, device=device))
        self.second = settle(torch.nn.Linear(128, 32, device=device))

    def inputs(self, case):
        return [numbers(10 + case, 16, 64)]

    def __call__(self, x):
        return self.second(torch.relu(self.first(x)))


class Sequential:
    """nn.Sequential of three nn.Linear."""

    def __init__(self, device):
        nn = torch.nn
        layers = [nn.Linear(64, 128, device=device), nn.ReLU(), nn.Linear(128, 64, device=device), nn.ReLU(), nn.Linear(64, 16, device=device)]
        self.module = settle(nn.Sequential(*layers))

    def inputs(self, case):
        return [numbers(10 + case, 16, 64)]

    def __call__(self, x):
        return self.module(x)


class Conv1d:
    """nn.Conv1d."""

    def __init__(self, device):
        self.module = settle(torch.nn.Conv1d(8, 16, 3, padding=1, device=device))

    def inputs(self, case):
        return [numbers(10 + case, 4, 8, 32)]

    def __call__(self, x):
        return self.module(x)


class LayerNorm:
    """nn.LayerNorm."""

    def __init__(self, device):
        self.module = settle(torch.nn.LayerNorm(64, device=device))

    def inputs(self, case):
        return [numbers(10 + case, 16, 64)]

    def __call__(self, x):
        return self.module(x)


class Softmax:
    """torch.softmax."""

    def __init__(self, device):
        pass

    def inputs(self, case):
        return [numbers(10 + case, 32, 64)]

    def __call__(self, x):
        return torch.softmax(x, dim=-1)


class Transformer:
    """nn.TransformerEncoderLayer."""

    def __init__(self, device):
        self.module = settle(torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, device=device))

    def inputs(self, case):
        return [numbers(10 + case, 2, 8, 32)]

    def __call__(self, x):
        return self.module(x)
