package overlay

import (
	"mpsforge/fork/builds"
	"mpsforge/patches"
)

// WheelForMac makes a wheel for macOS of any library over any other.
func WheelForMac(facts patches.MacFacts, build builds.Stamp, stock, library, checkout, dir string) (file string, err error) {
	torch, err := overWheel("v2.6.0", facts, stock)
	if err != nil {
		return "", err
	}
	file, _, err = contents{torch, build, library, "macosx_11_0_arm64", notRun, checkout, ""}.write(dir)
	return file, err
}
