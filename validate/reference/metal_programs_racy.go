package reference

func race(buffer string) expectation       { return expectation{kind: wantRace, text: buffer} }
func raceOrNone(buffer string) expectation { return expectation{kind: wantRaceOrNone, text: buffer} }

func racyPrograms() []program {
	return []program{
		// Racy, under every seed and schedule.
		{"two queues write", race("b"), twoQueues + `
cb c1 q1
work c1 fill b 0 64 1
commit c1
cb c2 q2
work c2 fill b 0 64 2
commit c2`},
		{"one queue writes, another one reads", race("b"), threeQueues + `
thread A
cb c1 q1
work c1 fill b 0 64 1
commit c1
thread B
cb c2 q2
work c2 copy b 0 d 0 64
commit c2`},
		{"half of the ranges overlaps", race("b"), twoQueues + `
cb c1 q1
work c1 fill b 0 40 1
commit c1
cb c2 q2
work c2 fill b 32 32 2
commit c2`},
		{"the CPU reads before completion", race("b"), `
queue q
buffer b 64
cb c q
work c fill b 0 64 1
commit c
peek b 0 64
completed c`},
		{"the CPU writes what the GPU is to read", race("b"), `
queue q
buffer b 64
buffer d 64
poke b 0 64 1
cb c q
work c copy b 0 d 0 64
commit c
poke b 0 64 2
completed c`},
		{"scheduled is not completed", race("b"), `
queue q
buffer b 64
cb c q
work c fill b 0 64 1
commit c
scheduled c
peek b 0 64`},
		{"a scheduled handler reads", race("b"), `
queue q
buffer b 64
cb c q
work c fill b 0 64 1
on_scheduled c look
commit c
await seen
block look
peek b 0 64
post seen`},
		{"a wait for too low a value", race("b"), threeQueues + `
cb c1 q1
signal c1 e 1
work c1 fill b 0 64 1
signal c1 e 2
commit c1
cb c2 q2
wait c2 e 1
work c2 fill b 0 64 2
commit c2`},
		{"a late wait for a low value knows no more for it", race("b"), threeQueues + `
cb c1 q1
signal c1 e 1
work c1 fill b 0 64 1
signal c1 e 2
commit c1
thread A
completed c1
post done
thread B
cb c2 q2
wait c2 e 1
work c2 fill b 0 64 2
commit c2`},
		{"a wait on the wrong event", race("b"), threeQueues + `
cb c1 q1
work c1 fill b 0 64 1
signal c1 e 1
commit c1
event.set f 1
cb c2 q2
wait c2 f 1
work c2 fill b 0 64 2
commit c2`},
		{"the signal comes before the work", race("b"), threeQueues + `
cb c1 q1
signal c1 e 1
work c1 fill b 0 64 1
commit c1
cb c2 q2
wait c2 e 1
work c2 fill b 0 64 2
commit c2`},
		{"the wait comes after the work", race("b"), threeQueues + `
cb c1 q1
work c1 fill b 0 64 1
signal c1 e 1
commit c1
cb c2 q2
work c2 fill b 0 64 2
wait c2 e 1
commit c2`},
		{"the higher signal is another queue's", race("b"), threeQueues + `
cb c1 q1
work c1 fill b 0 64 1
signal c1 e 1
commit c1
attain e 1
cb c3 q3
signal c3 e 2
commit c3
cb c4 q1
work c4 fill b 0 64 4
commit c4
cb c2 q2
wait c2 e 2
work c2 fill b 0 64 2
commit c2`},
		{"one link of three is missing", race("b"), threeQueues + `
cb c1 q1
work c1 fill b 0 64 1
signal c1 e 1
commit c1
cb c2 q2
work c2 fill d 0 64 2
signal c2 f 1
commit c2
cb c3 q3
wait c3 f 1
work c3 fill b 0 64 3
commit c3`},
		{"memory used again on another queue at once", race("b"), twoQueues + `
thread A
cb c1 q1
work c1 fill b 0 64 1
commit c1
note b 0 64 "freed by q1"
barrier handed
thread B
barrier handed
note b 0 64 "given out to q2"
cb c2 q2
work c2 fill b 0 64 2
commit c2`},
		{"a barrier does not wait for the GPU", race("b"), `
queue q
buffer b 64
thread A
cb c q
work c fill b 0 64 1
commit c
barrier done
thread B
barrier done
peek b 0 64`},
		{"a serial queue does not wait for the GPU", race("b"), twoQueues + `serial s
thread A
sync s first
thread B
sync s second
block first
cb c1 q1
work c1 fill b 0 64 1
commit c1
block second
cb c2 q2
work c2 fill b 0 64 2
commit c2`},
		{"the handler of another command buffer", race("b"), twoQueues + `
cb c1 q1
work c1 fill b 0 64 1
cb c2 q2
on_completed c2 look
commit c1
commit c2
await seen
block look
peek b 0 64
post seen`},
		{"the handler of an earlier command buffer", race("b"), `
queue q
buffer b 64
cb c1 q
on_completed c1 look
cb c2 q
work c2 fill b 0 64 1
commit c1
commit c2
await seen
block look
peek b 0 64
post seen`},
		{"a listener of a lower value", race("b"), `
queue q
buffer b 64
shared_event e
notify e 1 look
cb c q
signal c e 1
work c fill b 0 64 1
signal c e 2
commit c
await seen
block look
peek b 0 64
post seen`},
		{"a handler that knows of one queue only", race("b"), twoQueues + `
cb c1 q1
on_completed c1 tell
cb c2 q2
work c2 fill b 0 64 1
on_completed c2 nothing
commit c2
commit c1
await told
peek b 0 64
block tell
post told
block nothing
pause`},
		{"the newest root has not completed", race("b"), `
queue q
buffer b 64
mps_cb c q
root r c
continue c
work c fill b 0 64 1
commit c
completed r
peek b 0 64`},
		{"an event between two encoders covers the first only", race("d"), threeQueues + `
cb c1 q1
work c1 fill b 0 64 1
signal c1 e 1
work c1 fill d 0 64 1
commit c1
cb c2 q2
wait c2 e 1
work c2 fill b 0 64 2
work c2 fill d 0 64 2
commit c2`},
		{"two threads write without order", race("b"), `
buffer b 64
thread A
poke b 0 64 1
thread B
poke b 0 64 2`},
		{"another thread writes while a command reads", race("b"), `
queue q
buffer b 64
buffer d 64
thread A
cb c q
work c copy b 0 d 0 64
commit c
thread B
poke b 8 8 2`},
		{"a block put into a serial queue, and its creator", race("b"), `
buffer b 64
serial s
async s change
poke b 0 64 1
block change
poke b 0 64 2`},
		{"an MPS kernel and a blit on two queues", race("b"), twoQueues + `mps k other
cb c1 q1
encode k c1 set b 0 64 1
commit c1
cb c2 q2
work c2 copy b 0 b 32 32
commit c2`},
		{"two kernels on two queues, the same buffer moved and set", race("b"), threeQueues + `
cb c1 q1
work c1 move b 0 d 0 32
commit c1
cb c2 q2
work c2 set b 16 1 9
commit c2`},
		{"command buffers of two threads in one queue, and a read in between", race("b"), `
queue q
buffer b 64
thread A
cb c1 q
work c1 fill b 0 64 1
commit c1
completed c1
barrier between
peek b 0 64
thread B
barrier between
cb c2 q
work c2 fill b 0 64 2
commit c2`},

		// Racy in some schedules: what orders them is seen or not seen at run time.
		{"the status of another command buffer", raceOrNone("b"), twoQueues + `
cb c1 q1
work c1 fill b 0 64 1
commit c1
cb c2 q2
commit c2
stop unless completed c2
peek b 0 64`},
		{"the value of an event that covers less", raceOrNone("b"), `
queue q
buffer b 64
shared_event e
cb c q
signal c e 1
work c fill b 0 64 1
commit c
stop unless value e 1
peek b 0 64`},
		{"a status read, then work and a look at it", raceOrNone("b"), `
queue q
buffer b 64
cb c1 q
commit c1
stop unless completed c1
cb c2 q
work c2 fill b 0 64 2
commit c2
peek b 0 64`},
	}
}
