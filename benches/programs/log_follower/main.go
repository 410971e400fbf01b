// Follows the log of a web server: counts answers by status and the slowest paths, and shows both as JSON.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const pathsMax = 10_000

type Path struct {
	Path   string  `json:"path"`
	Visits int     `json:"visits"`
	MeanMs float64 `json:"mean_ms"`
}

type Report struct {
	Statuses  map[int]int `json:"statuses"`
	Slowest   []Path      `json:"slowest"`
	Malformed int         `json:"malformed"`
}

type Times struct {
	visits int
	ms     float64
}

var (
	visitPattern = regexp.MustCompile(`"[A-Z]+ ([^ ?]+)[^"]*" ([0-9]+) [0-9]+ ([0-9.]+)$`)
	mutex        sync.Mutex
	statuses     = map[int]int{}
	paths        = map[string]*Times{}
	order        []string // the paths, in the order of their first visits
	malformed    int
)

func visit(line string) (path string, status int, ms float64, err error) {
	found := visitPattern.FindStringSubmatch(line)
	if found == nil {
		return "", 0, 0, errors.New("not a line of the log")
	}
	if status, err = strconv.Atoi(found[2]); err != nil {
		return "", 0, 0, err
	}
	ms, err = strconv.ParseFloat(found[3], 64)
	return found[1], status, ms, err
}

func note(line string) {
	path, status, ms, err := visit(line)
	mutex.Lock()
	defer mutex.Unlock()
	if err != nil {
		malformed++
		return
	}
	statuses[status]++
	times, isKnown := paths[path]
	if !isKnown {
		times = &Times{}
		paths[path] = times
		order = append(order, path)
		if len(order) > pathsMax {
			delete(paths, order[0])
			order = order[1:]
		}
	}
	times.visits++
	times.ms += ms
}

func report(most int) Report {
	mutex.Lock()
	defer mutex.Unlock()
	counts := make(map[int]int, len(statuses))
	for status, count := range statuses {
		counts[status] = count
	}
	slowest := make([]Path, 0, len(paths))
	for path, times := range paths {
		slowest = append(slowest, Path{path, times.visits, times.ms / float64(times.visits)})
	}
	slices.SortFunc(slowest, func(one, other Path) int { return cmp.Compare(other.MeanMs, one.MeanMs) })
	return Report{counts, slowest[:min(max(most, 0), len(slowest))], malformed}
}

// Reads the lines of the log that are there and those that are appended. A log that was replaced is read from its beginning.
func follow(name string) error {
	for {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		if err := read(name, file); err != nil {
			return err
		}
	}
}

func read(name string, file *os.File) error {
	defer file.Close()
	lines, part := bufio.NewReader(file), ""
	for {
		line, err := lines.ReadString('\n')
		part += line
		if err == nil {
			note(strings.TrimRight(part, "\r\n"))
			part = ""
			continue
		}
		if !errors.Is(err, io.EOF) {
			return err
		}
		time.Sleep(100 * time.Millisecond)
		read, err := file.Stat()
		if err != nil {
			return err
		}
		named, err := os.Stat(name)
		if err != nil || !os.SameFile(read, named) {
			return nil
		}
		if at, err := file.Seek(0, io.SeekCurrent); err != nil || named.Size() < at {
			return err
		}
	}
}

func main() {
	name := os.Getenv("ACCESS_LOG")
	if name == "" {
		name = "access.log"
	}
	go func() { log.Fatal(follow(name)) }()
	go func() {
		for range time.Tick(time.Minute) {
			report := report(0)
			log.Print("visits ", report.Statuses, " malformed ", report.Malformed)
		}
	}()
	http.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		most := 10
		if given := r.URL.Query().Get("most"); given != "" {
			var err error
			if most, err = strconv.Atoi(given); err != nil {
				http.Error(w, "`most` is a whole number.", http.StatusBadRequest)
				return
			}
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(report(most)); err != nil {
			log.Print(err)
		}
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", nil))
}
