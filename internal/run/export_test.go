package run

import "time"

func init() { graceAfterTerminate = time.Second }
