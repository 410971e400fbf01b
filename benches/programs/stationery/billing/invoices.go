// Package billing has invoices.
package billing

import (
	"fmt"

	"weir.example/programs/stationery/money"
	"weir.example/programs/stationery/orders"
)

// Text returns the text of an invoice.
func Text(order orders.Order) string {
	state := "paid"
	if order.State == orders.Open {
		state = "open"
	}
	return fmt.Sprintf("%d %s: %s, %s", order.Count, order.Item, money.Shown(order.Cents()), state)
}
