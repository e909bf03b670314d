// Counting under a mutex, waited for by a group.
package main

import "sync"

func main() {
	var lock sync.Mutex
	var group sync.WaitGroup
	count := 0
	for i := 0; i < 3; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			lock.Lock()
			count++
			lock.Unlock()
		}()
	}
	group.Wait()
	if count != 3 {
		panic("wrong count")
	}
}
