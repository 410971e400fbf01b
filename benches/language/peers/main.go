// The rows of the benchmark in Go: for each name how to make the data, and how to run the row.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"
)

type row struct {
	make func(size int) any
	run  func(data any) int
}

func size(size int) any { return size }

func numbers(size int) any {
	all := make([]int, size)
	for i := range all {
		all[i] = i
	}
	return all
}

func nothing(any) int { return 0 }

var rows = map[string]row{
	"group":          {makePeople, group},
	"build_list":     {size, buildList},
	"build_text":     {size, buildText},
	"build_map":      {size, buildMap},
	"words":          {makePage, words},
	"group_by":       {numbers, groupBy},
	"sort":           {makePairs, sortPairs},
	"json":           {makeJson, runJson},
	"csv":            {makeCsv, runCsv},
	"template":       {makeNames, template},
	"integer_loop":   {size, integerLoop},
	"collatz":        {size, collatz},
	"sieve":          {size, sieve},
	"n_body":         {size, nBody},
	"spectral_norm":  {size, spectralNorm},
	"mandelbrot":     {size, mandelbrot},
	"matrix":         {size, matrix},
	"levenshtein":    {size, levenshtein},
	"memory_records": {makeRecords, nothing},
	"memory_points":  {makePoints, nothing},
	"memory_ints":    {numbers, nothing},
}

func main() {
	chosen := rows[os.Args[1]]
	size, err := strconv.Atoi(os.Args[2])
	if err != nil {
		panic(err)
	}
	lines := bufio.NewScanner(os.Stdin)
	fmt.Println("begin")
	lines.Scan()
	data := chosen.make(size)
	debug.FreeOSMemory()
	fmt.Println("ready")
	for lines.Scan() {
		begun := time.Now()
		result := chosen.run(data)
		fmt.Println(time.Since(begun).Nanoseconds(), result)
	}
	runtime.KeepAlive(data)
}
