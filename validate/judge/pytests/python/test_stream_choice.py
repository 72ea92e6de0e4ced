"""Whose choice a thread's stream is, and what is true of a thread that has chosen none: what programs rely on where there is
one stream. Each program is right on stock, where no other stream can be late."""

import ctypes
import itertools
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import torch
from harness import ParallelTest, exit_code

SIZE = 1 << 16


class StreamChoice(ParallelTest):
    def setUp(self):
        super().setUp()
        self.need_mps()
        self.addCleanup(self.synchronize)

    def streams_of_accelerator(self) -> bool:
        """Whether torch.accelerator has functions for MPS's streams: Debian's 2.6.0, which is built without MPS, has none."""
        try:
            torch.accelerator.current_stream()
        except (AttributeError, RuntimeError):
            return False
        return True

    def late_copies(self, number: float) -> list[torch.Tensor]:
        """Copies to the CPU of shape (SIZE,) that other threads' streams have yet to make, and which nobody has waited for."""
        found: list[torch.Tensor] = []

        def copy(_):
            source = torch.full((SIZE,), number, device="mps")
            self.busy()
            target = torch.zeros(SIZE)
            target.copy_(source.add_(1), non_blocking=True)
            found.append(target)

        self.together(copy, operations=0)
        return found

    def all_written(self, copies: list[torch.Tensor], number: float, what: str) -> None:
        for copy in copies:
            self.compare(copy.clone(), torch.full((SIZE,), number + 1), what)
            self.counts.add(expected=1, operations=1)

    def in_backward(self, act) -> None:
        """Calls act() in a hook of a tensor, in one of a saved tensor, and in a custom Function, all in the backward pass."""

        class Custom(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, gradient):
                act("a custom Function")
                return gradient

        def unpack(packed):
            act("a saved tensor's hook")
            return packed

        x = torch.ones(8, device="mps", requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
            y = (Custom.apply(x) * 2).exp()
        y.register_hook(lambda gradient: act("a tensor's hook"))
        y.sum().backward()

    def test_hooks(self):
        """item() in the backward pass comes after copies of other streams that do not block, as it does in the forward pass."""
        scalar = torch.ones(1, device="mps")

        def act(where: str) -> None:
            copies = self.late_copies(3.0)
            scalar.item()
            self.all_written(copies, 3.0, where)

        for _ in range(self.settings.iterations):
            self.in_backward(act)

    def test_hook_events(self):
        """An event that is recorded in the backward pass comes after the work of all streams."""

        def act(where: str) -> None:
            for kind in (torch.mps.Event, lambda: torch.Event("mps")):
                copies = self.late_copies(5.0)
                event = kind()
                event.record()
                event.synchronize()
                self.all_written(copies, 5.0, f"{where}, {type(event)}")

        for _ in range(self.settings.iterations):
            self.in_backward(act)

    def test_same_stream(self):
        """To set the current stream, or the thread's own, is no choice, on the main thread and on others; nor is one that was
        taken back."""
        self.need(torch.mps, "Stream")
        scalar = torch.ones(1, device="mps")

        def own_again() -> None:
            other = torch.mps.Stream()
            torch.mps.set_stream(other)
            torch.mps.reset_stream()

        def by_context() -> None:
            with torch.mps.stream(torch.mps.Stream()):
                pass

        calls = [lambda: torch.mps.set_stream(torch.mps.current_stream()), by_context]
        if hasattr(torch.mps, "reset_stream"):
            calls.append(own_again)
        if self.streams_of_accelerator():
            calls.append(lambda: torch.accelerator.set_stream(torch.accelerator.current_stream()))
        caller = torch.mps.current_stream()
        calls.append(lambda: torch.mps.set_stream(caller))  # as frameworks carry it over to their threads

        def work(_=None) -> None:
            for number, call in enumerate(calls):
                call()
                copies = self.late_copies(7.0)
                scalar.item()
                self.all_written(copies, 7.0, f"call {number}")

        for _ in range(self.settings.iterations):
            work()
            self.together(work, operations=0, threads=1)

    def test_captured_stream(self):
        """An event that a thread records on the stream which another thread had covers what its own thread has done."""
        self.need(torch.mps, "current_stream")
        captured = torch.mps.current_stream()

        def copied(number: float, more: int) -> torch.Tensor:
            """What the calling thread copies to the CPU, of shape (SIZE,), after the event's wait."""
            source = torch.full((SIZE,), number, device="mps")
            self.busy()
            target = torch.zeros(SIZE)
            target.copy_(source.add_(more), non_blocking=True)
            event = torch.Event(device="mps")
            event.record(captured)
            event.synchronize()
            return target

        def work(i: int) -> None:
            for iteration in range(self.settings.iterations):
                self.compare(copied(float(iteration), i).clone(), torch.full((SIZE,), float(iteration + i)), f"thread {i}, iteration {iteration}")
                self.done()
                self.in_backward(lambda where, i=i: self.all_written([copied(8.0, 1)], 8.0, f"thread {i}, {where}"))

        self.together(work)

    def test_earlier_events(self):
        """After a wait of one thread, events that other threads have recorded before are complete, as on one queue."""
        tensor = torch.ones(SIZE, device="mps")

        def record(i: int) -> None:
            self.busy()
            events[i].record()

        for iteration in range(self.settings.iterations):
            for kind in (torch.mps.Event, lambda: torch.Event("mps")):
                events = [kind() for _ in range(self.settings.threads)]
                self.together(record, operations=0)
                value = tensor.sum().item()
                complete = [event.query() for event in events]
                self.assertEqual(complete, [True] * len(events), f"whether events are complete, iteration {iteration}, {type(events[0])}")
                self.compare(torch.tensor(value), torch.tensor(float(SIZE)), f"iteration {iteration}")
                self.counts.add(expected=1, operations=1)

    def test_current_stream(self):
        """All functions give a thread the same current stream, before and after its first operator; work that is waited for
        by an event on that stream is done."""
        self.need(torch.mps, "current_stream")
        ask = [torch.accelerator.current_stream] if self.streams_of_accelerator() else []
        ask.append(torch.mps.current_stream)

        def work(i: int) -> None:
            for iteration in range(self.settings.iterations):
                first = ask[0]()
                self.assertEqual(first.stream_id, torch.mps.current_stream().stream_id)
                tensor = torch.zeros(SIZE, device="mps")
                self.busy()
                target = torch.zeros(SIZE)
                target.copy_(tensor.add_(iteration + 1), non_blocking=True)
                event = torch.Event("mps")
                event.record(first)
                event.synchronize()
                self.compare(target.clone(), torch.full((SIZE,), iteration + 1.0), f"thread {i}, iteration {iteration}")
                for now in ask:
                    self.assertEqual(first.stream_id, now().stream_id)
                torch.mps.release_stream_slot()
                self.done()

        self.together(work)

    def test_asks_again(self):
        """A thread that found no stream gets the first that comes free, unless its program has asked for its stream."""
        self.need(torch.mps, "current_stream", "stream_pool_stats")
        if os.environ.get("PYTORCH_MPS_STREAM_POOL_SIZE") != "2":
            self.skipTest("needs PYTORCH_MPS_STREAM_POOL_SIZE=2")
        ones = torch.ones(SIZE, device="mps")
        self.synchronize()

        def live() -> int:
            return torch.mps.stream_pool_stats()["live"]

        for iteration in range(self.settings.iterations):
            target = torch.zeros(SIZE)
            found: dict[str, torch.Tensor] = {}

            def share() -> None:
                self.busy()
                found["sum"] = ones + 1
                target.copy_(found["sum"], non_blocking=True)

            def move() -> None:
                found["sum"] = found["sum"] + 1
                stream = torch.mps.current_stream()
                self.assertEqual(stream.stream_id, 1, "the stream of the thread that asked again")
                stream.synchronize()
                self.compare(target, torch.full((SIZE,), 2.0), f"what the thread did before it had its stream, iteration {iteration}")
                self.compare(found["sum"].cpu(), torch.full((SIZE,), 3.0), f"and after, iteration {iteration}")

            def named() -> None:
                self.assertEqual(torch.mps.current_stream().stream_id, 0, "the stream of a thread that found none")
                found["named"] = ones + 4

            def still() -> None:
                self.compare((found["named"] + 1).cpu(), torch.full((SIZE,), 6.0), f"the thread that keeps its stream, iteration {iteration}")
                self.assertEqual(torch.mps.current_stream().stream_id, 0, "the stream that the program was given")

            def has_one() -> None:
                found["first"] = ones + 0

            first, second, third = (ThreadPoolExecutor(1) for _ in range(3))
            with first:
                first.submit(has_one).result()
                second.submit(share).result()
                self.assertEqual(live(), 1, "leases with one thread beside it")
            self.assertEqual(live(), 0, "leases before the thread asks")
            with second:
                second.submit(move).result()
                self.assertEqual(live(), 1, "leases when it has asked")
                third.submit(named).result()
            with third:
                third.submit(still).result()
            self.assertEqual(live(), 0, "leases at the end")
            self.counts.add(expected=1, operations=1)

    def test_interrupted_stream(self):
        """Where a signal handler raises, as Ctrl-C does, as a stream context begins, runs and ends, no stream stays selected."""
        self.need(torch.mps, "Stream", "stream")
        stream, own = torch.mps.Stream(), torch.mps.current_stream()
        self.addCleanup(signal.signal, signal.SIGALRM, signal.getsignal(signal.SIGALRM))
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        interrupted = 0
        for i in range(self.settings.iterations):
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-4 + 1e-6 * (i % 97))
                while True:
                    with torch.mps.stream(stream):
                        pass
            except KeyboardInterrupt:
                interrupted += 1
            self.assertEqual(torch.mps.current_stream().stream_id, own.stream_id, f"after interruption {i}")
            self.done()
        self.compare(torch.ones(4, device="mps").add(1).cpu(), torch.full((4,), 2.0), "after all")
        self.counts.add(expected=self.settings.iterations, answers=self.settings.iterations)
        self.assertEqual(interrupted, self.settings.iterations)

    def test_unknown_streams(self):
        """A stream that does not exist is an error, and so is any in a forked child; neither ends the process."""
        self.need(torch.mps, "Stream")
        device_type = torch.mps.current_stream().device_type
        unknown = [torch.Stream(stream_id=i, device_index=0, device_type=device_type) for i in (99999, 500)]  # 500: beyond the pool's size
        tensor = torch.ones(4, device="mps")
        selects = [torch.mps.set_stream]
        if self.streams_of_accelerator():
            selects.append(torch.accelerator.set_stream)
        for _ in range(self.settings.iterations):
            for select, stream in itertools.product(selects, unknown):
                with self.assertRaisesRegex(RuntimeError, f"no MPS stream with the ID {stream.stream_id}"):
                    select(stream)
                    tensor.add(1)  # 2.6.0 cannot raise before, in the second one
            self.compare(tensor.add(1).cpu(), torch.full((4,), 2.0), "after the errors")
            self.counts.add(expected=1, operations=1)
        self.synchronize()
        child = os.fork()
        if child == 0:
            try:
                selects[-1](torch.mps.default_stream())
                torch.ones(1, device="mps")
            except RuntimeError as error:
                os._exit(0 if "spawn" in str(error) else 3)
            os._exit(4)
        self.child_ends(child)

    def child_ends(self, child: int) -> None:
        code = exit_code(child, 20)
        self.assertIsNotNone(code, "the forked child does not end")
        self.assertEqual(code, 0, "exit status of the forked child")

    def test_forked_inside(self):
        """A kernel in Python forks inside of an operator, while another thread uses the operator's tensor: the child gets out of it."""
        library = torch.library.Library("aten", "IMPL")  # noqa: TOR901 it ends with the process
        nothing, result = torch.ones(0, 64, device="mps"), torch.zeros(64, device="mps")
        parent, children, over = os.getpid(), [], threading.Event()

        def kernel(tensor: torch.Tensor) -> torch.Tensor:
            if tensor.numel():
                children.append(os.fork())
            return tensor

        def use() -> None:
            while not over.is_set():
                result.add_(1)

        library.impl("zero_", kernel, "MPS")  # which the sum of nothing calls
        thread = threading.Thread(target=use)
        thread.start()
        try:
            for _ in range(self.settings.iterations):
                for _ in range(20):
                    try:
                        torch.sum(nothing, 0, out=result)
                    except RuntimeError:
                        self.assertNotEqual(os.getpid(), parent, "the parent got an error")
                    finally:
                        if os.getpid() != parent:
                            os._exit(0)
                    self.child_ends(children.pop())
                self.counts.add(expected=1, operations=1)
        finally:
            over.set()
            thread.join()
        result.fill_(2)
        self.compare(result.cpu(), torch.full((64,), 2.0), "after the forks")
        self.counts.add(answers=self.settings.iterations - 1)

    def test_forked_exit(self):
        """A forked child ends by C's exit(), while the parent profiles work that the GPU has yet to do: it ends at once."""
        tensor = torch.ones(8, device="mps")
        torch.mps.profiler.start("interval")
        self.addCleanup(torch.mps.profiler.stop)
        for iteration in range(self.settings.iterations):
            self.busy()
            child = os.fork()
            if child == 0:
                ctypes.CDLL(None).exit(0)
            self.child_ends(child)
            self.compare(tensor.add(1).cpu(), torch.full((8,), 2.0), f"iteration {iteration}")
            self.counts.add(expected=1, operations=1)

    def test_forked_worker(self):
        """A forked child of a worker thread ends by C's exit(), while another thread of the parent is on the queue of the worker's stream:
        it ends at once, and commits nothing there."""
        extension = self.need_extension()
        self.need(torch.mps, "Stream", "stream")

        def work(i: int) -> None:
            tensor = torch.zeros(8, device="mps")
            stream = torch.mps.current_stream()

            def hold() -> None:
                with torch.mps.stream(stream):
                    extension.hold_queue()

            for iteration in range(self.settings.iterations):
                tensor.add_(1)  # not committed
                holder = threading.Thread(target=hold)
                holder.start()
                extension.wait_until_held()
                child = os.fork()
                if child == 0:
                    ctypes.CDLL(None).exit(0)
                try:
                    self.child_ends(child)
                finally:
                    extension.let_go()
                    holder.join()
                self.compare(tensor.cpu(), torch.full((8,), iteration + 1.0), f"iteration {iteration}")
                self.done()

        self.together(work)

    def test_work_ended_elsewhere(self):
        """External work that another thread ends has ended: that thread gets an exception, its own can run operators again."""
        self.need(torch.mps, "external_work")

        def work(i: int) -> None:
            tensor = torch.zeros(8, device="mps")
            for iteration in range(self.settings.iterations):
                begun = torch.mps.external_work()
                begun.__enter__()
                raised: list[str] = []

                def end(begun=begun, raised=raised) -> None:
                    try:
                        begun.__exit__(None, None, None)
                    except RuntimeError as error:
                        raised.append(str(error))

                thread = threading.Thread(target=end)
                thread.start()
                thread.join()
                self.assertEqual(len(raised), 1)
                self.assertIn("another thread", raised[0])
                self.compare(tensor.add_(1).cpu(), torch.full((8,), iteration + 1.0), f"thread {i}, iteration {iteration}")
                with torch.mps.external_work() as queue:
                    self.assertNotEqual(queue, 0)
                self.done()

        self.together(work)

    def test_refusals(self):
        """Metal makes no queue, event or buffer: that is an error with its cause, and the next attempt is as if it had not been."""
        refuse = self.need_extension().refuse
        self.need(torch.mps, "Stream")
        tensor = torch.ones(SIZE, device="mps")

        def upload() -> torch.Tensor:
            return torch.ones(SIZE).to("mps")

        def fresh_event() -> torch.Tensor:
            kept.append(torch.mps.Event())  # a new one each time
            return tensor + 0

        def fresh_stream() -> torch.Tensor:
            with torch.mps.stream(torch.mps.Stream()):
                return tensor + 0

        kept: list[torch.mps.Event] = []
        kinds = [
            ("buffers", "no buffer over", upload),
            ("buffers", "no buffer over", lambda: tensor.cpu()),
            ("events", "no shared event", fresh_event),
            ("events", "no shared event", fresh_stream),
            ("queues", "no command queue", fresh_stream),
        ]
        for _ in range(self.settings.iterations):
            for kind, text, make in kinds:
                refuse(kind, 1)
                with self.assertRaisesRegex(RuntimeError, text):
                    make()
                self.compare(make().cpu(), torch.ones(SIZE), f"after {kind} that were refused")
                self.counts.add(expected=1, operations=1)

    def test_refused_lease(self):
        """Metal makes no queue for a thread's own stream: its operator raises, and the next one gets the stream."""
        refuse = self.need_extension().refuse
        self.need(torch.mps, "current_stream")
        tensor = torch.ones(8, device="mps")
        self.synchronize()
        streams: list[int] = []

        def work(i: int) -> None:
            with lock:
                refuse("queues", 1)
                with self.assertRaisesRegex(RuntimeError, "no command queue"):
                    tensor.add(1)
                self.compare(tensor.add(1).cpu(), torch.full((8,), 2.0), f"thread {i}")
                streams.append(torch.mps.current_stream().stream_id)
            self.done()

        lock = threading.Lock()
        self.together(work, operations=1)
        self.assertEqual(sorted(streams), list(range(1, self.settings.threads + 1)), "streams of the threads")

    def test_named_stream_waits(self):
        """The streams and events that a wait names are those that wait, and not the ones of the thread that calls it."""
        (one, other, third), own = (torch.mps.Stream() for _ in range(3)), torch.mps.Event()
        waits = {
            "wait_stream": lambda: (other.wait_stream(one), other.record_event().synchronize()),
            "wait_event": lambda: (other.wait_event(one.record_event()), other.record_event().synchronize()),
            "the program's event": lambda: (one.record_event(own), own.synchronize()),
            "Stream.synchronize": one.synchronize,
            "torch.mps.synchronize": torch.mps.synchronize,
        }
        if not torch.__version__.startswith("2.6."):  # whose function waits for no device but CUDA and XPU
            waits["torch.accelerator.synchronize"] = torch.accelerator.synchronize
        for iteration in range(self.settings.iterations):
            for name, wait in waits.items():
                target = torch.zeros(SIZE)
                with torch.mps.stream(one):
                    source = torch.full((SIZE,), iteration + 1.0, device="mps")
                    self.busy()
                    target.copy_(source, non_blocking=True)
                with torch.mps.stream(third):  # what a thread without a choice does comes after every stream
                    wait()
                self.compare(target.clone(), torch.full((SIZE,), iteration + 1.0), f"{name}, iteration {iteration}")
                self.counts.add(expected=1, operations=1)
