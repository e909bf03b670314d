// Two goroutines and a channel.
package main

func main() {
	numbers := make(chan int)
	go func() {
		for i := 1; i <= 3; i++ {
			numbers <- i
		}
		close(numbers)
	}()
	sum := 0
	for n := range numbers {
		sum += n
	}
	if sum != 6 {
		panic("wrong sum")
	}
}
