"""Device mps for torch on Linux, from a host build of mpsforge.

torch loads it at the end of its own import, through the entry point beside it (group torch.backends). From then on
the operators of device mps are there, torch._C's functions for MPS are those of the checkout, and torch.mps is the
checkout's package.
"""

import importlib.util
import pathlib
import sys

import _mpsforge_hostmps  # its libhostmps.so registers the backend; nothing may have asked torch for one before
import torch

identity = _mpsforge_hostmps.identity


def add_storages():
    """torch.UntypedStorage(device="mps"), and with it torch.load and pickle. The branch in torch/csrc/Storage.cpp that gives
    it MPS's allocator is compiled only with USE_MPS, which no torch for Linux is."""
    make = torch.UntypedStorage.__new__

    def new(cls, *arguments, device=None, **others):
        if device is not None and torch.device(device).type == "mps":
            return make(cls, *arguments, allocator=_mpsforge_hostmps.allocator(), **others)
        return make(cls, *arguments, device=device, **others)

    torch.UntypedStorage.__new__ = new


def load():
    _mpsforge_hostmps.install(torch._C)
    prebuilt = torch.mps.__path__
    for name in [name for name in sys.modules if name == "torch.mps" or name.startswith("torch.mps.")]:
        del sys.modules[name]
    folder = pathlib.Path(__file__).resolve().parent.parent / "torch" / "mps"
    # A checkout may be part of one: modules of the package that it lacks are the prebuilt ones.
    spec = importlib.util.spec_from_file_location(
        "torch.mps", folder / "__init__.py", submodule_search_locations=[str(folder), *prebuilt]
    )
    torch.mps = sys.modules["torch.mps"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(torch.mps)
    library = folder.parent / "library.py"
    if library.exists():
        # How kernels in Python are registered is the checkout's, too; what is registered stays where it is.
        spec = importlib.util.spec_from_file_location("torch.library", library)
        ours = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(ours)
        ours.fallthrough_kernel, ours._impls = torch.library.fallthrough_kernel, torch.library._impls
        torch.library.Library.impl, torch.library.Library.fallback = ours.Library.impl, ours.Library.fallback
    # torch's own import has called it already, and registered nothing, since its build has no MPS. torch.backends.mps
    # gives the device its group normalisation.
    torch.backends.mps._init()
    add_storages()
