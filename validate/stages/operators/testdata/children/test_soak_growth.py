"""What the soak calls growth (soak.py)."""

import unittest

import soak


def samples(resident):
    return [{"resident": int(resident(i / 100)), "files": 9} for i in range(100)]


class Growth(unittest.TestCase):
    def test_a_start_that_fills_caches_is_none(self):
        self.assertEqual(soak.grown(samples(lambda part: min(part * 4, 1) * (1 << 30))), [])

    def test_noise_is_none(self):
        self.assertEqual(soak.grown(samples(lambda part: (1 << 30) + part * 1000 % 7 * (1 << 20))), [])

    def test_a_leak_is_growth(self):
        self.assertEqual([name for name, _, _ in soak.grown(samples(lambda part: part * (1 << 30)))], ["resident"])

    def test_a_file_each_round_is_growth(self):
        leaking = [{"files": i} for i in range(40)]
        self.assertEqual([name for name, _, _ in soak.grown(leaking)], ["files"])

    def test_too_few_rounds_say_nothing(self):
        self.assertEqual(soak.grown(samples(lambda part: 1)[:3]), [])


if __name__ == "__main__":
    unittest.main()
