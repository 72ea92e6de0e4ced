"""What tests that are pointed at another device find."""

import threading
import unittest

import torch
from default_device import for_mps
from torch.testing._internal.common_device_type import onlyCUDA
from torch.testing._internal.common_utils import TEST_CUDA, TestCase, run_tests  # noqa: F401

FOUND = torch.cuda.is_available(), torch.cuda.device_count(), TEST_CUDA


class Worker(threading.Thread):
    def __init__(self, work):
        super().__init__()
        self.work, self.result = work, None

    def run(self):  # threading's own is not called
        self.result = self.work()


def on_a_thread(work):
    worker = Worker(work)
    worker.start()
    worker.join()
    return worker.result


class Standins(TestCase):
    def test_unnamed_device(self):
        self.assertTrue(torch.ones(2).is_meta)

    def test_unnamed_device_on_a_thread(self):
        self.assertTrue(on_a_thread(lambda: torch.ones(2).is_meta))

    def test_cuda_by_name(self):
        self.assertTrue(torch.ones(2, device="cuda").is_meta)
        self.assertTrue(torch.ones(2, device="cpu").to(torch.device("cuda")).is_meta)

    def test_cuda_by_method(self):
        self.assertTrue(torch.ones(2, device="cpu").cuda().is_meta)

    def test_cuda_by_name_on_a_thread(self):
        self.assertTrue(on_a_thread(lambda: torch.ones(2, device="cuda").is_meta))

    def test_named_cpu_stays(self):
        self.assertEqual(torch.ones(2, device="cpu").device.type, "cpu")

    def test_sleep_uses_the_device(self):
        torch.cuda._sleep(3_000_000)

    @unittest.skipUnless(torch.cuda.is_available(), "needs CUDA")
    def test_the_file_finds_cuda(self):
        self.assertEqual(FOUND, (True, 1, True))

    def test_pytorch_finds_none(self):
        self.assertFalse(torch.cuda.is_available())

    def test_a_missing_stream_is_named(self):
        torch.cuda.Stream()

    def test_numbers_are_compared_as_float64(self):
        self.assertEqual(torch.tensor(2.0, device="cpu"), 2.0)


class StandinsOfADevice(TestCase):
    device_type = "cpu"

    def test_unnamed_device_is_the_cpu(self):
        self.assertEqual(torch.ones(2).device.type, "cpu")

    @onlyCUDA
    def test_of_cuda_alone(self):
        self.assertTrue(torch.ones(2, device="cuda").is_meta)


class StandinsOfTestsForEachDevice(TestCase):
    def test_those_for_pytorchs_machines_are_for_mps(self):
        asked = []
        make = for_mps(lambda generic, scope, **named: asked.append(named))
        make(StandinsOfADevice, {}, only_for=("cpu", "cuda"))
        make(StandinsOfADevice, {})
        self.assertEqual(asked, [{"only_for": ("cpu", "cuda", "mps"), "allow_mps": True}, {"allow_mps": True}])
