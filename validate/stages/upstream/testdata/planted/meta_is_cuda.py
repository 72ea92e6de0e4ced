"""A planted stand-in: the real ones, with device meta, which every torch has, instead of mps."""

import contextlib

import cuda_names
from default_device import by_default

cuda_names.DEVICE = "meta"


def used():
    return True


@contextlib.contextmanager
def installed():
    by_default("meta")
    with cuda_names.installed():
        yield
