// Go's channels in the cases of the matrix; prints nanoseconds per message as JSON, the median of its rounds.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strconv"
	"sync"
	"time"
)

const threads = 4
const rounds = 15

func seq(capacity, messages int) {
	c := make(chan int, capacity)
	for i := 0; i < messages; i++ {
		c <- i
	}
	for i := 0; i < messages; i++ {
		<-c
	}
}

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

func sendAny(cs [threads]chan int, messages int) {
	for i := 0; i < messages; i++ {
		select {
		case cs[0] <- i:
		case cs[1] <- i:
		case cs[2] <- i:
		case cs[3] <- i:
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

func selectBoth(capacity, messages int) {
	cs := makeFour(capacity)
	var done sync.WaitGroup
	done.Add(2 * threads)
	for t := 0; t < threads; t++ {
		go func() { sendAny(cs, messages/threads); done.Done() }()
		go func() { receiveAny(cs, messages/threads); done.Done() }()
	}
	done.Wait()
}

func median(run func(int, int), capacity, messages int) float64 {
	times := make([]float64, rounds)
	for r := range times {
		start := time.Now()
		run(capacity, messages)
		times[r] = float64(time.Since(start).Nanoseconds()) / float64(messages)
	}
	sort.Float64s(times)
	return times[rounds/2]
}

func main() {
	messages := 200000
	if len(os.Args) > 1 {
		messages, _ = strconv.Atoi(os.Args[1])
	}
	cases := []struct {
		name string
		run  func(int, int)
		caps []int
	}{
		{"seq", seq, []int{-1}},
		{"spsc", many(1, 1), []int{0, 1, -1}},
		{"mpsc", many(threads, 1), []int{0, 1, -1}},
		{"mpmc", many(threads, threads), []int{0, 1, -1}},
		{"select_rx", selectReceive, []int{0, 1, -1}},
		{"select_both", selectBoth, []int{0, 1, -1}},
	}
	figures := map[string]float64{}
	for _, c := range cases {
		for _, capacity := range c.caps {
			name, size := strconv.Itoa(capacity), capacity
			if capacity < 0 {
				name, size = "n", messages
			}
			figures[c.name+" cap "+name] = median(c.run, size, messages)
		}
	}
	text, _ := json.Marshal(figures)
	fmt.Println(string(text))
}
