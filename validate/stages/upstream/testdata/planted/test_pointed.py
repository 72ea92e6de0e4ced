"""Like a file of PyTorch's whose tests are of another device, with which the planted stand-in answers."""

import unittest

import elsewhere


class Pointed(unittest.TestCase):
    @unittest.skipUnless(elsewhere.available(), "needs that device")
    def test_uses_the_device(self):
        self.assertEqual(elsewhere.compute(), 42)

    def test_names_no_device(self):
        self.assertEqual(40 + 2, 42)

    @unittest.expectedFailure
    def test_fails_as_expected_on_no_device(self):
        self.assertEqual(40 + 2, 43)

    @unittest.skip("fewer than 2 devices")
    def test_skips_by_its_own_condition(self):
        elsewhere.compute()

    def test_skips_as_marked_for_mps(self):
        raise unittest.SkipTest("test doesn't currently work with MPS")

    def test_cannot_be_pointed(self):
        self.fail("it ran")


class OffTopic(unittest.TestCase):
    def test_is_of_no_concern(self):
        self.fail("it ran")
