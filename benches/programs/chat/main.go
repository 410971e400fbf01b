// A chat of several rooms: who asks for news gets what came behind the last message that he has seen, or waits for it.
package main

import (
	"encoding/json"
	"log"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	messagesMax = 100
	roomsMax    = 1_000
	patience    = 25 * time.Second
)

type Message struct {
	Number int    `json:"number"`
	From   string `json:"from"`
	Text   string `json:"text"`
}

type Room struct {
	messages []Message
	news     chan struct{} // closed by the next message
}

type Chat struct {
	mutex sync.Mutex
	rooms map[string]*Room
	names []string // in the order in which the rooms began
	last  int
}

// Returns the room of a name; it is created if there is none.
func (c *Chat) room(name string) *Room {
	room, isKnown := c.rooms[name]
	if !isKnown {
		room = &Room{news: make(chan struct{})}
		c.rooms[name] = room
		c.names = append(c.names, name)
		if len(c.names) > roomsMax {
			delete(c.rooms, c.names[0])
			c.names = c.names[1:]
		}
	}
	return room
}

func (c *Chat) add(name, from, text string) Message {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.last++
	message := Message{c.last, from, text}
	room := c.room(name)
	room.messages = append(room.messages, message)
	if len(room.messages) > messagesMax {
		room.messages = room.messages[1:]
	}
	close(room.news)
	room.news = make(chan struct{})
	return message
}

// Returns the messages behind a number, and a channel that the next one closes.
func (c *Chat) news(name string, after int) ([]Message, chan struct{}) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	room := c.room(name)
	at := slices.IndexFunc(room.messages, func(message Message) bool { return message.Number > after })
	if at < 0 {
		return []Message{}, room.news
	}
	return slices.Clone(room.messages[at:]), nil
}

func write(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		log.Print(err)
	}
}

func (c *Chat) post(w http.ResponseWriter, r *http.Request) {
	var draft struct{ From, Text *string }
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		http.Error(w, "The body is no JSON.", http.StatusUnsupportedMediaType)
		return
	}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 8<<10)).Decode(&draft)
	if err != nil || draft.From == nil || draft.Text == nil {
		http.Error(w, "A message has the fields `from` and `text`.", http.StatusBadRequest)
		return
	}
	if strings.TrimSpace(*draft.Text) == "" {
		http.Error(w, "A message has a text.", http.StatusUnprocessableEntity)
		return
	}
	write(w, http.StatusCreated, c.add(r.PathValue("room"), *draft.From, *draft.Text))
}

func (c *Chat) get(w http.ResponseWriter, r *http.Request) {
	after := 0
	if given := r.URL.Query().Get("after"); given != "" {
		var err error
		if after, err = strconv.Atoi(given); err != nil {
			http.Error(w, "`after` is a whole number.", http.StatusBadRequest)
			return
		}
	}
	messages, next := c.news(r.PathValue("room"), after)
	if next != nil {
		select {
		case <-next:
			messages, _ = c.news(r.PathValue("room"), after)
		case <-time.After(patience):
		case <-r.Context().Done():
			return
		}
	}
	write(w, http.StatusOK, messages)
}

func main() {
	chat := &Chat{rooms: map[string]*Room{}}
	http.HandleFunc("POST /rooms/{room}", chat.post)
	http.HandleFunc("GET /rooms/{room}", chat.get)
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", nil))
}
