"""A planted stand-in: there is a module elsewhere, with a device."""

import contextlib
import sys
import types

calls = []


def compute():
    calls.append(42)
    return calls[-1]


def used():
    return bool(calls)


@contextlib.contextmanager
def installed():
    module = types.ModuleType("elsewhere")
    module.available, module.compute = lambda: True, compute
    sys.modules["elsewhere"] = module
    yield
    module.available = lambda: False
