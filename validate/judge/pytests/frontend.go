package pytests

import "mpsforge/validate/judge/process"

// frontEndTests use the parts of torch's front end that take a device. They call the backend by ways of their own, not by operators alone.
func frontEndTests() []Test {
	test := func(name, about string, stock process.Stock, lacking ...string) Test {
		return Test{Name: name, About: about, Section: frontSection, patches: []string{"hand-over", "python-streams"}, stock: stock, lacking: lacking,
			threads: []int{2, 4, 8}, quick: []int{4}, iterations: 20, quickIterations: 5}
	}
	accelerator := test("accelerator", "torch.accelerator, torch.Stream and torch.Event, as a program for any device has them", process.StockFails, "2.6.0")
	accelerator.ends = []string{"^hung"} // in events
	return []Test{
		test("dlpack", "tensors passed on round a ring of threads by DLPack, and to NumPy's arrays and back", process.StockMay, "2.6.0"),
		test("load", "one file loaded by all threads with map_location, and files that each has saved", process.StockMay),
		test("generators", "a torch.Generator for each thread: its numbers, and its state taken and given back", process.StockMay, "2.6.0"), // Debian's build
		test("shared-generator", "one torch.Generator for all threads, which get each number once", process.StockMay, "2.6.0"),              // the same
		test("storages", "UntypedStorage: made, copied, cloned, pickled, passed on, and written by all threads", process.StockMay),
		test("shaders", "shaders of the program: compiled by all threads, with tensors and numbers as arguments, over grids of one to three sizes",
			process.StockMay),
		accelerator,
	}
}
