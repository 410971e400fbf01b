// A stationery shop of several packages: orders and their invoices, and a package of amounts that other programs share.
package main

import (
	"fmt"
	"log"
	"net/http"
	"strconv"

	"weir.example/programs/stationery/billing"
	"weir.example/programs/stationery/money"
	"weir.example/programs/stationery/orders"
)

func main() {
	http.HandleFunc("POST /orders/{item}", func(w http.ResponseWriter, r *http.Request) {
		count := 1
		if given := r.URL.Query().Get("count"); given != "" {
			var err error
			if count, err = strconv.Atoi(given); err != nil {
				http.Error(w, "`count` is a whole number.", http.StatusBadRequest)
				return
			}
		}
		order, err := orders.Place(r.PathValue("item"), count)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, billing.Text(order))
	})
	http.HandleFunc("GET /orders", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "%d orders, %s", orders.Count(), money.Shown(orders.Total()))
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", nil))
}
