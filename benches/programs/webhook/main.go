// Accepts signed notices of a shop, and forwards each to another service, with retries.
package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"time"
	"unicode/utf8"
)

var (
	shopKey = os.Getenv("SHOP_KEY")
	target  = os.Getenv("TARGET")
	client  = http.Client{Timeout: 30 * time.Second}
)

func isSigned(notice []byte, signature string) bool {
	digits, found := strings.CutPrefix(signature, "sha256=")
	sent, err := hex.DecodeString(digits)
	if !found || err != nil {
		return false
	}
	mac := hmac.New(sha256.New, []byte(shopKey))
	mac.Write(notice)
	return hmac.Equal(sent, mac.Sum(nil))
}

func sent(ctx context.Context, url string, notice []byte) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, url, bytes.NewReader(notice))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 500 {
		return 0, fmt.Errorf("the target answered %d", answer.StatusCode)
	}
	return answer.StatusCode, nil
}

// Puts the notice under the digest of its text, so that sending it twice changes nothing.
func forwarded(ctx context.Context, notice []byte) (int, error) {
	if !json.Valid(notice) {
		return 0, fmt.Errorf("the notice is no JSON")
	}
	digest := sha256.Sum256(notice)
	url := target + "/" + hex.EncodeToString(digest[:])
	pause := 200 * time.Millisecond
	for attempt := 1; ; attempt++ {
		status, err := sent(ctx, url, notice)
		if err == nil || attempt == 5 {
			return status, err
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(pause/2 + rand.N(pause/2)):
			pause *= 2
		}
	}
}

func problem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{"title": http.StatusText(status), "status": status, "detail": detail})
}

func main() {
	if shopKey == "" {
		log.Fatal("SHOP_KEY is not set")
	}
	if target == "" {
		target = "http://localhost:9000/orders"
	}
	http.HandleFunc("POST /notices", func(w http.ResponseWriter, r *http.Request) {
		notice, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
		if err != nil {
			problem(w, http.StatusRequestEntityTooLarge, "the notice is too large")
			return
		}
		if !isSigned(notice, r.Header.Get("Signature")) {
			problem(w, http.StatusUnauthorized, "not signed by the shop")
			return
		}
		if !utf8.Valid(notice) {
			problem(w, http.StatusBadRequest, "not a text")
			return
		}
		status, err := forwarded(r.Context(), notice)
		if err != nil {
			log.Print(err)
			problem(w, http.StatusBadGateway, "the notice cannot be forwarded")
			return
		}
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprintf(w, "forwarded with status %d", status)
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", nil))
}
