"""Which torch this process loaded, found by what is loaded, not by paths that were meant."""

import ctypes
import hashlib
import importlib.metadata
import os
import sys

STAMP = "mpsforge_stamp"


def images():
    """The paths of the libraries in this process."""
    if sys.platform == "darwin":
        process = ctypes.CDLL(None)
        process._dyld_get_image_name.restype = ctypes.c_char_p
        return [os.fsdecode(process._dyld_get_image_name(i)) for i in range(process._dyld_image_count())]
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        found = [line.split(maxsplit=5)[5].rstrip("\n") for line in maps if len(line.split(maxsplit=5)) == 6]
    return list(dict.fromkeys(path for path in found if ".so" in os.path.basename(path)))


def symbol(path, name, kind):
    """A symbol of a library that is loaded already, or nothing."""
    try:
        library = ctypes.CDLL(path, mode=os.RTLD_LAZY | os.RTLD_NOLOAD)
        return kind.in_dll(library, name) if kind else getattr(library, name)
    except (OSError, ValueError, AttributeError):
        return None


def stamped():
    """The loaded library that has the MPS backend and bears a stamp of mpsforge, and the stamp; of several, which must not be
    but for an overlay over another one, the first. Others must not be asked: a library's symbols are looked for in those that it is
    linked with, too."""
    for words in (("mpsforge_overlay.",), ("libtorch_cpu.", "hostmps")):
        for path in images():
            if any(word in os.path.basename(path) for word in words):
                mark = symbol(path, STAMP, ctypes.c_char)
                if mark is not None:
                    return path, ctypes.string_at(ctypes.addressof(mark)).decode()
    return "", ""


def library(torch):
    """The stamped library, else the one that holds torch's operators, else the extension."""
    path, stamp = stamped()
    if not path:
        path = next((image for image in images() if os.path.basename(image).startswith("libtorch_cpu.")), "")
    return path or getattr(torch._C, "__file__", ""), stamp


def editable():
    """The folder of an editable install of torch, or an empty text."""
    try:
        origin = importlib.metadata.distribution("torch").read_text("direct_url.json") or ""
    except (importlib.metadata.PackageNotFoundError, OSError):
        return ""
    return origin if '"editable": true' in origin or '"editable":true' in origin else ""


def of_torch(digest=False):
    import torch

    path, stamp = library(torch)
    status = os.stat(path) if path else None
    facts = {
        "torch": torch.__version__,
        "git": getattr(torch.version, "git_version", ""),
        "python": sys.version.split()[0],
        "executable": sys.executable,
        "prefix": sys.prefix,
        "package": torch.__file__,
        "mps_package": getattr(torch.mps, "__file__", ""),
        "library": path,
        "stamp": stamp,
        "size": status.st_size if status else 0,
        "modified": status.st_mtime_ns if status else 0,
        "editable": editable(),
    }
    if digest and path:
        hash_ = hashlib.sha256()
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                hash_.update(block)
        facts["digest"] = hash_.hexdigest()
    return facts


class Finding(ctypes.Structure):
    """mpsforge_host_finding of native/objc/include/mpsforge/host.h."""

    _fields_ = [("kind", ctypes.c_uint32), ("signature", ctypes.c_uint32), ("message", ctypes.c_char * 512)] + [
        (name, ctypes.c_char * 256) for name in ("first", "second", "history")
    ]


def findings():
    """What the software Metal found, where this is one; an empty list on Apple's."""
    for path in images():
        ask = symbol(path, "mpsforge_host_findings", None) if "mpsforge_objc" in path else None
        if ask is not None:
            ask.restype = ctypes.c_size_t
            found = (Finding * 16)()
            count = ask(found, ctypes.c_size_t(len(found)))
            names = [name for name, _ in Finding._fields_]
            values = [{name: getattr(one, name) for name in names} for one in found[: min(count, len(found))]]
            return [{name: value.decode(errors="replace") if isinstance(value, bytes) else value for name, value in one.items()} for one in values]
    return []


def recorded():
    """What the process has done with the software Metal, a line for each call (mpsforge/host.h), where that is recorded."""
    for path in images():
        ask = symbol(path, "mpsforge_host_recorded", None) if "mpsforge_objc" in path else None
        if ask is not None:
            ask.restype, ask.argtypes = ctypes.c_size_t, [ctypes.c_char_p, ctypes.c_size_t]
            text = ctypes.create_string_buffer(ask(None, 0) + 1)
            ask(text, len(text))
            return text.value.decode()
    return ""
