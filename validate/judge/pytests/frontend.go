package pytests

import "mpsforge/validate/judge/process"

// frontEndTests use the parts of torch's front end that take a device. They call the backend by ways of their own, not by operators alone.
func frontEndTests() []Test {
	test := func(name, about string, stock process.Stock, change ...func(*Test)) Test {
		return row(frontSection, name, about, of("hand-over", "python-streams"), stock, []int{2, 4, 8}, []int{4}, 20, 5, change...)
	}
	old := lacking("2.6.0")
	changed := test("shader-changed", "a shader compiled again with other source", process.StockMay)
	changed.threads, changed.quick, changed.iterations, changed.quickIterations = []int{1}, []int{1}, 200, 50
	return []Test{
		test("dlpack", "tensors passed on round a ring of threads by DLPack, and to NumPy's arrays and back", process.StockMay, old),
		test("load", "one file loaded by all threads with map_location, and files that each has saved", process.StockMay),
		test("generators", "a torch.Generator for each thread: its numbers, and its state taken and given back", process.StockMay, old), // Debian's build
		test("shared-generator", "one torch.Generator for all threads, which get each number once", process.StockMay, old),              // the same
		test("storages", "UntypedStorage: made, copied, cloned, pickled, passed on, and written by all threads", process.StockMay),
		test("shaders", "shaders of the program: compiled by all threads, with tensors and numbers as arguments, over grids of one to three sizes",
			process.StockMay),
		changed,
		test("accelerator", "torch.accelerator, torch.Stream and torch.Event, as a program for any device has them", process.StockFails, old,
			fails("^hung")), // in events
	}
}
