//go:build !faults

// Package fault names the moments at which a test kills the program. Only a build with the tag faults has them: no release does.
package fault

// Point is such a moment.
func Point() {}
