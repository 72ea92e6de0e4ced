"""Programs after public reports of crashes: what each did with MPS, in our own words, with random weights. Results are compared bit for
bit with those of one request after the other, and these with the CPU's."""

import asyncio
import concurrent.futures
import math
import mmap
import pathlib
import tempfile
import threading

import torch
from harness import ParallelTest, numbers, settle
from torch import nn

WIDTH = 32
WORDS = 64


class CrossEncoder(nn.Module):
    """What a reranker does with a batch of pairs: one score each."""

    def __init__(self, device: str):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH, device=device)
        self.layer = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, batch_first=True, device=device)
        self.score = nn.Linear(WIDTH, 1, device=device)
        settle(self)

    def forward(self, pairs: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.score(self.layer(self.words(pairs)).mean(1))).squeeze(-1)

    def predict(self, pairs: torch.Tensor) -> torch.Tensor:
        """The scores, on the CPU."""
        with torch.no_grad():
            return self(pairs.to(self.words.weight.device)).cpu()


def pairs_of(case: int) -> torch.Tensor:
    """A query's pairs, of a length of its own."""
    return torch.randint(0, WORDS, (4, 6 + case % 3), generator=torch.Generator().manual_seed(case))


class Sampler(nn.Module):
    """What a diffusion model of speech does with a batch of text: some steps from noise, each a forward pass."""

    def __init__(self, device: str):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH, device=device)
        self.mix = nn.Linear(3 * WIDTH, WIDTH, device=device)
        self.layer = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, batch_first=True, device=device)
        settle(self)

    def forward(self, text: torch.Tensor, noise: torch.Tensor, steps: int = 4) -> torch.Tensor:
        device = text.device
        times = torch.linspace(0, 1, steps + 1, device=device)
        frequencies = torch.exp(torch.arange(WIDTH // 2, device=device) * (-math.log(1e4) / (WIDTH // 2)))
        words, x = self.words(text), noise
        for step in range(steps):
            angles = times[step] * frequencies
            moment = torch.cat([angles.sin(), angles.cos()]).expand_as(x)
            x = x + (times[step + 1] - times[step]) * self.layer(self.mix(torch.cat([x, words, moment], -1)))
        return x

    def sample(self, text: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        device = self.words.weight.device
        with torch.no_grad():
            return self(text.to(device), noise.to(device)).cpu()


class Reported(ParallelTest):
    def judge(self, answers: list, alone, on_cpu) -> None:
        """Compares pairs of a case and its answer, computed at once, with those of one after the other and of the CPU."""
        expected = {}
        for case, answer in answers:
            if case not in expected:
                expected[case] = alone(case)
                self.compare(expected[case], on_cpu(case), f"case {case}, alone against the CPU", 1e-4, answer=False)
            self.compare(answer, expected[case], f"case {case}")

    def test_ranges(self):
        """pytorch#197805: arange and linspace of several types, and their sums."""
        types = (torch.float32, torch.float16, torch.bfloat16)

        def compute(case: int, device: str) -> torch.Tensor:
            kind = types[case % len(types)]
            up, between = torch.arange(0, 1024 + case, device=device, dtype=kind), torch.linspace(0.0, 1.0, 512 + case, device=device, dtype=kind)
            total = float(up.float().sum() + between.float().sum())
            return torch.cat([up.float().cpu(), torch.tensor([total])])

        def work(i: int) -> None:
            for case in range(self.settings.iterations):
                answers.append((case, compute(case, self.settings.device)))
                self.done()

        answers = []
        self.together(work)
        self.judge(answers, lambda case: compute(case, self.settings.device), lambda case: compute(case, "cpu"))

    def test_functions_first_used(self):
        """pytorch#167541: each thread's first operator is another function of one tensor."""
        functions = [
            *(torch.tanh, torch.abs, torch.sin, torch.cos, torch.tan, torch.asin, torch.acos, torch.atan),
            *(torch.sqrt, torch.rsqrt, torch.neg, torch.exp2, torch.log10, torch.log2, torch.log),
        ]
        here = torch.linspace(0.1, 0.9, 128)
        x = here.to(self.settings.device)

        def work(i: int) -> None:
            answers.append((i, functions[i % len(functions)](x).cpu()))
            self.done()

        answers = []
        self.together(work, operations=1)
        self.judge(answers, lambda i: functions[i % len(functions)](x).cpu(), lambda i: functions[i % len(functions)](here))

    def test_weights_loaded(self):
        """transformers#48029: a pool of threads takes weights out of a mapped file, in bfloat16, and makes float32 of them on the device."""
        device, size = self.settings.device, 96 * WIDTH
        names = range(25)
        weights = [numbers(name, size).to(torch.bfloat16) for name in names]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "weights")
            path.write_bytes(b"".join(weight.view(torch.uint8).numpy().tobytes() for weight in weights))
            with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as mapped:

                def load(name: int) -> torch.Tensor:
                    part = torch.frombuffer(mapped, dtype=torch.bfloat16, count=size, offset=2 * size * name).view(96, WIDTH)
                    return part.to(device=device, dtype=torch.float32)

                for _ in range(self.settings.iterations):
                    with concurrent.futures.ThreadPoolExecutor(self.settings.threads) as pool:
                        loaded = list(pool.map(load, names))
                    self.counts.add(expected=len(names))
                    x = numbers(99, 1, WIDTH)
                    for name, weight in zip(names, loaded, strict=True):
                        expected = weights[name].float().view(96, WIDTH)
                        self.compare(weight.cpu(), expected, f"weight {name}")
                        self.compare(nn.functional.linear(x.to(device), weight).cpu(), nn.functional.linear(x, expected), f"a forward pass with it, {name}", 1e-4, answer=False)
                        self.done()
                    del loaded, weight

    def test_reranker(self):
        """open-webui#29722, khora#989: queries at once, each of which calls the one model by asyncio.to_thread."""
        device, queries = self.settings.device, self.settings.threads
        model, on_cpu = CrossEncoder(device), CrossEncoder("cpu")

        async def ask() -> None:
            asyncio.get_running_loop().set_default_executor(concurrent.futures.ThreadPoolExecutor(queries))
            for turn in range(self.settings.iterations):
                cases = [turn + query for query in range(queries)]
                self.counts.add(expected=queries)
                for case, scores in zip(cases, await asyncio.gather(*[asyncio.to_thread(model.predict, pairs_of(case)) for case in cases]), strict=True):
                    answers.append((case, scores))
                    self.done()

        answers = []
        asyncio.run(ask())
        self.judge(answers, lambda case: model.predict(pairs_of(case)), lambda case: on_cpu.predict(pairs_of(case)))

    def test_sampler_batches(self):
        """F5-TTS, in pytorch#197805: a pool of threads has a whole sampling for each batch of a text, each of another length."""
        device, batches = self.settings.device, 2 * self.settings.threads
        model, on_cpu = Sampler(device), Sampler("cpu")

        def inputs(case: int) -> tuple[torch.Tensor, torch.Tensor]:
            length = 10 + case
            return torch.randint(0, WORDS, (1, length), generator=torch.Generator().manual_seed(case)), numbers(case, 1, length, WIDTH)

        def sample(case: int) -> tuple[int, torch.Tensor]:
            found = case, model.sample(*inputs(case))
            self.done()
            return found

        for _ in range(self.settings.iterations):
            self.counts.add(expected=batches)
            with concurrent.futures.ThreadPoolExecutor(self.settings.threads) as pool:
                self.judge(list(pool.map(sample, range(batches))), lambda case: model.sample(*inputs(case)), lambda case: on_cpu.sample(*inputs(case)))

    def test_synchronize_others(self):
        """CTranslate2#2077: threads enqueue work and say so, and then the main thread waits for the device: all of it must be done."""
        self.need_mps()
        meet = threading.Barrier(self.settings.threads)

        def enqueue(value: float) -> tuple[torch.mps.event.Event, torch.Tensor]:
            self.busy()
            tensor, event = torch.full((64,), value, device="mps"), torch.mps.event.Event()
            event.record()
            self.done()
            meet.wait()  # so that each thread of the pool has one
            return event, tensor

        with concurrent.futures.ThreadPoolExecutor(self.settings.threads) as pool:
            for turn in range(self.settings.iterations):
                values = [float(turn + i) for i in range(self.settings.threads)]
                self.counts.add(expected=len(values))
                enqueued = list(pool.map(enqueue, values))
                self.synchronize()
                for i, (event, _) in enumerate(enqueued):
                    self.compare(torch.tensor(float(event.query())), torch.tensor(1.0), f"turn {turn}, thread {i}: done after synchronize", answer=False)
                for i, (_, tensor) in enumerate(enqueued):
                    self.compare(tensor.cpu(), torch.full((64,), values[i]), f"turn {turn}, thread {i}")
