"""Whatever a thread waits for inside PyTorch, it waits without the interpreter lock.

Another stream's queue is held, and a thread is stuck in an operator that writes a tensor on that stream. A third thread does
one thing that may wait for one of them, while the main thread counts, in pure Python, and lets the queue go when it has counted
enough. Time decides nothing: if the third thread waits with the interpreter lock, nobody counts any more, and all hang.
"""

import copy
import threading
import time

import torch
from harness import ParallelTest

COUNTED = 20


class StalledPeer(ParallelTest):
    def setUp(self):
        super().setUp()
        self.need_mps()
        self.extension = self.need_extension()
        self.need(torch.mps, "Stream", "stream")
        self.base, self.written = torch.arange(64.0).to("mps"), torch.zeros(4, device="mps")
        self.number, self.other = [torch.zeros((), dtype=torch.int64, device="mps") for _ in range(2)]
        self.host = torch.zeros((), dtype=torch.int64)
        self.peer, self.state = torch.mps.Stream(), torch.mps.get_rng_state()

    def drive(self, calls, must_wait):
        """Makes each of the calls against a stalled peer. Some must have waited, or nothing was tried."""
        waited = []
        for step, (name, call) in enumerate(calls.items()):
            if self.against_stalled_peer(name, call):
                waited.append(name)
            self.compare(self.number.cpu(), torch.tensor(step + 1), f"after {name}")
            self.counts.add(expected=1)
            self.done()
        self.counts.facts["waited"] = len(waited)
        self.assertLessEqual(set(must_wait), set(waited), f"these waited for the stalled peer: {waited}")

    def against_stalled_peer(self, name, call):
        """Whether the call waited until the peer was released."""
        begun, ended = threading.Event(), threading.Event()
        kept = []  # a copy that does not block writes to its host memory after it returned

        def hold():
            with torch.mps.stream(self.peer):
                self.written.add_(1)  # not committed, so that who waits for the device has to come to this queue
                self.extension.hold_queue()

        def write():
            with torch.mps.stream(self.peer):
                self.number.add_(1)

        def drive():
            begun.set()
            try:
                kept.append(call())
            except BaseException as error:  # noqa: BLE001 whatever ends a thread is a result
                self.counts.error(RuntimeError(f"{name}: {error}"))
            ended.set()

        threads = [threading.Thread(target=hold)]
        threads[0].start()
        self.extension.wait_until_held()
        for target in (write, drive):
            threads.append(threading.Thread(target=target, name=name))
            threads[-1].start()
            time.sleep(0.01)  # so that the writer is in its operator before the other thread begins; a hope, and no order
        begun.wait()
        for _ in range(COUNTED):
            time.sleep(0.001)  # gives the interpreter lock up, and needs it again
        waited = not ended.is_set()
        self.extension.let_go()
        for thread in threads:
            thread.join()
        torch.mps.synchronize()
        return waited

    def test_operators_beside_stalled_peer(self):
        """Indexing, numbers, copies, and making a tensor. Lists and masks as indices need kernel_index_offsets, which host builds lack."""
        base, number, other, host = self.base, self.number, self.other, self.host

        def assign(place, value):
            base[place] = value

        self.drive(
            {
                "index by the tensor": lambda: base[number],
                "slice by the tensor": lambda: base[number:],
                "assign at the tensor": lambda: assign(number, 5.0),
                "assign the tensor": lambda: assign(0, number),
                "assign a number": lambda: assign(0, 5.0),
                "item": number.item,
                "int": lambda: int(number),
                "bool": lambda: bool(number),
                "float": lambda: float(number),
                "tolist": number.tolist,
                "repr": lambda: repr(number),
                "equal": lambda: torch.equal(number, other),
                "cpu": number.cpu,
                "to, non_blocking": lambda: number.to("cpu", non_blocking=True),
                "copy to the host": lambda: torch.empty_like(host).copy_(number),
                "copy to the tensor": lambda: other.copy_(number),
                "copy between kinds": lambda: number.to(torch.float32),
                "deepcopy": lambda: copy.deepcopy(number),
                "numpy of a copy": lambda: number.cpu().numpy(),
                "tensor of a number": lambda: torch.tensor(1.0, device="mps"),
                "tensor of a list": lambda: torch.tensor([1.0, 2.0], device="mps"),
                "as_tensor": lambda: torch.as_tensor(host, device="mps"),
                "add": lambda: number + 1,
                "nonzero": lambda: torch.nonzero(number),
                "random numbers": lambda: torch.rand(4, device="mps"),
                "free": lambda: [(number + 1).add_(1) for _ in range(3)].clear(),
            },
            must_wait=["item", "cpu"],
        )

    def test_functions_beside_stalled_peer(self):
        """Every function of torch.mps, and the methods of its streams and events."""
        mps, peer, event = torch.mps, self.peer, torch.mps.Event(enable_timing=True)
        compile_shader = self.need_shader_compiler()
        event.record()

        def events():
            begin, end = mps.Event(enable_timing=True), mps.Event(enable_timing=True)
            begin.record()
            begin.wait()
            end.record()
            end.query()
            end.synchronize()
            begin.elapsed_time(end)

        def profile():
            mps.profiler.start()
            mps.profiler.stop()

        def on_stream():
            with mps.StreamContext(mps.Stream()):
                self.base + 1

        def share_queue():
            with mps.external_work():
                pass

        calls = {
            "compile_shader": lambda: compile_shader("kernel void exp_kernel() {}"),
            "device_count": mps.device_count,
            "get_rng_state": mps.get_rng_state,
            "manual_seed": lambda: mps.manual_seed(1),
            "seed": mps.seed,
            "set_rng_state": lambda: mps.set_rng_state(self.state),
            "synchronize": mps.synchronize,
            "empty_cache": mps.empty_cache,
            "graph_cache_stats": mps.graph_cache_stats,
            "set_per_process_memory_fraction": lambda: mps.set_per_process_memory_fraction(1.5),
            "current_allocated_memory": mps.current_allocated_memory,
            "driver_allocated_memory": mps.driver_allocated_memory,
            "Event": events,
            "profiler": profile,
            "recommended_max_memory": mps.recommended_max_memory,
            "is_available": lambda: mps.is_available() if hasattr(mps, "is_available") else None,
            "Stream": mps.Stream,
            "StreamContext": on_stream,
            "current_device": mps.current_device,
            "current_stream": mps.current_stream,
            "default_stream": lambda: mps.default_stream().synchronize(),
            "external_work": share_queue,
            "is_initialized": mps.is_initialized,
            "reset_stream": mps.reset_stream,
            "release_stream_slot": lambda: (self.base + 1, mps.release_stream_slot()),
            "set_device": lambda: mps.set_device(0),
            "set_stream": lambda: (mps.set_stream(peer), self.base + 1),
            "stream": lambda: mps.stream(peer).__enter__(),
            "stream_pool_stats": mps.stream_pool_stats,
        }
        self.assertEqual(set(mps.__all__) - set(calls), set(), "a function of torch.mps is not driven here")
        calls |= {
            "Stream.synchronize": peer.synchronize,
            "Stream.query": peer.query,
            "Stream.record_event": peer.record_event,
            "Stream.wait_event": lambda: peer.wait_event(event),
            "Stream.wait_stream": lambda: mps.current_stream().wait_stream(peer),
            "Event.query": event.query,
            "Event.synchronize": event.synchronize,
            "Event.__del__": lambda: mps.Event().record(peer),
        }
        self.drive(calls, must_wait=["synchronize", "Stream.synchronize"])
