package main

import (
	"strings"
	"testing"
)

func TestOnlyOnAMacThereIsAQuickerWay(t *testing.T) {
	if text := quickerWay("darwin"); !strings.Contains(text, "mpsforge overlay build --platform macos") {
		t.Errorf("on a Mac: %q", text)
	}
	if text := quickerWay("linux"); text != "" {
		t.Errorf("on Linux: %q", text)
	}
}
