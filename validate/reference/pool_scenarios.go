package reference

// poolScenario is a program over a stream pool that obeys the pool's rules: nothing may be found and every expectation must be
// met, freely and under the deterministic scheduler.
type poolScenario struct {
	rules string // of the pool, that it is an example of
	name  string
	text  string
	// freely: it forks, or tells the time apart, which nothing under the scheduler does.
	freely bool
}

// Pools with one, two and three worker streams.
const (
	oneWorker    = "pool PYTORCH_MPS_STREAM_POOL_SIZE=2\n"
	twoWorkers   = "pool PYTORCH_MPS_STREAM_POOL_SIZE=3\n"
	threeWorkers = "pool PYTORCH_MPS_STREAM_POOL_SIZE=4\n"
)

// poolScenarios has at least one scenario for each rule of the pool.
func poolScenarios() []poolScenario { return append(streamScenarios(), tensorScenarios()...) }

// streamScenarios are about streams, leases, queues, synchronisation and events: rules 1 to 15.
func streamScenarios() []poolScenario {
	return []poolScenario{
		{rules: "1", name: "the main thread uses the default stream", text: `
pool
tensor t 4
set t 5
current = 0
working = 0
read t = 5
statistic leases = 0`},
		{rules: "2", name: "a worker's first work leases the lowest free slot", text: twoWorkers + `
thread A
current = 0
working = 1
current = 1
post a
await b
thread B
await a
working = 2
post b
end
statistic live = 0
statistic leases = 2
statistic peak = 2`},
		{rules: "2", name: "a slot given back is taken again, and kept until then", text: twoWorkers + `
thread A
working = 1
tensor t 4
set t 1
working = 1
release_slot
current = 0
working = 1
read t = 1
end
statistic leases = 2`},
		{rules: "2", name: "the end of a thread gives its slot back", text: twoWorkers + `
thread A
tensor t 64
set t 1
end_thread
post ended
thread B
await ended
working = 1
tensor u 64
scale_to u t 3
read u = 3`},
		{rules: "2", name: "the end of a thread commits its work without waiting for it", text: twoWorkers + `
thread A
tensor t 64
set t 1
end
commits 1 = 1
read t = 1`},
		{rules: "2", name: "after its end a thread uses the default stream", text: twoWorkers + `
thread A
working = 1
end_thread
current = 0
tensor t 4
set t 7
working = 0
read t = 7
end
statistic leases = 1
statistic live = 0`},
		{rules: "2", name: "deleters and handlers lease nothing", text: twoWorkers + `
tensor t 4
set t 1
thread A
free t
on_stream_completed 0 look
commit_stream 0
await seen
statistic leases = 0
block look
current = 0
statistic leases = 0
post seen`},
		{rules: "3", name: "an override changes the current stream, and its end restores it exactly", text: twoWorkers + `
thread A
working = 1
use 0
current = 0
working = 0
use_pooled s
current = 3
restore
current = 0
restore
current = 1
statistic leases = 1`},
		{rules: "3", name: "a thread without a lease needs none under an override", text: twoWorkers + `
thread A
use 0
tensor t 4
set t 2
read t = 2
restore
statistic leases = 0
working = 1
statistic leases = 1`},
		{rules: "3, 6", name: "restoring no override goes back to leasing", text: twoWorkers + `
thread A
use_pooled s
restore
current = 0
working = 1`},
		{rules: "4", name: "explicit streams come in turn from a set of their own", text: twoWorkers + `
use_pooled s
current = 3
restore
use_pooled t
current = 4
restore
repeat 30
use_pooled u
restore
done
use_pooled v
current = 3
restore
statistic leases = 0`},
		{rules: "4", name: "an explicit stream may be shared by threads", text: threeWorkers + `
thread A
use 4
tensor a 16
repeat 5
set a 1
increment a 2
read a = 3
done
restore
thread B
use 4
tensor b 16
repeat 5
set b 5
increment b 2
read b = 7
done
restore`},
		{rules: "5", name: "inside a block the stream is the block's", text: twoWorkers + `
thread A
working = 1
tensor t 4
on_queue 1 work
post done
thread B
await done
tensor u 4
copy_to u t
read u = 1
block work
set t 1`},
		{rules: "6", name: "a backward node runs on the stream of its forward and leases nothing", text: twoWorkers + `
thread forward
tensor x 16
set x 3
working = 1
post ready
await back
read x = 6
thread device
await ready
use 1
scale_to x x 2
restore
post back
end
statistic leases = 1`},
		{rules: "6, 13", name: "a query of a stream", text: `
pool
tensor t 4
query 0 = 1
set t 1
commit_stream 0
synchronize 0
query 0 = 1`},
		{rules: "7", name: "streams that nobody uses cost nothing", text: `
pool PYTORCH_MPS_STREAM_POOL_SIZE=1024
tensor t 4
set t 1
read t = 1
statistic streams = 1
warnings = 0`},
		{rules: "7", name: "a size that is no number", text: `
pool PYTORCH_MPS_STREAM_POOL_SIZE=many
warnings = 1
warned "PYTORCH_MPS_STREAM_POOL_SIZE"
use_pooled s
current = 32
restore`},
		{rules: "7", name: "a size out of range", text: `
pool PYTORCH_MPS_STREAM_POOL_SIZE=1
warnings = 1
use_pooled s
current = 32
restore`},
		{rules: "8", name: "share: without a slot a thread uses the default stream, and one warning says so", text: oneWorker + `
thread A
working = 1
post full
await done 2
thread B
await full
working = 0
tensor b 4
set b 2
read b = 2
post done
thread C
await full
working = 0
tensor c 4
set c 3
read c = 3
post done
end
warnings = 1
warned "PYTORCH_MPS_STREAM_POOL_SIZE"
statistic peak = 1`},
		{rules: "8", name: "wait: first come, first served", text: `
pool PYTORCH_MPS_STREAM_POOL_SIZE=2 PYTORCH_MPS_STREAM_POOL_EXHAUSTED=wait
thread A
working = 1
post full
await b
pause 2000
release_slot
thread B
await full
post b
working = 1
end
warnings = 0
statistic leases = 2`},
		{rules: "8", name: "wait: an error when the time is up", text: `
pool PYTORCH_MPS_STREAM_POOL_SIZE=2 PYTORCH_MPS_STREAM_POOL_EXHAUSTED=wait PYTORCH_MPS_STREAM_POOL_WAIT_MS=20
thread A
working = 1
post full
await done
thread B
await full
fails PYTORCH_MPS_STREAM_POOL_SIZE working
post done`},
		{rules: "8", name: "error: a slot on its way back is waited for", freely: true, text: `
pool PYTORCH_MPS_STREAM_POOL_SIZE=2 PYTORCH_MPS_STREAM_POOL_EXHAUSTED=error
thread A
working = 1
post full
pause 2000
release_slot
thread B
await full
working = 1`},
		{rules: "8", name: "error: else an exception, and nobody dies", text: `
pool PYTORCH_MPS_STREAM_POOL_SIZE=2 PYTORCH_MPS_STREAM_POOL_EXHAUSTED=error
thread A
working = 1
tensor t 4
set t 1
post full
await done
read t = 1
thread B
await full
fails PYTORCH_MPS_STREAM_POOL_SIZE working
post done`},
		{rules: "9", name: "more commits than a queue holds", text: `
device cap=3
` + twoWorkers + `
thread A
tensor t 4
set t 0
repeat 12
increment t 1
commit_stream current
done
read t = 12`},
		{rules: "9, 16", name: "two threads hand over and over with short queues", text: `
device cap=2
` + twoWorkers + `
tensor x 4
set x 0
thread A
repeat 4
increment x 1
commit_stream current
post a
await b
done
thread B
repeat 4
await a
increment x 1
commit_stream current
post b
done
end
read x`},
		{rules: "10", name: "two threads on the default stream", text: `
pool PYTORCH_MPS_STREAM_PER_THREAD=0
thread A
tensor a 16
set a 1
commit_stream 0
increment a 1
synchronize 0
read a = 2
thread B
tensor b 16
set b 5
synchronize_device
increment b 1
copy_to b b
read b = 6
end
statistic leases = 0`},
		{rules: "10", name: "a command buffer taken off the queue works, with one warning", text: `
pool
tensor t 4
set t 1
take_command_buffer 0
take_encoder 0
warnings = 1
on_queue 0 inside
read t = 1
warnings = 1
block inside
take_command_buffer 0
take_encoder 0`},
		{rules: "11", name: "waiting for the GPU on the queue", text: twoWorkers + `
thread A
tensor a 4
set a 1
post first
on_queue 1 wait
read a = 1
thread B
await first
tensor b 4
set b 2
read b = 2
block wait
synchronize 1`},
		{rules: "12", name: "the GIL is free while a thread waits for a slot", text: `
gil
pool PYTORCH_MPS_STREAM_POOL_SIZE=2 PYTORCH_MPS_STREAM_POOL_EXHAUSTED=wait
thread A
working = 1
post full
pause 500
release_slot
thread B
await full
working = 1`},
		{rules: "12, 16", name: "the GIL is free while tensors are handed over", text: `
gil
` + twoWorkers + `
tensor x 8
tensor y 8
set x 1
set y 2
thread A
increment x 1
post a
await b
add_to x x y
read x
thread B
increment y 1
post b
await a
add_to y y x
read y
end
synchronize_device`},
		{rules: "13", name: "what was enqueued before synchronize is complete after it", text: twoWorkers + `
thread A
tensor t 4
set t 1
synchronize current
query current = 1
increment t 1
commit_stream current
synchronize current
query current = 1
read t = 2`},
		{rules: "14", name: "a device-wide synchronize waits for every thread's stream", text: threeWorkers + `
thread A
tensor a 4
set a 1
post done
await checked
thread B
tensor b 4
set b 2
post done
await checked
thread C
await done 2
synchronize_device
query 1 = 1
query 2 = 1
post checked`},
		{rules: "14", name: "a device-wide synchronize on a queue", text: twoWorkers + `
thread A
tensor a 4
set a 1
commit_stream current
post a
await checked
thread B
await a
tensor b 4
set b 2
working = 2
on_queue 2 inside
post checked
block inside
synchronize_device
query 2 = 1
query 1 = 1`},
		{rules: "14", name: "two threads synchronize the device at once", text: twoWorkers + `
thread A
tensor a 4
set a 1
synchronize_device
read a = 1
thread B
tensor b 4
set b 2
synchronize_device
read b = 2`},
		{rules: "15", name: "an event orders two streams", text: twoWorkers + `
event e
tensor x 16
thread A
working = 1
on_queue 1 write
event.record e 1
post recorded
await leased
thread B
await recorded
working = 2
post leased
tensor y 16
event.wait e 2
on_queue 2 look
read y = 3
block write
set x 3
block look
copy_to y x`},
		{rules: "15", name: "an event not recorded never hangs", text: `
pool
event e timing
event f timing
event g
event.query e = 1
event.synchronize e
event.wait e 0
event.record g 0
fails "" event.elapsed e f
fails "" event.elapsed g e`},
		{rules: "15", name: "each record has a snapshot of its own", text: `
pool
event e
tensor t 4
set t 1
event.record e 0
event.synchronize e
event.query e = 1
set t 2
event.record e 0
event.synchronize e
event.query e = 1
read t = 2`},
		{rules: "15", name: "the time between two events", text: `
pool
event e timing
event f timing
tensor t 4
event.record e 0
set t 1
event.record f 0
event.synchronize f
event.elapsed e f = 1`},
		{rules: "15", name: "a recycled event is not completed by its former use", text: twoWorkers + `
thread A
tensor t 4
repeat 4
event e timing
set t 1
event.record e current
release e
event f timing
event.query f = 1
set t 2
event.record f current
event.synchronize f
event.query f = 1
release f
done
read t = 2`},
	}
}
