"""Copies between CPU and MPS, of views, of other types and of sources that are freed, against the same copies on the CPU."""

import random

import torch
from harness import ParallelTest

TYPES = [torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.uint8, torch.bool]


class Copies(ParallelTest):
    def view(self, draw, tensor):
        """The tensor, or at random a part of it with its dimensions in another order."""
        for dim in range(tensor.dim()):
            if draw.random() < 0.5:
                begin = draw.randrange(tensor.shape[dim])
                tensor = tensor.narrow(dim, begin, draw.randint(1, tensor.shape[dim] - begin))
        return tensor.permute(draw.sample(range(tensor.dim()), tensor.dim())) if draw.random() < 0.5 else tensor

    def test_copies(self):
        """Each thread copies its own views of tensors that all threads share, to and from the CPU."""
        device = self.settings.device
        shape = (5, 6, 7)
        sources = [torch.randint(0, 100, shape).to(dtype) for dtype in TYPES]
        shared = [source.to(device) for source in sources]
        self.synchronize()

        def work(i):
            draw = random.Random(i)
            for _ in range(self.settings.iterations):
                for _ in range(10):
                    copy(draw)
                for source, there in zip(sources, shared, strict=True):
                    self.compare(there.cpu().double(), source.double(), f"the source of {source.dtype} after the copies", answer=False)
                self.done()

        def copy(draw):
            number, dtype, non_blocking, state = draw.randrange(len(TYPES)), draw.choice(TYPES), draw.random() < 0.5, draw.getstate()
            expected = self.view(draw, sources[number]).to(dtype)
            draw.setstate(state)  # the same view again
            if draw.random() < 0.5:
                what, source, found = "to the CPU", shared[number], torch.zeros(expected.shape, dtype=dtype)
            else:
                what, source, found = "from the CPU", sources[number].clone(), torch.zeros(expected.shape, dtype=dtype, device=device)
            draw.setstate(state)
            found.copy_(self.view(draw, source), non_blocking=non_blocking)
            if what == "from the CPU":
                source.zero_()
            self.synchronize()
            self.compare(found.cpu().double(), expected.double(), f"{TYPES[number]} to {dtype}, {what}, non_blocking={non_blocking}")

        self.together(work)

    def test_uploads_beside_download(self):
        """An upload that does not block waits for a download only if that has yet to write the upload's source."""
        self.need_mps()
        memory, source, uploaded = bytearray(4 * 8), torch.zeros(4, device="mps"), torch.zeros(4, device="mps")
        downloaded, other = torch.frombuffer(memory, dtype=torch.float32).split(4)
        downloaded_too = torch.frombuffer(memory, dtype=torch.float32)[:4]  # the same bytes in another storage
        other.fill_(7.0)
        ahead = 0
        for iteration in range(self.settings.iterations):
            for upload, expected in ((other, 7.0), (downloaded_too, iteration + 1.0)):
                source.fill_(iteration + 1.0)
                self.busy()
                downloaded.copy_(source, non_blocking=True)
                event = torch.mps.Event()
                event.record()
                uploaded.copy_(upload, non_blocking=True)
                ahead += upload is other and not event.query()
                self.compare(uploaded.cpu(), torch.full((4,), expected), f"iteration {iteration}")
        self.counts.add(expected=1, operations=1)
        self.counts.facts["uploads ahead of the download"] = ahead
        self.assertGreater(ahead, 0, "uploads of something else that returned before the download was done")

    def test_upload_around_download(self):
        """An upload that does not block takes what a download has yet to write in the middle of its source."""
        self.need_mps()
        for iteration in range(self.settings.iterations):
            host, source = torch.zeros(8), torch.full((4,), iteration + 1.0, device="mps")
            self.busy()
            host[2:6].copy_(source, non_blocking=True)
            uploaded = host.to("mps", non_blocking=True)
            self.compare(uploaded.cpu(), torch.nn.functional.pad(torch.full((4,), iteration + 1.0), (2, 2)), f"iteration {iteration}")
            self.counts.add(expected=1, operations=1)

    def test_dropped_copies(self):
        """Threads drop what a non-blocking copy writes on the CPU, at once."""
        source = torch.full((512,), -1.0, device=self.settings.device)
        self.synchronize()

        def copy():
            destination = torch.empty(512)
            storage = destination.untyped_storage()  # Python's object, which only Python's thread may free
            destination.copy_(source, non_blocking=True)
            del destination, storage

        def work(i):
            for _ in range(self.settings.iterations):
                later = []
                for number in range(20):
                    copy()
                    later.append(torch.full((512,), float(number)))
                self.synchronize()
                self.compare(torch.stack(later), torch.arange(20.0).unsqueeze(1).expand(20, 512), "tensors made after the drop")
                self.done()

        self.together(work)
        for _ in range(200):
            copy()  # some are pending when the process ends
