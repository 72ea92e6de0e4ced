package builds

import "errors"

// ErrEnvironment is returned, wrapped, when this machine lacks what a build needs.
var ErrEnvironment = errors.New("the build environment is missing")

// ErrSources is returned, wrapped, when a compiler or linker refuses what it is given.
var ErrSources = errors.New("the sources do not compile")
