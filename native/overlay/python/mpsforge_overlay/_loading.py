"""Checks that torch is the one that the overlay was built for, and puts the overlay in the place of its copy."""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import json
import os
import pathlib
import sys
import types

HERE = pathlib.Path(__file__).resolve().parent


def stamp() -> dict:
    """From what the overlay was built, and for what."""
    return json.loads((HERE / "stamp.json").read_text(encoding="utf-8"))


def images() -> list[str]:
    """The paths of the libraries in this process, as the loader names them."""
    if sys.platform == "darwin":
        process = ctypes.CDLL(None)
        process._dyld_get_image_name.restype = ctypes.c_char_p
        found = [process._dyld_get_image_name(i) for i in range(process._dyld_image_count())]
        return [os.fsdecode(name) for name in found if name]  # another thread may close a library meanwhile
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        columns = [line.rstrip("\n").split(maxsplit=5)[5:] for line in maps]
    return list(dict.fromkeys(path[0] for path in columns if path and path[0].startswith("/")))


def stock_library(name: str) -> str:
    """The path of the loaded library that holds torch's copy of the backend, or nothing."""
    return next((path for path in images() if os.path.basename(path) == name), "")


def digest(path: str | pathlib.Path) -> str:
    hash_ = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            hash_.update(block)
    return hash_.hexdigest()


def modules_digest() -> str:
    # A Mac keeps attributes of X.py in ._X.py, where the disk has no place for them.
    names = sorted(path.relative_to(HERE).as_posix() for path in HERE.rglob("*.py") if not path.name.startswith("._"))
    lines = (f"{digest(HERE / name)} {name}\n" for name in names)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def mismatch(torch: types.ModuleType) -> str:
    """Why the overlay is not for this torch, or an empty text. Nothing has been loaded yet."""
    try:
        wanted = stamp()
        for key in ("torch", "git", "stock", "stock_sha256", "library", "library_sha256", "modules_sha256", "stamp"):
            if not isinstance(wanted[key], str):
                raise ValueError(f"{key} is not a text")
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"its stamp cannot be read: {error!r}"
    if torch.__version__ != wanted["torch"]:
        return f"it is for torch {wanted['torch']}, and this is {torch.__version__}"
    if torch.version.git_version != wanted["git"]:
        return f"it is for torch of commit {wanted['git']}, and this is {torch.version.git_version}"
    stock = stock_library(wanted["stock"])
    if not stock:
        return f"this torch has not loaded {wanted['stock']}, which has the backend that it replaces"
    if digest(stock) not in wanted["stock_sha256"].split():
        return f"{stock} is another file than the one that it was built for"
    try:
        if digest(HERE / wanted["library"]) != wanted["library_sha256"]:
            return f"its own {wanted['library']} is damaged"
        if wanted["stamp"].encode() + b"\0" not in (HERE / wanted["library"]).read_bytes():
            return f"its own {wanted['library']} has another stamp than its stamp.json"
        if modules_digest() != wanted["modules_sha256"]:
            return "its own Python files are damaged"
    except OSError as error:
        return f"its own files cannot be read: {error}"
    return ""


def attach(torch: types.ModuleType) -> str:
    """Why the library refuses, which then has changed nothing, or an empty text."""
    from . import _bindings, _library  # only now is it known that they are whole

    facts = stamp()
    try:
        library = _library.open_library(HERE / facts["library"])
        library.attach(os.fsencode(stock_library(facts["stock"])))
    except (OSError, RuntimeError) as error:  # the loader's, and the library's own
        return str(error)
    _bindings.install(torch._C, library)
    replace_python(torch)
    return ""


def replace_python(torch: types.ModuleType) -> None:
    """torch.mps and the registration of kernels in Python are those of the patched checkout."""
    prebuilt = torch.mps.__path__
    for name in [name for name in sys.modules if name == "torch.mps" or name.startswith("torch.mps.")]:
        del sys.modules[name]
    folder = HERE / "torch" / "mps"
    spec = importlib.util.spec_from_file_location("torch.mps", folder / "__init__.py", submodule_search_locations=[str(folder), *prebuilt])
    torch.mps = sys.modules["torch.mps"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(torch.mps)
    spec = importlib.util.spec_from_file_location("torch.library", HERE / "torch" / "library.py")
    ours = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(ours)
    # What is registered stays where it is.
    ours.fallthrough_kernel, ours._impls = torch.library.fallthrough_kernel, torch.library._impls
    torch.library.Library.impl, torch.library.Library.fallback = ours.Library.impl, ours.Library.fallback
    # Group normalisation is a kernel in Python: once more, as the checkout registers it.
    registered = torch.backends.mps._lib
    if registered is not None:
        registered._destroy()
        torch.backends.mps._lib = None
        torch.backends.mps._init()
