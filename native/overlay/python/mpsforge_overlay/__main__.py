"""Prints which MPS backend a process of this Python uses, as one JSON object. The exit code is 0 if it is the overlay's.

With --selftest it runs small programs by threads for half a minute, prints what it found, and writes it to a file; the exit code is 0 if
it found no fault.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys

import torch

import mpsforge_overlay

from . import _library, _loading


def is_file(path: str, own: str) -> bool:
    """Whether both are one file: the loader of a Mac writes letter case and accents as the disk has them, and knows hard links by another name."""
    try:
        return os.path.samefile(path, own)
    except OSError:
        return False


def status() -> dict:
    facts: dict = {"torch": torch.__version__, "git": torch.version.git_version, "reason": mpsforge_overlay.reason}
    try:
        facts["stamp"] = _loading.stamp()
    except (OSError, ValueError) as error:
        facts["stamp"], facts["reason"] = None, facts["reason"] or repr(error)
    library = _library.opened()
    facts["active"] = not facts["reason"] and library is not None
    if not facts["active"]:
        return facts
    facts.update(kernels={}, rebound={}, gone=[], left=[], foreign=[])
    facts["patches"] = json.loads(facts["stamp"]["stamp"].partition(":")[2])["patches"]
    own = str(_loading.HERE / facts["stamp"]["library"])
    facts["library"] = own
    for line in library.lines("status"):
        word, *rest = line.split("\t")
        if word == "kernel":
            key, name, image = rest
            of_key = facts["kernels"].setdefault(key, {})
            of_key[image] = of_key.get(image, 0) + 1
            if image == facts["stock"]:
                facts["foreign"].append(f"{key} {name}")
        elif word == "rebound":
            facts["rebound"][rest[0]] = int(rest[1])
        elif word in ("gone", "left"):
            facts[word].append(rest[0])
        elif word == "symbols":
            facts[word] = int(rest[0])
        else:
            facts[word] = rest[0]
    for part in ("hooks", "allocator", "guard", "fallback"):
        if not is_file(facts[part], own):
            facts["foreign"].append(f"{part}: {facts[part]}")
    facts["active"] = not facts["foreign"] and not facts["left"]
    return facts


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m mpsforge_overlay", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--selftest", action="store_true", help="run programs by threads, and compare their values")
    parser.add_argument("--seconds", type=float, default=3.0, help="for each of the seven checks (default: %(default)s)")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("mpsforge-selftest.json"), metavar="FILE", help="what --selftest writes (default: %(default)s)")
    parser.add_argument("--check", help=argparse.SUPPRESS)  # one check in this process, as --selftest starts it
    given = parser.parse_args()
    if not given.selftest:
        found = status()
        print(json.dumps(found, indent=1))
        return 0 if found["active"] else 1
    from . import _selftest

    if given.check:
        _selftest.child(given.check, given.seconds)
        return 0
    return _selftest.main(status(), given.seconds, given.output)


if __name__ == "__main__":
    sys.exit(main())
