// Go's channels in the cases of the matrix: for each line of a case, a capacity and a number of messages it runs one round
// and prints the nanoseconds that it took.
package main

import (
	"bufio"
	"fmt"
	"os"
	"sync"
	"time"
)

const threads = 4

func many(senders, receivers int) func(int, int) {
	return func(capacity, messages int) {
		c := make(chan int, capacity)
		var done sync.WaitGroup
		done.Add(senders + receivers)
		for s := 0; s < senders; s++ {
			go func() {
				for i := 0; i < messages/senders; i++ {
					c <- i
				}
				done.Done()
			}()
		}
		for r := 0; r < receivers; r++ {
			go func() {
				for i := 0; i < messages/receivers; i++ {
					<-c
				}
				done.Done()
			}()
		}
		done.Wait()
	}
}

func makeFour(capacity int) [threads]chan int {
	var cs [threads]chan int
	for i := range cs {
		cs[i] = make(chan int, capacity)
	}
	return cs
}

func receiveAny(cs [threads]chan int, messages int) {
	for i := 0; i < messages; i++ {
		select {
		case <-cs[0]:
		case <-cs[1]:
		case <-cs[2]:
		case <-cs[3]:
		}
	}
}

func selectReceive(capacity, messages int) {
	cs := makeFour(capacity)
	for _, c := range cs {
		go func(c chan int) {
			for i := 0; i < messages/threads; i++ {
				c <- i
			}
		}(c)
	}
	receiveAny(cs, messages/threads*threads)
}

func main() {
	cases := map[string]func(int, int){
		"spsc":      many(1, 1),
		"mpsc":      many(threads, 1),
		"mpmc":      many(threads, threads),
		"select_rx": selectReceive,
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var name string
		var capacity, messages int
		fmt.Sscan(lines.Text(), &name, &capacity, &messages)
		start := time.Now()
		cases[name](capacity, messages)
		fmt.Println(time.Since(start).Nanoseconds())
	}
}
