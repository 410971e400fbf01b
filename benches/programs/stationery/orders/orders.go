// Package orders has orders, and what they cost.
package orders

import (
	"fmt"
	"sync"

	"weir.example/programs/stationery/money"
)

// State is the state of an order.
type State int

const (
	Open State = iota
	Paid
)

// Order is an order. The cents are those that were paid.
type Order struct {
	Item  string
	Count int
	State State
	cents int
}

var (
	mutex  sync.Mutex
	placed []Order
)

// Place places an order.
func Place(item string, count int) (Order, error) {
	price, err := Price(item)
	if err != nil {
		return Order{}, err
	}
	order := Order{item, count, Paid, count * price}
	mutex.Lock()
	defer mutex.Unlock()
	placed = append(placed, order)
	return order, nil
}

// Count returns the number of orders.
func Count() int {
	mutex.Lock()
	defer mutex.Unlock()
	return len(placed)
}

// Total returns the sum of all orders in cents.
func Total() int {
	mutex.Lock()
	defer mutex.Unlock()
	sum := 0
	for _, order := range placed {
		sum += order.Cents()
	}
	return sum
}

// Cents returns the cents of an order.
func (o Order) Cents() int {
	if o.State == Open {
		return 0
	}
	return o.cents
}

// Price returns the price of an item.
func Price(item string) (int, error) {
	switch item {
	case "pen":
		return money.Whole(2), nil
	case "paper":
		return money.Whole(5), nil
	}
	return 0, fmt.Errorf("there is no %s", item)
}
