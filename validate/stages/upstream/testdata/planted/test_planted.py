"""Stands for a file of PyTorch's: a test for each way to end."""

import os
import platform
import subprocess
import sys
import time
import unittest

import framework
import torch

MACOS_VERSION = float(platform.mac_ver()[0])
SIDE = os.environ.get("PLANTED_SIDE", "")
FOLDER = os.environ.get("PLANTED_FOLDER", "")

KERNEL = 'Failed to created pipeline state object, error: Error Domain=MTLLibraryErrorDomain Code=8 "mpsforge has no host kernel for the Metal function erf"'
OPERATOR = "The operator 'aten::{}' is not currently implemented for the MPS device."


class Planted(unittest.TestCase):
    def test_passes(self):
        self.assertEqual(torch.ones(2).sum().item(), 2)

    def test_differs_from_expected_values(self):
        torch.testing.assert_close(torch.ones(2), torch.zeros(2))

    def test_raises_what_the_framework_wraps(self):
        try:
            raise NotImplementedError(OPERATOR.format("exp.out"))
        except NotImplementedError as error:
            raise Exception("Caused by sample input at index 0") from error

    def test_needs_what_no_mac_has(self):
        raise NotImplementedError(OPERATOR.format("lcm.out"))

    def test_imports_a_missing_package(self):
        import what_nobody_has  # noqa: F401

    def test_needs_a_missing_kernel(self):
        raise RuntimeError(KERNEL)

    def test_fails_in_a_sub_test(self):
        with self.subTest("first"):
            self.assertTrue(False)

    @unittest.skipIf(MACOS_VERSION > 15.1, "only on old systems")
    def test_skips_by_its_own_condition(self):
        pass

    @unittest.skip
    def test_skips_without_a_reason(self):
        pass

    def test_skips_by_the_framework_s_condition(self):
        framework.refuse("not for this device")

    def test_skips_for_a_missing_package(self):
        framework.refuse("requires scipy")

    @unittest.expectedFailure
    def test_fails_as_expected(self):
        self.assertEqual(1, 2)

    @unittest.expectedFailure
    def test_fails_as_expected_for_a_missing_kernel(self):
        raise RuntimeError(KERNEL)

    @unittest.expectedFailure
    def test_succeeds_unexpectedly(self):
        pass

    def test_aborts(self):
        os.write(2, b"-[IOGPUMetalCommandBuffer validate]:214: failed assertion `commit an already committed command buffer'\n")
        os.abort()

    def test_ends_the_process_quietly(self):
        os._exit(0)

    def test_calls_exit(self):
        sys.exit(3)

    def test_hangs(self):
        time.sleep(1000)

    def test_hangs_in_a_child(self):
        subprocess.run(["sleep", "1000"], check=True)

    def test_takes_too_much_memory(self):
        block = b"x" * (1 << 30)
        time.sleep(len(block))

    def test_finds_a_mac(self):
        self.assertEqual(platform.mac_ver()[0], os.environ["MPSFORGE_METAL_MACOS"])
        self.assertEqual(int(subprocess.check_output(["sysctl", "-n", "hw.memsize"])), 700 << 20)

    def test_changes_what_others_would_see(self):
        Planted.changed = True

    def test_sees_no_other_test(self):
        self.assertFalse(hasattr(Planted, "changed"))

    def test_ends_otherwise_on_one_side(self):
        self.assertNotEqual(SIDE, "patched")

    def test_passes_on_one_side(self):
        self.assertEqual(SIDE, "patched")

    def test_fails_the_first_time_on_one_side(self):
        self.assertFalse(SIDE == "patched" and framework.first_time(FOLDER, "flake"))

    def test_dies_the_first_time_on_one_side(self):
        if SIDE == "patched" and framework.first_time(FOLDER, "death"):
            os.abort()

    def test_counts_its_runs(self):
        with open(os.path.join(FOLDER, "runs"), "a", encoding="utf-8") as file:
            file.write("x")

    def test_waits_for_the_end_of_the_run(self):
        if framework.first_time(FOLDER, "waiting"):
            time.sleep(1000)
