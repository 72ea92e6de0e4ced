"""Points tests that name CUDA at device mps: torch.cuda answers with torch.mps, as far as that has the name, and device "cuda" is mps.

On sources without torch.mps.Stream a test that wants a stream ends with the AttributeError that says so.
"""

import contextlib
import types

import torch
from torch.overrides import TorchFunctionMode
from torch.testing._internal import common_cuda, common_device_type, common_utils

import default_device
from default_device import used  # noqa: F401

DEVICE = "mps"
CYCLES = 1_000_000  # of torch.cuda._sleep that one product of two matrices replaces
MEMORY = 8 << 30

# Names of torch.cuda that are other names of torch.mps, looked up when they are used.
NAMES = {name: name for name in ("Stream", "StreamContext", "current_stream", "default_stream", "set_stream", "stream", "synchronize", "empty_cache", "Event")}
NAMES["memory_allocated"] = "current_allocated_memory"


def to_mps(value):
    """The argument of an operator, with mps instead of cuda."""
    if isinstance(value, (str, torch.device)) and str(value) in ("cuda", "cuda:0"):
        return torch.device(DEVICE)
    return value


class CudaIsMPS(TorchFunctionMode):
    """Sees each operator that Python calls, with its arguments."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.Tensor.cuda:
            return args[0].to(DEVICE, non_blocking=bool((kwargs or {}).get("non_blocking")))
        return func(*map(to_mps, args), **{name: to_mps(value) for name, value in (kwargs or {}).items()})


class Name:
    """torch.cuda.NAME: the class or function of torch.mps."""

    def __init__(self, name):
        self._name = name

    def __call__(self, *arguments, **named):
        return getattr(torch.mps, self._name)(*map(to_mps, arguments), **named)


def sleep(cycles):
    """Keeps the current stream busy for a time that grows with cycles, as CUDA's kernel that spins does."""
    factor = torch.full((256, 256), 1 / 256, device=DEVICE)
    product = factor
    for _ in range(max(1, round(cycles / CYCLES))):
        product = product @ factor


def float_tensor(*arguments):
    return torch.FloatTensor(*arguments).to(DEVICE)


@contextlib.contextmanager
def installed():
    """While the tests' file is imported, it finds that there is CUDA. What is for its tests stays."""
    default_device.in_each_test(CudaIsMPS)
    for name, ours in NAMES.items():
        setattr(torch.cuda, name, Name(ours))
    torch.cuda._sleep, torch.cuda.FloatTensor = sleep, float_tensor
    torch.cuda.current_device = lambda: 0
    answers = [
        (torch.cuda, "is_available", lambda: True),
        (torch.cuda, "device_count", lambda: 1),
        (torch.cuda, "get_device_properties", lambda _: types.SimpleNamespace(total_memory=MEMORY, major=0, minor=0)),
        (torch.cuda, "is_bf16_supported", lambda: False),
        (torch.cuda, "get_allocator_backend", lambda: "native"),
        (torch.version, "cuda", "0.0"),
        (common_cuda, "TEST_CUDA", True),
        (common_utils, "TEST_CUDA", True),
        (common_device_type, "onlyCUDA", lambda test: test),
    ]
    before = [getattr(module, name) for module, name, _ in answers]
    for module, name, answer in answers:
        setattr(module, name, answer)
    yield
    for (module, name, _), found in zip(answers, before):
        setattr(module, name, found)
