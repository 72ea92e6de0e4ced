//go:build !cgo

package slots

// Subject is an implementation of the slot allocator; there is none in a build without cgo.
type Subject struct{}

// Slots is one allocator; there is none in a build without cgo.
type Slots struct{}

// Reference returns ErrNoCgo.
func Reference() (*Subject, error) { return nil, ErrNoCgo }

// Load returns ErrNoCgo.
func Load(string) (*Subject, error) { return nil, ErrNoCgo }

// Identity is never reached.
func (*Subject) Identity() string { return "" }

// Parse is never reached.
func (*Subject) Parse(_, _ *string) (Config, []string) { return Config{}, nil }

// New returns ErrNoCgo.
func (*Subject) New(Config) (*Slots, error) { return nil, ErrNoCgo }

// RunHistory returns ErrNoCgo.
func (*Subject) RunHistory(HistoryOptions) (History, error) { return History{}, ErrNoCgo }

// Close is never reached.
func (*Slots) Close() {}

// Acquire is never reached.
func (*Slots) Acquire() Result { return Result{} }

// Release is never reached.
func (*Slots) Release(uint32, uint64) bool { return false }

// Statistics is never reached.
func (*Slots) Statistics() Statistics { return Statistics{} }

// ShareWarning is never reached.
func (*Slots) ShareWarning() string { return "" }

// ExhaustedError is never reached.
func (*Slots) ExhaustedError() string { return "" }
