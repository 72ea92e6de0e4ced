"""The patched MPS backend, over the one of an installed torch.

torch loads it at its own import, through the entry point of the group torch.backends. It takes the place of torch's copy only over
the very torch that it was built for; over any other it warns once and changes nothing. With MPSFORGE_OVERLAY=0 in the
environment it does nothing.

`python -m mpsforge_overlay` says which copy answers.
"""

from __future__ import annotations

import os
import warnings

SWITCH = "MPSFORGE_OVERLAY"

# Why this process has torch's own copy; empty if it has ours.
reason = "torch has not been imported, or has not loaded its backends (TORCH_DEVICE_BACKEND_AUTOLOAD)"


class OverlayError(RuntimeError):
    """The overlay cannot be loaded here."""


def load() -> None:
    """Called by torch, near the end of its import."""
    global reason
    import torch

    if not reason:
        return
    if os.environ.get(SWITCH) == "0":
        reason = f"{SWITCH}=0"
        return
    if not getattr(torch.__spec__, "_initializing", False):
        raise OverlayError(
            "mpsforge_overlay loads while torch is being imported and not later: tensors and kernels of torch's own copy of "
            "the MPS backend may be in use. torch imports it by itself, unless TORCH_DEVICE_BACKEND_AUTOLOAD=0 is set."
        )
    from . import _loading

    reason = _loading.mismatch(torch) or _loading.attach(torch)
    if reason:
        warnings.warn(
            f"mpsforge_overlay leaves device mps to torch's own copy of the backend: {reason}. Build an overlay for this torch, or "
            f"uninstall it: pip uninstall mpsforge-overlay ({SWITCH}=0 turns this warning off)",
            RuntimeWarning,
            stacklevel=2,
        )
