"""Overwrites the functions of torch's copy of the MPS backend by traps, once an overlay is in its place.

torch loads it after the overlay, as the folder with it comes later on the path. functions.json beside it names the library, and where
its functions are. At the interpreter's end they are put back: what runs then are destructors of that copy's own objects.
"""

import atexit
import ctypes
import json
import pathlib

import mpsforge_overlay


def load() -> None:
    if mpsforge_overlay.reason:
        raise RuntimeError(f"there is no overlay in this process: {mpsforge_overlay.reason}")
    facts = json.loads(pathlib.Path(__file__).with_name("functions.json").read_text(encoding="utf-8"))
    functions = [tuple(function) for function in facts["functions"]]
    with open("/proc/self/maps", encoding="utf-8") as maps:
        base = min(int(line.split("-")[0], 16) for line in maps if line.rstrip("\n").endswith(facts["library"]))
    mprotect = ctypes.CDLL(None, use_errno=True).mprotect
    mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    start = (base + min(at for at, _ in functions)) & ~4095
    if mprotect(start, base + max(at + size for at, size in functions) - start, 7) != 0:
        raise OSError(ctypes.get_errno(), "mprotect")
    before = [(base + at, ctypes.string_at(base + at, size)) for at, size in functions]
    for at, text in before:
        ctypes.memset(at, 0xCC, len(text))

    def put_back() -> None:
        for at, text in before:
            ctypes.memmove(at, text, len(text))

    atexit.register(put_back)
