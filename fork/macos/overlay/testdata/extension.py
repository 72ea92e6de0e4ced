"""An extension that was compiled with stock headers and linked with stock's library: it encodes by itself, on the overlay's streams."""

import threading

import torch

import _mpsforge_hostmps as extension

source = torch.arange(256, dtype=torch.float32, device="mps") / 256
wrong = []


def work():
    to = torch.zeros(256, device="mps")
    for _ in range(10):
        extension.encode_copy(to, source)
        if to.cpu().tolist() != source.cpu().tolist():
            wrong.append("a copy")
        extension.run_shader(to, source)
        if not torch.allclose(to.cpu(), source.cpu().exp(), rtol=1e-4):
            wrong.append("a shader")
    own = extension.foreign(256)
    own.copy_(source)
    if own.cpu().tolist() != source.cpu().tolist():
        wrong.append("memory of its own")


threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("wrong:", wrong[:3])
