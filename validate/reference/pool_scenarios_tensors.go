package reference

// tensorScenarios are about the hand-over, memory, caches, and life and death: rules 16 to 27.
func tensorScenarios() []poolScenario {
	return []poolScenario{
		{rules: "16", name: "a model made on the main thread is used by workers at once", text: threeWorkers + `
tensor w 16
set w 3
thread A
tensor a 16
set a 2
multiply_to a a w
read a = 6
thread B
tensor b 16
set b 5
multiply_to b b w
read b = 15
thread C
tensor c 16
set c 7
multiply_to c c w
read c = 21`},
		{rules: "16", name: "a result is read by another thread after join", text: twoWorkers + `
tensor r 16
thread A
set r 1
increment r 1
increment r 1
end
read r = 3`},
		{rules: "16", name: "a tensor goes round a ring of threads", text: threeWorkers + `
tensor x 16
set x 1
thread A
increment x 1
post a
await c
increment x 10
read x = 14
thread B
await a
increment x 1
post b
thread C
await b
increment x 1
post c`},
		{rules: "16", name: "a write after uses on other streams", text: threeWorkers + `
tensor w 16
set w 3
thread A
tensor a 16
copy_to a w
post used
read a = 3
thread B
tensor b 16
copy_to b w
post used
read b = 3
thread C
await used 2
set w 9
read w = 9`},
		{rules: "16", name: "two streams hand over to each other in one operation each", text: twoWorkers + `
tensor x 8
tensor y 8
thread A
set x 1
barrier both
add_to x x y
thread B
set y 2
barrier both
tensor z 8
copy_to z y
read z = 2
end
read x = 3`},
		{rules: "16", name: "a tensor is read while its writer has nothing more to do", text: twoWorkers + `
tensor y 8
thread A
await b
tensor p 8
copy_to p y
read p = 2
post a
thread B
set y 2
post b
await a`},
		{rules: "16", name: "an operator is in flight when the second stream comes to life", text: oneWorker + `
tensor w 8
tensor v 8
tensor q 8
set w 3
commit_stream 0
thread A
use 0
copy_to q w
restore
post read
thread B
copy_to v w
await read
set w 9
end
read q = 3
read v = 3
read w = 9`},
		{rules: "16", name: "two threads change one tensor when the second stream comes to life", text: oneWorker + `
tensor x 8
set x 1
commit_stream 0
thread A
use 0
increment x 1
restore
thread B
increment x 1
end
read x = 3`},
		{rules: "16", name: "two threads change one tensor at the same time", text: twoWorkers + `
tensor x 8
tensor y 8
set x 0
set y 1
thread A
repeat 3
increment x 1
done
thread B
repeat 3
add_to x x y
done
end
read x = 6`},
		{rules: "11, 16", name: "an operator inside a block takes no part", text: twoWorkers + `
thread A
tensor x 8
tensor p 8
set x 1
post first
synchronize current
barrier complete
on_queue 1 first
thread B
await first
tensor y 8
tensor q 8
set y 2
synchronize current
barrier complete
on_queue 2 second
end
read p = 2
read q = 1
block first
copy_to p y
block second
copy_to q x`},
		{rules: "16", name: "the same weights are waited for once", text: twoWorkers + `
tensor w 16
set w 2
thread A
tensor a 16
repeat 10
copy_to a w
done
read a = 2
statistic hand_over_waits = 1`},
		{rules: "16", name: "nothing of it runs while there is one stream", text: `
pool
tensor a 4
tensor b 4
set a 1
copy_to b a
increment b 1
read b = 2
statistic hand_over_waits = 0
statistic streams = 1`},
		{rules: "16", name: "automatic leasing is off", text: `
pool PYTORCH_MPS_STREAM_PER_THREAD=0
tensor x 4
set x 1
thread A
working = 0
increment x 1
post a
thread B
await a
working = 0
increment x 1
end
read x = 3
statistic leases = 0
statistic streams = 1`},
		{rules: "16", name: "by blit, kernel, matrix and graph alike", text: twoWorkers + `
tensor x 16
thread A
set x 1 blit
post a
await b
add_to x x x graph 1
post a
thread B
await a
scale_to x x 3 matrix 1
post b
await a 2
tensor y 16
copy_to y x blit
read y = 6`},
		{rules: "17", name: "memory freed by its stream is used again by it at once", text: twoWorkers + `
thread A
tensor a 1024
set a 1
free a
tensor b 1024
set b 2
read b = 2
statistic reused = 1`},
		{rules: "17", name: "memory freed while another stream reads it", text: twoWorkers + `
tensor a 1024
set a 7
thread B
tensor r 1024
copy_to r a
post read
read r = 7
thread A
await read
free a
tensor b 1024
set b 9
read b = 9`},
		{rules: "17", name: "memory freed by one thread, taken by another", text: twoWorkers + `
thread A
tensor a 1024
set a 1
tensor keep 1024
copy_to keep a
free a
post freed
read keep = 1
thread B
await freed
tensor b 1024
set b 2
read b = 2`},
		{rules: "17", name: "record_stream keeps memory for the stream", text: twoWorkers + `
event e
tensor a 1024
set a 4
event.record e 0
use_pooled s
tensor r 1024
event.wait e current
on_queue s inside
restore
record_stream a s
free a
tensor b 1024
set b 5
read b = 5
use s
read r = 4
restore
block inside
copy_to r a`},
		{rules: "17", name: "memory freed before the second stream comes to life", text: twoWorkers + `
tensor keep 1024
tensor a 1024
set a 1
copy_to keep a
free a
thread A
tensor b 1024
set b 2
end
read keep = 1
read b = 2`},
		{rules: "17", name: "memory that the CPU writes", text: `
pool
tensor t 256 cpu
write t 3
tensor u 256
copy_to u t
free t
tensor v 256 cpu
write v 4
read u = 3
read v = 4`},
		{rules: "17", name: "a thread's memory outlives it", text: twoWorkers + `
thread A
tensor a 1024
set a 5
thread B
working
end
read a = 5
free a
tensor b 1024
set b 6
read b = 6`},
		{rules: "17", name: "emptying the cache returns complete memory", text: `
pool
tensor t 1024
set t 1
synchronize_device
free t
empty_cache
statistic allocated = 0`},
		{rules: "18", name: "a handler with no pending work runs at once", text: `
pool
tensor t 4
set t 1
synchronize_device
on_stream_completed 0 look
await seen
block look
post seen`},
		{rules: "18", name: "a handler added while an encoder is open", text: twoWorkers + `
thread A
tensor t 4
set t 1
working = 1
on_stream_completed 1 look
increment t 1
commit_stream 1
await seen
read t = 2
block look
post seen`},
		{rules: "19", name: "each thread compiles its own graphs, which its end frees", text: twoWorkers + `
thread A
tensor a 4
set a 1
scale_to a a 2 graph 1
scale_to a a 2 graph 1
scale_to a a 2 graph 2
barrier both
statistic graphs = 3
barrier counted
read a = 8
thread B
tensor b 4
set b 1
scale_to b b 2 graph 1
barrier both
barrier counted
read b = 2
end
statistic graphs = 0`},
		{rules: "19", name: "emptying the cache drops a thread's graphs at its next lookup", text: `
pool
tensor a 4
set a 1
scale_to a a 2 graph 1
scale_to a a 2 graph 2
statistic graphs = 2
empty_cache
scale_to a a 2 graph 1
statistic graphs = 1
read a = 8`},
		{rules: "19", name: "a bound on graphs, least recently used out first", text: `
pool PYTORCH_MPS_GRAPH_CACHE_SIZE=2
tensor a 4
set a 1
scale_to a a 2 graph 1
scale_to a a 2 graph 2
scale_to a a 2 graph 3
statistic graphs = 2
read a = 8`},
		{rules: "19", name: "one thread empties the cache while another runs a graph", text: twoWorkers + `
thread A
tensor a 4
set a 1
scale_to a a 2 graph 1
scale_to a a 2 graph 1
read a = 4
thread B
empty_cache
empty_cache`},
		{rules: "20", name: "matrix multiplications of two threads are encoded one at a time", text: twoWorkers + `
thread A
tensor a 4
set a 1
scale_to a a 2 matrix 1
read a = 2
thread B
tensor b 4
set b 1
scale_to b b 3 matrix 1
read b = 3`},
		{rules: "20", name: "the graph path instead of matrix kernels", text: `
pool MPS_FORCE_GRAPH_PATH=1
tensor a 4
set a 1
scale_to a a 2 matrix 1
read a = 2
statistic kernels = 0
statistic graphs = 1`},
		{rules: "20", name: "every encode serialized", text: `
pool PYTORCH_MPS_STREAM_POOL_SIZE=3 PYTORCH_MPS_SERIALIZE_ENCODE=1
thread A
tensor a 4
set a 1
scale_to a a 2 graph 1
scale_to a a 2 matrix 1
read a = 4
thread B
tensor b 4
set b 1
scale_to b b 3 matrix 1
scale_to b b 3 graph 1
read b = 9`},
		{rules: "21, 22", name: "many threads use the same kernels for the first time at once", text: threeWorkers + `
thread A
barrier start
tensor a 4
set a 1
scale_to a a 2
read a = 2
thread B
barrier start
tensor b 4
set b 1
scale_to b b 3
read b = 3
thread C
barrier start
tensor c 4
set c 1
scale_to c c 4
read c = 4`},
		{rules: "23", name: "the profiler counts the operators of all threads", text: twoWorkers + `
profiler on
thread A
tensor a 4
set a 1
increment a 1
synchronize current
thread B
tensor b 4
set b 1
increment b 1
synchronize current
end
synchronize_device
profiler off
statistic profiled = 4`},
		{rules: "24", name: "objects that outlive the threads that made them", text: twoWorkers + `
thread A
event e timing
tensor t 4
set t 1
event.record e current
thread B
working
end
event.synchronize e
event.query e = 1
read t = 1
release e
free t`},
		{rules: "24", name: "a handler that runs after its thread has ended", text: twoWorkers + `
thread A
tensor t 4
set t 1
on_stream_completed current look
end
synchronize_device
await seen
read t = 1
block look
post seen`},
		{rules: "25", name: "the child of a fork gets an exception, the parent is undisturbed", freely: true, text: `
pool
tensor t 16
set t 5
fork child
read t = 5
set t 6
read t = 6
block child
fails spawn set t 1
fails spawn read t
fails spawn synchronize_device
free t`},
		{rules: "26", name: "statistics are exact", text: twoWorkers + `
thread A
working = 1
release_slot
working = 1
post first
barrier both
statistic live = 2
barrier counted
thread B
await first
working = 2
barrier both
barrier counted
end
statistic live = 0
statistic peak = 2
statistic leases = 3
statistic shares = 0`},
		{rules: "27", name: "a single-threaded program makes the commits that stock makes", text: `
pool
tensor a 16
tensor b 16
set a 1
set b 2
add_to a a b
increment a 1
commits 0 = 0
read a = 4
commits 0 = 1
increment a 1
commit_stream 0
commits 0 = 2
synchronize 0
commits 0 = 2
statistic commits = 2`},
	}
}
