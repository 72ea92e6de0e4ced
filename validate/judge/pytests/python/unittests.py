"""PyTorch's own test files: what tests they have, and how one of them ends in this process."""

import importlib.util
import sys
import unittest

TEXT = 2000  # characters of an exception that a result keeps


def tests_of(suite):
    """All tests, by name: Class.method."""
    found = {}
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            found.update(tests_of(test))
        elif exception := getattr(test, "_exception", None):  # what unittest makes of a file whose tests it cannot gather
            raise exception
        else:
            found[test.id().split(".", 1)[1]] = test
    return found


def tests_in(module):
    """All tests of a module, by name: Class.method."""
    return tests_of(unittest.defaultTestLoader.loadTestsFromModule(module))


def load(path):
    """The module of a test file, as its tests find it: its folder is where modules are looked for."""
    sys.path.insert(0, str(path.parent))
    sys.argv = [str(path)]  # PyTorch's test modules read their own arguments, and look whether the tests are of the program that runs
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def root_of(exception):
    """The exception that began it: PyTorch's tests wrap what an operator raised into one that names the sample."""
    while exception.__cause__ is not None:
        exception = exception.__cause__
    return exception


class Result(unittest.TestResult):
    """Keeps the exceptions themselves beside their texts."""

    def __init__(self):
        super().__init__()
        self.raised = []

    def addError(self, test, err):
        super().addError(test, err)
        self.raised.append(("error", err[1]))

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.raised.append(("failed", err[1]))

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.raised.append(("failed" if issubclass(err[0], test.failureException) else "error", err[1]))

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.raised.append(("expected failure", err[1]))


def run(test, own):
    """Runs one test in this process and gives its end."""
    result = Result()
    unittest.TestSuite([test]).run(result)
    for _, text in result.errors + result.failures:
        sys.stderr.write(text + "\n")
    unexpected = [(outcome, exception) for outcome, exception in result.raised if outcome != "expected failure"]
    if result.raised:
        outcome, exception = (unexpected or result.raised)[0]
        root = root_of(exception)
        return {"outcome": outcome, "type": type(root).__name__, "text": str(root)[:TEXT]}
    if result.errors or result.failures:
        return {"outcome": "error", "type": "unknown", "text": (result.errors + result.failures)[0][1][-TEXT:]}
    if result.unexpectedSuccesses:
        return {"outcome": "unexpected success"}
    if result.skipped:
        reason = result.skipped[0][1]
        return {"outcome": "skipped", "text": reason, "own": own(reason)}
    if result.testsRun != 1:
        return {"outcome": "error", "type": "RuntimeError", "text": f"unittest ran {result.testsRun} tests instead of one"}
    return {"outcome": "passed"}
