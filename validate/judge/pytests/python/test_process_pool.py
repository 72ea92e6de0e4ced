"""process_pool.py, with models that need no torch."""

import os
import time
import unittest

from process_pool import ProcessPool, WorkerDied


class Adder:
    def __init__(self, summand):
        self.summand, self.calls = summand, 0

    def __call__(self, x):
        if x == "die":
            os._exit(3)
        if x == "raise":
            raise KeyError(x)
        if x == "sleep":
            time.sleep(0.2)
            x = 0
        self.calls += 1
        return x + self.summand, self.calls, os.getpid()


class Broken:
    def __init__(self):
        raise ValueError("no such model")


class Pool(unittest.TestCase):
    def test_pool_answers_in_order_from_several_processes(self):
        with ProcessPool(Adder, 10, workers=2) as pool:
            pool.map([("sleep",)] * 4)
            answers = pool.map([(0,), ("sleep",), (2,), ("sleep",), (4,)])
        self.assertEqual([sum_ for sum_, _, _ in answers], [10, 10, 12, 10, 14])
        self.assertEqual(len({process for _, _, process in answers} - {os.getpid()}), 2)

    def test_pool_makes_the_model_once_in_a_process(self):
        with ProcessPool(Adder, 1, workers=1) as pool:
            self.assertEqual([calls for _, calls, _ in pool.map([(1,), (2,), (3,)])], [1, 2, 3])

    def test_pool_loses_one_request_with_a_process(self):
        with ProcessPool(Adder, 1, workers=1) as pool:
            before, dead, after = pool.submit(1), pool.submit("die"), pool.submit(2)
            self.assertEqual(before.result()[0], 2)
            with self.assertRaises(WorkerDied):
                dead.result()
            self.assertEqual(after.result()[:2], (3, 1))  # of a new process

    def test_pool_gives_the_exception_of_a_request(self):
        with ProcessPool(Adder, 1, workers=1) as pool:
            with self.assertRaises(KeyError):
                pool.submit("raise").result()
            self.assertEqual(pool.submit(1).result()[0], 2)

    def test_pool_gives_the_exception_of_making_the_model(self):
        with ProcessPool(Broken, workers=1) as pool, self.assertRaisesRegex(ValueError, "no such model"):
            pool.submit(1).result()


if __name__ == "__main__":
    unittest.main()
