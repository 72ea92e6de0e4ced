"""Launches every kernel of a translated library and compares what it writes with PyTorch's CPU operators.

Usage: run.py LAUNCHER LIBRARY. Prints one JSON object: what was launched and compared, and what was wrong.
"""

import json
import re
import sys
import warnings
import zlib

import families
import layers  # noqa: F401  # adds its families
import iterators
import torch
from launch import Kernel, Launch, Library, difference


# Kernels of 2.9.1 that are wrong themselves, with the reason; one that is right is an error, too.
FAULTS = {
    r"^nextafter_.*_bfloat$": "the next float after it is rounded back to the same bfloat",
    r"^(asin_dense|acos_(dense|strided))_half2_half2$": "in half, rounding makes the number negative whose square root is taken, and that is none",
}


def case_of(kernel: Kernel, names: set[str]) -> Launch | None:
    iterators.GENERATOR.manual_seed(zlib.crc32(kernel.name.encode()))
    return iterators.case(kernel, names) or families.case(kernel)


def main() -> None:
    warnings.simplefilter("ignore")  # that complex half is experimental
    library = Library(*sys.argv[1:3])
    names = set(library.kernels)
    result: dict[str, list[str]] = {"launched": [], "compared": [], "findings": [], "wrong": [], "faults": [], "without_case": []}
    for kernel in library.kernels.values():
        what = case_of(kernel, names)
        if what is None:
            result["without_case"].append(kernel.name)
            continue
        groups = [(t + g - 1) // g for t, g in zip(what.threads, what.group, strict=True)]
        threads = what.threads[0] * what.threads[1] * what.threads[2]
        if threads < 64 or groups[0] * groups[1] * groups[2] < 2:
            result["wrong"].append(f"{kernel.name}: only {threads} threads in {groups} threadgroups")
        found = library.launch(kernel, what)
        result["launched"].append(kernel.name)
        result["findings"] += [f"{kernel.name}: {line}" for line in found.splitlines()]
        wrong = []
        for name, expected in what.expected.items():
            written = what.memory[name]
            assert isinstance(written, torch.Tensor)
            if differs := difference(written, expected, what.tolerance):
                wrong.append(f"{kernel.name}, {name}: {differs}")
        if any(re.search(pattern, kernel.name) for pattern in FAULTS):
            result["faults"].append(kernel.name)
            wrong = [] if wrong else [f"{kernel.name} is right, and listed as wrong"]
        elif what.expected:
            result["compared"].append(kernel.name)
        result["wrong"] += wrong
    print(json.dumps(result))


main()
