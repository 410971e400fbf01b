// Rows of records, texts, lists and maps.
package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html"
	"sort"
	"strconv"
	"strings"
)

type person struct {
	name  string
	age   int
	score float64
}

func makePeople(size int) any {
	people := make([]person, size)
	for i := range people {
		people[i] = person{fmt.Sprintf("name%d", i*7919%1000), i % 90, 0.5}
	}
	return people
}

func makeRecords(size int) any {
	people := make([]person, size)
	for i := range people {
		people[i] = person{fmt.Sprintf("name%d", i%1000), i % 90, float64(i) / 2}
	}
	return people
}

func group(data any) int {
	counts := map[string]int{}
	for _, p := range data.([]person) {
		counts[p.name]++
	}
	return len(counts)*10000000 + counts["name7"]
}

func buildList(data any) int {
	var all []int
	for i := 0; i < data.(int); i++ {
		all = append(all, i*2)
	}
	return len(all) + all[len(all)-1]
}

func buildText(data any) int {
	var all strings.Builder
	for i := 0; i < data.(int); i++ {
		fmt.Fprintf(&all, "<%d>", i%10)
	}
	return len(all.String())
}

func buildMap(data any) int {
	all := map[int]int{}
	for i := 0; i < data.(int); i++ {
		all[i] = i * 2
	}
	return len(all) + all[7]
}

func makePage(size int) any {
	all := make([]string, size)
	for i := range all {
		all[i] = fmt.Sprintf("word%d", i*7919%5003)
	}
	return strings.Join(all, " ")
}

func words(data any) int {
	counts := map[string]int{}
	for _, word := range strings.Fields(data.(string)) {
		counts[word]++
	}
	return len(counts)*100000 + counts["word7"]
}

func groupBy(data any) int {
	groups := map[int][]int{}
	for _, i := range data.([]int) {
		groups[i%1000] = append(groups[i%1000], i)
	}
	longest := 0
	for _, group := range groups {
		longest = max(longest, len(group))
	}
	return len(groups) + longest
}

type pair struct {
	number int
	name   string
}

func makePairs(size int) any {
	all := make([]pair, size)
	for i := range all {
		all[i] = pair{i * 7919 % 1000003, fmt.Sprintf("name%d", i%100)}
	}
	return all
}

func sortPairs(data any) int {
	sorted := append([]pair(nil), data.([]pair)...)
	sort.SliceStable(sorted, func(a, b int) bool {
		one, other := sorted[a], sorted[b]
		return one.number < other.number || one.number == other.number && one.name < other.name
	})
	return sorted[0].number + sorted[len(sorted)/2].number
}

type item struct {
	Id    int      `json:"id"`
	Name  string   `json:"name"`
	Price float64  `json:"price"`
	Tags  []string `json:"tags"`
}

func encoded(items []item) []byte {
	text, err := json.Marshal(items)
	if err != nil {
		panic(err)
	}
	return text
}

func makeJson(size int) any {
	items := make([]item, size)
	for i := range items {
		items[i] = item{i, fmt.Sprintf("item %d", i), 0.25, []string{"a", fmt.Sprintf("b%d", i%10)}}
	}
	return encoded(items)
}

func runJson(data any) int {
	var items []item
	if err := json.Unmarshal(data.([]byte), &items); err != nil {
		panic(err)
	}
	changed := make([]item, len(items))
	for i, found := range items {
		changed[i] = item{found.Id + 1, strings.ToUpper(found.Name), found.Price * 2, []string{found.Name}}
	}
	return len(encoded(changed))
}

func makeCsv(size int) any {
	var table strings.Builder
	table.WriteString("id,city,amount\n")
	for i := 0; i < size; i++ {
		fmt.Fprintf(&table, "%d,city%d,%d\n", i, i*31%97, i%1000)
	}
	return table.String()
}

func runCsv(data any) int {
	rows, err := csv.NewReader(strings.NewReader(data.(string))).ReadAll()
	if err != nil {
		panic(err)
	}
	sums := map[string]int{}
	for _, row := range rows[1:] {
		amount, err := strconv.Atoi(row[2])
		if err != nil {
			panic(err)
		}
		sums[row[1]] += amount
	}
	return len(sums)*1000000000 + sums["city5"]
}

func makeNames(size int) any {
	names := make([]string, size)
	for i := range names {
		names[i] = fmt.Sprintf("<name> & %d", i)
	}
	return names
}

func template(data any) int {
	var rows []string
	for _, name := range data.([]string) {
		rows = append(rows, `<li class="row"><b>`+html.EscapeString(name)+`</b></li>`)
	}
	return len("<ul>" + strings.Join(rows, "\n") + "</ul>")
}
