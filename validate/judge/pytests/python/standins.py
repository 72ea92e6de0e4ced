"""Stand-ins for what only a Mac has. The tests' file stays as it is: the functions that it calls are replaced beforehand."""

import ast
import os
import pathlib
import platform
import tempfile

MACHINE = ("", "", "")


def compared_versions(source):
    """Each (operator, number) with which a test file compares MACOS_VERSION."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name) and node.left.id == "MACOS_VERSION":
            for operator, right in zip(node.ops, node.comparators):
                if isinstance(right, ast.Constant) and isinstance(right.value, (int, float)):
                    yield operator, float(right.value)


def newest_macos(source):
    """The newest macOS version that a test file distinguishes, such as 15.1; an empty text if it asks for none. Where it asks
    for what is newer than the newest one that it names, the one after that."""
    compared = list(compared_versions(source))
    if not compared:
        return ""
    newest = max(number for _, number in compared)
    if any(number == newest and isinstance(operator, (ast.Gt, ast.LtE)) for operator, number in compared):
        newest = round(newest + 0.1, 1)
    return f"{newest:.1f}"


def install(macos, memory):
    """Makes this process, and those that it starts, find a Mac with this macOS and so much memory in bytes. Gives the folder with
    the programs, which the caller removes."""
    if macos:
        platform.mac_ver = lambda *_arguments, **_named: (macos, MACHINE, "arm64")
        os.environ["MPSFORGE_METAL_MACOS"] = macos  # what PyTorch's C++ asks the software Metal
    folder = tempfile.TemporaryDirectory(prefix="mpsforge-upstream-")
    program = pathlib.Path(folder.name, "sysctl")
    program.write_text(
        f'#!/bin/sh\nif [ "$*" = "-n hw.memsize" ]; then echo {memory}; exit 0; fi\n'
        'echo "sysctl: the stand-in of mpsforge only knows -n hw.memsize, not: $*" >&2\nexit 1\n',
        encoding="utf-8",
    )
    program.chmod(0o755)
    os.environ["PATH"] = folder.name + os.pathsep + os.environ.get("PATH", "")
    return folder


class OwnSkips:
    """Separates the skips that a test file itself makes from those of the framework below it."""

    def __init__(self, source):
        self._reasons = set()  # texts given to skip, skipIf, skipUnless, skipTest and SkipTest
        # PyTorch's TestCase skips what an operator without a kernel ends, where the file's class asks for that.
        self._not_implemented = "_ignore_not_implemented_error = True" in source
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Attribute) and node.attr == "skip":
                self._reasons.add("")  # a decorator without a reason
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in ("skip", "skipIf", "skipUnless", "skipTest", "SkipTest"):
                texts = (text.value for text in ast.walk(node) if isinstance(text, ast.Constant))
                self._reasons.update(text for text in texts if isinstance(text, str))

    def __call__(self, reason):
        return reason in self._reasons or self._not_implemented and reason.startswith("not_implemented: ")


def skips_of_mps(reason):
    """Whether a test of several devices was skipped by the mark for MPS, skipIfMPS. Any other skip says that it was not pointed there."""
    return reason == "test doesn't currently work with MPS"
