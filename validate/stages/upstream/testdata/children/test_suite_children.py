"""What a test's process may do wrong at its end or with what it writes (suite.py), without torch: none of it is a pass."""

import functools
import os
import signal
import stat
import sys
import time
import types
import unittest
import unittest.mock

import forked
import suite

LINE = b'{"event": "result", "name": "A.test", "outcome": "passed"}\n'


def write_into_pipes(words):
    """Writes into each pipe that this process has."""
    for descriptor in range(3, 64):
        try:
            if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
                os.write(descriptor, words)
        except OSError:
            pass  # none, or one to read from


class Children(unittest.TestCase):
    def setUp(self):
        self.addCleanup(vars(forked).update, WRITTEN=forked.WRITTEN, ANSWER=forked.ANSWER)
        self.addCleanup(setattr, forked.shutil, "which", forked.shutil.which)
        forked.shutil.which = lambda program: None  # no debugger

    def end_of(self, body, limit=1000.0):
        """The end of a test that is the function."""
        limits = types.SimpleNamespace(events=os.open(os.devnull, os.O_WRONLY), limit=limit, memory=1 << 40)
        self.addCleanup(os.close, limits.events)
        running = forked.Running("A.test", functools.partial(suite.child, unittest.FunctionTestCase(body), lambda reason: True, ()), limits)
        while True:
            if end := running.end():
                return end
            time.sleep(0.01)

    def test_a_pass_is_taken(self):
        end = self.end_of(lambda: None)
        self.assertEqual((end["outcome"], end["name"]), ("passed", "A.test"))

    def test_lines_that_look_like_results_are_none(self):
        def body():
            os.write(1, LINE)
            os.write(2, LINE)
            os._exit(0)

        self.assertEqual(self.end_of(body)["outcome"], "crash")

    def test_a_second_result_is_no_pass(self):
        self.assertEqual(self.end_of(lambda: write_into_pipes(LINE))["outcome"], "crash")

    def test_a_result_is_of_the_test_that_ran(self):
        def body():
            write_into_pipes(b'{"name": "Other.test", "outcome": "failed", "output": 1}')
            os._exit(0)

        end = self.end_of(body)
        self.assertEqual((end["name"], end["output"]), ("A.test", ""))

    def test_a_number_is_no_result(self):
        def body():
            write_into_pipes(b"1")
            os._exit(0)

        self.assertEqual(self.end_of(body)["outcome"], "crash")

    def test_a_flood_of_output_fills_no_disk(self):
        flood = int(os.environ.get("MPSFORGE_FLOOD", 200 << 20))
        if flood <= 200 << 20:
            forked.WRITTEN = 4 << 20

        def body():
            written, block = 0, bytes(1 << 20)
            while written < flood:
                written += len(block)
                try:
                    os.write(2, block)
                except OSError:
                    pass
            if os.fstat(2).st_size > forked.WRITTEN:
                raise AssertionError("the file has grown past its limit")

        self.assertEqual(self.end_of(body)["outcome"], "passed")

    def test_a_flood_of_reports_is_ended(self):
        forked.ANSWER = 1 << 20

        def body():
            while True:
                write_into_pipes(LINE)

        self.assertEqual(self.end_of(body, 2.0)["outcome"], "hang")

    def test_what_ignores_sigterm_hangs_until_its_limit(self):
        def body():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            while True:
                time.sleep(1)

        self.assertEqual(self.end_of(body, 0.5)["outcome"], "hang")

    def test_the_fork_is_not_a_bad_one(self):
        """torch takes it for one, and would seed no generator of mps."""
        asked = types.SimpleNamespace(mps=types.SimpleNamespace(_is_in_bad_fork=lambda: True))
        with unittest.mock.patch.dict(sys.modules, torch=asked):
            end = self.end_of(lambda: self.assertFalse(sys.modules.pop("torch").mps._is_in_bad_fork()))
        self.assertEqual(end["outcome"], "passed", end)

    def test_a_process_left_behind_holds_up_nothing(self):
        reader, writer = os.pipe()

        def body():
            left = os.fork()
            if left == 0:
                os.setsid()
                time.sleep(3600)
            os.write(writer, str(left).encode())

        end = self.end_of(body)
        os.kill(int(os.read(reader, 20)), signal.SIGKILL)
        self.assertEqual(end["outcome"], "passed")


if __name__ == "__main__":
    unittest.main()
