// An atomic counter.
package main

import (
	"sync"
	"sync/atomic"
)

func main() {
	var count atomic.Int64
	var group sync.WaitGroup
	for i := 0; i < 3; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			count.Add(2)
		}()
	}
	group.Wait()
	if count.Load() != 6 {
		panic("wrong count")
	}
}
