// Two goroutines read a balance and set it, each under the lock; with "fixed" the lock is kept over both.
package main

import (
	"fmt"
	"os"
	"sync"
)

type account struct {
	mutex   sync.Mutex
	balance int
}

func (a *account) get() int {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.balance
}

func (a *account) set(value int) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.balance = value
}

func (a *account) add(value int, fixed bool) {
	if fixed {
		a.mutex.Lock()
		defer a.mutex.Unlock()
		a.balance += value
		return
	}
	a.set(a.get() + value)
}

func main() {
	fixed := len(os.Args) > 1
	var shared account
	var group sync.WaitGroup
	for range [2]int{} {
		group.Add(1)
		go func() {
			defer group.Done()
			shared.add(10, fixed)
		}()
	}
	group.Wait()
	if shared.get() != 20 {
		fmt.Fprintln(os.Stderr, "lost a transfer:", shared.get())
		os.Exit(1)
	}
}
