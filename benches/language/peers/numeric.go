// Rows of numbers.
package main

import "math"

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

func sieve(data any) int {
	size := data.(int)
	isPrime := make([]bool, size)
	for i := range isPrime {
		isPrime[i] = true
	}
	for i := 2; i*i < size; i++ {
		if isPrime[i] {
			for j := i * i; j < size; j += i {
				isPrime[j] = false
			}
		}
	}
	count := -2
	for _, prime := range isPrime {
		if prime {
			count++
		}
	}
	return count
}

type body struct{ x, y, z, vx, vy, vz, mass float64 }

func moved(bodies []body) []body {
	var result []body
	for _, b := range bodies {
		ax, ay, az := 0.0, 0.0, 0.0
		for _, o := range bodies {
			dx, dy, dz := o.x-b.x, o.y-b.y, o.z-b.z
			square := dx*dx + dy*dy + dz*dz + 0.01
			strength := o.mass / (square * math.Sqrt(square))
			ax += dx * strength
			ay += dy * strength
			az += dz * strength
		}
		vx, vy, vz := b.vx+0.001*ax, b.vy+0.001*ay, b.vz+0.001*az
		result = append(result, body{b.x + 0.001*vx, b.y + 0.001*vy, b.z + 0.001*vz, vx, vy, vz, b.mass})
	}
	return result
}

func nBody(data any) int {
	var bodies []body
	for _, f := range []float64{1, 2, 3, 4, 5} {
		bodies = append(bodies, body{f, 10.0 / f, f * f / 7.0, 0.1 * f, 0.3 / f, 0.0, 0.5 + f})
	}
	for i := 0; i < data.(int); i++ {
		bodies = moved(bodies)
	}
	sum := 0.0
	for _, b := range bodies {
		sum += b.mass * (b.vx*b.vx + b.vy*b.vy + b.vz*b.vz)
	}
	return int(sum * 1000000)
}

func element(i, j int) float64 {
	return 1.0 / float64((i+j)*(i+j+1)/2+i+1)
}

func multiplied(vector []float64, isTransposed bool) []float64 {
	result := make([]float64, len(vector))
	for i := range vector {
		for j, of := range vector {
			if isTransposed {
				result[i] += element(j, i) * of
			} else {
				result[i] += element(i, j) * of
			}
		}
	}
	return result
}

func spectralNorm(data any) int {
	size := data.(int)
	u := make([]float64, size)
	for i := range u {
		u[i] = 1.0
	}
	v := u
	for round := 0; round < 10; round++ {
		v = multiplied(multiplied(u, false), true)
		u = multiplied(multiplied(v, false), true)
	}
	uv, vv := 0.0, 0.0
	for i := range u {
		uv += u[i] * v[i]
		vv += v[i] * v[i]
	}
	return int(math.Sqrt(uv/vv) * 1000000)
}

func isInside(x, y float64) bool {
	a, b := 0.0, 0.0
	for round := 0; round < 50; round++ {
		a, b = a*a-b*b+x, 2.0*a*b+y
		if a*a+b*b > 4.0 {
			break
		}
	}
	return a*a+b*b <= 4.0
}

func mandelbrot(data any) int {
	size, count := data.(int), 0
	for i := 0; i < size; i++ {
		for j := 0; j < size; j++ {
			if isInside(3.0*float64(i)/float64(size)-2.0, 2.0*float64(j)/float64(size)-1.0) {
				count++
			}
		}
	}
	return count
}

func squareOf(size int, at func(i, j int) int) [][]float64 {
	made := make([][]float64, size)
	for i := range made {
		made[i] = make([]float64, size)
		for j := range made[i] {
			made[i][j] = float64(at(i, j))
		}
	}
	return made
}

func matrix(data any) int {
	size := data.(int)
	rows := squareOf(size, func(i, j int) int { return i * j % 17 })
	columns := squareOf(size, func(i, j int) int { return (i + j) % 13 })
	product := squareOf(size, func(i, j int) int { return 0 })
	for i, row := range rows {
		for j, column := range columns {
			for k := range row {
				product[i][j] += row[k] * column[k]
			}
		}
	}
	trace := 0.0
	for i := range product {
		trace += product[i][i]
	}
	return int(trace)
}

func levenshtein(data any) int {
	size := data.(int)
	a, b, previous := make([]int, size), make([]int, size), make([]int, size+1)
	for i := range a {
		a[i], b[i], previous[i+1] = i*7919%26, i*104729%29, i+1
	}
	for i, x := range a {
		row, left := []int{i + 1}, i+1
		for j, y := range b {
			replaced := previous[j]
			if x != y {
				replaced++
			}
			left = min(replaced, min(previous[j+1]+1, left+1))
			row = append(row, left)
		}
		previous = row
	}
	return previous[size]
}
