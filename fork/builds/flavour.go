package builds

// Flavour is how a host build is compiled.
type Flavour string

// The flavours. ThreadSanitizer leaves out what must not add order between threads, see unit.bare.
const (
	Plain   Flavour = "plain"
	Thread  Flavour = "tsan"
	Address Flavour = "asan"
)

// Flavours lists the flavours.
func Flavours() []Flavour { return []Flavour{Plain, Thread, Address} }
