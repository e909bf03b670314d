// A channel is closed while another goroutine has seen that it is open; with "fixed" it sends under the lock.
package main

import (
	"os"
	"sync"
)

func main() {
	fixed := len(os.Args) > 1
	channel := make(chan int, 4)
	closed := false
	var mutex sync.Mutex
	var group sync.WaitGroup
	group.Add(2)
	go func() {
		defer group.Done()
		mutex.Lock()
		open := !closed
		if !fixed {
			mutex.Unlock()
		}
		if open {
			channel <- 1
		}
		if fixed {
			mutex.Unlock()
		}
	}()
	go func() {
		defer group.Done()
		mutex.Lock()
		defer mutex.Unlock()
		closed = true
		close(channel)
	}()
	group.Wait()
}
