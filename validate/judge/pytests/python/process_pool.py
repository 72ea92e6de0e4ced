"""A pool of processes in place of threads: each has a Metal device, a model and PyTorch's caches to itself.

Use it where threads do not do (a stock PyTorch, or the operations that a report of mpsforge lists as failing):

    from process_pool import ProcessPool

    class Model:                             # of a module that can be imported; not of __main__ of a notebook
        def __init__(self, path):            # once in each process, with its first request
            self.module = torch.load(path).to("mps").eval()
        def __call__(self, x):               # each request
            with torch.no_grad():
                return self.module(x.to("mps")).cpu()

    if __name__ == "__main__":               # the processes import the main module, too
        with ProcessPool(Model, "model.pt", workers=4) as pool:
            future = pool.submit(x)
            results = pool.map([(x1,), (x2,)])

Requests and results are pickled: give and take tensors of the CPU, or NumPy arrays. The processes are spawned, never
forked, for Metal does not live through a fork. A process that dies takes only the request with it that it was working
on, which raises WorkerDied, and another process takes its place. Nothing is tried again by itself: a request that kills
one process may kill the next.
"""

import concurrent.futures
import concurrent.futures.process
import multiprocessing
import queue


class WorkerDied(RuntimeError):
    """The process that worked on a request ended before it answered: a crash, or no memory."""


_model = None  # of this process


def _answer(make, arguments, request):
    global _model
    if _model is None:
        _model = make(*arguments)
    return _model(*request)


class ProcessPool:
    def __init__(self, make, *arguments, workers):
        """In each of the processes make(*arguments) gives what is called with the requests."""
        if workers < 1:
            raise ValueError(f"a pool of {workers} workers")
        self._make, self._arguments = make, arguments
        # A thread for each process: all it does is wait for the answer.
        self._waiting = concurrent.futures.ThreadPoolExecutor(workers, thread_name_prefix="process pool")
        self._idle = queue.SimpleQueue()
        for _ in range(workers):
            self._idle.put(self._worker())

    @staticmethod
    def _worker():
        return concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))

    def _request(self, request):
        worker = self._idle.get()
        try:
            return worker.submit(_answer, self._make, self._arguments, request).result()
        except concurrent.futures.process.BrokenProcessPool as error:
            worker.shutdown(wait=False)
            worker = self._worker()
            raise WorkerDied("the process that worked on this request died; its standard error may say why") from error
        finally:
            self._idle.put(worker)

    def submit(self, *request):
        """Hands a request to the next process that is free; gives a concurrent.futures.Future."""
        return self._waiting.submit(self._request, request)

    def map(self, requests):
        """The answers to requests, tuples of arguments, in their order. Raises what the first failed one raised."""
        return [future.result() for future in [self.submit(*request) for request in requests]]

    def close(self):
        """Waits for what was submitted and ends the processes."""
        self._waiting.shutdown()
        while not self._idle.empty():
            self._idle.get().shutdown()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
