// Converts rows of CSV into lines of JSON. An invalid row is reported on the standard error, and the others are converted.
package main

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strconv"
)

type Order struct {
	Item  string  `json:"item"`
	Count int     `json:"count"`
	Note  *string `json:"note"`
}

type Columns struct{ item, count, note int }

func columns(head []string) (Columns, error) {
	columns := Columns{slices.Index(head, "item"), slices.Index(head, "count"), slices.Index(head, "note")}
	if columns.item < 0 || columns.count < 0 {
		return columns, errors.New("there is no column `item` or `count`")
	}
	return columns, nil
}

func order(row []string, columns Columns) (Order, error) {
	order := Order{Item: row[columns.item]}
	if order.Item == "" {
		return order, errors.New("an order of nothing")
	}
	count, err := strconv.Atoi(row[columns.count])
	if err != nil {
		return order, err
	}
	order.Count = count
	if columns.note >= 0 && row[columns.note] != "" {
		order.Note = &row[columns.note]
	}
	return order, nil
}

func main() {
	file, err := os.Open("orders.csv")
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	rows := csv.NewReader(file)
	head, err := rows.Read()
	if err != nil {
		log.Fatal(err)
	}
	columns, err := columns(head)
	if err != nil {
		log.Fatal(err)
	}
	out := bufio.NewWriter(os.Stdout)
	lines := json.NewEncoder(out)
	written, leftOut := 0, 0
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		var bad *csv.ParseError
		if err != nil && !errors.As(err, &bad) {
			log.Fatal(err)
		}
		var found Order
		if err == nil {
			found, err = order(row, columns)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "left out:", err)
			leftOut++
			continue
		}
		if err := lines.Encode(found); err != nil {
			log.Fatal(err)
		}
		written++
	}
	if err := out.Flush(); err != nil {
		log.Fatal(err)
	}
	fmt.Fprintf(os.Stderr, "%d written, %d left out\n", written, leftOut)
}
