// sync.Once.
package main

import "sync"

func main() {
	var once sync.Once
	var group sync.WaitGroup
	value := 0
	for i := 0; i < 2; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			once.Do(func() { value = 8 })
			if value != 8 {
				panic("not made")
			}
		}()
	}
	group.Wait()
}
