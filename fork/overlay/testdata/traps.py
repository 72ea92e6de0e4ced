"""traps.py LIBRARY OFFSETS PROGRAM...: imports torch, overwrites functions of a loaded library by traps, and runs a program.

At the interpreter's end the functions are put back: what runs then are destructors of the library's own objects.
"""

import atexit
import ctypes
import runpy
import sys

import torch  # noqa: F401  the overlay takes its place here

library, offsets = sys.argv[1:3]
with open("/proc/self/maps", encoding="utf-8") as maps:
    base = min(int(line.split("-")[0], 16) for line in maps if line.rstrip("\n").endswith(library))
mprotect = ctypes.CDLL(None).mprotect
mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
before = []
with open(offsets, encoding="utf-8") as lines:
    functions = [tuple(map(int, line.split())) for line in lines]
first, last = min(at for at, _ in functions), max(at + size for at, size in functions)
start = (base + first) & ~4095
if mprotect(start, base + last - start, 7) != 0:
    sys.exit("mprotect failed")
for at, size in functions:
    before.append((base + at, ctypes.string_at(base + at, size)))
for at, size in functions:
    ctypes.memset(base + at, 0xCC, size)


def put_back():
    for at, text in before:
        ctypes.memmove(at, text, len(text))


atexit.register(put_back)
print("traps:", len(functions))
sys.argv = sys.argv[3:]
runpy.run_path(sys.argv[0], run_name="__main__")
