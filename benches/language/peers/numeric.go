// Rows of numbers.
package main

func integerLoop(data any) int {
	i, sum := 0, 0
	for {
		i, sum = i+1, (sum+i*i)%1000003
		if i >= data.(int) {
			return sum
		}
	}
}

func collatz(data any) int {
	longest := 0
	for start := 1; start < data.(int); start++ {
		n, steps := start, 1
		for {
			if n%2 == 0 {
				n /= 2
			} else {
				n = 3*n + 1
			}
			steps++
			if n == 1 {
				break
			}
		}
		longest = max(longest, steps)
	}
	return longest
}
