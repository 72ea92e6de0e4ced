"""Reads what the software Metal has found in this process."""

import ctypes


class Finding(ctypes.Structure):
    """mpsforge_host_finding of native/objc/include/mpsforge/host.h."""

    _fields_ = [("kind", ctypes.c_uint32), ("signature", ctypes.c_uint32), ("message", ctypes.c_char * 512)] + [
        (name, ctypes.c_char * 256) for name in ("first", "second", "history")
    ]


def findings() -> list[str]:
    """What was found since the process began, in a process that goes on after violations."""
    ask = ctypes.CDLL("libmpsforge_objc.so").mpsforge_host_findings
    ask.restype = ctypes.c_size_t
    found = (Finding * ask(None, ctypes.c_size_t(0)))()
    ask(found, ctypes.c_size_t(len(found)))
    return [f"{f.second.decode(errors='replace')}: {f.message.decode(errors='replace')}" for f in found]
