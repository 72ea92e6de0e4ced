"""Faults planted into what the programs of test_reported.py call, each of which they must find."""

import pathlib
import sys
import threading
import unittest
from collections.abc import Callable
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python"))

import harness
import test_reported
import torch

THREADS = 4
LINSPACE, COS = torch.linspace, torch.cos


class SharedWords(torch.nn.Embedding):
    """Keeps what it gave in the module, as if there were one caller (SWivid/F5-TTS#1287). The threads meet there, each the first time, so
    that it goes wrong for certain."""

    meet, met = threading.Barrier(THREADS), threading.local()

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        self.kept = super().forward(words)
        if threading.current_thread() is not threading.main_thread() and not hasattr(self.met, "once"):
            self.met.once = True
            self.meet.wait()
        return self.kept


def stateful(make: Callable[[str], torch.nn.Module]) -> Callable[[str], torch.nn.Module]:
    def made(device: str) -> torch.nn.Module:
        model = make(device)
        model.words.__class__ = SharedWords
        return model

    return made


class Planted(unittest.TestCase):
    def check(self, program: str, place: object, name: str, wrong: Callable, found: str) -> None:
        """Runs a program while a function is another one."""
        harness.ParallelTest.settings = harness.Settings(threads=THREADS, iterations=6)
        outcome = unittest.TestResult()
        with mock.patch.object(place, name, wrong):
            test_reported.Reported(program).run(outcome)
        self.assertFalse(outcome.skipped)
        self.assertRegex("".join(text for _, text in outcome.errors + outcome.failures), found)

    def test_synchronize_that_does_not_wait_is_found(self):
        self.check("test_synchronize_others", harness.ParallelTest, "synchronize", lambda _: None, "done after synchronize.*: 0.0, expected 1.0")

    def test_answer_to_another_query_is_found(self):
        self.check("test_reranker", test_reported, "CrossEncoder", stateful(test_reported.CrossEncoder), "wrong values")

    def test_sampling_of_another_text_is_found(self):
        self.check("test_sampler_batches", test_reported, "Sampler", stateful(test_reported.Sampler), "Sizes of tensors must match")

    def test_weights_of_another_place_are_found(self):
        self.check("test_weights_loaded", torch, "frombuffer", lambda _, dtype, count, offset: torch.full((count,), offset, dtype=dtype), "wrong values")

    def test_wrong_range_is_found(self):
        self.check("test_ranges", torch, "linspace", lambda *args, device, dtype: LINSPACE(*args, device=device, dtype=dtype) * (1 + (device != "cpu")), "wrong values")

    def test_wrong_function_is_found(self):
        self.check("test_functions_first_used", torch, "abs", lambda x: COS(x) if x.is_mps else x, "wrong values")


if __name__ == "__main__":
    unittest.main()
