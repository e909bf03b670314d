// Whichever channel is ready, both values come.
package main

func main() {
	a, b := make(chan int, 1), make(chan int, 1)
	go func() { a <- 1 }()
	go func() { b <- 2 }()
	sum := 0
	for i := 0; i < 2; i++ {
		select {
		case x := <-a:
			sum += x
		case x := <-b:
			sum += x
		}
	}
	if sum != 3 {
		panic("wrong sum")
	}
}
