"""Tests with a bug each. Every one of them must be told from a pass (validate/judge/pytests/planted_test.go)."""

import atexit
import ctypes
import os
import sys
import threading

import torch
from harness import ParallelTest


class Planted(ParallelTest):
    def test_right(self):
        def work(i):
            self.compare(torch.ones(4) + i, torch.full((4,), 1.0 + i), f"thread {i}")
            self.done()

        self.together(work, operations=1)

    def test_swallowed_exception(self):
        def work(i):
            try:
                if i == 1:
                    raise RuntimeError("lost")
                self.compare(torch.ones(4), torch.ones(4), "ones")
                self.done()
            except RuntimeError:
                pass

        self.together(work, operations=1)

    def test_some_never_compared(self):
        def work(i):
            if i:
                self.compare(torch.ones(4), torch.ones(4), "ones")
            self.done()

        self.together(work, operations=1)

    def test_nothing_compared(self):
        self.together(lambda i: None, operations=0)

    def test_wrong_value(self):
        def work(i):
            self.compare(torch.ones(4) * (i != 2), torch.ones(4), f"thread {i}")
            self.done()

        self.together(work, operations=1)

    def test_not_a_number(self):
        def work(i):
            self.compare(torch.full((4,), float("nan")), torch.ones(4), f"thread {i}", tolerance=1.0)
            self.done()

        self.together(work, operations=1)

    def test_exit_0_in_a_thread(self):
        self.together(lambda i: os._exit(0), operations=1)

    def test_own_thread_dies(self):
        self.test_right()
        thread = threading.Thread(target=lambda: 1 / 0)
        thread.start()
        thread.join()

    def test_thread_dies_after_the_result(self):
        self.test_right()
        end = threading.main_thread()

        def late():
            end.join()
            raise KeyError("late")

        threading.Thread(target=late).start()

    def test_abort(self):
        def work(i):
            print("-[IOGPUMetalCommandBuffer validate]:215: failed assertion `commit an already committed command buffer'", file=sys.stderr, flush=True)
            os.abort()

        self.together(work)

    def test_abort_at_exit(self):
        self.test_right()
        atexit.register(os.abort)

    def test_hang(self):
        self.together(lambda i: threading.Event().wait(), operations=1)

    def test_hang_with_the_interpreter_lock(self):
        self.together(lambda i: ctypes.PyDLL(None).sleep(600), operations=1)

    def test_memory(self):
        def work(i):
            self.hold = torch.ones(200 << 20)  # 800 MiB
            threading.Event().wait()

        self.together(work, threads=1)

    def test_skipped(self):
        self.need(torch.mps, "what_no_torch_has")
