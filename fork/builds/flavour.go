package builds

// Flavour is how a host build is compiled.
type Flavour string

// The flavours. ThreadSanitizer leaves out what must not add order between threads, see unit.bare.
const (
	Plain   Flavour = "plain"
	Thread  Flavour = "tsan"
	Address Flavour = "asan"
	// Coverage counts how often each line of PyTorch's sources ran. It is built for that alone and is not among Flavours.
	Coverage Flavour = "coverage"
)

// Flavours lists the flavours.
func Flavours() []Flavour { return []Flavour{Plain, Thread, Address} }
