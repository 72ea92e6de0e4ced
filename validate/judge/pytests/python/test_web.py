"""A model behind FastAPI and uvicorn, as servers have it: loopback, a free port, and requests at once. The server is this process, whose
main thread runs its event loop, so nothing of it outlives the test."""

import http.client
import json
import socket
import threading
import time

import torch
from harness import ParallelTest
from test_reported import CrossEncoder, pairs_of


class Web(ParallelTest):
    def serve(self, app, clients: int, client) -> None:
        """Serves the app while as many threads call client(i, port), and ends the server whatever becomes of them."""
        import uvicorn

        with socket.create_server(("127.0.0.1", 0), backlog=2 * clients) as listening:
            server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))

            def ask() -> None:
                try:
                    self.together(lambda i: client(i, listening.getsockname()[1]), threads=clients)
                finally:
                    server.should_exit = True

            asking = threading.Thread(target=ask, name="clients")
            asking.start()
            server.run(sockets=[listening])
            asking.join()

    def empty_cache(self) -> None:
        if self.settings.device == "mps":
            torch.mps.empty_cache()

    def predictions(self, path: str) -> None:
        """Each client asks for scores and for the server's health by turns, and compares them when all are done."""
        try:
            import fastapi
            import pydantic
            import uvicorn  # noqa: F401 which serve needs
        except ImportError as missing:
            self.skipTest(f"needs fastapi and uvicorn: {missing}")
        import asyncio

        device = self.settings.device
        model, on_cpu = CrossEncoder(device), CrossEncoder("cpu")
        app = fastapi.FastAPI()

        class Query(pydantic.BaseModel):
            pairs: list[list[int]]

        def predict(query: Query) -> dict[str, float | list[float]]:
            self.synchronize()  # as who measures does
            begin = time.perf_counter()
            scores = model.predict(torch.tensor(query.pairs)).tolist()
            self.synchronize()
            return {"scores": scores, "seconds": time.perf_counter() - begin}

        async def predict_in_thread(query: Query) -> dict[str, list[float]]:
            try:
                return {"scores": (await asyncio.to_thread(model.predict, torch.tensor(query.pairs))).tolist()}
            finally:
                await asyncio.to_thread(self.empty_cache)

        def health() -> dict[str, bool]:
            return {"well": torch.ones(1, device=device).item() == 1}

        app.post("/predict")(predict)
        app.post("/predict-in-thread")(predict_in_thread)
        app.get("/health")(health)

        def client(i: int, port: int) -> None:
            for turn in range(self.settings.iterations):
                case = i + turn
                status, said = ask(port, "POST", path, json.dumps({"pairs": pairs_of(case).tolist()}))
                if status != 200:
                    raise AssertionError(f"{path}: status {status}: {said}")
                answers.append((case, torch.tensor(said["scores"])))
                self.done()
                if (i + turn) % 4 == 0:
                    healthy.append(ask(port, "GET", "/health"))

        answers, healthy = [], []
        self.serve(app, self.settings.threads, client)
        self.assertTrue(healthy)
        self.assertEqual([one for one in healthy if one != (200, {"well": True})], [])
        expected = {case: model.predict(pairs_of(case)) for case, _ in answers}
        for case, scores in expected.items():
            self.compare(scores, on_cpu.predict(pairs_of(case)), f"case {case}, alone against the CPU", 1e-4, answer=False)
        for case, scores in answers:
            self.compare(scores, expected[case], f"case {case}")

    def test_web_server(self):
        """Functions that the server calls on threads of its own, and that measure how long each prediction takes."""
        self.predictions("/predict")

    def test_web_to_thread(self):
        """Coroutines that call asyncio.to_thread, for the model and, after each request, to give memory back."""
        self.predictions("/predict-in-thread")


def ask(port: int, method: str, path: str, body: str | None = None) -> tuple[int, dict]:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()
