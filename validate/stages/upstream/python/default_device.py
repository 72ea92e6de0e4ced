"""Points tests that name no device at device mps: it is the default one on each thread, and tests by device are made for it, too."""

import contextlib
import threading

import torch
from torch.testing._internal import common_device_type, common_utils


def for_mps(instantiate):
    """PyTorch's function that makes tests for each device, called with its own switch for MPS set. A class of tests that lists the CPU
    and CUDA alone is made for MPS, too."""

    def instantiate_for_mps(generic, scope, *arguments, **named):
        if set(named.get("only_for") or ()) == {"cpu", "cuda"}:
            named["only_for"] = (*named["only_for"], "mps")
        return instantiate(generic, scope, *arguments, **{**named, "allow_mps": True})

    return instantiate_for_mps


def in_each_test(mode, wanted=lambda _: True):
    """Makes mode() the context of every test that is wanted, its setUp among it, and of all threads that Python starts for it:
    PyTorch keeps such modes for each thread, and hands them on only to threads that it starts itself."""
    run, start = common_utils.TestCase.run, threading.Thread.start
    active = False

    def run_with_mode(self, *arguments, **named):
        nonlocal active
        active = wanted(self)
        with mode() if active else contextlib.nullcontext():
            return run(self, *arguments, **named)

    def start_with_mode(self):
        if active:
            self.run = run_in(mode, self.run)
        start(self)

    common_utils.TestCase.run, threading.Thread.start = run_with_mode, start_with_mode


def run_in(mode, run):
    def run_with_mode():
        with mode():
            run()

    return run_with_mode


def by_default(device):
    """Makes a device the one of tests that name none. A test that is given a device means the CPU where it names none."""
    in_each_test(lambda: torch.device(device), wanted=lambda test: not hasattr(test, "device_type"))
    compare = common_utils.TestCase.assertEqual

    def compare_on_cpu(self, *arguments, **named):
        with torch.device("cpu"):  # what it makes of numbers may be of a type that the device does not have
            return compare(self, *arguments, **named)

    common_utils.TestCase.assertEqual = compare_on_cpu


@contextlib.contextmanager
def installed():
    """While the tests' file is imported. What is for its tests stays."""
    by_default("mps")
    instantiate = common_device_type.instantiate_device_type_tests
    common_device_type.instantiate_device_type_tests = for_mps(instantiate)
    yield
    common_device_type.instantiate_device_type_tests = instantiate


def used():
    """Whether this process has had memory of the device."""
    return torch.mps.driver_allocated_memory() > 0
