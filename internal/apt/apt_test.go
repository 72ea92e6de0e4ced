package apt

import (
	"errors"
	"testing"
)

// Sizes are read from what apt 2.6 and 3.0 say; other words are an error, not a size of zero.
func TestSizesAreRead(t *testing.T) {
	for _, c := range []struct {
		text               string
		download, unpacked int64
		bad                bool
	}{
		{"0 upgraded, 5 newly installed.\nNeed to get 3938 kB of archives.\nAfter this operation, 15.8 MB of additional disk space will be " +
			"used.\n'http://x' a.deb 1 MD5Sum:0\n", 3_938_000, 15_800_000, false},
		{"Need to get 1,328 MB of archives.\nAfter this operation, 6.1 GB of additional disk space will be used.\n", 1_328_000_000, 6_100_000_000, false},
		{"Need to get 0 B/3938 kB of archives.\nAfter this operation, 512 B of additional disk space will be used.\n", 0, 512, false},
		{"nothing\n", 0, 0, true},
	} {
		download, unpacked, err := readSizes(c.text)
		if download != c.download || unpacked != c.unpacked || c.bad != errors.Is(err, ErrSize) {
			t.Errorf("%q: %d, %d, %v", c.text, download, unpacked, err)
		}
	}
}
