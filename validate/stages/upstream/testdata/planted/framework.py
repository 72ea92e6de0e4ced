"""Stands for PyTorch's test framework: what it does is not done by the test's file."""

import pathlib
import unittest


def refuse(reason):
    raise unittest.SkipTest(reason)


def first_time(folder, name):
    """Whether this is the first call with this name, in any process."""
    try:
        pathlib.Path(folder, name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
