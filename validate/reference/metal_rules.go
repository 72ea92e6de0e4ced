package reference

func violation(signature int, text string) expectation {
	return expectation{kind: wantViolation, signature: signature, text: text}
}

// oneBuffer is the start of most programs below.
const oneBuffer = "queue q\nbuffer b 64\nshared_event e\ncb c q\n"

// rulePrograms break one rule of Metal each, or none, as close to breaking it as can be.
func rulePrograms() []program {
	return []program{
		{"scheduled handler after commit", violation(1, "Scheduled handler provided after commit call"), oneBuffer + `
commit c
on_scheduled c nothing
block nothing
pause`},
		{"completed handler after commit", violation(2, "Completed handler provided after commit call"), oneBuffer + `
commit c
on_completed c nothing
block nothing
pause`},
		{"completed handler while an encoder is open, macOS 26.4", violation(0, "completed handler added while a command encoder is open"), oneBuffer + `
blit x c
on_completed c nothing
end_encoding x
commit c
block nothing
pause`},
		{"completed handler while an encoder is open, macOS 15", clean, "device macos=1500\n" + oneBuffer + `
blit x c
on_completed c nothing
end_encoding x
commit c
block nothing
pause`},
		{"committed twice", violation(3, "commit an already committed command buffer"), oneBuffer + `
commit c
commit c`},
		{"committed twice by two threads", violation(3, "commit an already committed command buffer"), oneBuffer + `
thread A
commit c
thread B
commit c`},
		{"committed with an open encoder", violation(4, "commit command buffer with uncommitted encoder"), oneBuffer + `
blit x c
commit c
end_encoding x
commit c`},
		{"two encoders at once", violation(5, "A command encoder is already encoding to this command buffer"), oneBuffer + `
blit x c
compute y c
end_encoding x
commit c`},
		{"one encoder after the other", clean, oneBuffer + `
blit x c
end_encoding x
compute y c
end_encoding y
commit c`},
		{"encoder of a committed buffer", violation(6, "_status < MTLCommandBufferStatusCommitted"), oneBuffer + `
commit c
blit x c`},
		{"signal with an open encoder", violation(7, "encodeSignalEvent:value: with uncommitted encoder"), oneBuffer + `
blit x c
signal c e 1
end_encoding x
commit c`},
		{"enqueued twice", violation(8, "enqueue an already enqueued command buffer"), oneBuffer + `
enqueue c
enqueue c
commit c`},
		{"encoder released while open", violation(9, "Command encoder released without endEncoding"), oneBuffer + `
blit x c
release x
commit c`},
		{"a serial queue's block enters its own queue", violation(16, "dispatch_sync called on queue already owned by current thread"), `
serial s
sync s outer
block outer
sync s inner
block inner
pause`},
		{"a serial queue's block enters another one", clean, `
serial s
serial t
sync s outer
block outer
sync t inner
block inner
pause`},
		{"encoding ended twice", violation(0, ""), oneBuffer + `
blit x c
end_encoding x
end_encoding x
commit c`},
		{"encoded after the end", violation(0, ""), oneBuffer + `
blit x c
end_encoding x
fill x b 0 64 1
commit c`},
		{"a fill beyond the end of a buffer", violation(0, ""), oneBuffer + `
work c fill b 32 64 1
commit c`},
		{"a kernel argument beyond the end of a buffer", violation(0, ""), oneBuffer + `
work c set b 32 64 1
commit c
completed c`},
		{"the CPU reads beyond the end of a buffer", violation(0, ""), oneBuffer + `
peek b 32 64
commit c`},
		{"a fill on a compute encoder", violation(0, ""), oneBuffer + `
compute x c
fill x b 0 64 1
end_encoding x
commit c`},
		{"a dispatch on a blit encoder", violation(0, ""), oneBuffer + `
blit x c
dispatch x set b 0 64 1
end_encoding x
commit c`},
		{"an unknown kernel", violation(0, ""), oneBuffer + `
work c frobnicate b 0 64
commit c`},
		{"an event that falls", violation(0, ""), oneBuffer + `
signal c e 5
signal c e 4
commit c
completed c`},
		{"commitAndContinue of a plain command buffer", violation(0, ""), oneBuffer + `
continue c
commit c`},

		// Queues, waits and errors.
		{"sixty-four command buffers that are never committed", expectation{kind: wantDeadlock, text: "64"}, `
device watchdog=200
queue q
repeat 64
cb c q
leak c
done
cb last q`},
		{"sixty-four command buffers, committed", clean, `
queue q
repeat 200
cb c q
commit c
release c
done`},
		{"released without commit, a command buffer makes room", clean, `
queue q
repeat 200
cb c q
release c
done`},
		{"a wait for a signal that never comes", expectation{kind: wantDeadlock, text: "e"}, `
device watchdog=200
queue q
shared_event e
cb c q
wait c e 1
commit c
completed c`},
		{"two queues wait for each other", expectation{kind: wantDeadlock, text: "f"}, `
device watchdog=200
queue q1
queue q2
shared_event e
shared_event f
cb c1 q1
wait c1 f 1
signal c1 e 1
commit c1
cb c2 q2
wait c2 e 1
signal c2 f 1
commit c2
completed c1`},
		{"completion of a buffer that was never committed", expectation{kind: wantDeadlock, text: "c"}, `
device watchdog=200
queue q
cb c q
completed c`},
		{"an uncommitted buffer holds back the next", expectation{kind: wantDeadlock, text: "q"}, `
device watchdog=200
queue q
cb c1 q
cb c2 q
enqueue c1
commit c2
completed c2`},
		{"a hang, and its end", clean, `
queue q
inject q hang 1
buffer b 64
cb c q
work c fill b 0 64 1
commit c
resume q
completed c
cb d q
work d fill b 0 64 2
commit d
completed d
peek b 0 64 = 2`},
		{"a hang without end", expectation{kind: wantDeadlock, text: "q"}, `
device watchdog=200
queue q
inject q hang 1
cb c q
commit c
completed c`},
		{"the second buffer from now ends in error", clean, `
queue q
inject q error 2
cb c1 q
commit c1
cb c2 q
commit c2
cb c3 q
commit c3
completed c3
status c1 = 4
status c2 = 5
status c3 = 4`},
		{"the states of a command buffer", clean, oneBuffer + `
status c = 0
enqueue c
status c = 1
commit c
completed c
status c = 4`},
		{"the wrapper's status is that of the newest root", clean, `
queue q
mps_cb c q
root r c
continue c
completed r
status r = 4
status c = 0
commit c`},
		{"a wait for an event has an end", clean, `
shared_event e
attain e 1 20 = 0
event.set e 1
attain e 1 20 = 1`},
		{"handlers of a committed wrapper are refused, of the new root not", clean, `
queue q
mps_cb c q
continue c
on_completed c tell
commit c
await told
block tell
post told`},

		// Lifetimes.
		{"a command buffer left behind", expectation{kind: wantLifetime, text: "command buffer"}, `
queue q
cb c q
leak c`},
		{"a buffer left behind", expectation{kind: wantLifetime, text: "b"}, `
buffer b 64
leak b`},
		{"a buffer released while the GPU uses it stays alive", clean, oneBuffer + `
work c fill b 0 64 1
commit c
release b
completed c`},

		// Models.
		{"two threads encode a matrix multiplication", expectation{kind: wantModelOrNone, signature: 10, text: "A and B index not found"}, `
queue q1
queue q2
buffer b 64
buffer d 64
mps k1 matrix
mps k2 matrix
thread A
cb c1 q1
encode k1 c1 set b 0 64 1
commit c1
thread B
cb c2 q2
encode k2 c2 set d 0 64 1
commit c2`},
		{"the model of matrix multiplication is off", clean, `
device models=0
queue q1
queue q2
buffer b 64
buffer d 64
mps k1 matrix
mps k2 matrix
thread A
cb c1 q1
encode k1 c1 set b 0 64 1
commit c1
thread B
cb c2 q2
encode k2 c2 set d 0 64 1
commit c2`},
		{"two threads encode one graph", expectation{kind: wantModelOrNone, signature: 11, text: "Invalid KernelDAG"}, `
queue q1
queue q2
buffer b 64
buffer d 64
mps g graph
thread A
cb c1 q1
encode g c1 set b 0 64 1
commit c1
thread B
cb c2 q2
encode g c2 set d 0 64 1
commit c2`},
		{"two threads encode a graph each", clean, `
queue q1
queue q2
buffer b 64
buffer d 64
mps g1 graph
mps g2 graph
thread A
cb c1 q1
encode g1 c1 set b 0 64 1
commit c1
thread B
cb c2 q2
encode g2 c2 set d 0 64 1
commit c2`},
		{"two threads encode one kernel object", expectation{kind: wantModelOrNone, text: ""}, `
queue q1
queue q2
buffer b 64
buffer d 64
mps k other
thread A
cb c1 q1
encode k c1 set b 0 64 1
commit c1
thread B
cb c2 q2
encode k c2 set d 0 64 1
commit c2`},
		{"a kernel object used by two threads in turn", clean, `
queue q1
queue q2
buffer b 64
buffer d 64
mps k matrix
thread A
cb c1 q1
encode k c1 set b 0 64 1
commit c1
barrier turn
thread B
barrier turn
cb c2 q2
encode k c2 set d 0 64 1
commit c2`},
		{"a graph commits by itself", clean, `
device split=2
queue q
buffer b 64
mps g graph
mps_cb c q
root r c
repeat 5
encode g c set b 0 64 1
done
completed r
commit c
completed c
peek b 0 64 = 1`},
	}
}
