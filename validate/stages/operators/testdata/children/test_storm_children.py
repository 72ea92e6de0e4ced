"""What a job's process may do wrong at its end or with what it writes (storm.py), without torch: none of it is a right end."""

import os
import signal
import sys
import time
import types
import unittest

sys.modules["job"] = stand_in = types.ModuleType("job")
sys.modules["identity"] = types.ModuleType("identity")
sys.modules["identity"].findings = list
import storm  # noqa: E402

RIGHT = {"status": "right"}
LINE = b'{"result": {"status": "right"}}\n'


class Children(unittest.TestCase):
    def setUp(self):
        self.addCleanup(vars(storm).update, WRITTEN=storm.WRITTEN, ANSWER=storm.ANSWER)

    def end_of(self, body, seconds=1000.0):
        """The result of a job that is the function, which is given what reports."""
        stand_in.run = lambda job, entries, findings, tell: body(tell)
        return storm.run_once({"id": 7, "seconds": seconds, "close": []}, {})

    def test_a_result_is_taken(self):
        result = self.end_of(lambda tell: RIGHT)
        self.assertEqual((result["status"], result["id"]), ("right", 7))

    def test_death_after_the_result_is_a_crash(self):
        def body(tell):
            tell(phase="together", sample=3)
            tell(result=RIGHT)
            os.kill(os.getpid(), signal.SIGSEGV)

        result = self.end_of(body)
        self.assertEqual((result["status"], result["exit"], result["sample"]), ("crashed", -signal.SIGSEGV, 3))

    def test_two_results_are_an_error(self):
        def body(tell):
            tell(result=RIGHT)
            return RIGHT

        self.assertEqual(self.end_of(body)["status"], "error")

    def test_lines_that_look_like_results_are_none(self):
        def body(tell):
            os.write(2, LINE)
            os._exit(0)

        self.assertEqual(self.end_of(body)["status"], "crashed")

    def test_a_flood_of_errors_fills_no_disk(self):
        flood = int(os.environ.get("MPSFORGE_FLOOD", 200 << 20))
        if flood <= 200 << 20:
            storm.WRITTEN = 4 << 20

        def body(tell):
            written, block = 0, bytes(1 << 20)
            while written < flood:
                written += len(block)
                try:
                    os.write(2, block)
                except OSError:
                    pass
            return {"status": "right" if os.fstat(2).st_size <= storm.WRITTEN else "error"}

        self.assertEqual(self.end_of(body)["status"], "right")

    def test_a_flood_of_reports_is_ended(self):
        storm.ANSWER = 1 << 20

        def body(tell):
            while True:
                tell(phase="together", sample=1)

        self.assertEqual(self.end_of(body)["exit"], -signal.SIGKILL)

    def test_what_ignores_sigterm_hangs_until_its_limit(self):
        def body(tell):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            while True:
                time.sleep(1)

        self.assertEqual(self.end_of(body, 0.5)["status"], "hung")

    def test_what_closes_its_pipe_hangs_until_its_limit(self):
        def body(tell):
            os.closerange(3, 64)
            time.sleep(3600)

        self.assertEqual(self.end_of(body, 0.5)["status"], "hung")

    def test_a_process_left_behind_holds_up_nothing(self):
        reader, writer = os.pipe()

        def body(tell):
            left = os.fork()
            if left == 0:
                time.sleep(3600)
            os.write(writer, str(left).encode())
            return RIGHT

        result = self.end_of(body, 3000.0)
        os.kill(int(os.read(reader, 20)), signal.SIGKILL)
        self.assertEqual(result["status"], "right")
        self.assertLess(result["wall"], 1000)


if __name__ == "__main__":
    unittest.main()
