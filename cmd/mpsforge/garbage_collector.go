package main

import (
	"runtime"
	"runtime/debug"
)

// Most commands live for some 20 ms and allocate a few megabytes; collecting garbage in between took a tenth of an apply (measured on the
// real tree, whose peak stays far below 100 MB). A heap beyond largeHeap, of a patch of a million hunks or a report of a million checks, is
// collected as Go does by itself: else it would grow ninefold before it is.
const (
	rarely    = 800 // percent that the heap grows by between collections
	usually   = 100
	largeHeap = 64 << 20
)

// collectRarely makes the collector rare for as long as the heap is small.
func collectRarely() {
	debug.SetGCPercent(rarely)
	watchHeap()
}

// watchHeap looks at the heap after the next collection, which clears away what it makes, and after those that follow.
func watchHeap() {
	runtime.AddCleanup(&struct{ _ [64]byte }{}, func(struct{}) {
		var stats runtime.MemStats
		if runtime.ReadMemStats(&stats); stats.HeapAlloc > largeHeap {
			debug.SetGCPercent(usually)
			return
		}
		watchHeap()
	}, struct{}{})
}
