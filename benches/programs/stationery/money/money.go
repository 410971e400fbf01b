// Package money has amounts of money, counted in cents.
package money

import "fmt"

// Whole returns a whole amount in cents.
func Whole(amount int) int { return amount * 100 }

// Shown shows cents: 1234 as 12.34.
func Shown(cents int) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }
