"""The parts of torch's front end that take a device, by threads on mps: DLPack, torch.load, generators, storages, shaders,
torch.accelerator.

The numbers are small whole ones, so that every result is exact.
"""

import io
import queue
import threading
import warnings

import torch
from harness import ParallelTest

SIZE = 4096

# Kernels that take tensors and numbers, over grids of one, two and three sizes.
SHADERS = """
#include <metal_stdlib>
using namespace metal;
kernel void line(device float* out, constant float* in, constant float& factor, constant long& shift, uint i [[thread_position_in_grid]]) {
  out[i] = in[i] * factor + shift;
}
kernel void plane(device float* out, constant float* in, constant int& width, uint2 at [[thread_position_in_grid]]) {
  out[at.y * width + at.x] = in[at.y * width + at.x] + at.y;
}
kernel void block(device float* out, constant float* in, uint3 at [[thread_position_in_grid]]) {
  const uint i = (at.z * 16 + at.y) * 16 + at.x;
  out[i] = in[i] + at.z;
}
kernel void gaps(device long* out, constant ulong* addresses, uint i [[thread_position_in_grid]]) {
  out[i] = addresses[i + 1] - addresses[0];
}
"""


def saved(value) -> io.BytesIO:
    """A file in memory with what torch.save writes."""
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


def filled(value: float) -> torch.Tensor:
    """What a tensor full of a number must be on the CPU."""
    return torch.full((SIZE,), float(value))


def words(storage: torch.UntypedStorage) -> torch.Tensor:
    """A storage's bytes on the CPU, as numbers of 32 bits."""
    return torch.empty(0).set_(storage.cpu())


class Ring:
    """Each thread gives to the one after it, and takes from the one before."""

    def __init__(self, threads: int):
        self._queues: list[queue.SimpleQueue] = [queue.SimpleQueue() for _ in range(threads)]

    def give(self, i: int, value: object):
        self._queues[(i + 1) % len(self._queues)].put(value)

    def take(self, i: int):
        return self._queues[i].get(timeout=60)


class FrontEnd(ParallelTest):
    def test_dlpack(self):
        """A ring: each thread takes the tensor of the one before it out of a DLPack capsule, and writes into it. Tensors of the CPU and
        NumPy's arrays come to mps and back by DLPack, too."""
        self.need_ability("DLPack on mps", lambda: torch.from_dlpack(torch.zeros(1, device="mps")))
        ring, back = Ring(self.settings.threads), [queue.SimpleQueue() for _ in range(self.settings.threads)]

        def work(i: int):
            for iteration in range(self.settings.iterations):
                value, what = float(100 * i + iteration), f"thread {i}, iteration {iteration}"
                self.busy()
                made = torch.full((SIZE,), value, device="mps") + 1
                ring.give(i, (made.__dlpack__(), made.data_ptr(), value + 1, back[i]))
                if iteration % 2:
                    del made  # only the capsule holds the memory now
                capsule, address, before, answer = ring.take(i)
                taken = torch.utils.dlpack.from_dlpack(capsule)
                self.assertEqual(taken.data_ptr(), address, "a copy instead of the same memory")
                taken += 1
                answer.put(None)
                self.compare(taken.cpu(), filled(before + 1), f"{what}: taken from a capsule")
                back[i].get(timeout=60)
                if iteration % 2 == 0:
                    self.compare(made.cpu(), filled(value + 2), f"{what}: written through a capsule")
                array = torch.from_dlpack(filled(value).numpy())
                there = torch.from_dlpack(array, device="mps", copy=True)
                self.assertEqual(there.device.type, "mps")
                self.compare(torch.from_dlpack(there * 2, device="cpu", copy=True), filled(2 * value), f"{what}: NumPy's array to mps and back")
                self.done()

        self.together(work)

    def test_load(self):
        """All threads load one file to mps at once, and each what it has saved itself from tensors on mps."""
        self.need_ability('torch.load(map_location="mps")', lambda: torch.load(saved(torch.zeros(1)), map_location="mps"))
        whole = torch.arange(float(SIZE))
        bytes_of_all = saved({"whole": whole, "part": whole[16:32], "half": whole[:64].half()}).getvalue()

        def work(i: int):
            for iteration in range(self.settings.iterations):
                what = f"thread {i}, iteration {iteration}"
                loaded = torch.load(io.BytesIO(bytes_of_all), map_location="mps")
                self.assertEqual({tensor.device.type for tensor in loaded.values()}, {"mps"})
                loaded["whole"] += i  # which the view of it, in the same storage, shows
                self.compare(loaded["whole"].cpu(), whole + i, f"{what}: a tensor")
                self.compare(loaded["part"].cpu(), whole[16:32] + i, f"{what}: a view of it")
                self.compare(loaded["half"].cpu(), whole[:64].half(), f"{what}: halves")
                self.busy()
                file = saved(torch.full((SIZE,), float(iteration), device="mps") + i)
                for location in ("mps", torch.device("mps:0"), None, "cpu"):
                    file.seek(0)
                    again = torch.load(file, map_location=location)
                    self.assertEqual(again.device.type, "cpu" if location == "cpu" else "mps")
                    self.compare(again.cpu(), filled(iteration + i), f"{what}: saved from mps, loaded to {location}")
                self.done()

        self.together(work)

    def draws(self, generator: torch.Generator) -> torch.Tensor:
        """Some numbers of each kind, in a row."""
        settings = {"generator": generator, "device": "mps"}
        kinds = [torch.rand(64, **settings), torch.randn(64, **settings), torch.randint(1000, (64,), **settings).float(), torch.randperm(64, **settings).float()]
        kinds.append(torch.empty(64, device="mps").bernoulli_(0.5, generator=generator))
        return torch.cat([kind.cpu() for kind in kinds])

    def test_generators(self):
        """Each thread has a generator of its own, whose numbers and states are those that it has alone."""
        self.need_ability('torch.Generator(device="mps")', lambda: torch.Generator(device="mps"))
        found = [[] for _ in range(self.settings.threads)]

        def work(i: int):
            generator = torch.Generator(device="mps").manual_seed(i)
            for iteration in range(self.settings.iterations):
                state = generator.get_state()
                first = self.draws(generator)
                found[i].append(first)
                after = generator.get_state()
                generator.set_state(state)
                self.compare(self.draws(generator), first, f"thread {i}, iteration {iteration}: after set_state")
                self.compare(generator.get_state(), after, f"thread {i}, iteration {iteration}: the state afterwards", answer=False)
                self.done()

        self.together(work)
        for i, sequence in enumerate(found):
            alone = torch.Generator(device="mps").manual_seed(i)
            for iteration, drawn in enumerate(sequence):
                self.compare(drawn, self.draws(alone), f"thread {i}, iteration {iteration}: alone")
        self.assertEqual(len({tuple(sequence[0].tolist()) for sequence in found}), self.settings.threads, "two seeds gave the same numbers")

    def test_shared_generator(self):
        """All threads draw from one generator: together they get the numbers that one thread gets, each once."""
        self.need_ability('torch.Generator(device="mps")', lambda: torch.Generator(device="mps"))
        shared, found = torch.Generator(device="mps").manual_seed(5), queue.SimpleQueue()

        def work(_: int):
            for _ in range(self.settings.iterations):
                for _ in range(10):
                    found.put(torch.rand(64, generator=shared, device="mps"))
                self.done()

        def in_order(rows: list[torch.Tensor]) -> torch.Tensor:
            return torch.tensor(sorted(row.tolist() for row in rows))

        self.together(work)
        alone = torch.Generator(device="mps").manual_seed(5)
        rows = [found.get().cpu() for _ in range(found.qsize())]
        expected = [torch.rand(64, generator=alone, device="mps").cpu() for _ in rows]
        self.compare(in_order(rows), in_order(expected), "all numbers in order")
        self.compare(shared.get_state(), alone.get_state(), "the state afterwards")
        self.counts.add(answers=self.settings.threads * self.settings.iterations)  # which are rows of the one comparison

    def test_storages(self):
        """Storages on mps are made, copied, cloned and pickled by each thread, go to the next one, and one is written by all at once."""
        self.need_ability('torch.UntypedStorage(device="mps")', lambda: torch.UntypedStorage(4, device="mps"))
        threads, ring = self.settings.threads, Ring(self.settings.threads)
        shared = torch.zeros(threads * SIZE, device="mps").untyped_storage()

        def work(i: int):
            part = torch.empty(0, device="mps").set_(shared, i * SIZE, (SIZE,))
            for iteration in range(self.settings.iterations):
                value, what = float(100 * i + iteration), f"thread {i}, iteration {iteration}"
                part += i + 1
                made = torch.UntypedStorage(4 * SIZE, device="mps").copy_(filled(value).untyped_storage())
                self.compare(words(made), filled(value), f"{what}: from the CPU")
                self.busy()
                changed = torch.empty(0, device="mps").set_(made)
                changed += 1
                ring.give(i, (changed.untyped_storage(), value + 1))
                storage, expected = ring.take(i)
                copies = {"clone": storage.clone(), "copy_": torch.UntypedStorage(4 * SIZE, device="mps").copy_(storage), "to the CPU": torch.UntypedStorage(4 * SIZE).copy_(storage)}
                copies["pickled"] = torch.load(saved(storage), weights_only=False)._untyped_storage  # torch.load gives it a type
                for name, copy in copies.items():
                    self.assertEqual(copy.device.type, "cpu" if name == "to the CPU" else "mps")
                    self.assertNotEqual(copy.data_ptr(), storage.data_ptr(), f"{name} is no copy")
                    self.compare(words(copy), filled(expected), f"{what}: {name}")
                with self.assertRaisesRegex(RuntimeError, "unexpected device type mps"):  # PyTorch has no resize_ of it
                    storage.resize_(8 * SIZE)
                self.assertEqual(storage.nbytes(), 4 * SIZE)
                self.done()

        self.together(work)
        expected = torch.arange(1.0, threads + 1).repeat_interleave(SIZE) * self.settings.iterations
        self.compare(words(shared), expected, "the storage that all wrote", answer=False)

    def test_shaders(self):
        """Each thread compiles shaders, and runs them and those of another thread on tensors that go round a ring."""
        self.need_mps()
        compile_shader = self.need_shader_compiler()
        ring, shared = Ring(self.settings.threads), compile_shader(SHADERS)
        tensor = torch.arange(float(SIZE))
        takes_lists = hasattr(torch.mps, "compile_shader")  # PyTorch 2.6, which calls it _compile_shader, takes none of tensors
        self.assertEqual(sorted(dir(shared)), ["block", "gaps", "line", "plane"])

        def work(i: int):
            own = compile_shader(SHADERS)
            for iteration in range(self.settings.iterations):
                library, what = (own, shared)[iteration % 2], f"thread {i}, iteration {iteration}"
                x, out = tensor.to("mps"), torch.empty(SIZE, device="mps")
                self.busy()
                library.line(out, x, float(i + 1), iteration)
                ring.give(i, (out, i + 1))
                taken, factor = ring.take(i)
                expected = tensor * factor + iteration
                self.compare(taken.cpu(), expected, f"{what}: a tensor and two numbers")
                planes, blocks = torch.empty(SIZE, device="mps"), torch.empty(SIZE, device="mps")
                library.plane(planes, taken, 64, threads=(64, 64), group_size=(8, 4), arg_casts="int32")
                library.block(blocks, planes, threads=(16, 16, 16))
                rows = torch.arange(64.0).repeat_interleave(64)
                self.compare(planes.cpu(), expected + rows, f"{what}: a plane")
                self.compare(blocks.cpu(), expected + rows + torch.arange(16.0).repeat_interleave(256), f"{what}: a block")
                if takes_lists:
                    gaps = torch.empty(2, dtype=torch.int64, device="mps")
                    library.gaps(gaps, [taken, taken[8:], taken[100:]])
                    self.compare(gaps.cpu(), torch.tensor([32, 400]), f"{what}: a list of tensors")
                self.done()

        self.together(work)

    def test_accelerator(self):
        """Each thread uses mps through torch.accelerator, torch.Stream and torch.Event alone, as a program for any device does."""
        self.need_mps()
        accelerator = torch.accelerator
        self.need(accelerator, "device_index", "memory_allocated")
        switched = threading.Barrier(self.settings.threads)

        def check_memory():
            """Functions of memory say that the allocator of mps has none, or give what holds one tensor at least."""
            for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"):
                try:
                    self.assertGreaterEqual(getattr(accelerator, name)(), 4 * SIZE, name)
                except RuntimeError as error:
                    self.assertIn("Allocator for mps is not a DeviceAllocator", str(error), name)

        def work(i: int):
            self.assertEqual((str(accelerator.current_accelerator()), accelerator.device_count(), accelerator.is_available()), ("mps", 1, True))
            for iteration in range(self.settings.iterations):
                what = f"thread {i}, iteration {iteration}"
                x, stream, before = filled(100 * i + iteration), torch.Stream(device="mps"), accelerator.current_stream()
                with accelerator.device_index(0):
                    accelerator.set_device_index(0)
                    self.assertEqual(accelerator.current_device_index(), 0)
                    self.busy()
                    y = x.to("mps") * 2
                self.compare(y.cpu(), x * 2, f"{what}: within device_index")
                start, end = torch.Event(device="mps", enable_timing=True), torch.Event(device="mps", enable_timing=True)
                start.record()
                stream.wait_event(start)
                accelerator.set_stream(stream)
                switched.wait()  # all threads have switched
                self.assertEqual(accelerator.current_stream(), stream)
                z = y + 1
                end.record(stream)
                accelerator.set_stream(before)
                self.assertEqual(accelerator.current_stream(), before)
                end.synchronize()
                self.assertGreaterEqual(start.elapsed_time(end), 0)
                self.compare(z.cpu(), x * 2 + 1, f"{what}: on a stream of its own")
                with stream:
                    z = z + 1
                accelerator.synchronize()
                self.compare(z.cpu(), x * 2 + 2, f"{what}: within the stream")
                check_memory()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", FutureWarning)  # the older name
                    self.assertEqual(accelerator.current_device_idx(), 0)
                self.done()

        self.together(work)

    def test_shader_changed(self):
        """A shader that is compiled, dropped and compiled again with other source runs the new source: its library may have the old address."""
        self.need_mps()
        compile_shader = self.need_shader_compiler()
        source = "kernel void fill(device float* out, uint i [[thread_position_in_grid]]) {{ out[i] = {}; }}"
        for iteration in range(self.settings.iterations):
            out, number = torch.zeros(8, device="mps"), float(iteration % 2 + 1)  # two sources in turn: the compiler has both soon
            library = compile_shader(source.format(number))
            library.fill(out)
            self.compare(out.cpu(), torch.full((8,), number), f"iteration {iteration}")
            del library
            self.counts.add(expected=1, operations=1)
