// A store of texts that speaks a subset of the protocol of Redis: PING, ECHO, GET, SET with EX, DEL, EXISTS, INCR, EXPIRE, TTL.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	entriesMax     = 1_000_000
	connectionsMax = 10_000
	idle           = 75 * time.Second
	partsMax       = 1_000
	bytesMax       = 16_000_000
	lineMax        = 64 << 10
)

type Entry struct {
	value string
	ends  time.Time // zero if it does not end
}

type Store struct {
	mutex   sync.Mutex
	entries map[string]Entry
}

// Returns the entry under a key, unless its time is over.
func (s *Store) live(key string) (Entry, bool) {
	entry, isKnown := s.entries[key]
	return entry, isKnown && (entry.ends.IsZero() || entry.ends.After(time.Now()))
}

func (s *Store) put(key string, entry Entry) {
	if _, isKnown := s.entries[key]; !isKnown && len(s.entries) >= entriesMax {
		for other := range s.entries {
			delete(s.entries, other)
			break
		}
	}
	s.entries[key] = entry
}

func number(n int64) string { return ":" + strconv.FormatInt(n, 10) + "\r\n" }

func bulk(value string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(value), value) }

func failure(message string) string { return "-ERR " + message + "\r\n" }

func endsIn(seconds string) (time.Time, error) {
	count, err := strconv.ParseInt(seconds, 10, 64)
	return time.Now().Add(time.Duration(count) * time.Second), err
}

func (s *Store) set(key, value string, ends time.Time) string {
	s.put(key, Entry{value, ends})
	return "+OK\r\n"
}

func (s *Store) increase(key string) string {
	entry, isLive := s.live(key)
	if !isLive {
		entry = Entry{value: "0"}
	}
	count, err := strconv.ParseInt(entry.value, 10, 64)
	if err != nil || count+1 < count {
		return failure("the value is not a whole number, or is too large")
	}
	entry.value = strconv.FormatInt(count+1, 10)
	s.put(key, entry)
	return number(count + 1)
}

func (s *Store) expire(key, seconds string) string {
	ends, err := endsIn(seconds)
	if err != nil {
		return failure(err.Error())
	}
	entry, isLive := s.live(key)
	if !isLive {
		return number(0)
	}
	entry.ends = ends
	s.put(key, entry)
	return number(1)
}

func (s *Store) left(key string) int64 {
	entry, isLive := s.live(key)
	switch {
	case !isLive:
		return -2
	case entry.ends.IsZero():
		return -1
	default:
		return int64(time.Until(entry.ends) / time.Second)
	}
}

func (s *Store) answer(command []string) string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	name, count := "", len(command)
	if count > 0 {
		name = strings.ToUpper(command[0])
	}
	switch {
	case name == "PING" && count == 1:
		return "+PONG\r\n"
	case (name == "PING" || name == "ECHO") && count == 2:
		return bulk(command[1])
	case name == "GET" && count == 2:
		if entry, isLive := s.live(command[1]); isLive {
			return bulk(entry.value)
		}
		return "$-1\r\n"
	case name == "SET" && count == 3:
		return s.set(command[1], command[2], time.Time{})
	case name == "SET" && count == 5 && strings.EqualFold(command[3], "EX"):
		ends, err := endsIn(command[4])
		if err != nil {
			return failure(err.Error())
		}
		return s.set(command[1], command[2], ends)
	case name == "DEL":
		deleted := int64(0)
		for _, key := range command[1:] {
			if _, isKnown := s.entries[key]; isKnown {
				delete(s.entries, key)
				deleted++
			}
		}
		return number(deleted)
	case name == "EXISTS":
		found := int64(0)
		for _, key := range command[1:] {
			if _, isLive := s.live(key); isLive {
				found++
			}
		}
		return number(found)
	case name == "INCR" && count == 2:
		return s.increase(command[1])
	case name == "EXPIRE" && count == 3:
		return s.expire(command[1], command[2])
	case name == "TTL" && count == 2:
		return number(s.left(command[1]))
	}
	return failure("unknown command or wrong number of arguments: '" + name + "'")
}

// Reads the number behind a sign, such as `*3` and `$5`.
func counted(input *bufio.Reader, sign string, most int) (int, error) {
	line, err := input.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	digits, found := strings.CutPrefix(strings.TrimRight(string(line), "\r\n"), sign)
	if !found {
		return 0, errors.New("a line begins with " + sign)
	}
	count, err := strconv.Atoi(digits)
	return min(max(count, 0), most), err
}

func command(input *bufio.Reader) ([]string, error) {
	parts, err := counted(input, "*", partsMax)
	if err != nil {
		return nil, err
	}
	command := make([]string, 0, parts)
	for range parts {
		length, err := counted(input, "$", bytesMax)
		if err != nil {
			return nil, err
		}
		part := make([]byte, length+2)
		if _, err := io.ReadFull(input, part); err != nil {
			return nil, err
		}
		command = append(command, string(part[:length]))
	}
	return command, nil
}

func (s *Store) serve(connection net.Conn) {
	defer connection.Close()
	input := bufio.NewReaderSize(connection, lineMax)
	for {
		connection.SetDeadline(time.Now().Add(idle))
		command, err := command(input)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				log.Print(err)
			}
			return
		}
		if _, err := io.WriteString(connection, s.answer(command)); err != nil {
			log.Print(err)
			return
		}
	}
}

func main() {
	store := &Store{entries: map[string]Entry{}}
	listener, err := net.Listen("tcp", "127.0.0.1:6380")
	if err != nil {
		log.Fatal(err)
	}
	places := make(chan struct{}, connectionsMax)
	for {
		places <- struct{}{}
		connection, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go func() {
			defer func() { <-places }()
			store.serve(connection)
		}()
	}
}
