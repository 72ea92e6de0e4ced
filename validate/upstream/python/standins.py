"""What a Mac answers and Linux does not. The tests' file stays as it is: whom it asks is told beforehand what to say."""

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


def memory():
    """Bytes of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def install(macos):
    """Makes this process, and those that it starts, find a Mac with this macOS. Gives the folder with the programs, which the
    caller removes."""
    if macos:
        platform.mac_ver = lambda *_arguments, **_named: (macos, MACHINE, "arm64")
        os.environ["MPSFORGE_METAL_MACOS"] = macos  # what PyTorch's C++ asks the software Metal
    folder = tempfile.TemporaryDirectory(prefix="mpsforge-upstream-")
    program = pathlib.Path(folder.name, "sysctl")
    program.write_text(
        f'#!/bin/sh\nif [ "$*" = "-n hw.memsize" ]; then echo {memory()}; exit 0; fi\n'
        'echo "sysctl: the stand-in of mpsforge only knows -n hw.memsize, not: $*" >&2\nexit 1\n',
        encoding="utf-8",
    )
    program.chmod(0o755)
    os.environ["PATH"] = folder.name + os.pathsep + os.environ.get("PATH", "")
    return folder


def skip_reasons(source):
    """The reasons of the skips that a test file itself makes: texts given to skip, skipIf, skipUnless, skipTest and SkipTest. A
    skip without a reason counts as the file's where the file uses unittest.skip itself."""
    reasons = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr == "skip":
            reasons.add("")
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name in ("skip", "skipIf", "skipUnless", "skipTest", "SkipTest"):
            for text in ast.walk(node):
                if isinstance(text, ast.Constant) and isinstance(text.value, str):
                    reasons.add(text.value)
    return reasons
