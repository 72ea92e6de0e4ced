package reference

// Most programs begin with these.
const (
	twoQueues   = "queue q1\nqueue q2\nbuffer b 64\n"
	threeQueues = twoQueues + "queue q3\nbuffer d 64\nshared_event e\nshared_event f\n"
)

// orderPrograms is the corpus of the happens-before checker: programs with and without a race. What is racy is so by the
// rules of Metal, whatever the values of a run.
func orderPrograms() []program { return append(raceFreePrograms(), racyPrograms()...) }

func raceFreePrograms() []program {
	return []program{
		{"one queue orders its command buffers", clean, `
queue q
buffer b 64
cb c1 q
work c1 fill b 0 64 1
commit c1
cb c2 q
work c2 fill b 0 64 2
commit c2
completed c2
peek b 0 64 = 2`},
		{"two encoders of one command buffer are in order", clean, `
queue q
buffer b 64
cb c q
work c fill b 0 64 1
work c set b 16 16 2
work c copy b 16 b 48 8
commit c
completed c
peek b 48 8 = 2
peek b 0 16 = 1`},
		{"completion waited for before the CPU reads", clean, `
queue q
buffer b 64
thread A
cb c q
work c fill b 0 64 3
commit c
completed c
peek b 0 64 = 3`},
		{"the CPU writes before it commits", clean, `
queue q
buffer b 64
buffer d 64
poke b 0 64 7
cb c q
work c copy b 0 d 0 64
commit c
completed c
peek d 0 64 = 7`},
		{"an event orders two queues", clean, twoQueues + `shared_event e
thread A
cb c1 q1
work c1 fill b 0 64 1
signal c1 e 1
commit c1
thread B
cb c2 q2
wait c2 e 1
work c2 fill b 0 64 2
commit c2
completed c2
peek b 0 64 = 2`},
		{"an event set by the CPU orders what the CPU did", clean, `
queue q
buffer b 64
shared_event e
cb c q
wait c e 1
work c fill b 0 64 2
commit c
poke b 0 64 1
event.set e 1
completed c
peek b 0 64 = 2`},
		{"the CPU waits for an event", clean, `
queue q
buffer b 64
shared_event e
cb c q
work c fill b 0 64 2
signal c e 5
commit c
attain e 5
peek b 0 64 = 2`},
		{"the value of an event, read by the CPU", clean, `
queue q
buffer b 64
shared_event e
cb c q
work c fill b 0 64 2
signal c e 5
commit c
stop unless value e 5
peek b 0 64 = 2`},
		{"a status of completed, read by the CPU", clean, `
queue q
buffer b 64
cb c q
work c fill b 0 64 2
commit c
stop unless completed c
peek b 0 64 = 2`},
		{"a completed handler reads its own buffer's result", clean, `
queue q
buffer b 64
cb c q
work c fill b 0 64 2
on_completed c look
commit c
await seen
block look
peek b 0 64 = 2
post seen`},
		{"what a completed handler tells a thread", clean, `
queue q
buffer b 64
thread A
cb c q
work c fill b 0 64 2
on_completed c tell
commit c
thread B
await told
peek b 0 64 = 2
block tell
post told`},
		{"a listener reads what its value covers", clean, `
queue q
buffer b 64
shared_event e
notify e 1 look
cb c q
work c fill b 0 64 2
signal c e 1
commit c
await seen
block look
peek b 0 64 = 2
post seen`},
		{"disjoint ranges on two queues", clean, twoQueues + `
cb c1 q1
work c1 fill b 0 32 1
commit c1
cb c2 q2
work c2 fill b 32 32 2
commit c2
completed c1
completed c2
peek b 0 32 = 1
peek b 32 32 = 2`},
		{"two queues read the same range", clean, threeQueues + `
poke b 0 64 9
cb c1 q1
work c1 look b 0 64
commit c1
cb c2 q2
work c2 copy b 0 d 0 64
commit c2
completed c2
peek d 0 64 = 9`},
		{"memory used again on another queue after completion", clean, twoQueues + `
cb c1 q1
work c1 fill b 0 64 1
commit c1
completed c1
note b 0 64 "freed by q1"
note b 0 64 "given out to q2"
cb c2 q2
work c2 fill b 0 64 2
commit c2
completed c2
peek b 0 64 = 2`},
		{"memory used again on another queue behind an event", clean, threeQueues + `
cb c1 q1
work c1 fill b 0 64 1
work c1 copy b 0 d 0 64
signal c1 e 1
commit c1
cb c2 q2
wait c2 e 1
work c2 fill b 0 64 2
commit c2
completed c2
peek d 0 64 = 1
peek b 0 64 = 2`},
		{"order through a third queue", clean, threeQueues + `
thread A
cb c1 q1
work c1 fill b 0 64 1
signal c1 e 1
commit c1
thread B
cb c2 q2
wait c2 e 1
work c2 copy b 0 d 0 64
signal c2 f 1
commit c2
thread C
cb c3 q3
wait c3 f 1
work c3 fill b 0 64 3
commit c3
completed c3
peek b 0 64 = 3
peek d 0 64 = 1`},
		{"both ways between two queues", clean, threeQueues + `
thread A
cb c1 q1
work c1 fill b 0 64 1
signal c1 e 1
commit c1
cb c3 q1
wait c3 f 1
work c3 fill b 0 64 3
commit c3
completed c3
peek b 0 64 = 3
thread B
cb c2 q2
wait c2 e 1
work c2 copy b 0 d 0 64
signal c2 f 1
commit c2`},
		{"a wait for a value that a higher signal reaches", clean, threeQueues + `
cb c1 q1
work c1 fill b 0 64 1
signal c1 e 7
commit c1
cb c2 q2
wait c2 e 3
work c2 fill b 0 64 2
commit c2
completed c2
peek b 0 64 = 2`},
		{"a wait covers what the first of two signals covers", clean, threeQueues + `
cb c1 q1
work c1 fill b 0 64 1
signal c1 e 1
work c1 fill d 0 64 1
signal c1 e 2
commit c1
cb c2 q2
wait c2 e 1
work c2 fill b 0 64 2
wait c2 e 2
work c2 fill d 0 64 2
commit c2
completed c2
peek b 0 64 = 2
peek d 0 64 = 2`},
		{"a barrier between the CPU's write and another thread's commit", clean, `
queue q
buffer b 64
buffer d 64
thread A
poke b 0 64 4
barrier ready
thread B
barrier ready
cb c q
work c copy b 0 d 0 64
commit c
completed c
peek d 0 64 = 4`},
		{"a thread waits, another one reads after its end", clean, `
queue q
buffer b 64
thread A
cb c q
work c fill b 0 64 4
commit c
completed c
end
peek b 0 64 = 4`},
		{"a serial queue orders two threads' use of one command queue", clean, `
queue q
buffer b 64
serial s
thread A
sync s first
thread B
sync s second
end
cb c q
work c fill b 0 64 3
commit c
completed c
peek b 0 64 = 3
block first
cb c1 q
work c1 fill b 0 64 1
commit c1
block second
cb c2 q
work c2 fill b 0 64 2
commit c2`},
		{"a block put into a serial queue sees what its creator did", clean, `
buffer b 64
serial s
poke b 0 64 1
async s change
sync s look
block change
peek b 0 64 = 1
poke b 0 64 2
block look
peek b 0 64 = 2`},
		{"commitAndContinue keeps the order of the queue", clean, `
queue q
buffer b 64
mps_cb c q
work c fill b 0 64 1
continue c
work c fill b 0 64 2
commit c
completed c
peek b 0 64 = 2`},
		{"the root of before commitAndContinue, waited for", clean, `
queue q
buffer b 64
mps_cb c q
work c fill b 0 64 1
root r c
continue c
completed r
peek b 0 64 = 1
commit c`},
		{"a handler stays with the old root", clean, `
queue q
buffer b 64
mps_cb c q
work c fill b 0 64 1
on_completed c look
continue c
await seen
commit c
block look
peek b 0 64 = 1
post seen`},
		{"an MPS kernel in order with a blit", clean, `
queue q
buffer b 64
mps k other
cb c q
encode k c set b 0 64 1
work c copy b 0 b 32 32
commit c
completed c
peek b 32 32 = 1`},
		{"a buffer that ends in error does nothing", clean, twoQueues + `
inject q1 error 1
cb c1 q1
work c1 fill b 0 64 1
commit c1
completed c1
status c1 = 5
cb c2 q2
work c2 fill b 0 64 2
commit c2
completed c2
peek b 0 64 = 2`},
		{"enqueue decides the order", clean, `
queue q
buffer b 64
cb c1 q
cb c2 q
enqueue c1
work c1 fill b 0 64 1
work c2 fill b 0 64 2
commit c2
commit c1
completed c2
peek b 0 64 = 2`},
		{"many command buffers at once in a queue", clean, `
device cap=4
queue q
buffer b 64
thread A
repeat 20
cb c q
work c fill b 0 64 5
commit c
release c
done
thread B
cb d q
work d fill b 0 64 5
commit d
completed d
end
cb z q
commit z
completed z
peek b 0 64 = 5`},
	}
}
